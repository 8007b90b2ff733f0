//! Loads, stores, atomics, fences and caches.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{AddressForm, Descriptor, RegisterWidth, Slot, Zeros};
use crate::sass::word::Field;

const PLAIN: AddressForm = AddressForm::new(24, Field::new(40, 24));
const fn address(form: AddressForm) -> Operand {
    at(Slot::Address(form))
}

/// A register and an offset.
const AT: Operand = address(PLAIN);
/// With a uniform register in bits 32 to 37, for loads.
const AT_UNIFORM_LOAD: Operand = address(AddressForm { uniform: Some(32), width: RegisterWidth::Bit(90), ..PLAIN });
/// With a uniform register in bits 64 to 69, for everything that has data in bits 32 to 39.
const AT_UNIFORM_STORE: Operand = address(AddressForm { uniform: Some(64), width: RegisterWidth::Bit(90), ..PLAIN });
/// Shared memory: the register may be scaled.
const AT_SHARED: Operand = address(AddressForm { has_scale: true, ..PLAIN });
const AT_SHARED_UNIFORM_LOAD: Operand = address(AddressForm { uniform: Some(32), has_scale: true, ..PLAIN });
const AT_SHARED_UNIFORM_STORE: Operand = address(AddressForm { uniform: Some(64), has_scale: true, ..PLAIN });
const AT_LOCAL_UNIFORM_LOAD: Operand = address(AddressForm { uniform: Some(32), ..PLAIN });
const AT_LOCAL_UNIFORM_STORE: Operand = address(AddressForm { uniform: Some(64), ..PLAIN });
/// The text of Hopper has all registers.
const AT_UNIFORM_QUERY: Operand =
    address(AddressForm { uniform: Some(32), width: RegisterWidth::Bit(90), zeros: Zeros::Both, ..PLAIN });
/// Local memory from Ampere on: the uniform registers may be a descriptor.
const fn local(uniform: u8, shown: Option<u8>) -> Operand {
    let descriptor = Some(Descriptor { register: uniform, is_next: false, bit: 76, shown });
    address(AddressForm { uniform: Some(uniform), descriptor, ..PLAIN })
}
/// For atomics, which have their operation where others have the width.
const AT_UNIFORM_ATOMIC: Operand = address(AddressForm { uniform: Some(64), width: RegisterWidth::Wide, ..PLAIN });
/// Generic addresses have their offset lower.
const AT_GENERIC: Operand = address(AddressForm { offset: Field::new(32, 32), ..PLAIN });

/// A predicate that a load writes, where it is one.
const LOADED: Operand = PD_IF_ANY;

/// Turing's loads may have a predicate beside the guard: where it is false, the destination becomes zero without an access.
const ZERO_UNLESS: Operand = at(Slot::InvertedPredicateSource(64)).shown(Shown::Where(|word| word.bits(64, 4) != 0));

