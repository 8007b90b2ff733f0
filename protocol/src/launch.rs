//! Kernel launches: their numbers, their code, and what they ask for.

use crate::context::ContextId;
use crate::detail::Detail;
use crate::ranges::RangePath;
use crate::residency::L2Policy;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The numbers of launches by kernels begin here, above those that the host gives: 28 bits by GPU.
const FIRST_DEVICE_LAUNCH: u32 = 1 << 31;
const NUMBER_BITS: u32 = 28;

/// A kernel launch's number, counted from 1 within a run. 0 means "no launch".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LaunchId(pub u32);

impl LaunchId {
    /// The launch of that number, counted from 0, that kernels of a GPU have made.
    pub const fn of_device(gpu: usize, number: u32) -> LaunchId {
        LaunchId(FIRST_DEVICE_LAUNCH | (gpu as u32 & 7) << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1))
    }

    /// Whether a kernel has made the launch.
    pub const fn is_of_device(self) -> bool {
        self.0 >= FIRST_DEVICE_LAUNCH
    }

    /// Of such a launch: its number on its GPU, from 0.
    pub const fn device_number(self) -> u32 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }
}

/// As results number launches: from 0. Those that kernels make are told apart by a letter.
impl fmt::Display for LaunchId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_of_device() {
            return write!(formatter, "d{}", self.device_number());
        }
        self.0.saturating_sub(1).fmt(formatter)
    }
}

/// The number of a loaded kernel's code, counted from 1 within a run. 0 means "no code".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProgramId(pub u32);

/// A kernel's code: a number, by which a saved state names it, and the decoded program for whoever runs it.
///
/// This crate knows no programs: whoever runs the code asks for it by its type.
#[derive(Clone, Default)]
pub struct Code {
    id: ProgramId,
    program: Option<Arc<dyn Any + Send + Sync>>,
}

impl Code {
    /// The decoded `program` under a number that no other has.
    pub fn new<P: Any + Send + Sync>(id: ProgramId, program: Arc<P>) -> Code {
        Code { id, program: Some(program) }
    }

    /// Its number.
    pub fn id(&self) -> ProgramId {
        self.id
    }

    /// The decoded program; `None` where it is of another type, or the code is known by its number alone.
    pub fn program<P: Any + Send + Sync>(&self) -> Option<Arc<P>> {
        Arc::clone(self.program.as_ref()?).downcast().ok()
    }
}

/// A code is written as its number, and read back as that alone: who reads a state completes its codes.
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.id.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        ProgramId::deserialize(deserializer).map(|id| Code { id, program: None })
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KernelLaunch {
    /// Its number.
    pub id: LaunchId,
    /// The context that it runs in.
    pub context: ContextId,
    /// Which code.
    pub code: Code,
    /// The kernel's name as the program gives it.
    pub name: Arc<str>,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// CTAs of a cluster in x, y, z, which divide the grid; `None` where the launch names none, and each CTA is a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub dynamic_shared_bytes: u32,
    /// Static and dynamic shared memory, bytes.
    pub shared_bytes: u32,
    /// How much of the largest shared memory of an SM it would have, percent, where the program has said so.
    pub preferred_carve_out: Option<u8>,
    /// Registers of a thread (for the SM's register file).
    pub registers_per_thread: u32,
    /// Local memory of a thread, bytes.
    pub local_bytes: u32,
    /// Parameter block as the kernel reads it.
    pub parameters: Arc<[u8]>,
    /// Stream it was launched into.
    pub stream: u32,
    /// Kernels of one queue run one after another: those of a stream, or of a chain of a graph.
    pub queue: u32,
    /// Kernels of lower numbers start first.
    pub priority: i32,
    /// Of a cooperative launch, whose CTAs all run at once: the device address of its grid workspace. 0 of any other.
    pub grid_workspace: u64,
    /// How long its lines are to stay in the L2, where a program of the GPU has said so; `None` where no program has said anything.
    pub l2_policy: Option<L2Policy>,
    /// How closely it is simulated.
    pub detail: Detail,
    /// Its process was between `cudaProfilerStart` and `cudaProfilerStop`.
    pub is_profiled: bool,
    /// The innermost named range that the thread was in that launched it.
    pub range: Option<RangePath>,
    /// Who has launched it, where that was a kernel.
    pub origin: Option<Arc<LaunchOrigin>>,
    /// The kernels that it can launch, and those that these can, by address. Empty where it launches none.
    pub device_kernels: Arc<[DeviceKernel]>,
}

