//! Bits that are combined, moved, cut out and put in.

use crate::operation::{Operation, integer, register};
use crate::random::Random;
use crate::values::{low, meaning, name};

/// `and`, `or`, `xor`, `lop3`.
pub fn logic(random: &mut Random) -> Operation {
    let bits = random.pick(&[16, 32, 32, 64]);
    let plain = |opcode: &str, compute: fn(u64, u64) -> u64| {
        Operation::new(format!("{opcode}.b{bits} $d, $a, $b"), &[integer(bits); 2], bits, move |values| {
            compute(values[0], values[1])
        })
    };
    match random.below(5) {
        0 => plain("and", |a, b| a & b),
        1 => plain("or", |a, b| a | b),
        2 => plain("xor", |a, b| a ^ b),
        _ => {
            let table = random.below(256) as u64;
            Operation::new(format!("lop3.b32 $d, $a, $b, $c, {table}"), &[integer(32); 3], 32, move |values| {
                (0..32).fold(0, |result, bit| {
                    let [a, b, c] = [0, 1, 2].map(|source| values[source] >> bit & 1);
                    result | (table >> (4 * a + 2 * b + c) & 1) << bit
                })
            })
        }
    }
}

/// `and`, `or`, `xor`, `not` of predicates.
pub fn predicates(random: &mut Random) -> Operation {
    let sources = [register(1); 2];
    match random.below(5) {
        0 => Operation::new("and.pred $d, $a, $b", &sources, 1, |values| values[0] & values[1]),
        1 => Operation::new("or.pred $d, $a, $b", &sources, 1, |values| values[0] | values[1]),
        2 => Operation::new("xor.pred $d, $a, $b", &sources, 1, |values| values[0] ^ values[1]),
        3 => Operation::new("not.pred $d, $a", &sources[..1], 1, |values| values[0] ^ 1),
        _ => Operation::new("mov.pred $d, $a", &sources[..1], 1, |values| values[0]),
    }
}

/// `shl`, `shr`, `shf`.
pub fn shifts(random: &mut Random) -> Operation {
    let bits = random.pick(&[16, 32, 32, 64]);
    let signed = random.one_in(2);
    // Counts are clamped to the width, and mostly small.
    let (before, count, limit) = match random.below(3) {
        0 => ("", "$b", u64::from(u32::MAX)),
        1 => ("and.b32 %t0, $b, 63; ", "%t0", 63),
        _ => ("and.b32 %t0, $b, 15; ", "%t0", 15),
    };
    // Of a constant by a constant, ptxas 12.9 computes something else. Of constants by which it shifts 16 bits, it takes 16 bits.
    let count_source = if bits == 16 && before.is_empty() { register(32) } else { integer(32) };
    let sources = [register(bits), count_source];
    match random.below(4) {
        0 => Operation::new(format!("{before}shl.b{bits} $d, $a, {count}"), &sources, bits, move |values| {
            let count = (values[1] & limit).min(u64::from(bits));
            low((i128::from(values[0])) << count, bits)
        }),
        1 => {
            let kind = name(bits, signed);
            Operation::new(format!("{before}shr.{kind} $d, $a, {count}"), &sources, bits, move |values| {
                let count = (values[1] & limit).min(u64::from(bits));
                low(meaning(values[0], bits, signed) >> count, bits)
            })
        }
        _ => {
            let (is_left, wraps) = (random.one_in(2), random.one_in(2));
            let direction = if is_left { "l" } else { "r" };
            let mode = if wraps { "wrap" } else { "clamp" };
            Operation::new(format!("shf.{direction}.{mode}.b32 $d, $a, $b, $c"), &[integer(32); 3], 32, move |values| {
                let both = u128::from(values[0] | values[1] << 32);
                let count = if wraps { values[2] & 31 } else { values[2].min(32) };
                low((if is_left { both << count >> 32 } else { both >> count }) as i128, 32)
            })
        }
    }
}