const ATOMIC_TYPE: Modifier =
    choice(Aspect::Type, 73, 3, &["", ".S32", ".64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".F64.RN", NO_SUCH]);
const OPERATIONS: &[&str] = &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR", ".EXCH"];
const ATOMIC: Modifier = choice(Aspect::Operation, 87, 4, OPERATIONS);
const HOPPER_SHARED_TYPE: Modifier = choice(Aspect::Type, 73, 3, &["", ".S32", ".64", NO_SUCH, ".128"]);
const SHARED_SWAP: Modifier = choice(Aspect::Operation, 87, 2, &[".CAS", ".CAST", NO_SUCH, ".CAST.SPIN"]);
const SHARED_TYPE: Modifier = choice(Aspect::Type, 73, 3, &["", ".S32", ".64"]);
const SWAP_TYPE: Modifier = choice(Aspect::Type, 73, 3, &["", NO_SUCH, ".64"]);

const GLOBAL: &[Modifier] = &[EXTENDED, EVICTION, SIZE, ORDER, SCOPE];
const STORED: &[Modifier] = &[EXTENDED, EVICTION, SIZE, STORE_ORDER, SCOPE];
/// Turing may fetch more than a sector.
const FETCHED: &[Modifier] = &[EXTENDED, EVICTION, FETCH_SIZE, SIZE, ORDER, SCOPE];
const FETCH_SIZE: Modifier = choice(Aspect::Prefetch, 68, 2, &["", ".LTC64B", ".LTC128B", NO_SUCH]);

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Ldg, &[0x381], GLOBAL, &[LOADED, RD, AT]).until(75),
    Encoding::new(Opcode::Ldg, &[0x381], FETCHED, &[LOADED, RD, AT, ZERO_UNLESS]).since(75).until(75),
    Encoding::new(Opcode::Ldg, &[0x981], FETCHED, &[LOADED, RD, AT_UNIFORM_LOAD, ZERO_UNLESS]).since(75).until(75),
    Encoding::new(Opcode::Stg, &[0x386], STORED, &[AT, RB]).until(75),
    Encoding::new(Opcode::Stg, &[0x986], STORED, &[AT_UNIFORM_STORE, RB])
        .fixed(&[(Field::new(72, 1), 1)])
        .since(75)
        .until(75),
    Encoding::new(Opcode::Ld, &[0x980], GLOBAL, &[RD, AT_GENERIC]).until(75),
    Encoding::new(Opcode::Ld, &[0x980], GLOBAL, &[RD, AT_GENERIC, ZERO_UNLESS]).since(75).until(75),
    Encoding::new(Opcode::Ld, &[0x980], GLOBAL, &[RD, AT_UNIFORM_LOAD, ZERO_UNLESS]).since(75).until(75),
    Encoding::new(Opcode::St, &[0x385], STORED, &[AT_GENERIC, RC]).until(75),
    Encoding::new(Opcode::St, &[0x985], STORED, &[AT_UNIFORM_STORE, RB]).since(75).until(75),
    Encoding::new(Opcode::Lds, &[0x984], &[flag(Aspect::Mode, 76, ".U"), SIZE], &[RD, AT]),
    Encoding::new(Opcode::Lds, &[0x984], &[flag(Aspect::Mode, 76, ".U"), SIZE], &[RD, AT_SHARED]).since(75),
    Encoding::new(Opcode::Lds, &[0x984], &[flag(Aspect::Mode, 76, ".U"), SIZE], &[RD, AT_SHARED_UNIFORM_LOAD])
        .since(75),
    Encoding::new(Opcode::Sts, &[0x388], &[SIZE], &[AT, RB]),
    Encoding::new(Opcode::Sts, &[0x388], &[SIZE], &[AT_SHARED, RB]).since(75),
    Encoding::new(Opcode::Sts, &[0x988], &[SIZE], &[AT_SHARED_UNIFORM_STORE, RB]).since(75),
    Encoding::new(Opcode::Ldl, &[0x983], &[EVICTION, SIZE], &[RD, AT]),
    Encoding::new(Opcode::Ldl, &[0x983], &[EVICTION, SIZE], &[RD, AT_LOCAL_UNIFORM_LOAD]).between(75, 75),
    Encoding::new(Opcode::Ldl, &[0x983], &[EVICTION, SIZE], &[RD, local(32, Some(101))]).between(80, 89),
    Encoding::new(Opcode::Ldl, &[0x983], &[EVICTION, SIZE], &[RD, local(32, None)]).since(90),
    Encoding::new(Opcode::Stl, &[0x387], &[EVICTION, SIZE], &[AT, RB]),
    Encoding::new(Opcode::Stl, &[0x987], &[EVICTION, SIZE], &[AT_LOCAL_UNIFORM_STORE, RB]).between(75, 75),
    Encoding::new(Opcode::Stl, &[0x987], &[EVICTION, SIZE], &[local(64, Some(101)), RB]).between(80, 89),
    Encoding::new(Opcode::Stl, &[0x987], &[EVICTION, SIZE], &[local(64, None), RB]).since(90),
    Encoding::new(
        Opcode::Ldc,
        &[0xb82],
        &[SIZE_TO_64, choice(Aspect::Mode, 78, 2, &["", ".IL", ".IS", ".ISL"])],
        &[RD, at(Slot::IndexedConstant)],
    ),
    Encoding::new(Opcode::Ldsm, &[0x83b], MATRICES, &[RD, AT]).since(75),
    Encoding::new(Opcode::Ldsm, &[0x83b], MATRICES, &[RD, AT_LOCAL_UNIFORM_LOAD]).since(75),
    Encoding::new(Opcode::Stsm, &[0x844], STORED_MATRICES, &[AT, RB]).since(90),
    Encoding::new(Opcode::Stsm, &[0x844], STORED_MATRICES, &[AT_LOCAL_UNIFORM_STORE, RB]).since(90),
    Encoding::new(Opcode::Atomg, &[0x3a8], &[EXTENDED, ATOMIC, ATOMIC_TYPE, STRONG, SCOPE], &[PD, RD, AT, RB])
        .fixed(EVICT_NORMAL_NO_RC)
        .until(75),
    Encoding::new(
        Opcode::Atomg,
        &[0x9a8],
        &[EXTENDED, ATOMIC, ATOMIC_TYPE, STRONG, SCOPE],
        &[PD, RD, AT_UNIFORM_ATOMIC, RB],
    )
    .fixed(EVICT_NORMAL)
    .ignoring(70, 2)
    .since(75)
    .until(75),
    Encoding::new(Opcode::Atomg, &[0x3a9], &[EXTENDED, CAS, SWAP_TYPE, STRONG, SCOPE], &[PD, RD, AT, RB, RC])
        .fixed(EVICT_NORMAL)
        .until(75),
    Encoding::new(Opcode::Atom, &[0x38a], &[EXTENDED, ATOMIC, ATOMIC_TYPE, STRONG, SCOPE], &[PD, RD, AT, RB])
        .fixed(EVICT_NORMAL_NO_RC)
        .until(75),
    Encoding::new(
        Opcode::Atom,
        &[0x98a],
        &[EXTENDED, ATOMIC, ATOMIC_TYPE, STRONG, SCOPE],
        &[PD, RD, AT_UNIFORM_ATOMIC, RB],
    )
    .fixed(EVICT_NORMAL)
    .ignoring(70, 2)
    .since(75)
    .until(75),
    Encoding::new(Opcode::Atom, &[0x38b], &[EXTENDED, CAS, SWAP_TYPE, STRONG, SCOPE], &[PD, RD, AT, RB, RC])
        .fixed(EVICT_NORMAL)
        .until(75),
    Encoding::new(Opcode::Red, &[0x98e], REDUCTION, &[AT, RB]).fixed(EVICT_NORMAL).until(75),
    Encoding::new(Opcode::Red, &[0x98e], REDUCTION, &[AT_UNIFORM_STORE, RB])
        .fixed(EVICT_NORMAL)
        .ignoring(70, 2)
        .since(75)
        .until(75),
    Encoding::new(Opcode::Atoms, &[0x38c], &[ATOMIC, SHARED_TYPE], &[RD, AT, RB]).fixed(NO_RC),
    Encoding::new(Opcode::Atoms, &[0x38c], &[ATOMIC, SHARED_TYPE], &[RD, AT_SHARED, RB]).fixed(NO_RC).since(75),
    Encoding::new(Opcode::Atoms, &[0x98c], &[ATOMIC, SHARED_TYPE], &[RD, AT_SHARED_UNIFORM_STORE, RB]).since(75),
    Encoding::new(
        Opcode::Atoms,
        &[0x38d],
        &[choice(Aspect::Operation, 87, 2, &[".CAS", ".CAST", NO_SUCH, ".CAST.SPIN"]), SWAP_TYPE],
        &[RD, AT, RB, RC],
    ),
    Encoding::new(
        Opcode::Atoms,
        &[0x38d],
        &[choice(Aspect::Operation, 87, 2, &[".CAS", ".CAST", NO_SUCH, ".CAST.SPIN"]), SWAP_TYPE],
        &[RD, AT_SHARED, RB, RC],
    )
    .since(75),
    // Barriers in shared memory, and counters: their numbers are in the word.
    Encoding::new(Opcode::Atoms, &[0xf8c], &[SHARED_COUNT], &[RD, AT_SHARED_UNIFORM_STORE]).between(80, 89),
    Encoding::new(Opcode::Atoms, &[0xf8c], &[HOPPER_SHARED_COUNT], &[RD, AT_SHARED_UNIFORM_STORE]).since(90),
    Encoding::new(Opcode::Atoms, &[0x38c], &[ATOMIC, SHARED_TYPE], &[RD, AT_SHARED, RB]).ignoring(64, 8).since(80),
    Encoding::new(Opcode::Atoms, &[0x38c], &[ATOMIC, HOPPER_SHARED_TYPE], &[RD, AT_SHARED, RB])
        .ignoring(64, 8)
        .since(90),
    Encoding::new(Opcode::Atoms, &[0x98c], &[ATOMIC, HOPPER_SHARED_TYPE], &[RD, AT_SHARED_UNIFORM_STORE, RB]).since(90),
    Encoding::new(Opcode::Atoms, &[0x38d], &[SHARED_SWAP, HOPPER_SHARED_TYPE], &[RD, AT_SHARED, RB, RC]).since(90),
    Encoding::new(
        Opcode::Membar,
        &[0x992],
        &[
            choice(Aspect::Order, 79, 2, &[".SC", ".ALL", "", NO_SUCH]),
            choice(Aspect::Scope, 76, 3, &[".CTA", ".SM", ".GPU", ".SYS", NO_SUCH, ".VC", NO_SUCH, NO_SUCH]),
            flag(Aspect::Mode, 72, ".MMIO"),
        ],
        &[],
    )
    .until(75),
    Encoding::new(
        Opcode::Membar,
        &[0x992],
        &[
            FENCE_ORDER,
            choice(Aspect::Scope, 76, 3, &[".CTA", ".SM", ".GPU", ".SYS", NO_SUCH, ".VC", NO_SUCH, NO_SUCH]),
        ],
        &[],
    )
    .between(80, 89),
    Encoding::new(
        Opcode::Membar,
        &[0x992],
        &[
            FENCE_ORDER,
            choice(Aspect::Scope, 76, 3, &[".CTA", ".SM", ".GPU", ".SYS", NO_SUCH, ".VC", ".CTA.PARTIAL", NO_SUCH]),
        ],
        &[],
    )
    .since(90),
    Encoding::new(
        Opcode::Membar,
        &[0x992],
        &[
            function(Aspect::Scope, |word| (word.bits(76, 3) == 5).then_some(".VC"), 7 << 76),
            function(Aspect::Mode, |word| word.bit(73).then_some(".ASYNC"), 1 << 73),
        ],
        &[],
    )
    .since(90),
    Encoding::new(Opcode::Errbar, &[0x9ab], &[], &[]),
    Encoding::new(
        Opcode::Cctl,
        &[0x98f],
        &[EXTENDED, CACHE, choice(Aspect::Operation, 87, 4, &[".PF1", ".PF2", ".WB", ".IV", NO_SUCH, ".RS"])],
        &[AT_GENERIC],
    )
    .until(75),
    Encoding::new(Opcode::Cctl, &[0x98f], &[EXTENDED, CACHE, LINE_OPERATION], &[AT_GENERIC]).since(80),
    Encoding::new(Opcode::Cctl, &[0xd8f], &[EXTENDED, CACHE, LINE_OPERATION], &[AT_LOCAL_UNIFORM_LOAD]).since(80),
    Encoding::new(
        Opcode::Cctl,
        &[0x98f],
        &[
            CACHE,
            choice(
                Aspect::Operation,
                87,
                4,
                &[NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, ".IVALL", NO_SUCH, ".IVALLP", ".WBALL", ".WBALLP"],
            ),
        ],
        &[],
    )
    .fixed(&[(Field::new(24, 8), 255)]),
    // The cache of local memory.
    Encoding::new(Opcode::Cctll, &[0x990], &[LOCAL_LINE_OPERATION], &[AT]).since(80),
    Encoding::new(Opcode::Cctll, &[0xd90], &[LOCAL_LINE_OPERATION], &[AT_LOCAL_UNIFORM_LOAD]).since(80),
    Encoding::new(Opcode::Qspc, &[0x3aa], &[EXTENDED, SPACE], &[PD, RD, AT]).until(89),
    Encoding::new(Opcode::Qspc, &[0x9aa], &[EXTENDED, SPACE], &[PD, RD, AT_UNIFORM_LOAD]).between(75, 89),
    Encoding::new(Opcode::Qspc, &[0x3aa], &[EXTENDED, HOPPER_SPACE], &[PD, RD, AT]).since(90),
    Encoding::new(Opcode::Qspc, &[0x9aa], &[EXTENDED, HOPPER_SPACE], &[PD, RD, AT_UNIFORM_QUERY]).since(90),
];

