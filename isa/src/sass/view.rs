//! What an instruction has, by names: modifiers by their aspects, operands by their kinds and their order in the text.
//!
//! An operand that the text leaves out, since it says nothing, is counted, too: the first predicate that an `IADD3` writes is
//! `predicate(0)`, whether it is PT or not.

use super::aspect::Aspect;
use super::encoding::Modifier;
use super::instruction::Instruction;
use super::opcode::Opcode;
use super::slot::{AddressForm, Place, Sign, Slot, SourceSlot, UNIFORM_FLAG};
use super::word::{TRUE_PREDICATE, ZERO_REGISTER};

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterOperand {
    /// A general one.
    General(u8),
    /// A uniform one.
    Uniform(u8),
}

/// Where the value of a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a register.
    Register(RegisterOperand),
    /// In the word.
    Immediate(u32),
    /// In a constant bank, at an offset in bytes.
    Constant {
        /// The bank.
        bank: u32,
        /// Where in it, bytes; the value of an index is added, where there is one.
        offset: i64,
        /// The register that has the index.
        index: Option<RegisterOperand>,
    },
}

/// A value that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceOperand {
    /// Where it is.
    pub location: Location,
    /// It is negated, or inverted where the instruction inverts.
    pub is_negated: bool,
    /// Its absolute value is taken, before it is negated.
    pub is_absolute: bool,
    /// Which part of it is used, as the encoding numbers them.
    pub part: u64,
}

impl SourceOperand {
    fn number(value: u64) -> SourceOperand {
        SourceOperand::plain(Location::Immediate(value as u32))
    }

    fn plain(location: Location) -> SourceOperand {
        SourceOperand { location, is_negated: false, is_absolute: false, part: 0 }
    }

    /// The number of an immediate.
    pub fn immediate(&self) -> Option<u32> {
        match self.location {
            Location::Immediate(value) => Some(value),
            _ => None,
        }
    }

    /// The general register that it is.
    pub fn register(&self) -> Option<u8> {
        match self.location {
            Location::Register(RegisterOperand::General(number)) => Some(number),
            _ => None,
        }
    }
}

/// A predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredicateOperand {
    /// Its number; 7 is always true.
    pub number: u8,
    /// It is one of the uniform datapath.
    pub is_uniform: bool,
    /// Its opposite is meant.
    pub is_inverted: bool,
}

impl PredicateOperand {
    fn with_number_inverted(self) -> PredicateOperand {
        PredicateOperand { number: self.number ^ TRUE_PREDICATE, ..self }
    }

    /// Is it PT?
    pub fn is_true(self) -> bool {
        self.number == TRUE_PREDICATE && !self.is_inverted
    }
}

/// Where a jump goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The register, a pair of 64 bits.
    pub base: Option<RegisterOperand>,
    /// The number that is added to it; without a register, the place itself.
    pub added: u64,
    /// The place is an address of code, rather than one of the instruction's section.
    pub is_absolute: bool,
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The general register; 255 for none.
    pub register: u8,
    /// The power of two that it is multiplied with.
    pub scale: u8,
    /// The uniform register that is added. A descriptor of memory is none.
    pub uniform: Option<u8>,
    /// All 64 bits of a general register are added to a uniform one; `None` where the instruction does not say.
    pub adds_wide: Option<bool>,
    /// The number that is added.
    pub offset: i64,
}