/// `bfe`, `bfi`, `bmsk`, `szext`, of positions and lengths below 256.
pub fn fields(random: &mut Random) -> Operation {
    let bits = random.pick(&[32, 64]);
    let (first, length) = match random.below(3) {
        0 => ("and.b32 %t0, $b, 255", "and.b32 %t1, $c, 255"),
        1 => ("and.b32 %t0, $b, 31", "and.b32 %t1, $c, 15"),
        _ => ("and.b32 %t0, $b, 63", "and.b32 %t1, $c, 31"),
    };
    let limit = |text: &str| -> u64 { text.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0) };
    let limits = [limit(first), limit(length)];
    let before = format!("{first}; {length}");
    // Where all is constant, ptxas 12.9 may compute something else.
    let sources = [register(bits), register(32), register(32), integer(bits)];
    match random.below(5) {
        0 | 1 => {
            let signed = random.one_in(2);
            let kind = name(bits, signed);
            Operation::new(format!("{before}; bfe.{kind} $d, $a, %t0, %t1"), &sources[..3], bits, move |values| {
                let (first, length) = (values[1] & limits[0], values[2] & limits[1]);
                if length == 0 {
                    return 0;
                }
                // Beyond the value, all bits are its sign.
                let value = meaning(values[0], bits, signed) >> first.min(u64::from(bits));
                let length = length.min(u64::from(bits).saturating_sub(first)).max(1) as u32;
                low(meaning((value & ((1 << length) - 1)) as u64, length, signed), bits)
            })
        }
        2 => Operation::new(format!("{before}; bfi.b{bits} $d, $a, $e, %t0, %t1"), &sources, bits, move |values| {
            let (first, length) = (values[1] & limits[0], values[2] & limits[1]);
            let first = first.min(64);
            let mask = low((u128::from(low((1i128 << length.min(64)) - 1, 64)) << first) as i128, bits);
            values[3] & !mask | low(i128::from(values[0]) << first, bits) & mask
        }),
        3 => {
            let wraps = random.one_in(2);
            let mode = if wraps { "wrap" } else { "clamp" };
            Operation::new(format!("bmsk.{mode}.b32 $d, $b, $c"), &sources[..3], 32, move |values| {
                let [first, length] =
                    [1, 2].map(|place| if wraps { values[place] & 31 } else { values[place].min(32) });
                low(((1i128 << length) - 1) << first, 32)
            })
        }
        _ => {
            let (wraps, signed) = (random.one_in(2), random.one_in(2));
            let mode = if wraps { "wrap" } else { "clamp" };
            let kind = name(32, signed);
            // Where the length is a constant of a bank, ptxas 12.9 names another bank.
            let sources = [integer(32), register(32)];
            Operation::new(format!("szext.{mode}.{kind} $d, $a, $b"), &sources, 32, move |values| {
                let length = if wraps { values[1] & 31 } else { values[1].min(32) } as u32;
                if length == 0 { 0 } else { low(meaning(values[0], length, signed), 32) }
            })
        }
    }
}

/// `prmt` in all modes.
pub fn permutations(random: &mut Random) -> Operation {
    let mode = random.pick(&["", "", "", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"]);
    Operation::new(format!("prmt.b32{mode} $d, $a, $b, $c"), &[integer(32); 3], 32, move |values| {
        let both = values[0] | values[1] << 32;
        let control = values[2];
        let step = control & 3;
        (0..4u64).fold(0, |result, place| {
            let choice = match mode {
                "" => control >> (4 * place) & 15,
                ".f4e" => place + step,
                ".b4e" => step.wrapping_sub(place) & 7,
                ".rc8" => step,
                ".ecl" => place.max(step),
                ".ecr" => place.min(step),
                _ => 2 * (step & 1) + place % 2,
            };
            let byte = both >> (8 * (choice & 7)) & 0xff;
            let byte = if choice & 8 != 0 { if byte & 0x80 != 0 { 0xff } else { 0 } } else { byte };
            result | byte << (8 * place)
        })
    })
}

/// Registers that are put together and taken apart.
pub fn moves(random: &mut Random) -> Operation {
    match random.below(7) {
        0 => Operation::new("mov.b64 $d, {$a, $b}", &[register(32); 2], 64, |values| values[0] | values[1] << 32),
        1 => Operation::new("mov.b32 $d, {$a, $b}", &[register(16); 2], 32, |values| values[0] | values[1] << 16),
        2 => Operation::new("mov.b64 $d, {$a, $b, $c, $e}", &[register(16); 4], 64, |values| {
            values.iter().rev().fold(0, |all, part| all << 16 | part)
        }),
        3 => Operation::of_several("mov.b64 {$d, $f}, $a", &[register(64)], &[32; 2], |values| {
            vec![values[0] & 0xffff_ffff, values[0] >> 32]
        }),
        4 => Operation::of_several("mov.b32 {$d, $f}, $a", &[register(32)], &[16; 2], |values| {
            vec![values[0] & 0xffff, values[0] >> 16]
        }),
        5 => Operation::of_several("mov.b64 {$d, $f, $g, $h}, $a", &[register(64)], &[16; 4], |values| {
            (0..4).map(|part| values[0] >> (16 * part) & 0xffff).collect()
        }),
        _ => {
            let bits = random.pick(&[16, 32, 64]);
            Operation::new(format!("mov.b{bits} $d, $a"), &[integer(bits)], bits, |values| values[0])
        }
    }
}
