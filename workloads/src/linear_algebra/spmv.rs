//! `spmv`: a sparse matrix times a vector.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{integers, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const BLOCK: u32 = 128;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "spmv",
    summary: "sparse matrix (compressed rows) times vector, with a thread and with a warp for each row",
    parameters: &[
        integer("rows", 4096, 1, 1 << 20, "rows and columns of the matrix"),
        integer("entries", 24, 1, 256, "mean number of entries of a row; each has from 1 to 2 * entries - 1"),
        SEED,
    ],
    code: code!("spmv"),
    cubins: cubins!("spmv"),
    small: "rows=300,entries=20",
    build,
};

/// A matrix of compressed rows.
struct Matrix {
    first_entries: Vec<i32>,
    columns: Vec<i32>,
    entries: Vec<f32>,
}

impl Matrix {
    fn random(rows: usize, mean: u32, seed: u64) -> Self {
        let mut first_entries = vec![0];
        let mut total = 0;
        for bits in integers(seed, 0, rows) {
            total += 1 + (bits % (2 * mean - 1)) as i32;
            first_entries.push(total);
        }
        let columns = integers(seed, 1, total as usize).into_iter().map(|bits| (bits % rows as u32) as i32);
        let mut columns: Vec<i32> = columns.collect();
        for row in first_entries.windows(2) {
            columns[row[0] as usize..row[1] as usize].sort_unstable();
        }
        Matrix { first_entries, columns, entries: uniform_floats(seed, 2, total as usize) }
    }

    fn rows(&self) -> impl Iterator<Item = (&[i32], &[f32])> {
        self.first_entries.windows(2).map(|row| {
            let range = row[0] as usize..row[1] as usize;
            (&self.columns[range.clone()], &self.entries[range])
        })
    }
}

with_fused_multiply_add! {
    /// The product as `lanes` lanes a row compute it: each takes every `lanes`-th entry, and a tree adds them up.
    fn product(matrix: &Matrix, x: &[f32], lanes: usize) -> Vec<f32> {
        let row_sum = |(columns, entries): (&[i32], &[f32])| {
            let mut sums = vec![0.0f32; lanes];
            for (index, (column, entry)) in columns.iter().zip(entries).enumerate() {
                sums[index % lanes] = entry.mul_add(x[*column as usize], sums[index % lanes]);
            }
            let mut distance = lanes / 2;
            while distance > 0 {
                for lane in 0..distance {
                    sums[lane] += sums[lane + distance];
                }
                distance /= 2;
            }
            sums[0]
        };
        matrix.rows().map(row_sum).collect()
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let rows = parameters.small("rows");
    let seed = parameters.integer("seed");
    let matrix = Matrix::random(rows as usize, parameters.small("entries"), seed);
    let x = uniform_floats(seed, 3, rows as usize);

    let mut script = Script::default();
    let first_entries = script.allocate_with(&matrix.first_entries);
    let columns = script.allocate_with(&matrix.columns);
    let entries = script.allocate_with(&matrix.entries);
    let device_x = script.allocate_with(&x);
    let bytes = u64::from(rows) * 4;
    let results = [(); 2].map(|()| script.allocate(bytes));
    let mut comparisons = Comparisons::default();
    for (kernel, lanes, result) in [("spmv_scalar", 1, results[0]), ("spmv_vector", 32, results[1])] {
        let [first_entries, columns, entries, x_in, y] =
            [first_entries, columns, entries, device_x, result].map(Argument::Buffer);
        let shape = Shape::linear((rows * lanes).div_ceil(BLOCK), BLOCK);
        script.launch(kernel, shape, &[first_entries, columns, entries, x_in, y, Argument::U32(rows)]);
        let transfer = script.download(result, bytes, Queue::Default);
        comparisons.add(transfer, &format!("{kernel}: row"), product(&matrix, &x, lanes as usize));
    }
    for buffer in [first_entries, columns, entries, device_x].into_iter().chain(results) {
        script.release(buffer);
    }
    script.finish(comparisons)
}
