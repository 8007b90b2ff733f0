//! `cvt` among integers and floats.

use crate::operation::{FloatFormat, Operation, float, integer, register};
use crate::random::Random;
use crate::values::{low, meaning, name, range};
use FloatFormat::{Brain, Double, Half, Single};
use rustc_apfloat::ieee::{self, Quad};
use rustc_apfloat::{Float, FloatConvert, Round};

const FORMATS: [FloatFormat; 3] = [Half, Single, Double];
const ROUNDINGS: [(&str, Round); 4] = [
    ("rn", Round::NearestTiesToEven),
    ("rz", Round::TowardZero),
    ("rm", Round::TowardNegative),
    ("rp", Round::TowardPositive),
];

/// A value of a format, as one that holds all.
pub fn widened(format: FloatFormat, bits: u64) -> Quad {
    let bits = u128::from(bits);
    match format {
        Half => ieee::Half::from_bits(bits).convert(&mut false).value,
        Brain => ieee::BFloat::from_bits(bits).convert(&mut false).value,
        Single => ieee::Single::from_bits(bits).convert(&mut false).value,
        Double => ieee::Double::from_bits(bits).convert(&mut false).value,
    }
}

/// A value rounded to a format.
pub fn rounded(format: FloatFormat, value: Quad, round: Round) -> u64 {
    fn bits<T: Float>(value: Quad, round: Round) -> u64
    where
        Quad: FloatConvert<T>,
    {
        let converted: T = value.convert_r(round, &mut false).value;
        converted.to_bits() as u64
    }
    match format {
        Half => bits::<ieee::Half>(value, round),
        Brain => bits::<ieee::BFloat>(value, round),
        Single => bits::<ieee::Single>(value, round),
        Double => bits::<ieee::Double>(value, round),
    }
}

