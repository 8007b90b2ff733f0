//! `srad`: diffusion that takes the speckle out of an image and leaves its edges.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Buffer, Queue, Script, ScriptedProgram, Shape, Transfer};

const BLOCK: usize = 256;
const TILE: u32 = 16;
/// A quarter of the time step, which is a half.
const RATE: f32 = 0.125;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "srad",
    summary: "speckle-reducing diffusion of an image: a reduction, or a sample that the host reads, and two stencils for each step",
    parameters: &[
        integer("size", 128, 1, 8192, "rows and columns of the image"),
        integer("steps", 2, 1, 1000, "diffusion steps"),
        integer(
            "sample",
            0,
            0,
            8192,
            "rows and columns of the corner from which the host gets the scale of the speckle; 0: the GPU sums all pixels",
        ),
        SEED,
    ],
    code: code!("srad"),
    cubins: cubins!("srad"),
    small: "size=40,steps=2",
    build,
};

/// One launch of the reduction: each block's sum, in the order of the kernel's tree.
fn reduce(values: &[f32]) -> Vec<f32> {
    let sums = values.chunks(BLOCK).map(|values| {
        let mut tree = [0.0f32; BLOCK];
        tree[..values.len()].copy_from_slice(values);
        let mut half = BLOCK / 2;
        while half > 0 {
            for x in 0..half {
                tree[x] += tree[x + half];
            }
            half /= 2;
        }
        tree[0]
    });
    sums.collect()
}

/// The sum of all, by as many launches as it takes.
fn total(mut values: Vec<f32>) -> f32 {
    while values.len() > 1 {
        values = reduce(&values);
    }
    values[0]
}

/// The square of the speckle's coefficient of variation, as the host computes it.
fn speckle_scale(sum: f32, squares: f32, pixels: usize) -> f32 {
    let mean = sum / pixels as f32;
    let variance = squares / pixels as f32 - mean * mean;
    variance / (mean * mean)
}

/// The results of the first stencil for a pixel.
#[derive(Clone, Copy, Default)]
struct Flow {
    north: f32,
    south: f32,
    west: f32,
    east: f32,
    coefficient: f32,
}

/// Indices of the neighbours in the north, south, west and east; the index of the pixel itself where there is none.
#[inline(always)]
fn neighbours(index: usize, size: usize) -> [usize; 4] {
    let (row, column) = (index / size, index % size);
    [
        if row > 0 { index - size } else { index },
        if row + 1 < size { index + size } else { index },
        if column > 0 { index - 1 } else { index },
        if column + 1 < size { index + 1 } else { index },
    ]
}

with_fused_multiply_add! {
    fn diffuse(image: &mut [f32], size: usize, scale: f32) {
        let mut flows = vec![Flow::default(); image.len()];
        for (index, flow) in flows.iter_mut().enumerate() {
            let pixel = image[index];
            let [north, south, west, east] = neighbours(index, size).map(|other| image[other] - pixel);
            let squares = north * north;
            let squares = east.mul_add(east, west.mul_add(west, south.mul_add(south, squares)));
            let gradient = squares / (pixel * pixel);
            let laplacian = ((north + south) + (west + east)) / pixel;
            let numerator = (-0.0625f32).mul_add(laplacian * laplacian, 0.5 * gradient);
            let denominator = 0.25f32.mul_add(laplacian, 1.0);
            let variation = numerator / (denominator * denominator);
            let excess = (variation - scale) / (scale * (1.0 + scale));
            let coefficient = (1.0 / (1.0 + excess)).clamp(0.0, 1.0);
            *flow = Flow { north, south, west, east, coefficient };
        }
        for (index, pixel) in image.iter_mut().enumerate() {
            let [_, south, _, east] = neighbours(index, size);
            let flow = flows[index];
            let divergence = flow.coefficient * flow.north;
            let divergence = flows[south].coefficient.mul_add(flow.south, divergence);
            let divergence = flow.coefficient.mul_add(flow.west, divergence);
            let divergence = flows[east].coefficient.mul_add(flow.east, divergence);
            *pixel = RATE.mul_add(divergence, *pixel);
        }
    }
}

/// Where the GPU sums the pixels.
struct Sums {
    /// Sums and squares: of the pixels, and two places for those of blocks.
    places: [[Buffer; 2]; 3],
}

impl Sums {
    fn new(script: &mut Script, pixels: usize) -> Sums {
        let bytes = pixels as u64 * 4;
        Sums { places: [(); 3].map(|()| [(); 2].map(|()| script.allocate_on_device(bytes))) }
    }

