//! Logic, shifts and bit fields against loops over bits.

use crate::cases::{check, check_all, product};
use crate::values::*;

const ONES: u64 = u64::MAX;

fn bit(value: u64, place: i64) -> u64 {
    if (0..64).contains(&place) { (value >> place) & 1 } else { 0 }
}

/// A value of which each bit is said.
fn from_bits(bits: u32, value: impl Fn(i64) -> u64) -> u64 {
    (0..i64::from(bits)).fold(0, |result, place| result | (value(place) & 1) << place)
}

#[test]
fn logic() {
    for bits in [16, 32, 64] {
        let values = edges(bits);
        let rows = product(&[&values, &values]);
        let mask = ONES >> (64 - bits);
        check(&format!("and.b{bits} $d, $a, $b"), &[bits; 2], bits, &rows, |row| row[0] & row[1]);
        check(&format!("or.b{bits} $d, $a, $b"), &[bits; 2], bits, &rows, |row| row[0] | row[1]);
        check(&format!("xor.b{bits} $d, $a, $b"), &[bits; 2], bits, &rows, |row| row[0] ^ row[1]);
        check(&format!("not.b{bits} $d, $a"), &[bits; 2], bits, &rows, |row| !row[0] & mask);
        check(&format!("cnot.b{bits} $d, $a"), &[bits; 2], bits, &rows, |row| u64::from(row[0] == 0));
    }
    let rows = product(&[&[0, 1], &[0, 1]]);
    check("and.pred $d, $a, $b", &[1, 1], 1, &rows, |row| row[0] & row[1]);
    check("or.pred $d, $a, $b", &[1, 1], 1, &rows, |row| row[0] | row[1]);
    check("xor.pred $d, $a, $b", &[1, 1], 1, &rows, |row| row[0] ^ row[1]);
    check("not.pred $d, $a", &[1, 1], 1, &rows, |row| 1 - row[0]);
}

#[test]
fn logic_of_three() {
    let values = [0, 0xffff_ffff, 0x5555_5555, 0x0f0f_3c3c, 0x1234_5678];
    let rows = product(&[&values, &values, &values]);
    let expected = |row: &[u64], table: u64| {
        from_bits(32, |place| {
            let index = bit(row[0], place) << 2 | bit(row[1], place) << 1 | bit(row[2], place);
            table >> index
        })
    };
    for table in [0, 0x01, 0x80, 0x96, 0xe8, 0xca, 0x1b, 0xfe, 0xff, 0xf0, 0xcc, 0xaa] {
        check(&format!("lop3.b32 $d, $a, $b, $c, {table}"), &[32; 3], 32, &rows, |row| expected(row, table));
        let rows = product(&[&values, &values, &[0, 0x5555_5555], &[0, 1]]);
        for (operator, negation) in [("and", ""), ("or", ""), ("and", "!"), ("or", "!")] {
            let truth = |row: &[u64]| {
                let value = u64::from(expected(row, table) != 0);
                let other = if negation.is_empty() { row[3] } else { 1 - row[3] };
                if operator == "and" { value & other } else { value | other }
            };
            let text = format!("lop3.{operator}.b32 $d|$f, $a, $b, $c, {table}, {negation}$e");
            check_all(&text, &[32, 32, 32, 1], &[32, 1], &rows, |row| vec![expected(row, table), truth(row)]);
            let text = format!("lop3.{operator}.b32 _|$d, $a, $b, $c, {table}, {negation}$e");
            check(&text, &[32, 32, 32, 1], 1, &rows, truth);
        }
    }
}

#[test]
fn shifts() {
    let counts = [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x8000_0000, 0xffff_ffff];
    for bits in [16, 32, 64] {
        let rows = product(&[&edges(bits), &counts]);
        let count = |row: &[u64]| row[1] as i64;
        let sign = |row: &[u64]| bit(row[0], i64::from(bits) - 1);
        let right = |row: &[u64], fill: u64| {
            from_bits(bits, |place| {
                let from = place + count(row);
                if from < i64::from(bits) { bit(row[0], from) } else { fill }
            })
        };
        check(&format!("shl.b{bits} $d, $a, $b"), &[bits, 32], bits, &rows, |row| {
            from_bits(bits, |place| bit(row[0], place - count(row)))
        });
        check(&format!("shr.b{bits} $d, $a, $b"), &[bits, 32], bits, &rows, |row| right(row, 0));
        check(&format!("shr.u{bits} $d, $a, $b"), &[bits, 32], bits, &rows, |row| right(row, 0));
        check(&format!("shr.s{bits} $d, $a, $b"), &[bits, 32], bits, &rows, |row| right(row, sign(row)));
    }
}

