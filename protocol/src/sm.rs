//! What an SM has for CTAs, and what a CTA takes of it.

use crate::launch::KernelLaunch;
use crate::quantity::Frequency;

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
            resources: SmResources {
                threads: self.resources.threads.min(other.resources.threads),
                warps: self.resources.warps.min(other.resources.warps),
                registers: self.resources.registers.min(other.resources.registers),
                shared_bytes: self.resources.shared_bytes.min(other.resources.shared_bytes),
            },
            cta_slots: self.cta_slots.min(other.cta_slots),
            clock: self.clock.min(other.clock),
        }
    }

    /// How many CTAs that take `wanted` each it runs at once.
    pub fn room_for(&self, wanted: &SmResources) -> u32 {
        self.resources.room_for(wanted, self.cta_slots)
    }
}

/// What one SM has in all, or what a CTA takes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SmResources {
    /// Threads.
    pub threads: u32,
    /// Warps.
    pub warps: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
}

/// Registers are given to a warp in units of this many (CUDA occupancy calculator, compute capability 6.0 to 9.0).
const REGISTER_UNIT: u32 = 256;
/// Shared memory is given to a CTA in units of this many bytes (CUDA occupancy calculator, 6.0 to 7.5).
const SHARED_UNIT: u32 = 256;

impl SmResources {
    /// What a CTA of `launch` takes, rounded up to allocation units.
    pub fn of_cta(launch: &KernelLaunch) -> SmResources {
        SmResources::of_threads(launch.threads_per_cta(), launch.registers_per_thread, launch.shared_bytes)
    }

    /// What a CTA of so many threads takes, each of which has so many registers, and so much shared memory, rounded up to allocation units.
    pub fn of_threads(threads: u32, registers_per_thread: u32, shared_bytes: u32) -> SmResources {
        let warps = threads.div_ceil(32);
        let warp_registers = registers_per_thread.saturating_mul(32).next_multiple_of(REGISTER_UNIT);
        SmResources {
            threads,
            warps,
            registers: warp_registers.saturating_mul(warps),
            shared_bytes: shared_bytes.checked_next_multiple_of(SHARED_UNIT).unwrap_or(u32::MAX),
        }
    }

    /// Does `wanted` fit into it?
    #[inline]
    pub fn holds(&self, wanted: &SmResources) -> bool {
        self.threads >= wanted.threads
            && self.warps >= wanted.warps
            && self.registers >= wanted.registers
            && self.shared_bytes >= wanted.shared_bytes
    }

    /// How many CTAs that take `wanted` each, at most `slots`, it has room for.
    pub fn room_for(&self, wanted: &SmResources, slots: u32) -> u32 {
        let fits = |all: u32, each: u32| all.checked_div(each).unwrap_or(u32::MAX);
        slots
            .min(fits(self.threads, wanted.threads))
            .min(fits(self.warps, wanted.warps))
            .min(fits(self.registers, wanted.registers))
            .min(fits(self.shared_bytes, wanted.shared_bytes))
    }

    /// A CTA takes what it needs, which is there.
    pub fn take(&mut self, taken: &SmResources) {
        self.threads -= taken.threads;
        self.warps -= taken.warps;
        self.registers -= taken.registers;
        self.shared_bytes -= taken.shared_bytes;
    }

    /// A CTA gives back what it took.
    pub fn give(&mut self, given: &SmResources) {
        self.threads += given.threads;
        self.warps += given.warps;
        self.registers += given.registers;
        self.shared_bytes += given.shared_bytes;
    }
}
