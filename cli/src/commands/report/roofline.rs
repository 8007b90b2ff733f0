//! The roofline: the run and its kernels below what the node's parameters allow.

use super::input::RunInput;
use super::units::{quotient, titled};
use crate::commands::roofline::placed::of_document;
use balar_charts::{Roofline, RooflinePoint, roofline};
use balar_experiments::roofline::{Ceilings, Placed, left_out, textbook};
use balar_report::{Cell, Chart, Column, Format, Part, Section, Table};

/// Kernels that have a mark; the table has all of them.
const KERNELS: usize = 8;

/// The section; `None` where nothing was computed in floating point, or the topology is not known.
pub fn section(runs: &[RunInput]) -> Option<Section> {
    let charts: Vec<Part> = runs.iter().filter_map(chart).collect();
    if charts.is_empty() {
        return None;
    }
    let mut lead = "Floating-point operations over the bytes that each level of memory moved, below the ceilings that the parameters of the \
                    units allow; `balar-actors roofline` measures them. A kernel whose mark of a level lies near the slanted ceiling of this \
                    level is bound by its bandwidth."
        .to_owned();
    if runs.iter().any(|run| run.gpus.len() > 1) {
        lead.push_str(" Ceilings and marks are those of one GPU.");
    }
    let parts = if charts.len() > 1 { vec![Part::Beside(charts)] } else { charts };
    Some(Section { id: "roofline", title: "Roofline", lead, parts })
}

fn chart(run: &RunInput) -> Option<Part> {
    let topology = run.topology.as_ref().ok()?;
    let gpu = topology.gpus().into_iter().next()?;
    let ceilings = textbook(topology, &gpu);
    let mut placed: Vec<Placed> = of_document(run.document(), true);
    // The run of a single kernel is that kernel.
    if let [whole, _, ..] = &mut placed[..] {
        whole.name = "whole run".to_owned();
    }
    let notes = left_out(&placed);
    placed.retain(|placed| placed.work.main_precision().is_some());
    if placed.is_empty() || ceilings.arithmetic.is_empty() {
        return None;
    }
    let unmarked: Vec<&str> = placed.iter().skip(1 + KERNELS).map(|placed| placed.name.as_str()).collect();
    let without_room = (!unmarked.is_empty()).then(|| format!("in the table alone: {}", unmarked.join(", ")));
    let notes: Vec<String> = without_room.into_iter().chain(notes).collect();
    let points = placed.iter().take(1 + KERNELS).map(|placed| RooflinePoint {
        name: &placed.name,
        gigaflops: placed.work.gigaflops().unwrap_or(0.0),
        intensities: placed.work.intensities().map(|(_, intensity)| intensity).into(),
    });
    let svg = roofline(&Roofline {
        title: "",
        ceilings: "textbook ceilings",
        memory: ceilings.memory.iter().map(|level| (level.name.clone(), level.gigabytes)).collect(),
        arithmetic: ceilings.arithmetic.iter().map(|(one, gigaflops)| (one.title().to_owned(), *gigaflops)).collect(),
        textbook: (Vec::new(), Vec::new()),
        points: points.collect(),
        notes: notes.clone(),
    });
    let title = titled("Operations over bytes", run, None);
    let label = placed.first().map_or(String::new(), |first| {
        let rate = first.work.gigaflops().unwrap_or(0.0);
        format!("Roofline: {} does {rate:.1} GFLOP/s", first.name)
    });
    Some(Part::Chart(Chart { title, label, svg, table: table(&placed, &ceilings, &notes) }))
}

fn table(placed: &[Placed], ceilings: &Ceilings, notes: &[String]) -> Table {
    let rows = placed.iter().map(|Placed { name, work }| {
        let rate = work.gigaflops();
        let main = work.main_precision();
        let mut row = vec![
            Cell::Text(name.clone()),
            Cell::Numbers(vec![rate]),
            Cell::Text(main.map_or("", |precision| precision.title()).to_owned()),
        ];
        // What the level that bounds it most, or arithmetic, would allow.
        let most = main.and_then(|precision| {
            let levels = work
                .intensities()
                .into_iter()
                .filter_map(|(level, intensity)| ceilings.attainable(precision, level, intensity?));
            levels.chain(ceilings.of(precision)).reduce(f64::min)
        });
        row.push(Cell::Numbers(vec![most]));
        row.push(Cell::Numbers(vec![rate.zip(most).and_then(|(rate, most)| quotient(100.0 * rate, most))]));
        row.extend(work.intensities().map(|(_, intensity)| Cell::Numbers(vec![intensity])));
        row
    });
    Table {
        caption: "Where kernels are below the ceilings".to_owned(),
        columns: vec![
            Column::text("kernel"),
            Column::number("performance", "GFLOP/s", Format::Short),
            Column::text("mostly"),
            Column::number("attainable", "GFLOP/s", Format::Short)
                .meaning("at these intensities, below the ceilings of all levels and of its arithmetic"),
            Column::number("reached", "%", Format::Percent),
            Column::number("by L1", "FLOP/byte", Format::Short),
            Column::number("by L2", "FLOP/byte", Format::Short),
            Column::number("by DRAM", "FLOP/byte", Format::Short),
        ],
        rows: rows.collect(),
        is_sortable: true,
        rest: (!notes.is_empty()).then(|| notes.join("; ")),
    }
}
