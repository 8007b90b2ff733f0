//! Machine code (SASS) as programs: from the words of a kernel to what an SM runs.
//!
//! Machine code runs in the same SM as PTX, by the same interpreter. What differs is on one side of a boundary each:
//!
//! | | PTX | machine code |
//! |---|---|---|
//! | when an instruction is ready | a scoreboard of registers | its control word: stall cycles, and six scoreboards of the warp that accesses hold |
//! | passes, folded instructions, list scheduling | in `decode` | none: the assembler has done all that |
//! | 64-bit values | two adjacent rows, lane by lane | any two registers, a row each; they are put together as they are read |
//! | constants | immediates; parameters come through the constant cache | immediates, and constant banks, through the constant cache: a launch makes rows of what it says in bank 0 and of the constant variables; its warps share them |
//! | register banks, reuse cache | none | found as code is lowered (`lowering/register_banks.rs`) |
//! | where lanes meet | post-dominators | convergence barriers, as the code says |
//! | local memory, calls | frames, points of calls | the stack pointer R1, return addresses in registers |
//!
//! `lowering` takes each word to a lane function of PTX where one does the same, else to one of `interpreter/machine`. A lane has its own view of a convergence
//! barrier, so that lanes that have parted go through the same code at different times. `module.rs` has kernels and what needs a place in memory,
//! `places.rs` what of a file lies where, `link.rs` relocations, `reach.rs` the functions that a kernel reaches, `memory.rs` its shared memory and constants,
//! `stack.rs` its local memory, `functions.rs` functions that several kernels share, `program.rs` what launches put into its constants.
//!
//! **Invariant:** a word that is not known, or not executed, is an error of the launches that can reach it, with its address; nothing falls back to PTX by
//! itself. **Invariant:** what the compiler counts on is never shorter than our latencies: `--check-hazards` ends a kernel that reads a register before its
//! producer has written it.

mod error;
mod functions;
mod launched;
mod link;
mod lowering;
mod memory;
mod module;
mod places;
mod program;
mod reach;
mod stack;

use crate::execution::SystemCall;
use crate::program::{ParameterSlot, Resources};
use std::sync::Arc;

pub use error::MachineError;
pub use lowering::{LoweringError, RefusedWord, lower, refused_words};
pub use module::{MachineModule, PlacedVariable, Placement};
pub(crate) use program::MachineProgram;
pub use program::{LaunchConstants, LaunchFacts, PARAMETERS_AT, ParameterBase};

/// A larger section is refused before any memory is taken for it: no simulated GPU has room for it.
const MAXIMUM_SECTION_BYTES: u64 = 16 << 30;

/// The architectures whose code is known, in words.
fn known_architectures() -> String {
    crate::sass::ARCHITECTURES.map(|architecture| format!("sm_{architecture}")).join(", ")
}

/// Where the code of a program lies, for instructions that compute addresses: word `n` of [`MachineCode::words`] is at this address plus
/// 16 `n`. It is no address that data has.
pub const CODE_WINDOW: u64 = 0x0400_0000_0000;

/// The address that calls of a function of the device runtime go to.
pub const fn system_call_address(call: SystemCall) -> u64 {
    CODE_WINDOW + (1 << 32) + 16 * call as u64
}

/// The address that stands for the kernel of a module with this number: what a kernel that launches it names it by. There is no code.
pub(crate) const fn kernel_address(number: usize) -> u64 {
    CODE_WINDOW + (2 << 32) + 16 * number as u64
}

/// A function of a file in the words of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSection {
    /// Its name.
    pub name: Box<str>,
    /// Its first word.
    pub first: u32,
    /// How many words it has.
    pub words: u32,
    /// The [`Function::digest`](crate::cubin::Function::digest) of its code.
    pub digest: u64,
    /// The number of its section in [`MachineCode::images`], which are counted through.
    pub section: usize,
}

/// A kernel's machine code, ready to be lowered: linked, relocated, with its banks.
#[derive(Clone, Debug, Default)]
pub struct MachineCode {
    /// The kernel's name.
    pub name: String,
    /// The architecture: 75 for sm_75.
    pub architecture: u32,
    /// The words of its functions one after another, the kernel's first, relocations applied.
    pub words: Vec<u128>,
    /// The number of the first of them in the program: 0, but for functions that several kernels have behind their own code.
    pub first_word: u32,
    /// Words of the program that follow them.
    pub words_behind: u32,
    /// Where functions begin, as numbers of words, ascending, with their names.
    pub functions: Vec<(u32, Box<str>)>,
    /// The functions of the file that the words are of, ascending. Those within others are not among them.
    pub sections: Vec<CodeSection>,
    /// What it asks of an SM.
    pub resources: Resources,
    /// Its parameters, offsets counted from the first.
    pub parameters: Vec<ParameterSlot>,
    /// Where the first of them lies in bank 0.
    pub parameter_base: ParameterBase,
    /// Bytes of the parameter block.
    pub parameter_bytes: u32,
    /// Slots of bank 0 that are the same for all launches, such as texture references: offset from the beginning of the bank, value.
    pub fixed_slots: Vec<(u32, u32)>,
    /// Functions of the device runtime that its file names, beside those that every program has.
    pub system_calls: Vec<SystemCall>,
    /// Constant bank 2, relocated.
    pub bank_2: Vec<u8>,
    /// Where bank 3 lies in device memory, and its bytes.
    pub bank_3: Option<(u64, u64)>,
    /// Constant bank 4, relocated.
    pub bank_4: Vec<u8>,
    /// What of [`Resources::local_bytes`] is for calls of unknown depth, through pointers or of functions that call themselves; 0 where
    /// there are none. The program can be given more.
    pub open_stack_bytes: u32,
    /// The cubins that it is of, which may have line tables.
    pub images: Vec<Arc<[u8]>>,
}
