//! `concurrent`: several streams at once.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, integers};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Byte with which the second vector of a stream is filled.
const FILL: u8 = 0x5a;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "concurrent",
    summary: "several streams at once: asynchronous copies and small kernels that overlap",
    parameters: &[
        integer("streams", 4, 1, 128, "streams"),
        integer("elements", 4096, 1, 1 << 24, "32-bit words of a stream"),
        integer("rounds", 64, 0, 1 << 20, "rounds of arithmetic on each word"),
        integer("block", 128, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("concurrent"),
    cubins: cubins!("concurrent"),
    small: "streams=3,elements=1000,rounds=8",
    build,
};

struct Words {
    inputs: Vec<Vec<u32>>,
    rounds: u32,
    results: Vec<Transfer>,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (streams, elements) = (parameters.small("streams"), parameters.small("elements"));
    let (rounds, block) = (parameters.small("rounds"), parameters.small("block"));
    let seed = parameters.integer("seed");
    let bytes = u64::from(elements) * 4;
    let inputs: Vec<Vec<u32>> = (0..streams).map(|s| integers(seed, u64::from(s), elements as usize)).collect();

    let mut script = Script::default();
    let queues: Vec<Queue> = inputs.iter().map(|_| script.create_stream()).collect();
    let buffers: Vec<_> = inputs.iter().map(|_| [0; 3].map(|_| script.allocate(bytes))).collect();

    // Stage by stage over all streams, so that each stream's work meets that of the others.
    for ((queue, [values, sums, _]), input) in queues.iter().zip(&buffers).zip(&inputs) {
        script.upload(*values, bytemuck::cast_slice(input).into(), *queue);
        script.fill(*sums, FILL, bytes, *queue);
    }
    for (queue, [values, sums, _]) in queues.iter().zip(&buffers) {
        let shape = Shape { queue: *queue, ..Shape::linear(elements.div_ceil(block), block) };
        let (values, sums) = (Argument::Buffer(*values), Argument::Buffer(*sums));
        script.launch("scramble", shape, &[values, Argument::U32(elements), Argument::U32(rounds)]);
        script.launch("accumulate", shape, &[sums, values, Argument::U32(elements)]);
    }
    let mut results = Vec::new();
    for (queue, [_, sums, copy]) in queues.iter().zip(&buffers) {
        script.copy_within(*copy, *sums, bytes, *queue);
        results.push(script.download(*copy, bytes, *queue));
    }
    // The host has work of its own meanwhile.
    script.compute(2_000);
    for queue in &queues {
        script.synchronize(*queue);
    }
    script.synchronize(Queue::Default);
    for buffer in buffers.into_iter().flatten() {
        script.release(buffer);
    }
    script.finish(Words { inputs, rounds, results })
}

impl Words {
    fn expected(&self, value: u32) -> u32 {
        let step = |value: u32, _| value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (0..self.rounds).fold(value, step).wrapping_add(u32::from_le_bytes([FILL; 4]))
    }
}

impl Check for Words {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        for (stream, (input, result)) in self.inputs.iter().zip(&self.results).enumerate() {
            let actual = outcome.values::<u32>(*result, input.len())?;
            let expected = input.iter().map(|value| self.expected(*value));
            compare_exactly(expected, &actual, |index| format!("word {index} of stream {stream}"))?;
        }
        Ok(())
    }
}
