//! `fdtd`: an electromagnetic wave in two dimensions.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Threads of a block in x and y.
const BLOCK: [u32; 2] = [32, 8];
/// A time step, in units of the time that light takes through a cell; waves grow without bound from 0.707 on.
const COURANT: f32 = 0.5;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "fdtd",
    summary: "an electromagnetic wave by finite differences in two dimensions: three launches a time step",
    parameters: &[
        integer("size", 1200, 1, 16_384, "rows and columns of cells"),
        integer("steps", 5, 1, 10_000, "time steps"),
        SEED,
    ],
    code: code!("fdtd"),
    cubins: cubins!("fdtd"),
    small: "size=45,steps=2",
    build,
};

/// The fields, row after row: `hx` has a row more than there are cells, `hy` a column more.
#[derive(Clone)]
struct Fields {
    hx: Vec<f32>,
    hy: Vec<f32>,
    ez: Vec<f32>,
    size: usize,
}

struct Wave {
    initial: Fields,
    source: Vec<f32>,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let (size, steps) = (parameters.small("size"), parameters.small("steps"));
    let seed = parameters.integer("seed");
    let edge = size as usize;
    let field = |stream, count| uniform_floats(seed, stream, count);
    let initial = Fields {
        hx: field(0, (edge + 1) * edge),
        hy: field(1, (edge + 1) * edge),
        ez: field(2, edge * edge),
        size: edge,
    };
    let source = field(3, steps as usize);

    let mut script = Script::default();
    let [source_in, hx, hy, ez] =
        [&source, &initial.hx, &initial.hy, &initial.ez].map(|values| script.allocate_with(values));
    let shape = Shape::planar(BLOCK.map(|threads| size.div_ceil(threads)), BLOCK);
    let (cells, courant) = (Argument::U32(size), Argument::F32(COURANT));
    for step in 0..steps {
        let [source, hx, hy, ez] = [source_in, hx, hy, ez].map(Argument::Buffer);
        script.launch("fdtd_hx", shape, &[source, ez, hx, cells, Argument::U32(step), courant]);
        script.launch("fdtd_hy", shape, &[ez, hy, cells, courant]);
        script.launch("fdtd_ez", shape, &[hx, hy, ez, cells, courant]);
    }
    let result = script.download(ez, initial.ez.len() as u64 * 4, Queue::Default);
    for buffer in [source_in, hx, hy, ez] {
        script.release(buffer);
    }
    script.finish(Wave { initial, source, result })
}

with_fused_multiply_add! {
    /// A time step; `source` is the value that the first row of `hx` takes.
    fn advance(fields: &mut Fields, source: f32) {
        let size = fields.size;
        fields.hx[..size].fill(source);
        for place in size..size * size {
            fields.hx[place] = COURANT.mul_add(fields.ez[place - size] - fields.ez[place], fields.hx[place]);
        }
        for (hy, ez) in fields.hy.chunks_exact_mut(size + 1).zip(fields.ez.chunks_exact(size)) {
            for (hy, ez) in hy[1..size].iter_mut().zip(ez.windows(2)) {
                *hy = COURANT.mul_add(ez[1] - ez[0], *hy);
            }
        }
        for (row, ez) in fields.ez.chunks_exact_mut(size).enumerate() {
            let hx = &fields.hx[row * size..][..2 * size];
            let hy = &fields.hy[row * (size + 1)..][..size + 1];
            for (column, ez) in ez.iter_mut().enumerate() {
                let across = hy[column + 1] - hy[column];
                let down = hx[column] - hx[column + size];
                *ez = COURANT.mul_add(across + down, *ez);
            }
        }
    }
}

impl Check for Wave {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let mut fields = self.initial.clone();
        self.source.iter().for_each(|source| advance(&mut fields, *source));
        let size = fields.size;
        let actual = outcome.values::<f32>(self.result, size * size)?;
        compare_exactly(fields.ez.into_iter(), &actual, |index| format!("ez ({}, {})", index / size, index % size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The magnetic field between two unlike cells, and the effect of light on them; a wave does not grow.
    #[test]
    fn a_wave_spreads_and_keeps_its_energy() {
        let size = 40;
        let zeros = vec![0.0; size * (size + 1)];
        let mut fields = Fields { hx: zeros.clone(), hy: zeros, ez: vec![0.0; size * size], size };
        let centre = 20 * size + 20;
        fields.ez[centre] = 1.0;
        advance(&mut fields, 0.0);
        // A half of the difference goes into each of the four edges, a half of these sums out of the cell.
        assert_eq!(fields.ez[centre], 0.0);
        for neighbour in [centre - 1, centre + 1, centre - size, centre + size] {
            assert_eq!(fields.ez[neighbour], 0.25);
        }
        for _ in 0..200 {
            advance(&mut fields, 0.0);
        }
        let energy: f32 = [&fields.hx, &fields.hy, &fields.ez].into_iter().flatten().map(|value| value * value).sum();
        assert!((0.5..2.0).contains(&energy), "{energy}");
    }
}
