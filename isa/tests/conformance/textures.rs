//! Textures and surfaces. The reference computes in whole numbers: a coordinate is a fraction of 2^30, a position in 256ths of a
//! texel, a blend a sum of whole numbers over 2^24.

use crate::machine;
use balar_isa::interpreter::{portable_step_function, step_function};
use balar_isa::texture::{AddressMode, ChannelKind, Image, Sampler, TexelFormat};

/// Where texels begin: behind 32 rows of 32 bytes, four values in and four out.
const TEXELS: usize = 1024;
/// The handle of the image under test, and of one that holds a sampler alone.
const IMAGE: u64 = 0x1_0000_0001;
const SAMPLER: u64 = 77;

fn image(extent: [u32; 3], layers: u32, format: TexelFormat, sampler: Sampler) -> Image {
    let row_pitch = u64::from(extent[0]) * u64::from(format.bytes());
    let slice_pitch = row_pitch * u64::from(extent[1]);
    Image { base: TEXELS as u64, extent, layers, row_pitch, slice_pitch, format, is_buffer: false, sampler }
}

const FLOAT: TexelFormat = TexelFormat { channels: 1, bits: 32, kind: ChannelKind::Float };

/// Runs an instruction on up to 32 rows of four words, `$0` to `$3`; it writes `$4` to `$7`, which come back. The image is `[%image]`.
fn run(instruction: &str, rows: &[[u32; 4]], image: Image, texels: &[u8]) -> (Vec<[u32; 4]>, Vec<u8>) {
    let mut text = instruction.to_owned();
    for number in 0..8 {
        text = text.replace(&format!("${number}"), &format!("%r{number}"));
    }
    let program = machine::load(&format!(
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 image) {{\n\
         .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .b64 %image; .reg .b64 %base; .reg .b64 %sampler; .reg .b16 %h<4>;\n\
         mov.u32 %r8, %tid.x; mul.wide.u32 %base, %r8, 32; ld.param.u64 %image, [image]; mov.u64 %sampler, {SAMPLER};\n\
         ld.global.v4.b32 {{%r0, %r1, %r2, %r3}}, [%base]; mov.u32 %r4, 99; mov.u32 %r5, 99; mov.u32 %r6, 99; mov.u32 %r7, 99;\n\
         {text};\nst.global.v4.b32 [%base+16], {{%r4, %r5, %r6, %r7}};\nret;\n}}\n"
    ));
    let mut memory = vec![0; TEXELS];
    for (lane, row) in rows.iter().enumerate() {
        for (place, value) in row.iter().enumerate() {
            memory[32 * lane + 4 * place..][..4].copy_from_slice(&value.to_le_bytes());
        }
    }
    memory.extend_from_slice(texels);
    let other = Image { sampler: Sampler { addressing: [AddressMode::Border; 3], ..Sampler::default() }, ..image };
    let images = [(IMAGE, image), (SAMPLER, other)];
    let run =
        |step| machine::run_with_images(step, &program, &IMAGE.to_le_bytes(), rows.len() as u32, &memory, &images);
    let after = run(step_function());
    assert!(after == run(portable_step_function()), "both step functions give the same values");
    let word = |at: usize| u32::from_le_bytes([after[at], after[at + 1], after[at + 2], after[at + 3]]);
    let results = (0..rows.len()).map(|lane| [0, 1, 2, 3].map(|place| word(32 * lane + 16 + 4 * place))).collect();
    (results, after[TEXELS..].to_vec())
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A coordinate, exactly, in units of 2^-30.
fn exact(coordinate: f32) -> i128 {
    let scaled = f64::from(coordinate) * f64::from(1u32 << 30);
    assert!(scaled.fract() == 0.0, "the reference takes multiples of 2^-30");
    scaled as i128
}

const FRACTION: u32 = 30;

