//! Conversions between types.

use super::float::rounding_of;
use super::operands::{Operands, sign_at};
use super::{Lowered, Pending};
use crate::interpreter::bodies::{Map, functions};
use crate::interpreter::convert::{Conversion, ConvertPair, Mode, Scalar};
use crate::interpreter::floating_point::float::*;
use crate::interpreter::floating_point::half::HalfToDouble;
use crate::interpreter::machine::arithmetic::{MapPairs, MapSigned};
use crate::interpreter::machine::convert::ConvertPart;
use crate::sass::{self, Opcode, Place, Word};

/// Floating-point types by the codes of their sizes.
fn float(code: u64) -> Lowered<Scalar> {
    match code {
        1 => Ok(Scalar::F16),
        2 => Ok(Scalar::F32),
        3 => Ok(Scalar::F64),
        _ => Err("a type of 8 bits".to_owned()),
    }
}

/// Integer types by the codes of their sizes.
fn integer(size: u64, is_signed: bool) -> Scalar {
    match (size, is_signed) {
        (0, false) => Scalar::U8,
        (0, true) => Scalar::S8,
        (1, false) => Scalar::U16,
        (1, true) => Scalar::S16,
        (2, false) => Scalar::U32,
        (2, true) => Scalar::S32,
        (_, false) => Scalar::U64,
        (_, true) => Scalar::S64,
    }
}

fn mode(code: u64) -> Mode {
    match rounding_of(code) {
        rounding::DOWN => Mode::Down,
        rounding::UP => Mode::Up,
        rounding::ZERO => Mode::Zero,
        _ => Mode::Nearest,
    }
}

impl Pending {
    pub(super) fn conversion(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        use Opcode as O;
        let word = sass.word();
        self.instruction.destinations[0] = operands.row(word.bits(16, 8) as u8);
        let (from, to) = match sass.opcode() {
            O::I2f => (integer(word.bits(84, 2), word.bit(74)), float(word.bits(75, 2))?),
            O::F2i => (float(word.bits(84, 2))?, integer(word.bits(75, 2), word.bit(72))),
            O::F2f | O::Frnd => (float(word.bits(84, 2))?, float(word.bits(75, 2))?),
            _ => {
                let to = [Scalar::U8, Scalar::S8, Scalar::U16, Scalar::S16][word.bits(76, 2) as usize];
                (Scalar::S32, to)
            }
        };
        let place = Place::exchanged(word).ok_or("a form without this operand")?;
        let is_float = !matches!(sass.opcode(), O::I2f | O::I2i);
        self.instruction.sources[0] = match from {
            // Of an integer of 64 bits, as of a double, the immediate is the upper half.
            Scalar::U64 | Scalar::S64 if place == Place::Immediate => operands.wide_number(word.bits(32, 32) << 32),
            _ if from.is_wide() => operands.wide_at(word, place)?,
            _ => operands.at(word, place)?,
        };
        if is_float {
            self.instruction.signs = sign_at(word, place, 0, true);
        }
        if place != Place::Immediate && from.bits() < 32 {
            self.instruction.offset = word.bits(60, 2) as i64 * if from.bits() == 8 { 8 } else { 16 };
        }
        let flushes = is_float && word.bit(80);
        let saturates = sass.opcode() == O::I2i;
        let is_integral = sass.opcode() == O::Frnd;
        let conversion = Conversion {
            from,
            to,
            mode: mode(word.bits(78, 2)),
            flushes,
            saturates,
            is_finite: false,
            is_positive: false,
            is_integral,
            is_packed: false,
        };
        self.converted(&conversion, word)
    }

    /// `F2FP.PACK_AB`: two singles become the halves of a register, the first the upper one.
    pub(super) fn pack_halves(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        let word = sass.word();
        let place = Place::exchanged(word).ok_or("a form without this operand")?;
        self.instruction.destinations[0] = operands.row(word.bits(16, 8) as u8);
        self.instruction.sources[0] = operands.register(word.bits(24, 8) as u8);
        self.instruction.sources[1] = operands.at(word, place)?;
        let conversion = Conversion {
            from: Scalar::F32,
            to: Scalar::F16,
            mode: if word.bits(79, 2) == 3 { Mode::Zero } else { Mode::Nearest },
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
    fn converted(&mut self, conversion: &Conversion, word: Word) -> Lowered<()> {
        let Conversion { from, to, mode, flushes, is_integral, .. } = *conversion;
        let is_whole = self.instruction.signs == 0 && self.instruction.offset == 0 && !is_integral;
        let rounding = rounding_of(word.bits(78, 2));
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
