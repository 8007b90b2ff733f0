//! Random kernels through both languages and through the host's own arithmetic: PTX, machine code that NVIDIA's assembler made of it,
//! and the tree from which the PTX was written, all leave the same memory.
//!
//! A kernel follows from a number, its seed. Kernels compute integers and floats of all widths, with the rounding always given; they
//! branch, loop, call functions, access memory of all kinds, and exchange values. Results that PTX leaves open do not occur:
//! approximations, the bits of not-a-numbers (each result has one in place of all), quotients by zero.
//!
//! Where `BALAR_PTXAS` names ptxas, or `BALAR_CUDA_TOOLCHAIN` the folder of `tools/cuda-toolchain`, more kernels are assembled and run;
//! `BALAR_RANDOM_KERNELS` says how many, `BALAR_RANDOM_SEED` the first one's seed. `BALAR_RANDOM_KERNELS_WRITE=1` writes the files in
//! `code/` anew.

mod assembler;
mod bits;
#[path = "../conformance/cases.rs"]
#[expect(dead_code, reason = "shared with the conformance tests")]
mod cases;
mod compare;
mod comparisons;
mod conversions;
mod floats;
mod generate;
mod host;
mod integers;
mod kernel;
#[path = "../conformance/machine.rs"]
mod machine;
mod newer;
mod operation;
mod random;
#[path = "../conformance/reference.rs"]
#[expect(dead_code, reason = "shared with the conformance tests")]
mod reference;
mod text;
#[path = "../conformance/values.rs"]
#[expect(dead_code, reason = "shared with the conformance tests")]
mod values;

use compare::{compare_code, compare_text, kernels};
use kernel::Level;
use std::ops::Range;
use std::path::Path;

/// Kernels whose machine code is in `code/`: not the first ones, on one of which ptxas 12.9 ends with a fault of its own.
const KEPT: Range<u64> = 24..48;
/// Kernels that are run from PTX alone.
const TEXTS: u64 = 400;
/// Kernels that an assembler, where there is one, makes machine code of.
const ASSEMBLED: u64 = 200;
/// Kernels of a module.
const MODULE: u64 = 50;
/// Architectures, with the instructions that their kernels have. Of each pair with kept machine code, it is in a file of its own.
const KEPT_FOR: [(u32, Level); 5] =
    [(70, Level::Volta), (75, Level::Volta), (80, Level::Volta), (80, Level::Ampere), (90, Level::Hopper)];
/// The same where there is an assembler.
const ASSEMBLED_FOR: [(u32, Level); 7] = [
    (70, Level::Volta),
    (75, Level::Volta),
    (80, Level::Volta),
    (90, Level::Volta),
    (80, Level::Ampere),
    (89, Level::Ampere),
    (90, Level::Hopper),
];

/// The stem of the file of machine code.
fn stem(architecture: u32, level: Level) -> String {
    let further = if (architecture, level) == (80, Level::Ampere) { ".ampere" } else { "" };
    format!("sm_{architecture}{further}")
}

/// A number that an environment variable has.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: a number is expected")))
}

/// A number for a text (FNV-1a).
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The numbers of the texts whose machine code is kept, a line each.
fn digests() -> String {
    let lines = KEPT_FOR.map(|(architecture, level)| {
        let text = text::module(&kernels(KEPT, level), architecture);
        format!("{} {:016x}\n", stem(architecture, level), digest(&text))
    });
    lines.concat()
}

#[test]
fn texts_and_the_host() {
    let first = number("BALAR_RANDOM_SEED").unwrap_or(0);
    let count = number("BALAR_RANDOM_KERNELS").unwrap_or(TEXTS);
    for (level, architecture, count) in
        [(Level::Volta, 70, count), (Level::Ampere, 80, count / 2), (Level::Hopper, 90, count / 2)]
    {
        for kernel in (first..first + count).map(|seed| generate::kernel(seed, level)) {
            compare_text(&kernel, architecture).unwrap_or_else(|problem| panic!("{problem}"));
        }
    }
}

#[test]
fn kept_machine_code_and_the_host() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random_kernels/code");
    if number("BALAR_RANDOM_KERNELS_WRITE") == Some(1) {
        let ptxas = assembler::ptxas().expect("an assembler");
        for (architecture, level) in KEPT_FOR {
            let text = text::module(&kernels(KEPT, level), architecture);
            let code =
                assembler::assemble(&ptxas, &text, architecture, 3).unwrap_or_else(|problem| panic!("{problem}"));
            std::fs::write(folder.join(stem(architecture, level) + ".cubin"), code)
                .expect("a folder that can be written");
        }
        std::fs::write(folder.join("digests.txt"), digests()).expect("a folder that can be written");
    }
    let kept = std::fs::read_to_string(folder.join("digests.txt")).unwrap_or_default();
    assert_eq!(kept, digests(), "the generator writes other kernels than those that were assembled: see docs/sass.md");
    for (architecture, level) in KEPT_FOR {
        let code = std::fs::read(folder.join(stem(architecture, level) + ".cubin")).expect("machine code");
        compare_code(&kernels(KEPT, level), code, architecture, None).unwrap_or_else(|problem| panic!("{problem}"));
    }
}

#[test]
fn assembled_machine_code_and_the_host() {
    let Some(ptxas) = assembler::ptxas() else { return };
    let first = number("BALAR_RANDOM_SEED").unwrap_or(KEPT.end);
    let count = number("BALAR_RANDOM_KERNELS").unwrap_or(ASSEMBLED);
    let mut problems = Vec::new();
    for (module, begin) in (first..first + count).step_by(MODULE as usize).enumerate() {
        // Code that is optimised less has other instructions.
        let optimisation = [3, 3, 1, 3, 2, 0][module % 6];
        for (architecture, level) in ASSEMBLED_FOR {
            let kernels = kernels(begin..(begin + MODULE).min(first + count), level);
            let assemble = |text: &str| assembler::assemble(&ptxas, text, architecture, optimisation);
            let check = |kernels: &[kernel::Kernel]| {
                let code = assemble(&text::module(kernels, architecture))?;
                compare_code(kernels, code, architecture, Some(&assemble))
            };
            // ptxas 12.9 ends with a fault on some kernels: these are left out, and the others of the module are run apart.
            let is_fault = |problem: &String| problem.contains("(signal: ");
            let result = check(&kernels);
            if result.as_ref().is_err_and(is_fault) {
                let each = kernels.chunks(1).filter_map(|kernel| check(kernel).err());
                problems.extend(each.filter(|problem| !is_fault(problem)));
            } else {
                problems.extend(result.err().map(|problem| format!("-O{optimisation}: {problem}")));
            }
        }
        assert!(problems.len() < 3, "{}", problems.join("\n\n"));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}
