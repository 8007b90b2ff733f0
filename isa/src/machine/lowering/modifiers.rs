//! Whether lowering takes account of every modifier: a word that differs from another one in a modifier alone has to become something else.

use super::super::code::MachineCode;
use super::lower;
use crate::sass::{self, Aspect, Word};
use std::collections::BTreeSet;

const LISTINGS: [(u32, &str); 5] = [
    (70, include_str!("../../../tests/sass/sm_70.txt")),
    (75, include_str!("../../../tests/sass/sm_75.txt")),
    (80, include_str!("../../../tests/sass/sm_80.txt")),
    (89, include_str!("../../../tests/sass/sm_89.txt")),
    (90, include_str!("../../../tests/sass/sm_90.txt")),
];

const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;
const EXIT: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d;

/// What values do not depend on, whichever the opcode.
const WITHOUT_EFFECT: &[Aspect] = &[
    // Hints to caches, and how accesses are ordered: values are coherent, and an instruction has its effect when it issues.
    Aspect::Eviction,
    Aspect::Prefetch,
    Aspect::Cache,
    Aspect::Order,
    Aspect::Scope,
    // The stack of calls has no limit.
    Aspect::CallCount,
    // Warps that wait let others go on in any case.
    Aspect::DeferBlocking,
    Aspect::NoDependence,
    Aspect::NoExitHandler,
];

/// The same of single opcodes.
const WITHOUT_EFFECT_OF: &[(&str, &[Aspect])] = &[
    // A branch on a uniform predicate is one of all lanes.
    ("BRA", &[Aspect::Mode]),
    ("BRXU", &[Aspect::Mode]),
    ("JMXU", &[Aspect::Mode]),
    // Caches hold what memory holds.
    ("CCTL", &[Aspect::Operation, Aspect::Extended]),
    ("CCTLL", &[Aspect::Operation]),
    ("MEMBAR", &[Aspect::Mode]),
    ("FENCE", &[Aspect::Space]),
    // Whether another one comes first is known at once.
    ("ATOM", &[Aspect::Operation]),
    ("ATOMS", &[Aspect::Operation]),
    ("BMOV", &[Aspect::Mode]),
    // No lane is killed, and no kernel preempted.
    ("ELECT", &[Aspect::Mode]),
    ("EXIT", &[Aspect::Mode]),
    // Exact conversions are not rounded, and doubles and halves not flushed. ptxas asks for zeros of not-a-numbers (`.NTZ`) wherever it
    // converts to 32 bits from a single, and nowhere else.
    ("F2F", &[Aspect::Rounding, Aspect::Flush]),
    ("FRND", &[Aspect::Flush]),
    ("F2I", &[Aspect::NanToZero, Aspect::Flush]),
    // The lower half of a product, equality, and shifts to the left are the same for both.
    ("IMAD", &[Aspect::Unsigned]),
    ("UIMAD", &[Aspect::Unsigned]),
    ("ISETP", &[Aspect::Unsigned]),
    ("UISETP", &[Aspect::Unsigned]),
    ("SHF", &[Aspect::Type]),
    ("USHF", &[Aspect::Type]),
    ("REDUX", &[Aspect::Type]),
    // It is of a predicate that is not written.
    ("LOP3", &[Aspect::PredicateAnd]),
    ("ULOP3", &[Aspect::PredicateAnd]),
    // Stores have no sign, and 128 bits are read and written in one way.
    ("LD", &[Aspect::Size]),
    ("LDG", &[Aspect::Size]),
    ("LDL", &[Aspect::Size]),
    ("LDS", &[Aspect::Size, Aspect::Mode]),
    ("ST", &[Aspect::Size]),
    ("STG", &[Aspect::Size]),
    ("STL", &[Aspect::Size]),
    ("STS", &[Aspect::Size]),
    ("SULD", &[Aspect::Size, Aspect::Shape]),
    ("SUST", &[Aspect::Size, Aspect::Shape]),
    ("SURED", &[Aspect::Shape]),
    // Addresses of device memory have 64 bits.
    ("RED", &[Aspect::Extended]),
    ("REDG", &[Aspect::Extended]),
    ("NANOSLEEP", &[Aspect::Random, Aspect::Warp]),
    // Images have one level.
    ("TEX", &[Aspect::Level, Aspect::NoDerivative, Aspect::Scalars]),
    // Where there are as many scalars as one operand has anyway.
    ("TLD", &[Aspect::Level, Aspect::Clamp, Aspect::Scalars]),
    ("TLD4", &[Aspect::Scalars]),
    ("TXD", &[Aspect::Level]),
    // What is cached is coherent, barriers and tensor maps as well. That an arrival adds no bytes is the same where a register adds none.
    ("SYNCS", &[Aspect::Operation, Aspect::Arrival]),
    ("UTMACCTL", &[Aspect::Operation]),
    // Products have their values when they issue.
    ("WARPGROUP", &[Aspect::Mode]),
    // Lanes that run together are apart from the others in any case.
    ("WARPSYNC", &[Aspect::Mode]),
];

/// What a word becomes; `None` where it is refused.
fn lowered(word: u128, architecture: u32) -> Option<String> {
    let mut words = vec![NOP; 64];
    words[0] = word;
    words[63] = EXIT;
    let code = MachineCode { name: "k".to_owned(), architecture, words, ..MachineCode::default() };
    let program = lower(&code).ok()?;
    Some(format!("{:?} {:?}", program.instructions[0], program.constants))
}

/// Do values not depend on it?
fn is_ignored(name: &str, aspect: Aspect) -> bool {
    let mut of_opcode = WITHOUT_EFFECT_OF.iter().filter(|(opcode, _)| *opcode == name);
    WITHOUT_EFFECT.contains(&aspect) || of_opcode.any(|(_, aspects)| aspects.contains(&aspect))
}

#[test]
fn no_modifier_is_overlooked() {
    let mut overlooked: BTreeSet<String> = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (architecture, listing) in LISTINGS {
        for line in listing.lines() {
            let mut halves = line.split(' ').map(|half| u64::from_str_radix(half, 16));
            let (Some(Ok(high)), Some(Ok(low))) = (halves.next(), halves.next()) else { panic!("no word: {line}") };
            let word = u128::from(high) << 64 | u128::from(low);
            let Ok(instruction) = sass::decode(Word(word), 0, architecture) else { continue };
            let form = std::ptr::from_ref(instruction.encoding()) as usize;
            if !seen.insert((form, Word(word).code(), instruction.name())) {
                continue;
            }
            let Some(before) = lowered(word, architecture) else { continue };
            for bit in 16..105 {
                let changed = word ^ 1 << bit;
                let Ok(other) = sass::decode(Word(changed), 0, architecture) else { continue };
                if !std::ptr::eq(other.encoding(), instruction.encoding()) || other.name() == instruction.name() {
                    continue;
                }
                let Some(after) = lowered(changed, architecture) else { continue };
                if after != before {
                    continue;
                }
                let name = instruction.opcode().name();
                for aspect in instruction.encoding().aspects() {
                    let [old, new] = [instruction, other].map(|instruction| instruction.text(aspect));
                    if new != old && !is_ignored(name, aspect) {
                        overlooked.insert(format!("{name} {aspect:?}: {old:?} and {new:?}"));
                    }
                }
            }
        }
    }
    let list: Vec<String> = overlooked.into_iter().collect();
    assert!(list.is_empty(), "{} modifiers change nothing:\n{}", list.len(), list.join("\n"));
}
