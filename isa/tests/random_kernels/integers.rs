//! Integer arithmetic by the rules of mathematics, cut to the type's bits.

use crate::operation::{Operation, integer, register};
use crate::random::Random;
use crate::values::{low, meaning, name, range};

/// Bits and sign of an integer type.
fn any_type(random: &mut Random) -> (u32, bool) {
    (random.pick(&[16, 32, 32, 64]), random.one_in(2))
}

/// The upper half of a product.
fn upper_half(a: u64, b: u64, bits: u32, signed: bool) -> u64 {
    match signed {
        true => low((meaning(a, bits, true) * meaning(b, bits, true)) >> bits, bits),
        false => low(((u128::from(a) * u128::from(b)) >> bits) as i128, bits),
    }
}

/// `add` to `rem`: two sources and a result of one type.
pub fn two_sources(random: &mut Random) -> Operation {
    let (bits, signed) = any_type(random);
    let kind = name(bits, signed);
    let plain = |opcode: &str, compute: fn(i128, i128) -> i128| {
        Operation::new(format!("{opcode}.{kind} $d, $a, $b"), &[integer(bits); 2], bits, move |values| {
            low(compute(meaning(values[0], bits, signed), meaning(values[1], bits, signed)), bits)
        })
    };
    match random.below(9) {
        0 => plain("add", |a, b| a + b),
        1 => plain("sub", |a, b| a - b),
        2 => plain("mul.lo", i128::wrapping_mul),
        3 => plain("min", i128::min),
        4 => plain("max", i128::max),
        5 => Operation::new(format!("mul.hi.{kind} $d, $a, $b"), &[integer(bits); 2], bits, move |values| {
            upper_half(values[0], values[1], bits, signed)
        }),
        6 => quotient(random, bits, signed),
        7 => {
            let (opcode, compute): (_, fn(i128, i128) -> i128) =
                if random.one_in(2) { ("add", |a, b| a + b) } else { ("sub", |a, b| a - b) };
            // Sums of constants saturate at other places where ptxas 12.9 has put several of them together.
            Operation::new(format!("{opcode}.sat.s32 $d, $a, $b"), &[register(32); 2], 32, move |values| {
                let (least, most) = range(32, true);
                low(compute(meaning(values[0], 32, true), meaning(values[1], 32, true)).clamp(least, most), 32)
            })
        }
        _ if bits == 64 => plain("sub", |a, b| a - b),
        _ => Operation::new(format!("mul.wide.{kind} $d, $a, $b"), &[integer(bits); 2], 2 * bits, move |values| {
            low(meaning(values[0], bits, signed) * meaning(values[1], bits, signed), 2 * bits)
        }),
    }
}

/// `div` and `rem`, whose divisor is made odd, for that of zero is open, and whose dividend is not the least one.
fn quotient(random: &mut Random, bits: u32, signed: bool) -> Operation {
    let is_remainder = random.one_in(2);
    let opcode = if is_remainder { "rem" } else { "div" };
    let kind = name(bits, signed);
    let [first, second] = match bits {
        16 => ["%s0", "%s1"],
        32 => ["%t0", "%t1"],
        _ => ["%u0", "%u1"],
    };
    let least = range(bits, signed).0 + i128::from(signed);
    let text =
        format!("max.{kind} {first}, $a, {least}; or.b{bits} {second}, $b, 1; {opcode}.{kind} $d, {first}, {second}");
    Operation::new(text, &[integer(bits); 2], bits, move |values| {
        let (a, b) = (meaning(values[0], bits, signed).max(least), meaning(values[1] | 1, bits, signed));
        low(if is_remainder { a % b } else { a / b }, bits)
    })
}

