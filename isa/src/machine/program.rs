//! The parts of a program of machine code that other programs do not have: its words, and the cubins that they come from.

use super::code::{CodeSection, LaunchWord, ParameterBase};
use super::shared::SharedFunctions;
use crate::sass;
use crate::source_lines::InstructionLines;
use std::sync::{Arc, OnceLock};

/// The parts of machine code beside its instructions.
#[derive(Clone, Debug)]
pub(crate) struct MachineProgram {
    /// The program's own instructions as they were decoded; those of the device runtime's functions, at the end, have none.
    pub instructions: Vec<sass::Instruction>,
    /// The functions behind them that other programs have, too.
    pub shared: Option<Arc<SharedFunctions>>,
    /// Where functions begin, ascending, with their names.
    pub functions: Vec<(u32, Box<str>)>,
    /// The functions of the file, ascending.
    pub sections: Vec<CodeSection>,
    /// Rows of the constants that launches fill in.
    pub launch_rows: Vec<(u16, LaunchWord)>,
    /// The architecture that its code is for: 75 for sm_75.
    pub architecture: u32,
    /// Where parameters begin in bank 0.
    pub parameter_base: ParameterBase,
    /// Where bank 3 lies in device memory, and its bytes.
    pub bank_3: Option<(u64, u64)>,
    /// Slots of bank 0 that are the same for all launches: offset, value.
    pub fixed_slots: Vec<(u32, u32)>,
    /// Addresses of the device runtime's functions, and their first instructions.
    pub system_entries: Vec<(u64, u32)>,
    /// The cubins that it is of.
    pub images: Vec<Arc<[u8]>>,
    /// The lines of its instructions, once they have been asked for.
    pub source_lines: Arc<OnceLock<InstructionLines>>,
}

impl MachineProgram {
    /// Does the driver lay out bank 0 as for Hopper?
    pub fn is_hopper(&self) -> bool {
        self.architecture >= 90
    }

    /// The instruction at a program counter; `None` of functions of the device runtime.
    pub fn instruction(&self, pc: u32) -> Option<&sass::Instruction> {
        let shared = || self.shared.as_ref()?.code().decoded.get(pc as usize - self.instructions.len());
        self.instructions.get(pc as usize).or_else(shared)
    }

    /// How many instructions were decoded.
    pub fn decoded(&self) -> usize {
        self.instructions.len() + self.shared.as_ref().map_or(0, |shared| shared.code().decoded.len())
    }

    /// The function that an instruction is in, and its first instruction.
    pub fn function(&self, pc: u32) -> (u32, &str) {
        let after = self.functions.partition_point(|(first, _)| *first <= pc);
        self.functions.get(after.saturating_sub(1)).map_or((0, ""), |(first, name)| (*first, name))
    }

    /// An instruction with its place.
    pub fn describe(&self, pc: u32) -> String {
        let (first, name) = self.function(pc);
        match self.instruction(pc) {
            Some(instruction) => format!("{name}+{:#x}: {instruction}", (pc - first) * sass::INSTRUCTION_BYTES as u32),
            None => "a function of the device runtime".to_owned(),
        }
    }

    /// The source lines of its instructions, which are read from the cubins when they are first asked for. A cubin whose line tables are
    /// broken has none.
    pub fn source_lines(&self) -> &InstructionLines {
        self.source_lines.get_or_init(|| {
            let mut found = InstructionLines::default();
            let Ok(tables) = crate::cubin::line_tables(&self.images, &mut found.lines) else {
                return InstructionLines::default();
            };
            for section in &self.sections {
                let Some(table) = tables.get(&section.section) else { continue };
                for word in 0..section.words {
                    let address = u64::from(word) * crate::sass::INSTRUCTION_BYTES as u64;
                    found.set((section.first + word) as usize, table.place_at(address));
                }
            }
            found
        })
    }
}
