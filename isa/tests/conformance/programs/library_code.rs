//! Instructions that NVIDIA's libraries have for sm_75 and its compilers make of no PTX, in programs of a few words.

use crate::machine;
use balar_isa::machine::{MachineCode, lower};
use balar_isa::program::{ParameterSlot, Program, Resources};

const THREADS: u32 = 32;

/// Words, the upper half first, as the disassembler prints them.
const S2R_R3_TID: [u64; 2] = [0x000e_2400_0000_2100, 0x0000_0000_0003_7919];
/// `MOV R7, 0x10`
const MOV_R7_16: [u64; 2] = [0x000f_ca00_0000_0f00, 0x0000_0010_0007_7802];
/// `IMAD.WIDE R4, R3, R7, c[0x0][0x160]` and `R12` with `c[0x0][0x168]`: an element of 16 bytes of either parameter.
const RESULT_ADDRESS: [u64; 2] = [0x000f_c800_078e_0207, 0x0000_5800_0304_7625];
const SOURCE_ADDRESS: [u64; 2] = [0x000f_c800_078e_0207, 0x0000_5a00_030c_7625];
/// `ISETP.GT.U32.AND P3, PT, R7, R3, PT`
const P3_IS_16_ABOVE_TID: [u64; 2] = [0x000f_d800_03f6_4070, 0x0000_0003_0700_720c];
/// `MOV R15, 0x18` and `ISETP.GT.U32.AND P4, PT, R15, R3, PT`
const MOV_R15_24: [u64; 2] = [0x000f_ca00_0000_0f00, 0x0000_0018_000f_7802];
const P4_IS_24_ABOVE_TID: [u64; 2] = [0x000f_d800_03f8_4070, 0x0000_0003_0f00_720c];
/// `STG.E.128.SYS [R4], R8`
const STORE: [u64; 2] = [0x000f_e200_0010_ed00, 0x0000_0008_0400_7386];
const EXIT: [u64; 2] = [0x000f_ea00_0380_0000, 0x0000_0000_0000_794d];

/// `MOV` of all ones to a register.
fn ones(register: u64) -> [u64; 2] {
    [0x000f_ca00_0000_0f00, 0xffff_ffff_0000_7802 | register << 16]
}

/// A kernel with two pointers.
fn program(words: &[[u64; 2]]) -> Program {
    let code = MachineCode {
        name: "k".to_owned(),
        architecture: 75,
        words: words.iter().map(|[upper, lower]| u128::from(*upper) << 64 | u128::from(*lower)).collect(),
        resources: Resources { registers_per_thread: 16, ..Resources::default() },
        parameters: [0, 8].map(|offset| ParameterSlot { offset, bytes: 8 }).to_vec(),
        parameter_bytes: 16,
        ..MachineCode::default()
    };
    lower(&code).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a kernel whose results lie at address 0, 16 bytes a thread.
fn results(program: &Program, memory: &[u8], source: u64) -> Vec<[u32; 4]> {
    let parameters = [0_u64, source].map(u64::to_le_bytes).concat();
    let after = machine::run(program, &parameters, THREADS, memory);
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| after[at + byte]));
    (0..THREADS as usize).map(|thread| std::array::from_fn(|place| word(16 * thread + 4 * place))).collect()
}

