//! Accesses to device memory and by generic addresses, from Ampere on. Uniform registers may describe the memory there, and one field says
//! order and scope together.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, ModifierForm, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{AddressForm, Descriptor, RegisterWidth, Slot, Zeros};
use crate::sass::word::Field;

const PLAIN: AddressForm = AddressForm::new(24, Field::new(40, 24));

/// An address with uniform registers.
const fn described(uniform: u8, width: u8, bit: u8, shown: Option<u8>) -> AddressForm {
    AddressForm {
        uniform: Some(uniform),
        // The text of Hopper has all registers.
        zeros: if shown.is_some() { Zeros::Uniform } else { Zeros::Both },
        width: RegisterWidth::Bit(width),
        descriptor: Some(Descriptor { register: uniform, is_next: false, bit, shown }),
        ..PLAIN
    }
}

const fn address(form: AddressForm) -> Operand {
    at(Slot::Address(form))
}

const AT: Operand = address(PLAIN);
/// Generic addresses have their offset lower.
const AT_GENERIC: Operand = address(AddressForm { offset: Field::new(32, 32), ..PLAIN });

/// The addresses of loads, of stores, of atomics and of reductions. The text of Ampere has their descriptor where bit 101 is set.
const AMPERE: [Operand; 4] = addresses(Some(101));
/// The text of Hopper always has it.
const HOPPER: [Operand; 4] = addresses(None);

const fn addresses(shown: Option<u8>) -> [Operand; 4] {
    [
        address(described(32, 90, 76, shown)),
        address(described(64, 90, 76, shown)),
        // Atomics have their operation where others have the width.
        address(described(64, 70, 71, shown)),
        address(described(64, 90, 71, shown)),
    ]
}

/// A predicate beside the guard: where it is false, the destination becomes zero without an access.
const ZERO_UNLESS: Operand = at(Slot::InvertedPredicateSource(64)).shown(Shown::Where(|word| word.bits(64, 4) != 0));

const FETCH_SIZE: Modifier = choice(Aspect::Prefetch, 68, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]);
const SIZE: Modifier = choice(Aspect::Size, 73, 3, &[".U8", ".S8", ".U16", ".S16", "", ".64", ".128", NO_SUCH]);

const LOADED: &[Modifier] = &[EXTENDED, EVICTION, FETCH_SIZE, SIZE, LOAD_ORDER, LOAD_SCOPE];
const STORED: &[Modifier] = &[EXTENDED, EVICTION, SIZE, AMPERE_STORE_ORDER, AMPERE_STORE_SCOPE];

const OPERATIONS: &[&str] = &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR", ".EXCH", ".SAFEADD"];
const ATOMIC: Modifier = choice(Aspect::Operation, 87, 4, OPERATIONS);
const REDUCTION: Modifier = choice(Aspect::Operation, 87, 3, OPERATIONS);
const CAS: Modifier = text_of_operation(".CAS");
/// By generic addresses, which may be of shared memory.
const GENERIC_CAS: Modifier = choice(Aspect::Operation, 87, 2, &[".CAS", ".CAST", NO_SUCH, ".CAST.SPIN"]);

