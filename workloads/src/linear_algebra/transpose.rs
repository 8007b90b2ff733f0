//! `transpose`: a matrix turned in several ways.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::uniform_floats;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const TILE: u32 = 32;
/// Rows of threads of a block.
const ROWS: u32 = 8;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "transpose",
    summary: "transposition of a matrix: uncoalesced, through shared memory with and without bank conflicts; a copy",
    parameters: &[
        integer("rows", 256, 1, 16_384, "rows of the matrix"),
        integer("columns", 256, 1, 16_384, "columns of the matrix"),
        SEED,
    ],
    code: code!("transpose"),
    cubins: cubins!("transpose"),
    small: "rows=50,columns=70",
    build,
};

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [rows, columns] = ["rows", "columns"].map(|name| parameters.small(name));
    let matrix = uniform_floats(parameters.integer("seed"), 0, rows as usize * columns as usize);
    let turned: Vec<f32> = (0..columns as usize)
        .flat_map(|column| matrix.iter().skip(column).step_by(columns as usize).copied())
        .collect();
    let bytes = matrix.len() as u64 * 4;

    let mut script = Script::default();
    let from = script.allocate_with(&matrix);
    let to = script.allocate(bytes);
    let arguments = [Argument::Buffer(from), Argument::Buffer(to), Argument::U32(rows), Argument::U32(columns)];
    let shape = Shape::planar([columns.div_ceil(TILE), rows.div_ceil(TILE)], [TILE, ROWS]);
    let mut comparisons = Comparisons::default();
    for kernel in ["copy", "transpose_naive", "transpose_tiled", "transpose_padded"] {
        // Nothing of one kernel's result is left for the next.
        script.fill(to, 0xff, bytes, Queue::Default);
        script.launch(kernel, shape, &arguments);
        let transfer = script.download(to, bytes, Queue::Default);
        let expected = if kernel == "copy" { matrix.clone() } else { turned.clone() };
        comparisons.add(transfer, &format!("{kernel}: element"), expected);
    }
    for buffer in [from, to] {
        script.release(buffer);
    }
    script.finish(comparisons)
}
