//! The register file's banks, and the cache in front of them that the code's reuse marks fill.
//!
//! A sub-core of Volta and Turing has two banks, of the even and of the odd registers. Either gives two registers of 32 bits to an
//! instruction in the time that its pipe takes anyway: only three different registers of one bank take a cycle longer. An operand that the
//! instruction before has marked (`.reuse`), in the same slot, comes from the cache. Source: Jia et al., Dissecting the NVIDIA Volta GPU
//! Architecture via Microbenchmarking, 2018; how long a mark holds: Huerta et al., MICRO 2025. For Ampere and Ada the same is assumed.

use crate::program::timing::{Pipe, Timing};
use crate::sass;

/// Slots of operands: A, B and C.
const SLOTS: usize = 3;
/// Banks of a sub-core's register file.
const BANKS: usize = 2;
/// Registers in the cache, by bank and slot.
type Cache = [[Option<u8>; SLOTS]; BANKS];

/// Says of each instruction how many cycles its operands take longer, where it follows the one before it.
pub(super) fn count_conflicts(code: &[sass::Instruction], timings: &mut [Timing]) {
    let mut cache = Cache::default();
    for (instruction, timing) in code.iter().zip(timings) {
        let Some(registers) = registers(instruction, timing) else {
            cache = Cache::default();
            continue;
        };
        timing.control.bank_conflicts = conflicts(registers, &cache);
        let control = instruction.control();
        for (slot, register) in registers.into_iter().enumerate() {
            let Some(register) = register else { continue };
            let is_kept = control.stays && control.reuse >> slot & 1 != 0;
            cache[usize::from(register) % BANKS][slot] = is_kept.then_some(register);
        }
    }
}

/// The registers of 32 bits in an instruction's slots; `None` where another kind of instruction empties the cache.
fn registers(instruction: &sass::Instruction, timing: &Timing) -> Option<[Option<u8>; SLOTS]> {
    let is_fixed = matches!(timing.pipe, Pipe::Fp32 | Pipe::Multiply | Pipe::Int | Pipe::Fp16);
    if !is_fixed || timing.control.write_barrier != 0 {
        return None;
    }
    let reads = instruction.uses().reads;
    let is_single = |register: u8| reads.iter().any(|range| range.first == register && range.count == 1);
    let named = instruction.register_slots().map(|register| register.filter(|&it| is_single(it)));
    // With a constant or an immediate, two registers are left at most, which never conflict; their slots say nothing of where they are.
    Some(if instruction.has_registers_alone() { named } else { [named[0], None, None] })
}

/// Three registers of one bank take a cycle longer.
fn conflicts(registers: [Option<u8>; SLOTS], cache: &Cache) -> u8 {
    let mut read: [Vec<u8>; BANKS] = Default::default();
    for (slot, register) in registers.into_iter().enumerate() {
        let Some(register) = register else { continue };
        let bank = usize::from(register) % BANKS;
        if cache[bank][slot] != Some(register) && !read[bank].contains(&register) {
            read[bank].push(register);
        }
    }
    read.iter().map(|bank| bank.len().saturating_sub(2) as u8).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_registers_of_a_bank_take_a_cycle_longer() {
        let registers = |numbers: [u8; 3]| numbers.map(Some);
        let mut cache = Cache::default();
        assert_eq!(conflicts(registers([1, 3, 5]), &cache), 1);
        assert_eq!(conflicts(registers([1, 3, 4]), &cache), 0);
        assert_eq!(conflicts(registers([2, 4, 4]), &cache), 0, "one register is read once");
        cache[1][1] = Some(3);
        assert_eq!(conflicts(registers([1, 3, 5]), &cache), 0, "3 comes from the cache");
        assert_eq!(conflicts(registers([3, 1, 5]), &cache), 1, "it is kept for the second slot alone");
        assert_eq!(conflicts([Some(1), None, Some(3)], &cache), 0);
    }
}
