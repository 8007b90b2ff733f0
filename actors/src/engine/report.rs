//! What comes of a run, and why a simulation cannot run.

use balar_protocol::SimTime;
use balar_protocol::statistics::StatisticSink;
use std::time::Duration;

/// A unit that waits for something that never comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingUnit {
    /// Its path.
    pub path: String,
    /// What it waits for, in its own words.
    pub waits_for: String,
}

/// No message is on its way, no unit wants to wake, and yet work is outstanding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockReport {
    /// When the last thing happened.
    pub time: SimTime,
    /// Who waits, in the order of units.
    pub waiting: Vec<WaitingUnit>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to happen, and no unit has outstanding work.
    Finished,
    /// Everything before [`RunOptions::stop_at`](super::RunOptions::stop_at) is simulated.
    StoppedAt,
    /// [`RunOptions::max_wall`](super::RunOptions::max_wall) is over.
    WallLimit,
    /// [`RunOptions::interrupt`](super::RunOptions::interrupt) was set.
    Interrupted,
    /// Units wait for each other.
    Deadlock(DeadlockReport),
    /// A unit panicked or broke the rules of time; a bug in that unit.
    UnitPanic {
        /// Its path.
        path: String,
        /// Start of the window it was in.
        time: SimTime,
        /// What it said, or which rule it broke.
        message: String,
    },
}

/// A unit that panicked while it wrote its statistics: its rows are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostStatistics {
    /// Its path.
    pub path: String,
    /// What it said.
    pub message: String,
}

/// What came of a run.
#[derive(Debug)]
pub struct RunReport {
    /// When the last thing happened; [`RunOptions::stop_at`](super::RunOptions::stop_at) where the run was stopped there.
    pub end: SimTime,
    /// How it ended.
    pub outcome: Outcome,
    /// The statistics of all units, in the order of units; those of a unit that panicked are missing.
    pub statistics: StatisticSink,
    /// Units other than the one in [`Outcome::UnitPanic`] whose statistics are missing.
    pub lost_statistics: Vec<LostStatistics>,
    /// Windows run.
    pub windows: u64,
    /// Messages delivered.
    pub messages: u64,
    /// Wall-clock time each shard spent in windows. Differs from run to run.
    pub shard_busy: Vec<Duration>,
}

/// Why a simulation cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Simulated time could not move: a message would arrive in the window it is sent in.
    #[error("the wire from port {port} of {from} to {to} has zero latency")]
    ZeroLatencyWire {
        /// Path of the sender.
        from: String,
        /// The sender's port.
        port: u16,
        /// Path of the receiver.
        to: String,
    },
    /// A wire leads nowhere.
    #[error("port {port} of {from} leads to unit {to}, and there are {units}")]
    UnknownUnit {
        /// Path of the sender.
        from: String,
        /// The sender's port.
        port: u16,
        /// The number of no unit.
        to: u32,
        /// Units in the simulation.
        units: usize,
    },
    /// A thread could not be started.
    #[error("cannot start the simulation's threads")]
    Threads(#[source] std::io::Error),
    /// The engine itself failed.
    #[error("the engine failed: {0}")]
    Internal(String),
}
