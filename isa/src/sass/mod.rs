//! The machine code of Volta to Hopper: the meaning of a kernel's words, and their text.
//!
//! Words are decoded by tables (`table/`), one row an encoding, in which every bit of a word belongs to something. The text is close to the
//! text of NVIDIA's disassembler, so that listings can be compared. `manifest.txt` lists the encodings, and the project's use of each.

mod aspect;
mod encoding;
mod instruction;
mod liveness;
mod number;
mod opcode;
mod slot;
mod special_register;
mod table;
mod text;
mod uses;
mod view;
mod word;

pub use aspect::Aspect;
pub use encoding::Encoding;
pub use instruction::Instruction;
pub use liveness::{Live, RegisterSet, live};
pub use opcode::Opcode;
pub use uses::{RegisterRange, RegisterRanges, Uses};
pub use view::{Address, Jump, Location, PredicateOperand, RegisterOperand, SourceOperand};
pub use word::{ControlWord, Field, INSTRUCTION_BYTES, Word};
pub(crate) use word::{ZERO_REGISTER, ZERO_UNIFORM_REGISTER};

/// The architectures whose code is known: Volta to Hopper.
pub const ARCHITECTURES: [u32; 8] = [70, 72, 75, 80, 86, 87, 89, 90];

/// A word that no encoding is known for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no instruction of sm_{architecture} at {address:#x}: {word}")]
pub struct Undecodable {
    /// Where it lies, bytes from the beginning of its section.
    pub address: u64,
    /// Its bits.
    pub word: Word,
    /// For which architecture: 70 for sm_70.
    pub architecture: u32,
}

/// All encodings, by their work.
pub fn encodings() -> impl Iterator<Item = &'static Encoding> {
    table::TABLES.iter().copied().flatten()
}

/// The instruction that a word is, at an address of its section.
///
/// # Errors
///
/// No encoding of the architecture accounts for all its bits.
pub fn decode(word: Word, address: u64, architecture: u32) -> Result<Instruction, Undecodable> {
    let mut candidates = table::candidates(word).iter();
    let fits = |encoding: &&&Encoding| encoding.architectures().contains(&architecture) && encoding.accepts(word);
    match candidates.find(fits) {
        Some(encoding) => Ok(Instruction { word, address, encoding }),
        None => Err(Undecodable { address, word, architecture }),
    }
}

/// The same where it is of an opcode, which costs nothing for most words of other opcodes.
pub(crate) fn decode_only(opcode: Opcode, word: Word, address: u64, architecture: u32) -> Option<Instruction> {
    let may_be = table::candidates(word).iter().any(|encoding| encoding.opcode == opcode);
    may_be.then(|| decode(word, address, architecture).ok()).flatten()
}

/// The instructions in a section's bytes. A rest that is no instruction is left out.
pub fn decode_all(code: &[u8], architecture: u32) -> impl Iterator<Item = Result<Instruction, Undecodable>> {
    let (words, _) = code.as_chunks::<INSTRUCTION_BYTES>();
    words.iter().enumerate().map(move |(index, bytes)| {
        let address = (index * INSTRUCTION_BYTES) as u64;
        decode(Word(u128::from_le_bytes(*bytes)), address, architecture)
    })
}
