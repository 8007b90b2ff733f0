//! `convolution`: an image convolved with 3x3 weights.

use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{compare_exactly, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};

/// Threads of a block in x and y.
const BLOCK: [u32; 2] = [32, 8];
/// The kernel's.
const WEIGHTS: [[f32; 3]; 3] = [[0.25, -0.375, 0.5], [0.625, -0.75, 0.875], [-0.125, 0.3125, -0.4375]];

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "convolution",
    summary: "an image convolved with 3x3 weights, one thread a pixel: one pass over memory with neighbours",
    parameters: &[integer("size", 1024, 1, 16_384, "rows and columns of the image"), SEED],
    code: code!("convolution"),
    cubins: cubins!("convolution"),
    small: "size=45",
    build,
};

struct Image {
    pixels: Vec<f32>,
    size: usize,
    result: Transfer,
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let size = parameters.small("size");
    let pixels = uniform_floats(parameters.integer("seed"), 0, size as usize * size as usize);
    let bytes = pixels.len() as u64 * 4;

    let mut script = Script::default();
    let image = script.allocate_with(&pixels);
    let convolved = script.allocate(bytes);
    let arguments = [Argument::Buffer(image), Argument::Buffer(convolved), Argument::U32(size), Argument::U32(size)];
    script.launch("convolution", Shape::planar(BLOCK.map(|threads| size.div_ceil(threads)), BLOCK), &arguments);
    let result = script.download(convolved, bytes, Queue::Default);
    for buffer in [image, convolved] {
        script.release(buffer);
    }
    script.finish(Image { pixels, size: size as usize, result })
}

with_fused_multiply_add! {
    /// The convolved image. Pixels beyond the edges take no part.
    fn convolve(pixels: &[f32], size: usize) -> Vec<f32> {
        let mut result = vec![0.0f32; pixels.len()];
        for (row, result) in result.chunks_exact_mut(size).enumerate() {
            for (down, weights) in WEIGHTS.iter().enumerate() {
                let Some(from_row) = (row + down).checked_sub(1).filter(|from_row| *from_row < size) else { continue };
                let from = &pixels[from_row * size..][..size];
                for (column, sum) in result.iter_mut().enumerate() {
                    for (across, weight) in weights.iter().enumerate() {
                        if let Some(pixel) = (column + across).checked_sub(1).and_then(|column| from.get(column)) {
                            *sum = weight.mul_add(*pixel, *sum);
                        }
                    }
                }
            }
        }
        result
    }
}

impl Check for Image {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let size = self.size;
        let actual = outcome.values::<f32>(self.result, size * size)?;
        let expected = convolve(&self.pixels, size);
        compare_exactly(expected.into_iter(), &actual, |index| format!("pixel ({}, {})", index / size, index % size))
    }
}
