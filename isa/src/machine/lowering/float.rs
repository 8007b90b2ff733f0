//! Single and double precision, and the special-function unit.

use super::operands::{Operands, predicate_destination, predicate_source, sign_at};
use super::{Lowered, Pending};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::floating_point::directed::*;
use crate::interpreter::floating_point::float::*;
use crate::interpreter::floating_point::half_arithmetic::{HyperbolicTangentHalf, PowerOfTwoHalf};
use crate::interpreter::machine::arithmetic::{MapPairs, MapSigned, ScaledProduct};
use crate::interpreter::machine::compare::*;
use crate::interpreter::machine::half::SpecialHalf;
use crate::interpreter::machine::special::*;
use crate::operation::LaneFunction;
use crate::operation::operand::{SINK_ROW, Source};
use crate::sass::{self, Opcode, Place, Role, Word};

/// An operation with flushing and saturation, on sources with signs or without.
macro_rules! single {
    ($operation:ident, $flush:expr, $saturate:expr, $signs:expr) => {
        match ($flush, $saturate, $signs != 0) {
            (false, false, false) => functions::<Map<Single<$operation, false, false>>>(),
            (true, false, false) => functions::<Map<Single<$operation, true, false>>>(),
            (false, true, false) => functions::<Map<Single<$operation, false, true>>>(),
            (true, true, false) => functions::<Map<Single<$operation, true, true>>>(),
            (false, false, true) => functions::<MapSigned<Single<$operation, false, false>>>(),
            (true, false, true) => functions::<MapSigned<Single<$operation, true, false>>>(),
            (false, true, true) => functions::<MapSigned<Single<$operation, false, true>>>(),
            (true, true, true) => functions::<MapSigned<Single<$operation, true, true>>>(),
        }
    };
    // Rare ones have one form for sources with signs and without.
    ($operation:ident, $flush:expr, $saturate:expr) => {
        match ($flush, $saturate) {
            (false, false) => functions::<MapSigned<Single<$operation, false, false>>>(),
            (true, false) => functions::<MapSigned<Single<$operation, true, false>>>(),
            (false, true) => functions::<MapSigned<Single<$operation, false, true>>>(),
            (true, true) => functions::<MapSigned<Single<$operation, true, true>>>(),
        }
    };
}

macro_rules! double {
    ($operation:ident, $directed:ident, $rounding:expr, $signs:expr) => {
        match ($rounding, $signs != 0) {
            (rounding::NEAREST, false) => functions::<MapPairs<Double<$operation>>>(),
            (rounding::NEAREST, true) => functions::<MapSigned<Double<$operation>>>(),
            _ => functions::<MapSigned<Directed<$directed>>>(),
        }
    };
}

/// How a rounding field rounds.
pub(super) fn rounding_of(code: u64) -> u32 {
    match code {
        0 => rounding::NEAREST,
        1 => rounding::DOWN,
        2 => rounding::UP,
        _ => rounding::ZERO,
    }
}

