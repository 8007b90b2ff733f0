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
    /// Sizes that its shared memory can have.
    pub carve_outs: CarveOuts,
    /// Its clock.
    pub clock: Frequency,
}

impl SmCapability {
    /// What both this and `other` have.
    pub fn least(&self, other: &SmCapability) -> SmCapability {
        SmCapability {
            resources: self.resources.least(&other.resources),
            cta_slots: self.cta_slots.min(other.cta_slots),
            carve_outs: self.carve_outs.common(&other.carve_outs),
            clock: self.clock.min(other.clock),
        }
    }

    /// How many CTAs that take `wanted` each it runs at once.
    pub fn room_for(&self, wanted: &CtaNeeds) -> u32 {
        self.resources.room_for(wanted, self.cta_slots)
    }

    /// The carve-out of a launch whose CTAs take `wanted` each: bytes of shared memory. The L1 has the rest.
    ///
    /// Without a preference it is the smallest one in which as many CTAs fit as the SM's other limits allow. A preference, in percent of the
    /// largest one, is rounded up to the next (CUDA C++ Programming Guide, compute capability 7.x, shared memory). It is a hint: one CTA
    /// fits in any case, and all CTAs of a cooperative launch, which wait for each other, do.
    pub fn carve_out(&self, wanted: &CtaNeeds, preference: CarveOutPreference) -> u32 {
        let each = u64::from(self.resources.allocated_shared(wanted));
        let most = self.cta_slots.min(self.resources.by_warps(wanted)).min(self.resources.by_registers(wanted)).max(1);
        let for_all = each * u64::from(most);
        let largest = self.resources.shared_bytes;
        let needed = match preference {
            CarveOutPreference::None => for_all,
            CarveOutPreference::Percent { percent, is_cooperative } => {
                let preferred = (u64::from(largest) * u64::from(percent)).div_ceil(100);
                preferred.max(if is_cooperative { for_all } else { each })
            }
        };
        self.carve_outs.smallest(needed).map_or(largest, |size| size.min(largest))
    }
}

/// What a launch would have of the memory that shared memory and the L1 share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarveOutPreference {
    /// Nothing in particular.
    None,
    /// So much of the largest carve-out.
    Percent {
        /// 0 to 100.
        percent: u8,
        /// Must all CTAs of the launch run at once?
        is_cooperative: bool,
    },
}

impl CarveOutPreference {
    /// Of a launch.
    pub fn of(launch: &KernelLaunch) -> CarveOutPreference {
        // The CTAs of a cluster wait for each other, too.
        let is_cooperative = launch.is_cooperative() || launch.cluster_size() > 1;
        launch
            .preferred_carve_out
            .map_or(CarveOutPreference::None, |percent| CarveOutPreference::Percent { percent, is_cooperative })
    }
}

/// Sizes that shared memory can have.
pub const MAXIMUM_CARVE_OUTS: usize = 16;

/// The sizes that the shared memory of an SM can have, at most [`MAXIMUM_CARVE_OUTS`]. Without any its size is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarveOuts {
    /// Ascending; behind them zeros.
    sizes: [u32; MAXIMUM_CARVE_OUTS],
    count: usize,
}

impl CarveOuts {
    /// Shared memory of a fixed size.
    pub const NONE: CarveOuts = CarveOuts { sizes: [0; MAXIMUM_CARVE_OUTS], count: 0 };

    /// These sizes, bytes, in any order; those beyond the first [`MAXIMUM_CARVE_OUTS`] are left out.
    pub fn new(sizes: impl IntoIterator<Item = u32>) -> CarveOuts {
        let mut carve_outs = CarveOuts::NONE;
        for (place, size) in carve_outs.sizes.iter_mut().zip(sizes) {
            *place = size;
            carve_outs.count += 1;
        }
        carve_outs.sizes[..carve_outs.count].sort_unstable();
        carve_outs
    }

