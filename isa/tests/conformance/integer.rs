//! Integer arithmetic against exact integers.

use crate::cases::{check, check_all, product};
use crate::values::*;

fn unary(instruction: &str, bits: u32, width: u32, expected: impl Fn(u64) -> u64) {
    check(instruction, &[bits], width, &product(&[&edges(bits)]), |row| expected(row[0]));
}

fn binary(instruction: &str, bits: u32, width: u32, expected: impl Fn(u64, u64) -> u64) {
    let values = edges(bits);
    check(instruction, &[bits, bits], width, &product(&[&values, &values]), |row| expected(row[0], row[1]));
}

/// An operation on two values of a type, computed exactly and cut to the type.
fn exact(operation: &str, (bits, signed): (u32, bool), expected: impl Fn(i128, i128) -> i128) {
    let instruction = format!("{operation}.{} $d, $a, $b", name(bits, signed));
    binary(&instruction, bits, bits, |a, b| low(expected(meaning(a, bits, signed), meaning(b, bits, signed)), bits));
}

#[test]
fn sums_differences_and_low_products() {
    for integer in INTEGERS {
        exact("add", integer, |a, b| a + b);
        exact("sub", integer, |a, b| a - b);
        exact("mul.lo", integer, |a, b| a.wrapping_mul(b));
        exact("min", integer, |a, b| a.min(b));
        exact("max", integer, |a, b| a.max(b));
    }
}

#[test]
fn saturation() {
    for integer in [(32, true), (32, false)] {
        let (least, most) = range(32, integer.1);
        exact("add.sat", integer, |a, b| (a + b).clamp(least, most));
        exact("sub.sat", integer, |a, b| (a - b).clamp(least, most));
    }
}

#[test]
fn negation_and_magnitude() {
    for bits in [16, 32, 64] {
        unary(&format!("neg.s{bits} $d, $a"), bits, bits, |a| low(-meaning(a, bits, true), bits));
        unary(&format!("abs.s{bits} $d, $a"), bits, bits, |a| low(meaning(a, bits, true).abs(), bits));
    }
}

#[test]
fn high_and_wide_products() {
    for (bits, signed) in INTEGERS {
        let product = move |a: u64, b: u64| {
            let (a, b) = (meaning(a, bits, signed), meaning(b, bits, signed));
            // 64-bit unsigned products need all 128 bits: their two's complement is the same.
            (a as u128).wrapping_mul(b as u128)
        };
        let kind = name(bits, signed);
        binary(&format!("mul.hi.{kind} $d, $a, $b"), bits, bits, |a, b| low((product(a, b) >> bits) as i128, bits));
        if bits < 64 {
            binary(&format!("mul.wide.{kind} $d, $a, $b"), bits, 2 * bits, |a, b| low(product(a, b) as i128, 2 * bits));
        }
        let rows = product_rows(&[bits, bits, bits]);
        let widths = [bits; 3];
        check(&format!("mad.lo.{kind} $d, $a, $b, $c"), &widths, bits, &rows, |row| {
            low(product(row[0], row[1]).wrapping_add(u128::from(row[2])) as i128, bits)
        });
        check(&format!("mad.hi.{kind} $d, $a, $b, $c"), &widths, bits, &rows, |row| {
            low((product(row[0], row[1]) >> bits).wrapping_add(u128::from(row[2])) as i128, bits)
        });
        if bits < 64 {
            let rows = product_rows(&[bits, bits, 2 * bits]);
            let widths = [bits, bits, 2 * bits];
            check(&format!("mad.wide.{kind} $d, $a, $b, $c"), &widths, 2 * bits, &rows, |row| {
                low(product(row[0], row[1]).wrapping_add(u128::from(row[2])) as i128, 2 * bits)
            });
        }
    }
}

fn product_rows(widths: &[u32]) -> Vec<Vec<u64>> {
    let lists: Vec<Vec<u64>> = widths.iter().map(|bits| few(*bits)).collect();
    let lists: Vec<&[u64]> = lists.iter().map(Vec::as_slice).collect();
    product(&lists)
}

#[test]
fn saturating_multiply_and_add() {
    let rows = product_rows(&[32, 32, 32]);
    let (least, most) = range(32, true);
    check("mad.hi.sat.s32 $d, $a, $b, $c", &[32; 3], 32, &rows, |row| {
        let [a, b, c] = [0, 1, 2].map(|index| meaning(row[index], 32, true));
        low((((a * b) >> 32) + c).clamp(least, most), 32)
    });
    check("mad24.hi.sat.s32 $d, $a, $b, $c", &[32; 3], 32, &rows, |row| {
        let [a, b] = [0, 1].map(|index| meaning(row[index], 24, true));
        let high = meaning(low((a * b) >> 16, 32), 32, true);
        low((high + meaning(row[2], 32, true)).clamp(least, most), 32)
    });
}

