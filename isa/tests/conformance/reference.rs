//! The right results of floating-point instructions, computed with arbitrary-precision arithmetic of its own rounding (`rustc_apfloat`),
//! and the operands to try.

use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

/// A format and its not-a-numbers.
pub trait Format {
    /// The arithmetic.
    type F: Float + FloatConvert<Quad>;
    /// Its name in PTX.
    const NAME: &'static str;
    /// Bits of a value.
    const WIDTH: u32;
    /// Bits of the fraction.
    const FRACTION: u32;
    /// The not-a-number that an operation on these operands gives.
    fn nan(operands: &[u64]) -> u64;
}

/// `.f32`
pub struct F32;
/// `.f64`
pub struct F64;
/// `.f16`
pub struct F16;
/// `.bf16`
pub struct Bf16;

impl Format for F32 {
    type F = Single;
    const NAME: &'static str = "f32";
    const WIDTH: u32 = 32;
    const FRACTION: u32 = 23;
    fn nan(_: &[u64]) -> u64 {
        0x7fff_ffff
    }
}
impl Format for F64 {
    type F = Double;
    const NAME: &'static str = "f64";
    const WIDTH: u32 = 64;
    const FRACTION: u32 = 52;
    /// The first operand that is not a number, quiet; what `CUDART_NAN` is where none is.
    fn nan(operands: &[u64]) -> u64 {
        let first = operands.iter().find(|operand| is_nan::<F64>(**operand));
        first.map_or(0xfff8_0000_0000_0000, |operand| operand | 1 << 51)
    }
}
impl Format for F16 {
    type F = Half;
    const NAME: &'static str = "f16";
    const WIDTH: u32 = 16;
    const FRACTION: u32 = 10;
    fn nan(_: &[u64]) -> u64 {
        0x7fff
    }
}
impl Format for Bf16 {
    type F = BFloat;
    const NAME: &'static str = "bf16";
    const WIDTH: u32 = 16;
    const FRACTION: u32 = 7;
    fn nan(_: &[u64]) -> u64 {
        0x7fff
    }
}

/// The sign bit.
pub fn sign<T: Format>() -> u64 {
    1 << (T::WIDTH - 1)
}

/// The bits of infinity.
pub fn infinity<T: Format>() -> u64 {
    sign::<T>() - (1 << T::FRACTION)
}

/// The value's bits without its sign.
pub fn magnitude<T: Format>(bits: u64) -> u64 {
    bits & (sign::<T>() - 1)
}

/// Whether the value is not a number.
pub fn is_nan<T: Format>(bits: u64) -> bool {
    magnitude::<T>(bits) > infinity::<T>()
}

/// The value 1.
pub fn one<T: Format>() -> u64 {
    let exponent_bits = T::WIDTH - 1 - T::FRACTION;
    ((1 << (exponent_bits - 1)) - 1) << T::FRACTION
}

/// Subnormals become zeros of their sign.
pub fn flush<T: Format>(bits: u64) -> u64 {
    if magnitude::<T>(bits) < 1 << T::FRACTION { bits & sign::<T>() } else { bits }
}

/// Clamps to 0 to 1; not-a-number gives 0.
pub fn saturate<T: Format>(bits: u64) -> u64 {
    if is_nan::<T>(bits) || bits & sign::<T>() != 0 { 0 } else { bits.min(one::<T>()) }
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a * b
    Mul,
    /// a / b
    Div,
    /// a * b + c
    Fma,
    /// 1 / a
    Rcp,
    /// The square root of a.
    Sqrt,
}

/// How it is rounded and treated.
#[derive(Clone, Copy, Debug)]
pub struct Treatment {
    /// Rounding.
    pub round: Round,
    /// Subnormal operands and results are zeros.
    pub flush: bool,
    /// The result is clamped to 0 to 1.
    pub saturate: bool,
    /// Negative results are 0.
    pub relu: bool,
}

/// To the nearest, nothing else.
pub const PLAIN: Treatment = Treatment { round: Round::NearestTiesToEven, flush: false, saturate: false, relu: false };

