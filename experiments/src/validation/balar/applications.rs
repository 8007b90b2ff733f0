//! Table 3-5: cycles of applications, and how those of lud are shared by its kernels.

use super::part::{Part, SOURCE_APPLICATIONS};
use super::subject::{LULESH, LULESH_LAUNCHES, NODE, Subject};
use crate::validation::programs::{Job, ProgramFigures};
use crate::validation::report::{Cell, Column, Compared, Report, Table};
use crate::validation::runs::{Point, Runs};
use crate::validation::side_by_side::{Pair, Sheet};
use crate::validation::{PartDescription, Selection};

pub(super) const PART: Part = Part {
    description: PartDescription {
        name: "applications",
        summary: "cycles of vectorAdd, lud and LULESH beside a V100 (table 3-5)",
    },
    jobs,
    report,
};

/// An application of the study that is built in.
pub(super) struct Application {
    /// Its name in the study.
    pub name: &'static str,
    workload: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    /// Cycles of the hardware.
    hardware: f64,
    /// Cycles of Balar.
    balar: f64,
}

/// Those that are built in.
pub(super) const APPLICATIONS: [Application; 2] = [
    Application {
        name: "vectorAdd",
        workload: "vectoradd",
        parameters: &[("elements", "163840")],
        hardware: 5271.0,
        balar: 5751.0,
    },
    Application { name: LUD, workload: "lud", parameters: &[("size", "256")], hardware: 494_519.0, balar: 605_685.0 },
];
const LUD: &str = "lud";
/// LULESH, size 22, 50 iterations: cycles of the hardware and of Balar.
const LULESH_CYCLES: (f64, f64) = (12_454_750.0, 11_896_477.0);
/// Percent of lud's time on the hardware, by kernel.
const LUD_SHARES: [(&str, f64); 3] = [("lud_diagonal", 63.0), ("lud_perimeter", 22.0), ("lud_internal", 14.0)];

impl Application {
    fn job(&self) -> Job {
        let parameters = self.parameters.to_vec();
        let point = Point { topology: NODE, workload: self.workload, parameters, overrides: Vec::new() };
        Job::BuiltIn { point, by_instruction: false }
    }
}

fn chosen(selection: &Selection) -> impl Iterator<Item = &'static Application> {
    APPLICATIONS.iter().filter(|application| selection.has_program(application.name))
}

/// The run that the mix needs, too, is made once.
fn subject_job(selection: &Selection, subject: &Subject) -> Job {
    subject.job(Vec::new(), selection.has_part(super::mix::PART.description.name))
}

fn jobs(selection: &Selection) -> Vec<Job> {
    let subject = Subject::of(selection).map(|subject| subject_job(selection, &subject));
    chosen(selection).map(Application::job).chain(subject).collect()
}

fn report(selection: &Selection, runs: &Runs<ProgramFigures, Job>, report: &mut Report) {
    let pair = |name: &str, found: Option<&ProgramFigures>, (hardware, balar)| Pair {
        program: name.to_owned(),
        quantity: "cycles of all kernels".into(),
        unit: "cycle".into(),
        simulated: found.map(|found| found.cycles() as f64),
        reference: hardware,
        other: Some(balar),
        source: SOURCE_APPLICATIONS.into(),
    };
    let cycles = |application: &Application| (application.hardware, application.balar);
    let mut pairs: Vec<Pair> = chosen(selection).map(|one| pair(one.name, runs.get(&one.job()), cycles(one))).collect();
    let mut notes = Vec::new();
    if let Some(subject) = Subject::of(selection) {
        let found = runs.get(&subject_job(selection, &subject));
        let launches = found.map(|found| found.launches.len());
        notes.extend(subject.note());
        if !subject.is_lulesh() {
            notes.extend(found.map(|found| {
                let (cycles, launches) = (found.cycles(), found.launches.len());
                format!("shock: {cycles} cycles in {launches} launches, {} a launch.", cycles / launches.max(1) as u64)
            }));
        } else if launches.is_some_and(|launches| launches != LULESH_LAUNCHES) {
            notes.push(format!(
                "The program given as LULESH made {} launches, the study's {LULESH_LAUNCHES} (edge 22, 50 iterations): it is \
                 left out.",
                launches.unwrap_or(0)
            ));
        } else {
            pairs.push(pair(LULESH, found, LULESH_CYCLES));
            notes.extend(found.map(|found| format!("LULESH ran as {}.", found.isa)));
        }
    }
    // Balar's own agreement must be that of the programs that stand here.
    Sheet {
        part: "applications",
        name: "applications",
        title: "Cycles of applications beside a V100 under nvprof (SAND2019-10389, table 3-5)",
        subject: "program",
        reference: "hardware",
        other: Some("Balar"),
        setting: NODE,
        notes,
        pairs,
    }
    .enter(report);
    lud_kernels(selection, runs, report);
}

fn lud_kernels(selection: &Selection, runs: &Runs<ProgramFigures, Job>, report: &mut Report) {
    let Some(lud) = chosen(selection).find(|application| application.name == LUD) else { return };
    let found = runs.get(&lud.job());
    let mut rows = Vec::new();
    for (kernel, published) in LUD_SHARES {
        let of_kernel = found.map(|found| found.of_kernel(kernel));
        let share = found.zip(of_kernel).map(|(found, (_, cycles))| 100.0 * cycles as f64 / found.cycles() as f64);
        rows.push(vec![
            Cell::text(kernel),
            Cell::number(of_kernel.map(|(launches, _)| launches as f64), 0),
            Cell::number(of_kernel.map(|(launches, cycles)| cycles as f64 / launches.max(1) as f64), 0),
            Cell::number(share, 1),
            Cell::Number(published, 0),
            Cell::signed(share.map(|share| share - published), 1),
        ]);
        let compared =
            Compared { study: "lud kernels", program: kernel, setting: NODE.to_owned(), source: SOURCE_APPLICATIONS };
        report.comparisons.push(compared.with("share of cycles", "percent", share, Some(published)));
    }
    report.tables.push(Table {
        name: "lud_kernels",
        title: "How the cycles of lud are shared by its kernels",
        columns: vec![
            Column::new("kernel", "kernel"),
            Column::new("launches", "launches"),
            Column::new("cycles_a_launch", "cycles a launch"),
            Column::new("share_percent", "share %"),
            Column::new("hardware_share_percent", "hardware %"),
            Column::new("difference", "points"),
        ],
        rows,
        notes: Vec::new(),
    });
}
