//! The outcome of a run, and the reasons why a simulation cannot run.

use balar_protocol::SimTime;
use balar_protocol::statistics::StatisticSink;
use std::fmt;
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
    /// Who waits, in the order of units; before all others those that owe answers and wait for none themselves
    /// ([`Unit::holds_others_up`](super::Unit::holds_others_up)).
    pub waiting: Vec<WaitingUnit>,
}

impl fmt::Display for DeadlockReport {
    /// The time, and a line for each unit that waits. Units of a row that wait alike have one line with their number: they say the same but
    /// for numbers, and no number is zero in one and not in another.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock at {}:", self.time)?;
        let mut lines: Vec<(&WaitingUnit, usize)> = Vec::new();
        for unit in &self.waiting {
            match lines.iter_mut().find(|(first, _)| first.waits_like(unit)) {
                Some((_, others)) => *others += 1,
                None => lines.push((unit, 0)),
            }
        }
        for (WaitingUnit { path, waits_for }, others) in lines {
            match others {
                0 => write!(f, "\n  {path}: {waits_for}")?,
                _ => write!(f, "\n  {path} and {others} more like it: {waits_for}")?,
            }
        }
        Ok(())
    }
}

impl WaitingUnit {
    /// The path of its row: "gpu.sm" of "gpu.sm\[3\]".
    fn row(&self) -> &str {
        self.path.strip_suffix(']').and_then(|path| path.rsplit_once('[')).map_or(&self.path, |(row, _)| row)
    }

    fn waits_like(&self, other: &WaitingUnit) -> bool {
        let words = |text: &'_ WaitingUnit| -> Vec<String> {
            let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
            let words = text.waits_for.split(|c: char| !c.is_ascii_alphanumeric());
            words.map(|word| if is_number(word) && word != "0" { "1".to_owned() } else { word.to_owned() }).collect()
        };
        self.row() == other.row() && words(self) == words(other)
    }
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
    /// A unit that does not come with the simulator panicked, or broke the rules of time or of a protocol.
    UnitBroken {
        /// Its path.
        path: String,
        /// When it was called.
        time: SimTime,
        /// The breach and the broken rule: the text of a [`BrokenRule`](super::BrokenRule).
        message: String,
    },
    /// A unit panicked or broke the rules of time; a bug in that unit.
    UnitPanic {
        /// Its path.
        path: String,
        /// Start of the window it was in.
        time: SimTime,
        /// The message of the panic, or the broken rule.
        message: String,
    },
}

/// A unit that panicked while it wrote its statistics: its rows are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostStatistics {
    /// Its path.
    pub path: String,
    /// The message of the panic.
    pub message: String,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct RunReport {
    /// When the last thing happened; [`RunOptions::stop_at`](super::RunOptions::stop_at) where the run was stopped there.
    pub end: SimTime,
    /// How it ended.
    pub outcome: Outcome,
    /// The statistics of all units, in the order of units; statistics of a unit that panicked are missing.
    pub statistics: StatisticSink,
    /// Units other than the one in [`Outcome::UnitPanic`] whose statistics are missing.
    pub lost_statistics: Vec<LostStatistics>,
    /// The unit that did not return when the run was to end, if there is one: the run was given up, and all statistics are missing.
    pub given_up: Option<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_a_row_that_wait_alike_have_one_line() {
        let waiting = [
            ("cpu", "waits for 3"),
            ("a.sm[0]", "waits for 3"),
            ("a.sm[1]", "waits for 0"),
            ("a.sm[2]", "waits for 0x80"),
            ("b.sm[0]", "waits for 3"),
        ];
        let waiting = waiting.map(|(path, text)| WaitingUnit { path: path.to_owned(), waits_for: text.to_owned() });
        let report = DeadlockReport { time: SimTime(7), waiting: waiting.into() };
        assert_eq!(
            report.to_string(),
            "deadlock at 7 ps:\n  cpu: waits for 3\n  a.sm[0] and 1 more like it: waits for 3\n  a.sm[1]: waits for 0\n  \
             b.sm[0]: waits for 3"
        );
    }
}
