//! Textures and surfaces. A bindless access has its handle in a register; others name a constant that has it: these are texture and surface
//! references.

use super::slots::*;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown, Slot};
use crate::sass::opcode::Opcode;
use crate::sass::word::{Field, Word};

/// Where the third and fourth component go.
const RD2: Operand = at(Slot::Destination(64));
/// Components that are read, where not all.
const COMPONENTS: Operand = at(Slot::Number(Field::new(72, 4))).shown(Shown::Where(|word| word.bits(72, 4) != 15));
/// The handle of a surface.
const HANDLE: Operand = RC;
/// The place in a surface: registers without an offset.
const AT_TEXEL: Operand =
    at(Slot::Register(24, |word| format!("[{}]", crate::sass::instruction::register(word.bits(24, 8))), 0));

const SHAPES: [&str; 8] = ["1D", "2D", "3D", "CUBE", "ARRAY_1D", "ARRAY_2D", NO_SUCH, "ARRAY_CUBE"];

fn shape(word: Word) -> String {
    SHAPES[word.bits(61, 3) as usize].to_owned()
}

const SHAPE: Operand = at(Slot::Function(shape, 0));

/// Refuses the shapes that an opcode does not have; `shapes` has a bit for each shape that it has.
const fn has_shape(word: Word, shapes: u8) -> Option<&'static str> {
    if (shapes >> word.bits(61, 3)) & 1 != 0 { Some("") } else { None }
}

const SHAPE_BITS: u128 = Field::new(61, 3).mask();
/// Codes of form 1 have the handle in a register.
const BINDLESS: Modifier = Modifier::Function(|word| Some(if word.code() >> 9 == 1 { ".B" } else { "" }), 0);
/// The bank and the word of the constant with the handle.
const BANK: Operand = at(Slot::Number(Field::new(54, 5)));
const INDEX: Operand = at(Slot::Number(Field::new(40, 14)));
/// The register that a bindless access has its handle in may have further coordinates.
const FURTHER: Operand = RB.shown(Shown::UnlessZero(32));
const BINDLESS_TEXTURE: &[Operand] = &[PD_IF_ANY, RD2, RD, RA, RB, SHAPE, COMPONENTS];
const BOUND_TEXTURE: &[Operand] = &[PD_IF_ANY, RD2, RD, RA, FURTHER, BANK, INDEX, SHAPE, COMPONENTS];
/// The bit that is set in every bindless access.
const BINDLESS_BIT: &[(Field, u64)] = &[(Field::new(59, 1), 1)];
const SCALAR: Modifier = flag(60, ".SCR");
const HALVES: Modifier = choice(79, 2, &["", ".F16.RN", ".F16.RZ", NO_SUCH]);
const OFFSETS: Modifier = flag(76, ".AOFFI");
const COMPARED: Modifier = flag(78, ".DC");
const NO_DEPENDENCE: Modifier = flag(90, ".NODEP");

const SURFACE_SHAPE: Modifier =
    choice(61, 3, &[".1D", ".1D_BUFFER", ".1D_ARRAY", ".2D", ".2D_ARRAY", ".3D", NO_SUCH, NO_SUCH]);
/// The effect outside of the surface.
const OUTSIDE: Modifier = choice(59, 2, &[".IGN", "", ".TRAP", NO_SUCH]);
const BYTES: Modifier = Modifier::Text(".D");
const PIXELS: Modifier = Modifier::Text(".P");
/// The place is in bytes rather than in texels.
const BY_BYTES: Modifier = flag(72, ".BA");

