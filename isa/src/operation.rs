//! The decoded form of an instruction: operands are rows of the register file, targets are indices.

use crate::program::LANES;

/// One 32-bit register of all lanes. A 64-bit register is two adjacent rows, lane `i` in bytes `8 * i` to `8 * i + 7` of the pair.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Row(pub [u32; LANES]);

impl Row {
    pub const ZERO: Row = Row([0; LANES]);
}

/// A row, or the first of two, where an operand's values are: in the register file, or in the program's constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source(pub u16);

impl Source {
    /// Set in the index of a row of the program's constants.
    pub const CONSTANT: u16 = 0x8000;
}

/// A predicate slot that is true in all lanes: the guard of unguarded instructions.
pub(crate) const TRUE_PREDICATE: u8 = 0;
/// A predicate slot that is written and never read.
pub(crate) const SINK_PREDICATE: u8 = 1;

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    /// Guard: a predicate slot.
    pub guard: u8,
    /// All ones where the guard is negated.
    pub guard_flip: u32,
    /// First row of the destination.
    pub destination: u16,
    /// Rows of the sources.
    pub sources: [Source; 4],
}
