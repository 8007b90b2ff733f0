//! `pointer_chase`: latency of global memory.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::shuffled_from_zero;
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Buffer, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "pointer_chase",
    summary: "latency of global memory: each load gives the address of the next; cycles by the SM's clock",
    parameters: &[
        Parameter {
            name: "cache",
            domain: Domain::Choice(&["ca", "cg"]),
            meaning: "cache operator of the loads: ca uses L1 and L2, cg L2 only",
        },
        Parameter {
            name: "order",
            domain: Domain::Choice(&["random", "sequential"]),
            meaning: "order of the nodes: one random cycle, or ascending addresses",
        },
        Parameter {
            name: "working_set",
            domain: Domain::Bytes { value: 64 << 10, minimum: 8, maximum: 8 << 30 },
            meaning: "bytes that the chase goes through",
        },
        Parameter {
            name: "stride",
            domain: Domain::Bytes { value: 128, minimum: 8, maximum: 1 << 30 },
            meaning: "bytes between neighbouring nodes, a multiple of 8",
        },
        integer("steps", 4096, 16, 1 << 24, "measured loads, a multiple of 16"),
        integer("warm_up_passes", 1, 0, 16, "passes over the working set before the measured loads"),
        integer("threads", 1, 1, 32, "threads of the warp; all follow the same pointers"),
        SEED,
    ],
    code: code!("pointer_chase"),
    cubins: cubins!("pointer_chase"),
    small: "working_set=8KiB,steps=256",
    build,
};

struct Chase {
    buffer: Buffer,
    /// Offset of the node at which the chase ends.
    end: u64,
    steps: u32,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let inconsistent = |message: String| WorkloadError::Inconsistent { workload: DESCRIPTOR.name, message };
    let (working_set, stride) = (parameters.integer("working_set"), parameters.integer("stride"));
    let steps = parameters.small("steps");
    if !stride.is_multiple_of(8) {
        return Err(inconsistent(format!("stride = {stride} is not a multiple of 8 bytes, a pointer")));
    }
    if !steps.is_multiple_of(16) {
        return Err(inconsistent(format!("steps = {steps} is not a multiple of 16")));
    }
    let nodes = working_set / stride;
    if nodes == 0 {
        return Err(inconsistent(format!("a working set of {working_set} bytes holds no node of {stride} bytes")));
    }
    let warm_up = (nodes * parameters.integer("warm_up_passes")).next_multiple_of(16);
    let warm_up =
        u32::try_from(warm_up).map_err(|_| inconsistent(format!("{warm_up} loads to warm up are too many")))?;

    let count = nodes as usize;
    let order = match parameters.choice("order") {
        "random" => shuffled_from_zero(parameters.integer("seed"), 0, count),
        _ => (0..count).collect(),
    };
    let words_apart = (stride / 8) as usize;
    let successor = |position: usize| order[(position + 1) % count] as u64 * stride;
    let links = order.iter().enumerate().map(|(position, node)| (node * words_apart, successor(position))).collect();
    let loads = u64::from(warm_up) + u64::from(steps);
    let end = order[(loads % nodes) as usize] as u64 * stride;

    let mut script = Script::default();
    let bytes = nodes * stride;
    let buffer = script.allocate(bytes);
    script.upload_ring(buffer, bytes as usize, links);
    let output = script.allocate(16);
    let kernel = if parameters.choice("cache") == "cg" { "chase_cg" } else { "chase_ca" };
    let arguments = [Argument::Buffer(buffer), Argument::U32(warm_up), Argument::U32(steps), Argument::Buffer(output)];
    script.launch(kernel, Shape::linear(1, parameters.small("threads")), &arguments);
    let result = script.download(output, 16, Queue::Default);
    script.release(buffer);
    script.release(output);
    script.finish(Chase { buffer, end, steps, result })
}

impl Check for Chase {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let words = outcome.values::<u64>(self.result, 2)?;
        let expected = outcome.address(self.buffer) + self.end;
        if words[1] != expected {
            return Err(format!("the chase ended at {:#x} instead of {expected:#x}", words[1]));
        }
        Ok(())
    }

    fn measurements(&self, outcome: &Outcome) -> Vec<Measurement> {
        let Ok(words) = outcome.values::<u64>(self.result, 2) else {
            return Vec::new();
        };
        vec![
            Measurement { name: "cycles", value: words[0] as f64, unit: "cycle" },
            Measurement { name: "cycles_per_access", value: words[0] as f64 / f64::from(self.steps), unit: "cycle" },
        ]
    }
}
