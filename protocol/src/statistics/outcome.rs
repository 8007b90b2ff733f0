//! How the simulated program ended.

use serde::{Deserialize, Serialize};

/// Whether the simulated program's result is right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verification {
    /// The program has no check, or did not get as far.
    #[default]
    NotChecked,
    /// The result equals the host's computation.
    Passed,
    /// It does not; the text says where.
    Failed(String),
}

impl Verification {
    /// `true` and `false` where the result was checked, as the result format has it.
    pub fn verified(&self) -> Option<bool> {
        match self {
            Verification::NotChecked => None,
            Verification::Passed => Some(true),
            Verification::Failed(_) => Some(false),
        }
    }
}

/// How the simulated program ended, as the host CPU saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramOutcome {
    /// Did the program reach its end?
    pub finished: bool,
    /// Is its result right?
    pub verification: Verification,
    /// The error that ended it: a CUDA error with its cause.
    pub error: Option<String>,
    /// Values the program reports of itself: (name, value, unit).
    pub results: Vec<(String, f64, String)>,
    /// What its kernels printed and the host has taken.
    pub printed: Vec<u8>,
    /// Launches that CUDA refused, so that no kernel began.
    pub launches_refused: u64,
    /// The first of them, and why.
    pub first_refused: Option<String>,
    /// Have kernels accessed memory of other GPUs than their own?
    pub peer_accessed: bool,
}
