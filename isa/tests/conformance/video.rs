//! Video instructions against the ISA's pseudocode, written out once more.

use crate::cases::{check, product};
use crate::values::*;

const PARTS: [(&str, u32, u32); 7] =
    [("", 0, 32), (".b0", 0, 8), (".b1", 8, 8), (".b2", 16, 8), (".b3", 24, 8), (".h0", 0, 16), (".h1", 16, 16)];
const VALUES: [u64; 8] = [0, 1, 0xffff_ffff, 0x8000_0000, 0x7fff_ffff, 0x807f_ff80, 0x1234_fedc, 0x5555_aaaa];
const SIGNS: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

fn part(value: u64, (_, first, bits): (&str, u32, u32), signed: bool) -> i128 {
    meaning(value >> first, bits, signed)
}

/// As a signed value of 33 bits.
fn cut33(value: i128) -> i128 {
    meaning_of_33(value & ((1 << 33) - 1))
}

fn meaning_of_33(value: i128) -> i128 {
    if value >> 32 != 0 { value - (1 << 33) } else { value }
}

fn kind(signed: bool) -> &'static str {
    if signed { "s32" } else { "u32" }
}

/// Checks a scalar instruction with every destination part, second operation and saturation.
fn scalar(opcode: &str, suffix: &str, third_type: bool, signs: [bool; 2], compute: &dyn Fn(i128, i128) -> i128) {
    // `vset` has no type of its destination, which is unsigned.
    let destinations: &[bool] = if third_type { &[false, true] } else { &[false] };
    let rows = product(&[&VALUES, &VALUES]);
    let third_rows = product(&[&VALUES, &VALUES[..6], &[0, 5, 0xffff_fff0, 0x7654_3210]]);
    let [signed_a, signed_b] = signs;
    for &signed_d in destinations {
        let types = if third_type {
            format!("{}.{}.{}", kind(signed_d), kind(signed_a), kind(signed_b))
        } else {
            format!("{}.{}", kind(signed_a), kind(signed_b))
        };
        for saturates in if third_type { &[false, true][..] } else { &[false] } {
            let sat = if *saturates { ".sat" } else { "" };
            let limit = |value: i128, bits: u32| {
                let (least, most) = range(bits, signed_d);
                if *saturates { value.clamp(least, most) } else { cut33(value) }
            };
            for (index, part_a) in PARTS.into_iter().enumerate() {
                let part_b = PARTS[(index * 3 + 2) % PARTS.len()];
                let value = |row: &[u64]| compute(part(row[0], part_a, signed_a), part(row[1], part_b, signed_b));
                let words = format!("{opcode}.{types}{sat}{suffix}");
                let operands = format!("$a{}, $b{}", part_a.0, part_b.0);
                check(&format!("{words} $d, {operands}"), &[32; 2], 32, &rows, |row| low(limit(value(row), 32), 32));
                for (second, combine) in [
                    ("add", (|a, c| a + c) as fn(i128, i128) -> i128),
                    ("min", |a, c| a.min(c)),
                    ("max", |a, c| a.max(c)),
                ] {
                    check(&format!("{words}.{second} $d, {operands}, $c"), &[32; 3], 32, &third_rows, |row| {
                        low(combine(limit(value(row), 32), meaning(row[2], 32, signed_d)), 32)
                    });
                }
                let (name, first, bits) = PARTS[index];
                if index > 0 {
                    check(&format!("{words} $d{name}, {operands}, $c"), &[32; 3], 32, &third_rows, |row| {
                        let hole = low(-1, bits) << first;
                        row[2] & !hole | low(limit(value(row), bits), bits) << first
                    });
                }
            }
        }
    }
}

#[test]
fn scalar_arithmetic() {
    for signs in SIGNS {
        scalar("vadd", "", true, signs, &|a, b| a + b);
        scalar("vsub", "", true, signs, &|a, b| a - b);
        scalar("vabsdiff", "", true, signs, &|a, b| (a - b).abs());
        scalar("vmin", "", true, signs, &|a, b| a.min(b));
        scalar("vmax", "", true, signs, &|a, b| a.max(b));
    }
}

#[test]
fn scalar_shifts() {
    for signed in [false, true] {
        let signs = [signed, false];
        scalar("vshl", ".clamp", true, signs, &|a, b| a << b.min(32));
        scalar("vshl", ".wrap", true, signs, &|a, b| a << (b & 31));
        scalar("vshr", ".clamp", true, signs, &|a, b| a >> b.min(32));
        scalar("vshr", ".wrap", true, signs, &|a, b| a >> (b & 31));
    }
}

#[test]
fn scalar_comparison() {
    for signs in SIGNS {
        for (name, compare) in comparisons() {
            scalar("vset", &format!(".{name}"), false, signs, &|a, b| i128::from(compare(&a, &b)));
        }
    }
}

type Comparison = fn(&i128, &i128) -> bool;

