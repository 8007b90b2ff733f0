//! Relocatable cubins that refer to each other are linked, and give the results that their source describes.
//!
//! `tests/machine/pieces_*.cu` are the sources: one has kernels, the other most of the functions and variables that they need.

use crate::machine;
use balar_isa::execution::SystemCall;
use balar_isa::interpreter::step_function;
use balar_isa::machine::{MachineError, MachineModule, system_call_address};

const THREADS: u32 = 32;
/// Bytes between the places of variables. The kernels write in front of the first.
const PLACE: usize = 0x1000;

const KERNELS: [&[u8]; 4] = [
    include_bytes!("../../machine/pieces_kernels.sm_70.cubin"),
    include_bytes!("../../machine/pieces_kernels.sm_75.cubin"),
    include_bytes!("../../machine/pieces_kernels.sm_80.cubin"),
    include_bytes!("../../machine/pieces_kernels.sm_90.cubin"),
];
const FUNCTIONS: [&[u8]; 4] = [
    include_bytes!("../../machine/pieces_functions.sm_70.cubin"),
    include_bytes!("../../machine/pieces_functions.sm_75.cubin"),
    include_bytes!("../../machine/pieces_functions.sm_80.cubin"),
    include_bytes!("../../machine/pieces_functions.sm_90.cubin"),
];

fn module(images: &[&[u8]]) -> Result<MachineModule, MachineError> {
    MachineModule::read(images.iter().map(|image| (*image).into()))
}

fn addresses(module: &MachineModule) -> Vec<u64> {
    (1..=module.placements().len()).map(|number| (number * PLACE) as u64).collect()
}

/// Device memory after a kernel.
fn run(module: &MachineModule, kernel: &str) -> Vec<u8> {
    let addresses = addresses(module);
    let mut memory = vec![0; PLACE * (addresses.len() + 1)];
    for (number, &address) in addresses.iter().enumerate() {
        let Some(bytes) = module.initial_value(number, &addresses) else { continue };
        memory[address as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    let program = module.program(kernel, &addresses).unwrap_or_else(|error| panic!("{kernel}: {error}"));
    machine::run_with(step_function(), &program, &[0; 8], THREADS, &memory)
}

fn word(memory: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(std::array::from_fn(|byte| memory[at + byte]))
}

/// A variable's first word.
fn variable(module: &MachineModule, memory: &[u8], name: &str) -> i32 {
    let variable = module.variables().iter().find(|variable| *variable.name == *name).expect("the variable");
    word(memory, addresses(module)[variable.placement] as usize + variable.offset as usize)
}

fn scaled(value: i32, which: usize) -> i32 {
    value * [10, 20, 30, 40][which] + 4 + (3 * value + 1) + (value + 200)
}

fn fibonacci(number: i32) -> i32 {
    if number < 2 { number } else { fibonacci(number - 1) + fibonacci(number - 2) }
}

fn chosen(which: i32, value: i32) -> i32 {
    match which {
        0 => value + 1,
        1 => value * 3,
        2 => value ^ 0x55,
        3 => value << 4,
        4 => value.leading_zeros() as i32,
        5 => value * value,
        6 => value.count_ones() as i32,
        7 => 77 - value,
        8 => value % 7,
        9 => value / 3,
        _ => -1,
    }
}

/// What a thread of a kernel gives.
type Expected = fn(i32) -> i32;

#[test]
fn linked_pieces_give_what_their_source_says() {
    let kernels: [(&str, Expected); 8] = [
        ("call", |i| scaled(i, i as usize & 3) + 5 + (3 * i + 1) + (i + 100)),
        ("read", |i| (1 + (i & 7)) * 10 * (1 + (i & 3)) + 77),
        ("choose", |i| chosen(i % 11, i)),
        ("exchange", |i| 12 * (31 - i)),
        ("sum", |i| 496 + i % 5),
        ("point", |i| [i + 1, 2 * i, i * i + 2][i as usize % 3]),
        ("recurse", |i| fibonacci(i % 10)),
        ("reverse", |i| scaled(31 - i, 2)),
    ];
    for (ours, theirs) in KERNELS.into_iter().zip(FUNCTIONS) {
        for order in [[ours, theirs], [theirs, ours]] {
            let module = module(&order).expect("pieces that fit each other");
            for (kernel, expected) in kernels {
                let memory = run(&module, kernel);
                for thread in 0..THREADS as i32 {
                    assert_eq!(word(&memory, 4 * thread as usize), expected(thread), "{kernel}, thread {thread}");
                }
                let counts = ["counter", "_ZZ5timesILi3EEiiE5calls"].map(|name| variable(&module, &memory, name));
                let expected = match kernel {
                    "call" => [40, 64],
                    "read" => [72, 0],
                    "reverse" => [40, 32],
                    _ => [40, 0],
                };
                assert_eq!(counts, expected, "{kernel}");
            }
        }
    }
}

/// The numbers are those of nvlink 13.5 for the files of sm_75.
#[test]
fn kernels_ask_for_what_the_linker_of_cuda_gives_them() {
    let module = module(&[KERNELS[1], FUNCTIONS[1]]).expect("pieces that fit each other");
    let addresses = addresses(&module);
    let asked = |kernel| {
        let code = module.code(kernel, &addresses).unwrap_or_else(|error| panic!("{error}"));
        (code.resources.registers_per_thread, code.resources.shared_bytes)
    };
    let of_nvlink = [
        ("call", (35, 0)),
        ("choose", (24, 0)),
        ("exchange", (24, 256)),
        ("sum", (54, 16)),
        ("point", (24, 0)),
        ("recurse", (24, 0)),
        ("reverse", (24, 128)),
        ("print", (35, 0)),
    ];
    for (kernel, expected) in of_nvlink {
        assert_eq!(asked(kernel), expected, "{kernel}");
    }
    let code = module.code("print", &addresses).expect("the kernel");
    let calls = |word: &u128| (word >> 34) as u64 & ((1 << 47) - 1);
    assert!(code.words.iter().any(|word| calls(word) << 2 == system_call_address(SystemCall::Print)), "vprintf");
}

#[test]
fn pieces_that_do_not_fit_are_refused() {
    let error = |images: &[&[u8]]| module(images).expect_err("refused").to_string();
    let twice = "two of the cubins that are linked define own_factor, expected one";
    assert_eq!(error(&[KERNELS[0], FUNCTIONS[0], KERNELS[0]]), twice);
    let mixed = "machine code for sm_70 and sm_75 that is to be linked, expected one architecture";
    assert_eq!(error(&[KERNELS[0], FUNCTIONS[1]]), mixed);
}

#[test]
fn what_no_piece_defines_is_an_error_of_the_kernels_that_need_it() {
    let module = module(&[FUNCTIONS[0]]).expect("a piece that needs no other");
    assert_eq!(word(&run(&module, "reverse"), 0), scaled(31, 2));
    let module = self::module(&[KERNELS[0]]).expect("kernels");
    let addresses = addresses(&module);
    // The first that code names, or that an attribute does.
    let needed = ["table", "counter", "factors", "_Z6scaledii", "_Z6chosenii", "_Z9exchangedi", "_Z6summedv"];
    for kernel in ["call", "read", "choose", "exchange", "sum"] {
        let error = module.code(kernel, &addresses).expect_err("nobody has what it needs").to_string();
        let symbol = needed.iter().find(|symbol| error.starts_with(&format!("{kernel} refers to {symbol}, which")));
        assert!(symbol.is_some(), "{error}");
    }
}