/// The roundings of PTX and their names.
pub const ROUNDINGS: [(&str, Round); 4] = [
    (".rn", Round::NearestTiesToEven),
    (".rz", Round::TowardZero),
    (".rm", Round::TowardNegative),
    (".rp", Round::TowardPositive),
];

/// The result of an operation.
pub fn result<T: Format>(operation: Operation, operands: &[u64], treatment: Treatment) -> u64 {
    let treat = |bits: u64| if treatment.flush { flush::<T>(bits) } else { bits };
    let operands: Vec<u64> = operands.iter().map(|operand| treat(*operand)).collect();
    let value = |index: usize| T::F::from_bits(u128::from(operands[index]));
    let round = treatment.round;
    let exact = match operation {
        Operation::Add => value(0).add_r(value(1), round).value,
        Operation::Sub => value(0).sub_r(value(1), round).value,
        Operation::Mul => value(0).mul_r(value(1), round).value,
        Operation::Div => value(0).div_r(value(1), round).value,
        Operation::Fma => value(0).mul_add_r(value(1), value(2), round).value,
        Operation::Rcp => T::F::from_bits(u128::from(one::<T>())).div_r(value(0), round).value,
        Operation::Sqrt => T::F::from_bits(u128::from(square_root::<T>(operands[0], round))),
    };
    let bits = if exact.is_nan() { T::nan(&operands) } else { treat(exact.to_bits() as u64) };
    if treatment.saturate {
        saturate::<T>(bits)
    } else if treatment.relu && bits & sign::<T>() != 0 {
        0
    } else {
        bits
    }
}

/// The square root: found from an estimate by comparing squares, which are exact in 113 bits.
fn square_root<T: Format>(bits: u64, round: Round) -> u64 {
    let wide = |bits: u64| T::F::from_bits(u128::from(bits)).convert(&mut false).value;
    let value: Quad = wide(bits);
    if is_nan::<T>(bits) || magnitude::<T>(bits) == 0 || bits == infinity::<T>() {
        return bits;
    }
    if bits & sign::<T>() != 0 {
        return infinity::<T>() | 1;
    }
    let square = |value: Quad| value.mul_r(value, Round::TowardZero).value;
    let estimate = match T::WIDTH {
        32 => u64::from(f32::from_bits(bits as u32).sqrt().to_bits()),
        _ => f64::from_bits(bits).sqrt().to_bits(),
    };
    let mut below = estimate;
    while square(wide(below)) > value {
        below -= 1;
    }
    while square(wide(below + 1)) <= value {
        below += 1;
    }
    if square(wide(below)) == value {
        return below;
    }
    let twice = wide(below).add_r(wide(below + 1), Round::TowardZero).value;
    let two = Quad::from_u128(2).value;
    let middle = twice.div_r(two, Round::TowardZero).value;
    match round {
        Round::TowardPositive => below + 1,
        Round::NearestTiesToEven if square(middle) < value => below + 1,
        _ => below,
    }
}

/// Zeros, subnormals, values next to powers of two, halfway cases, extremes, infinities, not-a-numbers; of both signs.
pub fn edges<T: Format>() -> Vec<u64> {
    let unit = 1u64 << T::FRACTION;
    let (one, infinity) = (one::<T>(), infinity::<T>());
    let precision = u64::from(T::FRACTION) * unit;
    let mut values = vec![
        0,
        1,
        unit / 2 + 1,
        unit - 1,
        unit,
        unit + 1,
        one - unit - 1,
        one - 1,
        one,
        one + 1,
        one + unit / 2,
        one + unit / 2 + 1,
        one + unit + unit / 3,
        // The exponents at which a unit of 1 is lost, and where a half of it decides.
        one + precision.min(infinity - one - 2 * unit),
        one - precision.min(one - 2 * unit) - 1,
        one + (precision + unit).min(infinity - one - unit),
        one / 2,
        infinity - unit,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity + unit / 2 + 5,
    ];
    values.extend(values.clone().iter().map(|value| value | sign::<T>()));
    values
}

