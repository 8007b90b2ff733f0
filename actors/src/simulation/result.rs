//! The result of a simulation.

use crate::catalogue::KernelProfile;
use crate::catalogue::timeline::UnitTimeline;
use crate::engine::Outcome;
use balar_protocol::statistics::{ProgramOutcome, StatisticSink};
use balar_protocol::{DetailChoice, SimTime};
use std::time::Duration;

/// The result of a simulation.
#[derive(Debug)]
pub struct RunResult {
    /// The topology's name.
    pub topology: String,
    /// The workload's name; empty of a host that is not built in.
    pub workload: &'static str,
    /// Its parameters, defaults included.
    pub parameters: Vec<(String, String)>,
    /// Which code ran.
    pub isa: String,
    /// How the run ended.
    pub outcome: Outcome,
    /// The unit that did not return when the run was to end, if there is one: there are no statistics then.
    pub given_up: Option<String>,
    /// How the simulated program ended; `None` where the run ended before.
    pub program: Option<ProgramOutcome>,
    /// When the last thing happened.
    pub sim_time: SimTime,
    /// Wall-clock time of the run, building the node included.
    pub wall: Duration,
    /// Shards used.
    pub threads: usize,
    /// Rows of all units, and kernel launches.
    pub statistics: StatisticSink,
    /// The counts of each instruction of the kernels that ran, where [`RunOptions`](crate::engine::RunOptions) ask for them.
    pub profiles: Option<Vec<KernelProfile>>,
    /// The activity of the units over time, where [`RunOptions`](crate::engine::RunOptions) ask for it.
    pub timeline: Option<Vec<UnitTimeline>>,
    /// Which launches and copies were timed.
    pub detail: DetailChoice,
    /// Windows run.
    pub windows: u64,
    /// Messages delivered.
    pub messages: u64,
}

impl RunResult {
    /// Did the run go to the end of the simulated program?
    pub fn completed(&self) -> bool {
        self.outcome == Outcome::Finished && self.program.as_ref().is_some_and(|program| program.finished)
    }

    /// Is the program's result right? `None` where it has no check or did not get there.
    pub fn verified(&self) -> Option<bool> {
        self.program.as_ref()?.verification.verified()
    }

    /// Warp instructions executed, over all GPUs.
    pub fn warp_instructions(&self) -> u64 {
        self.statistics.rows.iter().filter(|row| row.what == "inst_executed").map(|row| row.value).sum()
    }
}
