//! Exchange between lanes. Each chunk of 32 rows is a warp.

use crate::cases::{check, check_all, run_all};

/// A warp's rows: a value for each source in each lane.
fn warp(sources: usize, value: impl Fn(usize, usize) -> u64) -> Vec<Vec<u64>> {
    (0..32).map(|lane| (0..sources).map(|source| value(lane, source)).collect()).collect()
}

fn hash(lane: u64) -> u64 {
    (lane + 3).wrapping_mul(0x9e37_79b1) & 0xffff_ffff
}

/// Where `shfl` reads, and whether that is in range, by the ISA's pseudocode.
fn shuffle_source(mode: &str, lane: i64, b: u64, c: u64) -> (i64, bool) {
    let amount = (b & 31) as i64;
    let clamp = (c & 31) as i64;
    let segment = ((c >> 8) & 31) as i64;
    let most = (lane & segment) | (clamp & !segment);
    let least = lane & segment;
    let (from, in_range) = match mode {
        "up" => (lane - amount, lane - amount >= most),
        "down" => (lane + amount, lane + amount <= most),
        "bfly" => (lane ^ amount, lane ^ amount <= most),
        _ => {
            let from = least | (amount & !segment);
            (from, from <= most)
        }
    };
    (if in_range { from } else { lane }, in_range)
}

