//! Atomics and reductions: operation by type, against integer arithmetic and `rustc_apfloat`.

use crate::cases::{check, check_by, product};
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, Round};

/// How a value in memory is reached: the text before the atomic, its space, its address, and the load of the value after it.
/// Values in device memory lie beside the operands; those in shared memory are stored there first.
const PLACES: [(&str, &str, &str, &str); 4] = [
    ("", ".global", "[%base+8]", ".global"),
    ("", "", "[%base+8]", ""),
    ("st.shared.bW [%o], $b;", ".shared", "[%o]", ".shared"),
    ("st.shared.bW [%o], $b; cvta.shared.u64 %o, %o;", "", "[%o]", ""),
];

/// Checks the value that the atomic returns and the one it leaves, in device and shared memory, by their own and by generic
/// addresses, and the reduction where there is one. `operation` is, for example, `add.u32`.
fn check_atomic(operation: &str, bits: u32, rows: &[Vec<u64>], expected: impl Fn(u64, &[u64]) -> u64) {
    let widths = vec![bits; rows[0].len()];
    let sources = if rows[0].len() == 3 { "$a, $c" } else { "$a" };
    let keep = u64::MAX >> (64 - bits);
    let has_reduction = !operation.contains("exch") && !operation.contains("cas");
    for (before, space, address, load) in PLACES {
        let before = before.replace('W', &bits.to_string());
        let returned = format!("{before} atom{space}.{operation} $d, {address}, {sources}");
        check(&returned, &widths, bits, rows, |row| row[1] & keep);
        let after = format!("ld{load}.b{bits} $d, {address}");
        let new = |row: &[u64]| expected(row[1] & keep, &[row[0] & keep, *row.get(2).unwrap_or(&0) & keep]) & keep;
        check(&format!("{returned}; {after}"), &widths, bits, rows, new);
        if has_reduction {
            check(&format!("{before} red{space}.{operation} {address}, {sources}; {after}"), &widths, bits, rows, new);
        }
    }
}

const WORDS: [u64; 9] = [0, 1, 2, 5, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, 0xffff_fffe, 0xffff_ffff];
const DOUBLE_WORDS: [u64; 9] = [
    0,
    1,
    7,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0xffff_ffff_ffff_fffe,
    u64::MAX,
];

#[test]
fn integers() {
    let rows = product(&[&WORDS, &WORDS]);
    for (operation, expected) in [
        ("add.u32", (|old, with| old.wrapping_add(with)) as fn(u64, u64) -> u64),
        ("add.s32", |old, with| old.wrapping_add(with)),
        ("and.b32", |old, with| old & with),
        ("or.b32", |old, with| old | with),
        ("xor.b32", |old, with| old ^ with),
        ("exch.b32", |_, with| with),
        ("min.u32", |old, with| old.min(with)),
        ("max.u32", |old, with| old.max(with)),
        ("min.s32", |old, with| (old as i32).min(with as i32) as u64),
        ("max.s32", |old, with| (old as i32).max(with as i32) as u64),
        ("inc.u32", |old, with| if old >= with { 0 } else { old + 1 }),
        ("dec.u32", |old, with| if old == 0 || old > with { with } else { old - 1 }),
    ] {
        check_atomic(operation, 32, &rows, |old, with| expected(old, with[0]));
    }
    let rows = product(&[&DOUBLE_WORDS, &DOUBLE_WORDS]);
    for (operation, expected) in [
        ("add.u64", (|old, with| old.wrapping_add(with)) as fn(u64, u64) -> u64),
        ("and.b64", |old, with| old & with),
        ("or.b64", |old, with| old | with),
        ("xor.b64", |old, with| old ^ with),
        ("exch.b64", |_, with| with),
        ("min.u64", |old, with| old.min(with)),
        ("max.u64", |old, with| old.max(with)),
        ("min.s64", |old, with| (old as i64).min(with as i64) as u64),
        ("max.s64", |old, with| (old as i64).max(with as i64) as u64),
    ] {
        check_atomic(operation, 64, &rows, |old, with| expected(old, with[0]));
    }
}

