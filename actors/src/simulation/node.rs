//! A node before its units are built: its memories, and the code that is loaded from the start.

use super::SimulationError;
use crate::catalogue::{GpuDescription, Surroundings};
use crate::engine::{CodeSource, LiveBoard};
use crate::host_cpu::effects::apply;
use crate::memory::{Bounds, DeviceMemory, WriteLog};
use crate::topology::{self, Topology};
use balar_driver::code::ModuleSource;
use balar_driver::code::loader::{LoadError, LoadRequest, ModuleLoader, ModuleMemory, Room};
use balar_driver::code::tables::{DriverTables, ProgramTable};
use balar_host::call::BUILT_IN_MODULE;
use balar_host::memory::gpu_base;
use balar_protocol::cuda::{Code, ProgramId};
use balar_protocol::device_launch::{BYTES_A_LAUNCH, DEFAULT_PENDING_LAUNCHES};
use balar_protocol::{ContextId, SimTime};
use std::sync::Arc;

/// A node before its units are built: memories and loaded code.
pub(super) struct Node {
    pub gpus: Vec<GpuDescription>,
    pub memory: Arc<DeviceMemory>,
    pub tables: DriverTables,
}

impl Node {
    /// Nothing is loaded.
    pub fn of(topology: &Topology) -> Result<Node, SimulationError> {
        let gpus = topology.gpus();
        if gpus.is_empty() {
            return Err(SimulationError::NoGpu(topology.name.clone()));
        }
        let capacities: Vec<u64> = gpus.iter().map(|gpu| gpu.memory_bytes).collect();
        let memory = map_memory(topology, &gpus, &capacities)?;
        Ok(Node { gpus, memory, tables: DriverTables::default() })
    }

    /// Loads code for one GPU as its built-in module; its variables get the end of the device memory.
    pub fn load_module(&mut self, gpu: usize, source: &ModuleSource) -> Result<(), SimulationError> {
        let description = &self.gpus[gpu];
        let base = gpu_base(gpu);
        let mut room = EndOfMemory { base, end: base + description.memory_bytes };
        let request = LoadRequest {
            context: ContextId::first(gpu),
            compute_capability: description.compute_capability,
            module: BUILT_IN_MODULE,
            source,
            launch_bytes: Some(DEFAULT_PENDING_LAUNCHES * BYTES_A_LAUNCH),
            heap_bytes: Some(DeviceMemory::DEFAULT_HEAP_BYTES),
            replacements: None,
        };
        let mut changes = Vec::new();
        let loaded = ModuleLoader::new(&self.tables).load(&request, &mut changes, &mut room);
        loaded.map_err(|error| match error {
            LoadError::Ptx(errors) => SimulationError::Ptx(errors),
            error => SimulationError::Load { gpu: description.part.clone(), error },
        })?;
        let mut log = WriteLog::default();
        changes.into_iter().for_each(|change| apply(change, SimTime::ZERO, &mut log, Bounds::default()));
        self.memory.apply(&mut log);
        self.gpus[gpu].memory_bytes = room.end - base;
        Ok(())
    }
}

impl CodeSource for ProgramTable {
    fn code(&self, id: ProgramId) -> Option<Code> {
        self.get(id)
    }
}

/// Builds every unit of a topology and drops them: a mistake that only a unit itself finds comes to light without a run.
///
/// # Errors
///
/// Every value that a unit refuses.
pub fn check_units(topology: &Topology) -> Result<(), SimulationError> {
    let gpus = topology.gpus();
    // Nothing runs: how large the memories are is checked by the units, and this machine need not have room for them.
    let capacities: Vec<u64> = gpus.iter().map(|gpu| gpu.memory_bytes.min(CHECKED_MEMORY)).collect();
    let memory = map_memory(topology, &gpus, &capacities)?;
    let surroundings = Surroundings::new(gpus, Some(memory), LiveBoard::default());
    topology::build_each(topology, &surroundings, drop).map_err(Box::new)?;
    Ok(())
}

/// Device memory of each GPU where units are checked and nothing runs.
const CHECKED_MEMORY: u64 = 2 << 20;

/// Maps memories of these capacities for all GPUs, and the host window.
fn map_memory(
    topology: &Topology,
    gpus: &[GpuDescription],
    capacities: &[u64],
) -> Result<Arc<DeviceMemory>, SimulationError> {
    let memory = DeviceMemory::of_node(capacities).map_err(|source| SimulationError::DeviceMemory {
        gpus: gpus.iter().map(|gpu| gpu.part.as_str()).collect::<Vec<_>>().join(", "),
        bytes: capacities.iter().sum(),
        source,
    })?;
    Ok(Arc::new(memory.with_epoch(topology.value_epoch)))
}

/// Memory from the end of a GPU's downwards, before the run: the built-in module keeps its memory.
struct EndOfMemory {
    base: u64,
    end: u64,
}

impl ModuleMemory for EndOfMemory {
    fn allocate(&mut self, _: Room, bytes: u64, alignment: u64) -> Option<u64> {
        let start = self.end.checked_sub(bytes)? & !(alignment - 1);
        if start < self.base {
            return None;
        }
        self.end = start;
        Some(start)
    }

    // The run does not begin where loading fails.
    fn free(&mut self, _: u64) {}
}