/// The positions that a coordinate names: the texel of a point fetch, or the first texel and the second one's weight in 256ths.
/// `None` = outside.
fn reference_axis(
    mode: AddressMode,
    normalized: bool,
    linear: bool,
    size: i128,
    coordinate: f32,
) -> [(Option<i128>, i128); 2] {
    let one = 1i128 << FRACTION;
    let mut x = exact(coordinate);
    if normalized {
        if mode == AddressMode::Wrap {
            x = x.rem_euclid(one);
        }
        if mode == AddressMode::Mirror {
            x = x.rem_euclid(2 * one);
            if x >= one {
                x = 2 * one - x;
            }
        }
        x *= size;
    }
    let place = |at: i128| match mode {
        AddressMode::Wrap if normalized => Some(at.rem_euclid(size)),
        AddressMode::Border if at < 0 || at >= size => None,
        _ => Some(at.max(0).min(size - 1)),
    };
    if !linear {
        return [(place(x >> FRACTION), 256), (None, 0)];
    }
    // In 256ths of a texel, to the nearest, counted from the middle of the first one.
    let position = ((x - one / 2) * 256 + one / 2) >> FRACTION;
    let weight = position & 255;
    [(place(position >> 8), 256 - weight), (place((position >> 8) + 1), weight)]
}

/// A blend of whole-numbered texels; those outside have the border value.
fn reference(image: &Image, linear: bool, coordinates: [f32; 3], layer: u32, texels: &[f32], border: i128) -> f32 {
    let Sampler { addressing, is_normalized, .. } = image.sampler;
    let axes = [0, 1, 2].map(|axis| {
        let size = i128::from(image.extent[axis]);
        if size == 1 {
            return [(Some(0), 256), (None, 0)];
        }
        reference_axis(addressing[axis], is_normalized, linear, size, coordinates[axis])
    });
    let layer = i128::from(layer.min(image.layers - 1));
    let mut sum = 0i128;
    for z in axes[2] {
        for y in axes[1] {
            for x in axes[0] {
                let value = match (x.0, y.0, z.0) {
                    (Some(x), Some(y), Some(z)) => {
                        let row = (z + layer) * i128::from(image.extent[1]) + y;
                        texels[(row * i128::from(image.extent[0]) + x) as usize] as i128
                    }
                    _ => border,
                };
                sum += value * x.1 * y.1 * z.1;
            }
        }
    }
    // Below 2^53: one rounding.
    (sum as f64 / f64::from(1u32 << 24)) as f32
}

/// Texels that are whole numbers without a pattern.
fn texel_values(count: usize) -> Vec<f32> {
    (0..count as u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as f32 - 500_000.0).collect()
}

const COORDINATES: [f32; 16] = [
    0.0,
    0.5,
    1.0,
    1.5,
    2.25,
    3.0,
    4.0 + 255.0 / 256.0,
    5.0,
    7.5,
    -0.25,
    -1.0,
    -7.125,
    1.0 / 512.0,
    2.0 + 511.0 / 512.0,
    100.0,
    -100.0,
];

#[test]
fn every_addressing_and_filter_in_one_two_and_three_dimensions() {
    let modes = [AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border];
    let cases: [(&str, [u32; 3], u32); 5] = [
        ("tex.1d.v4.f32.f32 {$4, $5, $6, $7}, [%image, {$0}]", [7, 1, 1], 1),
        ("tex.2d.v4.f32.f32 {$4, $5, $6, $7}, [%image, {$0, $1}]", [5, 4, 1], 1),
        ("tex.3d.v4.f32.f32 {$4, $5, $6, $7}, [%image, {$0, $1, $2, $2}]", [4, 3, 5], 1),
        ("tex.a1d.v4.f32.f32 {$4, $5, $6, $7}, [%image, {$3, $0}]", [6, 1, 1], 3),
        ("tex.a2d.v4.f32.f32 {$4, $5, $6, $7}, [%image, {$3, $0, $1, $1}]", [3, 5, 1], 4),
    ];
    for (instruction, extent, layers) in cases {
        let texels = texel_values((extent.iter().product::<u32>() * layers) as usize);
        for (at, mode) in modes.into_iter().enumerate() {
            for (normalized, linear) in [(false, false), (false, true), (true, false), (true, true)] {
                let sampler = Sampler {
                    // A mode of its own for each dimension.
                    addressing: [mode, modes[(at + 1) % 4], modes[(at + 3) % 4]],
                    is_linear: linear,
                    is_normalized: normalized,
                    reads_normalized_floats: false,
                    border: [(-3f32).to_bits(); 4],
                };
                let image = image(extent, layers, FLOAT, sampler);
                let scale = if normalized { 0.125 } else { 1.0 };
                let rows: Vec<[f32; 3]> = (0..32usize)
                    .map(|row| [row, row * 5 + 3, row * 11 + 7].map(|n| COORDINATES[n % 16] * scale))
                    .collect();
                let words: Vec<[u32; 4]> = rows
                    .iter()
                    .enumerate()
                    .map(|(row, [x, y, z])| [x.to_bits(), y.to_bits(), z.to_bits(), row as u32 % 6])
                    .collect();
                let (results, _) = run(instruction, &words, image, &floats(&texels));
                for ((row, words), result) in rows.iter().zip(&words).zip(results) {
                    let layer = if layers > 1 { words[3] } else { 0 };
                    let expected = reference(&image, linear, *row, layer, &texels, -3);
                    let found = f32::from_bits(result[0]);
                    assert_eq!(found, expected, "{instruction} {:?} at {row:?}, layer {layer}", image.sampler);
                    let outside = !linear && result[1] == (-3f32).to_bits();
                    assert!(outside || linear || result[1..] == [0, 0, 1f32.to_bits()], "{result:x?}");
                }
            }
        }
    }
}

