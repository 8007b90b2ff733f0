//! `random_access`: few threads that access memory at random.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, integers};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "random_access",
    summary: "one thread of many reads a word that says where it reads a table and writes the results",
    parameters: &[
        integer("elements", 1 << 20, 2, 1 << 28, "words of each of the three arrays, a power of two; as many threads"),
        integer("active", 100, 1, 1 << 28, "one thread of so many accesses the arrays"),
        integer("block", 256, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("random_access"),
    cubins: cubins!("random_access"),
    small: "elements=16384,active=7,block=128",
    build,
};

struct Accesses {
    operands: Vec<u32>,
    table: Vec<u32>,
    active: usize,
    result: Transfer,
}

/// A permutation of the numbers below a power of two: `mask` is the greatest of them, `shift` half of their bits.
fn scatter(number: u32, mask: u32, shift: u32) -> u32 {
    let number = number.wrapping_mul(0x9e37_79b9).wrapping_add(0x6a09_e667) & mask;
    let number = number ^ (number >> shift);
    let number = number.wrapping_mul(0xb7e1_5163) & mask;
    number ^ (number >> shift)
}

/// Each thread's operand: any number, whose low bits are a place that no other thread has.
fn operands(seed: u64, elements: u32) -> Vec<u32> {
    let (mask, shift) = (elements - 1, elements.ilog2().div_ceil(2));
    let drawn = integers(seed, 0, elements as usize).into_iter();
    drawn.zip(0..elements).map(|(bits, thread)| bits & !mask | scatter(thread, mask, shift)).collect()
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [elements, active, block] = ["elements", "active", "block"].map(|name| parameters.small(name));
    if !elements.is_power_of_two() {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("elements = {elements} is not a power of two"),
        });
    }
    let seed = parameters.integer("seed");
    let operands = operands(seed, elements);
    let table = integers(seed, 1, elements as usize);
    let bytes = u64::from(elements) * 4;

    let mut script = Script::default();
    let device_operands = script.allocate_with(&operands);
    let results = script.allocate(bytes);
    let device_table = script.allocate_with(&table);
    let [operands_in, table_in, results_out] = [device_operands, device_table, results].map(Argument::Buffer);
    let arguments = [operands_in, table_in, results_out, Argument::U32(elements), Argument::U32(active)];
    script.launch("random_access", Shape::linear(elements.div_ceil(block), block), &arguments);
    let result = script.download(results, bytes, Queue::Default);
    for buffer in [device_operands, results, device_table] {
        script.release(buffer);
    }
    script.finish(Accesses { operands, table, active: active as usize, result })
}

impl Check for Accesses {
    /// Compares the words that threads write; nothing is known of the others.
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let results = outcome.values::<u32>(self.result, self.table.len())?;
        let operands = || self.operands.iter().step_by(self.active).copied();
        let place = |operand: u32| operand as usize & (self.table.len() - 1);
        let expected = operands().map(|operand| self.table[place(operand)] ^ operand);
        let places: Vec<_> = operands().map(place).collect();
        let actual: Vec<u32> = places.iter().map(|place| results[*place]).collect();
        compare_exactly(expected, &actual, |index| format!("result {}", places[index]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_a_place_of_its_own() {
        for bits in 1..12 {
            let count = 1_u32 << bits;
            let mut drawn: Vec<_> = operands(5, count).into_iter().map(|operand| operand & (count - 1)).collect();
            drawn.sort_unstable();
            assert!(drawn.into_iter().eq(0..count), "{count} places");
        }
    }

    /// One thread of a hundred comes to nearly every page of the table.
    #[test]
    fn the_default_touches_nearly_all_pages() {
        let places = operands(1, 1 << 20).into_iter().step_by(100).map(|operand| operand & ((1 << 20) - 1));
        let mut pages: Vec<_> = places.map(|place| place / 1024).collect();
        pages.sort_unstable();
        pages.dedup();
        assert!(pages.len() > 1000, "{} of 1024 pages", pages.len());
    }
}