#[test]
fn compare_and_swap() {
    let swap = |old: u64, with: &[u64]| if old == with[0] { with[1] } else { old };
    check_atomic("cas.b16", 16, &product(&[&[0, 1, 0x8000, 0xffff], &[0, 1, 0x8000, 0xffff], &[3, 0x8001]]), swap);
    check_atomic("cas.b32", 32, &product(&[&WORDS, &WORDS, &[3, 0xffff_ffff]]), swap);
    check_atomic("cas.b64", 64, &product(&[&DOUBLE_WORDS, &DOUBLE_WORDS, &[3, u64::MAX]]), swap);
}

#[test]
fn orders_and_scopes() {
    let rows = product(&[&WORDS, &WORDS]);
    for order in ["relaxed", "acquire", "release", "acq_rel"] {
        for scope in ["cta", "cluster", "gpu", "sys"] {
            let text = format!("atom.{order}.{scope}.global.add.u32 $d, [%base+8], $a");
            check(&text, &[32, 32], 32, &rows[..4], |row| row[1]);
        }
    }
    check("atom.add.noftz.f16x2 $d, [%base+8], $a", &[32, 32], 32, &[vec![0x3c00, 0x4000]], |row| row[1]);
    let hint = "mov.b64 %o, 0; atom.global.add.L2::cache_hint.u32 $d, [%base+8], $a, %o";
    check(hint, &[32, 32], 32, &rows[..4], |row| row[1]);
    // An immediate operand, a result nobody reads, a result in a wider register.
    check("atom.global.add.u32 _, [%base], -1; ld.global.u32 $d, [%base]", &[32], 32, &[vec![5]], |_| 4);
    check("atom.global.max.s32 $d, [%base], 3", &[32], 64, &[vec![0x8000_0000]], |_| 0xffff_ffff_8000_0000);
}

/// The sum by `rustc_apfloat`, rounded to nearest even, with the not-a-number that NVIDIA's arithmetic gives.
fn sum<F: Float>(a: u64, b: u64, not_a_number: u64) -> u64 {
    let sum = F::from_bits(u128::from(a)).add_r(F::from_bits(u128::from(b)), Round::NearestTiesToEven).value;
    if sum.is_nan() { not_a_number } else { sum.to_bits() as u64 }
}

fn flush(bits: u64) -> u64 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

const SINGLES: [u64; 16] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x8080_0001,
    0x3f80_0000,
    0x3380_0000,
    0xb380_0001,
    0x7f7f_ffff,
    0x7300_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffff_ffff,
];

#[test]
fn single_precision() {
    let rows = product(&[&SINGLES, &SINGLES]);
    let kept = |row: &[u64]| sum::<Single>(row[1], row[0], 0x7fff_ffff);
    let flushed = |row: &[u64]| flush(sum::<Single>(flush(row[1]), flush(row[0]), 0x7fff_ffff));
    let global = "red.global.add.f32 [%base+8], $a; ld.global.b32 $d, [%base+8]";
    check(global, &[32, 32], 32, &rows, flushed);
    let shared = "st.shared.b32 [%o], $b; red.shared.add.f32 [%o], $a; ld.shared.b32 $d, [%o]";
    check(shared, &[32, 32], 32, &rows, kept);
    let generic = "atom.add.f32 $d, [%base+8], $a; ld.b32 $d, [%base+8]";
    check(generic, &[32, 32], 32, &rows, flushed);
}

#[test]
fn double_precision() {
    let values = [
        0,
        1 << 63,
        1,
        0x000f_ffff_ffff_ffff,
        0x3ff0_0000_0000_0000,
        0x3ca0_0000_0000_0000,
        0xbca0_0000_0000_0001,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0xfff0_0000_0000_0000,
    ];
    check_atomic("add.f64", 64, &product(&[&values, &values]), |old, with| {
        sum::<Double>(old, with[0], 0xfff8_0000_0000_0000)
    });
}

