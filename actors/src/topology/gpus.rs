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
        let sms = gpu.sm_count();
        gpu.cluster_groups = gpu.cluster_groups.map(|gpcs| groups_of(&gpcs, sms));
        gpu
    }
}

/// The SMs of each GPC where there are so many in all. Those that no GPC names are one more, which are all where none is known.
fn groups_of(gpcs: &[u32], sms: u32) -> Vec<u32> {
    let mut left = sms;
    let mut groups = Vec::with_capacity(gpcs.len() + 1);
    for &named in gpcs.iter().chain([&u32::MAX]) {
        let there = named.min(left);
        left -= there;
        if there > 0 {
            groups.push(there);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sm_is_in_a_group() {
        assert_eq!(groups_of(&[], 7), [7]);
        assert_eq!(groups_of(&[4, 4], 8), [4, 4]);
        // More or fewer SMs than the topology had.
        assert_eq!(groups_of(&[4, 4], 11), [4, 4, 3]);
        assert_eq!(groups_of(&[4, 4], 5), [4, 1]);
    }
}
