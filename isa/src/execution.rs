//! The interface between an SM and the instruction semantics: the questions of a step to memory, and its messages to the SM.

pub use crate::interpreter::ProductReads;
use crate::lanes::LANES;
pub use crate::mbarrier::BarrierOperation;
pub use crate::system_call::{MOST_ARGUMENTS, Passed, SystemCall};
use crate::texture::Image;
use balar_protocol::cuda::FaultCause;
use serde::{Deserialize, Serialize};

/// Memory spaces a program names. Generic addresses are resolved to one of these, lane by lane, before the SM sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Space {
    /// Device memory, cached in L1 and L2.
    Global,
    /// The CTA's shared memory.
    Shared,
    /// The thread's private memory.
    Local,
    /// Constant banks.
    Constant,
    /// The kernel's parameter block.
    Parameter,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads, modifies, writes and returns the old value.
    Atomic,
    /// Reads, modifies and writes, and returns nothing.
    Reduction,
}

/// Where a load or store may be cached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum CacheOperator {
    /// All levels.
    #[default]
    All,
    /// L2 only.
    L2Only,
    /// Streaming: the data is likely used once.
    Streaming,
    /// Texels: L1 caches them even where it does not cache global loads (compute capability 6.0).
    Texture,
    /// Volatile or synchronising: the access does not hit in L1.
    Volatile,
}

/// Operations of atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum AtomicOperation {
    /// Integer or floating-point sum, by `AtomicType`.
    Add,
    /// Smaller.
    Minimum,
    /// Larger.
    Maximum,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Stores the operand.
    Exchange,
    /// Compares with the first operand and stores the second if they are equal.
    CompareAndSwap,
    /// `old >= operand ? 0 : old + 1`.
    Increment,
    /// `old == 0 || old > operand ? operand : old - 1`.
    Decrement,
    /// An operation on an `mbarrier` object; see [`crate::mbarrier`].
    Barrier(BarrierOperation),
}

/// Types of atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the PTX types")]
pub enum AtomicType {
    U32,
    S32,
    U64,
    S64,
    F32,
    /// `F32` whose subnormals are flushed to zero, as `.f32` sums in device memory do.
    F32Flushed,
    F64,
    F16x2,
    B16,
    F16,
    Bf16,
    Bf16x2,
    B128,
}

/// The function of an atomic: an operation on values of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicFunction {
    /// The operation.
    pub operation: AtomicOperation,
    /// The type of a value. An access of more bytes is a vector of them.
    pub data_type: AtomicType,
}

/// One warp's access to memory: filled by a step, timed by the SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryAccess {
    /// Which memory.
    pub space: Space,
    /// Its kind.
    pub kind: AccessKind,
    /// Caching.
    pub cache: CacheOperator,
    /// Bytes of each lane: 1, 2, 4, 8 or 16 (vectors are one access of their whole width).
    pub bytes: u8,
    /// Lanes that take part.
    pub mask: u32,
    /// Byte addresses. Those of `Global` and `Constant` are device addresses, as a module's constants are placed in device memory;
    /// those of `Shared` name a CTA of the cluster and an offset ([`crate::cluster`]); others are offsets into the thread's local memory or
    /// the parameter block.
    pub addresses: [u64; LANES],
}

impl Default for MemoryAccess {
    fn default() -> Self {
        MemoryAccess {
            space: Space::Global,
            kind: AccessKind::Load,
            cache: CacheOperator::All,
            bytes: 4,
            mask: 0,
            addresses: [0; LANES],
        }
    }
}

/// Values of an access: up to 16 bytes a lane as two 64-bit halves (`low` holds the first 8 bytes, little endian).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneValues {
    /// Bytes 0 to 7 of each lane, zero-extended.
    pub low: [u64; LANES],
    /// Bytes 8 to 15 of each lane.
    pub high: [u64; LANES],
}

impl LaneValues {
    /// All bytes of a lane.
    #[inline]
    pub fn get(&self, lane: usize) -> u128 {
        u128::from(self.low[lane]) | u128::from(self.high[lane]) << 64
    }

    /// Sets all bytes of a lane.
    #[inline]
    pub fn set(&mut self, lane: usize, value: u128) {
        self.low[lane] = value as u64;
        self.high[lane] = (value >> 64) as u64;
    }
}