const HALVES: [u64; 16] = [
    0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x3c00, 0x3c01, 0x1000, 0x9001, 0x7bff, 0x7800, 0x7c00, 0xfc00, 0x7e00,
    0xffff,
];

#[test]
fn half_precision() {
    let rows = product(&[&HALVES, &HALVES]);
    check_atomic("add.noftz.f16", 16, &rows, |old, with| sum::<Half>(old, with[0], 0x7fff));
    check_atomic("add.noftz.bf16", 16, &rows, |old, with| sum::<BFloat>(old, with[0], 0x7fff));
    let pairs: Vec<Vec<u64>> = rows
        .iter()
        .zip(rows.iter().rev())
        .map(|(low, high)| vec![low[0] | high[0] << 16, low[1] | high[1] << 16])
        .collect();
    let both = |function: fn(u64, u64, u64) -> u64| {
        move |old: u64, with: &[u64]| {
            function(old & 0xffff, with[0] & 0xffff, 0x7fff) | function(old >> 16, with[0] >> 16, 0x7fff) << 16
        }
    };
    check_atomic("add.noftz.f16x2", 32, &pairs, both(sum::<Half>));
    check_atomic("add.noftz.bf16x2", 32, &pairs, both(sum::<BFloat>));
}

/// The extremum: a number before a not-a-number, -0 before +0.
fn extremum<F: Float>(a: u64, b: u64, minimum: bool) -> u64 {
    let [x, y] = [a, b].map(|bits| F::from_bits(u128::from(bits)));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => return 0x7fff,
        (true, false) => return b,
        (false, true) => return a,
        _ => {}
    }
    let a_is_less = x < y || (x.is_zero() && y.is_zero() && x.is_negative());
    if a_is_less == minimum { a } else { b }
}

#[test]
fn vectors() {
    // Four halves in a double word: each element on its own.
    let rows: Vec<Vec<u64>> = product(&[&HALVES, &HALVES])
        .chunks(4)
        .map(|four| {
            let pack = |index: usize| (0..4).fold(0, |word, lane| word | four[lane][index] << (16 * lane));
            vec![pack(0), pack(1)]
        })
        .collect();
    let each = |row: &[u64], function: &dyn Fn(u64, u64) -> u64| {
        (0..4).fold(0, |word, lane| {
            let part = |value: u64| value >> (16 * lane) & 0xffff;
            word | function(part(row[1]), part(row[0])) << (16 * lane)
        })
    };
    let unpack = ".reg .b16 %q<8>; mov.b64 {%q0, %q1, %q2, %q3}, $a;";
    let load = "ld.global.b64 $d, [%base+8]";
    for (name, function) in [
        ("add.noftz.v4.f16", (|old, with| sum::<Half>(old, with, 0x7fff)) as fn(u64, u64) -> u64),
        ("min.noftz.v4.f16", |old, with| extremum::<Half>(old, with, true)),
        ("max.noftz.v4.bf16", |old, with| extremum::<BFloat>(old, with, false)),
    ] {
        let atomic = format!("{unpack} atom.global.{name} {{%q4, %q5, %q6, %q7}}, [%base+8], {{%q0, %q1, %q2, %q3}}");
        check(&format!("{atomic}; {load}"), &[64, 64], 64, &rows, |row| each(row, &function));
        check(&format!("{atomic}; mov.b64 $d, {{%q4, %q5, %q6, %q7}}"), &[64, 64], 64, &rows, |row| row[1]);
        let reduction = format!("{unpack} red.global.{name} [%base+8], {{%q0, %q1, %q2, %q3}}");
        check(&format!("{reduction}; {load}"), &[64, 64], 64, &rows, |row| each(row, &function));
    }
    let pairs = "mov.b64 {%t0, %t1}, $a; red.global.add.noftz.v2.bf16x2 [%base+8], {%t0, %t1};";
    check(&format!("{pairs} {load}"), &[64, 64], 64, &rows, |row| {
        each(row, &|old, with| sum::<BFloat>(old, with, 0x7fff))
    });
    // Eight halves: the first four add, the last four are left by a zero of either sign.
    let eight = "mov.b64 {%q0, %q1, %q2, %q3}, $a; mov.b16 %q4, 0x8000;";
    let atomic = ".reg .b16 %s<8>; atom.global.add.noftz.v8.f16 {%s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7}, [%base+8], \
                  {%q0, %q1, %q2, %q3, %q4, %q4, %q4, %q4};";
    let text = format!(".reg .b16 %q<8>; {eight} {atomic}");
    let widths = [64, 64, 64];
    let rows: Vec<Vec<u64>> = rows.iter().map(|row| vec![row[0], row[1], 0x3c00_8000_7c00_0001]).collect();
    check(&format!("{text} {load}"), &widths, 64, &rows, |row| each(row, &|old, with| sum::<Half>(old, with, 0x7fff)));
    check(&format!("{text} ld.global.b64 $d, [%base+16]"), &widths, 64, &rows, |row| row[2]);
    check(&format!("{text} mov.b64 $d, {{%s0, %s1, %s2, %s3}}"), &widths, 64, &rows, |row| row[1]);
    check(&format!("{text} mov.b64 $d, {{%s4, %s5, %s6, %s7}}"), &widths, 64, &rows, |row| row[2]);
}

