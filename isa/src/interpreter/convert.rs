//! Conversions between number formats: exact values, rounded once.
//!
//! [`Convert`] knows every pair of types; those that kernels use all the time have functions of their own in `float` and `half`.

use super::bodies::{Body, LaneOperation, write_element};
use super::floating_point::number_format::{Exact, Format, Rounded, Rounding, Value, divide};
use super::registers::{Lane, Registers};
use crate::interpreter::floating_point::float::rounding;
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::operation::operand::Row;
use std::marker::PhantomData;

/// A type that a conversion has on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Scalar {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    E2m1,
}

impl Scalar {
    const ALL: [Scalar; 18] = [
        Scalar::U8,
        Scalar::S8,
        Scalar::U16,
        Scalar::S16,
        Scalar::U32,
        Scalar::S32,
        Scalar::U64,
        Scalar::S64,
        Scalar::F16,
        Scalar::Bf16,
        Scalar::Tf32,
        Scalar::F32,
        Scalar::F64,
        Scalar::E4m3,
        Scalar::E5m2,
        Scalar::E2m3,
        Scalar::E3m2,
        Scalar::E2m1,
    ];

    /// Whether it takes a 64-bit register.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Scalar::U64 | Scalar::S64 | Scalar::F64)
    }

    /// Bits of a value.
    pub(crate) fn bits(self) -> u32 {
        match self.integer() {
            Some((bits, _)) => bits,
            None => self.format().fraction + self.format().exponent + 1,
        }
    }

    /// The bits of an integer type, and whether one is a sign.
    fn integer(self) -> Option<(u32, bool)> {
        Some(match self {
            Scalar::U8 => (8, false),
            Scalar::S8 => (8, true),
            Scalar::U16 => (16, false),
            Scalar::S16 => (16, true),
            Scalar::U32 => (32, false),
            Scalar::S32 => (32, true),
            Scalar::U64 => (64, false),
            Scalar::S64 => (64, true),
            _ => return None,
        })
    }

    fn format(self) -> Format {
        match self {
            Scalar::F16 => Format::F16,
            Scalar::Bf16 => Format::BF16,
            Scalar::Tf32 => Format::TF32,
            Scalar::F64 => Format::F64,
            Scalar::E4m3 => Format::E4M3,
            Scalar::E5m2 => Format::E5M2,
            Scalar::E2m3 => Format::E2M3,
            Scalar::E3m2 => Format::E3M2,
            Scalar::E2m1 => Format::E2M1,
            _ => Format::F32,
        }
    }

    /// Bits that a value takes in a packed register; those of 6 bits have two more.
    fn packed_bits(self) -> u32 {
        match self {
            Scalar::F16 | Scalar::Bf16 => 16,
            Scalar::E2m1 => 4,
            Scalar::E4m3 | Scalar::E5m2 | Scalar::E2m3 | Scalar::E3m2 => 8,
            _ => 32,
        }
    }

    /// The not-a-number that a conversion makes: all ones but for the sign, as the GPUs' arithmetic has it; in double precision the widened
    /// not-a-number of single precision. The largest number where there is none.
    fn not_a_number(self) -> u64 {
        match self {
            Scalar::F64 => 0x7fff_ffff_e000_0000,
            Scalar::E2m3 | Scalar::E3m2 | Scalar::E2m1 => self.format().largest(),
            _ => (1 << (self.format().fraction + self.format().exponent)) - 1,
        }
    }
}

/// How results are rounded: an instruction's modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    Nearest = rounding::NEAREST as u8,
    Zero = rounding::ZERO as u8,
    Down = rounding::DOWN as u8,
    Up = rounding::UP as u8,
    NearestAway,
    Stochastic,
}

impl Mode {
    const ALL: [Mode; 6] = [Mode::Nearest, Mode::Zero, Mode::Down, Mode::Up, Mode::NearestAway, Mode::Stochastic];
}

/// The conversion of one value by `cvt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub from: Scalar,
    pub to: Scalar,
    pub mode: Mode,
    /// `.ftz`
    pub flushes: bool,
    /// `.sat`
    pub saturates: bool,
    /// `.satfinite`
    pub is_finite: bool,
    /// `.relu`
    pub is_positive: bool,
    /// Floats to floats: rounded to an integral value.
    pub is_integral: bool,
    /// Packed: whether the source is one register with two values, not two registers.
    pub is_packed: bool,
}

impl Conversion {
    /// All of it in an instruction's immediate.
    pub fn pack(&self) -> u32 {
        let flags = [self.flushes, self.saturates, self.is_finite, self.is_positive, self.is_integral, self.is_packed];
        let flags = flags.iter().enumerate().fold(0, |bits, (place, flag)| bits | u32::from(*flag) << place);
        self.from as u32 | (self.to as u32) << 5 | (self.mode as u32) << 10 | flags << 13
    }

