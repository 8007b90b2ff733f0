//! `alu_latency`: latency of arithmetic instructions.

use crate::descriptor::{Descriptor, code, cubins, integer};
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;

/// Instructions before the measured ones, in the kernels.
const WARM_UP: u32 = 16;
/// Instructions of one pass of the kernels' loops.
const UNROLLED: u32 = 256;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "alu_latency",
    summary: "latency of arithmetic: chains of dependent instructions; cycles by the SM's clock",
    parameters: &[
        Parameter {
            name: "operation",
            domain: Domain::Choice(&["fp32_fma", "fp32_add", "fp64_fma", "int_add", "int_mad"]),
            meaning: "the instruction of the chain",
        },
        integer("steps", 4096, 256, 1 << 24, "measured instructions, a multiple of 256"),
        integer("threads", 32, 1, 1024, "threads of the block"),
    ],
    code: code!("alu_latency"),
    cubins: cubins!("alu_latency"),
    small: "steps=256",
    build,
};

struct Chain {
    operation: &'static str,
    steps: u32,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (operation, steps) = (parameters.choice("operation"), parameters.small("steps"));
    if !steps.is_multiple_of(UNROLLED) {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("steps = {steps} is not a multiple of {UNROLLED}"),
        });
    }
    let mut script = Script::default();
    let output = script.allocate(16);
    let mut arguments = vec![Argument::Buffer(output), Argument::U32(steps)];
    match operation {
        "fp64_fma" => arguments.extend(OPERANDS.map(Argument::F64)),
        "int_add" | "int_mad" => arguments.extend(INTEGER_OPERANDS.map(Argument::U32)),
        _ => arguments.extend(OPERANDS.map(|value| Argument::F32(value as f32))),
    }
    script.launch(&format!("chain_{operation}"), Shape::linear(1, parameters.small("threads")), &arguments);
    let result = script.download(output, 16, Queue::Default);
    script.release(output);
    script.finish(Chain { operation, steps, result })
}

/// Start and operands of the chains of floats: x * a + b goes to 1.5.
const OPERANDS: [f64; 3] = [1.0, 0.75, 0.375];
/// Start and operands of the chains of integers.
const INTEGER_OPERANDS: [u32; 3] = [12_345, 1_664_525, 1_013_904_223];

impl Chain {
    /// Bits of the chain's last value.
    fn expected(&self) -> u64 {
        let steps = 0..self.steps + WARM_UP;
        let [start, a, b] = OPERANDS;
        let [start_32, a_32, b_32] = OPERANDS.map(|value| value as f32);
        let [integer, factor, summand] = INTEGER_OPERANDS;
        match self.operation {
            "fp64_fma" => steps.fold(start, |x, _| x.mul_add(a, b)).to_bits(),
            "fp32_fma" => steps.fold(start_32, |x, _| x.mul_add(a_32, b_32)).to_bits().into(),
            "fp32_add" => steps.fold(start_32, |x, _| x + a_32).to_bits().into(),
            "int_mad" => steps.fold(integer, |x, _| x.wrapping_mul(factor).wrapping_add(summand)).into(),
            _ => steps.fold(integer, |x, _| x.wrapping_add(factor)).into(),
        }
    }
}

impl Check for Chain {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let words = outcome.values::<u64>(self.result, 2)?;
        let expected = self.expected();
        if words[1] != expected {
            return Err(format!("the chain ended with bits {:#x} instead of {expected:#x}", words[1]));
        }
        Ok(())
    }

    fn measurements(&self, outcome: &Outcome) -> Vec<Measurement> {
        let Ok(words) = outcome.values::<u64>(self.result, 2) else {
            return Vec::new();
        };
        let each = words[0] as f64 / f64::from(self.steps);
        vec![
            Measurement { name: "cycles", value: words[0] as f64, unit: "cycle" },
            Measurement { name: "cycles_per_instruction", value: each, unit: "cycle" },
        ]
    }
}
