//! Table 3-6: the instruction mix of three kernels of LULESH.

use super::part::{Part, SOURCE_MIX};
use super::subject::{LULESH, NODE, Subject};
use crate::validation::instruction_mix::{InstructionClass, InstructionMix};
use crate::validation::programs::{Job, ProgramFigures};
use crate::validation::report::{Cell, Chart, Column, Compared, Report, Table};
use crate::validation::runs::Runs;
use crate::validation::{PartDescription, Selection};
use balar_charts::Bars;

pub(super) const PART: Part = Part {
    description: PartDescription {
        name: "mix",
        summary: "instruction mix of three kernels of LULESH beside a V100 (table 3-6)",
    },
    jobs,
    report,
};

/// A kernel of the table.
struct Kernel {
    name: &'static str,
    /// The kernel with the same work in the workload that stands in for LULESH.
    stand_in: &'static str,
    chart: &'static str,
    /// Its shares on the hardware, percent, in the order of [`CLASSES`].
    published: [f64; 7],
}

const KERNELS: [Kernel; 3] = [
    Kernel {
        name: "CalcFBHourglassForceForElems",
        stand_in: "hourglassForces",
        chart: "mix_fb_hourglass",
        published: [1.0, 10.0, 11.0, 10.0, 12.0, 31.0, 23.0],
    },
    Kernel {
        name: "CalcPressureForElems",
        stand_in: "gasPressure",
        chart: "mix_pressure",
        published: [5.0, 17.0, 27.0, 2.0, 19.0, 16.0, 15.0],
    },
    Kernel {
        name: "CalcHourglassControlForElems",
        stand_in: "volumeDerivatives",
        chart: "mix_hourglass_control",
        published: [0.0, 25.0, 21.0, 3.0, 38.0, 9.0, 1.0],
    },
];

/// The classes of the table: the name of each in print and as a quantity, and its instructions; `None`: slots without an active thread.
const CLASSES: [(&str, &str, Option<InstructionClass>); 7] = [
    ("FP32", "share of FP32", Some(InstructionClass::Single)),
    ("FP64", "share of FP64", Some(InstructionClass::Double)),
    ("INT", "share of INT", Some(InstructionClass::Integer)),
    ("CTRL", "share of CTRL", Some(InstructionClass::Control)),
    ("L/S", "share of L/S", Some(InstructionClass::LoadStore)),
    ("MISC", "share of MISC", Some(InstructionClass::Miscellaneous)),
    ("INACTIVE", "share of INACTIVE", None),
];

fn jobs(selection: &Selection) -> Vec<Job> {
    Subject::of(selection).map(|subject| subject.job(Vec::new(), true)).into_iter().collect()
}

fn shares(mix: &InstructionMix) -> [f64; 7] {
    CLASSES.map(|(_, _, class)| class.map_or_else(|| mix.inactive(), |class| mix.share(class)))
}

