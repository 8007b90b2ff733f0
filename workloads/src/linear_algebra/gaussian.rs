//! `gaussian`: elimination in a system of equations.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{multiply_add, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const TILE: u32 = 16;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "gaussian",
    summary: "Gaussian elimination, two launches a column: many small kernels, a host that only launches",
    parameters: &[
        integer("size", 96, 2, 4096, "equations and unknowns"),
        integer("block", 128, 32, 1024, "threads of a block that computes factors"),
        SEED,
    ],
    code: code!("gaussian"),
    cubins: cubins!("gaussian"),
    small: "size=20,block=32",
    build,
};

/// A system of equations; factors are left of the diagonal in a matrix of their own.
struct System {
    matrix: Vec<f32>,
    right_side: Vec<f32>,
    factors: Vec<f32>,
}

with_fused_multiply_add! {
    fn eliminate(system: &mut System) {
        let size = system.right_side.len();
        for pivot in 0..size - 1 {
            let (upper, lower) = system.matrix.split_at_mut((pivot + 1) * size);
            let pivot_row = &upper[pivot * size..];
            for (index, row) in lower.chunks_exact_mut(size).enumerate() {
                let number = pivot + 1 + index;
                let factor = row[pivot] / pivot_row[pivot];
                system.factors[number * size + pivot] = factor;
                multiply_add(&mut row[pivot..], -factor, &pivot_row[pivot..]);
                let right_side = system.right_side[pivot];
                system.right_side[number] = (-factor).mul_add(right_side, system.right_side[number]);
            }
        }
    }
}

impl System {
    /// Diagonally dominant by rows, so that elimination needs no pivoting.
    fn random(size: usize, seed: u64) -> Self {
        let mut matrix = uniform_floats(seed, 0, size * size);
        for index in 0..size {
            matrix[index * size + index] += size as f32;
        }
        System { matrix, right_side: uniform_floats(seed, 1, size), factors: vec![0.0; size * size] }
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (size, block) = (parameters.small("size"), parameters.small("block"));
    let mut system = System::random(size as usize, parameters.integer("seed"));

    let mut script = Script::default();
    let buffers = [&system.matrix, &system.right_side, &system.factors].map(|values| script.allocate_with(values));
    let [matrix, right_side, factors] = buffers.map(Argument::Buffer);
    for pivot in 0..size - 1 {
        let below = size - 1 - pivot;
        let (edge, column) = (Argument::U32(size), Argument::U32(pivot));
        script.launch(
            "gaussian_factors",
            Shape::linear(below.div_ceil(block), block),
            &[matrix, factors, edge, column],
        );
        let blocks = [(below + 1).div_ceil(TILE), below.div_ceil(TILE)];
        let arguments = [matrix, right_side, factors, edge, column];
        script.launch("gaussian_eliminate", Shape::planar(blocks, [TILE; 2]), &arguments);
    }
    let transfers = [(buffers[0], size * size), (buffers[1], size), (buffers[2], size * size)]
        .map(|(buffer, count)| script.download(buffer, u64::from(count) * 4, Queue::Default));
    for buffer in buffers {
        script.release(buffer);
    }
    eliminate(&mut system);
    let mut comparisons = Comparisons::default();
    comparisons.add(transfers[0], "matrix element", system.matrix);
    comparisons.add(transfers[1], "right side", system.right_side);
    comparisons.add(transfers[2], "factor", system.factors);
    script.finish(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The system after elimination has the same solution as before.
    #[test]
    fn back_substitution_solves_the_system() {
        let size = 40;
        let original = System::random(size, 2);
        let mut system = System::random(size, 2);
        eliminate(&mut system);
        let mut solution = vec![0.0f64; size];
        for row in (0..size).rev() {
            let known: f64 =
                (row + 1..size).map(|column| f64::from(system.matrix[row * size + column]) * solution[column]).sum();
            solution[row] = (f64::from(system.right_side[row]) - known) / f64::from(system.matrix[row * size + row]);
        }
        for row in 0..size {
            let left: f64 =
                (0..size).map(|column| f64::from(original.matrix[row * size + column]) * solution[column]).sum();
            assert!((left - f64::from(original.right_side[row])).abs() < 1e-5, "row {row}");
        }
    }
}
