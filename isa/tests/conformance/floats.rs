//! Arithmetic that IEEE 754 defines: every type, rounding and treatment.

use crate::cases::check;
use crate::reference::{
    Bf16, F16, F32, F64, Format, Operation, PLAIN, ROUNDINGS, Treatment, hard_rows, of_parts, packed, result, rows,
};

const SOURCES: [&str; 4] = ["", "$a", "$a, $b", "$a, $b, $c"];

/// An instruction in every rounding, with and without each of some words.
fn check_all<T: Format>(name: &str, operation: Operation, sources: usize, roundings: usize, words: &[&str]) {
    let mut rows = rows::<T>(sources, 11);
    rows.extend(hard_rows::<T>(operation, 13));
    for (rounding, round) in &ROUNDINGS[..roundings] {
        for chosen in 0..1 << words.len() {
            let has =
                |word: &str| words.iter().position(|other| *other == word).is_some_and(|bit| chosen >> bit & 1 != 0);
            let treatment = Treatment { round: *round, flush: has(".ftz"), saturate: has(".sat"), relu: has(".relu") };
            if treatment.saturate && treatment.relu {
                continue;
            }
            let words: String = words.iter().filter(|word| has(word)).copied().collect();
            let instruction = format!("{name}{rounding}{words}.{} $d, {}", T::NAME, SOURCES[sources]);
            check(&instruction, &vec![T::WIDTH; sources], T::WIDTH, &rows, |row| {
                result::<T>(operation, row, treatment)
            });
            if T::WIDTH == 16 {
                let instruction = format!("{name}{rounding}{words}.{}x2 $d, {}", T::NAME, SOURCES[sources]);
                check(&instruction, &vec![32; sources], 32, &packed::<T>(&rows), |row| {
                    of_parts::<T>(row, |part| result::<T>(operation, part, treatment))
                });
            }
        }
    }
}

#[test]
fn single_sums() {
    check_all::<F32>("add", Operation::Add, 2, 4, &[".ftz", ".sat"]);
    check_all::<F32>("sub", Operation::Sub, 2, 4, &[".ftz", ".sat"]);
}

#[test]
fn single_products() {
    check_all::<F32>("mul", Operation::Mul, 2, 4, &[".ftz", ".sat"]);
}

#[test]
fn single_fused() {
    check_all::<F32>("fma", Operation::Fma, 3, 4, &[".ftz", ".sat"]);
    check_all::<F32>("mad", Operation::Fma, 3, 4, &[]);
}

#[test]
fn single_quotients_and_roots() {
    check_all::<F32>("div", Operation::Div, 2, 4, &[".ftz"]);
    check_all::<F32>("rcp", Operation::Rcp, 1, 4, &[".ftz"]);
    check_all::<F32>("sqrt", Operation::Sqrt, 1, 4, &[".ftz"]);
}

#[test]
fn double_sums() {
    check_all::<F64>("add", Operation::Add, 2, 4, &[]);
    check_all::<F64>("sub", Operation::Sub, 2, 4, &[]);
}

#[test]
fn double_products() {
    check_all::<F64>("mul", Operation::Mul, 2, 4, &[]);
}

#[test]
fn double_fused() {
    check_all::<F64>("fma", Operation::Fma, 3, 4, &[]);
    check_all::<F64>("mad", Operation::Fma, 3, 4, &[]);
}

#[test]
fn double_quotients_and_roots() {
    check_all::<F64>("div", Operation::Div, 2, 4, &[]);
    check_all::<F64>("rcp", Operation::Rcp, 1, 4, &[]);
    check_all::<F64>("sqrt", Operation::Sqrt, 1, 4, &[]);
}

#[test]
fn half_arithmetic() {
    check_all::<F16>("add", Operation::Add, 2, 1, &[".ftz", ".sat"]);
    check_all::<F16>("sub", Operation::Sub, 2, 1, &[".ftz", ".sat"]);
    check_all::<F16>("mul", Operation::Mul, 2, 1, &[".ftz", ".sat"]);
    check_all::<F16>("fma", Operation::Fma, 3, 1, &[".ftz", ".sat", ".relu"]);
}

