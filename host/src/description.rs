//! Facts about a node that a program can query without any simulated time.

use crate::driver_version::DriverVersion;
use balar_protocol::SmResources;
use balar_protocol::limits::{register_files, shared_reserved, shared_unit};
use serde::{Deserialize, Serialize};

/// The devices of a node, as programs see them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDescription {
    /// The topology's name.
    pub topology: String,
    /// The GPUs, in the order of the topology.
    pub devices: Vec<DeviceDescription>,
    /// Whether the pages of managed memory move: then the program's own accesses of it are to be told.
    pub moves_managed_memory: bool,
    /// The version of the host's CUDA driver.
    pub driver_version: DriverVersion,
}

/// A GPU: the facts behind `cudaDeviceProp` and the device attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDescription {
    /// Name, such as "Simulated v100 (gpu)".
    pub name: String,
    /// Compute capability: (7, 0).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// Clock of the SMs, kHz.
    pub clock_khz: u32,
    /// Clock of the device memory, kHz.
    pub memory_clock_khz: u32,
    /// Width of the device memory's bus, bits.
    pub memory_bus_bits: u32,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// All of the L2, bytes.
    pub l2_bytes: u64,
    /// Threads that an SM holds.
    pub sm_threads: u32,
    /// Warps that an SM holds.
    pub sm_warps: u32,
    /// CTAs that an SM holds.
    pub sm_ctas: u32,
    /// Registers of an SM.
    pub sm_registers: u32,
    /// Shared memory of an SM, bytes.
    pub sm_shared_bytes: u32,
    /// Shared memory that a CTA can have when its kernel asks for it, bytes.
    pub cta_shared_bytes_optin: u32,
    /// SMs of each group within which a cluster of CTAs runs, a GPC; empty where it has no clusters.
    pub cluster_groups: Vec<u32>,
    /// The bandwidth of its link to the host in each direction, bytes a second; 0 where that is not known.
    pub link_bytes_per_second: u64,
}

impl DeviceDescription {
    /// What an SM has for blocks; how many fit does not depend on the number of its sub-cores, which is not known here.
    pub fn sm(&self) -> SmResources {
        SmResources {
            threads: self.sm_threads,
            warps: self.sm_warps,
            registers: self.sm_registers,
            register_files: register_files(self.compute_capability),
            shared_bytes: self.sm_shared_bytes,
            shared_unit: shared_unit(self.compute_capability),
            shared_reserved: shared_reserved(self.compute_capability),
            ..SmResources::default()
        }
    }
}
