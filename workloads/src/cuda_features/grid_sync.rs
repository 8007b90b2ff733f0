//! `grid_sync`: iterations inside one cooperative launch.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, uniform_floats};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "grid_sync",
    summary: "Jacobi iterations in one cooperative launch, a synchronisation of the grid after each",
    parameters: &[
        integer("cells", 10_000, 1, 1 << 26, "cells"),
        integer("iterations", 4, 1, 10_000, "iterations"),
        integer("blocks", 40, 1, 65_535, "blocks of the grid; all must be resident at once"),
        integer("block", 128, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("grid_sync"),
    cubins: cubins!("grid_sync"),
    small: "cells=3000,iterations=3,blocks=10",
    build,
};

struct Rod {
    cells: Vec<f32>,
    iterations: u32,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [count, iterations, blocks, block] =
        ["cells", "iterations", "blocks", "block"].map(|name| parameters.small(name));
    let cells = uniform_floats(parameters.integer("seed"), 0, count as usize);
    let bytes = u64::from(count) * 4;
    let mut script = Script::default();
    let first = script.allocate_with(&cells);
    let second = script.allocate(bytes);
    let sizes = [Argument::U32(count), Argument::U32(iterations)];
    let arguments = [Argument::Buffer(first), Argument::Buffer(second), sizes[0], sizes[1]];
    let shape = Shape { cooperative: true, ..Shape::linear(blocks, block) };
    script.launch("relax", shape, &arguments);
    let result = script.download(if iterations % 2 == 0 { first } else { second }, bytes, Queue::Default);
    script.release(first);
    script.release(second);
    script.finish(Rod { cells, iterations, result })
}

impl Check for Rod {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let mut cells = self.cells.clone();
        let last = cells.len() - 1;
        for _ in 0..self.iterations {
            let next = |cell: usize| {
                let sum = cells[cell.saturating_sub(1)] + cells[(cell + 1).min(last)];
                0.5f32.mul_add(cells[cell], 0.25 * sum)
            };
            cells = (0..=last).map(next).collect();
        }
        let actual = outcome.values::<f32>(self.result, cells.len())?;
        compare_exactly(cells.into_iter(), &actual, |cell| format!("cell {cell}"))
    }
}