/// Fewer of them, for triples.
pub fn few_edges<T: Format>() -> Vec<u64> {
    let unit = 1u64 << T::FRACTION;
    let (one, infinity) = (one::<T>(), infinity::<T>());
    let negative = sign::<T>();
    vec![
        0,
        negative,
        1,
        unit - 1,
        unit | negative,
        one - 1,
        one,
        (one + 1) | negative,
        one + u64::from(T::FRACTION) * unit,
        infinity - 1,
        infinity,
        infinity | negative,
        infinity + unit / 2 + 5,
    ]
}

/// A generator of numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// Operands: of any bits, or of exponents that are near each other.
    pub fn operands<T: Format>(&mut self, count: usize) -> Vec<u64> {
        let any = self.next().is_multiple_of(3);
        let exponent = self.next() % (infinity::<T>() >> T::FRACTION);
        let mask = sign::<T>() | (sign::<T>() - 1);
        let near = |random: &mut Random| {
            let bits = random.next() & mask;
            if any {
                return bits;
            }
            let exponent = (exponent + random.next() % 5) % (infinity::<T>() >> T::FRACTION);
            bits & (sign::<T>() | ((1 << T::FRACTION) - 1)) | exponent << T::FRACTION
        };
        (0..count).map(|_| near(self)).collect()
    }

    /// Rows of operands.
    pub fn rows<T: Format>(&mut self, rows: usize, count: usize) -> Vec<Vec<u64>> {
        (0..rows).map(|_| self.operands::<T>(count)).collect()
    }
}

/// Two rows of operands of a format in one, for packed instructions.
pub fn packed<T: Format>(rows: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let other = rows.iter().rev();
    rows.iter()
        .zip(other)
        .map(|(low, high)| low.iter().zip(high).map(|(low, high)| low | high << T::WIDTH).collect())
        .collect()
}

/// A packed result, from that of each part.
pub fn of_parts<T: Format>(row: &[u64], part: impl Fn(&[u64]) -> u64) -> u64 {
    let mask = sign::<T>() | (sign::<T>() - 1);
    let low: Vec<u64> = row.iter().map(|value| value & mask).collect();
    let high: Vec<u64> = row.iter().map(|value| value >> T::WIDTH).collect();
    part(&low) | part(&high) << T::WIDTH
}

/// Operands whose results are near values of the format, or near zero: products that the third operand nearly cancels, dividends
/// that are nearly a multiple of the divisor, near squares.
pub fn hard_rows<T: Format>(operation: Operation, seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random(seed);
    let mut rows = Vec::new();
    for _ in 0..1500 {
        let operands = random.operands::<T>(2);
        let (a, b) = (operands[0], operands[1]);
        let nudge = |value: u64, random: &mut Random| {
            value.wrapping_add(random.next() % 5).wrapping_sub(2) & (sign::<T>() | (sign::<T>() - 1))
        };
        let product = |a: u64, b: u64| result::<T>(Operation::Mul, &[a, b], PLAIN);
        rows.push(match operation {
            Operation::Fma => vec![a, b, nudge(product(a, b) ^ sign::<T>(), &mut random)],
            Operation::Div => vec![nudge(product(a, b), &mut random), b],
            Operation::Sqrt => vec![nudge(magnitude::<T>(product(a, a)), &mut random)],
            Operation::Rcp => vec![nudge(one::<T>() + (a & 0xff), &mut random)],
            _ => vec![a, nudge(a ^ sign::<T>(), &mut random)],
        });
    }
    if operation == Operation::Fma {
        // Products that are halfway between two values, and a summand far below that decides.
        let unit = 1u64 << T::FRACTION;
        for _ in 0..1000 {
            let high = random.next() % 4 * unit;
            let a = infinity::<T>() - 3 * unit - high + ((random.next() % unit) | 1);
            let low = random.next() % (one::<T>() - 12 * unit);
            rows.push(vec![a, one::<T>() + unit / 2, low | random.next() & sign::<T>()]);
        }
    }
    rows
}

/// Edge values in every combination, and random ones.
pub fn rows<T: Format>(count: usize, seed: u64) -> Vec<Vec<u64>> {
    let edges = if count == 3 { few_edges::<T>() } else { edges::<T>() };
    let mut rows = crate::cases::product(&vec![&edges[..]; count]);
    rows.extend(Random(seed).rows::<T>(1000, count));
    rows
}
