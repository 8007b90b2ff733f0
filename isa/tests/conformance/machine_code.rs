//! Kernels as PTX and as machine code that NVIDIA's assembler made of it: both leave the same memory.
//!
//! `tests/machine/` has the sources, with their machine code by ptxas 12.9 (sm_70) and 13.5 (sm_75). A thread has 256 bytes of memory:
//! its kernel reads the first half and writes the second.

use crate::machine;
use balar_isa::interpreter::step_function;
use balar_isa::machine::MachineModule;
use balar_isa::module::PtxModule;
use balar_isa::program::Program;
use balar_isa::texture::Image;
use std::fmt::Write;

/// Bytes of a thread's memory.
const RECORD: usize = 256;
const THREADS: usize = 32;

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
    let text = source.replace(".target sm_70", &format!(".target sm_{architecture}"));
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

/// Compares all kernels of a source in some rounds.
///
/// # Panics
///
/// Where a word differs.
fn compare(source: &str, architecture: u32, code: &[u8], rounds: u64, parameters: &[u8], images: &[(u64, Image)]) {
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
            let before = memory(round);
            let run = |program: &Program| {
                machine::run_with_images(step_function(), program, parameters, THREADS as u32, &before, images)
            };
            let (expected, found) = (run(&from_text), run(&from_code));
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
        include_str!(concat!("../machine/", $name, ".ptx"))
    };
}
macro_rules! code {
    ($name:literal, $architecture:literal) => {
        include_bytes!(concat!("../machine/", $name, ".sm_", $architecture, ".cubin"))
    };
}

#[test]
fn matrix_products_of_volta() {
    compare(source!("matrices_of_volta"), 70, code!("matrices_of_volta", 70), 6, &[0; 8], &[]);
}

#[test]
fn matrix_products_and_loads_of_turing() {
    compare(source!("matrices_of_turing"), 75, code!("matrices_of_turing", 75), 6, &[0; 8], &[]);
}
