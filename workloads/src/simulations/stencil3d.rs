//! `stencil3d`: a seven-point stencil over a cube.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, uniform_floats};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Threads of a block in x and y; it walks along z.
const TILE: [u32; 2] = [32, 8];
const CENTRE_WEIGHT: f32 = 0.4;
const NEIGHBOUR_WEIGHT: f32 = 0.1;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "stencil3d",
    summary: "seven-point stencil over a cube of floats, planes in shared memory; bound by memory",
    parameters: &[
        integer("size", 48, 1, 1024, "cells along each edge"),
        integer("iterations", 2, 1, 10_000, "sweeps"),
        SEED,
    ],
    code: code!("stencil3d"),
    cubins: cubins!("stencil3d"),
    small: "size=20,iterations=2",
    build,
};

struct Cube {
    cells: Vec<f32>,
    size: usize,
    iterations: u32,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let size = parameters.small("size");
    let iterations = parameters.small("iterations");
    let cells = uniform_floats(parameters.integer("seed"), 0, (size as usize).pow(3));
    let bytes = cells.len() as u64 * 4;

    let mut script = Script::default();
    let mut source = script.allocate_with(&cells);
    let mut target = script.allocate(bytes);
    let shape = Shape::planar([size.div_ceil(TILE[0]), size.div_ceil(TILE[1])], TILE);
    for _ in 0..iterations {
        let weights = [Argument::F32(CENTRE_WEIGHT), Argument::F32(NEIGHBOUR_WEIGHT)];
        let arguments =
            [Argument::Buffer(source), Argument::Buffer(target), Argument::U32(size), weights[0], weights[1]];
        script.launch("stencil3d", shape, &arguments);
        (source, target) = (target, source);
    }
    let result = script.download(source, bytes, Queue::Default);
    script.release(source);
    script.release(target);
    script.finish(Cube { cells, size: size as usize, iterations, result })
}

impl Cube {
    fn sweep(&self, cells: &[f32]) -> Vec<f32> {
        let size = self.size;
        let mut next = cells.to_vec();
        let last = size.saturating_sub(1);
        for z in 1..last {
            for y in 1..last {
                for x in 1..last {
                    let place = (z * size + y) * size + x;
                    let along_x = cells[place - 1] + cells[place + 1];
                    let along_y = cells[place - size] + cells[place + size];
                    let along_z = cells[place - size * size] + cells[place + size * size];
                    let sum = along_x + along_y + along_z;
                    next[place] = NEIGHBOUR_WEIGHT.mul_add(sum, CENTRE_WEIGHT * cells[place]);
                }
            }
        }
        next
    }
}

impl Check for Cube {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let expected = (0..self.iterations).fold(self.cells.clone(), |cells, _| self.sweep(&cells));
        let actual = outcome.values::<f32>(self.result, expected.len())?;
        let place = |index: usize| {
            format!("cell ({}, {}, {})", index % self.size, index / self.size % self.size, index / self.size.pow(2))
        };
        compare_exactly(expected.into_iter(), &actual, place)
    }
}
