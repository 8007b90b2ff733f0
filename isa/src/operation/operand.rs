//! Where operands are: rows of the register file, predicates.

use crate::lanes::LANES;
use serde::{Deserialize, Serialize};

/// One 32-bit register of all lanes. A 64-bit register is two adjacent rows, lane `i` in bytes `8 * i` to `8 * i + 7` of the pair.
/// Narrower values are zero-extended to 32 bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct Row(pub [u32; LANES]);

// SAFETY: 128 bytes of plain integers, a multiple of the alignment: no padding, every bit pattern valid.
unsafe impl bytemuck::Zeroable for Row {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Row {}

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
/// First slot of the program's own predicates.
pub(crate) const FIRST_PREDICATE: u8 = 2;
/// Predicates of machine code, beside the one that is true.
pub(crate) const PREDICATES: u8 = 7;

/// The slot of a uniform predicate of machine code; they follow the predicates of lanes.
pub(crate) const fn uniform_predicate(number: u8) -> u8 {
    if number >= PREDICATES { TRUE_PREDICATE } else { FIRST_PREDICATE + PREDICATES + number }
}

/// Rows that are written and never read, so that `_` is an operand like any other.
pub(crate) const SINK_ROW: u16 = 0;
/// First row of the program's own registers.
pub(crate) const FIRST_ROW: u16 = 2;
