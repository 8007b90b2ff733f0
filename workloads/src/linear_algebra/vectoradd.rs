//! `vectoradd`: element-wise sum of two vectors.

use std::sync::Arc;

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, uniform_float_bytes};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "vectoradd",
    summary: "element-wise sum of two vectors of floats, one thread an element",
    parameters: &[
        // 163840 elements: the vectorAdd of SAND2019-10389, table 3-5.
        integer("elements", 163_840, 1, 1 << 30, "length of the vectors"),
        integer("block", 256, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("vectoradd"),
    cubins: cubins!("vectoradd"),
    small: "elements=5000,block=128",
    build,
};

struct Sum {
    /// Bytes of the vectors, shared with the copies to the device.
    a: Arc<[u8]>,
    b: Arc<[u8]>,
    elements: usize,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (elements, block) = (parameters.small("elements"), parameters.small("block"));
    let count = elements as usize;
    let bytes = u64::from(elements) * 4;
    let a = uniform_float_bytes(parameters.integer("seed"), 0, count);
    let b = uniform_float_bytes(parameters.integer("seed"), 1, count);

    let mut script = Script::default();
    let device_a = script.allocate_with_bytes(a.clone());
    let device_b = script.allocate_with_bytes(b.clone());
    let device_c = script.allocate(bytes);
    let arguments =
        [Argument::Buffer(device_a), Argument::Buffer(device_b), Argument::Buffer(device_c), Argument::U32(elements)];
    script.launch("vectorAdd", Shape::linear(elements.div_ceil(block), block), &arguments);
    let result = script.download(device_c, bytes, Queue::Default);
    for buffer in [device_a, device_b, device_c] {
        script.release(buffer);
    }
    script.finish(Sum { a, b, elements: count, result })
}

fn floats(bytes: &[u8]) -> impl ExactSizeIterator<Item = f32> {
    bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned)
}

impl Check for Sum {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let actual = outcome.values(self.result, self.elements)?;
        let expected = floats(&self.a).zip(floats(&self.b)).map(|(a, b)| a + b);
        compare_exactly(expected, &actual, |index| format!("c[{index}]"))
    }
}
