//! Single and double precision, and the special-function unit.

use super::operands::{Operands, predicate_destination};
use super::{Lowered, Pending};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::floating_point::directed::*;
use crate::interpreter::floating_point::float::*;
use crate::interpreter::floating_point::half_arithmetic::{HyperbolicTangentHalf, PowerOfTwoHalf, extremum_mode};
use crate::interpreter::machine::arithmetic::{MapPairs, MapSigned, ScaledProduct};
use crate::interpreter::machine::compare::*;
use crate::interpreter::machine::half::SpecialHalf;
use crate::interpreter::machine::special::*;
use crate::operation::LaneFunction;
use crate::sass::{self, Aspect, Opcode};

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

/// How an instruction rounds.
pub(super) fn rounding_of(sass: &sass::Instruction) -> u32 {
    match sass.text(Aspect::Rounding) {
        ".RM" | ".FLOOR" => rounding::DOWN,
        ".RP" | ".CEIL" => rounding::UP,
        ".RZ" | ".TRUNC" => rounding::ZERO,
        _ => rounding::NEAREST,
    }
}

/// The [`extremum_mode`] that the modifiers of a minimum or maximum say.
pub(super) fn mode_of_extremum(sass: &sass::Instruction) -> u32 {
    let modes = [
        (Aspect::Flush, extremum_mode::FLUSH),
        (Aspect::Nan, extremum_mode::NAN),
        (Aspect::ExclusiveSign, extremum_mode::XOR_SIGN),
    ];
    modes.iter().filter(|(aspect, _)| sass.has(*aspect)).fold(0, |mode, (_, flag)| mode | flag)
}

