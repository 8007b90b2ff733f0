//! `shared_chase`: latency of shared memory.

use crate::descriptor::{Descriptor, code, cubins, integer};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;

/// Words of the kernel's ring.
const WORDS: u32 = 8192;
/// Loads before the measured ones, in the kernel.
const WARM_UP: u32 = 16;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "shared_chase",
    summary: "latency of shared memory: each load gives the address of the next; cycles by the SM's clock",
    parameters: &[
        integer("nodes", 256, 1, WORDS as u64, "nodes of the ring"),
        integer("stride", 1, 1, WORDS as u64, "32-bit words between neighbouring nodes"),
        integer("steps", 4096, 16, 1 << 24, "measured loads, a multiple of 16"),
        integer("threads", 1, 1, 32, "threads of the warp; all follow the same pointers"),
    ],
    code: code!("shared_chase"),
    cubins: cubins!("shared_chase"),
    small: "steps=256",
    build,
};

struct Chase {
    /// The node at which the chase ends.
    end: u32,
    steps: u32,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let inconsistent = |message: String| WorkloadError::Inconsistent { workload: DESCRIPTOR.name, message };
    let (nodes, stride, steps) = (parameters.small("nodes"), parameters.small("stride"), parameters.small("steps"));
    if nodes * stride > WORDS {
        return Err(inconsistent(format!("nodes * stride = {} exceeds the {WORDS} words of the ring", nodes * stride)));
    }
    if !steps.is_multiple_of(16) {
        return Err(inconsistent(format!("steps = {steps} is not a multiple of 16")));
    }
    let mut script = Script::default();
    let output = script.allocate(16);
    let arguments = [Argument::U32(nodes), Argument::U32(stride), Argument::U32(steps), Argument::Buffer(output)];
    script.launch("shared_chase", Shape::linear(1, parameters.small("threads")), &arguments);
    let result = script.download(output, 16, Queue::Default);
    script.release(output);
    script.finish(Chase { end: (steps + WARM_UP) % nodes, steps, result })
}

impl Check for Chase {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let words = outcome.values::<u64>(self.result, 2)?;
        if words[1] != u64::from(self.end) {
            return Err(format!("the chase ended at node {} instead of {}", words[1], self.end));
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
