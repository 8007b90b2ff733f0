//! Comparison and selection against orderings of exact values.

use crate::cases::{check, check_all, product};
use crate::values::*;
use std::cmp::Ordering;

/// Comparisons by name: true for less, equal, greater, unordered.
const COMPARISONS: [(&str, [bool; 4]); 14] = [
    ("eq", [false, true, false, false]),
    ("ne", [true, false, true, false]),
    ("lt", [true, false, false, false]),
    ("le", [true, true, false, false]),
    ("gt", [false, false, true, false]),
    ("ge", [false, true, true, false]),
    ("equ", [false, true, false, true]),
    ("neu", [true, false, true, true]),
    ("ltu", [true, false, false, true]),
    ("leu", [true, true, false, true]),
    ("gtu", [false, false, true, true]),
    ("geu", [false, true, true, true]),
    ("num", [true, true, true, false]),
    ("nan", [false, false, false, true]),
];

fn outcome(truths: [bool; 4], ordering: Option<Ordering>) -> bool {
    match ordering {
        Some(Ordering::Less) => truths[0],
        Some(Ordering::Equal) => truths[1],
        Some(Ordering::Greater) => truths[2],
        None => truths[3],
    }
}

/// A float format: its name, the register's bits, the bits of exponent and of fraction.
#[derive(Clone, Copy)]
struct Format {
    name: &'static str,
    bits: u32,
    fraction: u32,
}

const HALF: Format = Format { name: "f16", bits: 16, fraction: 10 };
const BRAIN: Format = Format { name: "bf16", bits: 16, fraction: 7 };
const SINGLE: Format = Format { name: "f32", bits: 32, fraction: 23 };
const DOUBLE: Format = Format { name: "f64", bits: 64, fraction: 52 };

impl Format {
    fn exponent_mask(self) -> u64 {
        let exponent = self.bits - 1 - self.fraction;
        ((1 << exponent) - 1) << self.fraction
    }

    fn edges(self) -> Vec<u64> {
        let infinity = self.exponent_mask();
        let one = infinity >> 1 & infinity;
        let magnitudes = [
            0,
            1,
            (1 << self.fraction) - 1,
            1 << self.fraction,
            one,
            one + 1,
            infinity - 1,
            infinity,
            infinity + 1,
            infinity | 1 << (self.fraction - 1),
        ];
        magnitudes.into_iter().flat_map(|magnitude| [magnitude, magnitude | 1 << (self.bits - 1)]).collect()
    }

    /// Order of two values: NaN has none; a zero, or a value that is flushed to it, is the same with either sign.
    fn order(self, a: u64, b: u64, flush: bool) -> Option<Ordering> {
        let [a, b] = [a, b].map(|value| {
            let magnitude = (value & !(1 << (self.bits - 1))) as i64;
            let is_subnormal = magnitude as u64 & self.exponent_mask() == 0;
            let magnitude = if flush && is_subnormal { 0 } else { magnitude };
            let negative = value >> (self.bits - 1) & 1 != 0;
            (magnitude as u64 <= self.exponent_mask()).then_some(if negative { -magnitude } else { magnitude })
        });
        Some(a?.cmp(&b?))
    }
}