/// `POPC.INC.32` counts lanes; an arrival has 64 bits.
const SHARED_COUNT: Modifier = function(
    Aspect::Operation,
    |word| match (word.bits(87, 4), word.bits(73, 3)) {
        (10, 0) => Some(".POPC.INC.32"),
        (9, 2) => Some(".ARRIVE.64"),
        _ => None,
    },
    0xf << 87 | 7 << 73,
);

const HOPPER_SHARED_COUNT: Modifier = function(
    Aspect::Operation,
    |word| match (word.bits(87, 4), word.bits(73, 3)) {
        (11, 0) => Some(".POPC.INC.32"),
        (10, 2) => Some(".ARRIVE.64"),
        _ => None,
    },
    0xf << 87 | 7 << 73,
);

/// How matrices are stored, and how many there are.
const MATRICES: &[Modifier] = &[
    choice(Aspect::Layout, 78, 2, &[".16.M88", ".16.MT88", ".16.M816", ".16.M832"]),
    choice(Aspect::Count, 72, 2, &["", ".2", ".4", NO_SUCH]),
];
const STORED_MATRICES: &[Modifier] = &[
    choice(Aspect::Layout, 78, 1, &[".16.M88", ".16.MT88"]),
    choice(Aspect::Count, 72, 2, &["", ".2", ".4", NO_SUCH]),
];
const REDUCTION: &[Modifier] = &[EXTENDED, choice(Aspect::Operation, 87, 3, OPERATIONS), ATOMIC_TYPE, STRONG, SCOPE];
/// A third register that is not there.
const NO_RC: &[(Field, u64)] = &[(Field::new(64, 8), 255)];
const EVICT_NORMAL_NO_RC: &[(Field, u64)] = &[(Field::new(84, 3), 1), (Field::new(64, 8), 255)];
/// The space that an address is asked about.
const SPACE: Modifier = choice(Aspect::Space, 73, 2, &[".G", ".L", ".S", NO_SUCH]);
/// Hopper may ask about the shared memory of a cluster, too.
const HOPPER_SPACE: Modifier = choice(Aspect::Space, 73, 2, &[".G", ".L", ".S", ".D"]);
/// The eviction field of atomics, which they do not show.
const EVICT_NORMAL: &[(Field, u64)] = &[(Field::new(84, 3), 1)];
const CAS: Modifier = function(Aspect::Operation, |_| Some(".CAS"), 0);

/// What is done with a line. The last three are about the L2 alone: it is to stay, to be treated like others again, or to be dropped.
const LINE_OPERATION: Modifier = choice(
    Aspect::Operation,
    87,
    4,
    &[".PF1", ".PF2", ".WB", ".IV", NO_SUCH, ".RS", NO_SUCH, NO_SUCH, NO_SUCH, ".PML2", ".DML2", ".RML2"],
);
const LOCAL_LINE_OPERATION: Modifier =
    choice(Aspect::Operation, 87, 4, &[".PF1", ".PF2", ".WB", ".IV", NO_SUCH, ".RS"]);
const FENCE_ORDER: Modifier = choice(Aspect::Order, 79, 2, &[".SC", ".ALL", "", ".MMIO"]);
/// Which cache.
const CACHE: Modifier = choice(Aspect::Cache, 78, 2, &["", ".U", ".C", ".I"]);
