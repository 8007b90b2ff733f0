//! Boxes of tensors in shared memory, element by element: what `cp.async.bulk.tensor` leaves there beside the definition of its modes.

use super::machine_code::{COORDINATES, MAP, RECORD, Random, TENSOR, THREADS, bulk_setting};
use crate::machine;
use balar_isa::interpreter::step_function;
use balar_isa::module::PtxModule;
use balar_protocol::tensor_map::{ElementType, MOST_DIMENSIONS, TENSOR_MAP_BYTES, TENSOR_MAP_READ, TensorMap};

const SOURCE: &str = include_str!("../../machine/bulk_copies.ptx");

/// Where an element lies in a box with a pattern: the chunks of 16 bytes of each 128 bytes are exchanged, by the number of these 128 bytes.
fn placed(swizzle: u8, offset: usize) -> usize {
    let (line, chunk, within) = (offset / 128, offset / 16 % 8, offset % 16);
    let exchanged = match swizzle {
        0 => chunk,
        1 => chunk ^ (line % 2),
        2 => chunk ^ (line % 4),
        _ => chunk ^ (line % 8),
    };
    line * 128 + exchanged * 16 + within
}

/// The element at a place of the tensor, or what stands for it outside.
fn element_at(map: &TensorMap, memory: &[u8], place: [i64; MOST_DIMENSIONS]) -> Vec<u8> {
    let width = map.element.bytes() as usize;
    if place.iter().zip(map.sizes).any(|(at, size)| *at < 0 || *at >= size as i64) {
        let fill: u64 = match (map.fills_with_nan, map.element) {
            (false, _) => 0,
            (true, ElementType::F16 | ElementType::Bf16) => 0x7fff,
            (true, ElementType::F64) => 0x7fff_ffff_ffff_ffff,
            (true, _) => 0x7fff_ffff,
        };
        return fill.to_le_bytes()[..width].to_vec();
    }
    let strides = map.strides.iter().zip(&place[1..]).map(|(stride, at)| *stride as usize * *at as usize);
    let address = map.address as usize + place[0] as usize * width + strides.sum::<usize>();
    memory[address..address + width].to_vec()
}

/// The places of a box's elements, row by row.
fn elements(map: &TensorMap, coordinates: [i64; MOST_DIMENSIONS]) -> Vec<[i64; MOST_DIMENSIONS]> {
    let mut places = vec![coordinates];
    // The outermost dimension varies slowest.
    for dimension in (0..usize::from(map.dimensions)).rev() {
        let step = if dimension == 0 { 1 } else { usize::from(map.element_strides[dimension]) };
        let steps: Vec<i64> = (0..map.box_sizes[dimension] as usize).step_by(step).map(|at| at as i64).collect();
        places = places
            .into_iter()
            .flat_map(|place| {
                steps.iter().map(move |step| {
                    let mut place = place;
                    place[dimension] += step;
                    place
                })
            })
            .collect();
    }
    places
}

/// The places of the elements of a convolution's columns.
fn columns(map: &TensorMap, coordinates: [i64; MOST_DIMENSIONS], offsets: &[i64]) -> Vec<[i64; MOST_DIMENSIONS]> {
    let Some(convolution) = map.convolution else { return Vec::new() };
    let image = usize::from(map.dimensions) - 1;
    let mut pixel = coordinates;
    let mut places = Vec::new();
    for _ in 0..convolution.pixels {
        for channel in 0..i64::from(convolution.channels) {
            let mut place = pixel;
            place[0] += channel;
            for (at, offset) in place[1..image].iter_mut().zip(offsets) {
                *at += offset;
            }
            places.push(place);
        }
        // The next pixel inside the corners: in the row, in the next rows, in the next image.
        let mut carries = true;
        for (dimension, at) in pixel.iter_mut().enumerate().take(image).skip(1) {
            if carries {
                *at += i64::from(map.element_strides[dimension]);
                let last = map.sizes[dimension] as i64 - 1 + i64::from(convolution.upper_corner[dimension - 1]);
                carries = *at > last;
                if carries {
                    *at = i64::from(convolution.lower_corner[dimension - 1]);
                }
            }
        }
        pixel[image] += i64::from(carries);
    }
    places
}