impl Pending {
    pub(super) fn float(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        let word = sass.word();
        self.instruction.destinations[0] = operands.row(word.bits(16, 8) as u8);
        match sass.opcode() {
            O::Ffma => {
                self.sources(word, operands, &[Role::B, Role::C])?;
                self.single_arithmetic(word, O::Ffma)
            }
            O::Fadd => {
                let second = if matches!(word.code() >> 9, 2 | 3 | 7) { Role::C } else { Role::B };
                self.sources(word, operands, &[second])?;
                self.single_arithmetic(word, O::Fadd)
            }
            O::Fmul => {
                self.sources(word, operands, &[Role::B])?;
                self.single_arithmetic(word, O::Fmul)
            }
            O::Fsetp | O::Fset => {
                self.sources(word, operands, &[Role::B])?;
                let flush = word.bit(80);
                if sass.opcode() == O::Fset {
                    self.compared(word);
                    let lanes =
                        if flush { functions::<CompareToValue<true>>() } else { functions::<CompareToValue<false>>() };
                    return self.finish(lanes);
                }
                self.comparison(word);
                self.finish(match flush {
                    true => functions::<CompareFloats<f32, true>>(),
                    false => functions::<CompareFloats<f32, false>>(),
                })
            }
            O::Fsel => {
                self.sources(word, operands, &[Role::B])?;
                self.chosen_by(word);
                let flush = word.bit(80);
                self.finish(if flush { functions::<SelectFloat<true>>() } else { functions::<SelectFloat<false>>() })
            }
            O::Fmnmx => self.extremum(word, operands),
            O::Fchk => {
                self.sources(word, operands, &[Role::B])?;
                self.instruction.destinations[0] = SINK_ROW;
                self.instruction.predicate_destinations[0] = predicate_destination(word, 81, false);
                self.finish(functions::<CheckDivision>())
            }
            O::Mufu => self.special(word, operands),
            O::Dfma => {
                self.wide_sources(word, operands, &[Role::B, Role::C])?;
                let (rounding, signs) = (rounding_of(word.bits(78, 2)), self.instruction.signs);
                self.rounded(double!(FusedF64, FusedDirectedF64, rounding, signs), rounding)
            }
            O::Dadd => {
                let second = if matches!(word.code() >> 9, 4..=6) { Role::B } else { Role::C };
                self.wide_sources(word, operands, &[second])?;
                let (rounding, signs) = (rounding_of(word.bits(78, 2)), self.instruction.signs);
                self.rounded(double!(AddF64, AddDirectedF64, rounding, signs), rounding)
            }
            O::Dmul => {
                self.wide_sources(word, operands, &[Role::B])?;
                let (rounding, signs) = (rounding_of(word.bits(78, 2)), self.instruction.signs);
                self.rounded(double!(MultiplyF64, MultiplyDirectedF64, rounding, signs), rounding)
            }
            _ => {
                let second = if matches!(word.code() >> 9, 2 | 3 | 7) { Role::C } else { Role::B };
                self.wide_sources(word, operands, &[second])?;
                self.comparison(word);
                match word.bits(76, 4) {
                    0 => return self.finish(functions::<ChooseDouble<false>>()),
                    15 => return self.finish(functions::<ChooseDouble<true>>()),
                    _ => {}
                }
                self.finish(functions::<CompareFloats<f64, false>>())
            }
        }
    }

    fn finish(&mut self, functions: [LaneFunction; 2]) -> Lowered<()> {
        self.instruction.functions = functions;
        Ok(())
    }

    /// Lowers arithmetic of doubles: the immediate is the directed rounding, if there is one.
    fn rounded(&mut self, functions: [LaneFunction; 2], rounding: u32) -> Lowered<()> {
        self.instruction.immediate = rounding;
        self.finish(functions)
    }

    /// Register A, then the sources of these roles, with their signs.
    fn sources(&mut self, word: Word, operands: &mut Operands, roles: &[Role]) -> Lowered<()> {
        self.signed_sources(word, operands, roles, Operands::at)
    }

    /// The same of 64 bits.
    fn wide_sources(&mut self, word: Word, operands: &mut Operands, roles: &[Role]) -> Lowered<()> {
        self.signed_sources(word, operands, roles, Operands::wide_at)
    }

    fn signed_sources(
        &mut self,
        word: Word,
        operands: &mut Operands,
        roles: &[Role],
        read: fn(&mut Operands, Word, Place) -> Result<Source, String>,
    ) -> Lowered<()> {
        let a = Place::Register(24);
        self.instruction.sources[0] = read(operands, word, a)?;
        self.instruction.signs = sign_at(word, a, 0, true);
        for (number, role) in (1..).zip(roles) {
            let place = Place::of(*role, word).ok_or("a form without this operand")?;
            self.instruction.sources[number as usize] = read(operands, word, place)?;
            self.instruction.signs |= sign_at(word, place, number, true);
        }
        Ok(())
    }

    fn single_arithmetic(&mut self, word: Word, opcode: Opcode) -> Lowered<()> {
        let rounding = rounding_of(word.bits(78, 2));
        // A product that makes zero of zero times anything differs for infinities alone; no compiler of CUDA asks for it.
        let is_multiplied = opcode != Opcode::Fadd;
        if is_multiplied && word.bit(76) {
            return Err("a product that is zero where a factor is (.FMZ)".to_owned());
        }
        let (flush, saturate, signs) = (word.bit(80), word.bit(77), self.instruction.signs);
        self.instruction.immediate = rounding;
        let is_directed = rounding != rounding::NEAREST;
        let scale = word.bits(84, 3);
        let functions = match opcode {
            Opcode::Fmul if scale != 4 => {
                if is_directed || saturate {
                    return Err("a scaled product that is rounded or limited".to_owned());
                }
                // .D8 is 1 and .M8 is 7.
                self.instruction.immediate = (127 + scale as u32 - 4) << 23;
                match flush {
                    true => functions::<MapSigned<ScaledProduct<true>>>(),
                    false => functions::<MapSigned<ScaledProduct<false>>>(),
                }
            }
            Opcode::Ffma if is_directed => single!(FusedDirectedF32, flush, saturate),
            Opcode::Ffma => single!(FusedF32, flush, saturate, signs),
            Opcode::Fadd if is_directed => single!(AddDirectedF32, flush, saturate),
            Opcode::Fadd => single!(AddF32, flush, saturate, signs),
            _ if is_directed => single!(MultiplyDirectedF32, flush, saturate),
            _ => single!(MultiplyF32, flush, saturate, signs),
        };
        self.finish(functions)
    }

