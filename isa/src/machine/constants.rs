//! The values that launches put into the constants of a program of machine code.

use super::code::LaunchWord;
use super::program::MachineProgram;
use crate::cluster::{ClusterShape, shared_base};
use crate::lanes::LANES;
use crate::operation::operand::Row;
use crate::program::Program;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The facts that the constants of a launch follow from.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchFacts<'a> {
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of the grid in x, y, z.
    pub grid: [u32; 3],
    /// Its clusters.
    pub cluster: ClusterShape,
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

    /// The constants of a CTA of this rank in its cluster, where `constants` are those of its launch.
    pub fn constants_of_rank(&self, constants: &LaunchConstants, rank: u32) -> LaunchConstants {
        if rank == 0 || self.shared_addresses.is_empty() {
            return constants.clone();
        }
        let mut rows: Arc<[Row]> = Arc::from(&*constants.0);
        for &(row, wide) in &self.shared_addresses {
            let (first, base) = (usize::from(row), shared_base(rank));
            let Some(fresh) = Arc::get_mut(&mut rows) else { break };
            if wide {
                let Some(values) = fresh.get_mut(first..first + 2) else { continue };
                let values: &mut [u64] = bytemuck::cast_slice_mut(values);
                values.iter_mut().for_each(|value| *value = value.wrapping_add(base));
            } else if let Some(Row(values)) = fresh.get_mut(first) {
                values.iter_mut().for_each(|value| *value = value.wrapping_add(base as u32));
            }
        }
        LaunchConstants(rows)
    }

    /// Does each rank have constants of its own?
    pub fn has_constants_of_ranks(&self) -> bool {
        !self.shared_addresses.is_empty()
    }

    /// The words of bank 0 that Hopper has beside those of the architectures before it, or in other places.
    fn bank_0_of_hopper(&self, machine: &MachineProgram, facts: &LaunchFacts, offset: u32) -> Option<u32> {
        use crate::execution::PARAMETER_WINDOW;
        Some(match offset {
            0x44 | 0x48 => half(facts.grid_workspace, offset == 0x44),
            // What belongs to the system of the shared memory that `SR_SMEMSZ` counts, and where it ends.
            0x68 | 0x114 => self.resources.reserved_shared_bytes,
            // `%aggr_smem_size` is the smaller of this word and of `SR_SMEMSZ`.
            0x13c => u32::MAX,
            // Whether the launch names its clusters, CTAs of a cluster and the inverses of them, clusters of the grid, CTAs of a cluster
            // together.
            0x140 => u32::from(facts.cluster.is_explicit),
            0x144 | 0x148 | 0x14c => facts.cluster.dimensions[(offset - 0x144) as usize / 4],
            0x150 | 0x154 | 0x158 => inverse(facts.cluster.dimensions[(offset - 0x150) as usize / 4]).to_bits(),
            0x15c | 0x160 | 0x164 => facts.cluster.clusters(facts.grid)[(offset - 0x15c) as usize / 4],
            0x188 => facts.cluster.size(),
            // The generic address of the bank (cuBLASLt's own code for Hopper adds offsets of tensor maps in the bank to it), and of the
            // parameters in it.
            0xc0 | 0xc4 => half(PARAMETER_WINDOW - u64::from(machine.parameter_base.0), offset == 0xc4),
            0x198 | 0x19c => half(PARAMETER_WINDOW, offset == 0x19c),
            _ => return None,
        })
    }

    /// A word of constant bank 0, in which the driver tells kernels of their launch. Own findings: ptxas reads these words where PTX has a
    /// special register (`%ntid`, `%nctaid`, `%dynamic_smem_size`, `%gridid`, `%envreg1`, `%nsmid`), converts an address of a window, or
    /// begins the stack.
    fn bank_0(&self, machine: &MachineProgram, facts: &LaunchFacts, offset: u32) -> u32 {
        use crate::execution::{LOCAL_WINDOW, SHARED_WINDOW};
        if let Some(&(_, value)) = machine.fixed_slots.iter().find(|(at, _)| *at == offset) {
            return value;
        }
        if let Some(value) = machine.is_hopper().then(|| self.bank_0_of_hopper(machine, facts, offset)).flatten() {
            return value;
        }
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

/// The inverse of a number, rounded up: ptxas multiplies an index by it and drops the fraction, which must not fall short of a whole number.
fn inverse(number: u32) -> f32 {
    let exact = 1.0 / f64::from(number);
    let nearest = exact as f32;
    if f64::from(nearest) < exact { nearest.next_up() } else { nearest }
}

/// The upper or the lower word of a value.
fn half(value: u64, high: bool) -> u32 {
    if high { (value >> 32) as u32 } else { value as u32 }
}
