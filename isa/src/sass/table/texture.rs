//! Textures and surfaces. A bindless access has its handle in a register; others name a constant that has it: these are texture and surface
//! references.

use super::slots::*;
use crate::sass::aspect::Aspect;
use crate::sass::encoding::{Encoding, Modifier, NO_SUCH, Operand, Shown};
use crate::sass::opcode::Opcode;
use crate::sass::slot::{Immediate, Sign, Slot, SourcePlace, Suffix};
use crate::sass::word::{Field, Word};

/// Where the third and fourth component go.
const RD2: Operand = at(Slot::Destination(64));
/// Components that are read, where not all.
const COMPONENTS: Operand = number(72, 4).shown(Shown::Where(|word| word.bits(72, 4) != 15));
/// The handle of a surface.
const HANDLE: Operand = RC;
/// The place in a surface: registers without an offset.
const AT_TEXEL: Operand = source(SourcePlace::Register(24), Immediate::Bits, Sign::None, Suffix::Brackets(""));

/// The shape of a texture.
const fn shape(shapes: &'static [&'static str]) -> Operand {
    at(Slot::Name(Aspect::Shape, Field::new(61, 3), shapes))
}

const SAMPLED_SHAPES: Operand = shape(&["1D", "2D", "3D", "CUBE", "ARRAY_1D", "ARRAY_2D", NO_SUCH, "ARRAY_CUBE"]);
const FETCHED_SHAPES: Operand = shape(&["1D", "2D", "3D", NO_SUCH, "ARRAY_1D", "ARRAY_2D", NO_SUCH, NO_SUCH]);
const GATHERED_SHAPES: Operand = shape(&[NO_SUCH, "2D", NO_SUCH, "CUBE", NO_SUCH, "ARRAY_2D", NO_SUCH, "ARRAY_CUBE"]);
const GRADIENT_SHAPES: Operand = shape(&["1D", "2D", NO_SUCH, NO_SUCH, "ARRAY_1D", "ARRAY_2D", NO_SUCH, NO_SUCH]);

/// Codes of form 1 have the handle in a register.
const BINDLESS: Modifier = function(Aspect::Bindless, |word| Some(if word.form() == 1 { ".B" } else { "" }), 0);
/// The bank and the word of the constant with the handle.
const BANK: Operand = number(54, 5);
const INDEX: Operand = number(40, 14);
/// The register that a bindless access has its handle in may have further coordinates.
const FURTHER: Operand = RB.shown(Shown::UnlessZero(32));

/// The operands of a bindless access to a texture.
macro_rules! bindless {
    ($shapes:ident) => {
        &[PD_IF_ANY, RD2, RD, RA, RB, $shapes, COMPONENTS]
    };
}
/// The operands of an access to a texture that a constant names.
macro_rules! bound {
    ($shapes:ident) => {
        &[PD_IF_ANY, RD2, RD, RA, FURTHER, BANK, INDEX, $shapes, COMPONENTS]
    };
}

/// The operands of an access to a texture whose handle is in a bank that a uniform register describes.
macro_rules! described {
    ($shapes:ident) => {
        &[PD_IF_ANY, RD2, RD, RA, FURTHER, BANK_DESCRIPTOR, WORD, $shapes, COMPONENTS]
    };
}
const BANK_DESCRIPTOR: Operand = uniform(40, Sign::None);
const WORD: Operand = number(46, 8);
const IS_UNIFORM: &[(Field, u64)] = &[(Field::new(91, 1), 1)];

/// The bit that is set in every bindless access.
const BINDLESS_BIT: &[(Field, u64)] = &[(Field::new(59, 1), 1)];
const SCALAR: Modifier = flag(Aspect::Scalars, 60, ".SCR");
const HALVES: Modifier = choice(Aspect::ResultType, 79, 2, &["", ".F16.RN", ".F16.RZ", NO_SUCH]);
const OFFSETS: Modifier = flag(Aspect::Offsets, 76, ".AOFFI");
const COMPARED: Modifier = flag(Aspect::DepthComparison, 78, ".DC");
const NO_DEPENDENCE: Modifier = flag(Aspect::NoDependence, 90, ".NODEP");

const SURFACE_SHAPE: Modifier =
    choice(Aspect::Shape, 61, 3, &[".1D", ".1D_BUFFER", ".1D_ARRAY", ".2D", ".2D_ARRAY", ".3D", NO_SUCH, NO_SUCH]);
/// The effect outside of the surface.
const OUTSIDE: Modifier = choice(Aspect::Outside, 59, 2, &[".IGN", "", ".TRAP", NO_SUCH]);
const BYTES: Modifier = text(".D");
const PIXELS: Modifier = text(".P");
/// The place is in bytes rather than in texels.
const BY_BYTES: Modifier = flag(Aspect::ByBytes, 72, ".BA");

