//! `device_heap`: malloc and free in device code.

use crate::descriptor::{Descriptor, code, cubins, integer};
use crate::numeric::compare_exactly;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "device_heap",
    summary: "each thread builds a linked list with malloc in one kernel; another one sums and frees it",
    parameters: &[
        integer("threads", 256, 1, 1 << 16, "lists"),
        integer("length", 4, 0, 64, "nodes of the shortest lists"),
        integer("block", 64, 1, 1024, "threads of a block"),
    ],
    code: code!("device_heap"),
    cubins: cubins!("device_heap"),
    small: "threads=100,length=2",
    build,
};

struct Lists {
    threads: u32,
    length: u32,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [threads, length, block] = ["threads", "length", "block"].map(|name| parameters.small(name));
    let shape = Shape::linear(threads.div_ceil(block), block);
    let mut script = Script::default();
    let heads = script.allocate(u64::from(threads) * 8);
    let sums = script.allocate(u64::from(threads) * 4);
    let (heads_argument, count) = (Argument::Buffer(heads), Argument::U32(threads));
    script.launch("buildLists", shape, &[heads_argument, count, Argument::U32(length)]);
    script.launch("consumeLists", shape, &[heads_argument, Argument::Buffer(sums), count]);
    let result = script.download(sums, u64::from(threads) * 4, Queue::Default);
    script.release(heads);
    script.release(sums);
    script.finish(Lists { threads, length, result })
}

impl Check for Lists {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let actual = outcome.values::<u32>(self.result, self.threads as usize)?;
        // The node made last comes first.
        let sum = |thread: u32| {
            let nodes = (0..self.length + thread % 3).rev();
            nodes.fold(0u32, |sum, place| sum.wrapping_mul(31).wrapping_add(thread + place))
        };
        let expected: Vec<u32> = (0..self.threads).map(sum).collect();
        compare_exactly(expected.into_iter(), &actual, |thread| format!("sum of list {thread}"))
    }
}