    /// All, ascending.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes[..self.count]
    }

    /// The smallest one of at least so many bytes.
    pub fn smallest(&self, bytes: u64) -> Option<u32> {
        self.sizes().iter().copied().find(|&size| u64::from(size) >= bytes)
    }

    /// Those of both.
    fn common(&self, other: &CarveOuts) -> CarveOuts {
        CarveOuts::new(self.sizes().iter().copied().filter(|size| other.sizes().contains(size)))
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
    /// Bytes of shared memory that the system takes of each CTA beside the CTA's own (CUDA C++ Programming Guide: 1024 from 8.0 on).
    pub shared_reserved: u32,
}

/// Nothing, of an SM with one sub-core, one register file and the units of compute capability 6.0 to 7.5.
impl Default for SmResources {
    fn default() -> Self {
        Self {
            threads: 0,
            warps: 0,
            sub_cores: 1,
            registers: 0,
            register_files: 1,
            shared_bytes: 0,
            shared_unit: 256,
            shared_reserved: 0,
        }
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
        shared_reserved: 0,
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
            shared_reserved: self.shared_reserved.max(other.shared_reserved),
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

    /// The shared memory that a CTA takes, with the system's, in whole units.
    pub fn allocated_shared(&self, wanted: &CtaNeeds) -> u32 {
        let all = wanted.shared_bytes.saturating_add(self.shared_reserved);
        all.checked_next_multiple_of(self.shared_unit.max(1)).unwrap_or(u32::MAX)
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
            shared_reserved: if shared_unit == 128 { 1024 } else { 0 },
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
        let by_shared = match ceil(shared_bytes + sm.shared_reserved, sm.shared_unit) {
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

    /// A V100's SM: 96 KiB at most (CUDA C++ Programming Guide, compute capability 7.x).
    fn volta() -> SmCapability {
        SmCapability {
            resources: SmResources::VOLTA,
            cta_slots: 32,
            carve_outs: CarveOuts::new([96, 8, 64, 32, 16].map(|kib| kib << 10)),
            clock: Frequency::from_hertz(1_000_000_000),
        }
    }

    #[test]
    fn a_carve_out_has_room_for_as_many_ctas_as_other_limits_allow() {
        // (threads, shared bytes, KiB): 2048 threads an SM, 32 slots, units of 256 bytes.
        for (threads, shared_bytes, expected) in [
            (256, 0, 8),
            (256, 1024, 8),
            (256, 1025, 16),
            (32, 2000, 64),
            (1024, 48 << 10, 96),
            (1024, 49 << 10, 96),
            // Three of 5,400 bytes are 16,200, but take 5,632 each.
            (672, 5400, 32),
        ] {
            let wanted = CtaNeeds::of_threads(threads, 16, shared_bytes);
            let carve_out = volta().carve_out(&wanted, CarveOutPreference::None);
            assert_eq!(carve_out, expected << 10, "{threads} {shared_bytes}");
        }
    }

    #[test]
    fn a_preference_is_rounded_up_and_gives_way_to_need() {
        let wanted = CtaNeeds::of_threads(256, 16, 12 << 10);
        let of = |percent, is_cooperative| {
            volta().carve_out(&wanted, CarveOutPreference::Percent { percent, is_cooperative }) >> 10
        };
        // One CTA takes 12 KiB. 50 % of 96 KiB is 48 KiB, which the Programming Guide rounds to 64 KiB.
        let preferred = [0, 17, 33, 34, 50, 67, 100].map(|percent| of(percent, false));
        assert_eq!(preferred, [16, 32, 32, 64, 64, 96, 96]);
        // Eight CTAs have threads.
        assert_eq!((of(0, true), of(100, true)), (96, 96));
    }

    #[test]
    fn shared_memory_without_carve_outs_has_its_size() {
        let sm = SmCapability { carve_outs: CarveOuts::NONE, ..volta() };
        let percent = CarveOutPreference::Percent { percent: 10, is_cooperative: false };
        for preference in [CarveOutPreference::None, percent] {
            assert_eq!(sm.carve_out(&CtaNeeds::of_threads(64, 16, 100), preference), 96 << 10);
        }
        let other = SmCapability { carve_outs: CarveOuts::new([8 << 10, 48 << 10, 96 << 10]), ..volta() };
        assert_eq!(volta().least(&other).carve_outs.sizes(), [8 << 10, 96 << 10]);
    }
}