#[test]
fn whole_coordinates_and_what_lies_outside() {
    let texels = texel_values(12);
    let mut image = image([4, 3, 1], 1, FLOAT, Sampler { border: [9; 4], ..Sampler::default() });
    let rows = [[0, 0], [3, 2], [-1, 1], [4, 1], [2, 7], [i32::MIN, i32::MAX]].map(|[x, y]| [x as u32, y as u32, 0, 0]);
    let instruction = "tex.2d.v4.f32.s32 {$4, $5, $6, $7}, [%image, {$0, $1}]";
    let values = |places: [Option<usize>; 6]| places.map(|place| place.map_or(9, |at| texels[at].to_bits())).to_vec();
    let first = |results: (Vec<[u32; 4]>, Vec<u8>)| -> Vec<u32> { results.0.iter().map(|row| row[0]).collect() };
    let found = first(run(instruction, &rows, image, &floats(&texels)));
    assert_eq!(found, values([Some(0), Some(11), Some(4), Some(7), Some(10), Some(8)]));
    // The sampler of another object has the borders.
    let separate = "tex.2d.v4.f32.s32 {$4, $5, $6, $7}, [%image, %sampler, {$0, $1}]";
    image.sampler.addressing = [AddressMode::Clamp; 3];
    let found = first(run(separate, &rows, image, &floats(&texels)));
    assert_eq!(
        found,
        values([Some(0), Some(11), None, None, None, None])
            .iter()
            .map(|&v| if v == 9 { 0 } else { v })
            .collect::<Vec<_>>()
    );
    // A texture of linear memory reads as 0 outside.
    image = self::image([12, 1, 1], 1, FLOAT, Sampler::default());
    image.is_buffer = true;
    let rows = [0, 11, 12, -1].map(|x: i32| [x as u32, 0, 0, 0]);
    let found = first(run("tex.1d.v4.f32.s32 {$4, $5, $6, $7}, [%image, {$0}]", &rows, image, &floats(&texels)));
    assert_eq!(found, [texels[0].to_bits(), texels[11].to_bits(), 0, 0]);
}