fn comparisons() -> [(&'static str, Comparison); 6] {
    [("eq", i128::eq), ("ne", i128::ne), ("lt", i128::lt), ("le", i128::le), ("gt", i128::gt), ("ge", i128::ge)]
}

#[test]
fn multiply_and_add() {
    let rows = product(&[&VALUES, &VALUES, &VALUES]);
    for [signed_a, signed_b] in SIGNS {
        for (index, part_a) in PARTS.into_iter().enumerate() {
            let part_b = PARTS[(index + 3) % PARTS.len()];
            for (scale_word, scale) in [("", 0), (".shr7", 7), (".shr15", 15)] {
                for saturates in [false, true] {
                    for (signs, plus_one) in [
                        (["", "", ""], false),
                        (["", "", ""], true),
                        (["-", "", ""], false),
                        (["", "-", ""], false),
                        (["", "", "-"], false),
                        (["-", "-", ""], false),
                    ] {
                        let negative_product = (signs[0] == "-") != (signs[1] == "-");
                        let negative_third = signs[2] == "-";
                        let signed = signed_a || signed_b || negative_product || negative_third;
                        let text = format!(
                            "vmad.{}.{}.{}{}{}{scale_word} $d, {}$a{}, {}$b{}, {}$c",
                            kind(signed),
                            kind(signed_a),
                            kind(signed_b),
                            if plus_one { ".po" } else { "" },
                            if saturates { ".sat" } else { "" },
                            signs[0],
                            part_a.0,
                            signs[1],
                            part_b.0,
                            signs[2]
                        );
                        check(&text, &[32; 3], 32, &rows, |row| {
                            let mut value = part(row[0], part_a, signed_a) * part(row[1], part_b, signed_b);
                            let mut third = row[2];
                            let mut lowest = i128::from(plus_one);
                            if negative_product && !plus_one {
                                (value, lowest) = (!value, 1);
                            } else if negative_third && !plus_one {
                                (third, lowest) = (!third & 0xffff_ffff, 1);
                            }
                            let value = (value + meaning(third, 32, signed) + lowest) >> scale;
                            let (least, most) = range(32, signed);
                            low(if saturates { value.clamp(least, most) } else { value }, 32)
                        });
                    }
                }
            }
        }
    }
}

/// Checks an instruction on parts with selectors, masks, saturation and accumulation.
fn parallel(opcode: &str, suffix: &str, parts: u32, typed: bool, compute: &dyn Fn(i128, i128) -> i128) {
    let bits = 32 / parts;
    let selectors: &[(&str, &str, &str)] = match parts {
        2 => &[("", "", ""), (".h0", ".h32", ".h01"), (".h1", ".h13", ".h20"), (".h10", ".h00", ".h33")],
        _ => &[
            ("", "", ""),
            (".b0", ".b7654", ".b0123"),
            (".b31", ".b0426", ".b7531"),
            (".b210", ".b1111", ".b6543"),
            (".b3", ".b3210", ".b4444"),
        ],
    };
    let letters = if parts == 2 { ".h" } else { ".b" };
    let rows = product(&[&VALUES, &VALUES, &[0, 0x7654_3210, 0xffff_fff0]]);
    for [signed_a, signed_b] in SIGNS {
        for signed_d in if typed { &[false, true][..] } else { &[false] } {
            for (mask, select_a, select_b) in selectors {
                // The digits from the right are for the parts from the lowest.
                let digits = |text: &str, default: u32| -> Vec<u32> {
                    let written = text.trim_start_matches(letters);
                    let found: Vec<u32> = written.chars().rev().filter_map(|digit| digit.to_digit(10)).collect();
                    if found.is_empty() { (default..default + parts).collect() } else { found }
                };
                let (from_a, from_b) = (digits(select_a, 0), digits(select_b, parts));
                let computed = digits(mask, 0);
                let pick = |row: &[u64], index: u32, signed: bool| {
                    let both = row[1] << 32 | row[0];
                    meaning(both >> (index * bits), bits, signed)
                };
                for mode in if typed { &["", ".sat", ".add"][..] } else { &["", ".add"] } {
                    let types = if typed {
                        format!("{}.{}.{}", kind(*signed_d), kind(signed_a), kind(signed_b))
                    } else {
                        format!("{}.{}", kind(signed_a), kind(signed_b))
                    };
                    let text = format!("{opcode}.{types}{suffix}{mode} $d{mask}, $a{select_a}, $b{select_b}, $c");
                    check(&text, &[32; 3], 32, &rows, |row| {
                        let (least, most) = range(bits, *signed_d);
                        let value = |index: u32| {
                            let place = index as usize;
                            let value = compute(pick(row, from_a[place], signed_a), pick(row, from_b[place], signed_b));
                            if *mode == ".sat" { value.clamp(least, most) } else { value }
                        };
                        if *mode == ".add" {
                            let sum: i128 = computed.iter().map(|index| value(*index)).sum();
                            return low(sum + i128::from(row[2]), 32);
                        }
                        (0..parts).fold(0, |result, index| {
                            let kept = low(i128::from(row[2] >> (index * bits)), bits);
                            let part = if computed.contains(&index) { low(value(index), bits) } else { kept };
                            result | part << (index * bits)
                        })
                    });
                }
            }
        }
    }
}

#[test]
fn parallel_arithmetic() {
    for parts in [2, 4] {
        let name = |stem: &str| format!("{stem}{parts}");
        parallel(&name("vadd"), "", parts, true, &|a, b| a + b);
        parallel(&name("vsub"), "", parts, true, &|a, b| a - b);
        parallel(&name("vabsdiff"), "", parts, true, &|a, b| (a - b).abs());
        parallel(&name("vmin"), "", parts, true, &|a, b| a.min(b));
        parallel(&name("vmax"), "", parts, true, &|a, b| a.max(b));
        // Half of the sum, ties away from zero.
        parallel(&name("vavrg"), "", parts, true, &|a, b| {
            let sum = a + b;
            if sum >= 0 { (sum + 1).div_euclid(2) } else { sum.div_euclid(2) }
        });
    }
}

#[test]
fn parallel_comparison() {
    for parts in [2, 4] {
        for (name, compare) in comparisons() {
            parallel(&format!("vset{parts}"), &format!(".{name}"), parts, false, &|a, b| i128::from(compare(&a, &b)));
        }
    }
}