impl Pending {
    pub(super) fn float(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        let flush = sass.has(Aspect::Flush);
        match sass.opcode() {
            O::Ffma => {
                self.take(sass, operands, 3)?;
                self.single_arithmetic(sass)
            }
            O::Fadd | O::Fmul => {
                self.take(sass, operands, 2)?;
                self.single_arithmetic(sass)
            }
            O::Fsetp | O::Fset => {
                self.take(sass, operands, 2)?;
                if sass.opcode() == O::Fset {
                    self.compared(sass);
                    let lanes =
                        if flush { functions::<CompareToValue<true>>() } else { functions::<CompareToValue<false>>() };
                    return self.finish(lanes);
                }
                self.comparison(sass);
                self.finish(match flush {
                    true => functions::<CompareFloats<f32, true>>(),
                    false => functions::<CompareFloats<f32, false>>(),
                })
            }
            O::Fsel => {
                self.take(sass, operands, 2)?;
                self.condition(sass);
                self.finish(if flush { functions::<SelectFloat<true>>() } else { functions::<SelectFloat<false>>() })
            }
            O::Fmnmx => self.extremum(sass, operands),
            O::Fchk => {
                self.take(sass, operands, 2)?;
                self.instruction.predicate_destinations[0] = predicate_destination(sass.predicate(0));
                self.finish(functions::<CheckDivision>())
            }
            O::Mufu => self.special(sass, operands),
            O::Dfma => {
                self.take_wide(sass, operands, 3)?;
                let (rounding, signs) = (rounding_of(sass), self.instruction.signs);
                self.rounded(double!(FusedF64, FusedDirectedF64, rounding, signs), rounding)
            }
            O::Dadd => {
                self.take_wide(sass, operands, 2)?;
                let (rounding, signs) = (rounding_of(sass), self.instruction.signs);
                self.rounded(double!(AddF64, AddDirectedF64, rounding, signs), rounding)
            }
            O::Dmul => {
                self.take_wide(sass, operands, 2)?;
                let (rounding, signs) = (rounding_of(sass), self.instruction.signs);
                self.rounded(double!(MultiplyF64, MultiplyDirectedF64, rounding, signs), rounding)
            }
            _ => {
                self.take_wide(sass, operands, 2)?;
                self.comparison(sass);
                self.finish(match sass.text(Aspect::Comparison) {
                    ".MIN" => functions::<ChooseDouble<false>>(),
                    ".MAX" => functions::<ChooseDouble<true>>(),
                    _ => functions::<CompareFloats<f64, false>>(),
                })
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

    /// Takes the first sources of an instruction, of 64 bits, with their signs.
    fn take_wide(&mut self, sass: &sass::Instruction, operands: &mut Operands, count: usize) -> Lowered<()> {
        self.take_by(Operands::read_wide, sass, operands, count)
    }

    fn single_arithmetic(&mut self, sass: &sass::Instruction) -> Lowered<()> {
        let rounding = rounding_of(sass);
        // A product that makes zero of zero times anything differs for infinities alone; no compiler of CUDA asks for it.
        if sass.text(Aspect::Flush) == ".FMZ" {
            return Err("a product that is zero where a factor is (.FMZ)".to_owned());
        }
        let (flush, saturate, signs) = (sass.has(Aspect::Flush), sass.has(Aspect::Saturate), self.instruction.signs);
        self.instruction.immediate = rounding;
        let is_directed = rounding != rounding::NEAREST;
        let functions = match sass.opcode() {
            Opcode::Fmul if sass.has(Aspect::Scale) => {
                if is_directed || saturate {
                    return Err("a scaled product that is rounded or limited".to_owned());
                }
                // .D8 is 1 and .M8 is 7; 4 is for none.
                self.instruction.immediate = (127 + sass.value(Aspect::Scale) as u32 - 4) << 23;
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
    fn compared(&mut self, sass: &sass::Instruction) {
        self.condition(sass);
        let set = sass.value(Aspect::Comparison) as u32;
        self.instruction.immediate = combination(sass.value(Aspect::Boolean)) | set << outcome::SHIFT;
    }

    /// The same of one that writes predicates.
    fn comparison(&mut self, sass: &sass::Instruction) {
        self.compared(sass);
        self.results(sass);
    }

    fn extremum(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 2)?;
        self.condition(sass);
        if sass.has(Aspect::Nan) || sass.has(Aspect::ExclusiveSign) {
            self.instruction.immediate = mode_of_extremum(sass);
            return self.finish(functions::<ExtremumF32>());
        }
        let flush = sass.has(Aspect::Flush);
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
    fn special(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.take(sass, operands, 1)?;
        let operation = sass.text(Aspect::Operation);
        if sass.text(Aspect::Type) == ".F16" {
            // The bits that the half is shifted by.
            self.instruction.immediate = 16 * sass.source(0).map_or(0, |source| source.part) as u32;
            return match operation {
                ".EX2" => self.finish(functions::<SpecialHalf<PowerOfTwoHalf>>()),
                ".TANH" => self.finish(functions::<SpecialHalf<HyperbolicTangentHalf>>()),
                _ => Err("a special function that halves do not have".to_owned()),
            };
        }
        let functions = match operation {
            ".COS" => functions::<MapSigned<Cosine>>(),
            ".SIN" => functions::<MapSigned<Sine>>(),
            ".EX2" => functions::<MapSigned<PowerOfTwo>>(),
            ".LG2" => functions::<MapSigned<BinaryLogarithm>>(),
            ".RCP" => functions::<MapSigned<Reciprocal>>(),
            ".RSQ" => functions::<MapSigned<ReciprocalRoot>>(),
            ".RCP64H" => functions::<MapSigned<ReciprocalHigh>>(),
            ".RSQ64H" => functions::<MapSigned<ReciprocalRootHigh>>(),
            ".SQRT" => functions::<MapSigned<Root>>(),
            // The one that keeps subnormals.
            ".TANH" => single!(HyperbolicTangentF32, false, false, self.instruction.signs),
            other => return Err(format!("the special function {other}")),
        };
        self.finish(functions)
    }
}
