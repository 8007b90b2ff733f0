//! `atax`: a matrix times a vector, and the transposed matrix times that.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{multiply_add, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "atax",
    summary: "y = A^T (A x): each thread walks along its own row of a matrix, then each down its own column",
    parameters: &[
        integer("rows", 1200, 1, 16_384, "rows of the matrix"),
        integer("columns", 1200, 1, 16_384, "columns of the matrix"),
        integer("block", 256, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("atax"),
    cubins: cubins!("atax"),
    small: "rows=150,columns=70,block=64",
    build,
};

with_fused_multiply_add! {
    /// A^T (A x). Rows and columns add up from their first entry to their last.
    fn product(matrix: &[f32], x: &[f32]) -> Vec<f32> {
        let mut y = vec![0.0f32; x.len()];
        for row in matrix.chunks_exact(x.len()) {
            let sum = row.iter().zip(x).fold(0.0f32, |sum, (entry, x)| entry.mul_add(*x, sum));
            multiply_add(&mut y, sum, row);
        }
        y
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
    let products = script.allocate(u64::from(rows) * 4);
    let y = script.allocate(u64::from(columns) * 4);
    for (kernel, from, to, threads) in [("atax_rows", device_x, products, rows), ("atax_columns", products, y, columns)]
    {
        let [matrix, from, to] = [device_matrix, from, to].map(Argument::Buffer);
        let arguments = [matrix, from, to, Argument::U32(rows), Argument::U32(columns)];
        script.launch(kernel, Shape::linear(threads.div_ceil(block), block), &arguments);
    }
    let transfer = script.download(y, u64::from(columns) * 4, Queue::Default);
    let mut comparisons = Comparisons::default();
    comparisons.add(transfer, "column", product(&matrix, &x));
    for buffer in [device_matrix, device_x, products, y] {
        script.release(buffer);
    }
    script.finish(comparisons)
}
