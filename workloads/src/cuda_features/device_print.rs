//! `device_print`: printf in device code.

use crate::descriptor::{Descriptor, code, cubins, integer};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "device_print",
    summary: "some threads of a grid print a line with numbers, a string and a character",
    parameters: &[
        integer("threads", 200, 0, 1 << 16, "threads that may print"),
        integer("block", 64, 1, 1024, "threads of a block"),
    ],
    code: code!("device_print"),
    cubins: cubins!("device_print"),
    small: "threads=70,block=33",
    build,
};

struct Lines {
    threads: u32,
    block: u32,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [threads, block] = ["threads", "block"].map(|name| parameters.small(name));
    let mut script = Script::default();
    script.launch("greet", Shape::linear(threads.div_ceil(block).max(1), block), &[Argument::U32(threads)]);
    script.launch("finish", Shape::linear(1, 32), &[]);
    script.synchronize(Queue::Default);
    script.finish(Lines { threads, block })
}

impl Lines {
    fn expected(&self) -> Vec<String> {
        let line = |index: u32| {
            let (thread, block) = (index % self.block, index / self.block);
            let parity = if index % 2 == 1 { "odd" } else { "even" };
            let letter = char::from(b'a' + (index % 26) as u8);
            let quarter = f64::from(index) * 0.25;
            format!(
                "thread {thread} of block {block}: {parity}, {quarter:5.2}, {letter}, {:x}",
                (1u64 << 32) + u64::from(index)
            )
        };
        (0..self.threads).step_by(3).map(line).collect()
    }
}

impl Check for Lines {
    /// Warps print in an order of their own: the lines are compared as a set, but for the last kernel's.
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let text = String::from_utf8_lossy(&outcome.printed);
        let mut lines: Vec<&str> = text.lines().collect();
        if lines.pop() != Some("100% done") {
            return Err(format!("the last line printed is not `100% done`: {text:?}"));
        }
        lines.sort_unstable();
        let mut expected = self.expected();
        expected.sort_unstable();
        if lines.len() != expected.len() {
            return Err(format!("{} lines were printed instead of {}", lines.len(), expected.len()));
        }
        match lines.iter().zip(&expected).find(|(line, expected)| line != expected) {
            Some((line, expected)) => Err(format!("`{line}` was printed instead of `{expected}`")),
            None => Ok(()),
        }
    }
}
