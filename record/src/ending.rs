//! Why a run ended.

use balar_actors::engine::Outcome;

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is left to do.
    Completed,
    /// At `--stop-at`.
    StopTime,
    /// After so many launches: `--launches`.
    Launches(u32),
    /// By Ctrl-C.
    Interrupted,
    /// By SIGTERM.
    Terminated,
    /// At `--max-wall`.
    WallLimit,
    /// Units wait for each other; the text names them.
    Deadlock(String),
    /// A signal killed the program; the text names it.
    ProgramKilled(String),
    /// A unit of the user's own broke a rule; the text names it, the time and the rule.
    UnitBroken(String),
    /// A unit panicked; the text names it, the time and the panic.
    UnitPanic(String),
}

impl Ending {
    /// Its name in the result document.
    pub fn name(&self) -> &'static str {
        match self {
            Ending::Completed => "completed",
            Ending::StopTime => "stop_time",
            Ending::Launches(_) => "launches",
            Ending::Interrupted => "interrupted",
            Ending::Terminated => "terminated",
            Ending::WallLimit => "wall_limit",
            Ending::Deadlock(_) => "deadlock",
            Ending::ProgramKilled(_) => "program_killed",
            Ending::UnitBroken(_) => "unit_broken",
            Ending::UnitPanic(_) => "unit_panic",
        }
    }
}

impl From<&Outcome> for Ending {
    fn from(outcome: &Outcome) -> Ending {
        match outcome {
            Outcome::Finished => Ending::Completed,
            Outcome::StoppedAt => Ending::StopTime,
            Outcome::WallLimit => Ending::WallLimit,
            Outcome::Interrupted => Ending::Interrupted,
            Outcome::Deadlock(report) => Ending::Deadlock(report.to_string()),
            Outcome::UnitBroken { path, time, message } => {
                Ending::UnitBroken(format!("{path} broke a rule at {time}: {message}"))
            }
            Outcome::UnitPanic { path, time, message } => {
                Ending::UnitPanic(format!("{path} panicked in the window from {time}: {message}"))
            }
        }
    }
}
