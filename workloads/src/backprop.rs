//! `backprop`: training steps of a layer of a neural network.

use crate::comparison::Comparisons;
use crate::numeric::{uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::registry::{Descriptor, SEED, code, cubins, integer};
use crate::script::{Argument, Queue, Script, Shape};
use balar_host::HostProgram;

/// Hidden nodes, and inputs of a block.
const HIDDEN: usize = 16;
const RATE: f32 = 0.3;
const MOMENTUM: f32 = 0.3;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "backprop",
    summary: "training steps of a neural network's layer: sums in shared memory, then all weights adjusted",
    parameters: &[
        integer("inputs", 16_384, 16, 1 << 22, "nodes of the input layer, a multiple of 16"),
        integer("steps", 1, 1, 1000, "training steps"),
        SEED,
    ],
    code: code!("backprop"),
    cubins: cubins!("backprop"),
    small: "inputs=496,steps=2",
    build,
};

/// The partial sums of the blocks, each a tree over its 16 inputs.
fn forward(inputs: &[f32], weights: &[f32]) -> Vec<f32> {
    let mut sums = Vec::with_capacity(inputs.len());
    for (inputs, weights) in inputs.chunks_exact(HIDDEN).zip(weights.chunks_exact(HIDDEN * HIDDEN)) {
        for hidden in 0..HIDDEN {
            let mut products: [f32; HIDDEN] = std::array::from_fn(|row| weights[row * HIDDEN + hidden] * inputs[row]);
            let mut distance = 1;
            while distance < HIDDEN {
                for row in (0..HIDDEN).step_by(2 * distance) {
                    products[row] += products[row + distance];
                }
                distance *= 2;
            }
            sums.push(products[0]);
        }
    }
    sums
}

/// What the host makes of the partial sums: the error of each hidden node, for a target of one half at each. The
/// activation is a quotient instead of the usual exponential, so that it is the same number on every host.
fn deltas(partial_sums: &[f32]) -> [f32; HIDDEN] {
    std::array::from_fn(|hidden| {
        let sum = partial_sums.iter().skip(hidden).step_by(HIDDEN).sum::<f32>();
        let output = 0.5 + 0.5 * (sum / (1.0 + sum.abs()));
        output * (1.0 - output) * (0.5 - output)
    })
}

with_fused_multiply_add! {
    fn adjust(inputs: &[f32], deltas: &[f32; HIDDEN], weights: &mut [f32], steps: &mut [f32]) {
        let rows = weights.chunks_exact_mut(HIDDEN).zip(steps.chunks_exact_mut(HIDDEN));
        for (input, (weights, steps)) in inputs.iter().zip(rows) {
            for hidden in 0..HIDDEN {
                let gradient = RATE * deltas[hidden] * input;
                steps[hidden] = MOMENTUM.mul_add(steps[hidden], gradient);
                weights[hidden] += steps[hidden];
            }
        }
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn HostProgram>, WorkloadError> {
    let count = parameters.small("inputs") as usize;
    if !count.is_multiple_of(HIDDEN) {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("inputs = {count} is not a multiple of {HIDDEN}"),
        });
    }
    let seed = parameters.integer("seed");
    let inputs = uniform_floats(seed, 0, count);
    let mut weights = uniform_floats(seed, 1, count * HIDDEN);
    let mut steps = vec![0.0f32; weights.len()];

    let mut script = Script::default();
    let device_inputs = script.allocate_with(&inputs);
    let device_weights = script.allocate_with(&weights);
    let device_steps = script.allocate_with(&steps);
    let device_sums = script.allocate(count as u64 * 4);
    let device_deltas = script.allocate(HIDDEN as u64 * 4);
    let blocks = (count / HIDDEN) as u32;
    let shape = Shape::planar([blocks, 1], [HIDDEN as u32; 2]);
    let mut comparisons = Comparisons::default();
    for step in 0..parameters.small("steps") {
        let sums = forward(&inputs, &weights);
        let deltas = deltas(&sums);
        adjust(&inputs, &deltas, &mut weights, &mut steps);

        let [inputs, weights, steps, sums_out, deltas_in] =
            [device_inputs, device_weights, device_steps, device_sums, device_deltas].map(Argument::Buffer);
        script.launch("backprop_forward", shape, &[inputs, weights, sums_out]);
        let transfer = script.download(device_sums, count as u64 * 4, Queue::Default);
        comparisons.add(transfer, &format!("step {step}: partial sum"), sums);
        script.upload(device_deltas, bytemuck::cast_slice(&deltas).into(), Queue::Default);
        let arguments = [inputs, deltas_in, weights, steps, Argument::F32(RATE), Argument::F32(MOMENTUM)];
        script.launch("backprop_adjust", shape, &arguments);
    }
    let transfer = script.download(device_weights, count as u64 * HIDDEN as u64 * 4, Queue::Default);
    comparisons.add(transfer, "weight", weights);
    for buffer in [device_inputs, device_weights, device_steps, device_sums, device_deltas] {
        script.release(buffer);
    }
    script.finish(comparisons)
}