#[test]
fn channels_of_every_format() {
    let fetch = |format, reads_normalized_floats, result: &str, bytes: &[u8]| {
        let sampler = Sampler { reads_normalized_floats, ..Sampler::default() };
        let instruction = format!("tex.1d.v4.{result}.s32 {{$4, $5, $6, $7}}, [%image, {{$0}}]");
        run(&instruction, &[[0; 4]], image([1, 1, 1], 1, format, sampler), bytes).0[0]
    };
    let format = |channels, bits, kind| TexelFormat { channels, bits, kind };
    let bits = |values: [f32; 4]| values.map(f32::to_bits);
    use ChannelKind::{Float, Signed, Unsigned};
    assert_eq!(fetch(format(4, 8, Unsigned), false, "u32", &[1, 128, 255, 0]), [1, 128, 255, 0]);
    assert_eq!(fetch(format(2, 8, Signed), false, "s32", &[0x80, 0x7f]), [-128i32 as u32, 127, 0, 1]);
    assert_eq!(fetch(format(1, 16, Unsigned), false, "u32", &[0xff, 0xfe]), [0xfeff, 0, 0, 1]);
    assert_eq!(fetch(format(1, 32, Signed), false, "s32", &[0xff; 4]), [u32::MAX, 0, 0, 1]);
    let expected = bits([0.0, 1.0, 51.0 / 255.0, 128.0 / 255.0]);
    assert_eq!(fetch(format(4, 8, Unsigned), true, "f32", &[0, 255, 51, 128]), expected);
    let expected = bits([-1.0, -1.0, 1.0, 64.0 / 127.0]);
    assert_eq!(fetch(format(4, 8, Signed), true, "f32", &[0x80, 0x81, 0x7f, 64]), expected);
    assert_eq!(fetch(format(2, 16, Unsigned), true, "f32", &[0xff, 0xff, 1, 0]), bits([1.0, 1.0 / 65535.0, 0.0, 1.0]));
    assert_eq!(fetch(format(2, 16, Float), false, "f32", &[0x00, 0x3c, 0x00, 0xc1]), bits([1.0, -2.5, 0.0, 1.0]));
    let wide: Vec<u8> = floats(&[1.5, -0.0, f32::INFINITY, 3.0]);
    assert_eq!(fetch(format(4, 32, Float), false, "f32", &wide), bits([1.5, -0.0, f32::INFINITY, 3.0]));
}

#[test]
fn a_gather_returns_the_four_texels_of_a_blend() {
    let texels = texel_values(20);
    let sampler = Sampler { is_linear: true, ..Sampler::default() };
    let instruction = "tld4.r.2d.v4.f32.f32 {$4, $5, $6, $7}, [%image, {$0, $1}]";
    let rows = [[2.75f32.to_bits(), 1.25f32.to_bits(), 0, 0], [0.0f32.to_bits(), 4.0f32.to_bits(), 0, 0]];
    let (results, _) = run(instruction, &rows, image([5, 4, 1], 1, FLOAT, sampler), &floats(&texels));
    let at = |x: usize, y: usize| texels[5 * y + x].to_bits();
    assert_eq!(results, [[at(2, 1), at(3, 1), at(3, 0), at(2, 0)], [at(0, 3), at(0, 3), at(0, 3), at(0, 3)]]);
}

#[test]
fn cube_faces() {
    // Faces of 2 x 2 texels; each texel is ten times its face, and its place.
    let texels: Vec<f32> = (0..24).map(|n| (n / 4 * 10 + n % 4) as f32).collect();
    let cube = image([2, 2, 1], 6, FLOAT, Sampler { is_normalized: true, ..Sampler::default() });
    let directions: [([f32; 3], f32); 7] = [
        // (s, t) of a face by the table of the programming guide: +x (-z, -y), -x (z, -y), +y (x, z), -y (x, -z), +z (x, -y), -z (-x, -y).
        ([2.0, -1.0, -1.0], 3.0),
        ([2.0, 1.0, 1.0], 0.0),
        ([-2.0, 1.0, 1.0], 11.0),
        ([1.0, 2.0, -1.0], 21.0),
        ([-1.0, -2.0, -1.0], 32.0),
        ([1.0, 1.0, 2.0], 41.0),
        ([1.0, -1.0, -2.0], 52.0),
    ];
    let rows: Vec<[u32; 4]> =
        directions.iter().map(|([x, y, z], _)| [x.to_bits(), y.to_bits(), z.to_bits(), 0]).collect();
    let instruction = "tex.cube.v4.f32.f32 {$4, $5, $6, $7}, [%image, {$0, $1, $2, $2}]";
    let (results, _) = run(instruction, &rows, cube, &floats(&texels));
    let found: Vec<f32> = results.iter().map(|row| f32::from_bits(row[0])).collect();
    assert_eq!(found, directions.map(|(_, expected)| expected));
}

