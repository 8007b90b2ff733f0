//! `bitonic`: a sorting network over keys in device memory.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, integers};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Keys that a block sorts in shared memory.
const TILE: u32 = 512;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "bitonic",
    summary: "bitonic sort of 32-bit keys: tiles in shared memory, long strides in device memory",
    parameters: &[integer("tiles_log2", 4, 0, 14, "the number of tiles of 512 keys is 2 to this power"), SEED],
    code: code!("bitonic"),
    cubins: cubins!("bitonic"),
    small: "tiles_log2=2",
    build,
};

struct Sorted {
    keys: Vec<u32>,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let tiles = 1 << parameters.small("tiles_log2");
    let count = tiles * TILE;
    let keys = integers(parameters.integer("seed"), 0, count as usize);
    let shape = Shape::linear(tiles, TILE / 2);

    let mut script = Script::default();
    let device_keys = script.allocate_with(&keys);
    let argument = Argument::Buffer(device_keys);
    script.launch("sortTiles", shape, &[argument]);
    let mut size = 2 * TILE;
    while size <= count {
        let mut stride = size / 2;
        while stride >= TILE {
            script.launch("mergeStep", shape, &[argument, Argument::U32(size), Argument::U32(stride)]);
            stride /= 2;
        }
        script.launch("mergeTiles", shape, &[argument, Argument::U32(size)]);
        size *= 2;
    }
    let result = script.download(device_keys, u64::from(count) * 4, Queue::Default);
    script.release(device_keys);
    script.finish(Sorted { keys, result })
}

impl Check for Sorted {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let mut expected = self.keys.clone();
        expected.sort_unstable();
        let actual = outcome.values::<u32>(self.result, expected.len())?;
        compare_exactly(expected.into_iter(), &actual, |index| format!("key {index}"))
    }
}
