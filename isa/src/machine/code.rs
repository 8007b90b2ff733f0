//! Machine code that is ready to be lowered, and where it lies.

use crate::execution::SystemCall;
use crate::program::parts::{ParameterSlot, Resources};
use std::sync::Arc;

/// Where parameters begin in constant bank 0 (`EIATTR_PARAM_CBANK` of kernels for Volta to Ada), unless they are too many.
pub const PARAMETERS_AT: u32 = 0x160;

/// The beginning of a kernel's parameters in constant bank 0, bytes. CUDA 13 puts all parameters of a kernel that has more than about 4 KiB
/// of them at 0x1a80 (own finding: 4112 bytes are at 0x160, 6012 are not).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterBase(pub u32);

impl Default for ParameterBase {
    fn default() -> Self {
        ParameterBase(PARAMETERS_AT)
    }
}

/// Where the code of a program lies, for instructions that compute addresses: word `n` of [`MachineCode::words`] is at this address plus
/// 16 `n`. It is no address that data has.
pub const CODE_WINDOW: u64 = 0x0400_0000_0000;

/// The address that calls of a function of the device runtime go to.
pub const fn system_call_address(call: SystemCall) -> u64 {
    CODE_WINDOW + (1 << 32) + 16 * call as u64
}

/// The address that stands for the kernel of a module with this number: a kernel that launches it names it by this address. There is no
/// code there.
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
    /// Its demands on an SM.
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
    /// The part of [`Resources::local_bytes`] for calls of unknown depth, through pointers or of functions that call themselves; 0 where
    /// there are none. The program can be given more.
    pub open_stack_bytes: u32,
    /// The cubins that it is of, which may have line tables.
    pub images: Vec<Arc<[u8]>>,
}

/// A word that a launch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaunchWord {
    /// A word of constant bank 0, by its offset.
    Bank0(u32),
    /// A word of constant bank 3, by its offset.
    Bank3(u32),
}