/// `mad`, `sad` and the like: three sources.
pub fn three_sources(random: &mut Random) -> Operation {
    let (bits, signed) = any_type(random);
    let kind = name(bits, signed);
    let sources = [integer(bits); 3];
    let value = move |values: &[u64], index: usize| meaning(values[index], bits, signed);
    match random.below(8) {
        0 | 1 => Operation::new(format!("mad.lo.{kind} $d, $a, $b, $c"), &sources, bits, move |values| {
            low(value(values, 0).wrapping_mul(value(values, 1)).wrapping_add(value(values, 2)), bits)
        }),
        2 => Operation::new(format!("mad.hi.{kind} $d, $a, $b, $c"), &sources, bits, move |values| {
            low(i128::from(upper_half(values[0], values[1], bits, signed)) + value(values, 2), bits)
        }),
        3 => Operation::new(format!("sad.{kind} $d, $a, $b, $c"), &sources, bits, move |values| {
            low((value(values, 0) - value(values, 1)).abs() + value(values, 2), bits)
        }),
        4 => Operation::new("mad.hi.sat.s32 $d, $a, $b, $c", &[integer(32); 3], 32, |values| {
            let [a, b, c] = [0, 1, 2].map(|index| meaning(values[index], 32, true));
            let (least, most) = range(32, true);
            low((((a * b) >> 32) + c).clamp(least, most), 32)
        }),
        5 => mad24(random, signed),
        _ if bits == 64 => sums_of_products(random),
        _ => {
            let wide = 2 * bits;
            let sources = [integer(bits), integer(bits), integer(wide)];
            Operation::new(format!("mad.wide.{kind} $d, $a, $b, $c"), &sources, wide, move |values| {
                low(value(values, 0) * value(values, 1) + meaning(values[2], wide, signed), wide)
            })
        }
    }
}

/// `mul24` and `mad24`: products of the lower 24 bits.
fn mad24(random: &mut Random, signed: bool) -> Operation {
    let kind = name(32, signed);
    let is_upper = random.one_in(2);
    let half = if is_upper { "hi" } else { "lo" };
    let product = move |values: &[u64]| {
        let product = meaning(values[0], 24, signed) * meaning(values[1], 24, signed);
        if is_upper { product >> 16 } else { product }
    };
    match random.one_in(2) {
        true => Operation::new(format!("mul24.{half}.{kind} $d, $a, $b"), &[integer(32); 2], 32, move |values| {
            low(product(values), 32)
        }),
        false => Operation::new(format!("mad24.{half}.{kind} $d, $a, $b, $c"), &[integer(32); 3], 32, move |values| {
            low(product(values) + meaning(values[2], 32, signed), 32)
        }),
    }
}

/// `dp4a` and `dp2a`.
pub fn sums_of_products(random: &mut Random) -> Operation {
    let signs = [random.one_in(2), random.one_in(2)];
    let [first, second] = signs.map(|signed| name(32, signed));
    let (text, parts, first_bits, start) = match random.below(3) {
        0 => (format!("dp4a.{first}.{second}"), 4, 8, 0),
        1 => (format!("dp2a.lo.{first}.{second}"), 2, 16, 0),
        _ => (format!("dp2a.hi.{first}.{second}"), 2, 16, 2),
    };
    Operation::new(format!("{text} $d, $a, $b, $c"), &[integer(32); 3], 32, move |values| {
        let products = (0..parts).map(|part| {
            let a = meaning(values[0] >> (first_bits * part), first_bits, signs[0]);
            a * meaning(values[1] >> (8 * (part + start)), 8, signs[1])
        });
        low(products.sum::<i128>() + i128::from(values[2]), 32)
    })
}

/// `abs`, `neg` and others of one source.
pub fn one_source(random: &mut Random) -> Operation {
    let bits = random.pick(&[16, 32, 64]);
    let count_bits = random.pick(&[32, 64]);
    match random.below(9) {
        0 | 1 => {
            let is_absolute = random.one_in(2);
            let opcode = if is_absolute { "abs" } else { "neg" };
            // The least value has no opposite: of 16 bits, ptxas 12.9 may take it for a wider one.
            let (before, source, least) = match bits {
                16 => ("max.s16 %s0, $a, -32767; ", "%s0", -32767),
                _ => ("", "$a", range(bits, true).0),
            };
            Operation::new(format!("{before}{opcode}.s{bits} $d, {source}"), &[integer(bits)], bits, move |values| {
                let value = meaning(values[0], bits, true).max(least);
                low(if is_absolute { value.abs() } else { -value }, bits)
            })
        }
        2 => Operation::new(format!("not.b{bits} $d, $a"), &[integer(bits)], bits, move |values| {
            low(!i128::from(values[0]), bits)
        }),
        3 => Operation::new(format!("cnot.b{bits} $d, $a"), &[integer(bits)], bits, |values| u64::from(values[0] == 0)),
        4 => Operation::new(format!("popc.b{count_bits} $d, $a"), &[integer(count_bits)], 32, |values| {
            u64::from(values[0].count_ones())
        }),
        5 => Operation::new(format!("clz.b{count_bits} $d, $a"), &[integer(count_bits)], 32, move |values| {
            u64::from(values[0].leading_zeros() - (64 - count_bits))
        }),
        6 => Operation::new(format!("brev.b{count_bits} $d, $a"), &[integer(count_bits)], count_bits, move |values| {
            values[0].reverse_bits() >> (64 - count_bits)
        }),
        _ => first_bit(random, count_bits),
    }
}

