//! Conversions between types.

use super::float::rounding_of;
use super::operands::{Operands, sign_of};
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::convert::{Conversion, ConvertPair, Mode, Scalar};
use crate::interpreter::floating_point::float::*;
use crate::interpreter::floating_point::half::HalfToDouble;
use crate::interpreter::machine::arithmetic::{MapPairs, MapSigned};
use crate::interpreter::machine::convert::ConvertPart;
use crate::sass::{self, Aspect, Opcode};

/// The type that a modifier names, signed or a single where it names none.
fn scalar(sass: &sass::Instruction, aspect: Aspect, unnamed: Scalar) -> Lowered<Scalar> {
    Ok(match sass.text(aspect) {
        "" => unnamed,
        ".U8" => Scalar::U8,
        ".S8" => Scalar::S8,
        ".U16" => Scalar::U16,
        ".S16" => Scalar::S16,
        ".U32" => Scalar::U32,
        ".U64" => Scalar::U64,
        ".S64" => Scalar::S64,
        ".F16" => Scalar::F16,
        ".F32" => Scalar::F32,
        ".F64" => Scalar::F64,
        other => return Err(format!("a conversion with the type {other}")),
    })
}

/// The rounding of a conversion in the terms of PTX.
fn mode(sass: &sass::Instruction) -> Mode {
    match rounding_of(sass) {
        rounding::DOWN => Mode::Down,
        rounding::UP => Mode::Up,
        rounding::ZERO => Mode::Zero,
        _ => Mode::Nearest,
    }
}

impl Pending {
    pub(super) fn conversion(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        let of_source = |unnamed| scalar(sass, Aspect::SourceType, unnamed);
        let of_result = |unnamed| scalar(sass, Aspect::ResultType, unnamed);
        let (from, to) = match sass.opcode() {
            O::I2f => (of_source(Scalar::S32)?, of_result(Scalar::F32)?),
            O::F2i => (of_source(Scalar::F32)?, of_result(Scalar::S32)?),
            O::F2f => (of_source(Scalar::F32)?, of_result(Scalar::F32)?),
            O::Frnd => (of_source(Scalar::F32)?, of_source(Scalar::F32)?),
            _ => (Scalar::S32, scalar(sass, Aspect::Type, Scalar::S32)?),
        };
        let source = sass.source(0).ok_or(NO_SUCH_OPERAND)?;
        let is_float = !matches!(sass.opcode(), O::I2f | O::I2i);
        // Of an integer of 64 bits, as of a double, an immediate is the upper half.
        self.instruction.sources[0] =
            if from.is_wide() { operands.read_wide(source)? } else { operands.read(source)? };
        self.instruction.signs = sign_of(source, 0);
        if from.bits() < 32 {
            self.instruction.offset = source.part as i64 * i64::from(from.bits());
        }
        let flushes = is_float && sass.has(Aspect::Flush);
        let saturates = sass.opcode() == O::I2i;
        let is_integral = sass.opcode() == O::Frnd;
        let conversion = Conversion {
            from,
            to,
            mode: mode(sass),
            flushes,
            saturates,
            is_finite: false,
            is_positive: false,
            is_integral,
            is_packed: false,
        };
        self.converted(&conversion, sass)
    }

    /// `F2FP.PACK_AB`: two singles become the halves of a register, the first the upper one.
    pub(super) fn pack_halves(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        self.take(sass, operands, 2)?;
        let conversion = Conversion {
            from: Scalar::F32,
            to: Scalar::F16,
            mode: mode(sass),
            flushes: false,
            saturates: false,
            is_finite: false,
            is_positive: false,
            is_integral: false,
            is_packed: false,
        };
        self.run(functions::<ConvertPair>(), conversion.pack())
    }

    /// The quick conversions, and one for all others.
    fn converted(&mut self, conversion: &Conversion, sass: &sass::Instruction) -> Lowered<()> {
        let Conversion { from, to, mode, flushes, is_integral, .. } = *conversion;
        let is_whole = self.instruction.signs == 0 && self.instruction.offset == 0 && !is_integral;
        let rounding = rounding_of(sass);
        let directed = rounding | if flushes { 4 } else { 0 };
        if is_integral && (from, to) == (Scalar::F64, Scalar::F64) {
            let functions = match mode {
                Mode::Zero => functions::<MapSigned<Double<TruncateF64>>>(),
                Mode::Down => functions::<MapSigned<Double<FloorF64>>>(),
                Mode::Up => functions::<MapSigned<Double<CeilingF64>>>(),
                _ => functions::<MapSigned<Double<RoundF64>>>(),
            };
            return self.run(functions, 0);
        }
        if is_whole {
            use Scalar as S;
            let quick = match (from, to) {
                (S::S32, S::F32) => Some((functions::<Map<IntegerToSingle<i32>>>(), rounding)),
                (S::U32, S::F32) => Some((functions::<Map<IntegerToSingle<u32>>>(), rounding)),
                (S::S32, S::F64) => Some((functions::<MapPairs<IntegerToDouble<i32>>>(), rounding)),
                (S::U32, S::F64) => Some((functions::<MapPairs<IntegerToDouble<u32>>>(), rounding)),
                (S::F32, S::S32) => Some((functions::<Map<SingleToInteger<i32>>>(), directed)),
                (S::F32, S::U32) => Some((functions::<Map<SingleToInteger<u32>>>(), directed)),
                (S::F64, S::S32) => Some((functions::<MapPairs<DoubleToInteger<i32>>>(), rounding)),
                (S::F64, S::U32) => Some((functions::<MapPairs<DoubleToInteger<u32>>>(), rounding)),
                (S::F32, S::F64) => Some((functions::<MapPairs<Widen>>(), u32::from(flushes))),
                (S::F64, S::F32) if mode == Mode::Nearest && !flushes => Some((functions::<MapPairs<Narrow>>(), 0)),
                (S::F16, S::F64) => Some((functions::<MapPairs<HalfToDouble>>(), 0)),
                _ => None,
            };
            if let Some((functions, immediate)) = quick {
                return self.run(functions, immediate);
            }
        }
        self.run(functions::<ConvertPart>(), conversion.pack())
    }
}
