//! Machine code (SASS) as programs: from the words of a kernel to a program that an SM runs.
//!
//! Machine code runs in the same SM as PTX, by the same interpreter. This table has their differences, each on one side of a boundary:
//!
//! | | PTX | machine code |
//! |---|---|---|
//! | when an instruction is ready | a scoreboard of registers | its control word: stall cycles, and six scoreboards of the warp that accesses hold, counted by `DEPBAR` |
//! | passes, folded instructions, list scheduling | in `decode` | none: the assembler has done all of that |
//! | 64-bit values | two adjacent rows, lane by lane | any two registers, a row each; they are put together as they are read |
//! | constants | immediates; parameters come through the constant cache | immediates, and constant banks, through the constant cache: a launch makes rows of its values in bank 0 and of the constant variables; its warps share them |
//! | register banks, reuse cache | none | found as code is lowered (`lowering/register_banks.rs`) |
//! | where lanes meet | post-dominators | convergence barriers, as the code says |
//! | local memory, calls | frames, points of calls | the stack pointer R1, return addresses in registers |
//!
//! `lowering` takes each word to a lane function of PTX where one does the same, else to one of `interpreter/machine`. A lane has its own
//! view of a convergence barrier, so that lanes that have parted go through the same code at different times. `module.rs` has kernels and
//! the variables that need a place in memory, `places.rs` the places of a file's parts, `link.rs` relocations, `reach.rs` the functions
//! that a kernel reaches, `memory.rs` its shared memory and constants, `stack.rs` its local memory, `functions.rs` functions that several
//! kernels share (`shared.rs`), `code.rs` a kernel that is ready to be lowered, `program.rs` the parts that only programs of machine code
//! have, `constants.rs` the values that launches put into their constants.
//!
//! **Invariant:** a word that is not known, or not executed, is an error of the launches that can reach it, with its address; nothing falls
//! back to PTX by itself. **Invariant:** no latency that the compiler counts on is shorter than ours: `--check-hazards` ends a kernel that
//! reads a register before its producer has written it.

pub(crate) mod code;
pub(crate) mod constants;
mod error;
mod functions;
mod launched;
mod link;
mod lowering;
mod memory;
mod module;
mod places;
pub(crate) mod program;
mod reach;
mod shared;
mod stack;
mod system_calls;

pub use code::{CODE_WINDOW, CodeSection, MachineCode, PARAMETERS_AT, ParameterBase, system_call_address};
pub use constants::{LaunchConstants, LaunchFacts};
pub use error::MachineError;
pub use lowering::{LoweringError, RefusedWord, lower, refused_words};
pub use module::MachineModule;
pub use places::{PlacedVariable, Placement};

/// A larger section is refused before any memory is taken for it: no simulated GPU has room for it.
const MAXIMUM_SECTION_BYTES: u64 = 16 << 30;

/// The architectures whose code is known, in words.
fn known_architectures() -> String {
    crate::sass::ARCHITECTURES.map(|architecture| format!("sm_{architecture}")).join(", ")
}
