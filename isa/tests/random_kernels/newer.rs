//! Instructions that GPUs from Ampere or Hopper on have.

use crate::conversions::{rounded, widened};
use crate::floats::{computed, extremum};
use crate::operation::{FloatFormat, Operation, integer, register};
use crate::random::Random;
use crate::reference::{Bf16, F16, F32, Operation as Arithmetic, PLAIN, Treatment, of_parts};
use crate::values::{low, meaning};
use FloatFormat::{Brain, Half, Single};
use rustc_apfloat::ieee::{Float8E4M3FN, Float8E5M2, Quad};
use rustc_apfloat::{Float, FloatConvert, Round};

/// An operation on 16 bits, or on two of them.
fn of_16_bits(
    random: &mut Random,
    text: &str,
    format: FloatFormat,
    count: usize,
    each: impl Fn(&[u64]) -> u64 + 'static,
) -> Operation {
    let operands = ["", "$a", "$a, $b", "$a, $b, $c"][count];
    let name = format.name();
    if random.one_in(2) {
        let text = format!("{text}.{name}x2 $d, {operands}");
        Operation::new(text, &vec![register(32); count], 32, move |values| of_parts::<F16>(values, &each))
            .canonical(format)
    } else {
        Operation::new(format!("{text}.{name} $d, {operands}"), &vec![register(16); count], 16, each).canonical(format)
    }
}

/// `fma` of bfloat16, and with `.relu`; signs of bfloat16.
pub fn brain_floats(random: &mut Random) -> Operation {
    match random.below(6) {
        0 => of_16_bits(random, "abs", Brain, 1, |values| values[0] & 0x7fff),
        1 => of_16_bits(random, "neg", Brain, 1, |values| values[0] ^ 0x8000),
        2 => {
            let flush = random.one_in(2);
            let text = if flush { "fma.rn.ftz.relu" } else { "fma.rn.relu" };
            let treatment = Treatment { flush, relu: true, ..PLAIN };
            of_16_bits(random, text, Half, 3, move |values| computed(Half, Arithmetic::Fma, values, treatment, 0))
        }
        3 => {
            let treatment = Treatment { relu: true, ..PLAIN };
            of_16_bits(random, "fma.rn.relu", Brain, 3, move |values| {
                computed(Brain, Arithmetic::Fma, values, treatment, 0)
            })
        }
        _ => of_16_bits(random, "fma.rn", Brain, 3, |values| computed(Brain, Arithmetic::Fma, values, PLAIN, 0)),
    }
}

/// `add`, `sub`, `mul` of bfloat16: from Hopper on.
pub fn brain_sums(random: &mut Random) -> Operation {
    let (name, operation) =
        random.pick(&[("add.rn", Arithmetic::Add), ("sub.rn", Arithmetic::Sub), ("mul.rn", Arithmetic::Mul)]);
    of_16_bits(random, name, Brain, 2, move |values| computed(Brain, operation, values, PLAIN, 0))
}

/// `min` and `max`: of halves, bfloat16 and, where a not-a-number wins, singles.
pub fn extrema(random: &mut Random) -> Operation {
    let format = random.pick(&[Half, Brain, Single]);
    let is_maximum = random.one_in(2);
    let flush = format != Brain && random.one_in(3);
    let nan_wins = format == Single || random.one_in(2);
    let text = format!(
        "{}{}{}",
        if is_maximum { "max" } else { "min" },
        if flush { ".ftz" } else { "" },
        if nan_wins { ".NaN" } else { "" }
    );
    let each = move |values: &[u64]| {
        if nan_wins && values[..2].iter().any(|value| format.is_nan(*value)) {
            return format.nan();
        }
        match format {
            Half => extremum::<F16>(values, is_maximum, flush),
            Brain => extremum::<Bf16>(values, is_maximum, false),
            _ => extremum::<F32>(values, is_maximum, flush),
        }
    };
    if format == Single {
        let source = crate::operation::float(Single);
        return Operation::new(format!("{text}.f32 $d, $a, $b"), &[source; 2], 32, each).canonical(Single);
    }
    of_16_bits(random, &text, format, 2, each)
}

/// Singles that become halves, bfloat16 or tf32, with `.relu` also.
pub fn narrowings(random: &mut Random) -> Operation {
    let source = crate::operation::float(Single);
    if random.one_in(5) {
        // The low bits are nothing to count on. ptxas' code makes infinity of a not-a-number that has no others.
        let nan = Single.nan() & !0x1fff;
        let text = format!(
            "setp.nan.f32 %q0, $a, $a; cvt.rna.tf32.f32 $d, $a; and.b32 $d, $d, 0xffffe000; selp.b32 $d, {nan}, $d, %q0"
        );
        return Operation::new(text, &[source], 32, move |values| {
            if Single.is_nan(values[0]) { nan } else { (values[0] + 0x1000) & 0xffff_e000 }
        });
    }
    let format = random.pick(&[Half, Brain]);
    let relu = random.one_in(3);
    // ptxas may flush what becomes a half.
    let (word, round) = random.pick(&[("rn", Round::NearestTiesToEven), ("rz", Round::TowardZero)]);
    let words = format!("cvt.{word}{}", if relu { ".relu" } else { "" });
    let name = format.name();
    let each = move |bits: u64| {
        let value = rounded(format, widened(Single, bits), round);
        if relu && !format.is_nan(value) && value & 0x8000 != 0 { 0 } else { value }
    };
    if format == Brain && random.one_in(2) {
        let text = format!("{words}.{name}.f32 $d, $a");
        return Operation::new(text, &[source], 16, move |values| each(values[0])).canonical(format);
    }
    // The first becomes the upper half.
    let text = format!("{words}.{name}x2.f32 $d, $a, $b");
    Operation::new(text, &[source; 2], 32, move |values| each(values[0]) << 16 | each(values[1])).canonical(format)
}