/// `@P4 LDG.E R8, [R12], P3`: threads 0 to 15 load, 16 to 23 get zeros, 24 to 31 keep what they have. Where the predicate is false, the
/// address is outside the memory.
#[test]
fn a_load_makes_zeros_where_its_predicate_is_false() {
    const RESULTS: usize = 16 * THREADS as usize;
    let memory: Vec<u8> = (0..RESULTS + 16 * 16).map(|at| (at * 151 % 253) as u8 | 0x80).collect();
    // The size field of the word, the bytes that it stands for, and how the value is extended.
    let sizes =
        [(0, 1, false), (1, 1, true), (2, 2, false), (3, 2, true), (4, 4, false), (5, 8, false), (6, 16, false)];
    for (size, bytes, is_signed) in sizes {
        for is_inverted in [false, true] {
            let load = [
                0x000e_a200_001e_e104 | size << 9 | if is_inverted { 8 } else { 0 },
                0x0000_0000_0c08_7381 & !0xf000 | 4 << 12,
            ];
            let program = program(&[
                S2R_R3_TID,
                MOV_R7_16,
                RESULT_ADDRESS,
                SOURCE_ADDRESS,
                P3_IS_16_ABOVE_TID,
                MOV_R15_24,
                P4_IS_24_ABOVE_TID,
                ones(8),
                ones(9),
                ones(10),
                ones(11),
                load,
                STORE,
                EXIT,
            ]);
            // Inverted, threads 16 to 23 load and 0 to 15 get zeros: their addresses are below zero.
            let source =
                if is_inverted { (RESULTS as u64).wrapping_sub(16 * 16 + RESULTS as u64) } else { RESULTS as u64 };
            let found = results(&program, &memory, source);
            let registers = bytes.max(4) / 4;
            for (thread, found) in found.into_iter().enumerate() {
                let mut expected = [u32::MAX; 4];
                let loads = (thread < 16) != is_inverted;
                for (register, expected) in expected[..registers].iter_mut().enumerate().filter(|_| thread < 24) {
                    let at = (source.wrapping_add(16 * thread as u64)) as usize + 4 * register;
                    let part = |byte: usize| if byte < bytes { memory[at + byte] } else { 0 };
                    let word = if loads { u32::from_le_bytes(std::array::from_fn(part)) } else { 0 };
                    // All bytes of the memory have their topmost bit.
                    let sign = if loads && is_signed { u32::MAX << (8 * bytes) } else { 0 };
                    *expected = word | sign;
                }
                assert_eq!(found, expected, "size {size}, inverted {is_inverted}, thread {thread}");
            }
        }
    }
}

/// `LDC` without an index: what a launch says of its grid and block lies before the parameters (attention's backward kernels of PyTorch read it
/// as halves).
#[test]
fn constants_before_the_parameters_are_loaded_without_an_index() {
    const SOURCE: u64 = 0x8765_4321_fedc_ba90;
    let load = |register: u64, offset: u64, size: u64| {
        [0x000e_2400_0000_0000 | size << 9, 0xff00_7b82 | register << 16 | offset << 38]
    };
    let (u8_of, s8_of, u16_of, word_of, pair_of) = (0, 1, 2, 4, 5);
    for (loads, expected) in [
        (
            vec![load(8, 0xc, u16_of), load(9, 0x0, word_of), load(10, 0x169, u8_of), load(11, 0x169, s8_of)],
            [1, THREADS, 0xba, 0xffff_ffba],
        ),
        (vec![load(8, 0x168, pair_of), load(10, 0x0, pair_of)], [0xfedc_ba90, 0x8765_4321, THREADS, 1]),
    ] {
        let words = [vec![S2R_R3_TID, MOV_R7_16, RESULT_ADDRESS], loads, vec![STORE, EXIT]].concat();
        let found = results(&program(&words), &vec![0; 16 * THREADS as usize], SOURCE);
        assert!(found.iter().all(|found| *found == expected), "{found:x?}");
    }
}

