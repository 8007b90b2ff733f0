//! What an SM has for CTAs, what a CTA takes of it, and how many CTAs fit: the one rule of occupancy.

use crate::launch::KernelLaunch;
use crate::quantity::Frequency;
use serde::{Deserialize, Serialize};

/// What an SM provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmCapability {
    /// What its CTAs share.
    pub resources: SmResources,
    /// CTAs that it holds at once.
    pub cta_slots: u32,
    /// Its clock.
    pub clock: Frequency,
}

impl SmCapability {
    /// What both this and `other` have.
    pub fn least(&self, other: &SmCapability) -> SmCapability {
        SmCapability {
            resources: self.resources.least(&other.resources),
            cta_slots: self.cta_slots.min(other.cta_slots),
            clock: self.clock.min(other.clock),
        }
    }

    /// How many CTAs that take `wanted` each it runs at once.
    pub fn room_for(&self, wanted: &CtaNeeds) -> u32 {
        self.resources.room_for(wanted, self.cta_slots)
    }
}

/// Sub-cores that an SM can have.
pub const MAXIMUM_SUB_CORES: usize = 8;
/// Register files that an SM can have.
pub const MAXIMUM_REGISTER_FILES: usize = MAXIMUM_SUB_CORES;
/// Registers are given to a warp in units of this many (CUDA occupancy calculator, compute capability 3.5 to 9.0).
const REGISTER_UNIT: u32 = 256;

/// What one SM has in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmResources {
    /// Threads.
    pub threads: u32,
    /// Warps.
    pub warps: u32,
    /// Sub-cores, 1 to [`MAXIMUM_SUB_CORES`], among which the warps are shared out evenly: warp slot i is one of sub-core i modulo their
    /// number.
    pub sub_cores: u32,
    /// 32-bit registers, of all register files together.
    pub registers: u32,
    /// Register files, 1 to [`MAXIMUM_REGISTER_FILES`], of one size: the registers of a warp are in one of them. The occupancy calculator
    /// calls their number the granularity of the allocation of warps: 2 of 6.0, 4 of all others. Where there are as many as sub-cores, each
    /// sub-core has one, and a warp is where its registers are.
    pub register_files: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Shared memory is given to a CTA in units of this many bytes (CUDA occupancy calculator: 256, from 8.0 on 128).
    pub shared_unit: u32,
}

/// Nothing, of an SM with one sub-core, one register file and the units of compute capability 6.0 to 7.5.
impl Default for SmResources {
    fn default() -> Self {
        Self { threads: 0, warps: 0, sub_cores: 1, registers: 0, register_files: 1, shared_bytes: 0, shared_unit: 256 }
    }
}

impl SmResources {
    /// An SM of compute capability 7.0 (CUDA C++ Programming Guide, table of technical specifications).
    pub const VOLTA: SmResources = SmResources {
        threads: 2048,
        warps: 64,
        sub_cores: 4,
        registers: 65_536,
        register_files: 4,
        shared_bytes: 96 << 10,
        shared_unit: 256,
    };

    /// What both this and `other` have.
    pub fn least(&self, other: &SmResources) -> SmResources {
        SmResources {
            threads: self.threads.min(other.threads),
            warps: self.warps.min(other.warps),
            sub_cores: self.sub_cores.max(other.sub_cores),
            registers: self.registers.min(other.registers),
            register_files: self.register_files.max(other.register_files),
            shared_bytes: self.shared_bytes.min(other.shared_bytes),
            shared_unit: self.shared_unit.max(other.shared_unit),
        }
    }

    /// Warp slots of a sub-core.
    pub fn warps_of_sub_core(&self, sub_core: u32) -> u32 {
        self.warps.saturating_sub(sub_core).div_ceil(self.sub_cores.max(1))
    }

    /// Registers of one register file.
    pub fn registers_of_file(&self) -> u32 {
        self.registers / self.register_files.max(1)
    }

    /// Does it hold a CTA that takes `wanted`, where it runs nothing else?
    pub fn holds(&self, wanted: &CtaNeeds) -> bool {
        self.room_for(wanted, 1) > 0
    }

    /// How many CTAs that take `wanted` each, at most `slots`, it has room for.
    pub fn room_for(&self, wanted: &CtaNeeds, slots: u32) -> u32 {
        slots.min(self.by_warps(wanted)).min(self.by_registers(wanted)).min(self.by_shared_memory(wanted))
    }

    /// How many it has threads and warps for.
    pub fn by_warps(&self, wanted: &CtaNeeds) -> u32 {
        fits(self.threads, wanted.threads).min(fits(self.warps, wanted.warps))
    }

    /// How many it has registers for: each register file holds whole warps, and the warps of a CTA may be on any file.
    pub fn by_registers(&self, wanted: &CtaNeeds) -> u32 {
        match self.registers_of_file().checked_div(wanted.registers_of_warp) {
            Some(warps_of_file) => fits(warps_of_file * self.register_files, wanted.warps),
            None => u32::MAX,
        }
    }

    /// How many it has shared memory for.
    pub fn by_shared_memory(&self, wanted: &CtaNeeds) -> u32 {
        fits(self.shared_bytes, self.allocated_shared(wanted))
    }

    /// The shared memory that a CTA takes, in whole units.
    pub fn allocated_shared(&self, wanted: &CtaNeeds) -> u32 {
        wanted.shared_bytes.checked_next_multiple_of(self.shared_unit.max(1)).unwrap_or(u32::MAX)
    }
}

fn fits(all: u32, each: u32) -> u32 {
    all.checked_div(each).unwrap_or(u32::MAX)
}

