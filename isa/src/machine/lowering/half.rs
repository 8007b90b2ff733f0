//! Half precision.

use super::operands::{Operands, predicate_destination, predicate_source};
use super::{Lowered, Pending};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::floating_point::half_arithmetic::{AddHalf, F16, FusedHalf, HalfPair, MultiplyHalf, half_mode};
use crate::interpreter::machine::compare::combination;
use crate::interpreter::machine::half::*;
use crate::interpreter::machine::signs::sign;
use crate::operation::operand::SINK_ROW;
use crate::sass::{self, Opcode, Place, Word};

/// The bits of a source: the choice of its halves, its negation and its absolute value.
struct Bits {
    halves: Option<u8>,
    negate: u8,
    absolute: u8,
}

const A: Bits = Bits { halves: Some(74), negate: 72, absolute: 73 };
const C: Bits = Bits { halves: Some(81), negate: 84, absolute: 83 };
const EXCHANGED: Bits = Bits { halves: Some(60), negate: 63, absolute: 62 };
const IMMEDIATE: Bits = Bits { halves: None, negate: 0, absolute: 0 };

impl Pending {
    pub(super) fn half(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        let word = sass.word();
        self.instruction.destinations[0] = operands.row(word.bits(16, 8) as u8);
        let place = Place::exchanged(word).ok_or("a form without this operand")?;
        let exchanged = operands.at(word, place)?;
        let of_exchanged = if place == Place::Immediate { IMMEDIATE } else { EXCHANGED };
        let a = operands.register(word.bits(24, 8) as u8);
        let c = operands.register(word.bits(64, 8) as u8);
        let is_turned = matches!(word.code() >> 9, 2 | 3 | 7);
        let sources = match sass.opcode() {
            O::Hfma2 if is_turned => vec![(a, A), (c, C), (exchanged, of_exchanged)],
            O::Hfma2 => vec![(a, A), (exchanged, of_exchanged), (c, C)],
            _ => vec![(a, A), (exchanged, of_exchanged)],
        };
        let mut choices = 0;
        for (number, (source, bits)) in sources.into_iter().enumerate() {
            self.instruction.sources[number] = source;
            if let Some(low) = bits.halves {
                choices |= (word.bits(low, 2) as u32) << (halves::SHIFT + 2 * number as u32);
                let negates = if word.bit(bits.negate) { sign::NEGATE } else { 0 };
                let takes_absolute = if word.bit(bits.absolute) { sign::ABSOLUTE } else { 0 };
                self.instruction.signs |= (negates | takes_absolute) << (2 * number);
            }
        }
        match sass.opcode() {
            O::Hsetp2 | O::Hset2 => self.half_comparison(sass.opcode(), word, choices),
            opcode => self.half_arithmetic(opcode, word, choices),
        }
    }

    fn half_arithmetic(&mut self, opcode: Opcode, word: Word, choices: u32) -> Lowered<()> {
        if opcode != Opcode::Hadd2 && word.bit(76) {
            return Err("a product that is zero where a factor is (.FMZ)".to_owned());
        }
        let mut flags = choices;
        for (bit, flag) in [(80, half_mode::FLUSH), (77, half_mode::SATURATE), (78, halves::SINGLE_RESULT)] {
            if word.bit(bit) {
                flags |= flag;
            }
        }
        let is_plain = flags == 0 && self.instruction.signs == 0;
        self.run(
            match (opcode, is_plain) {
                (Opcode::Hadd2, true) => functions::<Map<HalfPair<AddHalf, F16, true>>>(),
                (Opcode::Hadd2, false) => functions::<HalfArithmetic<{ operation::ADD }>>(),
                (Opcode::Hmul2, true) => functions::<Map<HalfPair<MultiplyHalf, F16, true>>>(),
                (Opcode::Hmul2, false) => functions::<HalfArithmetic<{ operation::MULTIPLY }>>(),
                (_, true) => functions::<Map<HalfPair<FusedHalf, F16, true>>>(),
                (_, false) => functions::<HalfArithmetic<{ operation::FUSED }>>(),
            },
            flags,
        )
    }

    fn half_comparison(&mut self, opcode: Opcode, word: Word, choices: u32) -> Lowered<()> {
        let mut flags = choices | combination(word.bits(69, 2)) << COMBINATION_SHIFT;
        if word.bit(80) {
            flags |= half_mode::FLUSH;
        }
        self.instruction.offset = word.bits(76, 4) as i64;
        let (slot, flip) = predicate_source(word, 87, false);
        (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
        if opcode == Opcode::Hset2 {
            if word.bit(71) {
                flags |= halves::ONE;
            }
            return self.run(functions::<CompareHalvesToValue>(), flags);
        }
        if word.bit(71) {
            flags |= halves::AND;
        }
        self.instruction.destinations[0] = SINK_ROW;
        self.instruction.predicate_destinations = [81, 84].map(|low| predicate_destination(word, low, false));
        self.run(functions::<CompareHalves>(), flags)
    }
}
