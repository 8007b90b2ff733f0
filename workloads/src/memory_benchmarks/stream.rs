//! `stream`: bandwidth of global memory.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, uniform_doubles, with_fused_multiply_add};
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "stream",
    summary: "bandwidth of global memory: streaming kernels on doubles, one element a thread",
    parameters: &[
        Parameter {
            name: "operation",
            domain: Domain::Choice(&["copy", "scale", "triad", "read", "write"]),
            meaning: "copy a = b, scale a = s b, triad a = b + s c, read b, write a = s",
        },
        integer("elements", 2 << 20, 1, 1 << 30, "length of the vectors"),
        integer("block", 256, 1, 1024, "threads of a block"),
        integer("shared_memory", 0, 0, 98_304, "dynamic shared memory of a block in bytes, which limits occupancy"),
        integer("launches", 2, 1, 1000, "launches of the kernel, back to back"),
        SEED,
    ],
    code: code!("stream"),
    cubins: cubins!("stream"),
    small: "operation=triad,elements=20000",
    build,
};

/// The factor, or the value written. For reads a value that the input does not hold.
fn scalar(operation: &str) -> f64 {
    if operation == "read" { 2.0 } else { 0.42 }
}

struct Streams {
    operation: &'static str,
    b: Vec<f64>,
    c: Vec<f64>,
    elements: usize,
    launches: u32,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let operation = parameters.choice("operation");
    let (elements, block) = (parameters.small("elements"), parameters.small("block"));
    let launches = parameters.small("launches");
    let (count, seed) = (elements as usize, parameters.integer("seed"));
    let bytes = u64::from(elements) * 8;
    let input = |stream, wanted| if wanted { uniform_doubles(seed, stream, count) } else { Vec::new() };
    let b = input(0, operation != "write");
    let c = input(1, operation == "triad");

    let mut script = Script::default();
    let a = script.allocate(bytes);
    let device_b = (!b.is_empty()).then(|| script.allocate_with(&b));
    let device_c = (!c.is_empty()).then(|| script.allocate_with(&c));
    script.fill(a, 0, bytes, Queue::Default);
    script.synchronize(Queue::Default);
    let input = |buffer: Option<_>| buffer.map_or(Argument::NullPointer, Argument::Buffer);
    let arguments = [
        Argument::Buffer(a),
        input(device_b),
        input(device_c),
        Argument::F64(scalar(operation)),
        Argument::U32(elements),
    ];
    let shape = Shape {
        shared_memory_bytes: parameters.small("shared_memory"),
        ..Shape::linear(elements.div_ceil(block), block)
    };
    script.read_clock();
    for _ in 0..launches {
        script.launch(&format!("stream_{operation}"), shape, &arguments);
    }
    script.synchronize(Queue::Default);
    script.read_clock();
    let result = script.download(a, bytes, Queue::Default);
    for buffer in [Some(a), device_b, device_c].into_iter().flatten() {
        script.release(buffer);
    }
    script.finish(Streams { operation, b, c, elements: count, launches, result })
}

impl Streams {
    fn bytes_per_launch(&self) -> f64 {
        let vectors = match self.operation {
            "read" | "write" => 1.0,
            "triad" => 3.0,
            _ => 2.0,
        };
        vectors * 8.0 * self.elements as f64
    }
}

with_fused_multiply_add! {
    /// The vector a after the launches.
    fn expected_vector(streams: &Streams) -> Vec<f64> {
        let scalar = scalar(streams.operation);
        match streams.operation {
            "copy" => streams.b.clone(),
            "scale" => streams.b.iter().map(|b| scalar * b).collect(),
            "triad" => streams.b.iter().zip(&streams.c).map(|(b, c)| scalar.mul_add(*c, *b)).collect(),
            "write" => vec![scalar; streams.elements],
            _ => vec![0.0; streams.elements],
        }
    }
}

impl Check for Streams {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let actual = outcome.values::<f64>(self.result, self.elements)?;
        let expected = expected_vector(self);
        compare_exactly(expected.into_iter(), &actual, |index| format!("a[{index}]"))
    }

    fn measurements(&self, outcome: &Outcome) -> Vec<Measurement> {
        let bytes = self.bytes_per_launch();
        let mut measurements = vec![Measurement { name: "bytes_per_launch", value: bytes, unit: "byte" }];
        // Launch overhead included: the kernels' own cycles give the bandwidth without it.
        if let [begin, end] = outcome.times[..]
            && end > begin
        {
            let picoseconds = (end - begin) as f64;
            let rate = bytes * f64::from(self.launches) / picoseconds * 1e3;
            measurements.push(Measurement { name: "host_time", value: picoseconds / 1e3, unit: "ns" });
            measurements.push(Measurement { name: "host_bandwidth", value: rate, unit: "GB/s" });
        }
        measurements
    }
}
