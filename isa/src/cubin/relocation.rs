//! Relocations: places that the loader fills in with the values of symbols.
//!
//! Source: own findings. The numbers were given to a disassembler, which printed their names; the meanings are from the output of ptxas
//! 12.9 and 13.5 for PTX made for the purpose.

use super::elf::File;
use super::error::CubinError;
use object::LittleEndian as LE;
use object::read::elf::{Rel as _, Rela as _, SectionHeader as _};

/// The field to fill in. The name of an instruction's field has its first bit: `R_CUDA_ABS32_LO_32` is the low word of an address, at bit
/// 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationKind {
    /// Nothing (0).
    None,
    /// `R_CUDA_32` (1): the low 32 bits of an address, in data.
    Address32,
    /// `R_CUDA_64` (2): an address, in data. All of `.nv.constant4` has it, and function pointers in `.nv.global.init`.
    Address64,
    /// `R_CUDA_G32` (3): the low 32 bits of a generic address, in data.
    Generic32,
    /// `R_CUDA_G64` (4): a generic address, in data: pointers to variables in `.nv.global.init` and `.nv.constant3`.
    Generic64,
    /// `R_CUDA_TEX_HEADER_INDEX` (6): the number of a texture, in the slot of a texture reference in constant bank 0.
    TextureHeaderIndex,
    /// `R_CUDA_SAMP_HEADER_INDEX` (7): the number of a sampler; in code for sm_90 of type 101, in the low half of a slot.
    SamplerHeaderIndex,
    /// `R_CUDA_FUNC_DESC_32` (34): the low 32 bits of a function's address, in data.
    FunctionDescriptor32,
    /// `R_CUDA_FUNC_DESC_64` (35): a function's address, in data; for sm_90 of type 102, where code takes it for a place in a table of functions
    /// ([`Self::FunctionTable`]).
    FunctionDescriptor64,
    /// `R_CUDA_SURF_HEADER_INDEX` (52): the number of a surface.
    SurfaceHeaderIndex,
    /// `R_CUDA_ABS32_32` (55): an address of 32 bits, at bit 32.
    Instruction32,
    /// `R_CUDA_ABS32_LO_32` (56): the low word of an address, at bit 32.
    InstructionLow32,
    /// `R_CUDA_ABS32_HI_32` (57): the high word of an address, at bit 32.
    InstructionHigh32,
    /// `R_CUDA_ABS47_34` (58): the 47 bits of a call's target, at bit 34.
    Instruction47,
    /// `R_CUDA_ABS16_32` (59): an address of 16 bits, at bit 32: the address of a constant variable in a register.
    Instruction16,
    /// `R_CUDA_FUNC_DESC32_32` (61): a function's address of 32 bits, at bit 32.
    InstructionFunction32,
    /// `R_CUDA_FUNC_DESC32_LO_32` (62): the low word of a function's address, at bit 32.
    InstructionFunctionLow32,
    /// `R_CUDA_FUNC_DESC32_HI_32` (63): the high word of a function's address, at bit 32.
    InstructionFunctionHigh32,
    /// `R_CUDA_CONST_FIELD19_40` (64): where in a constant bank, bits 2 to 15 at bit 40, and the bank above them.
    InstructionConstant19,
    /// `R_CUDA_BINDLESSOFF14_40` (65): the place in constant bank 0 of a texture's or surface's number, bits 2 to 15 at bit 40. The linker
    /// makes room for the number behind the parameters.
    InstructionSlot14,
    /// `R_CUDA_CONST_FIELD21_38` (66): a place in a constant bank, 16 bits with a sign at bit 38, and the bank above them. A load with an
    /// index adds the place to the index.
    InstructionConstant21,
    /// `R_CUDA_YIELD_OPCODE9_0` (68) and `R_CUDA_YIELD_CLEAR_PRED4_87` (69): a `YIELD` that linkers may make an instruction without effect.
    Yield,
    /// `R_CUDA_UNUSED_CLEAR32` (72): 32 bits, cleared where the function is not used.
    UnusedClear32,
    /// `R_CUDA_UNUSED_CLEAR64` (73): 64 bits, cleared where the function is not used.
    UnusedClear64,
    /// `R_CUDA_ABS24_40` (74): an address of 24 bits, at bit 40: the address of a shared variable in a load or store.
    Instruction24,
    /// `R_CUDA_ABS55_16_34` (75): the 55 bits of a call's target from Hopper on, the lower eight at bit 16, the others at bit 34.
    InstructionSplit55,
    /// Where the table of functions of sm_90 is (114), which a call through a pointer adds to the pointer. Pointers are addresses of functions
    /// here, so that nothing is added.
    FunctionTable,
    /// Another number.
    Other(u32),
}

