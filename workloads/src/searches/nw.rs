//! `nw`: alignment of two sequences, in tiles along anti-diagonals.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const TILE: u32 = 16;
/// Letters of the sequences: as many as there are amino acids.
const LETTERS: usize = 20;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "nw",
    summary: "Needleman-Wunsch alignment of two sequences: tiles along anti-diagonals, one launch for each of them",
    parameters: &[
        integer("length", 256, 16, 16_384, "length of both sequences, a multiple of 16"),
        integer("penalty", 10, 0, 1000, "penalty of a gap"),
        SEED,
    ],
    code: code!("nw"),
    cubins: cubins!("nw"),
    small: "length=64",
    build,
};

/// The scores of all cells, row 0 and column 0 filled in before.
fn align(similarity: &[i32], scores: &mut [i32], columns: usize, penalty: i32) {
    for row in 1..columns {
        for column in 1..columns {
            let cell = row * columns + column;
            let diagonal = scores[cell - columns - 1] + similarity[cell];
            scores[cell] = diagonal.max(scores[cell - 1] - penalty).max(scores[cell - columns] - penalty);
        }
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let length = parameters.small("length");
    if !length.is_multiple_of(TILE) {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("length = {length} is not a multiple of {TILE}"),
        });
    }
    let (seed, penalty) = (parameters.integer("seed"), parameters.small("penalty"));
    let columns = length as usize + 1;
    let letters = |stream| integers(seed, stream, length as usize).into_iter().map(|bits| bits as usize % LETTERS);
    // How alike two letters are: 4 to 11 for the same one, -4 to 3 for others, in no order.
    let alike = integers(seed, 2, LETTERS * LETTERS);
    let alike = |a: usize, b: usize| {
        let bits = (alike[a.min(b) * LETTERS + a.max(b)] >> 16) as i32 % 8;
        if a == b { bits + 4 } else { bits - 4 }
    };
    let mut similarity = vec![0; columns * columns];
    let across: Vec<usize> = letters(1).collect();
    for (row, down) in letters(0).enumerate() {
        for (column, across) in across.iter().enumerate() {
            similarity[(row + 1) * columns + column + 1] = alike(down, *across);
        }
    }
    let mut scores = vec![0; columns * columns];
    for index in 1..columns {
        scores[index] = -(index as i32) * penalty as i32;
        scores[index * columns] = scores[index];
    }

    let mut script = Script::default();
    let device_similarity = script.allocate_with(&similarity);
    let device_scores = script.allocate_with(&scores);
    let tiles = length / TILE;
    let common = |diagonal| {
        let [similarity, scores] = [device_similarity, device_scores].map(Argument::Buffer);
        [similarity, scores, Argument::U32(length + 1), Argument::U32(penalty), Argument::U32(diagonal)]
    };
    for diagonal in 1..=tiles {
        script.launch("nw_growing", Shape::linear(diagonal, TILE), &common(diagonal));
    }
    for diagonal in (1..tiles).rev() {
        let [similarity, scores, columns, penalty, number] = common(diagonal);
        let arguments = [similarity, scores, columns, penalty, number, Argument::U32(tiles)];
        script.launch("nw_shrinking", Shape::linear(diagonal, TILE), &arguments);
    }
    let result = script.download(device_scores, (columns * columns) as u64 * 4, Queue::Default);
    for buffer in [device_similarity, device_scores] {
        script.release(buffer);
    }
    align(&similarity, &mut scores, columns, penalty as i32);
    let mut comparisons = Comparisons::default();
    comparisons.add(result, "the score of cell", scores);
    script.finish(comparisons)
}
