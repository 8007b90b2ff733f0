//! `page_touch`: single blocks of an allocation, touched one after another.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Domain, Parameter, Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

/// The least that a driver of unified memory migrates where it reads ahead.
const BLOCK_BYTES: u64 = 64 << 10;
/// Numbers of blocks that the kernel takes.
const MOST_TOUCHES: usize = 20;
/// Blocks of 2 MiB that are touched in doubling distances.
const DOUBLING: [u8; 6] = [0, 1, 2, 4, 8, 16];

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "page_touch",
    summary: "one thread touches 64 KiB blocks of an allocation one after another; the host reads them in reverse order",
    parameters: &[
        Parameter {
            name: "pattern",
            domain: Domain::Choice(&["p1", "p2", "p3", "boundary", "round_up"]),
            meaning: "blocks touched of 2 MiB: p1 0 1 2 4 8 16, p2 1 3 0 4 8 16, p3 1 3 5 7 0 8 16; boundary p1 in each \
                      of three 2 MiB; round_up p1 of 2 MiB + 192 KiB, then the last three",
        },
        integer("pause", 1000, 0, 1 << 30, "clocks of the SM between a touch and the next"),
        SEED,
    ],
    code: code!("page_touch"),
    cubins: cubins!("page_touch"),
    small: "pattern=round_up",
    build,
};

/// The blocks of an allocation, and the numbers of those touched in their order.
fn blocks(pattern: &str) -> (u64, Vec<u8>) {
    match pattern {
        "p2" => (32, vec![1, 3, 0, 4, 8, 16]),
        "p3" => (32, vec![1, 3, 5, 7, 0, 8, 16]),
        "boundary" => (96, [0, 32, 64].into_iter().flat_map(|first| DOUBLING.map(|block| first + block)).collect()),
        "round_up" => (35, DOUBLING.into_iter().chain([32, 33, 34]).collect()),
        _ => (32, DOUBLING.to_vec()),
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (count, touched) = blocks(parameters.choice("pattern"));
    let bytes = count * BLOCK_BYTES;
    let words = integers(parameters.integer("seed"), 0, bytes as usize / 4);
    let mut numbers = [0; MOST_TOUCHES];
    numbers[..touched.len()].copy_from_slice(&touched);

    let mut script = Script::default();
    let buffer = script.allocate_with(&words);
    let mut arguments =
        vec![Argument::Buffer(buffer), Argument::U32(touched.len() as u32), Argument::U32(parameters.small("pause"))];
    arguments.extend(numbers.as_chunks().0.iter().map(|four| Argument::U32(u32::from_le_bytes(*four))));
    script.launch("page_touch", Shape::linear(1, 1), &arguments);
    let mut comparisons = Comparisons::default();
    for block in touched.iter().rev() {
        let offset = u64::from(*block) * BLOCK_BYTES;
        let transfer = script.download_at(buffer, offset, 4, Queue::Default);
        let expected = words[offset as usize / 4].wrapping_add(1);
        comparisons.add(transfer, &format!("the first word of block {block}"), vec![expected]);
    }
    script.release(buffer);
    script.finish(comparisons)
}
