//! Kernels as PTX and as machine code that NVIDIA's assembler made of it: both leave the same memory.
//!
//! `tests/machine/` has the sources, with their machine code by ptxas 12.9 (sm_70) and 13.5 (sm_75 and newer). A thread has 256 bytes of memory:
//! its kernel reads the first half and writes the second.

use crate::machine;
use balar_isa::interpreter::step_function;
use balar_isa::machine::MachineModule;
use balar_isa::module::PtxModule;
use balar_isa::program::Program;
use balar_isa::texture::{AddressMode, ChannelKind, Image, Sampler, TexelFormat};
use balar_protocol::tensor_map::{Convolution, ElementType, MOST_DIMENSIONS, TENSOR_MAP_BYTES, TensorMap};
use std::fmt::Write;

/// Bytes of a thread's memory.
pub const RECORD: usize = 256;
pub const THREADS: usize = 32;

/// Numbers without a pattern.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }
}

/// Words that instructions treat each in their way.
const NOTABLE: [u32; 24] = [
    0,
    1,
    31,
    32,
    33,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0x0000_0003,
    0x8040_0000,
    0x0080_0000,
    0x7f7f_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0x7bff_7c00,
    0xfc00_7e00,
    0x0001_8001,
    0x3c00_bc00,
];

/// Two halves whose products and sums are neither too large nor too small.
fn plain_halves(random: &mut Random) -> u32 {
    let mut half = || {
        let bits = random.next();
        bits & 0x8000 | (10 + bits % 9) << 10 | bits >> 16 & 0x3ff
    };
    half() | half() << 16
}

/// The first memory of a run: the more notable words, the higher the round.
fn memory(round: u64) -> Vec<u8> {
    let mut random = Random::new(round + 1);
    let words = (0..THREADS * RECORD / 4).map(|_| match random.below(8) {
        0..4 if round < 2 => plain_halves(&mut random),
        0..2 => NOTABLE[random.below(24) as usize],
        2 => random.below(64),
        3 => (random.below(2000) as f32 / 8.0 - 100.0).to_bits(),
        4 => plain_halves(&mut random),
        _ => random.next(),
    });
    words.flat_map(u32::to_le_bytes).collect()
}

