//! A decoded instruction.

use super::aspect::Aspect;
use super::encoding::Encoding;
use super::opcode::Opcode;
use super::slot::{Distance, Slot};
use super::word::{ControlWord, INSTRUCTION_BYTES, Word};

/// An instruction with its place in its section.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub(super) word: Word,
    pub(super) address: u64,
    pub(super) encoding: &'static Encoding,
}

impl Instruction {
    /// Its bits.
    pub fn word(&self) -> Word {
        self.word
    }

    /// Where it lies, bytes from the beginning of its section.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The same at another place: addresses that it goes to are counted from there.
    #[must_use]
    pub fn at(self, address: u64) -> Instruction {
        Instruction { address, ..self }
    }

    /// Its opcode.
    pub fn opcode(&self) -> Opcode {
        self.encoding.opcode
    }

    /// How it is encoded.
    pub fn encoding(&self) -> &'static Encoding {
        self.encoding
    }

    /// When it issues.
    pub fn control(&self) -> ControlWord {
        self.word.control()
    }

    /// The predicate that guards it, and whether it is inverted.
    pub fn guard(&self) -> (u8, bool) {
        (self.word.bits(12, 3) as u8, self.word.bit(15))
    }

    /// The address that it may go to.
    pub fn target(&self) -> Option<u64> {
        self.slots().find_map(|slot| match slot {
            Slot::Target(distance) => Some(self.target_at(distance)),
            _ => None,
        })
    }

    /// Whether a branch, a call or the like depends on more than its guard: on a predicate, or on the paths of the warp's lanes (`.DIV`,
    /// `.CONV`).
    pub fn has_condition(&self) -> bool {
        let asks_warp = self.opcode() == Opcode::Bra && matches!(self.text(Aspect::Mode), ".DIV" | ".CONV");
        let condition = self.predicate_source(0);
        self.opcode().is_jump() && (asks_warp || condition.is_some_and(|condition| !condition.is_true()))
    }

    /// Where a distance leads to.
    pub(super) fn target_at(&self, distance: Distance) -> u64 {
        let next = self.address.wrapping_add(INSTRUCTION_BYTES as u64);
        next.wrapping_add(distance.of(self.word) as u64)
    }
}
