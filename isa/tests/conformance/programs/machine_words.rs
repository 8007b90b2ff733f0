//! Words of machine code that ptxas was not seen to make, in programs that are put together here.

use crate::machine;
use balar_isa::interpreter::step_function;
use balar_isa::machine::{MachineCode, MachineModule, lower};
use balar_isa::program::Program;

/// Bytes of a lane's memory: it reads words from the beginning, and writes from byte 64 on.
const RECORD: usize = 128;
const LANES: usize = 32;

/// A word: its lower half, and its upper one without the control word.
const fn word(low: u64, high: u64) -> u128 {
    (high as u128) << 64 | low as u128 | 0x000f_e200 << 96
}

/// Bits 32 to 63 of a word.
const fn upper(value: u64) -> u64 {
    value << 32
}

/// A program for sm_90 that loads R4 to R7, runs the words, and stores R8 to R11.
fn program(words: &[u128]) -> Program {
    let mut all = vec![
        // S2R R0, SR_TID.X; LDC.64 R2, c[0x0][0x210]; ULDC.64 UR4, c[0x0][0x208]; IMAD.WIDE.U32 R2, R0, 0x80, R2
        word(0x0000_0000_0000_7919, 0x0000_2100),
        word(0x0000_8400_ff02_7b82, 0x0000_0a00),
        word(0x0000_8200_0004_7ab9, 0x0000_0a00),
        word(0x0000_0080_0002_7825, 0x078e_0002),
    ];
    // LDG.E R4, desc[UR4][R2.64], and so on.
    all.extend((0..4).map(|place| word(0x0000_0004_0204_7981 | place << 16 | place << 42, 0x0c1e_1900)));
    all.extend(words);
    // STG.E desc[UR4][R2.64+0x40], R8, and so on; EXIT
    all.extend((0..4).map(|place| word(0x0000_4008_0200_7986 | place << 32 | place << 42, 0x0c10_1904)));
    all.push(word(0x0000_0000_0000_794d, 0x0380_0000));
    let resources = balar_isa::program::Resources { registers_per_thread: 24, ..Default::default() };
    let base = balar_isa::machine::ParameterBase(0x210);
    let code = MachineCode {
        name: "k".to_owned(),
        architecture: 90,
        words: all,
        resources,
        parameter_base: base,
        parameter_bytes: 8,
        ..MachineCode::default()
    };
    lower(&code).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a program on numbers of all kinds, and compares the words that each lane stores with those that a function makes of its numbers.
fn check(words: &[u128], expected: impl Fn([u32; 4]) -> Vec<u32>) {
    let program = program(words);
    let mut state = 7u64;
    let mut memory = vec![0; LANES * RECORD];
    for lane in memory.chunks_mut(RECORD) {
        for word in lane[..16].chunks_mut(4) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word.copy_from_slice(&((state >> 32) as u32).to_le_bytes());
        }
    }
    let after = machine::run_with_images(step_function(), &program, &[0; 8], LANES as u32, &memory, &[]);
    let read = |memory: &[u8], at: usize| u32::from_le_bytes(std::array::from_fn(|byte| memory[at + byte]));
    for lane in 0..LANES {
        let inputs = std::array::from_fn(|place| read(&memory, lane * RECORD + 4 * place));
        for (place, right) in expected(inputs).into_iter().enumerate() {
            let found = read(&after, lane * RECORD + 64 + 4 * place);
            assert_eq!(found, right, "lane {lane}, word {place} of {inputs:x?}");
        }
    }
}

/// `R2P PR, R4, 0x7f`: the predicates of the lane.
const SET_PREDICATES: u128 = word(0x0000_007f_0400_7804, 0);
/// `P2R R8, PR, RZ, 0x7f`
const GET_PREDICATES: u128 = word(0x0000_007f_ff08_7803, 0);

#[test]
fn predicates_under_masks_in_registers() {
    // P2R R8, PR, R6, R5; P2R.B2 R9, PR, R6, R5
    let to_register = [
        SET_PREDICATES,
        word(0x7203 | 8 << 16 | 6 << 24 | upper(5), 0),
        word(0x7203 | 9 << 16 | 6 << 24 | upper(5), 2 << 12),
    ];
    check(&to_register, |[predicates, mask, old, _]| {
        let chosen = mask & 0x7f;
        [0, 16].map(|shift| old & !(chosen << shift) | (predicates & chosen) << shift).to_vec()
    });
    // R2P PR, R6.B1, R5
    let to_predicates = [SET_PREDICATES, word(0x7204 | 6 << 24 | upper(5), 1 << 12), GET_PREDICATES];
    check(&to_predicates, |[before, mask, values, _]| vec![(before & !mask | values >> 8 & mask) & 0x7f]);
}

/// A function of three bits by its table.
fn by_table(table: u32, [a, b, c]: [bool; 3]) -> bool {
    table >> (u32::from(a) << 2 | u32::from(b) << 1 | u32::from(c)) & 1 != 0
}