impl Instruction {
    /// Its operands' slots, shown or not.
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.encoding.operands(self.word).map(|operand| operand.slot)
    }

    /// Does it belong to an architecture with a uniform datapath, or name one of its registers?
    pub fn names_uniform(&self) -> bool {
        self.encoding.since >= 75 || self.word.bit(UNIFORM_FLAG)
    }

    /// Is the constant that it reads at the value of a register?
    pub fn names_index(&self) -> bool {
        let first = self.source(0).map(|source| source.location);
        matches!(first, Some(Location::Constant { index: Some(_), .. }))
    }

    /// The text of a modifier; none where it says nothing.
    pub fn text(&self, aspect: Aspect) -> &'static str {
        match self.modifier(aspect) {
            Some(modifier) => modifier.text(self.word).unwrap_or_default(),
            None => self.named_operand(aspect).map_or("", |(_, text)| text),
        }
    }

    /// Whether a modifier says something.
    pub fn has(&self, aspect: Aspect) -> bool {
        !self.text(aspect).is_empty()
    }

    /// The place of a modifier's text among those of its aspect; 1 for one that is there or not.
    pub fn value(&self, aspect: Aspect) -> u64 {
        match self.modifier(aspect) {
            Some(modifier) => modifier.value(self.word),
            None => self.named_operand(aspect).map_or(0, |(value, _)| value),
        }
    }

    fn modifier(&self, aspect: Aspect) -> Option<&'static Modifier> {
        self.encoding.modifiers.iter().find(|modifier| modifier.aspect == aspect)
    }

    /// What says something among the operands: its value and its text.
    fn named_operand(&self, aspect: Aspect) -> Option<(u64, &'static str)> {
        self.slots().find_map(|slot| match slot {
            Slot::Name(of, field, names) if of == aspect => {
                let value = self.word.field(field);
                Some((value, names.get(value as usize).copied().unwrap_or_default()))
            }
            _ => None,
        })
    }

    /// A register that it writes.
    pub fn destination(&self, number: usize) -> Option<RegisterOperand> {
        let mut destinations = self.slots().filter_map(|slot| match slot {
            Slot::Destination(low) => Some(RegisterOperand::General(self.word.bits(low, 8) as u8)),
            Slot::UniformDestination(low) => Some(RegisterOperand::Uniform(self.word.bits(low, 6) as u8)),
            _ => None,
        });
        destinations.nth(number)
    }

    /// The values that it reads: registers, numbers and constants alike.
    pub fn sources(&self) -> impl Iterator<Item = SourceOperand> {
        self.slots().filter_map(|slot| self.source_of(&slot))
    }

    /// One of them.
    pub fn source(&self, number: usize) -> Option<SourceOperand> {
        self.sources().nth(number)
    }

    fn source_of(&self, slot: &Slot) -> Option<SourceOperand> {
        let word = self.word;
        let indexed = |index: RegisterOperand| Location::Constant {
            bank: word.bits(54, 5) as u32,
            offset: word.signed(38, 16),
            index: Some(index),
        };
        Some(match *slot {
            Slot::Source(slot) => self.resolved(&slot)?,
            Slot::Number(field) => SourceOperand::number(word.field(field)),
            Slot::SignedNumber(field) => SourceOperand::number(word.signed(field.low, field.width) as u64),
            Slot::Number2(low, high) => SourceOperand::number(word.fields(low, high)),
            Slot::IndexedConstant => SourceOperand::plain(indexed(RegisterOperand::General(word.bits(24, 8) as u8))),
            Slot::UniformIndexedConstant => {
                SourceOperand::plain(indexed(RegisterOperand::Uniform(word.bits(24, 6) as u8)))
            }
            Slot::Constant => SourceOperand::plain(Location::Constant {
                bank: word.bits(54, 5) as u32,
                offset: word.bits(38, 16) as i64,
                index: None,
            }),
            _ => return None,
        })
    }

    fn resolved(&self, slot: &SourceSlot) -> Option<SourceOperand> {
        let word = self.word;
        let place = slot.place(word)?;
        let location = match place {
            Place::Register(low) => Location::Register(RegisterOperand::General(word.bits(low, 8) as u8)),
            Place::Uniform(low) => Location::Register(RegisterOperand::Uniform(word.bits(low, 6) as u8)),
            Place::Immediate => return Some(SourceOperand::number(word.bits(32, 32))),
            Place::Constant => {
                Location::Constant { bank: word.bits(54, 5) as u32, offset: 4 * word.bits(40, 14) as i64, index: None }
            }
        };
        let (negate, absolute) = slot.sign_bits(place);
        Some(SourceOperand {
            location,
            is_negated: slot.sign != Sign::None && word.bit(negate),
            is_absolute: slot.sign == Sign::NegateAbsolute && word.bit(absolute),
            part: slot.part(place).map_or(0, |field| word.field(field)),
        })
    }

    /// The general registers in the places A, B and C of its form; none where RZ is.
    pub fn register_slots(&self) -> [Option<u8>; 3] {
        [24, 32, 64].map(|low| Some(self.word.bits(low, 8) as u8).filter(|&register| register != ZERO_REGISTER))
    }

    /// Has its form registers in all three places?
    pub fn has_registers_alone(&self) -> bool {
        self.word.form() == 1
    }

    /// A predicate that it writes.
    pub fn predicate(&self, number: usize) -> Option<PredicateOperand> {
        self.slots().filter_map(|slot| self.written_predicate(&slot)).nth(number)
    }

    /// A predicate that it reads, beside its guard.
    pub fn predicate_source(&self, number: usize) -> Option<PredicateOperand> {
        self.slots().filter_map(|slot| self.read_predicate(&slot)).nth(number)
    }

    /// The predicate of a slot that has one to write.
    pub(super) fn written_predicate(&self, slot: &Slot) -> Option<PredicateOperand> {
        let (low, is_uniform) = match *slot {
            Slot::Predicate(low) => (low, false),
            Slot::UniformPredicate(low) => (low, true),
            _ => return None,
        };
        Some(PredicateOperand { number: self.word.bits(low, 3) as u8, is_uniform, is_inverted: false })
    }

    /// The predicate of a slot that has one to read.
    pub(super) fn read_predicate(&self, slot: &Slot) -> Option<PredicateOperand> {
        let word = self.word;
        let at = |low: u8, is_uniform: bool| PredicateOperand {
            number: word.bits(low, 3) as u8,
            is_uniform,
            is_inverted: word.bit(low + 3),
        };
        Some(match *slot {
            Slot::PredicateSource(low) => at(low, false),
            Slot::UniformPredicateSource(low) => at(low, true),
            Slot::InvertedPredicateSource(low) => at(low, false).with_number_inverted(),
            Slot::InvertedUniformPredicateSource(low) => at(low, true).with_number_inverted(),
            Slot::EitherPredicateSource => at(68, word.bit(67)),
            _ => return None,
        })
    }

    /// An address that it accesses.
    pub fn address_operand(&self, number: usize) -> Option<Address> {
        let mut forms = self.slots().filter_map(|slot| match slot {
            Slot::Address(form) => Some(form),
            _ => None,
        });
        forms.nth(number).map(|form| self.address_of(&form))
    }

    fn address_of(&self, form: &AddressForm) -> Address {
        let word = self.word;
        let uniform = form.uniform.filter(|_| word.bit(UNIFORM_FLAG)).map(|low| word.bits(low, 6) as u8);
        Address {
            register: form.general(word) as u8,
            scale: if form.has_scale { [0, 2, 3, 4][word.bits(78, 2) as usize] } else { 0 },
            uniform: uniform.filter(|_| form.descriptor(word).is_none()),
            adds_wide: form.adds_wide(word),
            offset: word.signed(form.offset.low, form.offset.width),
        }
    }

    /// The number of the special register that it reads.
    pub fn special_register(&self) -> Option<u8> {
        self.slots().any(|slot| matches!(slot, Slot::Special)).then(|| self.word.bits(72, 8) as u8)
    }

    /// The convergence barrier that it is about.
    pub fn convergence_barrier(&self) -> Option<u8> {
        self.slots().find_map(|slot| match slot {
            Slot::ConvergenceBarrier(low) => Some(self.word.bits(low, 4) as u8),
            _ => None,
        })
    }

    /// The word of the warp's state that it moves: a convergence barrier, or from 16 on another one.
    pub fn warp_state(&self) -> Option<u8> {
        let has_state = self.slots().any(|slot| matches!(slot, Slot::WarpState(_)));
        has_state.then(|| self.word.bits(24, 5) as u8)
    }

    /// The scoreboard that it waits for, and how many may hold it then.
    pub fn counted_wait(&self) -> Option<(u8, u8)> {
        let scoreboard = self.slots().find_map(|slot| match slot {
            Slot::Scoreboard(field) => Some(self.word.field(field) as u8),
            _ => None,
        })?;
        let most = if self.has(Aspect::Comparison) { self.source(0)?.immediate()? as u8 } else { 0 };
        Some((scoreboard, most))
    }

    /// The scoreboards that it waits for beside those of its control word, a bit each.
    pub fn further_waits(&self) -> u8 {
        let mask = self.slots().find_map(|slot| match slot {
            Slot::Scoreboards(field) => Some(self.word.field(field) as u8),
            _ => None,
        });
        mask.unwrap_or_default()
    }

    /// Where a jump goes: to an address, or to the sum of a register and a number.
    pub fn jump(&self) -> Option<Jump> {
        // The register of a branch has the lanes that it asks about.
        let base = self.source(0).filter(|_| self.opcode() != Opcode::Bra).and_then(|source| match source.location {
            Location::Register(register) => Some(register),
            _ => None,
        });
        let is_absolute = matches!(self.opcode(), Opcode::Jmx | Opcode::Jmxu) || self.text(Aspect::Absolute) == ".ABS";
        let added = self.slots().find_map(|slot| match slot {
            Slot::Target(distance) | Slot::ReturnTarget(distance) | Slot::JumpOffset(distance) if is_absolute => {
                Some(distance.of(self.word) as u64)
            }
            Slot::Target(distance) | Slot::ReturnTarget(distance) | Slot::JumpOffset(distance) => {
                Some(self.target_at(distance))
            }
            Slot::AbsoluteTarget(distance) => Some(distance.of(self.word) as u64),
            _ => None,
        })?;
        Some(Jump { base, added, is_absolute })
    }
}
