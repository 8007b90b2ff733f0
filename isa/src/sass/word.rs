//! The 128 bits of an instruction, and the part of them that says when it issues.

use std::fmt;

/// Bytes of an instruction.
pub const INSTRUCTION_BYTES: usize = 16;
/// The register that is zero and takes nothing.
pub const ZERO_REGISTER: u8 = 255;
/// The uniform register that is zero and takes nothing.
pub const ZERO_UNIFORM_REGISTER: u8 = 63;
/// The predicate that is true.
pub const TRUE_PREDICATE: u8 = 7;

/// The text of a value that no variant has.
pub const NO_SUCH: &str = "?";

/// The text of a value; `None` where there is no such variant.
pub(super) fn named(names: &'static [&'static str], value: u64) -> Option<&'static str> {
    names.get(value as usize).copied().filter(|name| *name != NO_SUCH)
}

/// Some adjacent bits of an instruction word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The lowest bit.
    pub low: u8,
    /// Bits, up to 64.
    pub width: u8,
}

impl Field {
    /// Bits `low` to `low + width - 1`.
    pub const fn new(low: u8, width: u8) -> Field {
        Field { low, width }
    }

    /// Its bits set.
    pub const fn mask(self) -> u128 {
        ((1 << self.width) - 1) << self.low
    }
}

/// An instruction of Volta and later: 128 bits, little-endian in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word(pub u128);

impl Word {
    /// The value of a field.
    pub const fn field(self, field: Field) -> u64 {
        (self.0 >> field.low) as u64 & (u64::MAX >> (64 - field.width))
    }

    /// The value of two fields, the lower half first.
    pub const fn fields(self, low: Field, high: Field) -> u64 {
        self.field(low) | self.field(high) << low.width
    }

    /// The value of `width` bits from `low` on.
    pub const fn bits(self, low: u8, width: u8) -> u64 {
        self.field(Field::new(low, width))
    }

    /// The same as a signed number.
    pub const fn signed(self, low: u8, width: u8) -> i64 {
        (self.bits(low, width) << (64 - width)) as i64 >> (64 - width)
    }

    /// One bit.
    pub const fn bit(self, bit: u8) -> bool {
        (self.0 >> bit) & 1 != 0
    }

    /// Opcode (bits 0 to 8) and operand form (bits 9 to 11).
    pub const fn code(self) -> u16 {
        self.bits(0, 12) as u16
    }

    /// The operand form: which operands the places in the word have.
    pub const fn form(self) -> u16 {
        self.code() >> 9
    }

    /// When it issues.
    pub const fn control(self) -> ControlWord {
        ControlWord {
            stall: self.bits(105, 4) as u8,
            stays: self.bit(109),
            write_barrier: barrier(self.bits(110, 3) as u8),
            read_barrier: barrier(self.bits(113, 3) as u8),
            wait_mask: self.bits(116, 6) as u8,
            reuse: self.bits(122, 4) as u8,
        }
    }
}

/// The upper and the lower half, in hexadecimal digits.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x} {:016x}", (self.0 >> 64) as u64, self.0 as u64)
    }
}

/// The scoreboard of a barrier field, where 7 stands for none.
const fn barrier(number: u8) -> Option<u8> {
    if number == 7 { None } else { Some(number) }
}

/// The compiler's words about the issue of an instruction: bits 105 to 125.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlWord {
    /// Cycles before the next instruction of the warp may issue, 0 to 15.
    pub stall: u8,
    /// The scheduler stays with this warp; otherwise it may switch to another one.
    pub stays: bool,
    /// The scoreboard that is free again when the result is written.
    pub write_barrier: Option<u8>,
    /// The scoreboard that is free again when the operands are read.
    pub read_barrier: Option<u8>,
    /// Scoreboards that must be free before it issues, a bit each.
    pub wait_mask: u8,
    /// Operand slots whose registers stay in the reuse cache, a bit each.
    pub reuse: u8,
}

impl ControlWord {
    /// The bits that it is made of.
    pub const FIELD: Field = Field::new(105, 21);
    /// Scoreboards of a warp.
    pub const SCOREBOARDS: u8 = 6;
}

/// `B01----:R-:W2:Y:S04`: the scoreboards that are waited for, the two barriers, whether the scheduler may switch, stall cycles.
impl fmt::Display for ControlWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("B")?;
        for scoreboard in 0..Self::SCOREBOARDS {
            if (self.wait_mask >> scoreboard) & 1 != 0 { write!(f, "{scoreboard}")? } else { f.write_str("-")? }
        }
        for (letter, barrier) in [('R', self.read_barrier), ('W', self.write_barrier)] {
            match barrier {
                Some(number) => write!(f, ":{letter}{number}")?,
                None => write!(f, ":{letter}-")?,
            }
        }
        write!(f, ":{}:S{:02}", if self.stays { '-' } else { 'Y' }, self.stall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_from_both_halves() {
        let word = Word(0x001fca00078e0203_0000000006067a24);
        assert_eq!(word.code(), 0xa24);
        assert_eq!(word.bits(16, 8), 6);
        assert_eq!(word.bits(62, 4), 0b1100);
        assert_eq!(Word(0xff << 60).signed(60, 8), -1);
        assert_eq!(Word(0x7f << 60).signed(60, 8), 0x7f);
    }

    #[test]
    fn control_words_are_text() {
        // An S2R with a scoreboard to write, an FADD that waits for two loads, an IMAD that waits for an S2R.
        assert_eq!(Word(0x000e280000002500 << 64).control().to_string(), "B------:R-:W0:-:S04");
        assert_eq!(Word(0x004fd00000000000 << 64).control().to_string(), "B--2---:R-:W-:Y:S08");
        assert_eq!(Word(0x001fca00078e0203 << 64).control().to_string(), "B0-----:R-:W-:Y:S05");
    }
}