const SAMPLE: &[Modifier] = &[
    SCALAR,
    BINDLESS,
    HALVES,
    choice(87, 3, &["", ".LZ", ".LB", ".LL", ".LC", ".LB.LC", NO_SUCH, NO_SUCH]),
    OFFSETS,
    flag(77, ".NDV"),
    COMPARED,
    EVICTION,
    NO_DEPENDENCE,
    Modifier::Function(|word| has_shape(word, 0b1011_1111), SHAPE_BITS),
];
const FETCH: &[Modifier] = &[
    SCALAR,
    BINDLESS,
    HALVES,
    choice(87, 3, &[NO_SUCH, ".LZ", NO_SUCH, ".LL", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH]),
    OFFSETS,
    flag(77, ".CL"),
    flag(78, ".MS"),
    EVICTION,
    NO_DEPENDENCE,
    Modifier::Function(|word| has_shape(word, 0b0011_0111), SHAPE_BITS),
];
const GATHER: &[Modifier] = &[
    SCALAR,
    choice(87, 2, &[".R", ".G", ".B", ".A"]),
    BINDLESS,
    HALVES,
    OFFSETS,
    flag(77, ".PTP"),
    COMPARED,
    EVICTION,
    NO_DEPENDENCE,
    Modifier::Function(|word| has_shape(word, 0b1010_1010), SHAPE_BITS),
];
const GRADIENT: &[Modifier] = &[
    BINDLESS,
    HALVES,
    flag(87, ".LC"),
    OFFSETS,
    EVICTION,
    NO_DEPENDENCE,
    Modifier::Function(|word| has_shape(word, 0b0011_0011), SHAPE_BITS),
];
const SURFACE: &[Modifier] = &[BYTES, BY_BYTES, SURFACE_SHAPE, EVICTION, SIZE, STORE_ORDER, SCOPE, OUTSIDE];
/// For pixels: the components that are written.
const PIXEL: &[Modifier] = &[
    PIXELS,
    SURFACE_SHAPE,
    EVICTION,
    STORE_ORDER,
    SCOPE,
    choice(
        72,
        4,
        &[
            NO_SUCH, ".R", NO_SUCH, ".RG", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH,
            NO_SUCH, NO_SUCH, NO_SUCH, "",
        ],
    ),
    OUTSIDE,
];
const REDUCTION: &[Modifier] = &[
    BYTES,
    BY_BYTES,
    SURFACE_SHAPE,
    choice(87, 3, &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"]),
    EVICTION,
    Modifier::Function(reduced_type, Field::new(73, 3).mask()),
    STRONG,
    SCOPE,
    OUTSIDE,
];

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Tex, &[0x361], SAMPLE, BINDLESS_TEXTURE).fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Tex, &[0xb60], SAMPLE, BOUND_TEXTURE),
    Encoding::new(Opcode::Tld, &[0x367], FETCH, BINDLESS_TEXTURE).fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Tld, &[0xb66], FETCH, BOUND_TEXTURE),
    Encoding::new(Opcode::Tld4, &[0x364], GATHER, BINDLESS_TEXTURE).fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Tld4, &[0xb63], GATHER, BOUND_TEXTURE),
    Encoding::new(Opcode::Txd, &[0x36d], GRADIENT, BINDLESS_TEXTURE).fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Txd, &[0xb6c], GRADIENT, BOUND_TEXTURE),
    Encoding::new(Opcode::Txq, &[0x370], &[BINDLESS, NO_DEPENDENCE], &[RD2, RD, RA, QUERY, QUERIED])
        .fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Txq, &[0xb6f], &[BINDLESS, NO_DEPENDENCE], &[RD2, RD, RA, QUERY, BANK, INDEX, QUERIED]),
    Encoding::new(Opcode::Suld, &[0x99a], SURFACE, &[PD_IF_ANY, RD, AT_TEXEL, HANDLE]),
    Encoding::new(Opcode::Suld, &[0xb99], SURFACE, &[PD_IF_ANY, RD, AT_TEXEL, BANK, INDEX]),
    Encoding::new(Opcode::Sust, &[0x99e], SURFACE, &[AT_TEXEL, RB, HANDLE]),
    Encoding::new(Opcode::Sust, &[0xb9d], SURFACE, &[AT_TEXEL, RB, BANK, INDEX]),
    Encoding::new(Opcode::Sust, &[0x99c], PIXEL, &[AT_TEXEL, RB, HANDLE]),
    Encoding::new(Opcode::Sust, &[0xb9b], PIXEL, &[AT_TEXEL, RB, BANK, INDEX]),
    Encoding::new(Opcode::Sured, &[0x3a0], REDUCTION, &[AT_TEXEL, RB, HANDLE]),
    Encoding::new(Opcode::Sured, &[0x59f], REDUCTION, &[AT_TEXEL, RB, BANK, INDEX]),
];

const QUERY: Operand = at(Slot::Function(query, Field::new(62, 2).mask()));
const QUERIED: Operand = at(Slot::Number(Field::new(72, 4)));

/// The type of a reduction. The surface says whether texels have signs.
fn reduced_type(word: Word) -> Option<&'static str> {
    Some(match word.bits(73, 3) {
        0 => "",
        1 => ".S32",
        2 => ".U64",
        3 => ".F32.FTZ.RN",
        5 => ".S64",
        6 if word.bit(72) => ".F64.RN",
        6 => ".SD32",
        _ => return None,
    })
}

/// The question about a texture.
fn query(word: Word) -> String {
    ["TEX_HEADER_DIMENSION", "TEX_HEADER_TEXTURE_TYPE", "TEX_HEADER_SAMPLER_POS", NO_SUCH][word.bits(62, 2) as usize]
        .to_owned()
}