/// `F2FP.PACK_AB R8, R12, R13` and `.RZ`. The halves follow from IEEE 754: the largest is 65504, the smallest 2^-24; not-a-number is
/// 0x7fff, as in all conversions of these GPUs.
#[test]
fn two_singles_become_two_halves() {
    let two_to = |exponent: i32| 2_f32.powi(exponent);
    // A single, the nearest half, the one towards zero.
    let cases = [
        (1.0, 0x3c00, 0x3c00),
        (-2.5, 0xc100, 0xc100),
        (-0.0, 0x8000, 0x8000),
        (65504.0, 0x7bff, 0x7bff),
        (65519.0, 0x7bff, 0x7bff),
        (65520.0, 0x7c00, 0x7bff),
        (-1.0e6, 0xfc00, 0xfbff),
        (f32::NEG_INFINITY, 0xfc00, 0xfc00),
        (f32::NAN, 0x7fff, 0x7fff),
        (1.0 + two_to(-11), 0x3c00, 0x3c00),
        (1.0 + 3.0 * two_to(-11), 0x3c02, 0x3c01),
        (two_to(-24), 0x0001, 0x0001),
        (two_to(-25), 0x0000, 0x0000),
        (-1.5 * two_to(-25), 0x8001, 0x8000),
        (1.0e-40, 0x0000, 0x0000),
        (two_to(-14), 0x0400, 0x0400),
    ];
    const RESULTS: usize = 16 * THREADS as usize;
    // Of thread n: the case n as the first operand, the case 7 n + 3 as the second.
    let case = |number: usize| cases[number % cases.len()];
    let mut memory = vec![0; 2 * RESULTS];
    for thread in 0..THREADS as usize {
        let (first, second) = (case(thread), case(7 * thread + 3));
        memory[RESULTS + 16 * thread..][..4].copy_from_slice(&first.0.to_le_bytes());
        memory[RESULTS + 16 * thread + 4..][..4].copy_from_slice(&second.0.to_le_bytes());
    }
    let program = program(&[
        S2R_R3_TID,
        MOV_R7_16,
        RESULT_ADDRESS,
        SOURCE_ADDRESS,
        ones(11),
        // LDG.E.64.SYS R12, [R12]
        [0x000e_a200_001e_eb00, 0x0000_0000_0c0c_7381],
        [0x000f_e200_0000_00ff, 0x0000_000d_0c08_723e],
        [0x000f_e200_0001_80ff, 0x0000_000d_0c09_723e],
        // F2FP.PACK_AB R10, R12, 1
        [0x000f_e200_0000_00ff, 0x3f80_0000_0c0a_783e],
        STORE,
        EXIT,
    ]);
    for (thread, found) in results(&program, &memory, RESULTS as u64).into_iter().enumerate() {
        let (first, second) = (case(thread), case(7 * thread + 3));
        let expected = [first.1 << 16 | second.1, first.2 << 16 | second.2, first.1 << 16 | 0x3c00, u32::MAX];
        assert_eq!(found, expected, "{} and {}", first.0, second.0);
    }
}

/// `LEA.HI R8, R12, R13, 0x80000003, 0x5`, and `.X`, which adds a carry: the upper half of the shifted pair is added to a register.
#[test]
fn the_upper_half_of_an_address_may_be_an_immediate() {
    const RESULTS: usize = 16 * THREADS as usize;
    const UPPER: u64 = 0x8000_0003;
    let memory: Vec<u8> = (0..2 * RESULTS).map(|at| (at * 73 % 251) as u8).collect();
    let lea = |register: u64, carries: u64| {
        // The carry is PT.
        [0x000f_e400_0381_000d | 7 << 17 | 5 << 11 | carries << 10, UPPER << 32 | 0x0c00_7411 | register << 16]
    };
    let program = program(&[
        S2R_R3_TID,
        MOV_R7_16,
        RESULT_ADDRESS,
        SOURCE_ADDRESS,
        ones(10),
        ones(11),
        // LDG.E.64.SYS R12, [R12]
        [0x000e_a200_001e_eb00, 0x0000_0000_0c0c_7381],
        lea(8, 0),
        lea(9, 1),
        STORE,
        EXIT,
    ]);
    for (thread, found) in results(&program, &memory, RESULTS as u64).into_iter().enumerate() {
        let word =
            |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| memory[RESULTS + 16 * thread + at + byte]));
        let shifted = (UPPER << 32 | u64::from(word(0))) << 5;
        let sum = word(4).wrapping_add((shifted >> 32) as u32);
        assert_eq!(found[..2], [sum, sum.wrapping_add(1)], "thread {thread}");
    }
}
