//! Moves: literals, parts, 128 bits, special registers.

use crate::cases::{check, check_all, product, run, run_all};
use crate::values::*;

#[test]
fn every_type_moves() {
    for (kind, bits) in REGISTER_TYPES.into_iter().chain([("pred", 1)]) {
        let values = if bits == 1 { vec![0, 1] } else { edges(bits) };
        check(&format!("mov.{kind} $d, $a"), &[bits], bits, &product(&[&values]), |row| row[0]);
    }
}

#[test]
fn literals() {
    for (instruction, bits, value) in [
        ("mov.u16 $d, 65535", 16, 0xffff),
        ("mov.s16 $d, -2", 16, 0xfffe),
        ("mov.u32 $d, 0xffffffff", 32, 0xffff_ffff),
        ("mov.s32 $d, -2147483648", 32, 0x8000_0000),
        ("mov.b32 $d, 017", 32, 15),
        ("mov.b32 $d, 0b101", 32, 5),
        ("mov.b32 $d, 0f3F800000", 32, 0x3f80_0000),
        ("mov.f32 $d, 0fBF800000", 32, 0xbf80_0000),
        ("mov.f32 $d, 1.5", 32, 0x3fc0_0000),
        ("mov.f64 $d, 0d4000000000000000", 64, 0x4000_0000_0000_0000),
        ("mov.f64 $d, 0.1", 64, 0x3fb9_9999_9999_999a),
        ("mov.u64 $d, 0xffffffffffffffff", 64, u64::MAX),
        ("mov.s64 $d, -3", 64, u64::MAX - 2),
        ("mov.u32 $d, 1 + 2 * 3", 32, 7),
        ("mov.pred $d, 1", 1, 1),
        ("mov.pred $d, 0", 1, 0),
    ] {
        check(instruction, &[], bits, &[vec![]], |_| value);
    }
}

#[test]
fn values_are_packed_and_unpacked() {
    let pieces = |value: u64, bits: u32, count: u32| -> Vec<u64> {
        (0..count).map(|part| low(i128::from(value >> (part * bits)), bits)).collect()
    };
    for (bits, count) in [(16, 2), (16, 4), (32, 2)] {
        let whole = bits * count;
        let rows: Vec<Vec<u64>> = edges(whole).into_iter().map(|value| pieces(value, bits, count)).collect();
        let names = ["$a", "$b", "$c", "$e"][..count as usize].join(", ");
        check(&format!("mov.b{whole} $d, {{{names}}}"), &vec![bits; count as usize], whole, &rows, |row| {
            row.iter().rev().fold(0, |value, part| value << (bits % 64) | part)
        });
        let names = ["$d", "$f", "$g", "$h"][..count as usize].join(", ");
        let rows = product(&[&edges(whole)]);
        check_all(&format!("mov.b{whole} {{{names}}}, $a"), &[whole], &vec![bits; count as usize], &rows, |row| {
            pieces(row[0], bits, count)
        });
        let mut names = vec!["_"; count as usize];
        names[1] = "$d";
        check(&format!("mov.b{whole} {{{}}}, $a", names.join(", ")), &[whole], bits, &rows, |row| {
            pieces(row[0], bits, count)[1]
        });
    }
    // Bytes are in registers of 16 bits; the rest of these is left out.
    let rows = product(&[&[0x0012, 0xff34], &[0x0056, 0xab78], &[0x9a], &[0xbc, 0xffff]]);
    check("mov.b32 $d, {$a, $b, $c, $e}", &[16; 4], 32, &rows, |row| {
        row.iter().rev().fold(0, |value, part| value << 8 | part & 255)
    });
    check("mov.b16 $d, {$a, $b}", &[16; 2], 16, &product(&[&[0x12, 0xff34], &[0x56, 0xab78]]), |row| {
        (row[1] & 255) << 8 | row[0] & 255
    });
    check_all("mov.b32 {$d, $f, $g, $h}, $a", &[32], &[16; 4], &product(&[&edges(32)]), |row| pieces(row[0], 8, 4));
}

#[test]
fn registers_of_128_bits() {
    let rows = product(&[&edges(64), &edges(64)]);
    let text = "mov.b128 %x0, {$a, $b}; mov.b128 %x1, %x0; mov.b128 {$d, $f}, %x1";
    check_all(text, &[64, 64], &[64, 64], &rows, |row| vec![row[0], row[1]]);
    let text = "mov.b128 %x0, {$b, $a}; mov.b128 {$d, $f, $g, $h}, %x0";
    check_all(text, &[64, 64], &[32; 4], &rows, |row| {
        vec![row[1] & 0xffff_ffff, row[1] >> 32, row[0] & 0xffff_ffff, row[0] >> 32]
    });
    let rows = product(&[&few(32), &few(32), &few(32), &[1, 0x8000_0000]]);
    let text = "mov.b128 %x0, {$a, $b, $c, $e}; mov.b128 {$d, _}, %x0; mov.b128 {_, $f}, %x0";
    check_all(text, &[32; 4], &[64, 64], &rows, |row| vec![row[1] << 32 | row[0], row[3] << 32 | row[2]]);
}

#[test]
fn loads_and_stores_of_128_bits() {
    let rows = product(&[&edges(64), &edges(64)]);
    let text = ".local .align 16 .b8 place[32]; mov.b128 %x0, {$a, $b}; st.local.b128 [place + 16], %x0; \
                ld.local.b128 %x1, [place + 16]; mov.b128 {$d, $f}, %x1; ld.local.v2.b64 {$g, $h}, [place + 16]";
    check_all(text, &[64, 64], &[64; 4], &rows, |row| vec![row[0], row[1], row[0], row[1]]);
}