const SAMPLE: &[Modifier] = &[
    SCALAR,
    BINDLESS,
    HALVES,
    choice(Aspect::Level, 87, 3, &["", ".LZ", ".LB", ".LL", ".LC", ".LB.LC", NO_SUCH, NO_SUCH]),
    OFFSETS,
    flag(Aspect::NoDerivative, 77, ".NDV"),
    COMPARED,
    EVICTION,
    NO_DEPENDENCE,
];
const FETCH: &[Modifier] = &[
    SCALAR,
    BINDLESS,
    HALVES,
    choice(Aspect::Level, 87, 3, &[NO_SUCH, ".LZ", NO_SUCH, ".LL", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH]),
    OFFSETS,
    flag(Aspect::Clamp, 77, ".CL"),
    flag(Aspect::Samples, 78, ".MS"),
    EVICTION,
    NO_DEPENDENCE,
];
const GATHER: &[Modifier] = &[
    SCALAR,
    choice(Aspect::Component, 87, 2, &[".R", ".G", ".B", ".A"]),
    BINDLESS,
    HALVES,
    OFFSETS,
    flag(Aspect::OffsetsOfTexels, 77, ".PTP"),
    COMPARED,
    EVICTION,
    NO_DEPENDENCE,
];
const GRADIENT: &[Modifier] = &[BINDLESS, HALVES, flag(Aspect::Level, 87, ".LC"), OFFSETS, EVICTION, NO_DEPENDENCE];
const SURFACE: &[Modifier] = &[BYTES, BY_BYTES, SURFACE_SHAPE, EVICTION, SIZE, STORE_ORDER, SCOPE, OUTSIDE];
const COMPONENTS_OF_PIXEL: Modifier = choice(
    Aspect::Component,
    72,
    4,
    &[
        NO_SUCH, ".R", NO_SUCH, ".RG", NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH, NO_SUCH,
        NO_SUCH, NO_SUCH, "",
    ],
);
const LOADED_SURFACE: &[Modifier] = &[BYTES, BY_BYTES, SURFACE_SHAPE, EVICTION, SIZE, LOAD_ORDER, LOAD_SCOPE, OUTSIDE];
const STORED_SURFACE: &[Modifier] =
    &[BYTES, BY_BYTES, SURFACE_SHAPE, EVICTION, SIZE, AMPERE_STORE_ORDER, AMPERE_STORE_SCOPE, OUTSIDE];
const STORED_PIXEL: &[Modifier] =
    &[PIXELS, SURFACE_SHAPE, EVICTION, AMPERE_STORE_ORDER, AMPERE_STORE_SCOPE, COMPONENTS_OF_PIXEL, OUTSIDE];
/// For pixels: the components that are written.
const PIXEL: &[Modifier] = &[PIXELS, SURFACE_SHAPE, EVICTION, STORE_ORDER, SCOPE, COMPONENTS_OF_PIXEL, OUTSIDE];
const REDUCTION: &[Modifier] =
    &[BYTES, BY_BYTES, SURFACE_SHAPE, SURFACE_OPERATION, EVICTION, SURFACE_TYPE, STRONG, SCOPE, OUTSIDE];

const REDUCED_SURFACE: &[Modifier] = &[
    BYTES,
    BY_BYTES,
    SURFACE_SHAPE,
    SURFACE_OPERATION,
    EVICTION,
    SURFACE_TYPE,
    AMPERE_STORE_ORDER,
    AMPERE_STORE_SCOPE,
    OUTSIDE,
];
const SURFACE_OPERATION: Modifier =
    choice(Aspect::Operation, 87, 3, &[".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"]);
const SURFACE_TYPE: Modifier = function(Aspect::Type, reduced_type, Field::new(73, 3).mask());