impl RelocationKind {
    fn of(number: u32) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Address32,
            2 => Self::Address64,
            3 => Self::Generic32,
            4 => Self::Generic64,
            6 => Self::TextureHeaderIndex,
            7 | 101 => Self::SamplerHeaderIndex,
            34 => Self::FunctionDescriptor32,
            35 | 102 => Self::FunctionDescriptor64,
            52 => Self::SurfaceHeaderIndex,
            55 => Self::Instruction32,
            56 => Self::InstructionLow32,
            57 => Self::InstructionHigh32,
            58 => Self::Instruction47,
            59 => Self::Instruction16,
            61 => Self::InstructionFunction32,
            62 => Self::InstructionFunctionLow32,
            63 => Self::InstructionFunctionHigh32,
            64 => Self::InstructionConstant19,
            65 => Self::InstructionSlot14,
            66 => Self::InstructionConstant21,
            68 | 69 => Self::Yield,
            72 => Self::UnusedClear32,
            73 => Self::UnusedClear64,
            74 => Self::Instruction24,
            75 => Self::InstructionSplit55,
            114 => Self::FunctionTable,
            other => Self::Other(other),
        }
    }
}

/// A relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The number of the section that it changes.
    pub section: usize,
    /// The offset of the place in it, in bytes; for an instruction the offset of its first byte.
    pub offset: u64,
    /// The field to fill in.
    pub kind: RelocationKind,
    /// The number of the symbol that it is about.
    pub symbol: usize,
    /// The number that is added to the symbol's address; `None` where the bytes in place hold it (`.rel` sections).
    pub addend: Option<i64>,
}

/// The relocations of all sections that the GPU gets to see.
pub(super) fn relocations(file: &File<'_>) -> Result<Vec<Relocation>, CubinError> {
    let mut all = Vec::new();
    for section in &file.sections {
        let broken = |error: object::Error| {
            CubinError::section(section.name, 0, format!("{error}, expected relocations of the table of symbols"))
        };
        let rel = section.header.rel(LE, file.bytes).map_err(broken)?;
        let rela = section.header.rela(LE, file.bytes).map_err(broken)?;
        let rel = rel.map_or(&[][..], |(entries, _)| entries).iter();
        let rel = rel.map(|entry| (entry.r_offset(LE), entry.r_type(LE), entry.r_sym(LE), None));
        let rela = rela.map_or(&[][..], |(entries, _)| entries).iter().map(|entry| {
            (entry.r_offset(LE), entry.r_type(LE, false), entry.r_sym(LE, false), Some(entry.r_addend(LE)))
        });
        for (offset, number, symbol, addend) in rel.chain(rela) {
            let target = section.info as usize;
            let Some(changed) = file.sections.get(target) else {
                let count = file.sections.len();
                let what = format!("relocations of section {target}, expected one of the {count} that there are");
                return Err(CubinError::section(section.name, 0, what));
            };
            if !changed.is_loaded() {
                break;
            }
            if offset >= changed.bytes {
                let bytes = changed.bytes;
                let what = format!("a relocation of byte {offset:#x}, expected one of the section's {bytes:#x} bytes");
                return Err(CubinError::section(changed.name, 0, what));
            }
            let symbol = file.symbol(symbol, section.name, 0)?;
            all.push(Relocation { section: target, offset, kind: RelocationKind::of(number), symbol, addend });
        }
    }
    Ok(all)
}