impl Default for LaneValues {
    fn default() -> Self {
        LaneValues { low: [0; LANES], high: [0; LANES] }
    }
}

/// The value of a lane that has these bytes, 16 at most.
pub fn value_of_bytes(bytes: &[u8]) -> u128 {
    let mut value = [0; 16];
    value[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(value)
}

/// Why memory could not do an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryProblem {
    /// The value is not known before the next window; the step has no effect and is repeated.
    Later,
    /// These lanes' places are in the shared memory of other CTAs of the cluster: the step accesses them by [`LaneMemory::remote`], and the
    /// places of other lanes apart from them. Nothing was accessed.
    Elsewhere {
        /// The lanes, at least one.
        lanes: u32,
    },
    /// The access is not allowed. `lane` is the first offender.
    Fault {
        /// First lane at fault.
        lane: u8,
        /// The mistake.
        cause: FaultCause,
    },
}

impl MemoryProblem {
    /// The problem of an access that was made for one lane, as one of this lane.
    pub fn of_lane(self, lane: usize) -> MemoryProblem {
        match self {
            MemoryProblem::Fault { cause, .. } => MemoryProblem::Fault { lane: lane as u8, cause },
            other => other,
        }
    }
}

/// When an atomic's old values are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AtomicCompletion {
    /// They are in the values passed.
    Now,
    /// The SM writes them to the destination register later, through `WarpState::write_deferred_result`.
    Deferred,
}

/// Arguments of a system call, zero-extended to 64 bits: for each argument, the value of every lane.
pub type SystemArguments = [[u64; LANES]; MOST_ARGUMENTS];

/// The memory an SM gives to its warps: one call a warp instruction, never one a lane.
pub trait LaneMemory {
    /// Reads `access.bytes` bytes for each lane of `access.mask` into `values`; other lanes' values are left as they are.
    fn load(&mut self, access: &MemoryAccess, values: &mut LaneValues) -> Result<(), MemoryProblem>;

    /// Writes the values of the lanes in the mask. Lanes that write the same address: the highest lane wins.
    fn store(&mut self, access: &MemoryAccess, values: &LaneValues) -> Result<(), MemoryProblem>;

    /// Applies [`AtomicFunction::update`] to the memory of each lane, in lane order, and writes the old values into `old`. `operands` are
    /// the operands, or the comparands of a compare-and-swap. `replacements` are the values that a compare-and-swap stores; other
    /// operations ignore them.
    fn atomic(
        &mut self,
        access: &MemoryAccess,
        function: AtomicFunction,
        operands: &LaneValues,
        replacements: &LaneValues,
        old: &mut LaneValues,
    ) -> Result<AtomicCompletion, MemoryProblem>;

    /// Begins an access to the shared memory of other CTAs of the cluster, where all places of its lanes are. What a load or an atomic
    /// reads comes later, through `WarpState::write_deferred_result`. `values` are those that are stored, or operands of an atomic. The
    /// other CTA's SM finds the operation of an atomic at `pc`, the instruction's place in the program, by [`Program::atomic_function`].
    /// `barriers` are, by lane, the offsets of the `mbarrier` objects of the same CTA that are told of the bytes, where any are.
    ///
    /// [`Program::atomic_function`]: crate::program::Program::atomic_function
    fn remote(
        &mut self,
        access: &MemoryAccess,
        pc: u32,
        (values, replacements): (&LaneValues, &LaneValues),
        barriers: Option<&[u32; LANES]>,
    ) -> Result<(), MemoryProblem> {
        let _ = (pc, values, replacements, barriers);
        let cause = FaultCause::Unsupported("an access to the shared memory of another CTA".to_owned());
        Err(MemoryProblem::Fault { lane: access.mask.trailing_zeros() as u8, cause })
    }

    /// Begins to send bytes to the shared memory of CTAs of the cluster, a bit for each rank: they begin at an offset there, and the barrier at
    /// another one is told of them. They leave when the copy of the step is done.
    fn send(&mut self, ranks: u16, offset: u32, barrier: u32, bytes: &[u8]) -> Result<(), MemoryProblem> {
        let _ = (ranks, offset, barrier, bytes);
        let cause = FaultCause::Unsupported("a copy to the shared memory of another CTA".to_owned());
        Err(MemoryProblem::Fault { lane: 0, cause })
    }

