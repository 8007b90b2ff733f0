//! How many CTAs and warps of a launch an SM holds, and which resource limits them.

use balar_protocol::statistics::KernelRecord;
use balar_protocol::{CtaNeeds, SmCapability};

/// A resource that an SM can run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Slots for warps, or for threads.
    Warps,
    /// Slots for CTAs.
    Ctas,
    /// The grid is not large enough to fill the GPU.
    Grid,
}

impl Limit {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Registers => "registers",
            Limit::SharedMemory => "shared memory",
            Limit::Warps => "warps",
            Limit::Ctas => "CTA slots",
            Limit::Grid => "grid",
        }
    }
}

/// The CTAs of a launch that an SM has room for, by each of its resources alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// By registers.
    pub by_registers: u32,
    /// By shared memory.
    pub by_shared_memory: u32,
    /// By warps and threads.
    pub by_warps: u32,
    /// By slots for CTAs.
    pub by_ctas: u32,
    /// Warps of a CTA.
    pub warps_of_cta: u32,
    /// Warps that an SM has room for.
    pub warps_of_sm: u32,
    /// CTAs of the grid for each SM, rounded up.
    pub ctas_given: u32,
}

impl Occupancy {
    /// The occupancy of a launch on a GPU of `sms` SMs, as the CTA scheduler places its CTAs.
    pub fn of(launch: &KernelRecord, sm: &SmCapability, sms: u32) -> Occupancy {
        let threads = launch.block.iter().fold(1, |threads: u32, extent| threads.saturating_mul(*extent));
        let cta = CtaNeeds::of_threads(threads, launch.registers_per_thread, launch.shared_bytes);
        let all = &sm.resources;
        let ctas = launch.grid.iter().fold(1, |ctas: u64, extent| ctas.saturating_mul(u64::from(*extent)));
        Occupancy {
            by_registers: all.by_registers(&cta),
            by_shared_memory: all.by_shared_memory(&cta),
            by_warps: all.by_warps(&cta),
            by_ctas: sm.cta_slots,
            warps_of_cta: cta.warps,
            warps_of_sm: all.warps,
            ctas_given: u32::try_from(ctas.div_ceil(u64::from(sms.max(1)))).unwrap_or(u32::MAX),
        }
    }

    /// CTAs that an SM holds at once.
    pub fn ctas(&self) -> u32 {
        self.by_registers.min(self.by_shared_memory).min(self.by_warps).min(self.by_ctas)
    }

    /// Warps that an SM holds at once.
    pub fn warps(&self) -> u32 {
        self.ctas().saturating_mul(self.warps_of_cta)
    }

    /// The limit that lets no more CTAs in: the grid where it has not as many. Where several resources are as scarce, the first of
    /// registers, shared memory, warps and CTA slots.
    pub fn limit(&self) -> Limit {
        let ctas = self.ctas();
        match () {
            () if self.ctas_given < ctas => Limit::Grid,
            () if self.by_registers == ctas => Limit::Registers,
            () if self.by_shared_memory == ctas => Limit::SharedMemory,
            () if self.by_warps == ctas => Limit::Warps,
            () => Limit::Ctas,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::record;
    use balar_protocol::{CarveOuts, Frequency, SmResources};

    /// An SM of a V100.
    const V100: SmCapability = SmCapability {
        resources: SmResources::VOLTA,
        cta_slots: 32,
        carve_outs: CarveOuts::NONE,
        clock: Frequency::from_hertz(1_312_000_000),
    };

    /// CTAs and their limit, as NVIDIA's occupancy calculator gives them for compute capability 7.0.
    #[test]
    fn occupancy_is_that_of_the_occupancy_calculator() {
        for (threads, registers, shared_bytes, ctas, limit) in [
            (256, 32, 0, 8, Limit::Registers),
            (256, 16, 0, 8, Limit::Warps),
            (256, 64, 0, 4, Limit::Registers),
            (32, 16, 0, 32, Limit::Ctas),
            (128, 16, 24 << 10, 4, Limit::SharedMemory),
            (96, 16, 0, 21, Limit::Warps),
        ] {
            let launch = KernelRecord {
                grid: [10_000, 1, 1],
                block: [threads, 1, 1],
                registers_per_thread: registers,
                shared_bytes,
                ..record().statistics.kernels.first().expect("a launch")
            };
            let occupancy = Occupancy::of(&launch, &V100, 80);
            assert_eq!((occupancy.ctas(), occupancy.limit()), (ctas, limit), "{threads} {registers} {shared_bytes}");
            assert_eq!(occupancy.warps(), ctas * threads / 32);
            let small = Occupancy::of(&KernelRecord { grid: [80, 1, 1], ..launch }, &V100, 80);
            assert_eq!(small.limit(), Limit::Grid, "one CTA for each SM");
        }
    }
}