/// `bfind`: the highest bit that differs from the sign.
fn first_bit(random: &mut Random, bits: u32) -> Operation {
    let signed = random.one_in(2);
    let shift = random.maybe(".shiftamt");
    let kind = name(bits, signed);
    Operation::new(format!("bfind{shift}.{kind} $d, $a"), &[integer(bits)], 32, move |values| {
        let value = meaning(values[0], bits, signed);
        let magnitude = if value < 0 { !value } else { value };
        match (0..bits).rev().find(|bit| magnitude >> bit & 1 != 0) {
            None => 0xffff_ffff,
            Some(bit) if shift.is_empty() => u64::from(bit),
            Some(bit) => u64::from(bits - 1 - bit),
        }
    })
}

/// Sums and products of several words, by the carry.
pub fn carries(random: &mut Random) -> Operation {
    let bits = random.pick(&[32, 32, 64]);
    let temporary = if bits == 32 { "%t" } else { "%u" };
    let kind = random.pick(&["s", "u"]);
    let sources = [integer(bits); 4];
    let wide = move |values: &[u64], place: usize| u128::from(values[place]) | u128::from(values[place + 1]) << bits;
    let halves = move |value: u128| vec![low(value as i128, bits), low((value >> bits) as i128, bits)];
    match random.below(4) {
        0 => {
            let text = format!(
                "add.cc.{kind}{bits} {temporary}0, $a, $c; addc.cc.{kind}{bits} {temporary}1, $b, $e; addc.{kind}{bits} $g, 0, 0; \
                 mov.b{bits} $d, {temporary}0; mov.b{bits} $f, {temporary}1"
            );
            Operation::of_several(text, &sources, &[bits; 3], move |values| {
                let (sum, carry) = wide(values, 0).overflowing_add(wide(values, 2));
                let carry = if bits == 64 { u64::from(carry) } else { (sum >> 64) as u64 };
                [halves(sum), vec![carry]].concat()
            })
        }
        1 => {
            let text = format!(
                "sub.cc.{kind}{bits} {temporary}0, $a, $c; subc.cc.{kind}{bits} {temporary}1, $b, $e; subc.{kind}{bits} $g, 0, 0; \
                 mov.b{bits} $d, {temporary}0; mov.b{bits} $f, {temporary}1"
            );
            Operation::of_several(text, &sources, &[bits; 3], move |values| {
                let (difference, borrow) = wide(values, 0).overflowing_sub(wide(values, 2));
                [halves(difference), vec![low(-i128::from(borrow), bits)]].concat()
            })
        }
        _ => {
            let signed = random.one_in(2);
            let kind = if signed { "s" } else { "u" };
            let text = format!(
                "mad.lo.cc.{kind}{bits} {temporary}0, $a, $b, $c; madc.hi.{kind}{bits} $f, $a, $b, $e; mov.b{bits} $d, {temporary}0"
            );
            Operation::of_several(text, &sources, &[bits; 2], move |values| {
                let upper = upper_half(values[0], values[1], bits, signed);
                let lower = low(i128::from(values[0]).wrapping_mul(i128::from(values[1])), bits);
                halves((u128::from(lower) | u128::from(upper) << bits).wrapping_add(wide(values, 2)))
            })
        }
    }
}
