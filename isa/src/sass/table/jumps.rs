//! Branches, calls and returns. Hopper splits the distances in their words.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Distance, Sign, Slot};
use crate::sass::word::{Field, Word};

/// Whether the stack of calls is counted.
const COUNTED: Modifier = choice(Aspect::CallCount, 85, 2, &["", ".INC", ".DEC", NO_SUCH]);
/// Calls count it unless they say so.
const NO_COUNT: Modifier = flag(Aspect::CallCount, 86, ".NOINC");
const RELATIVE: Modifier = choice(Aspect::Absolute, 85, 1, &[".REL", ".ABS"]);
const CALL_RELATIVE: Modifier = text(".REL");
const CALL_ABSOLUTE: Modifier = function(Aspect::Absolute, |_| Some(".ABS"), 0);
/// A branch may ask how the lanes of the warp go.
const LANES: Modifier = choice(Aspect::Mode, 32, 2, &["", ".U", ".DIV", ".CONV"]);
/// The same about the lanes that a uniform register has.
const LANES_OF_MASK: Modifier = choice(Aspect::Mode, 32, 2, &[NO_SUCH, NO_SUCH, ".DIV", ".CONV"]);
const UNIFORM: Modifier = choice(Aspect::Mode, 32, 2, &[NO_SUCH, ".U", NO_SUCH, NO_SUCH]);
const UNIFORM_OR_ANY: Modifier =
    choice_2(Aspect::Mode, Field::new(32, 2), Field::new(84, 1), &[NO_SUCH, ".U", NO_SUCH, NO_SUCH, NO_SUCH, ".U.ANY"]);

const WORDS: Distance = Distance::Words(Field::new(34, 48));

/// The lanes that a branch asks about, or all others.
const MASK: Operand = uniform(24, Sign::InvertAt(30));
/// The uniform predicate of a branch.
const CONDITION: Operand = at(Slot::UniformPredicateSource(24));
const IS_UNIFORM: &[(Field, u64)] = &[(Field::new(91, 1), 1)];

const fn target(distance: Distance) -> Operand {
    at(Slot::Target(distance))
}

/// What a jump to a register's value adds.
const fn offset(distance: Distance) -> Operand {
    at(Slot::JumpOffset(distance)).joined()
}

/// The same, where it is not nothing.
const OFFSET_IF_ANY: Operand = offset(WORDS).shown(Shown::Where(|word| word.bits(34, 48) != 0));
const SPLIT_OFFSET_IF_ANY: Operand = offset(Distance::Split).shown(Shown::Where(|word| Distance::Split.of(word) != 0));

/// The jumps with distances of a form, from an architecture up to another one.
macro_rules! jumps {
    ($distance:expr, $offset_if_any:expr, $of_uniform:expr, $since:expr, $until:expr) => {
        &[
            Encoding::new(Opcode::Bra, &[0x947], &[COUNTED, LANES], &[PS_IF_ANY, target($distance)])
                .between($since, $until),
            Encoding::new(Opcode::Brx, &[0x949], &[COUNTED], &[PS_IF_ANY, RA, $offset_if_any]).between($since, $until),
            Encoding::new(Opcode::Jmx, &[0x94c], &[COUNTED], &[PS_IF_ANY, RA, $offset_if_any]).between($since, $until),
            Encoding::new(Opcode::Brxu, &[0x958], &[flag(Aspect::Mode, 32, ".U")], &[PS_IF_ANY, UA, $offset_if_any])
                .fixed(IS_UNIFORM)
                .between(at_least_75($since), $until),
            Encoding::new(Opcode::Jmxu, &[0x959], &[flag(Aspect::Mode, 32, ".U")], &[PS_IF_ANY, UA, $offset_if_any])
                .fixed(IS_UNIFORM)
                .between(at_least_75($since), $until),
            Encoding::new(Opcode::Call, &[0x944], &[CALL_RELATIVE, NO_COUNT], &[PS_IF_ANY, target($distance)])
                .between($since, $until),
            Encoding::new(
                Opcode::Call,
                &[0x344],
                &[CALL_RELATIVE, NO_COUNT],
                &[PS_IF_ANY, RA, target($distance).joined()],
            )
            .between($since, $until),
            Encoding::new(Opcode::Call, &[0x343], &[CALL_ABSOLUTE, NO_COUNT], &[PS_IF_ANY, RA, $offset_if_any])
                .between($since, $until),
            Encoding::new(
                Opcode::Call,
                &[0x943],
                &[CALL_ABSOLUTE, NO_COUNT],
                &[PS_IF_ANY, at(Slot::AbsoluteTarget($distance))],
            )
            .between($since, $until),
            Encoding::new(
                Opcode::Ret,
                &[0x950],
                &[RELATIVE, flag(Aspect::CallCount, 86, ".NODEC")],
                &[PS_IF_ANY, RA, at(Slot::ReturnTarget($distance)).joined()],
            )
            .between($since, $until),
            // Of Ampere and later: the lanes of a mask, and a uniform predicate.
            Encoding::new(Opcode::Bra, &[0x947], &[COUNTED, LANES_OF_MASK], &[PS_IF_ANY, MASK, target($distance)])
                .fixed(IS_UNIFORM)
                .between(at_least_80($since), $until),
            Encoding::new(Opcode::Bra, &[0x547], &[COUNTED, $of_uniform], &[PS_IF_ANY, CONDITION, target($distance)])
                .fixed(IS_UNIFORM)
                .between(at_least_80($since), $until),
            // Places that are in uniform registers.
            Encoding::new(
                Opcode::Call,
                &[0x944],
                &[CALL_RELATIVE, NO_COUNT],
                &[PS_IF_ANY, UA, target($distance).joined()],
            )
            .fixed(IS_UNIFORM)
            .between(at_least_80($since), $until),
            Encoding::new(Opcode::Call, &[0x943], &[CALL_ABSOLUTE, NO_COUNT], &[PS_IF_ANY, UA, $offset_if_any])
                .fixed(IS_UNIFORM)
                .between(at_least_80($since), $until),
            Encoding::new(
                Opcode::Ret,
                &[0x950],
                &[RELATIVE, flag(Aspect::CallCount, 86, ".NODEC")],
                &[PS_IF_ANY, UA, at(Slot::ReturnTarget($distance)).joined()],
            )
            .fixed(IS_UNIFORM)
            .between(at_least_80($since), $until),
        ]
    };
}

const fn at_least_75(since: u32) -> u32 {
    if since < 75 { 75 } else { since }
}

const fn at_least_80(since: u32) -> u32 {
    if since < 80 { 80 } else { since }
}

pub(super) const ENCODINGS: &[Encoding] = jumps!(WORDS, OFFSET_IF_ANY, UNIFORM, 70, 89);

pub(super) const OF_HOPPER: &[Encoding] = jumps!(Distance::Split, SPLIT_OFFSET_IF_ANY, UNIFORM_OR_ANY, 90, u32::MAX);

/// Those that Hopper alone has.
pub(super) const FURTHER_OF_HOPPER: &[Encoding] = &[
    // All lanes go where any of those go that the guard lets go.
    Encoding::new(
        Opcode::Bra,
        &[0x947],
        &[COUNTED, function(Aspect::Mode, |word| is_of_any(word).then_some(".U.ANY"), 3 << 32 | 1 << 84)],
        &[PS_IF_ANY, target(Distance::Split)],
    )
    .since(90),
];

fn is_of_any(word: Word) -> bool {
    word.bits(32, 2) == 1 && word.bit(84)
}
