//! Conversions between types.

use super::float::rounding_of;
use super::operands::{Operands, sign_of};
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::convert::{Conversion, ConvertPair, Mode, Scalar};
use crate::interpreter::floating_point::float::*;
use crate::interpreter::floating_point::half::HalfToDouble;
use crate::interpreter::machine::arithmetic::{MapPairs, MapSigned};
use crate::interpreter::machine::convert::{ConvertBelow, ConvertPairBelow, ConvertPart, UnpackPair};
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
        ".BF16" => Scalar::Bf16,
        ".TF32" => Scalar::Tf32,
        ".E4M3" => Scalar::E4m3,
        ".E5M2" => Scalar::E5m2,
        ".S32" => Scalar::S32,
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
            O::I2f | O::I2fp => (of_source(Scalar::S32)?, of_result(Scalar::F32)?),
            O::F2i => (of_source(Scalar::F32)?, of_result(Scalar::S32)?),
            O::F2f => (of_source(Scalar::F32)?, of_result(Scalar::F32)?),
            O::Frnd => (of_source(Scalar::F32)?, of_source(Scalar::F32)?),
            _ => (Scalar::S32, scalar(sass, Aspect::Type, Scalar::S32)?),
        };
        let source = sass.source(0).ok_or(NO_SUCH_OPERAND)?;
        let is_float = !matches!(sass.opcode(), O::I2f | O::I2fp | O::I2i);
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

    /// `F2FP`: two singles become values of fewer bits, side by side in a register, the first one above the second. Other forms convert
    /// the second alone, keep the lower half of a third register above the results, or go the other way.
    pub(super) fn pack(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        let packing = sass.text(Aspect::Packing);
        let conversion = Conversion {
            from: scalar(sass, Aspect::SourceType, Scalar::F32)?,
            to: scalar(sass, Aspect::ResultType, Scalar::F16)?,
            mode: mode(sass),
            flushes: false,
            saturates: false,
            is_finite: sass.has(Aspect::Saturate),
            is_positive: sass.has(Aspect::Relu),
            is_integral: false,
            is_packed: packing.starts_with(".UNPACK_B"),
        };
        // The first bit of the half of a source that is used.
        let half = |number: usize| 16 * sass.source(number).map_or(0, |source| source.part) as i64;
        match packing {
            "" => {
                self.take(sass, operands, 2)?;
                self.run(functions::<ConvertPair>(), conversion.pack())
            }
            ".PACK_B" => {
                self.take(sass, operands, 1)?;
                self.run(functions::<ConvertPart>(), conversion.pack())
            }
            ".UNPACK_B" => {
                self.take(sass, operands, 1)?;
                self.instruction.offset = half(0);
                self.run(functions::<UnpackPair>(), conversion.pack())
            }
            ".MERGE_C" if conversion.to.bits() == 16 => {
                self.take(sass, operands, 2)?;
                self.instruction.offset = half(1);
                self.run(functions::<ConvertBelow>(), conversion.pack())
            }
            ".UNPACK_B_MERGE_C" => {
                // Both values are in one register.
                self.take(sass, operands, 2)?;
                self.instruction.sources[2] = self.instruction.sources[1];
                self.instruction.offset = half(1);
                self.run(functions::<ConvertPairBelow>(), conversion.pack())
            }
            ".PACK_AB_MERGE_C" => {
                self.take(sass, operands, 3)?;
                self.instruction.offset = half(2);
                self.run(functions::<ConvertPairBelow>(), conversion.pack())
            }
            other => Err(format!("a conversion that packs as {other}")),
        }
    }

    /// `F2IP`: two singles become limited integers of 8 bits, the first one above the second, below the lower half of a third register. Own
    /// finding: ptxas makes it of two `cvt` to 32 bits and a `cvt.pack.sat`.
    pub(super) fn pack_integers(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        if !sass.has(Aspect::NanToZero) {
            return Err("a packing conversion of not-a-numbers to other numbers than zero".to_owned());
        }
        self.instruction.destinations[0] = operands.written(sass.destination(0));
        self.take(sass, operands, 3)?;
        self.instruction.offset = 16 * sass.source(2).map_or(0, |source| source.part) as i64;
        let conversion = Conversion {
            from: Scalar::F32,
            to: scalar(sass, Aspect::ResultType, Scalar::S8)?,
            mode: mode(sass),
            flushes: false,
            saturates: true,
            is_finite: false,
            is_positive: sass.has(Aspect::Relu),
            is_integral: false,
            is_packed: false,
        };
        self.run(functions::<ConvertPairBelow>(), conversion.pack())
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
