//! `row_walk`: a dense matrix times a vector, one thread a row.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "row_walk",
    summary: "matrix of floats times vector, each thread walking along its own row: uncoalesced loads",
    parameters: &[
        integer("rows", 4096, 1, 1 << 16, "rows of the matrix"),
        integer("columns", 256, 1, 16_384, "columns of the matrix: each row is 4 bytes a column"),
        integer("block", 256, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("row_walk"),
    cubins: cubins!("row_walk"),
    small: "rows=300,columns=70,block=128",
    build,
};

with_fused_multiply_add! {
    /// The product; each row adds up from its first column to its last.
    fn product(matrix: &[f32], x: &[f32]) -> Vec<f32> {
        let row_sum = |row: &[f32]| row.iter().zip(x).fold(0.0f32, |sum, (entry, x)| entry.mul_add(*x, sum));
        matrix.chunks_exact(x.len()).map(row_sum).collect()
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [rows, columns, block] = ["rows", "columns", "block"].map(|name| parameters.small(name));
    let seed = parameters.integer("seed");
    let matrix = uniform_floats(seed, 0, rows as usize * columns as usize);
    let x = uniform_floats(seed, 1, columns as usize);

    let mut script = Script::default();
    let device_matrix = script.allocate_with(&matrix);
    let device_x = script.allocate_with(&x);
    let bytes = u64::from(rows) * 4;
    let y = script.allocate(bytes);
    let [matrix_in, x_in, y_out] = [device_matrix, device_x, y].map(Argument::Buffer);
    let arguments = [matrix_in, x_in, y_out, Argument::U32(rows), Argument::U32(columns)];
    script.launch("row_walk", Shape::linear(rows.div_ceil(block), block), &arguments);
    let transfer = script.download(y, bytes, Queue::Default);
    let mut comparisons = Comparisons::default();
    comparisons.add(transfer, "row", product(&matrix, &x));
    for buffer in [device_matrix, device_x, y] {
        script.release(buffer);
    }
    script.finish(comparisons)
}
