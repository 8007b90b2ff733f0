//! Copies that go on while the warp does: from device memory to shared memory, in groups or with a barrier.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{AddressForm, Descriptor, RegisterWidth, Slot, Zeros};
use crate::sass::word::Field;

/// The place in shared memory.
const TO: AddressForm = AddressForm::new(16, Field::new(44, 20));
const TO_REGISTER: Operand = at(Slot::Address(TO));
const TO_UNIFORM: Operand = at(Slot::Address(AddressForm { uniform: Some(64), ..TO }));

/// The place in device memory.
const FROM: AddressForm =
    AddressForm { width: RegisterWidth::Wide, zeros: Zeros::General, ..AddressForm::new(24, Field::new(32, 12)) };

/// Its uniform registers are a descriptor, or are added.
const fn from(shown: Option<u8>) -> Operand {
    let descriptor = Some(Descriptor { register: 64, is_next: false, bit: 76, shown });
    at(Slot::Address(AddressForm { uniform: Some(64), descriptor, ..FROM }))
}

/// Beside a place in shared memory with a uniform register, the next registers may be its descriptor.
const fn from_next(shown: Option<u8>) -> Operand {
    let descriptor = Some(Descriptor { register: 64, is_next: true, bit: 76, shown });
    at(Slot::Address(AddressForm { descriptor, ..FROM }))
}

/// Where it is false, nothing is copied, or zeros.
const CONDITION: Operand = PS.shown(Shown::Where(|word| word.bits(87, 4) != 7));

const COPY: &[Modifier] = &[
    function(Aspect::Extended, |_| Some(".E"), 0),
    choice(Aspect::Bypass, 81, 1, &[".BYPASS", ""]),
    EVICTION,
    choice(Aspect::Prefetch, 71, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]),
    choice(Aspect::Size, 73, 3, &[NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, "", ".64", ".128", NO_SUCH]),
    flag(Aspect::ZeroFill, 82, ".ZFILL"),
    choice(
        Aspect::Order,
        77,
        4,
        &[
            "",
            ".CONSTANT",
            ".CONSTANT",
            ".CONSTANT",
            ".CONSTANT",
            ".MMIO",
            "",
            ".MMIO",
            ".MMIO",
            ".CONSTANT",
            ".MMIO",
            ".CONSTANT",
            ".MMIO",
            ".CONSTANT",
            ".CONSTANT",
            ".CONSTANT",
        ],
    ),
    choice(
        Aspect::Scope,
        77,
        4,
        &[
            "",
            ".PRIVATE",
            ".CTA",
            ".CTA.PRIVATE",
            "",
            ".CTA",
            ".GPU.PRIVATE",
            ".CTA.PRIVATE",
            ".SM",
            ".SM",
            ".VC",
            ".SM.PRIVATE",
            ".GPU",
            ".VC",
            ".VC.PRIVATE",
            ".GPU",
        ],
    ),
];
const FETCHES: &[(Field, u64)] = &[(Field::new(70, 1), 1)];

/// A place in the shared memory of another CTA of the cluster, and its barrier.
const fn remote(width: u8) -> Operand {
    at(Slot::Address(AddressForm {
        uniform: Some(64),
        width: RegisterWidth::Bit(width),
        zeros: Zeros::UnlessWide,
        ..AddressForm::new(24, Field::new(40, 24))
    }))
}

/// A barrier in shared memory.
const BARRIER: Operand =
    at(Slot::Address(AddressForm { uniform: Some(64), ..AddressForm::new(24, Field::new(40, 24)) }));

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Ldgsts, &[0xfae], COPY, &[TO_REGISTER, from(Some(101)), CONDITION])
        .fixed(FETCHES)
        .between(80, 89),
    Encoding::new(Opcode::Ldgsts, &[0xfae], COPY, &[TO_REGISTER, from(None), CONDITION]).fixed(FETCHES).since(90),
    Encoding::new(Opcode::Ldgsts, &[0xdae], COPY, &[TO_UNIFORM, from_next(Some(101)), CONDITION])
        .fixed(FETCHES)
        .between(80, 89),
    Encoding::new(Opcode::Ldgsts, &[0xdae], COPY, &[TO_UNIFORM, from_next(None), CONDITION]).fixed(FETCHES).since(90),
    Encoding::new(Opcode::Ldgdepbar, &[0x9af], &[], &[]).since(80),
    Encoding::new(Opcode::Arrives, &[0x9b0], &[text(".LDGSTSBAR"), text(".64")], &[BARRIER])
        .fixed(&[(Field::new(73, 3), 5)])
        .between(80, 89),
    Encoding::new(
        Opcode::Arrives,
        &[0x9b0],
        &[text(".LDGSTSBAR"), text(".64"), choice(Aspect::Mode, 70, 2, &["", ".ARVCNT", ".TRANSCNT", NO_SUCH])],
        &[BARRIER],
    )
    .fixed(&[(Field::new(73, 3), 5)])
    .since(90),
    Encoding::new(
        Opcode::Stas,
        &[0xdbd],
        &[choice(Aspect::Size, 73, 3, &[NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, "", ".64", ".128", NO_SUCH])],
        &[remote(90), RB],
    )
    .since(90),
    Encoding::new(
        Opcode::Redas,
        &[0xdbe],
        &[
            choice(Aspect::Operation, 87, 4, &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"]),
            choice(Aspect::Type, 73, 3, &["", ".S32", ".64"]),
        ],
        &[remote(72), RB],
    )
    .since(90),
];
