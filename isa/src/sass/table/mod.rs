//! The encodings of Volta to Hopper, by their work.
//!
//! Own findings, from the output of disassemblers for words of ours and for the code of public programs; the columns of bits are in
//! `encoding.rs`. A row is added here and found by its codes at once.

mod asynchronous;
mod barriers;
mod bulk;
mod control;
mod conversion;
mod double;
mod exchange;
mod extrema;
mod global;
mod half;
mod integer;
mod jumps;
mod matrix_groups;
mod memory;
mod single;
mod slots;
mod tensor;
mod texture;
mod uniform;

use super::encoding::Encoding;
use super::word::Word;
use std::sync::LazyLock;

/// All encodings.
pub(super) const TABLES: &[&[Encoding]] = &[
    integer::ENCODINGS,
    extrema::ENCODINGS,
    single::ENCODINGS,
    double::ENCODINGS,
    half::ENCODINGS,
    conversion::ENCODINGS,
    exchange::ENCODINGS,
    memory::ENCODINGS,
    global::ENCODINGS,
    asynchronous::ENCODINGS,
    barriers::ENCODINGS,
    bulk::ENCODINGS,
    control::ENCODINGS,
    jumps::ENCODINGS,
    jumps::OF_HOPPER,
    jumps::FURTHER_OF_HOPPER,
    tensor::ENCODINGS,
    matrix_groups::ENCODINGS,
    texture::ENCODINGS,
    uniform::ENCODINGS,
];

/// Codes that 12 bits can have.
const CODES: usize = 1 << 12;

/// The encodings of each code.
static BY_CODE: LazyLock<Vec<Vec<&'static Encoding>>> = LazyLock::new(|| {
    let mut by_code = vec![Vec::new(); CODES];
    for encoding in TABLES.iter().copied().flatten() {
        encoding.codes.iter().for_each(|&code| by_code[usize::from(code)].push(encoding));
    }
    by_code
});

/// The encodings that a word may be of.
pub(super) fn candidates(word: Word) -> &'static [&'static Encoding] {
    &BY_CODE[usize::from(word.code())]
}