#[test]
fn brain_arithmetic() {
    check_all::<Bf16>("add", Operation::Add, 2, 1, &[]);
    check_all::<Bf16>("sub", Operation::Sub, 2, 1, &[]);
    check_all::<Bf16>("mul", Operation::Mul, 2, 1, &[]);
    check_all::<Bf16>("fma", Operation::Fma, 3, 1, &[".relu"]);
}

#[test]
fn without_rounding_they_round_to_nearest() {
    let rows = rows::<F32>(2, 3);
    for (name, operation) in [("add", Operation::Add), ("sub", Operation::Sub), ("mul", Operation::Mul)] {
        let text = |data_type| format!("{name}.{data_type} $d, $a, $b");
        check(&text("f32"), &[32, 32], 32, &rows, |row| result::<F32>(operation, row, PLAIN));
    }
}

#[test]
fn pairs_of_singles() {
    for (rounding, round) in ROUNDINGS {
        for (flush, word) in [(false, ""), (true, ".ftz")] {
            let treatment = Treatment { round, flush, ..PLAIN };
            for (name, operation, sources) in [
                ("add", Operation::Add, 2),
                ("sub", Operation::Sub, 2),
                ("mul", Operation::Mul, 2),
                ("fma", Operation::Fma, 3),
            ] {
                let instruction = format!("{name}{rounding}{word}.f32x2 $d, {}", SOURCES[sources]);
                let rows = packed::<F32>(&rows::<F32>(sources, 5));
                check(&instruction, &vec![64; sources], 64, &rows, |row| {
                    of_parts::<F32>(row, |part| result::<F32>(operation, part, treatment))
                });
            }
        }
    }
}

/// The single of the same value.
fn widened<T: Format>(bits: u64) -> u64 {
    use rustc_apfloat::{Float, FloatConvert, ieee::Single};
    let value: Single = {
        let wide: rustc_apfloat::ieee::Quad = T::F::from_bits(u128::from(bits)).convert(&mut false).value;
        wide.convert(&mut false).value
    };
    value.to_bits() as u64
}

fn mixed<T: Format>() {
    let halves = crate::reference::few_edges::<T>();
    let singles = crate::reference::few_edges::<F32>();
    let mut random = crate::reference::Random(17);
    for (rounding, round) in ROUNDINGS {
        for (saturate, word) in [(false, ""), (true, ".sat")] {
            let treatment = Treatment { round, saturate, ..PLAIN };
            let mut rows = crate::cases::product(&[&halves, &singles]);
            rows.extend((0..500).map(|_| vec![random.next() & 0xffff, random.operands::<F32>(1)[0]]));
            for (name, operation) in [("add", Operation::Add), ("sub", Operation::Sub)] {
                let instruction = format!("{name}{rounding}{word}.f32.{} $d, $a, $b", T::NAME);
                check(&instruction, &[16, 32], 32, &rows, |row| {
                    result::<F32>(operation, &[widened::<T>(row[0]), row[1]], treatment)
                });
            }
            let instruction = format!("fma{rounding}{word}.f32.{} $d, $a, $b, $c", T::NAME);
            let mut rows = crate::cases::product(&[&halves, &halves, &singles]);
            rows.extend(
                (0..500).map(|_| vec![random.next() & 0xffff, random.next() & 0xffff, random.operands::<F32>(1)[0]]),
            );
            check(&instruction, &[16, 16, 32], 32, &rows, |row| {
                result::<F32>(Operation::Fma, &[widened::<T>(row[0]), widened::<T>(row[1]), row[2]], treatment)
            });
        }
    }
}

#[test]
fn mixed_precision() {
    mixed::<F16>();
    mixed::<Bf16>();
}
