//! The twelve programs beside the hardware, at 100 % of the memory.

use super::common::{Compared, HARDWARE_NODE, OF_HARDWARE, Part};
use super::{Figures, PROGRAMS, Program};
use crate::validation::agreement::{Agreement, error_percent};
use crate::validation::report::{Cell, Chart, Column, Report, Table};
use crate::validation::runs::{Point, Runs};
use crate::validation::{PartDescription, Selection};
use balar_charts::{Mark, Scatter, Series};

pub(super) const PART: Part = Part {
    description: PartDescription {
        name: "hardware",
        summary: "kernel times, faults and transfers of twelve programs beside a GTX 1080 Ti (gtx1080ti_node)",
    },
    points,
    report,
};

fn chosen(selection: &Selection) -> impl Iterator<Item = &'static Program> {
    PROGRAMS.iter().filter(|program| selection.has_program(program.name))
}

fn points(selection: &Selection) -> Vec<Point> {
    chosen(selection).map(|program| program.point(HARDWARE_NODE, &[])).collect()
}

/// A program, and the figures of its run.
type Row<'a> = (&'static Program, Option<&'a Figures>);

fn report(selection: &Selection, runs: &Runs<Figures>, report: &mut Report) {
    let rows: Vec<Row<'_>> =
        chosen(selection).map(|program| (program, runs.get(&program.point(HARDWARE_NODE, &[])))).collect();
    if rows.is_empty() {
        return;
    }
    report.tables.extend([times(&rows), transfers(&rows)]);
    for (program, found) in &rows {
        let compared =
            Compared { study: "hardware", program: program.name, setting: "100 %".to_owned(), source: OF_HARDWARE };
        let of = |figure: fn(&Figures) -> f64| found.map(figure);
        report.comparisons.extend([
            compared.with("kernel time", "us", of(|found| found.kernel_us), Some(program.hardware_us)),
            compared.with("fault groups", "group", of(|found| found.batches as f64), Some(program.groups as f64)),
            compared.with(
                "to device",
                "KiB",
                of(|found| found.to_device_kib as f64),
                Some(program.to_device_kib as f64),
            ),
            compared.with(
                "transfers to device",
                "transfer",
                of(|found| found.transfers as f64),
                Some(program.transfers as f64),
            ),
        ]);
    }
    report.charts.push(Chart { name: "hardware_kernel_time", svg: picture(&rows) });
}

fn times(rows: &[Row<'_>]) -> Table {
    let cells = rows.iter().map(|(program, found)| {
        let simulated = found.map(|found| found.kernel_us);
        vec![
            Cell::text(program.name),
            Cell::number(simulated, 1),
            Cell::Number(program.hardware_us, 1),
            Cell::signed(simulated.map(|us| error_percent(us, program.hardware_us)), 1),
            Cell::Number(program.uvmsmart_us, 1),
            Cell::Signed(error_percent(program.uvmsmart_us, program.hardware_us), 1),
        ]
    });
    let pairs = rows.iter().filter_map(|(program, found)| Some((found.as_ref()?.kernel_us, program.hardware_us)));
    // UVMSmart's over the same programs.
    let theirs =
        rows.iter().filter(|row| row.1.is_some()).map(|(program, _)| (program.uvmsmart_us, program.hardware_us));
    let notes = [("simulated", Agreement::of(pairs)), ("UVMSmart", Agreement::of(theirs))];
    Table {
        name: "hardware_kernel_time",
        title: "Kernel time of programs with managed memory, beside a GTX 1080 Ti",
        columns: vec![
            Column::new("program", "program"),
            Column::new("simulated_us", "us"),
            Column::new("hardware_us", "hardware us"),
            Column::new("error_percent", "error %"),
            Column::droppable("uvmsmart_us", "UVMSmart us"),
            Column::droppable("uvmsmart_error_percent", "its error %"),
        ],
        rows: cells.collect(),
        notes: notes.into_iter().filter_map(|(who, found)| Some(format!("{who}: {}", found?))).collect(),
    }
}

fn transfers(rows: &[Row<'_>]) -> Table {
    type Quantity = (&'static str, fn(&Figures) -> u64, fn(&Program) -> u64);
    let quantities: [Quantity; 3] = [
        ("fault groups", |found| found.batches, |program| program.groups),
        ("KiB to the GPU", |found| found.to_device_kib, |program| program.to_device_kib),
        ("transfers", |found| found.transfers, |program| program.transfers),
    ];
    let cells = rows.iter().map(|(program, found)| {
        let mut cells = vec![Cell::text(program.name)];
        for (_, simulated, measured) in &quantities {
            let (simulated, measured) = (found.map(|found| simulated(found) as f64), measured(program) as f64);
            let error = simulated.map(|simulated| error_percent(simulated, measured));
            cells.extend([Cell::number(simulated, 0), Cell::Number(measured, 0), Cell::signed(error, 0)]);
        }
        cells
    });
    let notes = quantities.iter().filter_map(|(name, simulated, measured)| {
        let pairs = rows
            .iter()
            .filter_map(|(program, found)| Some((simulated(found.as_ref()?) as f64, measured(program) as f64)));
        Some(format!("{name}: {}", Agreement::of(pairs)?))
    });
    Table {
        name: "hardware_transfers",
        title: "Batches of faults beside nvprof's fault groups, and bytes to the GPU",
        columns: vec![
            Column::new("program", "program"),
            Column::new("batches", "batches"),
            Column::new("hardware_groups", "groups"),
            Column::new("groups_error_percent", "error %"),
            Column::new("to_device_kib", "KiB"),
            Column::new("hardware_to_device_kib", "hardware"),
            Column::new("to_device_error_percent", "error %"),
            Column::new("transfers", "transfers"),
            Column::new("hardware_transfers", "hardware"),
            Column::new("transfers_error_percent", "error %"),
        ],
        rows: cells.collect(),
        notes: notes.collect(),
    }
}

fn picture(rows: &[Row<'_>]) -> String {
    let simulated = rows.iter().filter_map(|(program, found)| Some((program, found.as_ref()?.kernel_us)));
    let simulated = simulated.map(|(program, us)| (program.hardware_us, us, program.name.to_owned())).collect();
    let theirs = rows.iter().map(|(program, _)| (program.hardware_us, program.uvmsmart_us, String::new())).collect();
    balar_charts::scatter(&Scatter {
        title: "Kernel time with managed memory",
        x: "measured on a GTX 1080 Ti, us",
        y: "simulated, us",
        diagonal: "as measured",
        series: vec![
            Series { name: "balar-actors (gtx1080ti_node)", mark: Mark::Disc, points: simulated },
            Series { name: "UVMSmart", mark: Mark::Ring, points: theirs },
        ],
    })
}