#[test]
fn integers_in_order() {
    for (bits, signed) in INTEGERS {
        let rows = product(&[&edges(bits), &edges(bits)]);
        let order = |row: &[u64]| meaning(row[0], bits, signed).cmp(&meaning(row[1], bits, signed));
        let kind = name(bits, signed);
        for (comparison, truths) in &COMPARISONS[..6] {
            let truth = |row: &[u64]| outcome(*truths, Some(order(row)));
            check(&format!("setp.{comparison}.{kind} $d, $a, $b"), &[bits; 2], 1, &rows, |row| u64::from(truth(row)));
            let text = format!("setp.{comparison}.{kind} $d|$f, $a, $b");
            check_all(&text, &[bits; 2], &[1, 1], &rows, |row| vec![u64::from(truth(row)), u64::from(!truth(row))]);
            let text = format!("set.{comparison}.u32.{kind} $d, $a, $b");
            check(&text, &[bits; 2], 32, &rows, |row| if truth(row) { 0xffff_ffff } else { 0 });
            let text = format!("set.{comparison}.f32.{kind} $d, $a, $b");
            check(&text, &[bits; 2], 32, &rows, |row| if truth(row) { 0x3f80_0000 } else { 0 });
        }
        let words: &[(&str, usize)] = if signed { &[] } else { &[("lo", 2), ("ls", 3), ("hi", 4), ("hs", 5)] };
        for (word, index) in words {
            check(&format!("setp.{word}.{kind} $d, $a, $b"), &[bits; 2], 1, &rows, |row| {
                u64::from(outcome(COMPARISONS[*index].1, Some(order(row))))
            });
        }
    }
    for bits in [16, 32, 64] {
        let rows = product(&[&edges(bits), &edges(bits)]);
        check(&format!("setp.eq.b{bits} $d, $a, $b"), &[bits; 2], 1, &rows, |row| u64::from(row[0] == row[1]));
        check(&format!("setp.ne.b{bits} $d, $a, $b"), &[bits; 2], 1, &rows, |row| u64::from(row[0] != row[1]));
    }
}

#[test]
fn floats_in_order() {
    for (format, flushes) in
        [(HALF, &[false, true][..]), (BRAIN, &[false]), (SINGLE, &[false, true]), (DOUBLE, &[false])]
    {
        let bits = format.bits;
        let kind = format.name;
        let rows = product(&[&format.edges(), &format.edges()]);
        for flush in flushes {
            let ftz = if *flush { ".ftz" } else { "" };
            for (comparison, truths) in COMPARISONS {
                let truth = |row: &[u64]| outcome(truths, format.order(row[0], row[1], *flush));
                let text = format!("setp.{comparison}{ftz}.{kind} $d|$f, $a, $b");
                check_all(&text, &[bits; 2], &[1, 1], &rows, |row| vec![u64::from(truth(row)), u64::from(!truth(row))]);
                let text = format!("set.{comparison}{ftz}.s32.{kind} $d, $a, $b");
                check(&text, &[bits; 2], 32, &rows, |row| if truth(row) { 0xffff_ffff } else { 0 });
            }
        }
    }
}

#[test]
fn results_of_set_by_type() {
    let rows = product(&[&HALF.edges(), &HALF.edges()]);
    for (to, width, one) in [
        ("u16", 16, 0xffff),
        ("s16", 16, 0xffff),
        ("u32", 32, 0xffff_ffff),
        ("s32", 32, 0xffff_ffff),
        ("f16", 16, 0x3c00),
        ("f32", 32, 0x3f80_0000),
    ] {
        check(&format!("set.lt.{to}.f16 $d, $a, $b"), &[16; 2], width, &rows, |row| {
            if HALF.order(row[0], row[1], false) == Some(Ordering::Less) { one } else { 0 }
        });
    }
    let rows = product(&[&edges(32), &edges(32)]);
    check("set.gt.bf16.u32 $d, $a, $b", &[32; 2], 16, &rows, |row| if row[0] > row[1] { 0x3f80 } else { 0 });
    check(
        "set.gt.f16.s32 $d, $a, $b",
        &[32; 2],
        16,
        &rows,
        |row| {
            if row[0] as i32 > row[1] as i32 { 0x3c00 } else { 0 }
        },
    );
}

