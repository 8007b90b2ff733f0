//! The GPUs of a node: what the units of each part that takes kernel launches provide together.

use super::Topology;
use crate::catalogue::{Capability, GpuDescription, PeakRate};
use std::collections::BTreeMap;

impl Topology {
    /// The GPUs: the parts that hold a GPU front end, in the order of the topology.
    pub fn gpus(&self) -> Vec<GpuDescription> {
        let front_ends = self.units.iter().filter_map(|unit| {
            unit.provides.iter().find_map(|capability| match capability {
                Capability::GpuFrontEnd { compute_capability } => Some((unit.part.as_str(), *compute_capability)),
                _ => None,
            })
        });
        front_ends.map(|(part, compute_capability)| self.gpu(part, compute_capability)).collect()
    }

    /// What all units of a GPU's part can do together at best, a second. Without what code for its compute capability cannot use: half
    /// precision before 5.3, tensor cores before 7.0.
    pub fn peaks(&self, gpu: &GpuDescription) -> BTreeMap<PeakRate, u64> {
        let mut peaks = BTreeMap::new();
        let members = self.units.iter().filter(|unit| unit.part == gpu.part);
        for capability in members.flat_map(|unit| unit.provides.iter()) {
            let Capability::Peak { what, per_second } = *capability else { continue };
            let least = match what {
                PeakRate::HalfOperations => (5, 3),
                PeakRate::TensorOperations => (7, 0),
                _ => (0, 0),
            };
            if gpu.compute_capability >= least {
                let sum: &mut u64 = peaks.entry(what).or_default();
                *sum = sum.saturating_add(per_second);
            }
        }
        peaks
    }

    fn gpu(&self, part: &str, compute_capability: (u32, u32)) -> GpuDescription {
        let mut gpu = GpuDescription {
            part: part.to_owned(),
            compute_capability,
            sms: Vec::new(),
            memory_bytes: 0,
            memory_clock: None,
            memory_bus_bits: 0,
            l2_bytes: 0,
            cluster_groups: None,
        };
        let members = self.units.iter().filter(|unit| unit.part == part);
        for capability in members.flat_map(|unit| unit.provides.iter()) {
            match capability {
                Capability::Sm(sm) => gpu.sms.push(*sm),
                Capability::DeviceMemory { capacity, clock, bus_bits } => {
                    gpu.memory_bytes = gpu.memory_bytes.saturating_add(capacity.0);
                    gpu.memory_clock = Some(gpu.memory_clock.map_or(*clock, |slowest| slowest.min(*clock)));
                    gpu.memory_bus_bits = gpu.memory_bus_bits.saturating_add(*bus_bits);
                }
                Capability::L2Cache { capacity } => gpu.l2_bytes = gpu.l2_bytes.saturating_add(capacity.0),
                Capability::SmNetwork { gpcs } => gpu.cluster_groups = Some(gpcs.clone()),
                Capability::GpuFrontEnd { .. }
                | Capability::Driver { .. }
                | Capability::SpreadsLines { .. }
                | Capability::CacheSets { .. }
                | Capability::Peak { .. }
                | Capability::Queues { .. }
                | Capability::CountsCredits
                | Capability::HoldsStores
                | Capability::PassesDrains
                | Capability::UpdatesCopies
                | Capability::Forwards { .. } => {}
            }
        }
        // Where the GPCs are not known, a cluster may be on any SMs.
        let sms = gpu.sm_count();
        gpu.cluster_groups = gpu.cluster_groups.map(|gpcs| if gpcs.is_empty() { vec![sms] } else { gpcs });
        gpu
    }
}