    /// Those of the warp's lanes of a mask that have to wait at the barrier of their cluster: they have arrived there, and not all of the
    /// cluster have.
    fn waits_for_cluster(&mut self, mask: u32) -> u32 {
        let _ = mask;
        0
    }

    /// The texture or surface object with this handle.
    fn image(&mut self, handle: u64) -> Option<Image> {
        let _ = handle;
        None
    }

    /// A further access of the instruction that runs, such as one for a texture's other texels. It is timed with the access that the
    /// step describes.
    fn touch(&mut self, access: &MemoryAccess) {
        let _ = access;
    }

    /// The CTA's shared memory from its offset 0 on: units beside the cores (tensor cores, bulk copies) read and write many bytes at once.
    fn shared(&mut self) -> &mut [u8] {
        &mut []
    }

    /// A call of the device runtime by the lanes of a mask, in lane order. Its results go to `results.low`; if the answer is `Deferred`,
    /// the results come later, as the results of an atomic do.
    fn system_call(
        &mut self,
        call: SystemCall,
        mask: u32,
        arguments: &SystemArguments,
        results: &mut LaneValues,
    ) -> Result<AtomicCompletion, MemoryProblem> {
        let _ = (arguments, results);
        let cause = FaultCause::Unsupported(format!("{call:?} of the device runtime"));
        Err(MemoryProblem::Fault { lane: mask.trailing_zeros() as u8, cause })
    }
}

/// The values of a step's access. They mean nothing between steps: one serves all warps.
#[derive(Clone, Debug, Default)]
pub struct AccessValues {
    /// The values that are loaded or stored, or the old values of an atomic.
    pub accessed: LaneValues,
    /// Operands of an atomic.
    pub operands: LaneValues,
    /// The values that a compare-and-swap stores.
    pub replacements: LaneValues,
}

/// The inputs of a step beyond the warp's own state.
pub struct StepContext<'a> {
    /// Memory of the warp's CTA and thread.
    pub memory: &'a mut dyn LaneMemory,
    /// Room for the values of an access.
    pub values: &'a mut AccessValues,
    /// The SM's cycle counter (`%clock`, `%clock64`).
    pub cycle: u64,
    /// Simulated time in nanoseconds (`%globaltimer`).
    pub nanoseconds: u64,
}

/// Kind of a barrier arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarrierKind {
    /// Waits for the others.
    Sync,
    /// Arrives and goes on.
    Arrive,
    /// Waits and reduces a predicate over all threads: population count.
    ReducePopulation,
    /// Waits and reduces: whether the predicate is true in all threads.
    ReduceAnd,
    /// Waits and reduces: whether the predicate is true in any thread.
    ReduceOr,
}

/// An arrival at a CTA barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarrierArrival {
    /// Which of the CTA's 16 barriers.
    pub barrier: u8,
    /// The kind of barrier that it waits for.
    pub kind: BarrierKind,
    /// Threads that the barrier expects; `None` = all of the CTA.
    pub threads: Option<u32>,
    /// Lanes that arrive.
    pub mask: u32,
    /// Lanes whose predicate is true; of no meaning unless the barrier reduces.
    pub predicate: u32,
}

/// A copy of many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkCopy {
    /// Who is told when it is done.
    pub end: BulkEnd,
    /// Its bytes.
    pub bytes: u32,
    /// The offset in the CTA's shared memory that it writes from on, or, where it ends with a group, reads from on.
    pub shared: u32,
}

/// Who is told when a copy of many bytes is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BulkEnd {
    /// The `mbarrier` object at this offset of shared memory: its phase waits for as many bytes fewer.
    Barrier {
        /// The offset.
        address: u32,
    },
    /// The warp, with its group of such copies.
    Group,
    /// Nobody.
    Nothing,
}

