//! `reuse`: data that the host and the GPU use in turn, brought to the GPU in different ways, after the Roofline Toolkit's benchmark of
//! unified memory.

use crate::descriptor::{Descriptor, code, cubins, integer};
use crate::numeric::compare_exactly;
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "reuse",
    summary: "data that the host and the GPU use in turn: explicit copies, zero copy, managed memory",
    parameters: &[
        Parameter {
            name: "mechanism",
            domain: Domain::Choice(&["pageable", "pinned", "zero_copy"]),
            meaning: "copies from pageable or from page-locked memory, or kernels that access page-locked memory; with pageable, \
                      memory=managed puts managed memory in the place of copies",
        },
        integer("elements", 4096, 1, 1 << 28, "doubles"),
        integer("reuse", 2, 1, 1 << 20, "iterations of the GPU, a launch each, between two iterations of the host"),
        integer("trials", 2, 1, 1000, "times that the host's iteration and the GPU's iterations take turns"),
        integer("blocks", 224, 1, 65_535, "blocks of the grid"),
        integer("threads", 64, 32, 1024, "threads of a block"),
        integer("host_bandwidth", 10_000, 1, 1_000_000, "MB/s at which the host's iteration reads and writes"),
    ],
    code: code!("reuse": clang 35, nvrtc 60, nvrtc 70, nvcc 75, clang 70),
    cubins: cubins!("reuse"),
    small: "elements=1000,reuse=2,trials=2,blocks=7",
    build,
};

/// Elements at the start and end whose values are checked.
const CHECKED: u64 = 1 << 14;
/// Bytes that an iteration reads and writes of an element.
const ITERATION_BYTES: u64 = 16;

struct Turns {
    elements: u64,
    reuse: u32,
    trials: u32,
    ends: Vec<(u64, u64, Transfer)>,
}

/// The value after `iterations` from zero; the host's iterations leave values as they are.
fn value_after(iterations: u64) -> f64 {
    // Nothing changes after some dozens.
    (0..iterations.min(4096)).fold(0.0, |value: f64, _| 0.5f64.mul_add(value, 1.0))
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let mechanism = parameters.choice("mechanism");
    let elements = parameters.integer("elements");
    let (reuse, trials) = (parameters.small("reuse"), parameters.small("trials"));
    let bytes = elements * 8;
    let shape = Shape::linear(parameters.small("blocks"), parameters.small("threads"));
    let data = |iterations: u64| vec![value_after(iterations); elements as usize];
    let host_nanoseconds = elements * ITERATION_BYTES * 1000 / parameters.integer("host_bandwidth");

    let mut script = Script::default();
    let pinned = (mechanism != "pageable").then(|| script.allocate_pinned_with(&data(0)));
    let device = (mechanism != "zero_copy").then(|| script.allocate(bytes));
    let place = device.or(pinned).expect("data are somewhere");
    script.synchronize(Queue::Default);
    script.read_clock();
    let mut last = None;
    for trial in 0..u64::from(trials) {
        match (device, pinned) {
            (Some(device), Some(pinned)) => script.copy_within(device, pinned, bytes, Queue::Default),
            (Some(device), None) => {
                let values = data(trial * u64::from(reuse));
                script.upload(device, bytemuck::cast_slice(&values).into(), Queue::Default);
            }
            _ => {}
        }
        for _ in 0..reuse {
            script.launch("reuse_update", shape, &[Argument::Buffer(place), Argument::U32(elements as u32)]);
        }
        match (device, pinned) {
            (Some(device), Some(pinned)) => script.copy_within(pinned, device, bytes, Queue::Default),
            (Some(device), None) => last = Some(script.download(device, bytes, Queue::Default)),
            _ => script.synchronize(Queue::Default),
        }
        script.compute(host_nanoseconds);
    }
    script.read_clock();
    let ends = match last {
        Some(transfer) => vec![(0, elements, transfer)],
        None => {
            let count = elements.min(CHECKED);
            [0, elements - count]
                .map(|first| (first, count, script.download_at(place, first * 8, count * 8, Queue::Default)))
                .to_vec()
        }
    };
    for buffer in [pinned, device].into_iter().flatten() {
        script.release(buffer);
    }
    script.finish(Turns { elements, reuse, trials, ends })
}

impl Check for Turns {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let expected = value_after(u64::from(self.reuse) * u64::from(self.trials));
        for (first, count, transfer) in &self.ends {
            let actual = outcome.values::<f64>(*transfer, *count as usize)?;
            let expected = std::iter::repeat_n(expected, *count as usize);
            compare_exactly(expected, &actual, |index| format!("a[{}]", first + index as u64))?;
        }
        Ok(())
    }

    fn measurements(&self, outcome: &Outcome) -> Vec<Measurement> {
        // What all iterations read and write, wherever the data are: the toolkit's effective bytes.
        let iterations = u64::from(self.trials) * (u64::from(self.reuse) + 1);
        let bytes = (ITERATION_BYTES * self.elements * iterations) as f64;
        let mut measurements = vec![Measurement { name: "effective_bytes", value: bytes, unit: "byte" }];
        if let [begin, end] = outcome.times[..]
            && end > begin
        {
            let picoseconds = (end - begin) as f64;
            measurements.push(Measurement { name: "host_time", value: picoseconds / 1e3, unit: "ns" });
            measurements.push(Measurement {
                name: "effective_bandwidth",
                value: bytes / picoseconds * 1e3,
                unit: "GB/s",
            });
        }
        measurements
    }
}
