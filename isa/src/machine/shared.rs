//! Functions that several kernels have behind their own code, as they are kept: linked, lowered, with the functions that they call.

use super::code::CodeSection;
use super::lowering::operands::Operands;
use crate::program::parts::SharedCode;
use std::sync::Arc;

/// Where functions begin, as numbers of words, with their names.
pub(super) type FunctionStarts = Vec<(u32, Box<str>)>;

/// Functions that are behind the own code of several kernels, lowered once for all of them.
#[derive(Debug)]
pub(super) struct LoweredFunctions {
    /// Their instructions, and behind them the functions of the device runtime.
    pub code: Arc<SharedCode>,
    /// Whether no instruction is issued before the one before it has ended.
    pub is_serial: bool,
    /// Constant bank 2, where they read it by an index: kernels with another one cannot have them.
    pub indexed_bank_2: Option<Vec<u8>>,
    /// Addresses of the device runtime's functions, and their first instructions.
    pub system_entries: Vec<(u64, u32)>,
    /// The places of registers and the constants that kernels go on from.
    pub operands: Operands,
}

/// A function: a section of code, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub first: usize,
    pub frame: u32,
    /// The functions that it calls: first words, where [`Parts`] are alone; the numbers of parts, where they are all together.
    pub calls: Vec<usize>,
}

/// The functions of some words of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub parts: Vec<Part>,
    /// A function is called through a pointer.
    pub is_open: bool,
}

/// Functions that several kernels have behind their own code.
#[derive(Debug)]
pub(crate) struct SharedFunctions {
    pub(super) lowered: LoweredFunctions,
    /// Where they begin.
    pub(super) starts: FunctionStarts,
    /// The functions of the file.
    pub(super) sections: Vec<CodeSection>,
    /// The functions that they call.
    pub(super) parts: Parts,
}

impl SharedFunctions {
    /// Their instructions.
    pub(crate) fn code(&self) -> &SharedCode {
        &self.lowered.code
    }

    /// Their words, without the functions of the device runtime.
    pub(super) fn words(&self) -> usize {
        self.lowered.code.decoded.len()
    }
}
