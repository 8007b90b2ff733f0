//! What programs can ask about the node of a topology.

use crate::topology::Topology;
use balar_host::{DeviceDescription, NodeDescription};
use balar_protocol::{Bytes, Frequency};
use serde::de::DeserializeOwned;

/// The devices of a topology, as `cudaGetDeviceProperties` tells of them.
pub fn describe(topology: &Topology) -> NodeDescription {
    let devices = topology.gpus().into_iter().map(|gpu| {
        let part = gpu.part.as_str();
        let units =
            |kind: &'static str| topology.units.iter().filter(move |unit| unit.kind.name == kind && unit.part == part);
        // Parameters have been checked: what is not there is a unit of the user's own, without such a parameter.
        fn value<T: DeserializeOwned>(text: Option<&str>) -> Option<T> {
            text.and_then(|text| ron::from_str(text).ok())
        }
        let khz = |kind: &'static str| {
            let clock = units(kind).next().and_then(|unit| value::<Frequency>(unit.parameter("clock")));
            clock.map_or(0, |clock| (clock.hertz() / 1000) as u32)
        };
        let sum = |kind: &'static str, name: &'static str| -> u64 {
            units(kind).filter_map(|unit| value::<Bytes>(unit.parameter(name))).map(|bytes| bytes.0).sum()
        };
        let channels: u32 = units("HbmStack").filter_map(|unit| value::<u32>(unit.parameter("channels"))).sum();
        let (major, minor) = gpu.compute_capability;
        DeviceDescription {
            name: format!("Simulated {} ({})", topology.name, gpu.part),
            compute_capability: (major, minor),
            sm_count: gpu.sm_count,
            clock_khz: khz("StreamingMultiprocessor"),
            memory_clock_khz: khz("HbmStack"),
            memory_bus_bits: channels * HBM_CHANNEL_BITS,
            memory_bytes: gpu.memory_bytes,
            l2_bytes: sum("L2Slice", "capacity"),
            sm_threads: gpu.sm.threads,
            sm_warps: gpu.sm.warps,
            sm_ctas: gpu.sm_cta_slots,
            sm_registers: gpu.sm.registers,
            sm_shared_bytes: gpu.sm.shared_bytes,
            cta_shared_bytes_optin: cta_shared_bytes(major, gpu.sm.shared_bytes),
        }
    });
    NodeDescription { topology: topology.name.clone(), devices: devices.collect() }
}

/// Width of a channel of a stack (JESD235).
const HBM_CHANNEL_BITS: u32 = 128;

/// Shared memory that a CTA can have of an SM's (CUDA C++ Programming Guide, table of technical specifications).
fn cta_shared_bytes(major: u32, sm_bytes: u32) -> u32 {
    match major {
        ..=6 => sm_bytes.min(48 << 10),
        7 => sm_bytes,
        // The system has 1 KiB of each CTA's.
        _ => sm_bytes.saturating_sub(1 << 10),
    }
}
