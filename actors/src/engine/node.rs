//! What the units of a node share: memory, loaded programs, the workload.

use crate::device_memory::DeviceMemory;
use crate::engine::LiveBoard;
use crate::units::cta_scheduler::SmResources;
use balar_host::Host;
use balar_isa::program::{Program, Resources};
use balar_protocol::cuda::ProgramId;
use dashmap::DashMap;
use std::sync::{Arc, Mutex};

/// The decoded kernels of the node, by number. SMs look them up when a CTA arrives.
#[derive(Debug, Default)]
pub struct ProgramTable {
    programs: DashMap<ProgramId, Arc<Program>>,
}

impl ProgramTable {
    /// Adds a program and returns its number.
    pub fn add(&self, program: Arc<Program>) -> ProgramId {
        let id = ProgramId(self.programs.len() as u32 + 1);
        self.programs.insert(id, program);
        id
    }

    /// Program number `id`.
    pub fn get(&self, id: ProgramId) -> Option<Arc<Program>> {
        self.programs.get(&id).map(|program| Arc::clone(&program))
    }
}

/// A GPU as the host's driver knows it, taken from the topology.
#[derive(Clone, Debug)]
pub struct GpuDescription {
    /// Path of its part: "gpu".
    pub part: String,
    /// Compute capability: (7, 0).
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// What each of them has for CTAs.
    pub sm: SmResources,
    /// CTA slots of each of them.
    pub sm_cta_slots: u32,
    /// Device memory, bytes.
    pub memory_bytes: u64,
}

/// What a launch needs to know of a loaded kernel.
#[derive(Clone, Debug)]
pub struct KernelInfo {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// Which code.
    pub program: ProgramId,
    /// What it asks of an SM.
    pub resources: Resources,
    /// Size of its parameter block, bytes.
    pub parameter_bytes: u32,
}

/// The kernels that are loaded, by GPU and name. The driver of the simulated host looks them up at each launch.
#[derive(Debug, Default)]
pub struct KernelTable {
    /// By name: one entry a GPU, for each GPU has code of its own architecture.
    kernels: DashMap<Arc<str>, Vec<Option<LoadedKernel>>>,
}

/// A kernel that can be launched, or why it cannot: the mistakes in its code, as the user is to read them.
pub type LoadedKernel = Result<Arc<KernelInfo>, Arc<str>>;

impl KernelTable {
    /// Adds `kernel` to those of GPU number `gpu`; one of the same name is replaced.
    pub fn insert(&self, gpu: usize, kernel: KernelInfo) {
        self.put(gpu, kernel.name.clone(), Ok(Arc::new(kernel)));
    }

    /// Adds a kernel that cannot run, and why: to launch it is an error.
    pub fn insert_refused(&self, gpu: usize, name: Arc<str>, why: Arc<str>) {
        self.put(gpu, name, Err(why));
    }

    fn put(&self, gpu: usize, name: Arc<str>, kernel: LoadedKernel) {
        let mut row = self.kernels.entry(name).or_default();
        if row.len() <= gpu {
            row.resize(gpu + 1, None);
        }
        row[gpu] = Some(kernel);
    }

    /// The kernel `name` of GPU number `gpu`.
    pub fn find(&self, gpu: usize, name: &str) -> Option<LoadedKernel> {
        self.kernels.get(name)?.get(gpu)?.clone()
    }
}

/// Where the variables of loaded modules lie, by GPU and name.
#[derive(Debug, Default)]
pub struct SymbolTable {
    symbols: DashMap<(usize, Box<str>), u64>,
}

impl SymbolTable {
    /// Adds a variable of GPU number `gpu`; one of the same name is replaced.
    pub fn insert(&self, gpu: usize, name: &str, address: u64) {
        self.symbols.insert((gpu, name.into()), address);
    }

    /// The device address of a variable.
    pub fn find(&self, gpu: usize, name: &str) -> Option<u64> {
        self.symbols.get(&(gpu, name.into())).map(|address| *address)
    }
}

/// State that belongs to the node as a whole. Units hold shared references to parts of it from their construction.
#[derive(Default)]
pub struct Node {
    /// The GPUs in the order of the topology.
    pub gpus: Vec<GpuDescription>,
    /// The memories of all of them, and the host window.
    pub memory: Option<Arc<DeviceMemory>>,
    /// The kernels loaded for them.
    pub kernels: Arc<KernelTable>,
    /// Where their variables lie.
    pub symbols: Arc<SymbolTable>,
    /// The decoded kernels.
    pub programs: Arc<ProgramTable>,
    /// The program of the host CPU; the first one that is built takes it.
    pub workload: Mutex<Option<Box<dyn Host>>>,
    /// What units show of their progress while they run: the same board that the run's options name.
    pub board: LiveBoard,
}

impl Node {
    /// The GPU (index, description) whose part is `part`.
    pub fn gpu(&self, part: &str) -> Option<(usize, &GpuDescription)> {
        self.gpus.iter().enumerate().find(|(_, gpu)| gpu.part == part)
    }
}
