//! `gemm`: matrix product from tiles in shared memory and registers.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, multiply_add, sample, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Rows and columns of the tile of C that a block computes.
const TILE: u32 = 64;
/// Up to this many rows, all are checked; beyond, [`SAMPLED_ROWS`] random ones.
const ALL_ROWS: usize = 256;
const SAMPLED_ROWS: usize = 64;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "gemm",
    summary: "product of two matrices of floats, tiled in shared memory and registers; compute bound",
    parameters: &[
        integer("size", 512, 1, 16_384, "rows and columns of all matrices, where m, n and k do not say otherwise"),
        integer("m", 0, 0, 16_384, "rows of A and C; 0: size"),
        integer("n", 0, 0, 16_384, "columns of B and C; 0: size"),
        integer("k", 0, 0, 16_384, "columns of A and rows of B; 0: size"),
        SEED,
    ],
    code: code!("gemm"),
    cubins: cubins!("gemm"),
    small: "m=70,n=50,k=40",
    build,
};

struct Product {
    a: Vec<f32>,
    b: Vec<f32>,
    m: usize,
    n: usize,
    k: usize,
    seed: u64,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let size = parameters.small("size");
    let [m, n, k] = ["m", "n", "k"].map(|name| match parameters.small(name) {
        0 => size,
        given => given,
    });
    let seed = parameters.integer("seed");
    let a = uniform_floats(seed, 0, m as usize * k as usize);
    let b = uniform_floats(seed, 1, k as usize * n as usize);
    let result_bytes = u64::from(m) * u64::from(n) * 4;

    let mut script = Script::default();
    let device_a = script.allocate_with(&a);
    let device_b = script.allocate_with(&b);
    let device_c = script.allocate(result_bytes);
    let arguments = [
        Argument::Buffer(device_a),
        Argument::Buffer(device_b),
        Argument::Buffer(device_c),
        Argument::U32(m),
        Argument::U32(n),
        Argument::U32(k),
    ];
    script.launch("gemm", Shape::planar([n.div_ceil(TILE), m.div_ceil(TILE)], [16, 16]), &arguments);
    let result = script.download(device_c, result_bytes, Queue::Default);
    for buffer in [device_a, device_b, device_c] {
        script.release(buffer);
    }
    script.finish(Product { a, b, m: m as usize, n: n as usize, k: k as usize, seed, result })
}

with_fused_multiply_add! {
    /// A row of the product, each element one chain of fused multiply-adds over ascending k, as in the kernel.
        fn expected_row(product: &Product, row: usize) -> Vec<f32> {
        let mut sum = vec![0.0f32; product.n];
        for (factor, line) in product.a[row * product.k..][..product.k].iter().zip(product.b.chunks_exact(product.n)) {
            multiply_add(&mut sum, *factor, line);
        }
        sum
    }
}

impl Check for Product {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let actual = outcome.values::<f32>(self.result, self.m * self.n)?;
        let rows = if self.m <= ALL_ROWS { (0..self.m).collect() } else { sample(self.seed, 2, self.m, SAMPLED_ROWS) };
        for row in rows {
            let expected = expected_row(self, row);
            let place = |column| format!("element ({row}, {column})");
            compare_exactly(expected.into_iter(), &actual[row * self.n..][..self.n], place)?;
        }
        Ok(())
    }
}
