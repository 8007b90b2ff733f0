//! `fft`: fast Fourier transforms of complex signals.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_within, uniform_floats};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Threads of a block.
const BLOCK: u32 = 256;
/// A transform of this length has a kernel of its own, in shared memory.
const SHARED_LENGTH: u32 = 1024;
/// Error of a number, as a part of the largest: a few units in the last place of single precision for each step.
const TOLERANCE: f64 = 3e-6;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "fft",
    summary: "Fourier transforms: long ones step by step in device memory, then all of length 1024 in shared memory",
    parameters: &[
        integer("length_log2", 11, 1, 24, "the length of a transform is 2 to this power"),
        integer("batch", 2, 1, 65_535, "signals; as many of length 1024 are transformed in shared memory"),
        SEED,
    ],
    code: code!("fft"),
    cubins: cubins!("fft"),
    small: "length_log2=7,batch=3",
    build,
};

struct Signals {
    long: Vec<f32>,
    short: Vec<f32>,
    length: usize,
    long_result: Transfer,
    short_result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let length = 1u32 << parameters.small("length_log2");
    let batch = parameters.small("batch");
    let seed = parameters.integer("seed");
    let long = uniform_floats(seed, 0, 2 * length as usize * batch as usize);
    let short = uniform_floats(seed, 1, 2 * SHARED_LENGTH as usize * batch as usize);
    let long_bytes = long.len() as u64 * 4;

    let mut script = Script::default();
    let mut source = script.allocate_with(&long);
    let mut target = script.allocate(long_bytes);
    let device_short = script.allocate_with(&short);
    let half = length / 2;
    let shape = Shape::planar([half.div_ceil(BLOCK), batch], [BLOCK, 1]);
    // A forward transform turns clockwise.
    let sign = Argument::F32(-1.0);
    let mut span = 1;
    while span < length {
        let arguments =
            [Argument::Buffer(source), Argument::Buffer(target), Argument::U32(half), Argument::U32(span), sign];
        script.launch("fftStep", shape, &arguments);
        (source, target) = (target, source);
        span *= 2;
    }
    script.launch("fft1024", Shape::linear(batch, BLOCK), &[Argument::Buffer(device_short), sign]);
    let long_result = script.download(source, long_bytes, Queue::Default);
    let short_result = script.download(device_short, short.len() as u64 * 4, Queue::Default);
    for buffer in [source, target, device_short] {
        script.release(buffer);
    }
    script.finish(Signals { long, short, length: length as usize, long_result, short_result })
}

/// The transform of complex numbers, real and imaginary parts in turn.
fn transform(signal: &[f64]) -> Vec<f64> {
    let count = signal.len() / 2;
    if count == 1 {
        return signal.to_vec();
    }
    let every_other =
        |first: usize| -> Vec<f64> { signal.chunks_exact(2).skip(first).step_by(2).flatten().copied().collect() };
    let (even, odd) = (transform(&every_other(0)), transform(&every_other(1)));
    let mut result = vec![0.0; signal.len()];
    for index in 0..count / 2 {
        let (sine, cosine) = (-2.0 * std::f64::consts::PI * index as f64 / count as f64).sin_cos();
        let (real, imaginary) = (odd[2 * index], odd[2 * index + 1]);
        let turned = [real * cosine - imaginary * sine, real * sine + imaginary * cosine];
        for part in 0..2 {
            result[2 * index + part] = even[2 * index + part] + turned[part];
            result[2 * index + part + count] = even[2 * index + part] - turned[part];
        }
    }
    result
}

impl Check for Signals {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let parts = [
            ("long", &self.long, self.length, self.long_result),
            ("short", &self.short, SHARED_LENGTH as usize, self.short_result),
        ];
        for (name, signals, length, result) in parts {
            let signals: Vec<f64> = signals.iter().map(|value| f64::from(*value)).collect();
            let expected: Vec<f64> = signals.chunks_exact(2 * length).flat_map(transform).collect();
            let actual = outcome.values::<f32>(result, expected.len())?;
            let place = |index: usize| {
                let (signal, within) = (index / 2 / length, index / 2 % length);
                format!("{} part of number {within} of {name} signal {signal}", ["real", "imaginary"][index % 2])
            };
            compare_within(TOLERANCE, &expected, actual.iter().map(|value| f64::from(*value)), place)?;
        }
        Ok(())
    }
}
