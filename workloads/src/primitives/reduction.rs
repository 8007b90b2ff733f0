//! `reduction`: sums of integers and of floats, and a count by votes.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{integers, uniform_floats};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Values of at least this much are counted: about three in four.
const THRESHOLD: u32 = 1 << 30;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "reduction",
    summary: "sums of integers and of floats by warp shuffles, a count by votes; block results added atomically",
    parameters: &[
        integer("elements", 262_144, 1, 1 << 30, "length of the vectors"),
        integer("block", 256, 32, 1024, "threads of a block, a multiple of 32"),
        integer("blocks", 160, 1, 65_535, "blocks of a launch"),
        SEED,
    ],
    code: code!("reduction"),
    cubins: cubins!("reduction"),
    small: "elements=10000,block=128,blocks=24",
    build,
};

struct Totals {
    integers: Vec<u32>,
    floats: Vec<f32>,
    threads: u64,
    blocks: u64,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let elements = parameters.small("elements");
    let (block, blocks) = (parameters.small("block"), parameters.small("blocks"));
    if !block.is_multiple_of(32) {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("block = {block} is not a multiple of 32"),
        });
    }
    // The kernels' indices are 32-bit: one grid's stride beyond the end must not wrap.
    let threads = u64::from(block) * u64::from(blocks);
    if u64::from(elements) + threads > 1 << 31 {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("elements + block * blocks = {} exceeds 2^31", u64::from(elements) + threads),
        });
    }
    let integers = integers(parameters.integer("seed"), 0, elements as usize);
    let floats = uniform_floats(parameters.integer("seed"), 1, elements as usize);

    let mut script = Script::default();
    let device_integers = script.allocate_with(&integers);
    let device_floats = script.allocate_with(&floats);
    let totals = script.allocate(12);
    script.fill(totals, 0, 12, Queue::Default);
    let shape = Shape::linear(blocks, block);
    let (integers_in, floats_in) = (Argument::Buffer(device_integers), Argument::Buffer(device_floats));
    let total = |index: u64| Argument::BufferAt(totals, index * 4);
    let count = Argument::U32(elements);
    script.launch("reduce_integers", shape, &[integers_in, total(0), count]);
    script.launch("reduce_floats", shape, &[floats_in, total(1), count]);
    script.launch("count_at_least", shape, &[integers_in, total(2), count, Argument::U32(THRESHOLD)]);
    let result = script.download(totals, 12, Queue::Default);
    for buffer in [device_integers, device_floats, totals] {
        script.release(buffer);
    }
    script.finish(Totals { integers, floats, threads, blocks: u64::from(blocks), result })
}

impl Totals {
    /// Bound on the error of the float sum: the order of the atomic additions is not determined, so the longest chain of
    /// roundings counts. A sum whose values pass through at most d additions errs by at most
    /// d u / (1 - d u) times the sum of the magnitudes, u = 2^-24 (Higham, Accuracy and Stability, section 4.2).
    fn float_error_bound(&self) -> f64 {
        let magnitudes: f64 = self.floats.iter().map(|value| f64::from(value.abs())).sum();
        // A thread's share, five steps in the warp, five among the warps, one addition for each block.
        let depth = (self.floats.len() as u64).div_ceil(self.threads) + 5 + 5 + self.blocks;
        let roundings = depth as f64 * 2f64.powi(-24);
        roundings / (1.0 - roundings) * magnitudes
    }
}

impl Check for Totals {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let words = outcome.values::<u32>(self.result, 3)?;
        let sum = self.integers.iter().fold(0u32, |sum, value| sum.wrapping_add(*value));
        if words[0] != sum {
            return Err(format!("the sum of the integers is {} instead of {sum}", words[0]));
        }
        let sum: f64 = self.floats.iter().map(|value| f64::from(*value)).sum();
        let actual = f32::from_bits(words[1]);
        let bound = self.float_error_bound();
        let error = (f64::from(actual) - sum).abs();
        if error > bound || error.is_nan() {
            return Err(format!("the sum of the floats is {actual} instead of {sum}, by more than {bound:e}"));
        }
        let count = self.integers.iter().filter(|value| **value >= THRESHOLD).count();
        if u64::from(words[2]) != count as u64 {
            return Err(format!("{} values of at least {THRESHOLD} instead of {count}", words[2]));
        }
        Ok(())
    }
}