#[test]
fn funnel_shifts() {
    let rows = product(&[&few(32), &few(32), &[0, 1, 8, 31, 32, 33, 63, 64, 0xffff_ffff]]);
    for (mode, limited) in [("wrap", false), ("clamp", true)] {
        let count = |row: &[u64]| if limited { row[2].min(32) as i64 } else { (row[2] % 32) as i64 };
        let pair = |row: &[u64], place: i64| if place < 32 { bit(row[0], place) } else { bit(row[1], place - 32) };
        check(&format!("shf.l.{mode}.b32 $d, $a, $b, $c"), &[32; 3], 32, &rows, |row| {
            from_bits(32, |place| pair(row, place + 32 - count(row)))
        });
        check(&format!("shf.r.{mode}.b32 $d, $a, $b, $c"), &[32; 3], 32, &rows, |row| {
            from_bits(32, |place| pair(row, place + count(row)))
        });
    }
}

#[test]
fn counting_and_finding() {
    for bits in [32, 64] {
        let mut values = edges(bits);
        values.extend((0..bits).map(|place| 1 << place));
        let rows = product(&[&values]);
        check(&format!("popc.b{bits} $d, $a"), &[bits], 32, &rows, |row| (0..64).map(|place| bit(row[0], place)).sum());
        check(&format!("clz.b{bits} $d, $a"), &[bits], 32, &rows, |row| {
            (0..i64::from(bits)).rev().take_while(|place| bit(row[0], *place) == 0).count() as u64
        });
        check(&format!("brev.b{bits} $d, $a"), &[bits], bits, &rows, |row| {
            from_bits(bits, |place| bit(row[0], i64::from(bits) - 1 - place))
        });
        for signed in [false, true] {
            let find = |value: u64| {
                let sign = if signed { bit(value, i64::from(bits) - 1) } else { 0 };
                (0..i64::from(bits)).rev().find(|place| bit(value, *place) != sign)
            };
            let kind = name(bits, signed);
            check(&format!("bfind.{kind} $d, $a"), &[bits], 32, &rows, |row| {
                find(row[0]).map_or(0xffff_ffff, |at| at as u64)
            });
            check(&format!("bfind.shiftamt.{kind} $d, $a"), &[bits], 32, &rows, |row| {
                find(row[0]).map_or(0xffff_ffff, |at| u64::from(bits) - 1 - at as u64)
            });
        }
    }
}

#[test]
fn the_nth_set_bit() {
    let masks = [0, 1, 0x8000_0000, 0xffff_ffff, 0x5555_5555, 0x0f0f_0ff0, 0x8000_0001];
    let offsets: Vec<u64> =
        [0, 1, 2, 3, 8, 16, 32, 33, -1, -2, -8, -16, -32, -33].map(|n: i32| u64::from(n as u32)).into();
    let rows = product(&[&masks, &[0, 1, 4, 15, 16, 30, 31], &offsets]);
    check("fns.b32 $d, $a, $b, $c", &[32; 3], 32, &rows, |row| {
        let (base, offset) = (row[1] as i64, i64::from(row[2] as u32 as i32));
        let places: Vec<i64> = match offset {
            0 => vec![base],
            1.. => (base..32).collect(),
            _ => (0..=base).rev().collect(),
        };
        let set: Vec<i64> = places.into_iter().filter(|place| bit(row[0], *place) == 1).collect();
        let index = if offset == 0 { 0 } else { offset.unsigned_abs() as usize - 1 };
        set.get(index).map_or(0xffff_ffff, |place| *place as u64)
    });
}