fn report(selection: &Selection, runs: &Runs<ProgramFigures, Job>, report: &mut Report) {
    let Some(subject) = Subject::of(selection) else { return };
    let found = runs.get(&subject.job(Vec::new(), true));
    let mut rows = Vec::new();
    let mut largest: Option<(f64, &str, &str)> = None;
    // PTX has other instructions than those that the hardware counts.
    let is_comparable = subject.is_lulesh() && found.is_some_and(ProgramFigures::is_machine_code);
    for kernel in &KERNELS {
        // The launched function of LULESH has a suffix.
        let name = if subject.is_lulesh() { format!("{}_kernel", kernel.name) } else { kernel.stand_in.to_owned() };
        let mix = found.and_then(|found| found.mix_of(&name).or_else(|| found.mix_of(kernel.name)));
        let simulated = mix.map(shares);
        let other = mix.map(|mix| mix.share(InstructionClass::Other));
        let shown = |who: &str, code: &str, of: &str, cells: Vec<Cell>, other: Cell| {
            let mut row = vec![Cell::text(of), Cell::text(who), Cell::text(code)];
            row.extend(cells);
            row.push(other);
            row
        };
        let numbers = |values: Option<[f64; 7]>, decimals| -> Vec<Cell> {
            (0..CLASSES.len()).map(|class| Cell::number(values.map(|values| values[class]), decimals)).collect()
        };
        let code = found.map_or("-", |found| if found.is_machine_code() { "sass" } else { "ptx" });
        let of = if subject.is_lulesh() { kernel.name } else { kernel.stand_in };
        rows.push(shown(subject.name(), code, of, numbers(simulated, 1), Cell::number(other, 1)));
        rows.push(shown("LULESH, V100", "", kernel.name, numbers(Some(kernel.published), 0), Cell::Absent));
        let groups = (0..CLASSES.len()).map(|class| {
            let simulated = simulated.map(|shares| shares[class]);
            (CLASSES[class].0, [simulated, Some(kernel.published[class])])
        });
        report.charts.push(Chart {
            name: kernel.chart,
            svg: balar_charts::bars(&Bars {
                title: &format!("Instruction mix of {of}"),
                x: "class of instructions",
                y: "share of thread slots, percent",
                series: [&format!("{}, simulated", subject.name()), &format!("LULESH's {}, V100", kernel.name)],
                is_logarithmic: false,
                decimals: 0,
                groups: groups.collect(),
            }),
        });
        if !subject.is_lulesh() {
            continue;
        }
        if is_comparable && let Some(shares) = simulated {
            let cells = (0..CLASSES.len()).map(|class| Cell::Signed(shares[class] - kernel.published[class], 1));
            rows.push(shown("points", "", kernel.name, cells.collect(), Cell::Absent));
            for (class, share) in shares.iter().enumerate() {
                let gap = (share - kernel.published[class]).abs();
                if largest.is_none_or(|(most, ..)| gap > most) {
                    largest = Some((gap, CLASSES[class].0, kernel.name));
                }
            }
        }
        let compared =
            Compared { study: "mix", program: kernel.name, setting: format!("{LULESH}, {NODE}"), source: SOURCE_MIX };
        for (class, (_, quantity, _)) in CLASSES.iter().enumerate() {
            let simulated = simulated.filter(|_| is_comparable).map(|shares| shares[class]);
            report.comparisons.push(compared.with(quantity, "percent", simulated, Some(kernel.published[class])));
        }
    }
    let mut notes: Vec<String> = subject.note().into_iter().collect();
    notes.extend(
        largest.map(|(gap, class, kernel)| format!("Largest difference: {gap:.1} points, {class} of {kernel}.")),
    );
    if subject.is_lulesh() && found.is_some_and(|found| !found.is_machine_code()) {
        notes.push(
            "The program ran from PTX, whose instructions are not the hardware's: its shares are not compared. \
             BALAR_PTXAS names a ptxas that makes machine code of it."
                .to_owned(),
        );
    }
    let mut columns =
        vec![Column::new("kernel", "kernel"), Column::new("who", "of"), Column::droppable("code", "code")];
    let keys = ["fp32", "fp64", "int", "ctrl", "ls", "misc", "inactive"];
    columns.extend(CLASSES.iter().zip(keys).map(|((heading, _, _), key)| Column::new(key, heading)));
    columns.push(Column::droppable("other", "other"));
    report.tables.push(Table {
        name: "mix",
        title: "Instruction mix, percent of thread slots (SAND2019-10389, table 3-6)",
        columns,
        rows,
        notes,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::report::Report;
    use crate::validation::runs::{Running, make_jobs};
    use std::collections::BTreeMap;

    /// A run of LULESH whose pressure kernel is half double precision, all threads active.
    fn reported(isa: &str) -> Report {
        let mut mix = InstructionMix::default();
        mix.add("sass", "DADD R0, R2, R4", 1, 32);
        mix.add("sass", "LDG.E.64 R0, [R2]", 1, 32);
        let figures = ProgramFigures {
            isa: isa.to_owned(),
            launches: Vec::new(),
            mixes: BTreeMap::from([("_Z27CalcPressureForElems_kernelPd".to_owned(), mix)]),
            printed: String::new(),
        };
        let selection = Selection {
            commands: BTreeMap::from([(LULESH.to_owned(), vec!["./lulesh".to_owned()])]),
            ..Selection::default()
        };
        let running = Running { threads: 1, interrupt: Default::default(), progress: &|_, _| {}, program: None };
        let runs = make_jobs(&running, jobs(&selection), |_| 0, |_| Ok(figures.clone())).expect("a thread");
        let mut found = Report::default();
        report(&selection, &runs, &mut found);
        found
    }

    #[test]
    fn shares_of_machine_code_are_compared_point_by_point() {
        let found = reported("sass, assembled by ptxas 12.9");
        let rows: Vec<Vec<_>> = found.tables[0].rows.iter().map(|row| row.iter().map(Cell::shown).collect()).collect();
        let points = rows.iter().find(|row| row[1] == "points").expect("the kernel ran");
        assert_eq!(points[3..10], ["-5.0", "+33.0", "-27.0", "-2.0", "+31.0", "-16.0", "-15.0"]);
        assert!(found.tables[0].notes[0].starts_with("Largest difference: 33.0 points, FP64"));
        let compared = |quantity| {
            let one = found.comparisons.iter().find(|one| one.program == KERNELS[1].name && one.quantity == quantity);
            one.expect("all are listed").simulated
        };
        assert_eq!(compared("share of FP64"), Some(50.0));
    }

    #[test]
    fn shares_of_ptx_are_shown_and_not_compared() {
        let found = reported("ptx");
        assert!(found.comparisons.iter().all(|one| one.simulated.is_none()));
        assert!(found.tables[0].rows.iter().all(|row| row[1].shown() != "points"));
        assert!(found.tables[0].notes.iter().any(|note| note.contains("BALAR_PTXAS")));
    }
}
