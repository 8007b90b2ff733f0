//! Exit codes.

use std::process::ExitCode;

/// How the program ends, as its caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done, and the result is verified or has no check; also a run that `--stop-at` ended on request.
    Done,
    /// The run ended but its result is wrong, or a snapshot differs.
    Wrong,
    /// Bad arguments, topology, PTX or trace, or a file that cannot be read or written.
    BadInput,
    /// The simulated program failed: a CUDA error, a trap, an illegal address.
    ProgramFailed,
    /// Deadlock, or the limit of `--max-wall`.
    DeadlockOrLimit,
    /// A unit of the user's own broke a rule.
    UnitBroken,
    /// A bug of balar-actors.
    Bug,
    /// Ended by Ctrl-C: 128 + SIGINT, as in shells.
    Interrupted,
    /// Ended by SIGTERM: 128 + SIGTERM.
    Terminated,
    /// The exit code of the program that `run` ran; 128 + N if signal N killed it.
    OfProgram(u8),
}

impl ExitStatus {
    /// The number the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            ExitStatus::Done => 0,
            ExitStatus::Wrong => 1,
            ExitStatus::BadInput => 2,
            ExitStatus::ProgramFailed => 3,
            ExitStatus::DeadlockOrLimit => 4,
            ExitStatus::UnitBroken => 5,
            ExitStatus::Bug => 70,
            ExitStatus::Interrupted => 130,
            ExitStatus::Terminated => 143,
            ExitStatus::OfProgram(code) => code,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status.code())
    }
}