const fn text_of_operation(text: &'static str) -> Modifier {
    Modifier { aspect: Aspect::Operation, form: ModifierForm::Text(text) }
}
/// Ampere's atomics have one field for all types.
const AMPERE_TYPE: Modifier =
    choice(Aspect::Type, 73, 4, &["", ".S32", ".64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".F64.RN"]);
/// Hopper's atomics of integers, and of floats, have opcodes of their own.
const INTEGER_TYPE: Modifier = choice(Aspect::Type, 73, 3, &["", ".S32", ".64", ".S64", ".128"]);
const FLOAT_TYPE: Modifier = choice(
    Aspect::Type,
    73,
    4,
    &[
        ".F16x2.RN",
        ".F16x4.RN",
        ".F16x8.RN",
        ".BF16x2.RN",
        ".BF16x4.RN",
        ".BF16x8.RN",
        NO_SUCH,
        NO_SUCH,
        NO_SUCH,
        ".F32.FTZ.RN",
        ".F32x2.FTZ.RN",
        ".F32x4.FTZ.RN",
        ".F32.RN",
        ".F32x2.RN",
        ".F32x4.RN",
        ".F64.RN",
    ],
);
const FLOAT_OPERATION: Modifier = choice(Aspect::Operation, 88, 2, &[".ADD", ".MIN", ".MAX", NO_SUCH]);
const SWAP_TYPE: Modifier = choice(Aspect::Type, 73, 4, &["", NO_SUCH, ".64"]);
const HOPPER_SWAP_TYPE: Modifier = choice(Aspect::Type, 73, 3, &["", NO_SUCH, ".64", NO_SUCH, ".128"]);

/// An atomic with an operation and a type.
macro_rules! atomic {
    ($operation:ident, $type:ident) => {
        &[EXTENDED, $operation, EVICTION, $type, AMPERE_STORE_ORDER, AMPERE_STORE_SCOPE]
    };
}

/// Set in every word with uniform registers.
const IS_EXTENDED: &[(Field, u64)] = &[(Field::new(72, 1), 1)];

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Ldg, &[0x381], LOADED, &[PD_IF_ANY, RD, AT, ZERO_UNLESS]).since(80),
    Encoding::new(Opcode::Ldg, &[0x981], LOADED, &[PD_IF_ANY, RD, AMPERE[0], ZERO_UNLESS]).between(80, 89),
    Encoding::new(Opcode::Ldg, &[0x981], LOADED, &[PD_IF_ANY, RD, HOPPER[0], ZERO_UNLESS]).since(90),
    Encoding::new(Opcode::Stg, &[0x386], STORED, &[AT, RB]).since(80),
    Encoding::new(Opcode::Stg, &[0x986], STORED, &[AMPERE[1], RB]).fixed(IS_EXTENDED).between(80, 89),
    Encoding::new(Opcode::Stg, &[0x986], STORED, &[HOPPER[1], RB]).fixed(IS_EXTENDED).since(90),
    Encoding::new(Opcode::Ld, &[0x980], LOADED, &[RD, AT_GENERIC, ZERO_UNLESS]).since(80),
    Encoding::new(Opcode::Ld, &[0x980], LOADED, &[RD, AMPERE[0], ZERO_UNLESS]).between(80, 89),
    Encoding::new(Opcode::Ld, &[0x980], LOADED, &[RD, HOPPER[0], ZERO_UNLESS]).since(90),
    Encoding::new(Opcode::St, &[0x385], STORED, &[AT_GENERIC, RC]).since(80),
    Encoding::new(Opcode::St, &[0x985], STORED, &[AMPERE[1], RB]).fixed(IS_EXTENDED).between(80, 89),
    Encoding::new(Opcode::St, &[0x985], STORED, &[HOPPER[1], RB]).fixed(IS_EXTENDED).since(90),
    // Atomics of Ampere.
    Encoding::new(Opcode::Atomg, &[0x3a8], atomic!(ATOMIC, AMPERE_TYPE), &[PD, RD, AT, RB])
        .ignoring(64, 8)
        .between(80, 89),
    Encoding::new(Opcode::Atomg, &[0x9a8], atomic!(ATOMIC, AMPERE_TYPE), &[PD, RD, AMPERE[2], RB]).between(80, 89),
    Encoding::new(Opcode::Atomg, &[0x3a9], atomic!(CAS, SWAP_TYPE), &[PD, RD, AT, RB, RC]).between(80, 89),
    Encoding::new(Opcode::Atom, &[0x38a], atomic!(ATOMIC, AMPERE_TYPE), &[PD, RD, AT, RB])
        .ignoring(64, 8)
        .between(80, 89),
    Encoding::new(Opcode::Atom, &[0x98a], atomic!(ATOMIC, AMPERE_TYPE), &[PD, RD, AMPERE[2], RB]).between(80, 89),
    Encoding::new(Opcode::Atom, &[0x38b], atomic!(GENERIC_CAS, SWAP_TYPE), &[PD, RD, AT, RB, RC]).between(80, 89),
    Encoding::new(Opcode::Red, &[0x98e], atomic!(REDUCTION, AMPERE_TYPE), &[AT, RB]).ignoring(70, 1).between(80, 89),
    Encoding::new(Opcode::Red, &[0x98e], atomic!(REDUCTION, AMPERE_TYPE), &[AMPERE[3], RB])
        .ignoring(70, 1)
        .between(80, 89),
    Encoding::new(Opcode::Atom, &[0xf8a], atomic!(AMPERE_ARRIVAL, ARRIVAL_TYPE), &[PD, RD, at_barrier(Zeros::Uniform)])
        .between(80, 89),
    // Atomics of Hopper.
    Encoding::new(Opcode::Atomg, &[0x3a8], atomic!(ATOMIC, INTEGER_TYPE), &[PD, RD, AT, RB]).ignoring(64, 8).since(90),
    Encoding::new(Opcode::Atomg, &[0x9a8], atomic!(ATOMIC, INTEGER_TYPE), &[PD, RD, HOPPER[2], RB]).since(90),
    Encoding::new(Opcode::Atomg, &[0x3a3], atomic!(FLOAT_OPERATION, FLOAT_TYPE), &[PD, RD, AT, RB])
        .ignoring(64, 8)
        .since(90),
    Encoding::new(Opcode::Atomg, &[0x9a3], atomic!(FLOAT_OPERATION, FLOAT_TYPE), &[PD, RD, HOPPER[2], RB]).since(90),
    Encoding::new(Opcode::Atomg, &[0x3a9], atomic!(CAS, HOPPER_SWAP_TYPE), &[PD, RD, AT, RB, RC]).since(90),
    Encoding::new(Opcode::Atom, &[0x38a], atomic!(ATOMIC, INTEGER_TYPE), &[PD, RD, AT, RB]).ignoring(64, 8).since(90),
    Encoding::new(Opcode::Atom, &[0x98a], atomic!(ATOMIC, INTEGER_TYPE), &[PD, RD, HOPPER[2], RB]).since(90),
    Encoding::new(Opcode::Atom, &[0x38b], atomic!(GENERIC_CAS, HOPPER_SWAP_TYPE), &[PD, RD, AT, RB, RC]).since(90),
    Encoding::new(Opcode::Redg, &[0x98e], atomic!(REDUCTION, INTEGER_TYPE), &[AT, RB]).ignoring(70, 1).since(90),
    Encoding::new(Opcode::Redg, &[0x98e], atomic!(REDUCTION, INTEGER_TYPE), &[HOPPER[3], RB]).ignoring(70, 1).since(90),
    Encoding::new(Opcode::Redg, &[0x9a6], atomic!(FLOAT_OPERATION, FLOAT_TYPE), &[AT, RB]).ignoring(70, 1).since(90),
    Encoding::new(Opcode::Redg, &[0x9a6], atomic!(FLOAT_OPERATION, FLOAT_TYPE), &[HOPPER[3], RB])
        .ignoring(70, 1)
        .since(90),
    Encoding::new(Opcode::Atom, &[0x3a2], atomic!(FLOAT_OPERATION, FLOAT_TYPE), &[PD, RD, AT, RB])
        .ignoring(64, 8)
        .since(90),
    Encoding::new(Opcode::Atom, &[0x9a2], atomic!(FLOAT_OPERATION, FLOAT_TYPE), &[PD, RD, HOPPER[2], RB]).since(90),
    Encoding::new(Opcode::Atom, &[0xf8a], atomic!(ARRIVAL, ARRIVAL_TYPE), &[PD, RD, at_barrier(Zeros::Both)]).since(90),
    // Values that many GPUs have at an address, put together.
    Encoding::new(
        Opcode::Ldgmc,
        &[0x9a4],
        &[
            EXTENDED_ALWAYS,
            choice(Aspect::Operation, 87, 4, &[".ADD", ".MIN", ".MAX", NO_SUCH, NO_SUCH, ".AND", ".OR", ".XOR"]),
            choice(Aspect::Type, 73, 3, &[".32", ".S32", ".64", ".S64"]),
            SYSTEM,
        ],
        &[RD, HOPPER[2]],
    )
    .since(90),
    Encoding::new(
        Opcode::Ldgmc,
        &[0x9a5],
        &[EXTENDED_ALWAYS, choice(Aspect::Operation, 88, 2, &[".ADD", ".MIN", ".MAX", ".F32ADD"]), FLOAT_TYPE, SYSTEM],
        &[RD, HOPPER[2]],
    )
    .since(90),
];

