//! Exit codes.

use std::process::ExitCode;

/// How the program ends, as its caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// Done, and the result verified or without a check; also a run that `--stop-at` ended on request.
    Done = 0,
    /// The run ended but its result is wrong, or a snapshot differs.
    Wrong = 1,
    /// Bad arguments, topology, PTX or trace, or a file that cannot be read or written.
    BadInput = 2,
    /// The simulated program failed: a CUDA error, a trap, an illegal address.
    ProgramFailed = 3,
    /// Deadlock, or the limit of `--max-wall`.
    DeadlockOrLimit = 4,
    /// A bug of balar-actors.
    Bug = 70,
    /// Ended by Ctrl-C: 128 + SIGINT, as shells have it.
    Interrupted = 130,
}

impl ExitStatus {
    /// The number the shell sees.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status.code())
    }
}