#[test]
fn single_precision_vectors() {
    let rows: Vec<Vec<u64>> = product(&[&SINGLES, &SINGLES])
        .chunks(2)
        .map(|two| vec![two[0][0] | two[1][0] << 32, two[0][1] | two[1][1] << 32])
        .collect();
    let add = |old: u64, with: u64| flush(sum::<Single>(flush(old), flush(with), 0x7fff_ffff));
    let expected =
        |row: &[u64]| add(row[1] & 0xffff_ffff, row[0] & 0xffff_ffff) | add(row[1] >> 32, row[0] >> 32) << 32;
    let text = ".reg .f32 %u<4>; .reg .f32 %w<4>; mov.b64 {%u0, %u1}, $a; atom.global.add.v2.f32 {%w0, %w1}, [%base+8], {%u0, %u1};";
    check(&format!("{text} ld.global.b64 $d, [%base+8]"), &[64, 64], 64, &rows, expected);
    check(&format!("{text} mov.b64 $d, {{%w0, %w1}}"), &[64, 64], 64, &rows, |row| row[1]);
    let four = ".reg .f32 %u<4>; mov.b64 {%u0, %u1}, $a; mov.b64 {%u2, %u3}, $a; \
                red.global.add.v4.f32 [%base+8], {%u0, %u1, %u2, %u3};";
    let rows: Vec<Vec<u64>> = rows.iter().map(|row| vec![row[0], row[1], row[1]]).collect();
    for place in [8, 16] {
        check(&format!("{four} ld.global.b64 $d, [%base+{place}]"), &[64, 64, 64], 64, &rows, expected);
    }
}

#[test]
fn lanes_of_a_warp_follow_each_other() {
    // All lanes add to one word: each gets the sum of those before it.
    let rows: Vec<Vec<u64>> = (0..32).map(|lane| vec![lane + 1]).collect();
    for text in
        ["atom.shared.add.u32 $d, [4096], $a", "mov.b64 %o, 4096; cvta.shared.u64 %o, %o; atom.add.u32 $d, [%o], $a"]
    {
        check(text, &[32], 32, &rows, |row| row[0] * (row[0] - 1) / 2);
    }
    check_by("atom.shared.exch.b32 $d, [4096], $a", &[32], 32, &rows, |row, old| {
        if old + 1 == row[0] { Ok(()) } else { Err(format!("{} expected", row[0] - 1)) }
    });
}