#[test]
fn atomics_of_128_bits() {
    let rows = product(&[&few(64), &few(64), &[3, 0x5555_5555_5555_5555]]);
    for space in ["shared", "global"] {
        // Each lane has a place in shared memory, or in device memory behind the nine values of a row.
        let place = if space == "shared" {
            ".shared .align 16 .b8 places[512]; mov.u32 %y0, %tid.x; mul.wide.u32 %z0, %y0, 16; mov.u64 %z1, places; \
             add.u64 %z0, %z0, %z1"
        } else {
            "mov.u32 %y0, %tid.x; mul.wide.u32 %z0, %y0, 16; add.u64 %z0, %z0, 8 * 9 * 32"
        };
        let text = format!(
            "{place}; st.{space}.v2.b64 [%z0], {{$a, $b}}; mov.b128 %x0, {{$c, $a}}; \
             atom.{space}.exch.b128 %x1, [%z0], %x0; mov.b128 {{$d, $f}}, %x1; \
             mov.b128 %x2, {{$a, $a}}; mov.b128 %x3, {{$b, $c}}; \
             atom.{space}.cas.b128 %x1, [%z0], %x2, %x3; mov.b128 {{$g, $h}}, %x1; ld.{space}.v2.b64 {{$i, $j}}, [%z0]"
        );
        check_all(&text, &[64; 3], &[64; 6], &rows, |row| {
            let [a, b, c] = row[..] else { return Vec::new() };
            let swapped = (c, a) == (a, a);
            let (low, high) = if swapped { (b, c) } else { (c, a) };
            vec![a, b, c, a, low, high]
        });
    }
}

#[test]
fn addresses_of_variables() {
    let text = ".shared .align 8 .b8 first[24]; .shared .align 8 .b8 second[16]; \
                mov.u32 $d, first; mov.u64 $f, first + 8; mov.u64 $g, second; mov.u32 $h, second + 4";
    for row in run_all(text, &[], &[32, 64, 64, 32], &[vec![]]) {
        assert_eq!(row[1], row[0] + 8);
        assert_eq!(row[3], row[2] + 4);
        assert!(row[2] >= row[0] + 24 || row[0] >= row[2] + 16, "{row:?}: the variables overlap");
    }
}

#[test]
fn lane_masks_and_places() {
    let rows = vec![vec![]; 32];
    for (name, mask) in [
        ("%lanemask_eq", (|lane| 1 << lane) as fn(u64) -> u64),
        ("%lanemask_lt", |lane| (1 << lane) - 1),
        ("%lanemask_le", |lane| (2 << lane) - 1),
        ("%lanemask_gt", |lane| 0xffff_ffff & !((2 << lane) - 1)),
        ("%lanemask_ge", |lane| 0xffff_ffff & !((1 << lane) - 1)),
        ("%laneid", |lane| lane),
        ("%tid.x", |lane| lane),
        ("%tid.y", |_| 0),
        ("%tid.w", |_| 0),
        ("%ntid.x", |_| 32),
        ("%ntid.y", |_| 1),
        ("%nctaid.x", |_| 1),
        ("%ctaid.x", |_| 0),
        ("%nctaid.w", |_| 0),
        ("%clusterid.x", |_| 0),
        ("%nclusterid.x", |_| 1),
        ("%cluster_ctaid.x", |_| 0),
        ("%cluster_nctaid.y", |_| 1),
        ("%cluster_ctarank", |_| 0),
        ("%cluster_nctarank", |_| 1),
        ("%smid", |_| 3),
        ("%nsmid", |_| 80),
        ("%warpid", |_| 5),
        ("%nwarpid", |_| 64),
        ("%pm0", |_| 0),
        ("%pm7", |_| 0),
        ("%envreg31", |_| 0),
        ("%reserved_smem_offset_begin", |_| 0),
        ("%reserved_smem_offset_end", |_| 0),
        ("%reserved_smem_offset_cap", |_| 0),
        ("%reserved_smem_offset_1", |_| 0),
        ("%dynamic_smem_size", |_| 0),
        ("%total_smem_size", |_| 0),
        ("%aggr_smem_size", |_| 0),
        ("%globaltimer_lo", |_| 0),
        ("%globaltimer_hi", |_| 0),
        ("%clock_hi", |_| 0),
        ("WARP_SZ", |_| 32),
    ] {
        let expected: Vec<u64> = (0..32).map(mask).collect();
        assert_eq!(run(&format!("mov.u32 $d, {name}"), &[], 32, &rows), expected, "{name}");
    }
    for (name, value) in [("%gridid", 1), ("%pm3_64", 0), ("%current_graph_exec", 0), ("%globaltimer", 0)] {
        check(&format!("mov.u64 $d, {name}"), &[], 64, &[vec![]], |_| value);
    }
    check("mov.pred $d, %is_explicit_cluster", &[], 1, &[vec![]], |_| 0);
    // Special registers once had 16 bits.
    assert_eq!(run("mov.u16 $d, %tid.x", &[], 16, &rows), (0..32).collect::<Vec<u64>>());
    check("mov.u16 $d, %nsmid", &[], 16, &[vec![]], |_| 80);
}

#[test]
fn the_clock_goes_on() {
    let text = "mov.u64 $d, %clock64; mov.u32 $f, %clock; mov.u64 $g, %clock64";
    for row in run_all(text, &[], &[64, 32, 64], &vec![vec![]; 32]) {
        assert!(row[0] < row[1] && row[1] < row[2], "{row:?}");
    }
}