    /// Launches the kernels that sum an image; gives the copies of the sum and of the sum of squares.
    fn launch(&self, script: &mut Script, image: Buffer, pixels: usize) -> [Transfer; 2] {
        let linear = |count: usize| Shape::linear(count.div_ceil(BLOCK) as u32, BLOCK as u32);
        let [sums, squares] = self.places[0].map(Argument::Buffer);
        let count = Argument::U32(pixels as u32);
        script.launch("srad_prepare", linear(pixels), &[Argument::Buffer(image), sums, squares, count]);
        let (mut from, mut to) = (0, 1);
        let mut remaining = pixels;
        while remaining > 1 {
            let ([sums, squares], [block_sums, block_squares]) =
                (self.places[from].map(Argument::Buffer), self.places[to].map(Argument::Buffer));
            let arguments = [sums, squares, block_sums, block_squares, Argument::U32(remaining as u32)];
            script.launch("srad_reduce", linear(remaining), &arguments);
            remaining = remaining.div_ceil(BLOCK);
            (from, to) = (to, if to == 1 { 2 } else { 1 });
        }
        self.places[from].map(|place| script.download(place, 4, Queue::Default))
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let size = parameters.small("size");
    let pixels = size as usize * size as usize;
    let bytes = pixels as u64 * 4;
    // An image of brightness one with a square twice as bright in it, both speckled by a quarter.
    let speckle = uniform_floats(parameters.integer("seed"), 0, pixels);
    let bright = |place: u32| place > size / 4 && place <= size / 2;
    let mut image: Vec<f32> = (0..size * size)
        .zip(speckle)
        .map(|(index, speckle)| {
            let brightness = if bright(index / size) && bright(index % size) { 2.0 } else { 1.0 };
            brightness * (1.0 + 0.25 * speckle)
        })
        .collect();

    let mut script = Script::default();
    let device_image = script.allocate_with(&image);
    let flows = [(); 5].map(|()| script.allocate_on_device(bytes));
    let sample = parameters.small("sample").min(size);
    let sums = (sample == 0).then(|| Sums::new(&mut script, pixels));
    let mut comparisons = Comparisons::default();
    let planar = Shape::planar([size.div_ceil(TILE); 2], [TILE; 2]);
    for step in 0..parameters.small("steps") {
        let scale = match &sums {
            Some(sums) => {
                let totals = sums.launch(&mut script, device_image, pixels);
                let sum = total(image.clone());
                let squares = total(image.iter().map(|pixel| pixel * pixel).collect());
                for (transfer, what, value) in [(totals[0], "sum", sum), (totals[1], "sum of squares", squares)] {
                    comparisons.add(transfer, &format!("step {step}: the {what}"), vec![value]);
                }
                speckle_scale(sum, squares, pixels)
            }
            None => {
                let rows = &image[..(sample * size) as usize];
                let transfer = script.download(device_image, rows.len() as u64 * 4, Queue::Default);
                comparisons.add(transfer, &format!("step {step}: pixel"), rows.to_vec());
                let corner = rows.chunks(size as usize).flat_map(|row| &row[..sample as usize]);
                let (sum, squares) =
                    corner.fold((0.0, 0.0), |(sum, squares), pixel| (sum + pixel, squares + pixel * pixel));
                speckle_scale(sum, squares, (sample * sample) as usize)
            }
        };
        // An image of one pixel has no speckle to scale by.
        let scale = scale.max(f32::EPSILON);

        let [north, south, west, east, coefficients] = flows.map(Argument::Buffer);
        let (image_in, edge) = (Argument::Buffer(device_image), Argument::U32(size));
        let arguments = [image_in, north, south, west, east, coefficients, edge, edge, Argument::F32(scale)];
        script.launch("srad_coefficients", planar, &arguments);
        let arguments = [image_in, north, south, west, east, coefficients, edge, edge, Argument::F32(RATE)];
        script.launch("srad_update", planar, &arguments);
        diffuse(&mut image, size as usize, scale);
    }
    let result = script.download(device_image, bytes, Queue::Default);
    comparisons.add(result, "pixel", image);
    let places = sums.into_iter().flat_map(|sums| sums.places).flatten();
    for buffer in flows.into_iter().chain(places).chain([device_image]) {
        script.release(buffer);
    }
    script.finish(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree sums its input, and diffusion makes an image smoother and keeps its mean.
    #[test]
    fn diffusion_takes_the_speckle_out() {
        let ramp: Vec<f32> = (0..1000u16).map(f32::from).collect();
        assert_eq!(total(ramp), 499_500.0);
        let mut image: Vec<f32> = uniform_floats(3, 0, 64 * 64).iter().map(|speckle| 1.0 + 0.25 * speckle).collect();
        let scale = |image: &[f32]| {
            let squares = total(image.iter().map(|pixel| pixel * pixel).collect());
            (total(image.to_vec()) / 4096.0, speckle_scale(total(image.to_vec()), squares, 4096))
        };
        let (mean, before) = scale(&image);
        diffuse(&mut image, 64, before);
        let (mean_after, after) = scale(&image);
        assert!(after < 0.8 * before, "{before} to {after}");
        assert!((mean_after - mean).abs() < 0.01, "{mean} to {mean_after}");
    }
}