const EXTENDED_ALWAYS: Modifier = function(Aspect::Extended, |word| word.bit(72).then_some(".E"), 1 << 72);
const SYSTEM: Modifier = function(Aspect::Order, |word| (word.bits(77, 4) == 10).then_some(".STRONG.SYS"), 0xf << 77);

/// Barriers in shared memory, and counters, by generic addresses.
const fn at_barrier(zeros: Zeros) -> Operand {
    address(AddressForm { uniform: Some(64), width: RegisterWidth::Bit(70), zeros, ..PLAIN })
}
const AMPERE_ARRIVAL: Modifier = function(
    Aspect::Operation,
    |word| match (word.bits(87, 4), word.bits(73, 4)) {
        (10, 0) => Some(".POPC.INC"),
        (9, 2) => Some(".ARRIVE"),
        _ => None,
    },
    0xf << 87,
);
const ARRIVAL: Modifier = function(
    Aspect::Operation,
    |word| match (word.bits(87, 4), word.bits(73, 4)) {
        (11, 0) => Some(".POPC.INC"),
        (10, 2) => Some(".ARRIVE"),
        _ => None,
    },
    0xf << 87,
);
const ARRIVAL_TYPE: Modifier = choice(Aspect::Type, 73, 4, &[".32", NO_SUCH, ".64"]);
