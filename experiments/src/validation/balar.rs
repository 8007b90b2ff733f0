//! The study of Balar, SAND2019-10389: applications, the instruction mix of three kernels, and a sweep of clocks, on its V100 node.

mod applications;
mod clocks;
mod mix;
mod part;
mod subject;

use super::instruction_mix::InstructionMix;
use super::programs::{Job, LaunchFigures, ProgramFigures};
use super::report::Report;
use super::runs::{self, JobError, RunError, Running};
use super::{Selection, Study};
use balar_actors::engine::RunOptions;
use balar_actors::simulation::RunResult;
use part::Part;

/// Balar's study.
pub const STUDY: Study = Study {
    name: "balar",
    summary: "the study of Balar (SAND2019-10389) on its V100 node",
    duration: "half a minute on two CPUs, with LULESH ten",
    parts: &[applications::PART.description, mix::PART.description, clocks::PART.description],
    programs,
    user_programs: &[subject::LULESH],
    takes_folder: false,
    run,
};

const PARTS: [&Part; 3] = [&applications::PART, &mix::PART, &clocks::PART];

fn programs() -> Vec<&'static str> {
    let own = applications::APPLICATIONS.iter().map(|application| application.name);
    own.chain([subject::LULESH, subject::SHOCK]).collect()
}

fn run(selection: &Selection, running: &Running<'_>) -> Result<Report, RunError> {
    let parts: Vec<_> = PARTS.into_iter().filter(|part| selection.has_part(part.description.name)).collect();
    let jobs = parts.iter().flat_map(|part| (part.jobs)(selection)).collect();
    let runs = runs::make_jobs(running, jobs, cost, |job| figures(job, running))?;
    let mut report = runs.report(STUDY.name, Job::command);
    for part in parts {
        (part.report)(selection, &runs, &mut report);
    }
    Ok(report)
}

/// How long a run takes, roughly, in seconds.
fn cost(job: &Job) -> u32 {
    match job {
        Job::Program(_) => 90,
        Job::BuiltIn { point, .. } if point.workload == subject::SHOCK => 5,
        Job::BuiltIn { .. } => 2,
    }
}

fn figures(job: &Job, running: &Running<'_>) -> Result<ProgramFigures, JobError> {
    match job {
        Job::BuiltIn { point, by_instruction } => {
            let options = RunOptions { profile_instructions: *by_instruction, ..RunOptions::default() };
            Ok(of_result(&runs::simulate(point, &running.interrupt, options)?))
        }
        Job::Program(run) => running.run_program(run),
    }
}

fn of_result(result: &RunResult) -> ProgramFigures {
    let launches = result.statistics.kernels.iter().map(|launch| LaunchFigures {
        kernel: launch.name.to_string(),
        cycles: launch.cycles,
        picoseconds: launch.end_ps - launch.start_ps,
    });
    ProgramFigures {
        isa: result.isa.clone(),
        launches: launches.collect(),
        mixes: result.profiles.as_deref().map(InstructionMix::of_profiles).unwrap_or_default(),
        printed: String::new(),
    }
}