impl KernelLaunch {
    /// Must all CTAs run at once?
    pub fn is_cooperative(&self) -> bool {
        self.grid_workspace != 0
    }

    /// CTAs of the grid.
    pub fn cta_count(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// CTAs of a cluster in x, y, z.
    pub fn cluster_dimensions(&self) -> [u32; 3] {
        self.cluster.unwrap_or([1; 3]).map(|extent| extent.max(1))
    }

    /// CTAs of a cluster.
    pub fn cluster_size(&self) -> u32 {
        self.cluster_dimensions().iter().product()
    }

    /// The place in the grid of the CTA of a rank in a cluster. Clusters are numbered from 0, and CTAs have their ranks, x fastest.
    pub fn cta_of_cluster(&self, cluster: u64, rank: u32) -> [u32; 3] {
        let of = |number: u64, [x, y, _]: [u64; 3]| [number % x, number / x % y, number / x / y];
        let extents = self.cluster_dimensions().map(u64::from);
        let clusters: [u64; 3] = std::array::from_fn(|axis| (u64::from(self.grid[axis]) / extents[axis]).max(1));
        let (place, within) = (of(cluster, clusters), of(u64::from(rank), extents));
        std::array::from_fn(|axis| (place[axis] * extents[axis] + within[axis]) as u32)
    }

    /// Threads of a CTA.
    pub fn threads_per_cta(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a CTA.
    pub fn warps_per_cta(&self) -> u32 {
        self.threads_per_cta().div_ceil(32)
    }
}

/// A kernel that kernels can launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceKernel {
    /// The address by which code names it.
    pub address: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Its code.
    pub code: Code,
    /// Bytes of its parameter block.
    pub parameter_bytes: u32,
    /// Static shared memory, bytes.
    pub shared_bytes: u32,
    /// Dynamic shared memory that launches may ask for, bytes.
    pub dynamic_shared_limit: u32,
    /// The share of shared memory that its launches prefer.
    pub preferred_carve_out: Option<u8>,
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Local memory of a thread, bytes.
    pub local_bytes: u32,
    /// Threads that a block can have.
    pub maximum_threads: u32,
    /// What a block must be, where the code says so.
    pub required_block: Option<[u32; 3]>,
    /// Why it cannot run, if it cannot.
    pub refusal: Option<Arc<str>>,
}

/// Who has launched a kernel, where no host has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOrigin {
    /// The launch whose kernel it was.
    pub parent: LaunchId,
    /// That kernel.
    pub kernel: Arc<str>,
    /// How many kernels stand between it and the host: 1 where its parent was launched by the host.
    pub depth: u32,
    /// The address of the buffer that its parameters were in, which others can have once it has begun; 0 where there was none.
    pub buffer: u64,
}

impl fmt::Display for LaunchOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "launched by kernel {} (launch {})", self.kernel, self.parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_kernels_have_numbers_of_their_own() {
        let launch = LaunchId::of_device(3, 17);
        assert!(launch.is_of_device() && launch > LaunchId(u32::MAX >> 1));
        assert_eq!((launch.device_number(), launch.to_string()), (17, "d17".to_owned()));
        assert!(!LaunchId(17).is_of_device());
        assert_ne!(launch, LaunchId::of_device(2, 17));
    }
}