pub(super) const ENCODINGS: &[Encoding] = &[
    Encoding::new(Opcode::Tex, &[0x361], SAMPLE, bindless!(SAMPLED_SHAPES)).fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Tex, &[0xb60], SAMPLE, bound!(SAMPLED_SHAPES)),
    Encoding::new(Opcode::Tld, &[0x367], FETCH, bindless!(FETCHED_SHAPES)).fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Tld, &[0xb66], FETCH, bound!(FETCHED_SHAPES)),
    Encoding::new(Opcode::Tld4, &[0x364], GATHER, bindless!(GATHERED_SHAPES)).fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Tld4, &[0xb63], GATHER, bound!(GATHERED_SHAPES)),
    Encoding::new(Opcode::Txd, &[0x36d], GRADIENT, bindless!(GRADIENT_SHAPES)).fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Txd, &[0xb6c], GRADIENT, bound!(GRADIENT_SHAPES)),
    Encoding::new(Opcode::Txq, &[0x370], &[BINDLESS, NO_DEPENDENCE], &[RD2, RD, RA, QUERY, QUERIED])
        .fixed(BINDLESS_BIT),
    Encoding::new(Opcode::Txq, &[0xb6f], &[BINDLESS, NO_DEPENDENCE], &[RD2, RD, RA, QUERY, BANK, INDEX, QUERIED]),
    Encoding::new(Opcode::Suld, &[0x99a], SURFACE, &[PD_IF_ANY, RD, AT_TEXEL, HANDLE]).until(75),
    Encoding::new(Opcode::Suld, &[0xb99], SURFACE, &[PD_IF_ANY, RD, AT_TEXEL, BANK, INDEX]).until(75),
    Encoding::new(Opcode::Sust, &[0x99e], SURFACE, &[AT_TEXEL, RB, HANDLE]).until(75),
    Encoding::new(Opcode::Sust, &[0xb9d], SURFACE, &[AT_TEXEL, RB, BANK, INDEX]).until(75),
    Encoding::new(Opcode::Sust, &[0x99c], PIXEL, &[AT_TEXEL, RB, HANDLE]).until(75),
    Encoding::new(Opcode::Sust, &[0xb9b], PIXEL, &[AT_TEXEL, RB, BANK, INDEX]).until(75),
    Encoding::new(Opcode::Sured, &[0x3a0], REDUCTION, &[AT_TEXEL, RB, HANDLE]).until(75),
    Encoding::new(Opcode::Sured, &[0x59f], REDUCTION, &[AT_TEXEL, RB, BANK, INDEX]).until(75),
    // Ampere has another field for order and scope.
    Encoding::new(Opcode::Suld, &[0x99a], LOADED_SURFACE, &[PD_IF_ANY, RD, AT_TEXEL, HANDLE]).since(80),
    Encoding::new(Opcode::Suld, &[0xb99], LOADED_SURFACE, &[PD_IF_ANY, RD, AT_TEXEL, BANK, INDEX]).since(80),
    Encoding::new(Opcode::Sust, &[0x99e], STORED_SURFACE, &[AT_TEXEL, RB, HANDLE]).since(80),
    Encoding::new(Opcode::Sust, &[0xb9d], STORED_SURFACE, &[AT_TEXEL, RB, BANK, INDEX]).since(80),
    Encoding::new(Opcode::Sust, &[0x99c], STORED_PIXEL, &[AT_TEXEL, RB, HANDLE]).since(80),
    Encoding::new(Opcode::Sust, &[0xb9b], STORED_PIXEL, &[AT_TEXEL, RB, BANK, INDEX]).since(80),
    Encoding::new(Opcode::Sured, &[0x3a0], REDUCED_SURFACE, &[AT_TEXEL, RB, HANDLE]).since(80),
    Encoding::new(Opcode::Sured, &[0x59f], REDUCED_SURFACE, &[AT_TEXEL, RB, BANK, INDEX]).since(80),
    // Hopper may have the handle in a bank that uniform registers describe.
    Encoding::new(Opcode::Tex, &[0xf60], SAMPLE, described!(SAMPLED_SHAPES)).fixed(IS_UNIFORM).since(80),
    Encoding::new(Opcode::Tld, &[0xf66], FETCH, described!(FETCHED_SHAPES)).fixed(IS_UNIFORM).since(80),
    Encoding::new(Opcode::Tld4, &[0xf63], GATHER, described!(GATHERED_SHAPES)).fixed(IS_UNIFORM).since(80),
    Encoding::new(Opcode::Txd, &[0xf6c], GRADIENT, described!(GRADIENT_SHAPES)).fixed(IS_UNIFORM).since(80),
    Encoding::new(
        Opcode::Txq,
        &[0xf6f],
        &[BINDLESS, NO_DEPENDENCE],
        &[RD2, RD, RA, QUERY, BANK_DESCRIPTOR, WORD, QUERIED],
    )
    .fixed(IS_UNIFORM)
    .since(80),
    Encoding::new(Opcode::Suld, &[0xf99], LOADED_SURFACE, &[PD_IF_ANY, RD, AT_TEXEL, BANK_DESCRIPTOR, WORD])
        .fixed(IS_UNIFORM)
        .since(80),
    Encoding::new(Opcode::Sust, &[0xf9d], STORED_SURFACE, &[AT_TEXEL, RB, BANK_DESCRIPTOR, WORD])
        .fixed(IS_UNIFORM)
        .since(80),
    Encoding::new(Opcode::Sust, &[0xf9b], STORED_PIXEL, &[AT_TEXEL, RB, BANK_DESCRIPTOR, WORD])
        .fixed(IS_UNIFORM)
        .since(80),
    Encoding::new(Opcode::Sured, &[0xf9f], REDUCED_SURFACE, &[AT_TEXEL, RB, BANK_DESCRIPTOR, WORD])
        .fixed(IS_UNIFORM)
        .since(80),
];

const QUERY: Operand = at(Slot::Name(
    Aspect::Operation,
    Field::new(62, 2),
    &["TEX_HEADER_DIMENSION", "TEX_HEADER_TEXTURE_TYPE", "TEX_HEADER_SAMPLER_POS"],
));
const QUERIED: Operand = number(72, 4);

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
