//! Copies of Hopper that a thread starts and hardware does: of bytes (`UBLK`), and of boxes of tensors that a map in memory describes
//! (`UTMA`). Their operands are in blocks of uniform registers.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, SourcePlace, Suffix};
use crate::sass::word::Field;

const fn bracketed(low: u8, kind: &'static str) -> Operand {
    source(SourcePlace::Uniform(low), Immediate::Bits, Sign::None, Suffix::Brackets(kind))
}

/// Where bytes come from; the address of the map of a tensor.
const FROM: Operand = bracketed(24, "");
/// Where they go: an address, with the address of a barrier behind it; of tensors, the coordinates behind them.
const BLOCK: Operand = bracketed(32, "");
/// The policy of the cache.
const DESCRIPTOR: Operand = bracketed(40, "desc").shown(Shown::Present(|word| word.bit(76)));
const HAS_DESCRIPTOR: Modifier = function(Aspect::Name, |_| Some(""), 1 << 76);
/// Bytes by 16, and the mask of the CTAs in the upper half; of tensors, the mask and offsets.
const AMOUNT: Operand = UC;

const MULTICAST: Modifier = flag(Aspect::Multicast, 75, ".MULTICAST");
const SPACES: &[&str] = &[".G", ".S"];
const TO_SPACE: Modifier = choice(Aspect::Space, 73, 1, SPACES);
const FROM_SPACE: Modifier = choice(Aspect::SourceSpace, 74, 1, &[".G", ".S"]);
const ORDER: Modifier = choice(
    Aspect::Order,
    77,
    4,
    &["", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, ".STRONG", NO_SUCH, ".STRONG", NO_SUCH, NO_SUCH, ".STRONG"],
);
const SCOPE: Modifier = choice(
    Aspect::Scope,
    77,
    4,
    &["", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, ".SM", NO_SUCH, ".GPU", NO_SUCH, NO_SUCH, ".SYS"],
);
const FETCH_SIZE: Modifier = choice(Aspect::Prefetch, 81, 2, &["", ".LTC64B", ".LTC128B", ".LTC256B"]);
const OPERATION: Modifier =
    choice(Aspect::Operation, 87, 3, &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"]);
const TYPE: Modifier = choice(
    Aspect::Type,
    81,
    4,
    &["", ".S32", ".U64", ".S64", ".F16.RN", ".F32.RN", ".F32.FTZ.RN", ".F64.RN", ".BF16.RN"],
);

const DIMENSIONS: Modifier = choice(Aspect::Shape, 79, 3, &[".1D", ".2D", ".3D", ".4D", ".5D"]);
/// Boxes are those of a convolution.
const BY_COLUMNS: Modifier = flag(Aspect::Layout, 82, ".IM2COL");

const IS_UNIFORM: &[(Field, u64)] = &[(Field::new(91, 1), 1)];

/// An encoding of Hopper with blocks of uniform registers.
const fn bulk(
    opcode: Opcode,
    codes: &'static [u16],
    modifiers: &'static [Modifier],
    operands: &'static [Operand],
) -> Encoding {
    Encoding::uniform(opcode, codes, modifiers, operands).fixed(IS_UNIFORM).since(90)
}

pub(super) const ENCODINGS: &[Encoding] = &[
    bulk(
        Opcode::Ublkcp,
        &[0x3ba],
        &[
            TO_SPACE,
            FROM_SPACE,
            flag(Aspect::Order, 83, ".SEQUENCED"),
            MULTICAST,
            FETCH_SIZE,
            ORDER,
            SCOPE,
            HAS_DESCRIPTOR,
        ],
        &[BLOCK, FROM, AMOUNT, DESCRIPTOR],
    ),
    bulk(
        Opcode::Ublkred,
        &[0x3bb],
        &[
            TO_SPACE,
            function(Aspect::SourceSpace, |word| word.bit(74).then_some(".S"), 1 << 74),
            OPERATION,
            TYPE,
            ORDER,
            SCOPE,
            HAS_DESCRIPTOR,
        ],
        &[BLOCK, FROM, AMOUNT, DESCRIPTOR],
    ),
    bulk(Opcode::Ublkpf, &[0x3bc], &[text(".L2"), HAS_DESCRIPTOR], &[FROM, AMOUNT, DESCRIPTOR]),
    bulk(Opcode::Utmaldg, &[0x5b4], &[DIMENSIONS, HAS_DESCRIPTOR], &[BLOCK, FROM, DESCRIPTOR]),
    bulk(
        Opcode::Utmaldg,
        &[0x3b4],
        &[DIMENSIONS, BY_COLUMNS, MULTICAST, HAS_DESCRIPTOR],
        &[BLOCK, FROM, AMOUNT, DESCRIPTOR],
    ),
    bulk(Opcode::Utmastg, &[0x3b5], &[DIMENSIONS, BY_COLUMNS, HAS_DESCRIPTOR], &[BLOCK, FROM, DESCRIPTOR]),
    bulk(Opcode::Utmaredg, &[0x3b6], &[DIMENSIONS, BY_COLUMNS, OPERATION, HAS_DESCRIPTOR], &[BLOCK, FROM, DESCRIPTOR]),
    bulk(Opcode::Utmapf, &[0x5b8], &[text(".L2"), DIMENSIONS, HAS_DESCRIPTOR], &[BLOCK, FROM, DESCRIPTOR]),
    bulk(
        Opcode::Utmapf,
        &[0x3b8],
        &[
            text(".L2"),
            DIMENSIONS,
            function(Aspect::Layout, |word| word.bit(82).then_some(".IM2COL"), 1 << 82),
            HAS_DESCRIPTOR,
        ],
        &[BLOCK, FROM, AMOUNT, DESCRIPTOR],
    ),
    bulk(Opcode::Utmacctl, &[0x9b9], &[choice(Aspect::Operation, 82, 1, &[".IV", ".PF"])], &[FROM]),
    Encoding::uniform(
        Opcode::Utmacctl,
        &[0x9b9],
        &[function(Aspect::Operation, |word| (!word.bit(82)).then_some(".IVALL"), 1 << 82)],
        &[],
    )
    .since(90),
    Encoding::uniform(Opcode::Utmacmdflush, &[0x9b7], &[], &[]).since(90),
];