#[test]
fn shuffles() {
    for mode in ["up", "down", "bfly", "idx"] {
        for segment in [0u64, 0x10, 0x18, 0x1c, 0x1e, 0x1f] {
            for clamp in [0, 7, 15, 31] {
                for amount in [0, 1, 2, 5, 16, 31, 33] {
                    let c = segment << 8 | clamp;
                    let rows = warp(3, |lane, source| [hash(lane as u64), amount, c][source]);
                    let expected = |lane: usize| {
                        let (from, in_range) = shuffle_source(mode, lane as i64, amount, c);
                        vec![hash(from as u64), u64::from(in_range)]
                    };
                    for text in [
                        format!("shfl.sync.{mode}.b32 $d|$f, $a, $b, $c, 0xffffffff"),
                        format!("shfl.{mode}.b32 $d|$f, $a, $b, $c"),
                    ] {
                        let results = run_all(&text, &[32; 3], &[32, 1], &rows);
                        for (lane, result) in results.iter().enumerate() {
                            assert_eq!(*result, expected(lane), "{text} of lane {lane}, {amount}, {c:#x}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn lanes_shuffle_by_amounts_of_their_own() {
    let rows = warp(2, |lane, source| if source == 0 { hash(lane as u64) } else { (lane as u64 * 7 + 2) % 32 });
    let results = run_all("shfl.sync.idx.b32 $d, $a, $b, 31, -1", &[32; 2], &[32], &rows);
    for (lane, result) in results.iter().enumerate() {
        assert_eq!(result[0], hash((lane as u64 * 7 + 2) % 32));
    }
}

#[test]
fn lanes_that_take_no_part_in_a_shuffle_give_zero() {
    let rows = warp(2, |lane, source| if source == 0 { hash(lane as u64) } else { u64::from(lane < 8) });
    for text in ["@$b shfl.sync.down.b32 $d, $a, 4, 31, 0xff", "@$b shfl.down.b32 $d, $a, 4, 31"] {
        let results = run_all(text, &[32, 1], &[32], &rows);
        for (lane, result) in results.iter().enumerate().take(8) {
            assert_eq!(result[0], if lane < 4 { hash(lane as u64 + 4) } else { 0 }, "{text} of lane {lane}");
        }
    }
}

#[test]
fn votes() {
    // Patterns of the predicate, and of the lanes that take part.
    for truths in [0u32, 1, 0x8000_0000, 0xffff_ffff, 0x5555_5555, 0xffff_0000] {
        for members in [0xffff_ffffu32, 0x0000_ffff, 0x5555_5555, 0x8000_0001] {
            for (negation, truths) in [("", truths), ("!", !truths)] {
                let stated = if negation.is_empty() { truths } else { !truths };
                let rows = warp(3, |lane, source| {
                    [u64::from(stated >> lane & 1), u64::from(members >> lane & 1), u64::from(members)][source]
                });
                let here = truths & members;
                for (mode, answer) in [
                    ("all", u64::from(here == members)),
                    ("any", u64::from(here != 0)),
                    ("uni", u64::from(here == members || here == 0)),
                    ("ballot", u64::from(here)),
                ] {
                    let (kind, width) = if mode == "ballot" { ("b32", 32) } else { ("pred", 1) };
                    let before = if width == 1 { "mov.pred $d, 0; " } else { "" };
                    for (sync, mask) in [(".sync", ", $c"), ("", "")] {
                        let text = format!("{before}@$b vote{sync}.{mode}.{kind} $d, {negation}$a{mask}");
                        let results = run_all(&text, &[1, 1, 32], &[width], &rows);
                        for (lane, result) in results.iter().enumerate() {
                            let untouched = if width == 1 { 0 } else { 0x5a5a };
                            let expected = if members >> lane & 1 != 0 { answer } else { untouched };
                            assert_eq!(result[0], expected, "{text}: {truths:#x} {members:#x} lane {lane}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn matches() {
    for groups in [1u64, 2, 5, 32] {
        for (bits, spread) in [(32u32, 0x1000_0001u64), (64, 0x1000_0000_0000_0001)] {
            let value = |lane: usize| (lane as u64 % groups).wrapping_mul(spread) & (u64::MAX >> (64 - bits));
            let rows = warp(1, |lane, _| value(lane));
            let same = |lane: usize| {
                (0..32).filter(|other| value(*other) == value(lane)).fold(0u64, |mask, other| mask | 1 << other)
            };
            let results = run_all(&format!("match.any.sync.b{bits} $d, $a, -1"), &[bits], &[32], &rows);
            for (lane, result) in results.iter().enumerate() {
                assert_eq!(result[0], same(lane));
            }
            let text = format!("match.all.sync.b{bits} $d|$f, $a, -1");
            let all = if groups == 1 { vec![0xffff_ffff, 1] } else { vec![0, 0] };
            check_all(&text, &[bits], &[32, 1], &rows, |_| all.clone());
        }
    }
}

#[test]
fn reductions_of_integers() {
    let value = |lane: usize| if lane == 17 { 0xffff_fff0 } else { hash(lane as u64) };
    for members in [0xffff_ffffu32, 0x0002_0000, 0x00ff_00f0] {
        let rows = warp(3, |lane, source| [value(lane), u64::from(members >> lane & 1), u64::from(members)][source]);
        let taken: Vec<u64> = (0..32).filter(|lane| members >> lane & 1 != 0).map(value).collect();
        let signed = taken.iter().map(|value| *value as u32 as i32);
        for (operation, expected) in [
            ("add.u32", taken.iter().sum::<u64>() & 0xffff_ffff),
            ("add.s32", taken.iter().sum::<u64>() & 0xffff_ffff),
            ("min.u32", *taken.iter().min().unwrap_or(&0)),
            ("max.u32", *taken.iter().max().unwrap_or(&0)),
            ("min.s32", u64::from(signed.clone().min().unwrap_or(0) as u32)),
            ("max.s32", u64::from(signed.clone().max().unwrap_or(0) as u32)),
            ("and.b32", taken.iter().fold(0xffff_ffff, |a, b| a & b)),
            ("or.b32", taken.iter().fold(0, |a, b| a | b)),
            ("xor.b32", taken.iter().fold(0, |a, b| a ^ b)),
        ] {
            let text = format!("@$b redux.sync.{operation} $d, $a, $c");
            check(&text, &[32, 1, 32], 32, &rows, |row| if row[1] != 0 { expected } else { 0x5a5a });
        }
    }
}

#[test]
fn reductions_of_floats() {
    const NAN: u32 = 0x7fc0_1234;
    for values in [
        vec![1.5f32.to_bits(), (-2.0f32).to_bits(), 0.25f32.to_bits()],
        vec![0.0f32.to_bits(), (-0.0f32).to_bits()],
        vec![NAN, 3.0f32.to_bits(), (-7.0f32).to_bits()],
        vec![NAN],
        vec![f32::NEG_INFINITY.to_bits(), 1e-45f32.to_bits(), f32::MAX.to_bits()],
    ] {
        let rows = warp(1, |lane, _| u64::from(values[lane % values.len()]));
        for (word, minimum) in [("min", true), ("max", false)] {
            for absolute in [false, true] {
                for propagates in [false, true] {
                    let operands = values.iter().map(|bits| {
                        let value = f32::from_bits(*bits);
                        if absolute { value.abs() } else { value }
                    });
                    let mut numbers: Vec<f32> = operands.filter(|value| !value.is_nan()).collect();
                    numbers.sort_by(f32::total_cmp);
                    let chosen = if minimum { numbers.first() } else { numbers.last() };
                    let expected = match chosen {
                        Some(number) if !(propagates && values.contains(&NAN)) => number.to_bits(),
                        _ => 0x7fff_ffff,
                    };
                    let text = format!(
                        "redux.sync.{word}{}{}.f32 $d, $a, -1",
                        if absolute { ".abs" } else { "" },
                        if propagates { ".NaN" } else { "" }
                    );
                    check(&text, &[32], 32, &rows, |_| u64::from(expected));
                }
            }
        }
    }
}

#[test]
fn one_lane_is_elected() {
    for members in [0xffff_ffffu32, 0xffff_0000, 0x8000_0000, 0x0000_0ff0] {
        let rows = warp(2, |lane, source| [u64::from(members >> lane & 1), u64::from(members)][source]);
        let text = "mov.pred $f, 0; @$a elect.sync $d|$f, $b";
        let results = run_all(text, &[1, 32], &[32, 1], &rows);
        let leader = members.trailing_zeros();
        for (lane, result) in results.iter().enumerate() {
            let expected = match lane as u32 {
                lane if members >> lane & 1 == 0 => vec![0x5a5a, 0],
                lane => vec![u64::from(leader), u64::from(lane == leader)],
            };
            assert_eq!(*result, expected, "{members:#x} lane {lane}");
        }
    }
}

#[test]
fn who_is_here() {
    let rows = warp(1, |lane, _| u64::from(lane % 3 == 0));
    let here = (0..32).filter(|lane| lane % 3 == 0).fold(0u64, |mask, lane| mask | 1 << lane);
    check("@$a activemask.b32 $d", &[1], 32, &rows, |row| if row[0] != 0 { here } else { 0x5a5a });
    check("bar.warp.sync -1; activemask.b32 $d", &[1], 32, &rows, |_| 0xffff_ffff);
    // Lanes of two branches meet at the shuffle, though they come to it apart.
    let text = "mov.u32 $d, %laneid; @$a bra other; add.u32 $d, $d, 100; other: bar.warp.sync -1; \
                shfl.sync.bfly.b32 $d, $d, 1, 31, -1";
    let results = run_all(text, &[1], &[32], &rows);
    for (lane, result) in results.iter().enumerate() {
        let partner = lane as u64 ^ 1;
        assert_eq!(result[0], if partner.is_multiple_of(3) { partner } else { partner + 100 });
    }
}

#[test]
fn instructions_without_effect() {
    let rows = warp(1, |lane, _| lane as u64);
    for text in [
        "griddepcontrol.wait",
        "griddepcontrol.launch_dependents",
        "setmaxnreg.inc.sync.aligned.u32 64",
        "setmaxnreg.dec.sync.aligned.u32 24",
        "pmevent 7",
        "pmevent.mask 0xff",
        "nanosleep.u32 0",
    ] {
        check(&format!("{text}; mov.u32 $d, $a"), &[32], 32, &rows, |row| row[0]);
    }
}
