//! `cvt` and `cvta`: every pair of types with every rounding, against arithmetic in quadruple precision, which holds every value of
//! every type.

use crate::cases::{check, check_by, product};
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

const INTEGERS: [&str; 8] = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];
const ROUNDINGS: [(&str, &str, Round); 4] = [
    ("rn", "rni", Round::NearestTiesToEven),
    ("rz", "rzi", Round::TowardZero),
    ("rm", "rmi", Round::TowardNegative),
    ("rp", "rpi", Round::TowardPositive),
];

fn bits_of(name: &str) -> u32 {
    match name {
        "u8" | "s8" | "e4m3" | "e5m2" => 8,
        "u16" | "s16" | "f16" | "bf16" => 16,
        "u64" | "s64" | "f64" => 64,
        _ => 32,
    }
}

fn is_integer(name: &str) -> bool {
    INTEGERS.contains(&name)
}

/// The register that holds a value.
fn register_of(name: &str) -> u32 {
    bits_of(name).max(16)
}

fn low(value: u64, bits: u32) -> u64 {
    value & (u64::MAX >> (64 - bits))
}

/// The integer that the low bits stand for.
fn integer(name: &str, bits: u64) -> i128 {
    let width = bits_of(name);
    let value = i128::from(low(bits, width));
    if name.starts_with('s') && value >= 1 << (width - 1) { value - (1 << width) } else { value }
}