#[test]
fn products_of_24_bits() {
    let values = [0, 1, 0x7f_ffff, 0x80_0000, 0xff_ffff, 0x100_0000, 0xff80_0001, 0x55_5555, 0xaa_aaaa, 0xffff_ffff];
    let rows = product(&[&values, &values, &few(32)]);
    for signed in [false, true] {
        let kind = name(32, signed);
        let multiply = move |row: &[u64]| meaning(row[0], 24, signed) * meaning(row[1], 24, signed);
        for (half, shift) in [("lo", 0), ("hi", 16)] {
            check(&format!("mul24.{half}.{kind} $d, $a, $b"), &[32; 3], 32, &rows, |row| {
                low(multiply(row) >> shift, 32)
            });
            check(&format!("mad24.{half}.{kind} $d, $a, $b, $c"), &[32; 3], 32, &rows, |row| {
                low((multiply(row) >> shift) + i128::from(row[2]), 32)
            });
        }
    }
}

#[test]
fn quotients_and_remainders() {
    for integer in INTEGERS {
        exact("div", integer, |a, b| if b == 0 { -1 } else { a / b });
        exact("rem", integer, |a, b| if b == 0 { -1 } else { a % b });
    }
}

#[test]
fn sums_of_absolute_differences() {
    for (bits, signed) in INTEGERS {
        let rows = product_rows(&[bits; 3]);
        check(&format!("sad.{} $d, $a, $b, $c", name(bits, signed)), &[bits; 3], bits, &rows, |row| {
            let difference = meaning(row[0], bits, signed) - meaning(row[1], bits, signed);
            low(difference.abs() + i128::from(row[2]), bits)
        });
    }
}

#[test]
fn minimum_and_maximum_at_least_zero() {
    exact("min.relu", (32, true), |a, b| a.min(b).max(0));
    exact("max.relu", (32, true), |a, b| a.max(b).max(0));
}

#[test]
fn packed_integers() {
    let mut values = vec![0, 0x0001_ffff, 0x7fff_8000, 0x8000_7fff, 0xffff_0001, 0x807f_ff01, 0x0180_7fff, 0x5555_aaaa];
    values.push(0x1234_9876);
    for (parts, signed, kind) in [(2, false, "u16x2"), (2, true, "s16x2"), (4, false, "u8x4"), (4, true, "s8x4")] {
        let bits = 32 / parts;
        let (least, most) = range(bits, signed);
        let each = |instruction: &str, expected: &dyn Fn(i128, i128) -> i128| {
            check(instruction, &[32, 32], 32, &product(&[&values, &values]), |row| {
                (0..parts).fold(0, |result, part| {
                    let [a, b] = [0, 1].map(|index| meaning(row[index] >> (part * bits), bits, signed));
                    result | low(expected(a, b), bits) << (part * bits)
                })
            });
        };
        each(&format!("add.{kind} $d, $a, $b"), &|a, b| a + b);
        each(&format!("add.sat.{kind} $d, $a, $b"), &|a, b| (a + b).clamp(least, most));
        each(&format!("sub.{kind} $d, $a, $b"), &|a, b| a - b);
        each(&format!("min.{kind} $d, $a, $b"), &|a, b| a.min(b));
        each(&format!("max.{kind} $d, $a, $b"), &|a, b| a.max(b));
        if signed {
            each(&format!("min.relu.{kind} $d, $a, $b"), &|a, b| a.min(b).max(0));
            each(&format!("max.relu.{kind} $d, $a, $b"), &|a, b| a.max(b).max(0));
            each(&format!("neg.{kind} $d, $a"), &|a, _| -a);
        }
    }
}

#[test]
fn carries() {
    for bits in [32, 64] {
        let values = edges(bits);
        let rows = product(&[&values, &values, &[0, 1]]);
        // The third source makes the carry: all ones plus it.
        let carry = format!("add.cc.u{bits} %{}0, $c, -1", if bits == 32 { "y" } else { "z" });
        let widths = [bits; 3];
        let run = |instruction: &str, expected: &dyn Fn(u128, u128, u128) -> u128| {
            let text = format!("{carry}; {instruction}; addc.u{bits} $f, 0, 0");
            let rows: Vec<Vec<u64>> = rows.iter().map(|row| vec![row[0], row[1], row[2]]).collect();
            check_all(&text, &widths, &[bits, bits], &rows, |row| {
                let sum = expected(u128::from(row[0]), u128::from(row[1]), u128::from(row[2]));
                vec![low(sum as i128, bits), (sum >> bits) as u64 & 1]
            });
        };
        for kind in [format!("u{bits}"), format!("s{bits}")] {
            run(&format!("add.cc.{kind} $d, $a, $b"), &|a, b, _| a + b);
            run(&format!("addc.cc.{kind} $d, $a, $b"), &|a, b, carry| a + b + carry);
            run(&format!("sub.cc.{kind} $d, $a, $b"), &|a, b, _| a.wrapping_sub(b));
            run(&format!("subc.cc.{kind} $d, $a, $b"), &|a, b, borrow| a.wrapping_sub(b).wrapping_sub(borrow));
            // Without `.cc` the flag stays.
            run(&format!("addc.{kind} $d, $a, $b"), &|a, b, carry| {
                let sum = (a + b + carry) & ((1 << bits) - 1);
                sum | carry << bits
            });
            run(&format!("subc.{kind} $d, $a, $b"), &|a, b, borrow| {
                let difference = a.wrapping_sub(b).wrapping_sub(borrow) & ((1 << bits) - 1);
                difference | borrow << bits
            });
            run(&format!("add.{kind} $d, $a, $b"), &|a, b, carry| ((a + b) & ((1 << bits) - 1)) | carry << bits);
        }
    }
}