#[test]
fn functions_of_predicates_and_signs() {
    let tables = [0b1101_0010u64, 0b0110_1011];
    // The destinations are P5 and P6, the first operand is !P1.
    let common = 5 << 17 | 6 << 20 | 1 << 23 | 1 << 26 | tables[0] << 8;
    // PLOP3.LUT P5, P6, !P1, R6.SIGN, P2
    let one = word(0x721d | upper(6) | tables[1] << 16, common | 2 << 4);
    check(&[SET_PREDICATES, one, GET_PREDICATES], |[before, _, value, _]| {
        let operands = [before & 2 == 0, value >> 31 != 0, before & 4 != 0];
        let results = tables.map(|table| u32::from(by_table(table as u32, operands)));
        vec![before & 0x1f | results[0] << 5 | results[1] << 6]
    });
    // PLOP3.LUT P5, P6, !P1, R6.SIGN, R7.SIGN
    let two = word(0x721e | upper(6) | tables[1] << 16, common | 7);
    check(&[SET_PREDICATES, two, GET_PREDICATES], |[before, _, value, other]| {
        let operands = [before & 2 == 0, value >> 31 != 0, other >> 31 != 0];
        let results = tables.map(|table| u32::from(by_table(table as u32, operands)));
        vec![before & 0x1f | results[0] << 5 | results[1] << 6]
    });
}

#[test]
fn the_place_of_code_keeps_words() {
    const HIGH: u64 = 1 << 31;
    let words = [
        // RPCMOV.32 Rpc.LO, R4; RPCMOV.32 Rpc.HI, R5; RPCMOV.32 R8, Rpc.HI; RPCMOV.32 R9, Rpc.LO
        word(0x7352 | upper(4), 0),
        word(0x7352 | upper(5) | HIGH, 0),
        word(0x7353 | 8 << 16 | HIGH, 0),
        word(0x7353 | 9 << 16, 0),
        // RPCMOV.64 Rpc, UR4, where the descriptor of memory is, which is zero.
        word(0x7d54 | upper(4), 1 << 27),
        word(0x7353 | 10 << 16 | HIGH, 0),
        word(0x7353 | 11 << 16, 0),
    ];
    check(&words, |[low, high, _, _]| vec![high, low, 0, 0]);
}

/// Packed conversions of which negative results become zero, which stand above half of another register.
#[test]
fn packed_conversions_that_are_not_negative() {
    // I2F.S16 R4, R4, I2F.S16 R5, R5: numbers of which some are within a byte; FMUL by 2^-6.
    let small = |register: u64| {
        [
            word(0x7306 | register << 16 | upper(register), 0x0010_1400),
            word(0x7820 | register << 16 | register << 24 | upper(0x3c80_0000), 0x0040_0000),
        ]
    };
    // F2IP.S8.F32.NTZ.RELU R8, R4, R5, R6; F2IP.U8.F32.TRUNC.NTZ R9, R4, R5, R6.H1
    let mut words: Vec<u128> = [4, 5].into_iter().flat_map(small).collect();
    let common = 0x7243 | 4 << 24 | upper(5);
    words.push(word(common | 8 << 16, 6 | 1 << 10 | 1 << 11 | 1 << 12));
    words.push(word(common | 9 << 16, 6 | 1 << 8 | 1 << 10 | 3 << 14));
    check(&words, |[a, b, c, _]| {
        let [a, b] = [a, b].map(|word| f32::from(word as i16) / 64.0);
        let nearest = [a, b].map(|value| value.round_ties_even().clamp(0.0, 127.0) as u32);
        let cut = [a, b].map(|value| value.trunc().clamp(0.0, 255.0) as u32);
        vec![c << 16 | nearest[0] << 8 | nearest[1], c >> 16 << 16 | cut[0] << 8 | cut[1]]
    });
}

/// A product with negated matrices is that of matrices whose signs are the contrary.
#[test]
fn negated_matrices() {
    const FIRST: u128 = 1 << 72;
    const SECOND: u128 = 1 << 63;
    let code: &[u8] = include_bytes!("../../machine/matrices_of_ampere.sm_80.cubin");
    let module = MachineModule::read([code.into()]).unwrap_or_else(|error| panic!("{error}"));
    for (name, sign) in [
        ("mma_m16n8k8_f32_f16", 0x8000_8000),
        ("mma_m16n8k8_f16_f16", 0x8000_8000u32),
        ("mma_m16n8k8_f32_bf16", 0x8000_8000),
    ] {
        for (flags, changed) in [(FIRST, [true, false]), (SECOND, [false, true]), (FIRST | SECOND, [true, true])] {
            let code = |flags: u128| {
                let mut code = module.code(name, &[]).unwrap_or_else(|error| panic!("{error}"));
                let product = code.words.iter_mut().find(|word| **word & 0xfff == 0x23c);
                *product.unwrap_or_else(|| panic!("no product in {name}")) ^= flags;
                lower(&code).unwrap_or_else(|error| panic!("{error}"))
            };
            // Small numbers, which follow from their places.
            let memory = |signs: [bool; 2]| {
                let mut memory = vec![0; LANES * 256];
                for (at, word) in memory.chunks_mut(4).enumerate() {
                    let half = |number: u32| 0x3c00 + number % 13 * 0x61;
                    let bits = half(at as u32 * 7) | half(at as u32 * 5 + 3) << 16;
                    let is_negated = match at % 64 {
                        0..8 => signs[0],
                        8..16 => signs[1],
                        _ => false,
                    };
                    let bits = if is_negated { bits ^ sign } else { bits };
                    word.copy_from_slice(&bits.to_le_bytes());
                }
                memory
            };
            let run = |program: &Program, memory: &[u8]| {
                let after = machine::run_with_images(step_function(), program, &[0; 8], LANES as u32, memory, &[]);
                after.chunks(256).flat_map(|lane| lane[128..].to_vec()).collect::<Vec<u8>>()
            };
            let plain = run(&code(0), &memory([false; 2]));
            let negated = run(&code(flags), &memory([false; 2]));
            assert_eq!(negated, run(&code(0), &memory(changed)), "{name} {changed:?}");
            assert_eq!(negated == plain, flags == FIRST | SECOND, "{name} {changed:?}");
        }
    }
}