    pub(crate) fn unpack(word: u32) -> Conversion {
        let scalar = |first: u32| Scalar::ALL[(word >> first & 31) as usize % Scalar::ALL.len()];
        let flag = |place: u32| word >> (13 + place) & 1 != 0;
        Conversion {
            from: scalar(0),
            to: scalar(5),
            mode: Mode::ALL[(word >> 10 & 7) as usize % Mode::ALL.len()],
            flushes: flag(0),
            saturates: flag(1),
            is_finite: flag(2),
            is_positive: flag(3),
            is_integral: flag(4),
            is_packed: flag(5),
        }
    }

    /// `random` is of stochastic rounding: 13 bits for halves, 16 otherwise (PTX ISA, cvt).
    fn rounding(&self, random: u32) -> Rounding {
        match self.mode {
            Mode::Nearest => Rounding::Nearest,
            Mode::NearestAway => Rounding::NearestAway,
            Mode::Zero => Rounding::Zero,
            Mode::Down => Rounding::Down,
            Mode::Up => Rounding::Up,
            Mode::Stochastic => {
                let bits = if self.to == Scalar::F16 { 13 } else { 16 };
                Rounding::Stochastic { random: random & ((1 << bits) - 1), bits }
            }
        }
    }

    /// The bits of the result, integers extended to 64 bits.
    pub(crate) fn convert(&self, bits: u64, random: u32) -> u64 {
        let rounding = self.rounding(random);
        let value = self.value(bits);
        match self.to.integer() {
            Some((width, signed)) => self.integer(value, width, signed, rounding),
            None => self.float(value, rounding),
        }
    }

    fn value(&self, bits: u64) -> Value {
        if let Some((width, signed)) = self.from.integer() {
            let low = bits << (64 - width);
            let value = if signed { i128::from(low as i64 >> (64 - width)) } else { i128::from(low >> (64 - width)) };
            return Value::Finite(Exact { negative: value < 0, magnitude: value.unsigned_abs() as u64, exponent: 0 });
        }
        let format = self.from.format();
        match format.value(bits) {
            Value::Finite(exact)
                if self.flushes && self.from == Scalar::F32 && exact.magnitude < 1 << format.fraction =>
            {
                Value::Finite(Exact { magnitude: 0, ..exact })
            }
            value => value,
        }
    }

    /// To an integer: floats are limited to its range, integers where `.sat` says so.
    fn integer(&self, value: Value, width: u32, signed: bool, rounding: Rounding) -> u64 {
        let (least, most) =
            if signed { (-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1) } else { (0, (1i128 << width) - 1) };
        let result = match value {
            // PTX ISA, cvt, integer notes.
            Value::NotANumber if self.from != Scalar::F64 && width < 64 => 0,
            Value::NotANumber => (if signed { least } else { 1 << (width - 1) }) as u64 as i128,
            Value::Infinite { negative } => {
                if negative {
                    least
                } else {
                    most
                }
            }
            Value::Finite(Exact { negative, magnitude, exponent }) => {
                let magnitude = match exponent {
                    1.. if magnitude == 0 => 0,
                    1..=64 => i128::from(magnitude) << exponent.min(62),
                    65.. => i128::MAX,
                    _ => i128::from(divide(magnitude, -exponent, negative, rounding)),
                };
                let value = if negative { -magnitude } else { magnitude };
                if self.from.integer().is_some() && !self.saturates { value } else { value.clamp(least, most) }
            }
        };
        let result = if self.is_positive { result.max(0) } else { result };
        let unused = 64 - width;
        let low = (result as u64) << unused;
        if signed { (low as i64 >> unused) as u64 } else { low >> unused }
    }

    /// To a float.
    fn float(&self, value: Value, rounding: Rounding) -> u64 {
        let format = self.to.format();
        let bits = match value {
            Value::NotANumber if self.saturates => 0,
            Value::NotANumber => self.to.not_a_number(),
            Value::Infinite { negative } => self.beyond(format, negative, Rounding::Nearest),
            Value::Finite(exact) => {
                let exact = if self.is_integral && exact.exponent < 0 {
                    let magnitude = divide(exact.magnitude, -exact.exponent, exact.negative, rounding);
                    Exact { magnitude, exponent: 0, ..exact }
                } else {
                    exact
                };
                match format.round(exact, rounding) {
                    Rounded::Bits(bits) => bits,
                    Rounded::Overflow => self.beyond(format, exact.negative, rounding),
                }
            }
        };
        let sign = format.signed(true, 0);
        let one = (format.bias() as u64) << format.fraction;
        if format.value(bits) == Value::NotANumber {
            // All of the register's bits, not those of the format alone.
            return if self.to == Scalar::Tf32 { 0x7fff_ffff } else { bits };
        }
        let is_subnormal = bits & (sign - 1) < 1 << format.fraction;
        let bits = if self.flushes && self.to == Scalar::F32 && is_subnormal { bits & sign } else { bits };
        let bits = match () {
            () if (self.saturates || self.is_positive) && bits & sign != 0 => 0,
            () if self.saturates => bits.min(one),
            () => bits,
        };
        if self.to == Scalar::Tf32 { bits << 13 } else { bits }
    }