#[test]
fn halves_are_compared_each() {
    for (format, flushes) in [(HALF, &[false, true][..]), (BRAIN, &[false])] {
        let edges = format.edges();
        // Each value in the low half meets another in the high half.
        let packed: Vec<u64> =
            edges.iter().enumerate().map(|(index, low)| edges[(index * 7 + 3) % edges.len()] << 16 | low).collect();
        let rows = product(&[&packed, &packed]);
        let with_predicate = product(&[&packed, &packed[..6], &[0, 1]]);
        let kind = format!("{}x2", format.name);
        let one = if format.bits == 16 && format.fraction == 10 { 0x3c00 } else { 0x3f80 };
        for flush in flushes {
            let ftz = if *flush { ".ftz" } else { "" };
            for (comparison, truths) in COMPARISONS {
                let truth = |row: &[u64], shift: u32| {
                    let order = format.order(row[0] >> shift & 0xffff, row[1] >> shift & 0xffff, *flush);
                    u64::from(outcome(truths, order))
                };
                let text = format!("setp.{comparison}{ftz}.{kind} $d|$f, $a, $b");
                check_all(&text, &[32; 2], &[1, 1], &rows, |row| vec![truth(row, 0), truth(row, 16)]);
                let text = format!("set.{comparison}{ftz}.{kind}.{kind} $d, $a, $b");
                check(&text, &[32; 2], 32, &rows, |row| ((truth(row, 16) * one) << 16) | (truth(row, 0) * one));
                let text = format!("set.{comparison}{ftz}.u32.{kind} $d, $a, $b");
                check(&text, &[32; 2], 32, &rows, |row| (truth(row, 16) * 0xffff_0000) | (truth(row, 0) * 0xffff));
                let text = format!("setp.{comparison}.xor{ftz}.{kind} $d|$f, $a, $b, !$c");
                check_all(&text, &[32, 32, 1], &[1, 1], &with_predicate, |row| {
                    vec![truth(row, 0) ^ (1 - row[2]), truth(row, 16) ^ (1 - row[2])]
                });
            }
        }
    }
}

#[test]
fn comparisons_combine_with_a_predicate() {
    let rows = product(&[&[1, 2], &[1, 2], &[0, 1]]);
    for (operator, combine) in
        [("and", (|a, b| a & b) as fn(u64, u64) -> u64), ("or", |a, b| a | b), ("xor", |a, b| a ^ b)]
    {
        for (negation, flip) in [("", 0), ("!", 1)] {
            for kind in ["u32", "f32"] {
                let truth = |row: &[u64]| u64::from(row[0] < row[1]);
                let text = format!("setp.lt.{operator}.{kind} $d|$f, $a, $b, {negation}$c");
                check_all(&text, &[32, 32, 1], &[1, 1], &rows, |row| {
                    let other = row[2] ^ flip;
                    vec![combine(truth(row), other), combine(1 - truth(row), other)]
                });
                let text = format!("setp.lt.{operator}.{kind} _|$d, $a, $b, {negation}$c");
                check(&text, &[32, 32, 1], 1, &rows, |row| combine(1 - truth(row), row[2] ^ flip));
                let text = format!("set.lt.{operator}.u32.{kind} $d, $a, $b, {negation}$c");
                check(&text, &[32, 32, 1], 32, &rows, |row| combine(truth(row), row[2] ^ flip) * 0xffff_ffff);
            }
        }
    }
}

#[test]
fn selection() {
    for (kind, bits) in REGISTER_TYPES {
        let rows = product(&[&edges(bits), &few(bits), &[0, 1]]);
        let widths = [bits, bits, 1];
        check(&format!("selp.{kind} $d, $a, $b, $c"), &widths, bits, &rows, |row| row[usize::from(row[2] == 0)]);
        let rows = product(&[&few(bits), &few(bits), &edges(32)]);
        let widths = [bits, bits, 32];
        check(&format!("slct.{kind}.s32 $d, $a, $b, $c"), &widths, bits, &rows, |row| row[(row[2] >> 31) as usize]);
        let rows = product(&[&few(bits), &few(bits), &SINGLE.edges()]);
        for (ftz, flush) in [("", false), (".ftz", true)] {
            check(&format!("slct{ftz}.{kind}.f32 $d, $a, $b, $c"), &widths, bits, &rows, |row| {
                let at_least_zero = SINGLE.order(row[2], 0, flush).is_some_and(Ordering::is_ge);
                if at_least_zero { row[0] } else { row[1] }
            });
        }
    }
}
