//! The memories of the GPUs, and the owners of their parts.

use super::allocator::DeviceAllocator;
use crate::outcome::Failure;
use balar_host::CudaError;
use balar_host::memory::{Place, gpu_base, place_of};
use balar_protocol::{ContextId, GpuDescription};
use serde::{Deserialize, Serialize};

/// The memory of each GPU of the node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Devices {
    memories: Vec<DeviceAllocator>,
    /// Bytes that were taken of one GPU's memory, the most at once that was looked at.
    maximum: u64,
}

impl Devices {
    /// Nothing is allocated of the memories of these GPUs.
    pub fn new(gpus: &[GpuDescription]) -> Devices {
        let memory = |(index, gpu): (usize, &GpuDescription)| DeviceAllocator::new(gpu_base(index), gpu.memory_bytes);
        Devices { memories: gpus.iter().enumerate().map(memory).collect(), maximum: 0 }
    }

    /// Bytes that were taken of one GPU's memory, the most at once.
    pub fn maximum(&self) -> u64 {
        self.maximum
    }

    /// All memories, by GPU.
    pub fn all(&self) -> &[DeviceAllocator] {
        &self.memories
    }

    /// The same, to change them.
    pub fn all_mut(&mut self) -> &mut [DeviceAllocator] {
        &mut self.memories
    }

    /// The memory of a context's GPU, which there is.
    pub fn of(&mut self, context: ContextId) -> &mut DeviceAllocator {
        &mut self.memories[context.gpu()]
    }

    /// The memory that has this address.
    pub fn at(&self, address: u64) -> Option<&DeviceAllocator> {
        let Place::Device(gpu) = place_of(address) else { return None };
        self.memories.get(gpu as usize)
    }

    /// Memory for a context: where it begins.
    pub fn allocate(&mut self, context: ContextId, bytes: u64) -> Result<u64, Failure> {
        let allocated = self.of(context).allocate(context.process(), bytes);
        allocated.map_err(|error| (CudaError::MemoryAllocation, error.to_string()))
    }

    /// Memory that is no allocation at the address where it lies.
    pub fn set_aside(&mut self, context: ContextId, bytes: u64) -> Result<u64, Failure> {
        let place = self.of(context).set_aside(context.process(), bytes);
        let place = place.map_err(|error| (CudaError::MemoryAllocation, error.to_string()))?;
        self.note_taken(context);
        Ok(place)
    }

    /// Notes how much is taken of the memory of a context's GPU.
    pub fn note_taken(&mut self, context: ContextId) {
        let reserved = self.of(context).reserved();
        self.maximum = self.maximum.max(reserved);
    }

    /// Refuses a GPU that there is not.
    pub fn check(&self, device: u32) -> Result<(), Failure> {
        let exists = (device as usize) < self.memories.len();
        if exists { Ok(()) } else { Err((CudaError::InvalidDevice, format!("there is no device {device}"))) }
    }
}