#[test]
fn surfaces_are_read_and_written_by_bytes() {
    let texels: Vec<u8> = (0..48).collect();
    let surface = image([4, 3, 1], 1, FLOAT, Sampler::default());
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| (at + byte) as u8));
    let rows = [[4, 1], [12, 2], [-4, 0], [16, 1], [0, 3], [0, -1]].map(|[x, y]: [i32; 2]| [x as u32, y as u32, 0, 0]);
    let (results, _) = run("suld.b.2d.b32.zero $4, [%image, {$0, $1}]", &rows, surface, &texels);
    let found: Vec<u32> = results.iter().map(|row| row[0]).collect();
    assert_eq!(found, [word(20), word(44), 0, 0, 0, 0]);
    let (results, _) = run("suld.b.2d.v2.b32.clamp {$4, $5}, [%image, {$0, $1}]", &rows[..2], surface, &texels);
    assert_eq!(results[0][..2], [word(20), word(24)]);
    // The access of 8 bytes at byte 12 does not fit: the nearest that does begins at 8.
    assert_eq!(results[1][..2], [word(40), word(44)]);
    let store = "mov.b32 $4, 0x11223344; sust.b.2d.b32.zero [%image, {$0, $1}], $4";
    let (_, after) = run(store, &rows, surface, &texels);
    let mut expected = texels.clone();
    expected[20..24].copy_from_slice(&[0x44, 0x33, 0x22, 0x11]);
    expected[44..48].copy_from_slice(&[0x44, 0x33, 0x22, 0x11]);
    assert_eq!(after, expected);
    let (_, after) =
        run("cvt.u16.u32 %h0, $2; sust.b.2d.b8.trap [%image, {$0, $1}], %h0", &[[7, 2, 0x1ab, 0]], surface, &texels);
    assert_eq!(after[32 + 7], 0xab);
}

#[test]
fn formatted_stores_convert_and_layers_and_slices_are_found() {
    let bytes = TexelFormat { channels: 4, bits: 8, kind: ChannelKind::Unsigned };
    let volume = image([2, 2, 2], 1, bytes, Sampler::default());
    let store = "mov.b32 $4, 7; mov.b32 $5, 300; sust.p.3d.v4.b32.trap [%image, {$0, $1, $2, $2}], {$4, $5, $3, $4}";
    let (_, after) = run(store, &[[1, 0, 1, 255]], volume, &[0; 32]);
    assert_eq!((&after[20..24], after.iter().filter(|byte| **byte != 0).count()), (&[7, 255, 255, 7][..], 4));
    let layered = image([2, 1, 1], 3, FLOAT, Sampler::default());
    let add = "sured.b.add.a1d.u32.trap [%image, {$0, $1}], $2";
    let rows = [[2, 4, 5, 0], [2, 4, 6, 0], [0, 0, 1, 0]];
    let (_, after) = run(add, &rows, layered, &[0; 24]);
    assert_eq!((after[20], after[0], after.iter().map(|byte| u32::from(*byte)).sum::<u32>()), (11, 1, 12));
}

#[test]
fn queries() {
    let sampler =
        Sampler { addressing: [AddressMode::Mirror, AddressMode::Border, AddressMode::Wrap], ..Sampler::default() };
    let image = image([6, 5, 4], 3, FLOAT, sampler);
    for (query, expected) in [
        ("txq.width", 6),
        ("txq.height", 5),
        ("txq.depth", 4),
        ("txq.array_size", 3),
        ("txq.normalized_coords", 0),
        ("txq.filter_mode", 0),
        ("txq.addr_mode_0", 2),
        ("txq.addr_mode_1", 3),
        ("suq.width", 6),
        ("suq.array_size", 3),
    ] {
        let (results, _) = run(&format!("{query}.b32 $4, [%image]"), &[[0; 4]], image, &[]);
        assert_eq!(results[0][0], expected, "{query}");
    }
}

#[test]
#[should_panic(
    expected = "a surface access at [16, 1, 0, 0] (in the instruction's order) outside a surface of 4 x 3 x 1 texels"
)]
fn a_trapping_access_outside_ends_the_kernel() {
    let surface = image([4, 3, 1], 1, FLOAT, Sampler::default());
    run("suld.b.2d.b32.trap $4, [%image, {$0, $1}]", &[[16, 1, 0, 0]], surface, &[0; 48]);
}

#[test]
#[should_panic(expected = "0x1234 is no texture or surface object")]
fn a_handle_that_names_nothing_ends_the_kernel() {
    let surface = image([4, 3, 1], 1, FLOAT, Sampler::default());
    run("mov.u64 %image, 0x1234; suld.b.2d.b32.trap $4, [%image, {$0, $1}]", &[[0, 1, 0, 0]], surface, &[0; 48]);
}
