//! `vectoradd`: element-wise sum of two vectors.

use crate::call::HostProgram;
use crate::numeric::{compare_exactly, uniform_floats};
use crate::parameters::{Parameters, WorkloadError};
use crate::registry::{Descriptor, SEED, integer, ptx};
use crate::script::{Argument, Check, Outcome, Queue, Script, Shape, Transfer};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "vectoradd",
    summary: "element-wise sum of two vectors of floats, one thread an element",
    parameters: &[
        // 163840 elements: the vectorAdd of SAND2019-10389, table 3-5.
        integer("elements", 163_840, 1, 1 << 30, "length of the vectors"),
        integer("block", 256, 1, 1024, "threads of a block"),
        SEED,
    ],
    ptx: ptx!("vectoradd"),
    build,
};

struct Sum {
    a: Vec<f32>,
    b: Vec<f32>,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<Box<dyn HostProgram>, WorkloadError> {
    let (elements, block) = (parameters.small("elements"), parameters.small("block"));
    let count = elements as usize;
    let bytes = u64::from(elements) * 4;
    let a = uniform_floats(parameters.integer("seed"), 0, count);
    let b = uniform_floats(parameters.integer("seed"), 1, count);

    let mut script = Script::default();
    let device_a = script.allocate_with(&a);
    let device_b = script.allocate_with(&b);
    let device_c = script.allocate(bytes);
    let arguments =
        [Argument::Buffer(device_a), Argument::Buffer(device_b), Argument::Buffer(device_c), Argument::U32(elements)];
    script.launch("vectorAdd", Shape::linear(elements.div_ceil(block), block), &arguments);
    let result = script.download(device_c, bytes, Queue::Default);
    for buffer in [device_a, device_b, device_c] {
        script.release(buffer);
    }
    script.finish(Sum { a, b, result })
}

impl Check for Sum {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let actual: Vec<f32> = outcome.values(self.result, self.a.len())?;
        let expected = self.a.iter().zip(&self.b).map(|(a, b)| a + b);
        compare_exactly(expected, &actual, |index| format!("c[{index}]"))
    }
}
