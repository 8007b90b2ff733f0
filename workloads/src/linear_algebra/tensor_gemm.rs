//! `tensor_gemm`: a matrix product on tensor cores.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, integers};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Rows and columns of the tile of C that a block computes.
const TILE: u32 = 64;
/// Values are whole numbers from -8 to 7: all sums are exact in single precision, in whatever order they are taken.
const LARGEST: i32 = 8;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "tensor_gemm",
    summary: "product of two matrices of halves on tensor cores, summed in single precision",
    parameters: &[
        integer("m_tiles", 2, 1, 256, "rows of A and C, in tiles of 64"),
        integer("n_tiles", 2, 1, 256, "columns of B and C, in tiles of 64"),
        integer("k_steps", 4, 1, 1024, "columns of A and rows of B, in steps of 16"),
        SEED,
    ],
    code: code!("tensor_gemm": nvrtc 70, nvcc 75, clang 70),
    cubins: cubins!("tensor_gemm"),
    small: "m_tiles=1,n_tiles=2,k_steps=3",
    build,
};

struct Product {
    a: Vec<i32>,
    b: Vec<i32>,
    n: usize,
    k: usize,
    result: Transfer,
}

/// The bits of a whole number of small magnitude in half precision.
fn half(value: i32) -> u16 {
    let sign = if value < 0 { 0x8000 } else { 0 };
    let magnitude = value.unsigned_abs();
    if magnitude == 0 {
        return sign;
    }
    let exponent = 31 - magnitude.leading_zeros();
    sign | ((15 + exponent) << 10) as u16 | ((magnitude << (10 - exponent)) & 0x3ff) as u16
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let m = parameters.small("m_tiles") * TILE;
    let n = parameters.small("n_tiles") * TILE;
    let k = parameters.small("k_steps") * 16;
    let seed = parameters.integer("seed");
    let small = |bits: u32| (bits % (2 * LARGEST as u32)) as i32 - LARGEST;
    let matrix =
        |stream, count: u32| -> Vec<i32> { integers(seed, stream, count as usize).into_iter().map(small).collect() };
    let (a, b) = (matrix(0, m * k), matrix(1, k * n));
    let halves = |values: &[i32]| -> Vec<u16> { values.iter().map(|value| half(*value)).collect() };

    let mut script = Script::default();
    let device_a = script.allocate_with(&halves(&a));
    let device_b = script.allocate_with(&halves(&b));
    let bytes = u64::from(m) * u64::from(n) * 4;
    let device_c = script.allocate(bytes);
    let sizes = [m, n, k].map(Argument::U32);
    let matrices = [device_a, device_b, device_c].map(Argument::Buffer);
    script.launch("tensorGemm", Shape::planar([n / TILE, m / TILE], [128, 1]), &[matrices, sizes].concat());
    let result = script.download(device_c, bytes, Queue::Default);
    for buffer in [device_a, device_b, device_c] {
        script.release(buffer);
    }
    script.finish(Product { a, b, n: n as usize, k: k as usize, result })
}

impl Check for Product {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let mut expected = Vec::with_capacity(self.a.len() / self.k * self.n);
        for row in self.a.chunks_exact(self.k) {
            let mut sums = vec![0i32; self.n];
            for (factor, line) in row.iter().zip(self.b.chunks_exact(self.n)) {
                for (sum, value) in sums.iter_mut().zip(line) {
                    *sum += factor * value;
                }
            }
            expected.extend(sums.into_iter().map(|sum| sum as f32));
        }
        let actual = outcome.values::<f32>(self.result, expected.len())?;
        let place = |index: usize| format!("element ({}, {})", index / self.n, index % self.n);
        compare_exactly(expected.into_iter(), &actual, place)
    }
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn halves_of_whole_numbers() {
        for (value, bits) in [(0, 0), (1, 0x3c00), (-1, 0xbc00), (2, 0x4000), (3, 0x4200), (-8, 0xc800), (7, 0x4700)] {
            assert_eq!(half(value), bits, "{value}");
        }
    }
}
