//! The facts about the node of a topology that programs can ask for.

use crate::catalogue::{Capability, GpuDescription, PeakRate};
use crate::topology::{Topology, WireEnd};
use balar_host::{DeviceDescription, DriverVersion, NodeDescription};
use balar_protocol::limits::shared_reserved;
use balar_protocol::{Frequency, Protocol};

/// The devices of a topology, as `cudaGetDeviceProperties` tells of them. Where SMs differ, every property is that of the least.
pub fn describe(topology: &Topology) -> NodeDescription {
    let gpus = topology.gpus().into_iter().zip(0..);
    let devices = gpus.map(|(gpu, number)| DeviceDescription {
        link_bytes_per_second: link_rate(topology, number),
        ..device(&topology.name, &gpu)
    });
    let moves_managed_memory = topology.wires.iter().any(|wire| is_managed(topology, wire.a));
    NodeDescription {
        topology: topology.name.clone(),
        devices: devices.collect(),
        moves_managed_memory,
        driver_version: driver_version(topology),
    }
}

/// The version of the CUDA driver of the host.
pub fn driver_version(topology: &Topology) -> DriverVersion {
    let mut provided = topology.units.iter().flat_map(|unit| unit.provides.iter());
    let version = provided.find_map(|capability| match capability {
        Capability::Driver { version } => Some(*version),
        _ => None,
    });
    version.unwrap_or_default()
}

/// The bandwidth of the link between the host CPU and a GPU in each direction, bytes a second; 0 where no link says so.
fn link_rate(topology: &Topology, gpu: u32) -> u64 {
    let unit = |end: WireEnd| &topology.units[end.unit.0 as usize];
    let is_of_host = |end: WireEnd| {
        let is_driver = unit(end).provides.iter().any(|capability| matches!(capability, Capability::Driver { .. }));
        is_driver && end.port == "data" && end.index.unwrap_or(0) == gpu
    };
    let links = topology.wires.iter().filter_map(|wire| match (is_of_host(wire.a), is_of_host(wire.b)) {
        (true, _) => Some(wire.b),
        (_, true) => Some(wire.a),
        _ => None,
    });
    let rates = links.flat_map(|link| unit(link).provides.iter()).filter_map(|capability| match capability {
        Capability::Peak { what: PeakRate::LinkBytes, per_second } => Some(*per_second),
        _ => None,
    });
    rates.max().unwrap_or(0)
}

/// Is this the end of a wire to a driver of unified memory?
fn is_managed(topology: &Topology, end: WireEnd) -> bool {
    let ports = topology.units[end.unit.0 as usize].kind.ports;
    ports.iter().any(|port| port.name == end.port && port.protocol == Protocol::Managed)
}

fn device(topology: &str, gpu: &GpuDescription) -> DeviceDescription {
    let khz = |clock: Option<Frequency>| clock.map_or(0, |clock| (clock.hertz() / 1000) as u32);
    let sm = gpu.smallest_sm();
    let resources = sm.map(|sm| sm.resources).unwrap_or_default();
    let (major, minor) = gpu.compute_capability;
    DeviceDescription {
        name: format!("Simulated {topology} ({})", gpu.part),
        compute_capability: (major, minor),
        sm_count: gpu.sm_count(),
        clock_khz: khz(sm.map(|sm| sm.clock)),
        memory_clock_khz: khz(gpu.memory_clock),
        memory_bus_bits: gpu.memory_bus_bits,
        memory_bytes: gpu.memory_bytes,
        l2_bytes: gpu.l2_bytes,
        sm_threads: resources.threads,
        sm_warps: resources.warps,
        sm_ctas: sm.map_or(0, |sm| sm.cta_slots),
        sm_registers: resources.registers,
        sm_shared_bytes: resources.shared_bytes,
        cta_shared_bytes_optin: cta_shared_bytes(gpu.compute_capability, resources.shared_bytes),
        cluster_groups: match gpu.compute_capability {
            (9.., _) => gpu.cluster_groups.clone().unwrap_or_default(),
            _ => Vec::new(),
        },
        link_bytes_per_second: 0,
    }
}

/// Shared memory that a CTA can have of an SM's (CUDA C++ Programming Guide, table of technical specifications).
fn cta_shared_bytes(compute_capability: (u32, u32), sm_bytes: u32) -> u32 {
    match compute_capability {
        (..=6, _) => sm_bytes.min(48 << 10),
        _ => sm_bytes.saturating_sub(shared_reserved(compute_capability)),
    }
}