fn limits(name: &str) -> (i128, i128) {
    let width = bits_of(name);
    if name.starts_with('s') { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

fn widened<T: FloatConvert<Quad>>(value: T) -> Quad {
    value.convert(&mut false).value
}

/// The value of a type's bits.
fn value_of(name: &str, bits: u64) -> Quad {
    let bits128 = u128::from(low(bits, bits_of(name)));
    match name {
        "f16" => widened(Half::from_bits(bits128)),
        "bf16" => widened(BFloat::from_bits(bits128)),
        "f32" => widened(Single::from_bits(bits128)),
        "f64" => widened(Double::from_bits(bits128)),
        "e4m3" => widened(Float8E4M3FN::from_bits(bits128)),
        "e5m2" => widened(Float8E5M2::from_bits(bits128)),
        _ => Quad::from_i128(integer(name, bits)).value,
    }
}

fn narrowed<T: Float>(value: Quad, round: Round) -> u64
where
    Quad: FloatConvert<T>,
{
    let converted: T = value.convert_r(round, &mut false).value;
    converted.to_bits() as u64
}

/// A value in a float type.
fn rounded(name: &str, value: Quad, round: Round) -> u64 {
    match name {
        "f16" => narrowed::<Half>(value, round),
        "bf16" => narrowed::<BFloat>(value, round),
        "f32" => narrowed::<Single>(value, round),
        "e4m3" => narrowed::<Float8E4M3FN>(value, round),
        "e5m2" => narrowed::<Float8E5M2>(value, round),
        _ => narrowed::<Double>(value, round),
    }
}

/// Values that are special to some type, and others without order.
fn values(name: &str) -> Vec<u64> {
    let width = bits_of(name);
    let mut values: Vec<u64> = Vec::new();
    if is_integer(name) {
        let marks = [
            0, 1, 2, 3, 7, 8, 100, 127, 128, 129, 255, 256, 257, 2047, 2049, 2051, 32767, 32768, 65503, 65519, 65520,
            65535,
        ];
        values.extend(marks);
        for bit in [24, 25, 31, 32, 33, 53, 54, 62, 63] {
            values.extend([(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        }
        let negative: Vec<u64> = values.iter().map(|value| value.wrapping_neg()).collect();
        values.extend(negative);
    } else {
        let numbers = [
            0.0,
            0.25,
            0.5,
            0.75,
            1.0,
            1.5,
            2.5,
            3.5,
            126.5,
            127.4,
            127.5,
            128.5,
            255.4,
            255.5,
            256.5,
            32767.5,
            32768.5,
            65504.0,
            65519.0,
            65520.0,
            65535.5,
            65536.0,
            448.0,
            464.0,
            465.0,
            57344.0,
            61440.0,
            2147483647.5,
            2147483648.0,
            4294967295.5,
            4294967296.0,
            9007199254740993.0,
            9223372036854774784.0,
            9223372036854775808.0,
            18446744073709549568.0,
            18446744073709551616.0,
            3.4028234663852886e38,
            3.4028235677973366e38,
            1e-3,
            6.1e-5,
            5.9e-8,
            2.98e-8,
            1.1754943508222875e-38,
            1.1e-38,
            1.4e-45,
            7e-46,
            1e-310,
            1e300,
            1.0009765625,
            1.00048828125,
            1.0014648437499998,
            1.0000001192092896,
            1.00000006,
        ];
        for number in numbers {
            let quad = widened(Double::from_bits(u128::from(f64::to_bits(number))));
            for round in [Round::TowardZero, Round::TowardPositive] {
                let bits = rounded(name, quad, round);
                values.extend([bits, bits | 1 << (width - 1)]);
            }
        }
        // Infinity, not-a-numbers, the smallest subnormal.
        let infinity = rounded(name, Quad::INFINITY, Round::TowardZero);
        values.extend([infinity, infinity | 1 << (width - 1), infinity + 1, low(u64::MAX, width), 1]);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..24 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        values.push(state ^ state >> 29);
    }
    // Bits above the type's in the register do not count.
    let unused = if width == 8 { 0xa500 } else { 0 };
    let mut values: Vec<u64> = values.iter().map(|value| low(*value, width) | unused).collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn rows(name: &str) -> Vec<Vec<u64>> {
    values(name).into_iter().map(|value| vec![value]).collect()
}

#[derive(Clone, Copy, Default)]
struct Flags {
    flushes: bool,
    saturates: bool,
    is_finite: bool,
    is_positive: bool,
    /// Rounds floats to integral values.
    is_integral: bool,
}

fn flushed(value: Quad, is_single: bool) -> Quad {
    let smallest = value_of("f32", 0x0080_0000);
    let is_small = is_single && !value.is_nan() && value.abs() < smallest;
    if is_small { Quad::ZERO.copy_sign(value) } else { value }
}

/// The right result, in the register of the destination; `None` for any not-a-number.
fn expected(to: &str, from: &str, round: Round, flags: Flags, source: u64) -> Option<u64> {
    let value = flushed(value_of(from, source), flags.flushes && from == "f32");
    if is_integer(to) {
        let (least, most) = limits(to);
        let result = if is_integer(from) {
            let exact = integer(from, source);
            if flags.saturates { exact.clamp(least, most) } else { exact }
        } else if value.is_nan() {
            if from != "f64" && bits_of(to) < 64 { 0 } else { 1 << (bits_of(to) - 1) }
        } else {
            value.to_i128_r(120, round, &mut false).value.clamp(least, most)
        };
        // Extended to the register by the type's sign.
        return Some(low(integer(to, result as u64) as u64, register_of(to)));
    }
    let zero = Some(0);
    let value = if flags.is_integral { value.round_to_integral(round).value } else { value };
    if value.is_nan() {
        return match to {
            _ if flags.saturates => zero,
            "f64" => None,
            _ => Some(low(u64::MAX, bits_of(to)) >> 1),
        };
    }
    if (flags.saturates || flags.is_positive) && (value.is_negative() || value.is_zero()) {
        return zero;
    }
    let one = Quad::from_i128(1).value;
    let value = if flags.saturates && value > one { one } else { value };
    let mut result = rounded(to, value, round);
    let sign = 1 << (bits_of(to) - 1);
    if flags.is_finite && value_of(to, result).is_infinite() {
        result -= 1;
    }
    if flags.flushes && to == "f32" && result & 0x7f80_0000 == 0 {
        result &= sign;
    }
    Some(result)
}

fn check_cvt(to: &str, from: &str, words: &str, round: Round, flags: Flags) {
    let instruction = format!("cvt{words}.{to}.{from} $d, $a");
    check_by(&instruction, &[register_of(from)], register_of(to), &rows(from), |row, result| {
        match expected(to, from, round, flags, row[0]) {
            Some(right) if result == right => Ok(()),
            Some(right) => Err(format!("{right:#x} expected")),
            None if value_of(to, result).is_nan() => Ok(()),
            None => Err("not-a-number expected".to_owned()),
        }
    });
}

#[test]
fn integers_to_integers() {
    for to in INTEGERS {
        for from in INTEGERS {
            check_cvt(to, from, "", Round::TowardZero, Flags::default());
            let ((least, most), (source_least, source_most)) = (limits(to), limits(from));
            if source_least < least || source_most > most {
                check_cvt(to, from, ".sat", Round::TowardZero, Flags { saturates: true, ..Flags::default() });
            }
        }
    }
}

#[test]
fn floats_to_integers() {
    for to in INTEGERS {
        for from in FLOATS {
            for (_, word, round) in ROUNDINGS {
                check_cvt(to, from, &format!(".{word}"), round, Flags::default());
                if from == "f32" {
                    let flags = Flags { flushes: true, ..Flags::default() };
                    check_cvt(to, from, &format!(".{word}.ftz"), round, flags);
                }
            }
            check_cvt(to, from, ".rni.sat", Round::NearestTiesToEven, Flags::default());
        }
    }
}

#[test]
fn integers_to_floats() {
    for to in FLOATS {
        for from in INTEGERS {
            for (word, _, round) in ROUNDINGS {
                check_cvt(to, from, &format!(".{word}"), round, Flags::default());
                if to != "bf16" {
                    let flags = Flags { saturates: true, ..Flags::default() };
                    check_cvt(to, from, &format!(".{word}.sat"), round, flags);
                }
            }
        }
    }
}

#[test]
fn floats_to_floats() {
    for to in FLOATS {
        for from in FLOATS {
            let narrows = to != from && (bits_of(to) < bits_of(from) || bits_of(to) == 16 && bits_of(from) == 16);
            let roundings: &[(&str, &str, Round)] = if narrows || to == from { &ROUNDINGS } else { &ROUNDINGS[..1] };
            for (word, integral, round) in roundings {
                let (word, is_integral) = match () {
                    () if to == from => (format!(".{integral}"), true),
                    () if narrows => (format!(".{word}"), false),
                    () => (String::new(), false),
                };
                let plain = Flags { is_integral, ..Flags::default() };
                check_cvt(to, from, &word, *round, plain);
                let has_single = to == "f32" || from == "f32";
                if has_single {
                    check_cvt(to, from, &format!("{word}.ftz"), *round, Flags { flushes: true, ..plain });
                }
                if to != "bf16" {
                    check_cvt(to, from, &format!("{word}.sat"), *round, Flags { saturates: true, ..plain });
                    if has_single {
                        let flags = Flags { saturates: true, flushes: true, ..plain };
                        check_cvt(to, from, &format!("{word}.ftz.sat"), *round, flags);
                    }
                }
            }
        }
    }
    for name in ["f16", "f32", "f64"] {
        check_cvt(name, name, ".sat", Round::NearestTiesToEven, Flags { saturates: true, ..Flags::default() });
    }
}

#[test]
fn positive_and_finite_halves() {
    for to in ["f16", "bf16"] {
        for (word, _, round) in &ROUNDINGS[..2] {
            for (words, is_positive, is_finite) in
                [(".relu", true, false), (".satfinite", false, true), (".relu.satfinite", true, true)]
            {
                let flags = Flags { is_positive, is_finite, ..Flags::default() };
                check_cvt(to, "f32", &format!(".{word}{words}"), *round, flags);
            }
        }
    }
}

/// Values of pairs: each with a neighbour, both ways.
fn pairs(name: &str) -> Vec<Vec<u64>> {
    let values = values(name);
    let next = values.iter().cycle().skip(7);
    values.iter().zip(next).map(|(a, b)| vec![*a, *b]).collect()
}

#[test]
fn pairs_of_halves() {
    for to in ["f16", "bf16"] {
        for (word, _, round) in &ROUNDINGS[..2] {
            for (words, is_positive, is_finite) in
                [("", false, false), (".relu", true, false), (".satfinite", false, true)]
            {
                let flags = Flags { is_positive, is_finite, ..Flags::default() };
                let instruction = format!("cvt.{word}{words}.{to}x2.f32 $d, $a, $b");
                check(&instruction, &[32, 32], 32, &pairs("f32"), |row| {
                    let [upper, lower] =
                        [0, 1].map(|place| expected(to, "f32", *round, flags, row[place]).unwrap_or(0));
                    upper << 16 | lower
                });
            }
        }
    }
}

/// A format of few bits, by all its values: bits and value.
fn small_format(name: &str) -> Vec<(u64, f64)> {
    let (exponent_bits, fraction_bits) = match name {
        "e4m3" => (4, 3),
        "e5m2" => (5, 2),
        "e2m3" => (2, 3),
        "e3m2" => (3, 2),
        _ => (2, 1),
    };
    let bias = (1 << (exponent_bits - 1)) - 1;
    let count = 1u64 << (exponent_bits + fraction_bits);
    let finite = match name {
        "e4m3" => count - 1,
        "e5m2" => count - 4,
        _ => count,
    };
    let value = |bits: u64| {
        let fraction = (bits & ((1 << fraction_bits) - 1)) as f64 / f64::from(1 << fraction_bits);
        let exponent = (bits >> fraction_bits) as i32;
        if exponent == 0 { fraction * 2f64.powi(1 - bias) } else { (1.0 + fraction) * 2f64.powi(exponent - bias) }
    };
    (0..finite).map(|bits| (bits, value(bits))).collect()
}

/// The nearest value of a small format, the even one of two; the largest where the value is larger; positive where asked for.
fn nearest(name: &str, value: f64, is_positive: bool) -> u64 {
    let all = small_format(name);
    let (largest, _) = all[all.len() - 1];
    let sign = (largest + 1).next_power_of_two();
    let sign = match name {
        "e4m3" | "e5m2" => 0x80,
        _ => sign,
    };
    if value.is_nan() {
        return if matches!(name, "e4m3" | "e5m2") { 0x7f } else { largest };
    }
    if is_positive && (value.is_sign_negative() || value == 0.0) {
        return 0;
    }
    // Differences of numbers that are much larger than the format's would be rounded.
    let magnitude = value.abs().min(all[all.len() - 1].1);
    let mut best = all[0];
    for candidate in all {
        let (near, far) = ((candidate.1 - magnitude).abs(), (best.1 - magnitude).abs());
        if near < far || (near == far && candidate.0 % 2 == 0) {
            best = candidate;
        }
    }
    best.0 | if value.is_sign_negative() { sign } else { 0 }
}

const SMALL: [(&str, u32); 5] = [("e4m3", 8), ("e5m2", 8), ("e2m3", 8), ("e3m2", 8), ("e2m1", 4)];

#[test]
fn pairs_of_small_floats() {
    for (to, bits) in SMALL {
        for (words, is_positive) in [("", false), (".relu", true)] {
            let instruction = format!("cvt.rn.satfinite{words}.{to}x2.f32 $d, $a, $b");
            let single = |bits: u64| f64::from(f32::from_bits(bits as u32));
            check(&instruction, &[32, 32], 16, &pairs("f32"), |row| {
                nearest(to, single(row[0]), is_positive) << bits | nearest(to, single(row[1]), is_positive)
            });
            for half in ["f16", "bf16"] {
                let packed: Vec<Vec<u64>> = pairs(half).iter().map(|row| vec![row[0] << 16 | row[1]]).collect();
                let value = |bits: u64| single(rounded("f32", value_of(half, bits), Round::NearestTiesToEven));
                check(&format!("cvt.rn.satfinite{words}.{to}x2.{half}x2 $d, $a"), &[32], 16, &packed, |row| {
                    nearest(to, value(row[0] >> 16), is_positive) << bits | nearest(to, value(row[0]), is_positive)
                });
            }
        }
    }
}

#[test]
fn small_floats_to_pairs_of_halves() {
    for (from, bits) in SMALL {
        let all = small_format(from);
        let sign =
            if bits == 8 && !from.starts_with("e4") && !from.starts_with("e5") { 1u64 << 5 } else { 1 << (bits - 1) };
        let half = |bits: u64| -> u64 {
            let magnitude = bits & (sign - 1);
            let negative = if bits & sign != 0 { 0x8000 } else { 0 };
            let value = match all.iter().find(|(known, _)| *known == magnitude) {
                Some((_, value)) => half::f16::from_f64(*value).to_bits(),
                None if from == "e5m2" && magnitude == 0x7c => 0x7c00,
                None => return 0x7fff,
            };
            u64::from(value) | negative
        };
        let count = 2 * sign;
        let rows: Vec<Vec<u64>> = (0..count).map(|lower| vec![((lower * 7 + 3) % count) << bits | lower]).collect();
        check(&format!("cvt.rn.f16x2.{from}x2 $d, $a"), &[16], 32, &rows, |row| {
            half(row[0] >> bits) << 16 | half(row[0] & ((1 << bits) - 1))
        });
        check(&format!("cvt.rn.relu.f16x2.{from}x2 $d, $a"), &[16], 32, &rows, |row| {
            let positive = |value: u64| if value & 0x8000 != 0 { 0 } else { value };
            positive(half(row[0] >> bits)) << 16 | positive(half(row[0] & ((1 << bits) - 1)))
        });
    }
}

#[test]
fn tensor_floats() {
    // The exponent is that of single precision: rounding is a matter of the low 13 bits.
    let finite =
        |bits: u64, add: u64| if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { (bits + add) & !0x1fff };
    let limited = |bits: u64| if bits & 0x7fff_ffff == 0x7f80_0000 { bits & 0x8000_0000 | 0x7f7f_e000 } else { bits };
    let positive = |bits: u64| if bits & 0x8000_0000 != 0 { 0 } else { bits };
    let infinite = |bits: u64| bits & 0x7fff_ffff == 0x7f80_0000;
    let ties_away = |bits: u64| if infinite(bits) { bits } else { finite(bits, 0x1000) };
    let nearest = |bits: u64| if infinite(bits) { bits } else { finite(bits, 0xfff + (bits >> 13 & 1)) };
    let cut = |bits: u64| finite(bits, 0);
    let rows = rows("f32");
    check("cvt.rna.tf32.f32 $d, $a", &[32], 32, &rows, |row| ties_away(row[0]));
    check("cvt.rna.satfinite.tf32.f32 $d, $a", &[32], 32, &rows, |row| limited(ties_away(row[0])));
    check("cvt.rn.tf32.f32 $d, $a", &[32], 32, &rows, |row| nearest(row[0]));
    check("cvt.rn.satfinite.tf32.f32 $d, $a", &[32], 32, &rows, |row| limited(nearest(row[0])));
    check("cvt.rn.relu.tf32.f32 $d, $a", &[32], 32, &rows, |row| positive(nearest(row[0])));
    check("cvt.rz.tf32.f32 $d, $a", &[32], 32, &rows, |row| cut(row[0]));
    check("cvt.rz.relu.satfinite.tf32.f32 $d, $a", &[32], 32, &rows, |row| positive(limited(cut(row[0]))));
}

#[test]
fn stochastic_rounding_carries_out_of_the_lost_bits() {
    // Normal numbers: the low 13 (of halves) or 16 bits are lost, and the random bits are added to them.
    let values =
        [0x3f80_0000, 0x3f80_0001, 0x3f80_1000, 0x3f80_1fff, 0x3f80_8000, 0xbf80_ffff, 0x4049_0fdb, 0xc2f6_e979];
    let random = [0, 0xffff_ffff, 0x1fff_0001, 0x0001_1fff, 0x8000_7fff, 0x1000_f000];
    let half = |bits: u64, random: u64| {
        let sum = bits + (random & 0x1fff);
        let exponent = (sum >> 23 & 0xff) - 112;
        (sum >> 16 & 0x8000) | exponent << 10 | (sum >> 13 & 0x3ff)
    };
    let rows = product(&[&values, &values, &random]);
    check("cvt.rs.f16x2.f32 $d, $a, $b, $c", &[32, 32, 32], 32, &rows, |row| {
        half(row[0], row[2] >> 16) << 16 | half(row[1], row[2])
    });
    check("cvt.rs.bf16x2.f32 $d, $a, $b, $c", &[32, 32, 32], 32, &rows, |row| {
        (row[0] + (row[2] >> 16)) >> 16 << 16 | (row[1] + (row[2] & 0xffff)) >> 16
    });
}

#[test]
fn packed_integers() {
    let values = [
        0,
        1,
        2,
        7,
        8,
        15,
        16,
        127,
        128,
        255,
        256,
        32767,
        32768,
        65535,
        65536,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0xffff_fff8,
        0xffff_ff7f,
    ];
    let part = |bits: u32, signed: bool, value: u64| {
        let value = i64::from(value as u32 as i32);
        let (least, most) = if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        value.clamp(least, most) as u64 & ((1 << bits) - 1)
    };
    for (name, signed) in [("u16", false), ("s16", true)] {
        check(&format!("cvt.pack.sat.{name}.s32 $d, $a, $b"), &[32, 32], 32, &product(&[&values, &values]), |row| {
            part(16, signed, row[0]) << 16 | part(16, signed, row[1])
        });
    }
    for (name, bits, signed) in
        [("u8", 8, false), ("s8", 8, true), ("u4", 4, false), ("s4", 4, true), ("u2", 2, false), ("s2", 2, true)]
    {
        let rows = product(&[&values, &values, &[0, 0x1234_5678, 0xffff_ffff]]);
        check(&format!("cvt.pack.sat.{name}.s32.b32 $d, $a, $b, $c"), &[32, 32, 32], 32, &rows, |row| {
            low(row[2] << (2 * bits) | part(bits, signed, row[0]) << bits | part(bits, signed, row[1]), 32)
        });
    }
}

#[test]
fn registers_wider_than_the_type() {
    let rows = product(&[&[0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x12_3456, 0xffff_ff80]]);
    for width in [32, 64] {
        for to in ["u8", "s8", "u16", "s16"] {
            check(&format!("cvt.{to}.u32 $d, $a"), &[32], width, &rows, |row| low(integer(to, row[0]) as u64, width));
        }
        for to in ["s8", "s16"] {
            let single = product(&[&[f32::to_bits(-3.0).into(), f32::to_bits(-1e9).into(), f32::to_bits(70.0).into()]]);
            check(&format!("cvt.rzi.{to}.f32 $d, $a"), &[32], width, &single, |row| {
                let (least, most) = limits(to);
                low((f32::from_bits(row[0] as u32) as i128).clamp(least, most) as u64, width)
            });
        }
    }
    check("cvt.u32.u16 $d, $a", &[64], 32, &rows, |row| row[0] & 0xffff);
    check("cvt.s32.s8 $d, $a", &[64], 32, &rows, |row| low(integer("s8", row[0]) as u64, 32));
}

#[test]
fn addresses_go_to_generic_ones_and_back() {
    let rows = product(&[&[0x40, 0x1234, 0xfff0]]);
    for space in ["shared", "local", "global", "const"] {
        let round_trip = format!("cvta.{space}.u64 $d, $a; cvta.to.{space}.u64 $d, $d");
        check(&round_trip, &[64], 64, &rows, |row| row[0]);
    }
}
