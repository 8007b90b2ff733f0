//! The registers that instructions read and write, against the life ranges that the disassembler of CUDA 12.8 prints: one word of each
//! opcode with each number of registers and predicates that it has in our kernels and in probes of textures, surfaces, atomics, matrices
//! and types. For loads that make zeros under a predicate, and for `F2FP`, which our kernels do not have, the test compares with their
//! text.

use balar_isa::sass::{self, RegisterRange, Uses, Word};

/// A word (the upper half first), its name, what it reads, and behind `>` what it writes.
const SM_70: &str = include_str!("uses.sm_70.txt");
const SM_75: &str = include_str!("uses.sm_75.txt");

fn uses(upper: u64, lower: u64, architecture: u32) -> Uses {
    let word = Word(u128::from(upper) << 64 | u128::from(lower));
    sass::decode(word, 0, architecture).expect("an instruction").uses()
}

/// Registers and predicates by name, ascending: `R2 R3 P0 UR4 UP1`.
fn names(ranges: &[RegisterRange], predicates: u8, uniform_ranges: &[RegisterRange], uniform_predicates: u8) -> String {
    let registers = |prefix: &'static str, ranges: &[RegisterRange]| {
        let mut numbers: Vec<u8> = ranges.iter().flat_map(|range| range.registers()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(move |number| format!("{prefix}{number}"))
    };
    let bits = |prefix: &'static str, bits: u8| {
        (0..8).filter(move |bit| (bits >> bit) & 1 != 0).map(move |bit| format!("{prefix}{bit}"))
    };
    let mut names: Vec<String> = registers("R", ranges).collect();
    names.extend(bits("P", predicates));
    names.extend(registers("UR", uniform_ranges));
    names.extend(bits("UP", uniform_predicates));
    if names.is_empty() { "-".to_owned() } else { names.join(" ") }
}

fn text(uses: &Uses) -> String {
    let reads = names(&uses.reads, uses.predicate_reads, &uses.uniform_reads, uses.uniform_predicate_reads);
    let writes = names(&uses.writes, uses.predicate_writes, &uses.uniform_writes, uses.uniform_predicate_writes);
    format!("{reads} > {writes}")
}

#[test]
fn reads_and_writes_are_those_of_the_life_ranges() {
    for (architecture, listing) in [(70, SM_70), (75, SM_75)] {
        let mut wrong = Vec::new();
        for line in listing.lines() {
            let mut parts = line.splitn(4, ' ');
            let mut part = || parts.next().expect("a part");
            let [upper, lower] = [part(), part()].map(|half| u64::from_str_radix(half, 16).expect("digits"));
            let (name, expected) = (part(), part().trim_start());
            let found = text(&uses(upper, lower, architecture));
            if found != expected {
                wrong.push(format!("{name} {upper:016x} {lower:016x}: {found}, expected {expected}"));
            }
        }
        assert!(wrong.is_empty(), "sm_{architecture}: {} wrong\n{}", wrong.len(), wrong.join("\n"));
    }
}

/// What the life ranges leave out.
#[test]
fn masks_choose_predicates() {
    // P2R.B1 R106, PR, R106, 0x78 keeps the rest of its register; R2P PR, R106, 0x78.
    assert_eq!(text(&uses(0x000fe20000001000, 0x000000786a6a7803, 70)), "R106 P3 P4 P5 P6 > R106");
    assert_eq!(text(&uses(0x000fe20000000000, 0x000000786a007804, 70)), "R106 > P3 P4 P5 P6");
}

/// The widths of Ampere's and Hopper's operands follow from the shapes of matrices, the sizes of accesses and the kinds of copies.
#[test]
fn operands_of_hopper_have_their_widths() {
    let ranges = |ranges: &[RegisterRange]| -> Vec<(u8, u8)> { ranges.iter().map(|it| (it.first, it.count)).collect() };
    let of = |upper, lower| {
        let uses = uses(upper, lower, 90);
        (ranges(&uses.reads), ranges(&uses.writes), ranges(&uses.uniform_reads))
    };
    // HMMA.16816.F32 R4, R12, R16, R4; HMMA.SP.16832.F32 R8, R12, R8, RZ, R3, 0x0.
    let dense = of(0x006fe20000001804, 0x000000100c04723c);
    assert_eq!(dense, (vec![(12, 4), (16, 2), (4, 4)], vec![(4, 4)], vec![]));
    let sparse = of(0x000fe20000005aff, 0x000003080c08723c);
    assert_eq!(sparse, (vec![(12, 4), (8, 4), (3, 1)], vec![(8, 4)], vec![]));
    // IMMA.16832.S8.S8 R8, R8.ROW, R6.COL, R12; DMMA.16x8x16 R8, R16, R104, R8.
    let integers = of(0x004ff60000405c0c, 0x0000000608087237);
    assert_eq!(integers, (vec![(8, 4), (6, 2), (12, 4)], vec![(8, 4)], vec![]));
    let doubles = of(0x000f620000003008, 0x000000681008723f);
    assert_eq!(doubles, (vec![(16, 16), (104, 8), (8, 8)], vec![(8, 8)], vec![]));
    // HGMMA.64x256x16.F32 R24, R152, gdesc[UR4], R24, UP0, gsb0.
    let group = of(0x000fe2000b800818, 0x03e0000498187df0);
    assert_eq!(group, (vec![(152, 4), (24, 128)], vec![(24, 128)], vec![(4, 4)]));
    // UTMALDG.4D.MULTICAST [UR8], [UR28], UR4, desc[UR6]; SYNCS.EXCH.64 URZ, [UR4], UR6; STSM.16.M88.4 [R0], R4.
    let box_of_tensor = of(0x0003e40008019804, 0x000006081c0073b4);
    assert_eq!(box_of_tensor, (vec![], vec![], vec![(8, 6), (28, 2), (4, 1), (6, 2)]));
    assert_eq!(of(0x0002620008000100, 0x00000006043f75b2), (vec![], vec![], vec![(4, 1), (6, 2)]));
    assert_eq!(of(0x000fe20000000200, 0x0000000400007844), (vec![(0, 1), (4, 4)], vec![], vec![]));
}

#[test]
fn convergence_barriers_are_read_and_written() {
    let barriers = |lower, upper| {
        let uses = uses(upper, lower, 70);
        (uses.barrier_reads, uses.barrier_writes)
    };
    // BSSY B2, BSYNC B2, BREAK B2.
    assert_eq!(barriers(0x0000010000027945, 0x000fe20003800000), (0, 1 << 2));
    assert_eq!(barriers(0x0000000000027941, 0x000fea0003800000), (1 << 2, 0));
    assert_eq!(barriers(0x0000000000027942, 0x000fea0003800000), (1 << 2, 1 << 2));
    // BMOV.32.CLEAR R4, B6; BMOV.32 B6, R4.
    assert_eq!(barriers(0x0000000006047355, 0x000fe20000100000), (1 << 6, 1 << 6));
    assert_eq!(barriers(0x0000000406007356, 0x000fe20000000000), (0, 1 << 6));
}

/// A guard is read, and does not appear among the written operands.
#[test]
fn guards_are_read() {
    // @!P2 IMAD.MOV.U32 R0, RZ, RZ, R5
    assert_eq!(text(&uses(0x000fe200078e0005, 0x000000ffff00a224, 70)), "R5 P2 > R0");
}