/// The kernels of a source, each as PTX and as machine code.
fn kernels(source: &str, architecture: u32, code: &[u8]) -> Vec<(String, Program, Result<Program, String>)> {
    // Tensor cores of different generations round differently.
    let target = format!(".target sm_{architecture}");
    let text = [".target sm_70", ".target sm_80", ".target sm_89"]
        .iter()
        .fold(source.to_owned(), |text, old| text.replace(old, &target));
    let ptx = PtxModule::parse("kernels.ptx", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let machine = MachineModule::read([code.into()]).unwrap_or_else(|error| panic!("{error}"));
    assert!(ptx.variables().is_empty() && machine.placements().is_empty(), "kernels without variables");
    let names: Vec<String> = ptx.kernels().map(str::to_owned).collect();
    let each = names.into_iter().map(|name| {
        let from_text = ptx.program(&name, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let from_code = machine.program(&name, &[]).map_err(|error| error.to_string());
        (name, from_text, from_code)
    });
    each.collect()
}

/// What a kernel is run on.
pub struct Setting {
    pub parameters: Vec<u8>,
    pub memory: Vec<u8>,
    pub images: Vec<(u64, Image)>,
}

/// Compares all kernels of a source, on memory alone.
///
/// # Panics
///
/// Where a word differs.
fn compare(source: &str, architecture: u32, code: &[u8], rounds: u64) {
    compare_in(source, architecture, code, rounds, |_, round| Setting {
        parameters: vec![0; 8],
        memory: memory(round),
        images: Vec::new(),
    });
}

/// Compares all kernels of a source in some rounds, each in a setting that follows from the kernel's name and the round.
///
/// # Panics
///
/// Where a word differs.
fn compare_in(source: &str, architecture: u32, code: &[u8], rounds: u64, setting: impl Fn(&str, u64) -> Setting) {
    let mut report = String::new();
    for (name, from_text, from_code) in kernels(source, architecture, code) {
        let from_code = match from_code {
            Ok(program) => program,
            Err(error) => {
                let _ = writeln!(report, "{name}: {error}");
                continue;
            }
        };
        for round in 0..rounds {
            let Setting { parameters, memory: before, images } = setting(&name, round);
            let run = |program: &Program| {
                machine::run_with_images(step_function(), program, &parameters, THREADS as u32, &before, &images)
            };
            let (expected, found) = (run(&from_text), run(&from_code));
            assert!(expected != before, "{name} writes nothing");
            let word = |memory: &[u8], at: usize| u32::from_le_bytes(std::array::from_fn(|byte| memory[4 * at + byte]));
            let differing: Vec<usize> =
                (0..before.len() / 4).filter(|at| word(&expected, *at) != word(&found, *at)).collect();
            if let Some(&first) = differing.first() {
                let (lane, place) = (first * 4 / RECORD, first % (RECORD / 4));
                let inputs: Vec<String> =
                    (0..8).map(|at| format!("{:08x}", word(&before, lane * RECORD / 4 + at))).collect();
                let mut places: Vec<usize> = differing.iter().map(|at| at % (RECORD / 4)).collect();
                places.sort_unstable();
                places.dedup();
                let _ = writeln!(
                    report,
                    "{name} sm_{architecture} round {round}: {} words differ, at places {places:?}; lane {lane}, word {place}: PTX \
                     {:08x}, machine code {:08x}, inputs {}",
                    differing.len(),
                    word(&expected, first),
                    word(&found, first),
                    inputs.join(" "),
                );
                break;
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

/// A file beside its machine code.
macro_rules! source {
    ($name:literal) => {
        include_str!(concat!("../../machine/", $name, ".ptx"))
    };
}
macro_rules! code {
    ($name:literal, $architecture:literal) => {
        include_bytes!(concat!("../../machine/", $name, ".sm_", $architecture, ".cubin"))
    };
}

#[test]
fn matrix_products_of_volta() {
    compare(source!("matrices_of_volta"), 70, code!("matrices_of_volta", 70), 6);
}

#[test]
fn matrix_products_and_loads_of_turing() {
    compare(source!("matrices_of_turing"), 75, code!("matrices_of_turing", 75), 6);
}

#[test]
fn matrix_products_of_ampere_and_ada() {
    compare(source!("matrices_of_ampere"), 80, code!("matrices_of_ampere", 80), 6);
    compare(source!("matrices_of_ampere"), 90, code!("matrices_of_ampere", 90), 6);
    compare(source!("bytes_of_ada"), 89, code!("bytes_of_ada", 89), 6);
}

/// Products of 8-bit floats, with a sparse matrix, too. For sm_90, which has none, ptxas makes them of products of halves.
#[test]
fn matrix_products_of_bytes() {
    compare(source!("bytes_of_matrices"), 89, code!("bytes_of_matrices", 89), 6);
    compare(source!("bytes_of_matrices"), 90, code!("bytes_of_matrices", 90), 6);
}

/// For sm_90, which has no products of 4 bits, ptxas makes them of products of bytes.
#[test]
fn products_with_a_sparse_matrix() {
    compare(source!("sparse_of_ampere"), 80, code!("sparse_of_ampere", 80), 6);
    compare(source!("sparse_of_ampere"), 90, code!("sparse_of_ampere", 90), 6);
}

/// Rounded in every direction, with signs.
#[test]
fn products_of_doubles() {
    compare(source!("doubles_of_ampere"), 80, code!("doubles_of_ampere", 80), 24);
    compare(source!("doubles_of_ampere"), 90, code!("doubles_of_ampere", 90), 24);
}

/// Stores of matrices, products without carries, packed conversions, elections, fences, extrema of sums.
#[test]
fn further_instructions_of_hopper() {
    compare(source!("forms_of_hopper"), 90, code!("forms_of_hopper", 90), 24);
}

/// Bfloat16, extrema, conversions, reductions of a warp, copies in groups and with barriers.
#[test]
fn further_instructions_of_ampere() {
    compare(source!("words_of_ampere"), 80, code!("words_of_ampere", 80), 24);
    compare(source!("words_of_ampere"), 86, code!("words_of_ampere", 86), 24);
}

#[test]
fn matrix_products_of_whole_warps() {
    compare(source!("wmma"), 70, code!("wmma", 70), 3);
    compare(source!("wmma"), 75, code!("wmma", 75), 3);
    compare(source!("wmma"), 80, code!("wmma", 80), 3);
    compare(source!("wmma"), 90, code!("wmma", 90), 3);
    compare(source!("wmma_integers"), 75, code!("wmma_integers", 75), 3);
    compare(source!("wmma_integers"), 90, code!("wmma_integers", 90), 3);
}

/// The first of the four warps of a group, whose rows of the result follow from its own registers and from shared memory.
#[test]
fn matrix_products_of_groups_of_warps() {
    let code = include_bytes!("../../machine/matrix_groups.sm_90a.cubin");
    compare(source!("matrix_groups"), 90, code, 6);
    let code = include_bytes!("../../machine/sparse_matrix_groups.sm_90a.cubin");
    compare(source!("sparse_matrix_groups"), 90, code, 6);
}

/// Behind the address, which is zero, come parameters of one and two bytes.
#[test]
fn parts_of_words_in_constant_banks() {
    let setting = |_: &str, round| {
        let mut random = Random::new(round);
        // In every other round, bytes; half of them are zero.
        let mask = if round % 2 == 0 { 0xff } else { 1 };
        let bytes = (0..2).flat_map(|_| random.next().to_le_bytes().map(|byte| byte & mask));
        Setting { parameters: [0; 8].into_iter().chain(bytes).collect(), memory: memory(round), images: Vec::new() }
    };
    compare_in(source!("parts_of_words"), 70, code!("parts_of_words", 70), 20, setting);
    compare_in(source!("parts_of_words"), 75, code!("parts_of_words", 75), 20, setting);
}

const HANDLE: u32 = 0x1234;

/// An image for a kernel, whose name says its shape, and coordinates in and around it.
fn texture_setting(name: &str, round: u64) -> Setting {
    let mut random = Random::new(round + 77);
    let modes = [AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border];
    let has = |part: &str| name.contains(part);
    let is_surface = has("su");
    let (extent, layers) = match () {
        () if has("cube") => ([4, 4, 1], 12),
        () if has("_3d") => ([5, 4, 3], 1),
        () if has("a1d") => ([7, 1, 1], 4),
        () if has("a2d") => ([5, 4, 1], 3),
        () if has("_1d") => ([9, 1, 1], 1),
        () => ([6, 5, 1], 1),
    };
    let format = match is_surface {
        true if has("_p_") => TexelFormat {
            channels: 1,
            bits: 32,
            kind: if round.is_multiple_of(2) { ChannelKind::Signed } else { ChannelKind::Unsigned },
        },
        true => TexelFormat { channels: 4, bits: 16, kind: ChannelKind::Unsigned },
        false => TexelFormat { channels: 4, bits: 32, kind: ChannelKind::Float },
    };
    let row_pitch = u64::from(extent[0]) * u64::from(format.bytes());
    let image = Image {
        base: (THREADS * RECORD) as u64,
        extent,
        layers,
        row_pitch,
        slice_pitch: row_pitch * u64::from(extent[1]),
        format,
        is_buffer: false,
        sampler: Sampler {
            addressing: std::array::from_fn(|axis| modes[(round as usize + axis) % 4]),
            is_linear: round / 4 % 2 == 1 && !has("cube"),
            is_normalized: round / 8 % 2 == 1,
            reads_normalized_floats: false,
            border: [0xc000_0000, 1, 2, 3],
        },
    };
    let mut memory = memory(round);
    for thread in memory.chunks_mut(RECORD) {
        for place in 0..16 {
            let axis = place % 4;
            let value = match place {
                0 if has("trap") => 0,
                ..3 if is_surface && has("trap") => random.below(extent[axis]),
                3 if has("trap") => random.below(layers),
                0 if is_surface && !has("_p_") && !has("sustp") => {
                    (8 * random.below(extent[0] + 4)).wrapping_sub(16 * random.below(2))
                }
                ..4 => random.below(10).wrapping_sub(2),
                // Where there are two images, the lanes' handles differ.
                6 if has("two") => HANDLE + random.below(2),
                6 => HANDLE,
                7 => 0,
                8.. if image.sampler.is_normalized => (random.below(4000) as f32 / 1000.0 - 1.5).to_bits(),
                8.. => (random.below(9000) as f32 / 1000.0 - 1.5).to_bits(),
                _ => random.next(),
            };
            thread[4 * place..][..4].copy_from_slice(&value.to_le_bytes());
        }
    }
    let texels = u64::from(layers * extent[2]) * image.slice_pitch;
    memory.extend((0..texels).map(|at| (at * 37 % 251) as u8 & if at % 4 == 3 { 0x41 } else { 0xff }));
    memory.resize(memory.len().next_multiple_of(RECORD), 0);
    let mut parameters = vec![0; 16];
    parameters[8..12].copy_from_slice(&HANDLE.to_le_bytes());
    // The other one has fewer texels.
    let other = Image { extent: extent.map(|texels| texels.min(3)), ..image };
    Setting { parameters, memory, images: vec![(u64::from(HANDLE), image), (u64::from(HANDLE) + 1, other)] }
}

#[test]
fn textures_and_surfaces() {
    compare_in(source!("textures"), 70, code!("textures", 70), 16, texture_setting);
    // Handles are in uniform registers; where lanes have different ones, in a loop that takes one after the other (`BRA.U.ANY`).
    compare_in(source!("textures"), 90, code!("textures", 90), 16, texture_setting);
    compare_in(source!("textures_of_lanes"), 90, code!("textures_of_lanes", 90), 16, texture_setting);
}

/// Left out is what both may do in their own way: approximations of several instructions (`div.full`, `sin.approx`), the bits of
/// not-a-number where two of them meet or one is negated, fields of 64 bits that begin beyond bit 255, and `subc` after `add.cc`.
#[test]
fn arithmetic() {
    compare(source!("arithmetic"), 70, code!("arithmetic", 70), 24);
    compare(source!("arithmetic"), 75, code!("arithmetic", 75), 24);
    compare(source!("arithmetic"), 80, code!("arithmetic", 80), 24);
    compare(source!("special_of_turing"), 75, code!("special_of_turing", 75), 24);
}

/// Clusters of one CTA, and shared memory behind what belongs to the system.
#[test]
fn special_registers_of_hopper() {
    compare(source!("special_of_hopper"), 90, code!("special_of_hopper", 90), 2);
}

/// `mbarrier` objects: each lane has one of its own, or all have one.
#[test]
fn barriers_of_hopper() {
    compare(source!("barriers_of_hopper"), 90, code!("barriers_of_hopper", "90"), 6);
}

/// Where the tensor of [`bulk_setting`] lies, its map, and the coordinates of a box.
pub const TENSOR: usize = THREADS * RECORD;
pub const MAP: usize = 2 * TENSOR;
pub const COORDINATES: usize = MAP + RECORD;

/// Memory with a tensor behind the threads' records, and its map. The kernel's name says how many dimensions the tensor has.
pub fn bulk_setting(name: &str, round: u64) -> Setting {
    let mut random = Random::new(round + 3);
    let mut memory = memory(round);
    memory.resize(COORDINATES + RECORD, 0);
    for word in memory[TENSOR..MAP].chunks_exact_mut(4) {
        // Neither numbers of which sums are rounded nor not-a-number, where they are floats.
        let halves = (random.below(64) | random.below(64) << 16) << 4 | 0x3c00_3c00;
        let word_of_kind = if name.contains("add_f") || name.contains("noftz") { halves } else { random.next() };
        word.copy_from_slice(&word_of_kind.to_le_bytes());
    }
    let Some(dimensions) = (1..=5).find(|dimensions| name.contains(&format!("{dimensions}d"))) else {
        return Setting { parameters: vec![0; 8], memory, images: Vec::new() };
    };
    let (map, coordinates) = random_map(dimensions, name.contains("columns"), &mut random);
    memory[MAP..MAP + TENSOR_MAP_BYTES].copy_from_slice(&map.encode());
    let rows = map.rows(coordinates, [0; 3]);
    let bytes = rows.iter().map(|row| row.bytes).sum();
    // A second size is that of the map which a kernel makes of it: a box of seven rows.
    let changed = 7 * map.box_sizes[0] * map.element.bytes();
    let words =
        coordinates.map(|coordinate| coordinate as u32).into_iter().chain([bytes, 3 + random.below(9), changed]);
    for (place, word) in words.enumerate() {
        memory[COORDINATES + 4 * place..][..4].copy_from_slice(&word.to_le_bytes());
    }
    Setting { parameters: vec![0; 8], memory, images: Vec::new() }
}

/// A map of a small tensor at [`TENSOR`], and the coordinates of a box that is inside it or not.
fn random_map(dimensions: u8, is_convolution: bool, random: &mut Random) -> (TensorMap, [i32; MOST_DIMENSIONS]) {
    let element = ElementType::OF_DRIVER[random.below(11) as usize];
    let units = 16 / element.bytes();
    let mut map = TensorMap {
        address: TENSOR as u64,
        element,
        dimensions,
        sizes: [1; MOST_DIMENSIONS],
        strides: [0; MOST_DIMENSIONS - 1],
        box_sizes: [1; MOST_DIMENSIONS],
        element_strides: [1; MOST_DIMENSIONS],
        interleave: 0,
        swizzle: random.below(4) as u8,
        fills_with_nan: element.is_float() && random.below(2) == 0,
        promotion: random.below(4) as u8,
        convolution: None,
    };
    // At most 128 bytes a row, and 4 KiB in all.
    map.sizes[0] = u64::from(1 + random.below(8 * units));
    map.box_sizes[0] = units * [1, 2, 4, 8][random.below(1 + u32::from(map.swizzle)) as usize];
    let mut stride = (map.sizes[0] * u64::from(element.bytes())).next_multiple_of(16);
    for dimension in 1..usize::from(dimensions) {
        map.sizes[dimension] = u64::from(1 + random.below(if dimensions < 5 { 4 } else { 2 }));
        map.strides[dimension - 1] = stride;
        stride *= map.sizes[dimension];
        map.box_sizes[dimension] = 1 + random.below(if dimensions < 4 { 4 } else { 2 });
        map.element_strides[dimension] = 1 + random.below(2) as u8;
    }
    let mut coordinates = [0; MOST_DIMENSIONS];
    for (dimension, coordinate) in coordinates.iter_mut().enumerate().take(dimensions.into()) {
        *coordinate = random.below(map.sizes[dimension] as u32 + 4) as i32 - 2;
    }
    if is_convolution {
        map.convolution = Some(Convolution {
            lower_corner: [0; 3].map(|_| random.below(3) as i16 - 2),
            upper_corner: [0; 3].map(|_| random.below(3) as i16 - 1),
            channels: map.box_sizes[0] as u16,
            pixels: 1 + random.below(20) as u16,
        });
    }
    (map, coordinates)
}

/// Copies of bytes and of boxes of tensors, from and to device memory, and within shared memory.
#[test]
fn bulk_copies() {
    compare_in(source!("bulk_copies"), 90, code!("bulk_copies", "90"), 24, bulk_setting);
    compare_in(source!("tensor_maps"), 90, code!("tensor_maps", "90a"), 24, bulk_setting);
}

/// What kernels of `tests/random_kernels` found, in as few instructions as show it. For sm_70 the code is optimised little (-O1).
#[test]
fn findings_of_random_kernels() {
    compare(source!("random_findings"), 70, code!("random_findings", 70), 24);
    compare(source!("random_findings"), 75, code!("random_findings", 75), 24);
    compare(source!("random_findings"), 80, code!("random_findings", 80), 24);
    compare(source!("random_findings"), 90, code!("random_findings", 90), 24);
}

/// A branch that lanes take all together or not at all (`BRA.U`), which ptxas puts before instructions under a predicate.
#[test]
fn uniform_branches() {
    compare(source!("uniform_branches"), 70, code!("uniform_branches", 70), 24);
    compare(source!("uniform_branches"), 75, code!("uniform_branches", 75), 24);
    compare(source!("uniform_branches"), 80, code!("uniform_branches", 80), 24);
    compare(source!("uniform_branches"), 90, code!("uniform_branches", 90), 24);
}

#[test]
fn exchanges_atomics_memory_and_control_flow() {
    compare(source!("warps"), 70, code!("warps", 70), 24);
    compare(source!("warps"), 75, code!("warps", 75), 24);
    compare(source!("warps"), 80, code!("warps", 80), 24);
    compare(source!("warps"), 90, code!("warps", 90), 24);
}

/// Reductions by groups of lanes that name different masks, and bulk copies by many lanes, which code makes one after the other by registers that
/// the warp has once.
#[test]
fn lanes_that_do_by_themselves_what_a_warp_does() {
    compare(source!("parts_of_warps"), 80, code!("parts_of_warps", 80), 24);
    compare(source!("parts_of_warps"), 90, code!("parts_of_warps", 90), 24);
    compare(source!("copies_by_lanes"), 90, code!("copies_by_lanes", 90), 24);
}

/// Vectors of floats, and values of sixteen bytes.
#[test]
fn atomics_of_sixteen_bytes() {
    compare(source!("wide_atomics"), 90, code!("wide_atomics", 90), 3);
}

/// What `tests/cubins/references.ptx` does: a texel of each of two textures is summed up, a number is written to a surface.
#[test]
fn references_to_textures_and_surfaces() {
    look(include_bytes!("../../cubins/references.sm_70.cubin"));
    look(include_bytes!("../../cubins/references.sm_90.cubin"));
}

fn look(code: &[u8]) {
    let module = MachineModule::read([code.into()]).unwrap_or_else(|error| panic!("{error}"));
    let addresses: Vec<u64> = (0..module.placements().len() as u64).map(|index| 0x8000_0000 + index).collect();
    let program = module.program("look", &addresses).unwrap_or_else(|error| panic!("{error}"));
    let number = |name: &str| {
        let index = module.placements().iter().position(|placement| &*placement.name == name);
        addresses[index.unwrap_or_else(|| panic!("no {name}"))]
    };
    // The images lie behind the result: 8 texels, 4 rows of 4, 8 texels.
    let image = |base: u64, extent: [u32; 3]| Image {
        base,
        extent,
        layers: 1,
        row_pitch: 4 * u64::from(extent[0]),
        slice_pitch: 4 * u64::from(extent[0] * extent[1]),
        format: TexelFormat { channels: 1, bits: 32, kind: ChannelKind::Float },
        is_buffer: false,
        sampler: Sampler::default(),
    };
    let images = [
        (number("picture"), image(64, [8, 1, 1])),
        (number("other_picture"), image(96, [4, 4, 1])),
        (number("drawing"), image(160, [8, 1, 1])),
    ];
    let mut before = vec![0; 192];
    for (place, texel) in before[64..160].chunks_mut(4).enumerate() {
        texel.copy_from_slice(&(place as f32).to_le_bytes());
    }
    let mut parameters = vec![0; 12];
    // A texel of the textures, a byte of the surface.
    parameters[8] = 4;
    let after = machine::run_with_images(step_function(), &program, &parameters, 1, &before, &images);
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| after[at + byte]));
    // Texel 4 of the first; (3, 3) of the second is the nearest to (4, 4).
    assert_eq!(f32::from_bits(word(0)), 4.0 + (8.0 + 15.0));
    assert_eq!((word(160), word(164), word(168)), (0, 4, 0));
}

/// Code for sm_90 has the number of a sampler beside that of its texture, which has a sampler here, too.
#[test]
fn a_texture_with_a_sampler() {
    let code: &[u8] = include_bytes!("../../cubins/samplers.sm_90.cubin");
    let module = MachineModule::read([code.into()]).unwrap_or_else(|error| panic!("{error}"));
    let addresses: Vec<u64> = (0..module.placements().len() as u64).map(|index| 0x8000_0000 + index).collect();
    let program = module.program("look", &addresses).unwrap_or_else(|error| panic!("{error}"));
    let picture = module.placements().iter().position(|placement| &*placement.name == "picture");
    let image = Image {
        base: 64,
        extent: [8, 1, 1],
        layers: 1,
        row_pitch: 32,
        slice_pitch: 32,
        format: TexelFormat { channels: 1, bits: 32, kind: ChannelKind::Float },
        is_buffer: false,
        sampler: Sampler::default(),
    };
    let images = [(addresses[picture.unwrap_or_else(|| panic!("no picture"))], image)];
    let mut before = vec![0; 96];
    for (place, texel) in before[64..].chunks_mut(4).enumerate() {
        texel.copy_from_slice(&(place as f32).to_le_bytes());
    }
    let mut parameters = vec![0; 12];
    parameters[8] = 5;
    let after = machine::run_with_images(step_function(), &program, &parameters, 1, &before, &images);
    assert_eq!(after[..4], 5f32.to_le_bytes());
}