/// What a CTA takes of an SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CtaNeeds {
    /// Threads.
    pub threads: u32,
    /// Warps.
    pub warps: u32,
    /// Registers of each warp, in whole units.
    pub registers_of_warp: u32,
    /// Bytes of shared memory, before they are rounded up to the units of an SM.
    pub shared_bytes: u32,
}

impl CtaNeeds {
    /// What a CTA of `launch` takes.
    pub fn of_cta(launch: &KernelLaunch) -> CtaNeeds {
        CtaNeeds::of_threads(launch.threads_per_cta(), launch.registers_per_thread, launch.shared_bytes)
    }

    /// What a CTA of so many threads takes, each of which has so many registers, and so much shared memory.
    pub fn of_threads(threads: u32, registers_per_thread: u32, shared_bytes: u32) -> CtaNeeds {
        CtaNeeds {
            threads,
            warps: threads.div_ceil(32),
            registers_of_warp: registers_per_thread
                .saturating_mul(32)
                .checked_next_multiple_of(REGISTER_UNIT)
                .unwrap_or(u32::MAX),
            shared_bytes,
        }
    }

    /// Registers of the whole CTA where an SM has so many register files: as if each held as many of its warps as the fullest one does.
    pub fn registers(&self, register_files: u32) -> u64 {
        let warps = u64::from(self.warps).next_multiple_of(u64::from(register_files.max(1)));
        u64::from(self.registers_of_warp) * warps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An SM of a compute capability (CUDA C++ Programming Guide, table of technical specifications).
    fn sm(register_files: u32, warps: u32, shared_kib: u32, shared_unit: u32) -> SmResources {
        SmResources {
            threads: warps * 32,
            warps,
            sub_cores: 4,
            registers: 65_536,
            register_files,
            shared_bytes: shared_kib << 10,
            shared_unit,
        }
    }

    /// The formulas of NVIDIA's CUDA occupancy calculator, in its own order: warps by registers are rounded down to the granularity of the
    /// allocation of warps.
    fn calculator(sm: &SmResources, slots: u32, threads: u32, registers: u32, shared_bytes: u32) -> u32 {
        let ceil = |value: u32, unit: u32| value.div_ceil(unit) * unit;
        let warps = ceil(threads, 32) / 32;
        let by_warps = (sm.warps / warps).min(slots);
        let by_registers = match ceil(registers * 32, 256) {
            0 => slots,
            each => (sm.registers / each) / sm.register_files * sm.register_files / warps,
        };
        let by_shared = match ceil(shared_bytes, sm.shared_unit) {
            0 => slots,
            each => sm.shared_bytes / each,
        };
        by_warps.min(by_registers).min(by_shared)
    }

    #[test]
    fn ctas_are_as_many_as_the_occupancy_calculator_has() {
        // 3.5, 6.0, 6.1, 7.0, 7.5, 8.0, 8.6, 9.0.
        let sms = [
            (sm(4, 64, 48, 256), 16),
            (sm(2, 64, 64, 256), 32),
            (sm(4, 64, 96, 256), 32),
            (sm(4, 64, 96, 256), 32),
            (sm(4, 32, 64, 256), 16),
            (sm(4, 64, 164, 128), 32),
            (sm(4, 48, 100, 128), 16),
            (sm(4, 64, 228, 128), 32),
        ];
        for (sm, slots) in sms {
            for threads in (1..=1024).step_by(31).chain([32, 64, 96, 160, 192, 672, 1024]) {
                for registers in 0..=255 {
                    for shared_bytes in [0, 1, 257, 1000, 12_288, 49_152] {
                        let wanted = CtaNeeds::of_threads(threads, registers, shared_bytes);
                        assert_eq!(
                            sm.room_for(&wanted, slots),
                            calculator(&sm, slots, threads, registers, shared_bytes),
                            "{sm:?} {wanted:?}"
                        );
                        assert_eq!(sm.holds(&wanted), sm.room_for(&wanted, slots) > 0);
                    }
                }
            }
        }
    }

    /// Worked out by hand for 16,384 registers a file.
    #[test]
    fn register_files_hold_whole_warps() {
        for (registers, threads, expected) in [
            // 1280 registers a warp, 12 warps a file: 48 warps, 16 CTAs of three. Of one pool it would be 51 warps.
            (37, 96, 16),
            // 3328 a warp, 4 a file: 16 warps, two CTAs of six.
            (104, 192, 2),
            // 2816 a warp, 5 a file: 20 warps, ten CTAs of two.
            (88, 64, 10),
            (104, 64, 8),
            // 21 warps on 20 places.
            (88, 672, 0),
        ] {
            assert_eq!(
                SmResources::VOLTA.by_registers(&CtaNeeds::of_threads(threads, registers, 0)),
                expected,
                "{registers} {threads}"
            );
        }
        assert_eq!(sm(2, 64, 64, 256).by_registers(&CtaNeeds::of_threads(672, 88, 0)), 1);
    }

    #[test]
    fn a_cta_takes_registers_as_the_fullest_file_does() {
        // 21 warps of 88 registers a thread: 24 warps, 88 * 32 each.
        assert_eq!(CtaNeeds::of_threads(672, 88, 0).registers(4), 24 * 88 * 32);
        // 33 threads of one register: four warps of a unit.
        assert_eq!(CtaNeeds::of_threads(33, 1, 0).registers(4), 4 * 256);
    }

    #[test]
    fn what_cannot_be_counted_fits_nowhere() {
        let endless = CtaNeeds::of_threads(u32::MAX, u32::MAX, u32::MAX);
        assert!(!sm(4, 64, 96, 256).holds(&endless));
    }
}