/// The result of a step, for the SM to time. The program counter has moved on unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing beyond registers.
    Plain,
    /// A branch; did the active lanes part?
    Branch {
        /// The lanes went different ways.
        divergent: bool,
    },
    /// A memory access was made; it is described in the `MemoryAccess` passed to the step.
    /// An access whose guard leaves no lane has an empty mask.
    Memory {
        /// Old values of an atomic come later; see [`AtomicCompletion::Deferred`].
        deferred: bool,
    },
    /// A call of the device runtime was made by these lanes.
    System {
        /// Which.
        call: SystemCall,
        /// The lanes that do it.
        mask: u32,
        /// Its results come later; see [`AtomicCompletion::Deferred`].
        deferred: bool,
    },
    /// The current lanes wait (unless the kind is `Arrive`) at a CTA barrier until `WarpState::release_barrier`.
    Barrier(BarrierArrival),
    /// The lanes arrive at the barrier of their cluster, and go on.
    ClusterArrive {
        /// The lanes.
        mask: u32,
    },
    /// The lanes wait at the barrier of their cluster, unless all have arrived ([`LaneMemory::waits_for_cluster`]); those that do wait for
    /// `WarpState::release_barrier` of [`CLUSTER_BARRIER`].
    ClusterWait,
    /// A memory fence: wait until the warp's own stores are acknowledged.
    Fence,
    /// Lanes ended; `WarpState::is_finished` says whether all have. The mask tells which.
    Exit {
        /// Lanes that ended.
        mask: u32,
    },
    /// The lanes sleep for at least this many nanoseconds.
    Sleep(u32),
    /// An access was made as [`Effect::Memory`] says, and found that it has to wait for other threads: it sleeps for about this
    /// many nanoseconds before it looks again.
    Suspended(u32),
    /// Bytes were copied from device to shared memory (`cp.async`): the access is the read, which nothing in the warp waits for
    /// before [`Effect::CopyWait`]. The addresses in shared memory, where all lanes of the step write, are the values' operands.
    Copy,
    /// The copies since the last commit are a group (`cp.async.commit_group`).
    CopyCommit,
    /// The lanes wait until at most that many of the latest groups are under way; `None`: until no copy is.
    CopyWait {
        /// The groups.
        groups: Option<u32>,
    },
    /// When the copies so far have come, the lanes of the access arrive at the `mbarrier` objects at its addresses.
    CopyArrive(BarrierOperation),
    /// A unit beside the cores copies many bytes. The step's access, and those that it touched, are the ones to device memory; its mask is
    /// empty where there are none.
    Bulk(BulkCopy),
    /// The copies of many bytes out of shared memory since the last commit are a group (`cp.async.bulk.commit_group`).
    BulkCommit,
    /// The lanes wait until at most that many of the latest such groups are under way.
    BulkWait {
        /// The groups.
        groups: u32,
    },
    /// The warp's part of a product of matrices by a group of four warps (`wgmma`) is computed. The tensor cores go on with it while the
    /// warp does; nothing waits for it before [`Effect::ProductWait`].
    Product {
        /// Cycles that it takes a sub-core's tensor cores.
        passes: u8,
        /// It ends a group of products, as [`Effect::ProductCommit`] does.
        ends_group: bool,
        /// What it reads of shared memory.
        reads: ProductReads,
    },
    /// The products since the last commit are a group (`wgmma.commit_group`).
    ProductCommit,
    /// The lanes wait until at most that many of the latest groups of products are under way, in all warps of their group of four: each warp
    /// arrives at the group's barrier with its own.
    ProductWait {
        /// The groups of products.
        groups: u32,
        /// The warp's arrival.
        arrival: BarrierArrival,
    },
    /// Nothing happened: repeat the step in the next window.
    Retry,
    /// The warp cannot go on.
    Fault {
        /// First lane at fault.
        lane: u8,
        /// The mistake.
        cause: FaultCause,
    },
}

/// Barriers of a CTA that code has numbers for.
pub const NUMBERED_BARRIERS: u8 = 16;
/// The number of the cluster's barrier among those that lanes wait at, behind them.
pub const CLUSTER_BARRIER: u8 = NUMBERED_BARRIERS;
/// The number of the barrier of the CTA's first four warps, which the barriers of its other groups of four follow.
pub const GROUP_BARRIERS: u8 = CLUSTER_BARRIER + 1;
/// All barriers that lanes wait at: a CTA has eight groups of four warps at most.
pub const BARRIERS: usize = GROUP_BARRIERS as usize + 8;

/// First generic address of the CTA's shared memory: the window's offset 0.
pub const SHARED_WINDOW: u64 = 0x0100_0000_0000;
/// First generic address of the thread's local memory.
pub const LOCAL_WINDOW: u64 = 0x0200_0000_0000;
/// First generic address of the kernel's parameters.
pub const PARAMETER_WINDOW: u64 = 0x0300_0000_0000;
/// Bytes of each of the three windows. Generic addresses outside them are device addresses.
pub const WINDOW_BYTES: u64 = 1 << 32;