#[test]
fn bit_fields() {
    let sizes = [0, 1, 2, 8, 31, 32, 33, 63, 64, 65, 128, 255, 256, 0x1_0001];
    for bits in [32, 64] {
        let last = i64::from(bits) - 1;
        let rows = product(&[&few(bits), &sizes, &sizes]);
        for signed in [false, true] {
            check(&format!("bfe.{} $d, $a, $b, $c", name(bits, signed)), &[bits, 32, 32], bits, &rows, |row| {
                let (first, length) = ((row[1] & 255) as i64, (row[2] & 255) as i64);
                let fill = if signed && length != 0 { bit(row[0], (first + length - 1).min(last)) } else { 0 };
                from_bits(
                    bits,
                    |place| {
                        if place < length && first + place <= last { bit(row[0], first + place) } else { fill }
                    },
                )
            });
        }
        let rows = product(&[&few(bits)[2..5], &few(bits), &sizes, &sizes]);
        check(&format!("bfi.b{bits} $d, $a, $b, $c, $e"), &[bits, bits, 32, 32], bits, &rows, |row| {
            let (first, length) = ((row[2] & 255) as i64, (row[3] & 255) as i64);
            from_bits(bits, |place| {
                if place >= first && place < first + length { bit(row[0], place - first) } else { bit(row[1], place) }
            })
        });
    }
}

#[test]
fn masks_and_extension() {
    let sizes = [0, 1, 2, 15, 16, 30, 31, 32, 33, 63, 64, 0x8000_0000, 0xffff_ffff];
    let rows = product(&[&sizes, &sizes]);
    for clamps in [false, true] {
        let mode = if clamps { "clamp" } else { "wrap" };
        check(&format!("bmsk.{mode}.b32 $d, $a, $b"), &[32; 2], 32, &rows, |row| {
            let (first, count) = if clamps { (row[0], row[1]) } else { (row[0] % 32, row[1] % 32) };
            from_bits(32, |place| u64::from(place as u64 >= first && (place as u64) < first + count))
        });
        for signed in [false, true] {
            let rows = product(&[&edges(32), &sizes]);
            check(&format!("szext.{mode}.{} $d, $a, $b", name(32, signed)), &[32; 2], 32, &rows, |row| {
                let count = if clamps { row[1] as i64 } else { (row[1] % 32) as i64 };
                let fill = if signed && count > 0 { bit(row[0], count - 1) } else { 0 };
                from_bits(32, |place| if place < count { bit(row[0], place) } else { fill })
            });
        }
    }
}

#[test]
fn bytes_change_places() {
    let selectors = [0, 0x3210, 0x7654, 0x0123, 0x89ab, 0xfedc, 0x1f2e, 0xffff_5140, 1, 2, 3, 0xfffd];
    let rows = product(&[&[0x8040_c020, 0x0123_4567], &[0x7fff_8000, 0x89ab_cdef], &selectors]);
    let byte =
        |row: &[u64], index: u64| (if index < 4 { row[0] >> (8 * index) } else { row[1] >> (8 * (index - 4)) }) & 255;
    check("prmt.b32 $d, $a, $b, $c", &[32; 3], 32, &rows, |row| {
        (0..4).fold(0, |result, place| {
            let selector = (row[2] >> (4 * place)) & 15;
            let chosen = byte(row, selector & 7);
            let chosen = match selector & 8 {
                0 => chosen,
                _ if chosen & 0x80 != 0 => 0xff,
                _ => 0,
            };
            result | chosen << (8 * place)
        })
    });
    // The ISA's tables: the bytes of the result from the highest to the lowest, by the low two bits of the selector.
    for (mode, table) in [
        ("f4e", [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]),
        ("b4e", [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]]),
        ("rc8", [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]]),
        ("ecl", [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]]),
        ("ecr", [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]]),
        ("rc16", [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]]),
    ] {
        check(&format!("prmt.b32.{mode} $d, $a, $b, $c"), &[32; 3], 32, &rows, |row| {
            table[(row[2] & 3) as usize].iter().fold(0, |result, index| result << 8 | byte(row, *index))
        });
    }
}

/// A bit of a product without carries is the parity of the pairs of bits that make it.
#[test]
fn products_without_carries() {
    let values = edges(64);
    let rows = product(&[&values, &values, &[0, 0x0123_4567_89ab_cdef]]);
    let bit_of_product =
        |a: u64, b: u64, place: i64| (0..64).fold(0, |parity, first| parity ^ bit(a, first) & bit(b, place - first));
    for (half, first) in [("lo", 0), ("hi", 64)] {
        check(&format!("clmad.{half}.u64 $d, $a, $b, $c"), &[64; 3], 64, &rows, |row| {
            from_bits(64, |place| bit_of_product(row[0], row[1], place + first)) ^ row[2]
        });
    }
}
