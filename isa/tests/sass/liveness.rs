//! Live registers, against the life ranges that the disassembler of CUDA 12.8 prints, and across calls.

use balar_isa::sass::{self, Instruction, Live, Word};
use std::collections::BTreeMap;

/// `count_at_least` of the workload `reduction`, with branches and divergent regions: words, and the number of general registers and of
/// predicates that are in use.
const COUNTED: &str = include_str!("live.sm_70.txt");

fn live(words: impl IntoIterator<Item = (u64, u64)>) -> Vec<Live> {
    let decode = |(index, (upper, lower)): (usize, (u64, u64))| {
        let word = Word(u128::from(upper) << 64 | u128::from(lower));
        sass::decode(word, 16 * index as u64, 70).expect("an instruction")
    };
    let code: Vec<Instruction> = words.into_iter().enumerate().map(decode).collect();
    sass::live(&code, &BTreeMap::new())
}

#[test]
fn counts_are_those_of_the_life_ranges() {
    let rows: Vec<Vec<u64>> = COUNTED
        .lines()
        .map(|line| {
            let radices = [16, 16, 10, 10];
            let parts = line.split(' ').zip(radices);
            parts.map(|(part, radix)| u64::from_str_radix(part, radix).expect("a number")).collect()
        })
        .collect();
    let live = live(rows.iter().map(|row| (row[0], row[1])));
    for (index, (row, live)) in rows.iter().zip(live).enumerate() {
        let found = (u64::from(live.during.general_count()), u64::from(live.during.predicates.count_ones()));
        assert_eq!(found, (row[2], row[3]), "instruction {index}");
    }
}

/// Registers that a callee in the same code reads are live before its call; what it writes is not, and what it leaves stays live.
#[test]
fn calls_are_followed() {
    let live = live([
        // CALL.REL.NOINC 0x40; EXIT after a sum of what the callee writes and of R6.
        (0x000fea0003c00000, 0x0000003000007944),
        (0x000fe20000000000, 0x0000000604037221),
        (0x000fea0003800000, 0x000000000000794d),
        (0x000fc00000000000, 0x0000000000007918),
        // FADD R4, R7, R8; RET.REL.NODEC R20 0x0.
        (0x000fe20000000000, 0x0000000807047221),
        (0x000fea0003c3ffff, 0xffffffa014007950),
    ]);
    let registers = |index: usize| live[index].before.general_registers().collect::<Vec<u8>>();
    assert_eq!(registers(0), [1, 6, 7, 8, 20, 21]);
    assert_eq!(registers(1), [1, 4, 6]);
    assert_eq!(registers(4), [1, 6, 7, 8, 20, 21]);
    assert_eq!(registers(5), [1, 4, 6, 20, 21]);
}

/// Where the callee is not known, the calling convention says what it may write; arguments are what was written for it.
#[test]
fn unknown_callees_follow_the_convention() {
    let live = live([
        // MOV R4, R9; CALL.ABS.NOINC R6; FADD R3, R4, R16; EXIT.
        (0x000fe20000000f00, 0x0000000900047202),
        (0x000fea0003c00000, 0x0000000006007343),
        (0x000fe20000000000, 0x0000001004037221),
        (0x000fea0003800000, 0x000000000000794d),
    ]);
    let registers = |index: usize| live[index].before.general_registers().collect::<Vec<u8>>();
    assert_eq!(registers(0), [1, 6, 7, 9, 16]);
    assert_eq!(registers(1), [1, 4, 6, 7, 16]);
    assert_eq!(registers(2), [1, 4, 16]);
}
