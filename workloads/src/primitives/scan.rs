//! `scan`: prefix sums.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const THREADS: u32 = 256;
/// Values of a block.
const VALUES: u32 = 2 * THREADS;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "scan",
    summary: "exclusive prefix sums: sweeps in shared memory, block sums scanned in turn and carried into the blocks",
    parameters: &[integer("elements", 131_072, 1, 1 << 28, "length of the vector"), SEED],
    code: code!("scan"),
    cubins: cubins!("scan"),
    small: "elements=5000",
    build,
};

/// The sums of the values before each one.
fn prefix_sums(values: &[u32]) -> Vec<u32> {
    let mut sum = 0u32;
    let before = |value: &u32| {
        let before = sum;
        sum = sum.wrapping_add(*value);
        before
    };
    values.iter().map(before).collect()
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let elements = parameters.small("elements");
    let values = integers(parameters.integer("seed"), 0, elements as usize);

    let mut script = Script::default();
    let input = script.allocate_with(&values);
    let results = script.allocate(u64::from(elements) * 4);
    // Each level scans the block sums of the level before, in place, until one block has all.
    let mut levels = vec![(input, results, elements)];
    let mut sums = Vec::new();
    loop {
        let (from, to, count) = levels[levels.len() - 1];
        let blocks = count.div_ceil(VALUES);
        let block_sums = script.allocate(u64::from(blocks) * 4);
        let arguments =
            [Argument::Buffer(from), Argument::Buffer(to), Argument::Buffer(block_sums), Argument::U32(count)];
        script.launch("scan_blocks", Shape::linear(blocks, THREADS), &arguments);
        sums.push(block_sums);
        if blocks == 1 {
            break;
        }
        levels.push((block_sums, block_sums, blocks));
    }
    for ((_, to, count), carries) in levels.into_iter().zip(&sums).rev().skip(1) {
        let arguments = [Argument::Buffer(to), Argument::Buffer(*carries), Argument::U32(count)];
        script.launch("scan_carry", Shape::linear(count.div_ceil(VALUES), THREADS), &arguments);
    }
    let result = script.download(results, u64::from(elements) * 4, Queue::Default);
    for buffer in [input, results].into_iter().chain(sums) {
        script.release(buffer);
    }
    let mut comparisons = Comparisons::default();
    comparisons.add(result, "prefix sum", prefix_sums(&values));
    script.finish(comparisons)
}