/// A subnormal single as a zero.
fn flushed(format: FloatFormat, bits: u64) -> u64 {
    if format == Single && bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

/// Between 0 and 1, where a not-a-number is 0.
fn saturated(format: FloatFormat, bits: u64) -> u64 {
    let one = rounded(format, Quad::from_u128(1).value, Round::TowardZero);
    if format.is_nan(bits) || bits >> (format.width() - 1) != 0 { 0 } else { bits.min(one) }
}

/// Bits and sign of an integer type.
fn any_type(random: &mut Random) -> (u32, bool) {
    (random.pick(&[8, 16, 32, 64]), random.one_in(2))
}

/// The register that a type of so many bits takes.
fn register_of(bits: u32) -> u32 {
    bits.max(16)
}

/// From integer to integer.
pub fn of_integers(random: &mut Random) -> Operation {
    let ((to, to_signed), (from, from_signed)) = (any_type(random), any_type(random));
    let ((least, most), (lowest, highest)) = (range(to, to_signed), range(from, from_signed));
    // What every value fits in is never saturated: the assembler refuses the word.
    let saturates = (lowest < least || highest > most) && random.one_in(3);
    let word = if saturates { ".sat" } else { "" };
    let text = format!("cvt{word}.{}.{} $d, $a", name(to, to_signed), name(from, from_signed));
    let width = register_of(to);
    Operation::new(text, &[register(register_of(from))], width, move |values| {
        let value = meaning(values[0], from, from_signed);
        let value = if saturates { value.clamp(least, most) } else { value };
        // A register that is wider than the type is filled with its sign.
        low(meaning(low(value, to), to, to_signed), width)
    })
}

/// From integer to float.
pub fn to_floats(random: &mut Random) -> Operation {
    let (bits, signed) = any_type(random);
    let format = random.pick(&FORMATS);
    let (word, round) = random.pick(&ROUNDINGS);
    let (name_of_float, width) = (format.name(), format.width());
    // ptxas 12.9 converts the float to an integer where the next instruction stores a part of it, hence the `mov` between them.
    // Of a byte or a half of a word that is filled with its sign, it converts a negative number where the word is unsigned, hence the
    // rotation.
    let is_rotated = (bits, signed) == (32, false);
    let (before, rotated) = if is_rotated { ("shf.l.wrap.b32 %t0, $a, $a, 5; ", "%t0") } else { ("", "$a") };
    let kind = name(bits, signed);
    let text = format!("{before}cvt.{word}.{name_of_float}.{kind} $d, {rotated}; mov.b{width} $d, $d");
    let source = if is_rotated { register(bits) } else { integer(register_of(bits)) };
    Operation::new(text, &[source], format.width(), move |values| {
        let value = if is_rotated { u64::from((values[0] as u32).rotate_left(5)) } else { values[0] };
        rounded(format, Quad::from_i128(meaning(value, bits, signed)).value, round)
    })
}

/// From float to integer: clamped to the type; a not-a-number gives 0, or the upper bit alone where one of both types has 64 bits.
pub fn to_integers(random: &mut Random) -> Operation {
    let (bits, signed) = any_type(random);
    let format = random.pick(&FORMATS);
    let (word, _) = random.pick(&ROUNDINGS);
    let flush = format == Single && random.one_in(3);
    let words = if flush { ".ftz" } else { "" };
    let text = format!("cvt.{word}i{words}.{}.{} $d, $a", name(bits, signed), format.name());
    let width = register_of(bits);
    Operation::new(text, &[float(format)], width, move |values| {
        let bits_of_value = if flush { flushed(format, values[0]) } else { values[0] };
        if format.is_nan(bits_of_value) {
            return if format == Double || bits == 64 { low(low_of_nan(bits, signed), width) } else { 0 };
        }
        // A double holds every value of every format.
        let value = f64::from_bits(rounded(Double, widened(format, bits_of_value), Round::TowardZero));
        let whole = match word {
            "rn" => value.round_ties_even(),
            "rz" => value.trunc(),
            "rm" => value.floor(),
            _ => value.ceil(),
        };
        let (least, most) = range(bits, signed);
        low((whole as i128).clamp(least, most), width)
    })
}

/// What a conversion of not-a-number from or to 64 bits gives.
fn low_of_nan(bits: u32, signed: bool) -> i128 {
    meaning(1 << (bits - 1), bits, signed)
}

/// From float to float.
pub fn of_floats(random: &mut Random) -> Operation {
    let (to, from) = (random.pick(&FORMATS), random.pick(&FORMATS));
    let (word, round) = random.pick(&ROUNDINGS);
    // Where singles are narrowed to halves in another way than to the nearest, ptxas 12.9 may do that, or flush nothing.
    let (word, round) = if (from, to) == (Single, Half) { ROUNDINGS[0] } else { (word, round) };
    let flush = (to == Single || from == Single) && to != Double && from != Double && random.one_in(3);
    // To doubles, and between halves and singles, ptxas 12.9 may leave it out.
    let saturates = to != Double && (to == from || from == Double) && random.one_in(4);
    let words = format!("{}{}", if flush { ".ftz" } else { "" }, if saturates { ".sat" } else { "" });
    let finish = move |bits: u64| {
        let bits = if flush { flushed(to, bits) } else { bits };
        if saturates { saturated(to, bits) } else { bits }
    };
    let names = format!("{}.{} $d, $a", to.name(), from.name());
    let treated = move |bits: u64| if flush { flushed(from, bits) } else { bits };
    let operation = if to == from {
        Operation::new(format!("cvt.{word}i{words}.{names}"), &[float(from)], to.width(), move |values| {
            let value = treated(values[0]);
            let whole = rounded(to, widened(to, value).round_to_integral(round).value, Round::TowardZero);
            finish(whole)
        })
    } else if to.width() > from.width() {
        Operation::new(format!("cvt{words}.{names}"), &[float(from)], to.width(), move |values| {
            finish(rounded(to, widened(from, treated(values[0])), Round::TowardZero))
        })
    } else {
        Operation::new(format!("cvt.{word}{words}.{names}"), &[float(from)], to.width(), move |values| {
            finish(rounded(to, widened(from, treated(values[0])), round))
        })
    };
    operation.canonical(to)
}
