//! `lud`: LU decomposition in place, in tiles of 16x16.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, multiply_add, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

const TILE: usize = 16;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "lud",
    summary: "LU decomposition of a matrix of floats, in tiles: diagonal, perimeter and internal kernels",
    parameters: &[integer("size", 256, 16, 16_384, "rows and columns, a multiple of 16"), SEED],
    code: code!("lud"),
    cubins: cubins!("lud"),
    small: "size=48",
    build,
};

struct Decomposition {
    matrix: Vec<f32>,
    size: usize,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let size = parameters.small("size");
    let count = size as usize;
    if !count.is_multiple_of(TILE) {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("size = {size} is not a multiple of {TILE}"),
        });
    }
    // Diagonally dominant by rows, so that the decomposition needs no pivoting.
    let mut matrix = uniform_floats(parameters.integer("seed"), 0, count * count);
    for index in 0..count {
        matrix[index * count + index] += count as f32;
    }

    let mut script = Script::default();
    let device = script.allocate_with(&matrix);
    let tile = TILE as u32;
    for offset in (0..size).step_by(TILE) {
        let arguments = [Argument::Buffer(device), Argument::U32(size), Argument::U32(offset)];
        let remaining = (size - offset) / tile - 1;
        script.launch("lud_diagonal", Shape::linear(1, tile), &arguments);
        if remaining > 0 {
            script.launch("lud_perimeter", Shape::linear(remaining, 2 * tile), &arguments);
            script.launch("lud_internal", Shape::planar([remaining; 2], [tile; 2]), &arguments);
        }
    }
    let result = script.download(device, u64::from(size) * u64::from(size) * 4, Queue::Default);
    script.release(device);
    script.finish(Decomposition { matrix, size: count, result })
}

with_fused_multiply_add! {
    /// The decomposition with the kernels' order of operations.
    fn decompose(matrix: &mut [f32], size: usize) {
        let mut sum = vec![0.0f32; size];
        for offset in (0..size).step_by(TILE) {
            let end = offset + TILE;
            // The tile on the diagonal and the tiles right of it: rows of U, and in the tile on the diagonal L.
            for row in offset..end {
                let (above, current) = matrix.split_at_mut(row * size);
                let current = &mut current[..size];
                for k in offset..row {
                    let pivot_row = &above[k * size..][..size];
                    // Column k of L is complete: subtracted products of the columns before it, then divided.
                    current[k] /= pivot_row[k];
                    let factor = -current[k];
                    multiply_add(&mut current[k + 1..], factor, &pivot_row[k + 1..]);
                }
            }
            let (upper, below) = matrix.split_at_mut(end * size);
            let upper = &upper[offset * size..];
            for current in below.chunks_exact_mut(size) {
                // The tiles below the diagonal: columns of L.
                for k in 0..TILE {
                    let pivot_row = &upper[k * size..][..size];
                    current[offset + k] /= pivot_row[offset + k];
                    let factor = -current[offset + k];
                    multiply_add(&mut current[offset + k + 1..end], factor, &pivot_row[offset + k + 1..end]);
                }
                // The tiles right of and below it.
                let sum = &mut sum[end..];
                sum.fill(0.0);
                for k in 0..TILE {
                    multiply_add(sum, current[offset + k], &upper[k * size + end..][..size - end]);
                }
                for (value, product) in current[end..].iter_mut().zip(sum.iter()) {
                    *value -= product;
                }
            }
        }
    }
}

impl Check for Decomposition {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let size = self.size;
        let actual = outcome.values::<f32>(self.result, size * size)?;
        let mut expected = self.matrix.clone();
        decompose(&mut expected, size);
        compare_exactly(expected.into_iter(), &actual, |index| format!("element ({}, {})", index / size, index % size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host's decomposition is one: L times U gives the matrix, within the bound on rounding errors of Gaussian
    /// elimination (Higham, Accuracy and Stability of Numerical Algorithms, theorem 9.3).
    #[test]
    fn factors_multiply_to_the_matrix() {
        let size = 64;
        let mut matrix = uniform_floats(7, 0, size * size);
        for index in 0..size {
            matrix[index * size + index] += size as f32;
        }
        let mut factors = matrix.clone();
        decompose(&mut factors, size);
        let gamma = size as f64 * 2f64.powi(-24) * 1.001;
        for row in 0..size {
            for column in 0..size {
                let (mut product, mut magnitude) = (0.0f64, 0.0f64);
                for k in 0..=row.min(column) {
                    let lower = if k == row { 1.0 } else { f64::from(factors[row * size + k]) };
                    let term = lower * f64::from(factors[k * size + column]);
                    product += term;
                    magnitude += term.abs();
                }
                let error = (product - f64::from(matrix[row * size + column])).abs();
                assert!(error <= gamma * magnitude, "({row}, {column}): {error}");
            }
        }
    }
}
