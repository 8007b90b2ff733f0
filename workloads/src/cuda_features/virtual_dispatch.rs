//! `virtual_dispatch`: virtual functions, function pointers and recursion on the device.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, integers};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Bytes that the storage has for each shape.
const SHAPE_BYTES: u64 = 32;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "virtual_dispatch",
    summary: "objects with virtual functions, a table of function pointers, recursion; lanes call different functions",
    parameters: &[
        integer("elements", 512, 1, 1 << 20, "shapes, and calls through the table"),
        integer("block", 128, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("virtual_dispatch"),
    cubins: cubins!("virtual_dispatch"),
    small: "elements=200,block=64",
    build,
};

struct Calls {
    sizes: Vec<u32>,
    values: Vec<u32>,
    measured: Transfer,
    dispatched: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (count, block) = (parameters.small("elements"), parameters.small("block"));
    let seed = parameters.integer("seed");
    let sizes: Vec<u32> = integers(seed, 0, count as usize).into_iter().map(|value| value % 1000 + 1).collect();
    let values = integers(seed, 1, count as usize);
    let shape = Shape::linear(count.div_ceil(block), block);
    let count_argument = Argument::U32(count);

    let mut script = Script::default();
    let storage = script.allocate(SHAPE_BYTES * u64::from(count));
    let device_sizes = script.allocate_with(&sizes);
    let device_values = script.allocate_with(&values);
    let [measured, dispatched] = [0; 2].map(|_| script.allocate(u64::from(count) * 4));
    let pair = |first, second| [Argument::Buffer(first), Argument::Buffer(second), count_argument];
    script.launch("construct", shape, &pair(storage, device_sizes));
    script.launch("measure", shape, &pair(storage, measured));
    script.launch("dispatch", shape, &pair(device_values, dispatched));
    let results = [measured, dispatched].map(|buffer| script.download(buffer, u64::from(count) * 4, Queue::Default));
    for buffer in [storage, device_sizes, device_values, measured, dispatched] {
        script.release(buffer);
    }
    script.finish(Calls { sizes, values, measured: results[0], dispatched: results[1] })
}

fn area_and_corners(size: u32) -> u32 {
    match size % 3 {
        0 => size * size + 4,
        1 => 355 * size * size / 113,
        _ => size * (size + 1) / 2 + 3,
    }
}

fn operation(value: u32) -> u32 {
    let argument = value & 0xff;
    match (value >> 8) & 3 {
        0 => 2 * argument,
        1 => argument * argument,
        2 => {
            let (mut value, mut steps) = (argument, 0);
            while value > 1 {
                value = if value & 1 == 1 { 3 * value + 1 } else { value / 2 };
                steps += 1;
            }
            steps
        }
        _ => (0..value & 7).fold((0, 1), |(first, second), _| (second, first + second)).0,
    }
}

impl Check for Calls {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let measured = outcome.values::<u32>(self.measured, self.sizes.len())?;
        let expected = self.sizes.iter().map(|size| area_and_corners(*size));
        compare_exactly(expected, &measured, |index| format!("measure of shape {index}"))?;
        let dispatched = outcome.values::<u32>(self.dispatched, self.values.len())?;
        let expected = self.values.iter().map(|value| operation(*value));
        compare_exactly(expected, &dispatched, |index| format!("result of call {index}"))
    }
}