    /// A result whose magnitude is above the format's largest number.
    fn beyond(&self, format: Format, negative: bool, rounding: Rounding) -> u64 {
        let stays = match rounding {
            Rounding::Zero => true,
            Rounding::Down => !negative,
            Rounding::Up => negative,
            _ => false,
        };
        let magnitude =
            if self.is_finite || stays || !format.has_infinity() { format.largest() } else { format.infinity() };
        format.signed(negative, magnitude)
    }
}

/// `cvt` of one value: the immediate is a [`Conversion`].
pub(crate) struct Convert;

impl Body for Convert {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let conversion = Conversion::unpack(instruction.immediate);
        let source = instruction.sources[0];
        if !conversion.from.is_wide()
            && let Some(results) = conversion.of_lanes(&u32::read(registers, constants, source))
        {
            return write_element(registers, instruction.destinations[0], false, &results.map(u64::from), mask);
        }
        let mut values: [u64; LANES] = if conversion.from.is_wide() {
            u64::read(registers, constants, source)
        } else {
            u32::read(registers, constants, source).map(u64::from)
        };
        for value in &mut values {
            *value = conversion.convert(*value, 0);
        }
        write_element(registers, instruction.destinations[0], conversion.to.is_wide(), &values, mask);
    }
}

/// `cvt` of two values to one register, the first to its upper part: the immediate is a [`Conversion`]. Sources are two values, or
/// one register with both, and the random bits.
pub(crate) struct ConvertPair;

impl Body for ConvertPair {
    #[inline(always)]
    fn run(instruction: &Instruction, registers: &mut Registers, constants: &[Row], mask: u32) {
        let conversion = Conversion::unpack(instruction.immediate);
        let [upper, lower, random] = [0, 1, 2].map(|place| u32::read(registers, constants, instruction.sources[place]));
        let (from, to) = (conversion.from.packed_bits(), conversion.to.packed_bits());
        if !conversion.is_packed
            && let (Some(upper), Some(lower)) = (conversion.of_lanes(&upper), conversion.of_lanes(&lower))
        {
            let both = std::array::from_fn(|lane| upper[lane] << to | lower[lane]);
            return u32::write(registers, instruction.destinations[0], &both, mask);
        }
        let values = std::array::from_fn(|lane| {
            let (upper, lower) =
                if conversion.is_packed { (upper[lane] >> from, upper[lane]) } else { (upper[lane], lower[lane]) };
            // A value's sign is its topmost bit: higher bits do not count.
            let upper = conversion.convert(u64::from(upper), random[lane] >> 16);
            let lower = conversion.convert(u64::from(lower), random[lane]);
            (upper << to | lower) as u32
        });
        u32::write(registers, instruction.destinations[0], &values, mask);
    }
}

/// `cvt.pack.sat`: two integers, limited to the bits of the immediate (signed where it has 256 too), and the low bits of a third
/// above them.
pub(crate) struct PackIntegers;

impl LaneOperation for PackIntegers {
    type A = i32;
    type B = i32;
    type C = u32;
    type D = u32;
    #[inline(always)]
    fn apply(a: i32, b: i32, c: u32, i: u32) -> u32 {
        let (bits, signed) = (i & 255, i & 256 != 0);
        let (least, most) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        let part = |value: i32| value.clamp(least, most) as u32 & ((1 << bits) - 1);
        let above = u64::from(c) << (2 * bits);
        above as u32 | part(a) << bits | part(b)
    }
}

/// A conversion to `.s16`, extended to a 32-bit register, as registers that are wider than the type get it.
pub(crate) struct Extended<O>(PhantomData<O>);

impl<O: LaneOperation<D = i16>> LaneOperation for Extended<O> {
    type A = O::A;
    type B = O::B;
    type C = O::C;
    type D = i32;
    #[inline(always)]
    fn apply(a: O::A, b: O::B, c: O::C, i: u32) -> i32 {
        i32::from(O::apply(a, b, c, i))
    }
}
