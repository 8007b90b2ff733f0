//! `random_access`: few threads that access memory at random.

use crate::numeric::{compare_exactly, integers};
use crate::parameters::{Parameters, WorkloadError};
use crate::registry::{Descriptor, SEED, code, cubins, integer};
use crate::script::{Argument, Check, Outcome, Queue, Script, Shape, Transfer};
use balar_host::HostProgram;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "random_access",
    summary: "one thread of many reads two tables and writes a third, at places that a generator draws",
    parameters: &[
        integer("elements", 1 << 20, 2, 1 << 28, "words of each of the three tables, a power of two; as many threads"),
        integer("active", 100, 1, 1 << 28, "one thread of so many accesses the tables"),
        integer("block", 256, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("random_access"),
    cubins: cubins!("random_access"),
    small: "elements=16384,active=7,block=128",
    build,
};

struct Accesses {
    table: Vec<u32>,
    operands: Vec<u32>,
    shift: u32,
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

/// The places that a thread accesses: of the table, of the operands, and of the results.
fn places(thread: usize, mask: u32, shift: u32) -> [usize; 3] {
    let place = scatter(thread as u32, mask, shift);
    let operand = scatter(place, mask, shift);
    [place, operand, scatter(operand, mask, shift)].map(|place| place as usize)
}

fn build(parameters: &Parameters) -> Result<Box<dyn HostProgram>, WorkloadError> {
    let [elements, active, block] = ["elements", "active", "block"].map(|name| parameters.small(name));
    if !elements.is_power_of_two() {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("elements = {elements} is not a power of two"),
        });
    }
    let shift = elements.ilog2().div_ceil(2);
    let seed = parameters.integer("seed");
    let [table, operands] = [0, 1].map(|stream| integers(seed, stream, elements as usize));
    let bytes = u64::from(elements) * 4;

    let mut script = Script::default();
    let device_table = script.allocate_with(&table);
    let device_operands = script.allocate_with(&operands);
    let results = script.allocate(bytes);
    let [table_in, operands_in, results_out] = [device_table, device_operands, results].map(Argument::Buffer);
    let [length, half, one_of] = [elements, shift, active].map(Argument::U32);
    let arguments = [table_in, operands_in, results_out, length, half, one_of];
    script.launch("random_access", Shape::linear(elements.div_ceil(block), block), &arguments);
    let result = script.download(results, bytes, Queue::Default);
    for buffer in [device_table, device_operands, results] {
        script.release(buffer);
    }
    script.finish(Accesses { table, operands, shift, active: active as usize, result })
}

impl Check for Accesses {
    /// Compares the words that threads write; nothing is known of the others.
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let results = outcome.values::<u32>(self.result, self.table.len())?;
        let mask = self.table.len() as u32 - 1;
        let accesses = (0..self.table.len()).step_by(self.active);
        let accesses: Vec<_> = accesses.map(|thread| places(thread, mask, self.shift)).collect();
        let expected = accesses.iter().map(|[place, operand, _]| self.table[*place] ^ self.operands[*operand]);
        let actual: Vec<u32> = accesses.iter().map(|[.., result]| results[*result]).collect();
        compare_exactly(expected, &actual, |index| format!("result {}", accesses[index][2]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_places_of_its_own() {
        for bits in 1..12u32 {
            let count = 1usize << bits;
            for column in 0..3 {
                let mut drawn: Vec<_> =
                    (0..count).map(|thread| places(thread, count as u32 - 1, bits.div_ceil(2))[column]).collect();
                drawn.sort_unstable();
                assert!(drawn.into_iter().eq(0..count), "{count} places, table {column}");
            }
        }
    }

    /// One thread of a hundred comes to nearly every page of every table.
    #[test]
    fn the_default_touches_nearly_all_pages() {
        let count = 1usize << 20;
        for column in 0..3 {
            let accesses = (0..count).step_by(100).map(|thread| places(thread, count as u32 - 1, 10)[column]);
            let mut pages: Vec<_> = accesses.map(|place| place / 1024).collect();
            pages.sort_unstable();
            pages.dedup();
            assert!(pages.len() > 1000, "table {column}: {} of 1024 pages", pages.len());
        }
    }
}