#[test]
fn multiply_and_add_with_carry() {
    for (bits, signed) in INTEGERS.into_iter().filter(|(bits, _)| *bits > 16) {
        let kind = name(bits, signed);
        let scratch = if bits == 32 { "%y0" } else { "%z0" };
        let rows = product(&[&few(bits), &few(bits), &few(bits), &[0, 1]]);
        for (half, shift) in [("lo", 0), ("hi", bits)] {
            for (instruction, takes, gives) in [("mad", false, true), ("madc", true, true), ("madc", true, false)] {
                let cc = if gives { ".cc" } else { "" };
                let text = format!(
                    "add.cc.u{bits} {scratch}, $e, -1; {instruction}.{half}{cc}.{kind} $d, $a, $b, $c; addc.u{bits} $f, 0, 0"
                );
                check_all(&text, &[bits; 4], &[bits, bits], &rows, |row| {
                    let [a, b] = [0, 1].map(|index| meaning(row[index], bits, signed) as u128);
                    let part = low((a.wrapping_mul(b) >> shift) as i128, bits);
                    let sum = u128::from(part) + u128::from(row[2]) + if takes { u128::from(row[3]) } else { 0 };
                    vec![low(sum as i128, bits), if gives { (sum >> bits) as u64 } else { row[3] }]
                });
            }
        }
    }
}

#[test]
fn a_product_of_128_bits_in_32_bit_pieces() {
    let rows = product(&[&edges(64), &edges(64)]);
    let text = "mov.b64 {%y0, %y1}, $a; mov.b64 {%y2, %y3}, $b; \
                mul.lo.u32 %y4, %y0, %y2; mul.hi.u32 %y5, %y0, %y2; \
                mad.lo.cc.u32 %y5, %y1, %y2, %y5; madc.hi.u32 %y6, %y1, %y2, 0; \
                mad.lo.cc.u32 %y5, %y0, %y3, %y5; madc.hi.cc.u32 %y6, %y0, %y3, %y6; addc.u32 %y7, 0, 0; \
                mad.lo.cc.u32 %y6, %y1, %y3, %y6; madc.hi.u32 %y7, %y1, %y3, %y7; \
                mov.b64 $d, {%y4, %y5}; mov.b64 $f, {%y6, %y7}";
    check_all(text, &[64, 64], &[64, 64], &rows, |row| {
        let product = u128::from(row[0]) * u128::from(row[1]);
        vec![product as u64, (product >> 64) as u64]
    });
}

#[test]
fn dot_products() {
    let values = [0, 0x0102_0304, 0xffff_ffff, 0x8080_8080, 0x7f7f_7f7f, 0x80ff_017f, 0x5555_aaaa, 0x1234_fedc];
    let rows = product(&[&values, &values, &few(32)]);
    for (signed_a, signed_b) in [(false, false), (false, true), (true, false), (true, true)] {
        let kinds = format!("{}.{}", name(32, signed_a), name(32, signed_b));
        let byte = |value: u64, index: u32, signed| meaning(value >> (8 * index), 8, signed);
        check(&format!("dp4a.{kinds} $d, $a, $b, $c"), &[32; 3], 32, &rows, |row| {
            let sum: i128 = (0..4).map(|part| byte(row[0], part, signed_a) * byte(row[1], part, signed_b)).sum();
            low(sum + i128::from(row[2]), 32)
        });
        for (half, first) in [("lo", 0), ("hi", 2)] {
            check(&format!("dp2a.{half}.{kinds} $d, $a, $b, $c"), &[32; 3], 32, &rows, |row| {
                let sum: i128 = (0..2)
                    .map(|part| meaning(row[0] >> (16 * part), 16, signed_a) * byte(row[1], first + part, signed_b))
                    .sum();
                low(sum + i128::from(row[2]), 32)
            });
        }
    }
}

#[test]
fn literals_have_the_width_of_the_type() {
    let rows = product(&[&edges(32)]);
    check("add.u32 $d, $a, 0xffffffff", &[32], 32, &rows, |row| low(i128::from(row[0]) - 1, 32));
    check("sub.s32 $d, $a, -1", &[32], 32, &rows, |row| low(i128::from(row[0]) + 1, 32));
    check("add.s64 $d, $a, -2", &[64], 64, &product(&[&edges(64)]), |row| row[0].wrapping_sub(2));
    check("add.s16 $d, $a, -3", &[16], 16, &product(&[&edges(16)]), |row| low(i128::from(row[0]) - 3, 16));
}
