//! Barriers of Hopper: in shared memory, of a cluster of CTAs, between kernels; and what a CTA has of the SM.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{AddressForm, Sign, Slot};
use crate::sass::word::{Field, Word};

const OFFSET: Field = Field::new(40, 24);
/// A barrier in shared memory.
const AT: Operand = at(Slot::Address(AddressForm { uniform: Some(64), ..AddressForm::new(24, OFFSET) }));
/// One at a uniform address.
const AT_UNIFORM: Operand = at(Slot::Address(AddressForm::of_uniform(24, OFFSET)));

const IS_UNIFORM: &[(Field, u64)] = &[(Field::new(91, 1), 1)];
const EXCHANGE: Modifier = function(Aspect::Operation, |word| (word.bits(72, 2) == 1).then_some(".EXCH"), 3 << 72);
const ARRIVE: Modifier = function(Aspect::Operation, |word| (word.bits(70, 2) == 0).then_some(".ARRIVE"), 3 << 70);
const CHECK: Modifier = function(Aspect::Operation, |word| (word.bits(70, 2) == 1).then_some(".PHASECHK"), 3 << 70);
const TRANSACTIONS: Modifier = text(".TRANS64");
const CACHE_CONTROL: Modifier = text(".CCTL");

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::uniform(Opcode::Syncs, &[0x5b2], &[EXCHANGE, text(".64")], &[UD, AT_UNIFORM, uniform(32, Sign::None)])
        .since(90),
    // The new value is behind the one that is compared with.
    Encoding::uniform(
        Opcode::Syncs,
        &[0x3b2],
        &[function(Aspect::Operation, |word| (word.bits(72, 2) == 2).then_some(".CAS"), 3 << 72), text(".64")],
        &[UD, AT_UNIFORM, uniform(32, Sign::None), at(Slot::Function(second_pair, 0))],
    )
    .since(90),
    Encoding::uniform(
        Opcode::Syncs,
        &[0x9b2],
        &[function(Aspect::Operation, |word| (word.bits(72, 2) == 0).then_some(".LD"), 3 << 72), text(".64")],
        &[UD, AT_UNIFORM],
    )
    .since(90),
    Encoding::new(
        Opcode::Syncs,
        &[0x5b1],
        &[
            function(Aspect::Operation, |word| word.bit(73).then_some(".LD"), 1 << 73),
            text(".64"),
            flag(Aspect::Wait, 74, ".WATCH"),
        ],
        &[RD, AT],
    )
    .since(90),
    Encoding::new(
        Opcode::Syncs,
        &[0x9a7],
        &[
            ARRIVE,
            TRANSACTIONS,
            choice(Aspect::ThreadMask, 73, 1, &["", ".TMASK"]),
            choice(Aspect::NoResult, 74, 1, &["", ".RED"]),
            choice(Aspect::Drop, 75, 1, &["", ".OPTOUT"]),
            choice(Aspect::Arrival, 84, 3, &["", ".A1T0", ".A0T1", ".A0TR", ".A0TX", ".ART0", NO_SUCH, NO_SUCH]),
            // A reduction has no mask of threads.
            function(Aspect::Name, |word| (word.bits(73, 2) != 3).then_some(""), 0),
        ],
        &[RD, AT, RB],
    )
    .since(90),
    Encoding::new(Opcode::Syncs, &[0x5a7], &[CHECK, TRANSACTIONS, flag(Aspect::Wait, 72, ".TRYWAIT")], &[PD, AT, RB])
        .since(90),
    Encoding::new(
        Opcode::Syncs,
        &[0x9b1],
        &[CACHE_CONTROL, choice(Aspect::Operation, 72, 2, &[".IV", ".WB", NO_SUCH, NO_SUCH])],
        &[AT],
    )
    .since(90),
    Encoding::new(
        Opcode::Syncs,
        &[0x9b1],
        &[CACHE_CONTROL, choice(Aspect::Operation, 72, 2, &[".IVALL", ".WBALL", NO_SUCH, NO_SUCH])],
        &[],
    )
    .since(90),
    Encoding::new(
        Opcode::Fence,
        &[0x3c6],
        &[text(".VIEW"), text(".ASYNC"), choice(Aspect::Space, 72, 1, &[".S", ".G"])],
        &[],
    )
    .since(90),
    Encoding::new(Opcode::Cgaerrbar, &[0x5ab], &[], &[]).since(90),
    Encoding::uniform(Opcode::UcgabarArv, &[0x9c7], &[], &[]).fixed(IS_UNIFORM).since(90),
    Encoding::uniform(Opcode::UcgabarWait, &[0xdc7], &[], &[]).fixed(IS_UNIFORM).since(90),
    Encoding::new(Opcode::Preexit, &[0x82d], &[], &[]).since(90),
    Encoding::new(Opcode::Acqbulk, &[0x82e], &[], &[]).since(90),
    // The lane of a mask that is chosen, and a predicate that it alone has.
    Encoding::new(Opcode::Elect, &[0x82f], &[ALL_LANES], &[PD, UD, uniform(24, Sign::Invert)])
        .fixed(IS_UNIFORM)
        .since(90),
    Encoding::new(Opcode::Elect, &[0x82f], &[ALL_LANES], &[PD, UD, PS]).since(90),
    Encoding::uniform(Opcode::Usetmaxreg, &[0x9c8], &[DEALLOCATE, POOL], &[number(32, 10)])
        .fixed(NO_PREDICATE)
        .since(90),
    Encoding::uniform(Opcode::Usetmaxreg, &[0x3c8], &[DEALLOCATE, POOL], &[uniform(32, Sign::None)])
        .fixed(NO_PREDICATE)
        .since(90),
    Encoding::uniform(Opcode::Usetmaxreg, &[0x9c8], &[ALLOCATE, POOL], &[UPD, number(32, 10)])
        .fixed(IS_UNIFORM)
        .since(90),
    Encoding::uniform(Opcode::Usetmaxreg, &[0x3c8], &[ALLOCATE, POOL], &[UPD, uniform(32, Sign::None)])
        .fixed(IS_UNIFORM)
        .since(90),
    Encoding::uniform(Opcode::Usetshmsz, &[0x3c9], &[], &[uniform(32, Sign::None)]).fixed(IS_UNIFORM).since(90),
    Encoding::uniform(Opcode::Usetshmsz, &[0x9c9], &[], &[number(32, 20)]).fixed(IS_UNIFORM).since(90),
    Encoding::uniform(
        Opcode::Usetshmsz,
        &[0x9c9],
        &[function(Aspect::Mode, |word| word.bit(72).then_some(".FLUSH"), 1 << 72)],
        &[],
    )
    .fixed(IS_UNIFORM)
    .since(90),
];

const DEALLOCATE: Modifier = function(Aspect::Operation, |word| (word.bits(72, 2) == 1).then_some(".DEALLOC"), 3 << 72);
const ALLOCATE: Modifier = function(Aspect::Operation, |word| (word.bits(72, 2) == 2).then_some(".TRY_ALLOC"), 3 << 72);
/// Where others have a predicate that they write.
const NO_PREDICATE: &[(Field, u64)] = &[(Field::new(91, 1), 1), (Field::new(81, 3), 7)];

/// Lanes that were killed may be chosen, too.
const ALL_LANES: Modifier = flag(Aspect::Mode, 85, ".IGNOREKILL");
/// Where the registers come from, or go to.
const POOL: Modifier = function(Aspect::Space, |word| word.bit(74).then_some(".CTAPOOL"), 1 << 74);

/// The pair of uniform registers behind the one in bits 32 to 37.
fn second_pair(word: Word) -> String {
    format!("UR{}", word.bits(32, 6) + 2)
}
