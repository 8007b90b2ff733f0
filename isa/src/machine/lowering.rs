//! From decoded words to a `Program`.

use super::MachineCode;
use crate::program::Program;

/// Why machine code cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{function}, address {address:#x}: {what}")]
pub struct LoweringError {
    /// The function.
    pub function: String,
    /// The address in it.
    pub address: u64,
    /// What is wrong.
    pub what: String,
}

/// Lowers a kernel.
///
/// # Errors
///
/// Words that are no instruction, or that the simulator does not execute.
pub fn lower(code: &MachineCode) -> Result<Program, LoweringError> {
    Err(LoweringError { function: code.name.clone(), address: 0, what: "not lowered yet".to_owned() })
}
