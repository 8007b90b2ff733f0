//! `backprop`: training steps of a layer of a neural network.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

/// Hidden nodes, and inputs of a block.
const HIDDEN: usize = 16;
/// Weights of an input; the first is not used. The weights of the first input are the thresholds of the hidden nodes.
const ROW: usize = HIDDEN + 1;
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
    for (inputs, weights) in inputs[1..].chunks_exact(HIDDEN).zip(weights[ROW..].chunks_exact(HIDDEN * ROW)) {
        for hidden in 1..=HIDDEN {
            let mut products: [f32; HIDDEN] = std::array::from_fn(|row| weights[row * ROW + hidden] * inputs[row]);
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

/// The host's result from the partial sums and the thresholds: the error of each hidden node, counted from 1, for a target of one half at
/// each. The activation is a quotient instead of the usual exponential, so that it is the same number on every host.
fn deltas(partial_sums: &[f32], thresholds: &[f32]) -> [f32; ROW] {
    std::array::from_fn(|hidden| {
        if hidden == 0 {
            return 0.0;
        }
        let sum = partial_sums.iter().skip(hidden - 1).step_by(HIDDEN).sum::<f32>() + thresholds[hidden];
        let output = 0.5 + 0.5 * (sum / (1.0 + sum.abs()));
        output * (1.0 - output) * (0.5 - output)
    })
}

with_fused_multiply_add! {
    fn adjust(inputs: &[f32], deltas: &[f32; ROW], weights: &mut [f32], steps: &mut [f32]) {
        let rows = weights.chunks_exact_mut(ROW).zip(steps.chunks_exact_mut(ROW));
        for (input, (weights, steps)) in inputs.iter().zip(rows) {
            for hidden in 1..=HIDDEN {
                let gradient = RATE * deltas[hidden] * input;
                steps[hidden] = MOMENTUM.mul_add(steps[hidden], gradient);
                weights[hidden] += steps[hidden];
            }
        }
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let count = parameters.small("inputs") as usize;
    if !count.is_multiple_of(HIDDEN) {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("inputs = {count} is not a multiple of {HIDDEN}"),
        });
    }
    let seed = parameters.integer("seed");
    // The first input is always 1: its weights are the thresholds.
    let inputs: Vec<f32> = [1.0].into_iter().chain(uniform_floats(seed, 0, count)).collect();
    let mut weights = uniform_floats(seed, 1, inputs.len() * ROW);
    let mut steps = vec![0.0f32; weights.len()];
    let bytes = weights.len() as u64 * 4;

    let mut script = Script::default();
    let device_inputs = script.allocate_with(&inputs);
    // The forward pass leaves its products where it read the weights, so that there are two of them.
    let forward_weights = script.allocate_with(&weights);
    let device_weights = script.allocate_with(&weights);
    let device_steps = script.allocate_with(&steps);
    let device_sums = script.allocate(count as u64 * 4);
    let device_deltas = script.allocate(ROW as u64 * 4);
    let blocks = (count / HIDDEN) as u32;
    let shape = Shape::planar([blocks, 1], [HIDDEN as u32; 2]);
    let mut comparisons = Comparisons::default();
    for step in 0..parameters.small("steps") {
        let sums = forward(&inputs, &weights);
        let thresholds = weights[..ROW].to_vec();
        let deltas = deltas(&sums, &thresholds);
        adjust(&inputs, &deltas, &mut weights, &mut steps);

        let [inputs, weights_in, weights, steps, sums_out, deltas_in] =
            [device_inputs, forward_weights, device_weights, device_steps, device_sums, device_deltas]
                .map(Argument::Buffer);
        if step > 0 {
            script.copy_within(forward_weights, device_weights, bytes, Queue::Default);
        }
        script.launch("backprop_forward", shape, &[inputs, weights_in, sums_out]);
        let transfer = script.download(device_sums, count as u64 * 4, Queue::Default);
        comparisons.add(transfer, &format!("step {step}: partial sum"), sums);
        let transfer = script.download(forward_weights, ROW as u64 * 4, Queue::Default);
        comparisons.add(transfer, &format!("step {step}: threshold"), thresholds);
        script.upload(device_deltas, bytemuck::cast_slice(&deltas).into(), Queue::Default);
        let arguments = [inputs, deltas_in, weights, steps, Argument::F32(RATE), Argument::F32(MOMENTUM)];
        script.launch("backprop_adjust", shape, &arguments);
    }
    let transfer = script.download(device_weights, bytes, Queue::Default);
    comparisons.add(transfer, "weight", weights);
    for buffer in [device_inputs, forward_weights, device_weights, device_steps, device_sums, device_deltas] {
        script.release(buffer);
    }
    script.finish(comparisons)
}
