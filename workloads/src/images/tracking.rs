//! `tracking`: points of an image followed from frame to frame.

use std::sync::Arc;

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

// The same as in the kernel.
const TEMPLATE_RADIUS: usize = 5;
const TEMPLATE: usize = 2 * TEMPLATE_RADIUS + 1;
const SEARCH_RADIUS: usize = 6;
const SEARCH: usize = 2 * SEARCH_RADIUS + 1;
const MARGIN: usize = TEMPLATE_RADIUS + SEARCH_RADIUS;
const BLOCK: u32 = 128;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "tracking",
    summary: "points followed through the frames of a film: normalised cross-correlation, a block a point",
    parameters: &[
        integer("size", 128, 32, 4096, "rows and columns of a frame"),
        integer("points", 20, 1, 65_535, "points to follow"),
        integer("frames", 2, 1, 100, "frames after the first"),
        SEED,
    ],
    code: code!("tracking"),
    cubins: cubins!("tracking"),
    small: "size=64,points=3,frames=2",
    build,
};

/// A frame of a film.
struct Frame {
    size: usize,
    pixels: Arc<[u8]>,
}

impl Frame {
    /// Frame `number` of a film in which a blurred random texture moves two columns and one row a frame, under noise.
    fn of_film(size: usize, number: usize, seed: u64) -> Self {
        const CELL: usize = 4;
        let cells = size / CELL + 2;
        let texture = integers(seed, 0, cells * cells);
        let noise = integers(seed, 2 + number as u64, size * size);
        let pixel = |index: usize| {
            let (x, y) = (index % size + 2 * number, index / size + number);
            // Between four texture cells, in 16ths; the texture repeats itself.
            let cell = |dx: usize, dy: usize| {
                let value = texture[(y / CELL + dy) % cells * cells + (x / CELL + dx) % cells] >> 24;
                let weight = |offset: usize, step: usize| if step == 0 { CELL - offset } else { offset };
                value as usize * weight(x % CELL, dx) * weight(y % CELL, dy)
            };
            let blurred = (cell(0, 0) + cell(1, 0) + cell(0, 1) + cell(1, 1)) / (CELL * CELL);
            (blurred.min(247) + noise[index] as usize % 8) as u8
        };
        Frame { size, pixels: (0..size * size).map(pixel).collect() }
    }

    /// The square of `side` pixels whose first corner is (`x`, `y`).
    fn square(&self, x: usize, y: usize, side: usize) -> impl Iterator<Item = u8> + '_ {
        (0..side).flat_map(move |row| self.pixels[(y + row) * self.size + x..][..side].iter().copied())
    }
}

/// The correlation of two squares of pixels, with the kernel's roundings.
fn correlation(pixels: impl Iterator<Item = u8>, template: &[u8]) -> f32 {
    let (mut sum, mut squares, mut template_sum, mut template_squares, mut products) = (0, 0, 0, 0, 0);
    for (pixel, wanted) in pixels.zip(template) {
        let (pixel, wanted) = (i32::from(pixel), i32::from(*wanted));
        sum += pixel;
        squares += pixel * pixel;
        template_sum += wanted;
        template_squares += wanted * wanted;
        products += pixel * wanted;
    }
    let count = template.len() as i32;
    let covariance = count * products - sum * template_sum;
    let variance = count * squares - sum * sum;
    let template_variance = count * template_squares - template_sum * template_sum;
    let norm = (variance as f32).sqrt() * (template_variance as f32).sqrt();
    if norm > 0.0 { covariance as f32 / norm } else { 0.0 }
}

/// The place where the template fits best around a place, and how well. The first of equal places counts.
fn find(frame: &Frame, template: &[u8], [x, y]: [i32; 2]) -> ([i32; 2], f32) {
    let (mut best, mut score) = (0, -2.0f32);
    for offset in 0..SEARCH * SEARCH {
        let (left, top) = (x as usize - MARGIN + offset % SEARCH, y as usize - MARGIN + offset / SEARCH);
        let found = correlation(frame.square(left, top, TEMPLATE), template);
        if found > score {
            (best, score) = (offset, found);
        }
    }
    let keep = |place: i32| place.clamp(MARGIN as i32, (frame.size - 1 - MARGIN) as i32);
    let radius = SEARCH_RADIUS as i32;
    ([keep(x - radius + (best % SEARCH) as i32), keep(y - radius + (best / SEARCH) as i32)], score)
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [size, points, frames] = ["size", "points", "frames"].map(|name| parameters.small(name));
    let seed = parameters.integer("seed");
    let first = Frame::of_film(size as usize, 0, seed);
    let inside = size - 2 * MARGIN as u32;
    let mut positions: Vec<i32> =
        integers(seed, 1, 2 * points as usize).into_iter().map(|bits| (MARGIN as u32 + bits % inside) as i32).collect();
    let templates: Vec<u8> = positions
        .chunks_exact(2)
        .flat_map(|place| {
            first.square(place[0] as usize - TEMPLATE_RADIUS, place[1] as usize - TEMPLATE_RADIUS, TEMPLATE)
        })
        .collect();

    let mut script = Script::default();
    let device_templates = script.allocate_with(&templates);
    let device_positions = script.allocate_with(&positions);
    let device_frame = script.allocate(u64::from(size) * u64::from(size));
    let device_scores = script.allocate(u64::from(points) * 4);
    let arguments = [
        Argument::Buffer(device_templates),
        Argument::Buffer(device_frame),
        Argument::Buffer(device_positions),
        Argument::Buffer(device_scores),
        Argument::U32(size),
        Argument::U32(size),
    ];
    let mut comparisons = Comparisons::default();
    for number in 1..=frames {
        let frame = Frame::of_film(size as usize, number as usize, seed);
        script.upload(device_frame, Arc::clone(&frame.pixels), Queue::Default);
        script.launch("tracking_step", Shape::linear(points, BLOCK), &arguments);
        let mut scores = Vec::with_capacity(points as usize);
        for (place, template) in positions.chunks_exact_mut(2).zip(templates.chunks_exact(TEMPLATE * TEMPLATE)) {
            let (found, score) = find(&frame, template, [place[0], place[1]]);
            place.copy_from_slice(&found);
            scores.push(score);
        }
        let found = script.download(device_positions, u64::from(points) * 8, Queue::Default);
        comparisons.add(found, &format!("frame {number}: coordinate"), positions.clone());
        let found = script.download(device_scores, u64::from(points) * 4, Queue::Default);
        comparisons.add(found, &format!("frame {number}: the score of point"), scores);
    }
    for buffer in [device_templates, device_positions, device_frame, device_scores] {
        script.release(buffer);
    }
    script.finish(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point is found where the film has moved it.
    #[test]
    fn the_film_moves_two_columns_and_a_row() {
        let (before, after) = (Frame::of_film(64, 0, 9), Frame::of_film(64, 1, 9));
        let template: Vec<u8> = before.square(30 - TEMPLATE_RADIUS, 40 - TEMPLATE_RADIUS, TEMPLATE).collect();
        let (place, score) = find(&after, &template, [30, 40]);
        assert_eq!(place, [28, 39]);
        assert!(score > 0.9, "{score}");
        let itself = correlation(template.iter().copied(), &template);
        assert!((itself - 1.0).abs() < 1e-6, "{itself}");
    }
}