    /// The predicate that a comparison is combined with, and the outcomes that make it true.
    fn compared(&mut self, word: Word) {
        self.chosen_by(word);
        let set = word.bits(76, 4) as u32;
        self.instruction.immediate = combination(word.bits(74, 2)) | set << outcome::SHIFT;
    }

    /// The same of one that writes predicates.
    fn comparison(&mut self, word: Word) {
        self.compared(word);
        self.instruction.destinations[0] = SINK_ROW;
        self.instruction.predicate_destinations = [81, 84].map(|low| predicate_destination(word, low, false));
    }

    fn chosen_by(&mut self, word: Word) {
        let (slot, flip) = predicate_source(word, 87, false);
        (self.instruction.predicate_sources[0], self.instruction.predicate_flips[0]) = (slot, flip);
    }

    fn extremum(&mut self, word: Word, operands: &mut Operands) -> Lowered<()> {
        self.sources(word, operands, &[Role::B])?;
        self.chosen_by(word);
        let flush = word.bit(80);
        let is_fixed = self.instruction.predicate_sources[0] == crate::operation::operand::TRUE_PREDICATE;
        let functions = match (is_fixed, self.instruction.predicate_flips[0] == 0) {
            (true, true) => single!(MinimumF32, flush, false, self.instruction.signs),
            (true, false) => single!(MaximumF32, flush, false, self.instruction.signs),
            _ if self.instruction.signs != 0 && flush => {
                functions::<SignedByPredicate<Single<MinimumF32, true, false>, Single<MaximumF32, true, false>>>()
            }
            _ if self.instruction.signs != 0 => {
                functions::<SignedByPredicate<Single<MinimumF32, false, false>, Single<MaximumF32, false, false>>>()
            }
            _ if flush => functions::<ByPredicate<Single<MinimumF32, true, false>, Single<MaximumF32, true, false>>>(),
            _ => functions::<ByPredicate<Single<MinimumF32, false, false>, Single<MaximumF32, false, false>>>(),
        };
        self.finish(functions)
    }

    /// `MUFU`
    fn special(&mut self, word: Word, operands: &mut Operands) -> Lowered<()> {
        let place = Place::exchanged(word).ok_or("a form without this operand")?;
        self.instruction.sources[0] = operands.at(word, place)?;
        self.instruction.signs = sign_at(word, place, 0, true);
        if word.bit(73) {
            self.instruction.immediate = if place != Place::Immediate && word.bit(60) { 16 } else { 0 };
            return match word.bits(74, 4) {
                2 => self.finish(functions::<SpecialHalf<PowerOfTwoHalf>>()),
                9 => self.finish(functions::<SpecialHalf<HyperbolicTangentHalf>>()),
                _ => Err("a special function that halves do not have".to_owned()),
            };
        }
        let functions = match word.bits(74, 4) {
            0 => functions::<MapSigned<Cosine>>(),
            1 => functions::<MapSigned<Sine>>(),
            2 => functions::<MapSigned<PowerOfTwo>>(),
            3 => functions::<MapSigned<BinaryLogarithm>>(),
            4 => functions::<MapSigned<Reciprocal>>(),
            5 => functions::<MapSigned<ReciprocalRoot>>(),
            6 => functions::<MapSigned<ReciprocalHigh>>(),
            7 => functions::<MapSigned<ReciprocalRootHigh>>(),
            8 => functions::<MapSigned<Root>>(),
            // The one that keeps subnormals.
            _ => single!(HyperbolicTangentF32, false, false, self.instruction.signs),
        };
        self.finish(functions)
    }
}
