//! The register file's banks, and the cache in front of them that the code's reuse marks fill.
//!
//! A sub-core of Volta and its successors has two banks, of the even and of the odd registers. An operand that the instruction before has
//! marked (`.reuse`), in the same slot, comes from the cache. Source: Jia et al., Dissecting the NVIDIA Volta GPU Architecture via
//! Microbenchmarking, 2018; how long a mark holds: Huerta et al., MICRO 2025. How fast the banks are is a parameter of the SM.

use crate::program::timing::{BankReads, Pipe, Timing};
use crate::sass;

/// Slots of operands: A, B and C.
const SLOTS: usize = 3;
/// Banks of a sub-core's register file.
const BANKS: usize = 2;
/// Registers in the cache, by bank and slot.
type Cache = [[Option<u8>; SLOTS]; BANKS];

/// Says of each instruction how many registers it reads of each bank, where it follows the one before it.
pub(super) fn count_reads(code: &[sass::Instruction], timings: &mut [Timing]) {
    let mut cache = Cache::default();
    for (instruction, timing) in code.iter().zip(timings) {
        let Some((slots, others)) = registers(instruction, timing) else {
            cache = Cache::default();
            continue;
        };
        timing.control.bank_reads = reads(slots, &others, &cache);
        let control = instruction.control();
        for (slot, register) in slots.into_iter().enumerate() {
            let Some(register) = register else { continue };
            let is_kept = control.stays && control.reuse >> slot & 1 != 0;
            cache[usize::from(register) % BANKS][slot] = is_kept.then_some(register);
        }
    }
}

/// The registers of 32 bits in an instruction's slots, and others that it reads; `None` where another kind of instruction empties the cache.
fn registers(instruction: &sass::Instruction, timing: &Timing) -> Option<([Option<u8>; SLOTS], Vec<u8>)> {
    let is_fixed = matches!(timing.pipe, Pipe::Fp32 | Pipe::Multiply | Pipe::Int | Pipe::Fp16);
    if !is_fixed || timing.control.write_barrier != 0 {
        return None;
    }
    let all = instruction.uses().reads;
    let is_single = |register: u8| all.iter().any(|range| range.first == register && range.count == 1);
    let named = instruction.register_slots().map(|register| register.filter(|&it| is_single(it)));
    // With a constant or an immediate, the form says nothing of the slots of the two registers that are left at most, but of the first.
    let slots = if instruction.has_registers_alone() { named } else { [named[0], None, None] };
    let is_elsewhere = |register: &u8| !slots.contains(&Some(*register));
    let others = all.iter().flat_map(|range| range.first..range.first.saturating_add(range.count));
    Some((slots, others.filter(is_elsewhere).collect()))
}

/// A register is read once, and not at all where it comes from the cache.
fn reads(slots: [Option<u8>; SLOTS], others: &[u8], cache: &Cache) -> BankReads {
    let mut read: [Vec<u8>; BANKS] = Default::default();
    let in_slots = slots.into_iter().enumerate().filter_map(|(slot, register)| Some((Some(slot), register?)));
    for (slot, register) in in_slots.chain(others.iter().map(|&register| (None, register))) {
        let bank = usize::from(register) % BANKS;
        let is_cached = slot.is_some_and(|slot| cache[bank][slot] == Some(register));
        if !is_cached && !read[bank].contains(&register) {
            read[bank].push(register);
        }
    }
    BankReads::new(read.map(|bank| bank.len() as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_read_once_or_comes_from_the_cache() {
        let count = |numbers: [u8; 3], cache: &Cache| reads(numbers.map(Some), &[], cache).by_bank();
        let mut cache = Cache::default();
        assert_eq!(count([1, 3, 5], &cache), [0, 3]);
        assert_eq!(count([1, 3, 4], &cache), [1, 2]);
        assert_eq!(count([2, 4, 4], &cache), [2, 0], "one register is read once");
        cache[1][1] = Some(3);
        assert_eq!(count([1, 3, 5], &cache), [0, 2], "3 comes from the cache");
        assert_eq!(count([3, 1, 5], &cache), [0, 3], "it is kept for the second slot alone");
        assert_eq!(reads([Some(1), None, Some(3)], &[], &cache).by_bank(), [0, 2]);
        assert_eq!(reads([Some(1), None, None], &[6, 7], &cache).by_bank(), [1, 2], "a pair lies in both banks");
    }
}
