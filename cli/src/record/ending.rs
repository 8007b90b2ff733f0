//! Why a run ended.

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing is left to do.
    Completed,
    /// At `--stop-at`.
    StopTime,
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
