//! Kernels in both languages and in the host's arithmetic: all leave the same memory.

use crate::kernel::*;
use crate::random::Random;
use crate::{generate, host, machine, text};
use balar_isa::interpreter::step_function;
use balar_isa::machine::MachineModule;
use balar_isa::module::PtxModule;
use balar_isa::program::Program;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Makes machine code of a text, or says why not.
pub type Assemble<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

/// Inputs that each kernel is run on.
const ROUNDS: u64 = 3;

/// What a kernel reads.
struct Inputs {
    memory: Vec<u8>,
    parameters: [Vec<u64>; 2],
}

fn inputs(seed: u64, round: u64) -> Inputs {
    let mut random = Random::new(seed.wrapping_mul(ROUNDS).wrapping_add(round) ^ 0x5eed);
    let mut memory = Vec::with_capacity(MEMORY);
    while memory.len() < MEMORY {
        // Records have values of all widths at their places.
        let width = if (32..80).contains(&(memory.len() % RECORD)) { 64 } else { 32 };
        let value = random.value(width);
        memory.extend_from_slice(&value.to_le_bytes()[..width as usize / 8]);
    }
    let parameters = PARAMETERS.map(|(width, count)| (0..count).map(|_| random.value(width)).collect());
    Inputs { memory, parameters }
}

impl Inputs {
    /// As a launch has them, behind the address of the memory, which is zero.
    fn parameter_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        for ((width, _), values) in PARAMETERS.into_iter().zip(&self.parameters) {
            for value in values {
                bytes.extend_from_slice(&value.to_le_bytes()[..width as usize / 8]);
            }
        }
        bytes
    }
}

/// What lies at a place of the memory.
fn place_name(place: usize) -> String {
    if place >= COMMON_PLACE {
        let reduction = (place - COMMON_PLACE) / 32;
        return format!("the words of {}", REDUCTIONS[reduction]);
    }
    let (lane, mut offset) = (place / RECORD, place % RECORD);
    if offset < RESULT_PLACE {
        return format!("lane {lane}, byte {offset} of its record");
    }
    offset -= RESULT_PLACE;
    for (width, count) in REGISTERS {
        let bytes = (width as usize).div_ceil(8);
        if offset < bytes * count {
            return format!("lane {lane}, register {} of {width} bits", offset / bytes);
        }
        offset -= bytes * count;
    }
    format!("lane {lane}, behind its registers")
}

/// Runs a program on the inputs of its kernel and compares the memory with the host's. Says what differs first.
///
/// # Errors
///
/// What differs.
pub fn compare(kernel: &Kernel, program: &Program, language: &str, on_both: bool) -> Result<(), String> {
    for round in 0..ROUNDS {
        let inputs = inputs(kernel.seed, round);
        let parameters = inputs.parameter_bytes();
        let expected = host::run(kernel, &inputs.memory, inputs.parameters.clone());
        let run = || match on_both {
            true => machine::run(program, &parameters, THREADS as u32, &inputs.memory),
            false => machine::run_with(step_function(), program, &parameters, THREADS as u32, &inputs.memory),
        };
        let found = catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            format!("{language} of {}: {}", kernel.name(), text.unwrap_or_else(|| "a panic".to_owned()))
        })?;
        let word = |memory: &[u8], place: usize| u32::from_le_bytes(std::array::from_fn(|byte| memory[place + byte]));
        let mut places = (0..MEMORY).step_by(4).filter(|place| word(&found, *place) != word(&expected, *place));
        if let Some(first) = places.next() {
            return Err(format!(
                "kernel of seed {}, inputs {round}: {} words differ; the first is at {first:#x}, {}: {language} {:08x}, host {:08x}",
                kernel.seed,
                1 + places.count(),
                place_name(first),
                word(&found, first),
                word(&expected, first),
            ));
        }
    }
    Ok(())
}

/// Compares what PTX gives with the host. What differs comes with the fewest statements that do.
///
/// # Errors
///
/// What differs.
pub fn compare_text(kernel: &Kernel, architecture: u32) -> Result<(), String> {
    let check = |kernel: &Kernel| {
        let text = text::module(std::slice::from_ref(kernel), architecture);
        let module = PtxModule::parse("kernel.ptx", &text).map_err(|errors| format!("{errors}"))?;
        let program = module.program(&kernel.name(), &[]).map_err(|errors| format!("{errors}"))?;
        compare(kernel, &program, "PTX", true)
    };
    check(kernel).map_err(|problem| explained(kernel, problem, architecture, &check))
}

/// A problem, and the smallest kernel that has one.
fn explained(
    kernel: &Kernel,
    problem: String,
    architecture: u32,
    check: &dyn Fn(&Kernel) -> Result<(), String>,
) -> String {
    // Of two problems in a kernel, the smaller one must not be taken for the other.
    let is_difference = |problem: &str| problem.contains("words differ");
    let smallest = kernel
        .shrunk(|candidate| check(candidate).is_err_and(|other| is_difference(&other) == is_difference(&problem)));
    let last = check(&smallest).err().unwrap_or_default();
    let listing = text::listing(&smallest);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random_kernel_{}.ptx", kernel.seed));
    let kept = match std::fs::write(&path, text::module(&[smallest], architecture)) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("{}: {error}", path.display()),
    };
    format!("{problem}\nwith fewer statements ({kept}): {last}\n{listing}")
}

/// Compares what the machine code of kernels gives with the host.
///
/// # Errors
///
/// What differs, of the first few kernels. `assemble` shrinks them.
pub fn compare_code(
    kernels: &[Kernel],
    code: Vec<u8>,
    architecture: u32,
    assemble: Option<&Assemble<'_>>,
) -> Result<(), String> {
    let language = format!("machine code for sm_{architecture}");
    let compare_one = |kernel: &Kernel, module: &MachineModule| {
        let program = module.program(&kernel.name(), &[]).map_err(|error| format!("{}: {error}", kernel.name()))?;
        compare(kernel, &program, &language, false)
    };
    let module = MachineModule::read([code.into()]).map_err(|error| error.to_string())?;
    let mut problems = Vec::new();
    for kernel in kernels {
        let Err(problem) = compare_one(kernel, &module) else { continue };
        let check = |kernel: &Kernel| {
            let Some(assemble) = assemble else { return Ok(()) };
            let code = assemble(&text::module(std::slice::from_ref(kernel), architecture))?;
            let module = MachineModule::read([code.into()]).map_err(|error| error.to_string())?;
            compare_one(kernel, &module)
        };
        problems.push(if assemble.is_some() { explained(kernel, problem, architecture, &check) } else { problem });
        if problems.len() == 3 {
            break;
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n\n")) }
}

/// The kernels of some seeds.
pub fn kernels(seeds: std::ops::Range<u64>, level: Level) -> Vec<Kernel> {
    seeds.map(|seed| generate::kernel(seed, level)).collect()
}
