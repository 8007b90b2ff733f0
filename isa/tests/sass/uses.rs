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
