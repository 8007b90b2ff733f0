//! What a program of machine code has beyond any program: its words, and what launches put into its constants.

use super::CodeSection;
use super::functions::SharedFunctions;
use crate::operation::Row;
use crate::program::{LANES, Program};
use crate::sass;
use crate::source_lines::InstructionLines;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// Where parameters begin in constant bank 0 (`EIATTR_PARAM_CBANK` of kernels for Volta and Turing), unless they are too many.
pub const PARAMETERS_AT: u32 = 0x160;

/// Where a kernel's parameters begin in constant bank 0, bytes. CUDA 13 puts those of a kernel with more than about 4 KiB of them to
/// 0x1a80, all of them (own finding: 4112 bytes are at 0x160, 6012 are not).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterBase(pub u32);

impl Default for ParameterBase {
    fn default() -> Self {
        ParameterBase(PARAMETERS_AT)
    }
}

/// What machine code has beside its instructions.
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

/// A word that a launch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaunchWord {
    /// Of constant bank 0: its offset.
    Bank0(u32),
    /// Of constant bank 3: its offset.
    Bank3(u32),
}

impl MachineProgram {
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
}

/// What the constants of a launch follow from.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchFacts<'a> {
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of the grid in x, y, z.
    pub grid: [u32; 3],
    /// The parameter block.
    pub parameters: &'a [u8],
    /// The device address of a cooperative launch's grid workspace, else 0.
    pub grid_workspace: u64,
    /// Dynamic shared memory, bytes.
    pub dynamic_shared_bytes: u32,
    /// The launch's number.
    pub grid_id: u64,
    /// SMs of the GPU.
    pub sm_count: u32,
}

/// The constants of a program for one launch, a row each. All warps of the launch share them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchConstants(pub(crate) Arc<[Row]>);

impl Default for LaunchConstants {
    fn default() -> Self {
        LaunchConstants(Arc::from([]))
    }
}

impl LaunchConstants {
    /// Are they the same rows, not only equal ones?
    #[inline]
    pub(crate) fn is(&self, other: &LaunchConstants) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Program {
    /// The first instruction of the device runtime's function at an address; `None` where there is none.
    pub(crate) fn system_entry(&self, address: u64) -> Option<u32> {
        let machine = self.machine.as_ref()?;
        machine.system_entries.iter().find(|(at, _)| *at == address).map(|(_, entry)| *entry)
    }

    /// The constants for a launch. `read` reads device memory: the module's constant variables are taken as they are now.
    pub fn launch_constants(&self, facts: &LaunchFacts, mut read: impl FnMut(u64, &mut [u8])) -> LaunchConstants {
        let Some(machine) = self.machine.as_ref().filter(|machine| !machine.launch_rows.is_empty()) else {
            return LaunchConstants(Arc::clone(&self.constants));
        };
        let mut rows: Arc<[Row]> = Arc::from(&*self.constants);
        let fresh = Arc::get_mut(&mut rows).unwrap_or_default();
        for &(row, word) in &machine.launch_rows {
            let value = match word {
                LaunchWord::Bank0(offset) => self.bank_0(machine, facts, offset),
                LaunchWord::Bank3(offset) => {
                    let mut bytes = [0; 4];
                    match machine.bank_3 {
                        Some((address, length)) if u64::from(offset) + 4 <= length.next_multiple_of(4) => {
                            read(address + u64::from(offset), &mut bytes);
                        }
                        _ => {}
                    }
                    u32::from_le_bytes(bytes)
                }
            };
            fresh[usize::from(row)] = Row([value; LANES]);
        }
        LaunchConstants(rows)
    }

    /// A word of constant bank 0, in which the driver tells kernels of their launch. Own findings: what ptxas reads where PTX has a
    /// special register (`%ntid`, `%nctaid`, `%dynamic_smem_size`, `%gridid`, `%envreg1`, `%nsmid`), converts an address of a window, or
    /// begins the stack.
    fn bank_0(&self, machine: &MachineProgram, facts: &LaunchFacts, offset: u32) -> u32 {
        use crate::execution::{LOCAL_WINDOW, SHARED_WINDOW};
        if let Some(&(_, value)) = machine.fixed_slots.iter().find(|(at, _)| *at == offset) {
            return value;
        }
        let half = |value: u64, high: bool| if high { (value >> 32) as u32 } else { value as u32 };
        match offset {
            0x00 | 0x04 | 0x08 => facts.block[offset as usize / 4],
            0x0c | 0x10 | 0x14 => facts.grid[offset as usize / 4 - 3],
            0x18 | 0x1c => half(SHARED_WINDOW, offset == 0x1c),
            0x20 | 0x24 => half(LOCAL_WINDOW, offset == 0x24),
            0x28 => self.resources.local_bytes,
            0x2c => facts.dynamic_shared_bytes,
            0x30 | 0x34 => half(facts.grid_id, offset == 0x34),
            // The module's constant variables as memory: what takes the address of one adds its place in the bank.
            0x50 | 0x54 => half(machine.bank_3.map_or(0, |(address, _)| address), offset == 0x54),
            0x10c => facts.sm_count,
            // As the registers of PTX: the first has the high word (see `%envreg1` in `WarpShape`).
            0x8c => half(facts.grid_workspace, true),
            0x90 => half(facts.grid_workspace, false),
            _ if offset >= machine.parameter_base.0 => {
                let start = (offset - machine.parameter_base.0) as usize;
                let mut bytes = [0; 4];
                for (to, from) in bytes.iter_mut().zip(facts.parameters.iter().skip(start)) {
                    *to = *from;
                }
                u32::from_le_bytes(bytes)
            }
            _ => 0,
        }
    }
}