/// A value as an 8-bit float: the largest where it is larger.
fn byte_of(is_e4m3: bool, value: Quad, relu: bool) -> u64 {
    fn bits<T: Float>(value: Quad) -> u64
    where
        Quad: FloatConvert<T>,
    {
        let converted: T = value.convert_r(Round::NearestTiesToEven, &mut false).value;
        converted.to_bits() as u64
    }
    if value.is_nan() {
        return 0x7f;
    }
    if relu && value.is_negative() {
        return 0;
    }
    let (bits, largest) = if is_e4m3 { (bits::<Float8E4M3FN>(value), 0x7e) } else { (bits::<Float8E5M2>(value), 0x7b) };
    let sign = if value.is_negative() { 0x80 } else { 0 };
    (bits & 0x7f).min(largest) | sign
}

/// Conversions of 8-bit floats.
pub fn byte_floats(random: &mut Random) -> Operation {
    let is_e4m3 = random.one_in(2);
    let name = if is_e4m3 { "e4m3x2" } else { "e5m2x2" };
    if random.one_in(3) {
        let text = format!("cvt.rn.f16x2.{name} $d, $a");
        return Operation::new(text, &[register(16)], 32, move |values| {
            let half = |byte: u64| {
                let byte = u128::from(byte & 0xff);
                let value: Quad = match is_e4m3 {
                    true => Float8E4M3FN::from_bits(byte).convert(&mut false).value,
                    false => Float8E5M2::from_bits(byte).convert(&mut false).value,
                };
                rounded(Half, value, Round::TowardZero)
            };
            half(values[0]) | half(values[0] >> 8) << 16
        })
        .canonical(Half);
    }
    let relu = random.one_in(3);
    let words = format!("cvt.rn.satfinite{}.{name}", if relu { ".relu" } else { "" });
    if random.one_in(2) {
        return Operation::new(format!("{words}.f16x2 $d, $a"), &[register(32)], 16, move |values| {
            let each = |bits: u64| byte_of(is_e4m3, widened(Half, bits & 0xffff), relu);
            each(values[0]) | each(values[0] >> 16) << 8
        });
    }
    let source = crate::operation::float(Single);
    Operation::new(format!("{words}.f32 $d, $a, $b"), &[source; 2], 16, move |values| {
        let each = |bits: u64| byte_of(is_e4m3, widened(Single, bits), relu);
        each(values[0]) << 8 | each(values[1])
    })
}

/// Sums and extrema of pairs of 16 bits, extrema that are positive, and extrema of three: what dynamic programming takes (DPX).
pub fn dynamic_programming(random: &mut Random) -> Operation {
    let signed = random.one_in(2);
    let kind = if signed { "s16x2" } else { "u16x2" };
    let is_maximum = random.one_in(2);
    let name = if is_maximum { "max" } else { "min" };
    let best = move |x: i128, y: i128| if is_maximum { x.max(y) } else { x.min(y) };
    let relu = signed && random.one_in(2);
    let word = if relu { ".relu" } else { "" };
    let positive = move |value: i128| if relu { value.max(0) } else { value };
    let pair = move |values: &[u64]| {
        of_parts::<F16>(values, |half| {
            let [x, y] = [half[0], half[1]].map(|value| meaning(value, 16, signed));
            low(positive(best(x, y)), 16)
        })
    };
    let sum = |values: &[u64]| of_parts::<F16>(values, |half| (half[0] + half[1]) & 0xffff);
    match random.below(6) {
        0 => Operation::new(format!("add.{kind} $d, $a, $b"), &[register(32); 2], 32, sum),
        1 => Operation::new(format!("{name}{word}.{kind} $d, $a, $b"), &[register(32); 2], 32, pair),
        2 => {
            let text = format!("add.{kind} %t0, $a, $b; {name}{word}.{kind} $d, %t0, $c");
            Operation::new(text, &[register(32); 3], 32, move |values| pair(&[sum(values), values[2]]))
        }
        3 => {
            let text = format!("{name}.{kind} %t0, $a, $b; {name}{word}.{kind} $d, %t0, $c");
            Operation::new(text, &[register(32); 3], 32, move |values| {
                of_parts::<F16>(values, |half| {
                    let [x, y, z] = [0, 1, 2].map(|place| meaning(half[place], 16, signed));
                    low(positive(best(best(x, y), z)), 16)
                })
            })
        }
        4 => {
            let kind = if signed { "s32" } else { "u32" };
            let text = format!("add.{kind} %t0, $a, $b; {name}{word}.{kind} $d, %t0, $c");
            Operation::new(text, &[integer(32); 3], 32, move |values| {
                let sum = meaning((values[0] + values[1]) & 0xffff_ffff, 32, signed);
                low(positive(best(sum, meaning(values[2], 32, signed))), 32)
            })
        }
        _ => {
            let kind = if signed { "s32" } else { "u32" };
            let text = format!("{name}.{kind} %t0, $a, $b; {name}{word}.{kind} $d, %t0, $c");
            Operation::new(text, &[integer(32); 3], 32, move |values| {
                let [x, y, z] = [0, 1, 2].map(|place| meaning(values[place], 32, signed));
                low(positive(best(best(x, y), z)), 32)
            })
        }
    }
}