/// Runs a kernel of the source on this memory; gives the 4 KiB of shared memory at its end.
fn run(kernel: &str, memory: &[u8]) -> Vec<u8> {
    let module = PtxModule::parse("bulk.ptx", SOURCE).unwrap_or_else(|errors| panic!("{errors}"));
    let program = module.program(kernel, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let after = machine::run_with(step_function(), &program, &[0; 8], THREADS as u32, memory);
    after[..TENSOR].chunks(RECORD).flat_map(|record| record[128..].to_vec()).collect()
}

fn map_of(memory: &[u8]) -> TensorMap {
    let bytes: &[u8; TENSOR_MAP_READ] = memory[MAP..].first_chunk().unwrap_or_else(|| panic!("no map"));
    TensorMap::decode(bytes).unwrap_or_else(|| panic!("no map"))
}

fn coordinates_of(memory: &[u8]) -> [i64; MOST_DIMENSIONS] {
    std::array::from_fn(|dimension| {
        let word: [u8; 4] = std::array::from_fn(|byte| memory[COORDINATES + 4 * dimension + byte]);
        i64::from(i32::from_le_bytes(word))
    })
}

/// Compares the box that a kernel leaves with these elements.
fn check(kernel: &str, memory: &[u8], places: &[[i64; MOST_DIMENSIONS]]) {
    let map = map_of(memory);
    let (shared, width) = (run(kernel, memory), map.element.bytes() as usize);
    let row = map.convolution.map_or(map.box_sizes[0] as usize, |columns| usize::from(columns.channels));
    // A row takes the whole width of a pattern.
    let pitch = (row * width).max([0, 32, 64, 128][usize::from(map.swizzle)]);
    for (number, place) in places.iter().enumerate() {
        let at = placed(map.swizzle, number / row * pitch + number % row * width);
        let expected = element_at(&map, memory, *place);
        assert_eq!(shared[at..at + width], expected, "{kernel}: element {number}, at {place:?}, of {map:?}");
    }
}

#[test]
fn tiles() {
    for dimensions in 1..=5 {
        let kernel = format!("tile_{dimensions}d");
        for round in 0..40 {
            let memory = bulk_setting(&kernel, round).memory;
            check(&kernel, &memory, &elements(&map_of(&memory), coordinates_of(&memory)));
        }
    }
}

#[test]
fn columns_of_convolutions() {
    for dimensions in 3..=5 {
        let kernel = format!("columns_{dimensions}d");
        for round in 0..40 {
            let memory = bulk_setting(&kernel, round).memory;
            // What the kernels of the source add to the pixels.
            let places = columns(&map_of(&memory), coordinates_of(&memory), &[1, 2, 1]);
            check(&kernel, &memory, &places);
        }
    }
}

#[test]
fn singles_become_numbers_of_tf32_on_their_way() {
    let mut memory = bulk_setting("tile_1d", 0).memory;
    let map = TensorMap {
        element: ElementType::Tf32Flushed,
        sizes: [32, 1, 1, 1, 1],
        box_sizes: [32, 1, 1, 1, 1],
        swizzle: 0,
        ..map_of(&memory)
    };
    memory[MAP..MAP + TENSOR_MAP_BYTES].copy_from_slice(&map.encode());
    memory[COORDINATES..COORDINATES + 20].fill(0);
    memory[COORDINATES + 20..COORDINATES + 24].copy_from_slice(&128u32.to_le_bytes());
    let mut random = Random::new(1);
    let bits: Vec<u32> = (0..32)
        .map(|place| match place {
            0 => 0x3f80_1000,
            1 => 0x3f80_0fff,
            2 => 0x8000_0001,
            3 => 0x7f80_0000,
            4 => 0x7fc0_1234,
            5 => 0x7f7f_ffff,
            _ => random.next() & 0xbfff_ffff | 0x0080_0000,
        })
        .collect();
    for (place, bits) in bits.iter().enumerate() {
        memory[TENSOR + 4 * place..][..4].copy_from_slice(&bits.to_le_bytes());
    }
    let shared = run("tile_1d", &memory);
    for (place, bits) in bits.iter().enumerate() {
        let found = u32::from_le_bytes(std::array::from_fn(|byte| shared[4 * place + byte]));
        let value = f64::from(f32::from_bits(*bits));
        // The nearest multiple of the last place, halves away from zero.
        let unit = 2f64.powi((bits >> 23 & 0xff) as i32 - 127 - 10);
        let expected = match bits >> 23 & 0xff {
            0 => bits & 0x8000_0000,
            0xff => *bits,
            _ => (((value / unit).round() * unit) as f32).to_bits(),
        };
        assert_eq!(found, expected, "{bits:#x}");
    }
}
