//! Counters that the LDMS-GPU study (SAND2020) published of a V100S: a vector addition and a breadth-first search.
//!
//! Launches are simulated for their values alone: how many instructions are executed is no matter of time. The study's vectors have 500
//! million elements; per warp the counters of a million are the same.

use super::report::Report;
use super::runs::{self, Point, RunError, Running};
use super::side_by_side::{Pair, Sheet};
use super::{PartDescription, Selection, Study};
use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use balar_protocol::DetailChoice;

/// The study of LDMS.
pub const STUDY: Study = Study {
    name: "ldms",
    summary: "counters of the LDMS-GPU study (SAND2020), which a V100S counted",
    duration: "half a minute on two CPUs",
    parts: &[VECTOR_ADD.description, BFS.description],
    programs: || vec![VECTOR_ADD.program, BFS.program],
    user_programs: &[],
    takes_folder: false,
    run,
};

const SOURCE: &str = "LDMS-GPU study, SAND2020: a V100S by CUPTI";

/// A program of the study.
struct Program {
    description: PartDescription,
    program: &'static str,
    workload: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    title: &'static str,
    /// Name, unit, the formula over simulated counters, and the hardware's count.
    figures: &'static [Figure],
    note: &'static str,
}

type Figure = (&'static str, &'static str, fn(&Counters) -> f64, f64);

const VECTOR_ADD: Program = Program {
    description: PartDescription {
        name: "vectoradd",
        summary: "warps and instructions of a vector addition, by warp and for 500,000,000 elements",
    },
    program: "vectorAdd",
    workload: "vectoradd",
    parameters: &[("elements", "4194304"), ("block", "256")],
    title: "Counters of a vector addition beside a V100S (LDMS-GPU study)",
    figures: &[
        ("warps for 500,000,000 elements", "warp", |found| found.warps * VECTOR_ADD_SCALE, 15_625_000.0),
        ("instructions of a warp, one build", "instruction", |found| found.instructions / found.warps, 16.0),
        ("instructions of a warp, another build", "instruction", |found| found.instructions / found.warps, 18.0),
        ("threads of an instruction", "thread", |found| found.threads / found.instructions, 32.0),
        ("inst_executed, one build", "instruction", |found| found.instructions * VECTOR_ADD_SCALE, 250_000_000.0),
        ("inst_executed, another build", "instruction", |found| found.instructions * VECTOR_ADD_SCALE, 281_250_000.0),
        ("thread_inst_executed", "instruction", |found| found.threads * VECTOR_ADD_SCALE, 9_000_000_000.0),
    ],
    note: "4,194,304 elements were run; figures for 500,000,000 are those of so many more warps. The study has counts of two \
           builds: thread_inst_executed is of the one with 18 instructions a warp. active_cycles is left out: 366,621,830 would \
           be more bandwidth than the card's memory has.",
};

/// Elements of the study over those that run.
const VECTOR_ADD_SCALE: f64 = 500_000_000.0 / 4_194_304.0;

const BFS: Program = Program {
    description: PartDescription {
        name: "bfs",
        summary: "warps and instructions of the first launch of a breadth-first search of a million nodes",
    },
    program: "bfs",
    workload: "bfs",
    parameters: &[("nodes", "1000000"), ("block", "512")],
    title: "Counters of a breadth-first search beside a V100S (LDMS-GPU study)",
    figures: &[
        ("warps", "warp", |found| found.warps, 31_264.0),
        ("inst_executed", "instruction", |found| found.instructions, 375_187.0),
        ("instructions of a warp", "instruction", |found| found.instructions / found.warps, 375_187.0 / 31_264.0),
        ("thread_inst_executed", "instruction", |found| found.threads, 12_002_790.0),
        ("threads of an instruction", "thread", |found| found.threads / found.instructions, 12_002_790.0 / 375_187.0),
    ],
    note: "The study's are those of one launch of a million nodes, in which nearly all threads find nothing to do. The built-in bfs \
           has kernels of our own.",
};

const PROGRAMS: [&Program; 2] = [&VECTOR_ADD, &BFS];

/// The counts of the first launch of a run.
#[derive(Clone, Copy, Debug)]
struct Counters {
    warps: f64,
    instructions: f64,
    threads: f64,
}

impl Counters {
    fn of(result: &RunResult) -> Option<Counters> {
        let counters = result.statistics.kernels.get(0)?.counters;
        Some(Counters {
            warps: counters.ctas.warps_launched as f64,
            instructions: counters.ctas.inst_executed as f64,
            threads: counters.ctas.thread_inst_executed as f64,
        })
    }
}

impl Program {
    fn point(&self) -> Point {
        let parameters = self.parameters.to_vec();
        Point { topology: "v100_sxm2_node", workload: self.workload, parameters, overrides: Vec::new() }
    }
}

fn run(selection: &Selection, running: &Running<'_>) -> Result<Report, RunError> {
    let chosen: Vec<_> = PROGRAMS
        .into_iter()
        .filter(|one| selection.has_part(one.description.name) && selection.has_program(one.program))
        .collect();
    let points = chosen.iter().map(|program| program.point()).collect();
    let runs = runs::make_jobs(
        running,
        points,
        |point: &Point| u32::from(point.workload == BFS.workload),
        |point| {
            let options = RunOptions { detail: DetailChoice::none(), ..RunOptions::default() };
            Ok(Counters::of(&runs::simulate(point, &running.interrupt, options)?))
        },
    )?;
    let mut report = runs.report(STUDY.name, Point::command);
    for program in chosen {
        let found = runs.get(&program.point()).copied().flatten();
        let pairs = program.figures.iter().map(|(name, unit, figure, reference)| Pair {
            program: (*name).to_owned(),
            quantity: program.program.into(),
            unit: (*unit).into(),
            simulated: found.as_ref().map(figure),
            reference: *reference,
            other: None,
            source: SOURCE.into(),
        });
        Sheet {
            part: program.description.name,
            name: program.description.name,
            title: program.title,
            subject: "counter",
            reference: "V100S",
            other: None,
            setting: "v100_sxm2_node",
            notes: vec![program.note.to_owned()],
            pairs: pairs.collect(),
        }
        .enter(&mut report);
    }
    Ok(report)
}
