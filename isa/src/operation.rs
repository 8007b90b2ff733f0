//! The decoded form of an instruction: operands are rows of the register file, targets are indices.

pub(crate) mod operand;

use crate::execution::{AtomicOperation, AtomicType, BarrierKind, CacheOperator, Space, SystemCall};
use crate::interpreter::registers::Registers;
use crate::texture::{Bounds, Geometry};
use balar_protocol::tensor_map::Field;
pub(crate) use operand::*;

/// Computes registers from registers in the lanes of a mask.
///
/// # Safety
/// The instruction comes from a decoded program, `Registers` from a warp of that program, the slice is its constants; and the
/// processor has the features that the function was compiled for.
pub(crate) type LaneFunction = unsafe fn(&Instruction, &mut Registers, &[Row], u32);

/// The effects of an instruction beyond registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Nothing: the lane function says it all.
    Lanes,
    /// Reads the cycle counter or the timer: `immediate` is a `Counter`.
    Counter,
    /// Reads memory.
    Load,
    /// Machine code: reads memory where the first predicate source is true; elsewhere the destinations become zero.
    LoadOrZero,
    /// Machine code: reads matrices, whose elements it distributes among lanes.
    LoadMatrices,
    /// Machine code: collects the elements of matrices from lanes, and writes them.
    StoreMatrices,
    /// Writes memory.
    Store,
    /// Atomic or reduction.
    Atomic,
    /// A store or a reduction in shared memory of the cluster, which tells a barrier there of its bytes. The lower half of the first source is
    /// the address, the upper one the barrier's, to which the immediate is added.
    AndTell,
    /// Reads or writes a texture or surface.
    Image(ImageForm),
    /// Goes to `target` in the lanes of the guard.
    Branch,
    /// Goes to an entry of the program's branch tables: `immediate` is the first of the instruction's, `offset` their number,
    /// the first source an index.
    BranchTable,
    /// Calls the function at `target`; `immediate` is the size of the caller's frame.
    Call,
    /// Calls the functions whose addresses the first source holds; `immediate` is the size of the caller's frame.
    CallThrough,
    /// Returns from a function.
    Return,
    /// Calls the device runtime: the sources are the first arguments, the operand list has further ones, 64 bits each; the first
    /// destination takes the result.
    System(SystemCall),
    /// Takes memory from the threads' stacks at run time: the first source is the size, `immediate` the alignment.
    StackAllocate,
    /// Reads where such memory ends.
    StackSave,
    /// Gives back such memory: the bytes beyond the first source.
    StackRestore,
    /// Ends lanes.
    Exit,
    /// Arrives at a CTA barrier.
    Barrier(BarrierKind),
    /// Arrives at the barrier of the cluster.
    ClusterArrive,
    /// Waits there.
    ClusterWait,
    /// Memory fence.
    Fence,
    /// Lanes exchange values: the lane function does it once they are together.
    Collective,
    /// Waits until the lanes of a mask are together.
    WarpBarrier,
    /// Machine code: lanes of different masks part before they wait for each other (`WARPSYNC.EXCLUSIVE` and
    /// `.COLLECTIVE`).
    WarpBarrierApart,
    /// Sleeps.
    Sleep,
    /// Copies from device to shared memory.
    Copy,
    /// Machine code: the same, where the lowest bits of the address say how many bytes at the end are not read, but become zero.
    CopyPart,
    /// Makes a group of the copies since the last.
    CopyCommit,
    /// Waits for copies: `immediate` is the number of groups that may be under way, or [`ALL_COPIES`].
    CopyWait,
    /// Arrives at an `mbarrier` object when the copies have come.
    CopyArrive,
    /// Asks whether a phase of an `mbarrier` object is complete: `immediate` is a `barrier_test`.
    BarrierTest,
    /// Has a unit beside the cores copy many bytes. Its operand list is that of [`bulk_operand`]; `memory` has the type and the operation of a
    /// reduction, and which addresses have 64 bits.
    Bulk(BulkForm),
    /// Makes a group of the copies of many bytes out of shared memory since the last.
    BulkCommit,
    /// Waits for them: `immediate` is the number of groups that may be under way.
    BulkWait,
    /// Replaces a field of a tensor map: the first source is the map's address, the second one the new value, of 64 bits where `wide[1]`.
    ReplaceField(Field),
    /// Copies a tensor map from shared to device memory: the second source, of 64 bits where `wide[1]`, and `immediate` are the place in shared
    /// memory; each lane copies a word.
    CopyTensorMap,
    /// The warp's part of a product of matrices by a group of four warps: `immediate` is a
    /// [`GroupForm`](crate::matrix_group::GroupForm).
    GroupProduct,
    /// Makes a group of the products since the last.
    ProductCommit,
    /// Waits for products: `immediate` is the number of groups that may be under way.
    ProductWait,
    /// Ends the kernel with an error.
    Trap,
    /// Machine code: places of lanes.
    Convergence(ConvergenceKind),
}

/// The effect of an instruction of machine code on the places of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConvergenceKind {
    /// `BSSY`: the lanes will meet at a barrier.
    Begin,
    /// `BSYNC`: they meet there.
    Meet,
    /// `BREAK`: they are not waited for.
    Leave,
    /// `BMOV` of a barrier to a register.
    Read,
    /// The same, and the barrier is empty.
    ReadAndClear,
    /// `BMOV` of a register to a barrier.
    Write,
    /// `YIELD`: other lanes run first.
    Yield,
    /// `BRA.U`: to the target where all lanes that run together go there; else no lane goes, and the following instructions are under
    /// predicates.
    BranchIfUnanimous,
    /// `BRA.U.ANY`: to the target where a lane that runs goes there, all of them together.
    BranchIfAny,
    /// `BRA.DIV`: to the target where lanes of the warp are elsewhere.
    BranchIfDiverged,
    /// `BRA.CONV`: to the target where none is.
    BranchIfConverged,
    /// To the address that the first source has, plus `offset`: `BRX`, `JMX`, `CALL` and `RET` by registers.
    Jump,
}

/// The question of a query about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    Width,
    Height,
    Depth,
    ArraySize,
    IsNormalized,
    IsNotNormalized,
    IsLinear,
    AddressMode(u8),
    /// A property that is 1 for every image: levels of detail, samples of a texel.
    One,
}

/// The access of an instruction to an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageOperation {
    /// Reads a texture at coordinates that are floats, or whole numbers of texels.
    Fetch { floats: bool },
    /// Reads one channel of four neighbouring texels.
    Gather { channel: u8 },
    /// Reads a surface.
    Load { bounds: Bounds },
    /// Writes a surface: bytes, or channels that become texels of its format.
    Store { bounds: Bounds, formatted: bool },
    /// Read-modify-write on a surface; `formatted` where its first coordinate counts texels.
    Reduce { bounds: Bounds, formatted: bool },
    /// Reads a property of an image.
    Query(Query),
}

/// An instruction on textures and surfaces. Its operand list has the destinations; then the image, its sampler, four coordinates;
/// then the values stored. Unused ones have a place, too.
///
/// In machine code (`MemoryForm::pairs`), the image is a register of 32 bits, values of 64 bits are pairs, and a fetch that returns
/// halves packs two of the channels that it returns, which the immediate has a bit each of, into each of the first destinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageForm {
    pub operation: ImageOperation,
    pub geometry: Geometry,
    /// The sampler is an object of its own.
    pub has_sampler: bool,
    /// A fetch returns floats of 16 bits.
    pub halves: bool,
}

impl ImageForm {
    /// Whether it changes memory.
    pub fn writes(&self) -> bool {
        matches!(self.operation, ImageOperation::Store { .. } | ImageOperation::Reduce { .. })
    }
}

/// A copy of many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BulkForm {
    pub operation: BulkOperation,
    /// The dimensions of the tensor that it copies a box of; 0 where it copies bytes.
    pub dimensions: u8,
    /// The box is one of a convolution.
    pub is_convolution: bool,
    /// It goes to several CTAs.
    pub is_multicast: bool,
}

/// Where a copy of many bytes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkOperation {
    /// From device to shared memory; a barrier there is told.
    Load,
    /// From shared to device memory, in a group.
    Store,
    /// The same, where values are combined with those in memory.
    Reduce,
    /// From shared memory to that of another CTA of the cluster, whose barrier is told.
    Send,
    /// The same, where values are combined.
    SendReduce,
    /// Into the L2.
    Prefetch,
}

/// The operands of a copy of many bytes, by their places in its list. Machine code has no offsets, bytes in units of 16, and numbers of a
/// convolution and the mask of the CTAs together in one register.
pub(crate) mod bulk_operand {
    /// The address in shared memory, and a number that is added to it.
    pub const SHARED: usize = 0;
    /// The address of the barrier, and a number that is added.
    pub const BARRIER: usize = 2;
    /// The address in device memory, of the tensor map, or of the source in shared memory; and a number that is added.
    pub const OTHER: usize = 4;
    /// How many bytes.
    pub const BYTES: usize = 6;
    /// The five coordinates.
    pub const COORDINATES: usize = 7;
    /// What is added to the pixels of a convolution: three numbers.
    pub const OFFSETS: usize = 12;
    /// The mask of the CTAs.
    pub const CTAS: usize = 15;
    /// How many there are.
    pub const COUNT: usize = 16;
}

/// No copy may be under way, in a group or not.
pub(crate) const ALL_COPIES: u32 = u32::MAX;

/// How an instruction of kind `BarrierTest` names the phase, and whether it waits a little: a set of bits.
pub(crate) mod barrier_test {
    /// The parity tells the phase, in place of a state.
    pub const PARITY: u32 = 1;
    /// `try_wait`.
    pub const SUSPENDS: u32 = 2;
    /// Machine code: the upper half of a state alone.
    pub const UPPER_HALF: u32 = 4;
}

/// Counters that an instruction of kind `Counter` reads.
pub(crate) mod counter {
    /// Low half of the cycle counter.
    pub const CYCLE_LOW: u32 = 0;
    /// High half of the cycle counter.
    pub const CYCLE_HIGH: u32 = 1;
    /// The cycle counter, 64 bits.
    pub const CYCLE: u32 = 2;
    /// Nanoseconds, low half.
    pub const TIMER_LOW: u32 = 3;
    /// Nanoseconds, high half.
    pub const TIMER_HIGH: u32 = 4;
    /// Nanoseconds, 64 bits.
    pub const TIMER: u32 = 5;
}

/// The access of a memory instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryForm {
    /// `None` = generic: resolved for each lane.
    pub space: Option<Space>,
    /// Caching.
    pub cache: CacheOperator,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element_bytes: u8,
    /// Elements.
    pub elements: u8,
    /// Loads: whether elements are sign-extended.
    pub signed: bool,
    /// Whether a register of an element is 64 bits wide.
    pub wide: [bool; 4],
    /// Addresses are 32 bits wide.
    pub short_address: bool,
    /// Machine code: 64-bit values, addresses among them, are pairs of registers.
    pub pairs: bool,
    /// Machine code: the addend of addresses, the uniform register whose row is the instruction's `operand_list`.
    pub uniform: UniformAddress,
    /// Machine code: by how many bits the address register is shifted to the left first.
    pub scale: u8,
    /// The operation of an atomic.
    pub operation: AtomicOperation,
    /// The type of an atomic.
    pub data_type: AtomicType,
    /// Atomics that return nothing.
    pub is_reduction: bool,
    /// What an atomic returns.
    pub result: AtomicResult,
    /// For atomics with a second operand: the value that a compare-and-swap stores, the bytes that an arrival expects.
    pub has_replacement: bool,
}

/// The result of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicResult {
    /// The old value.
    Old,
    /// Machine code: whether it has stored.
    Success,
    /// Machine code, 64 bits: the upper half of the value before the first lane at the same place, and the mask of all lanes there.
    Lanes,
}

/// A uniform register that is added to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UniformAddress {
    /// None.
    None,
    /// One of 32 bits.
    Short,
    /// A pair; the other register has 32 bits or is a pair, as `short_address` says.
    Pair,
}

impl MemoryForm {
    pub const NONE: MemoryForm = MemoryForm {
        space: None,
        cache: CacheOperator::All,
        element_bytes: 4,
        elements: 1,
        signed: false,
        wide: [false; 4],
        short_address: false,
        pairs: false,
        uniform: UniformAddress::None,
        scale: 0,
        operation: AtomicOperation::Add,
        data_type: AtomicType::U32,
        is_reduction: false,
        result: AtomicResult::Old,
        has_replacement: false,
    };
}

/// A pc that is never reached: branches that do not reconverge before the threads end.
pub(crate) const NEVER: u32 = u32::MAX;

/// What machine code writes of uniform registers, which a warp has once: all its lanes get what the first lane that executes writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UniformResult {
    /// The first row.
    pub row: u16,
    /// How many.
    pub rows: u8,
    /// Uniform predicates, a bit each.
    pub predicates: u8,
}

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    /// The lane function: portable, and with the processor's vector features.
    pub functions: [LaneFunction; 2],
    /// Its other effects.
    pub kind: Kind,
    /// Guard: a predicate slot.
    pub guard: u8,
    /// Predicate slots written.
    pub predicate_destinations: [u8; 2],
    /// Predicate slots read.
    pub predicate_sources: [u8; 2],
    /// All ones where the guard is negated.
    pub guard_flip: u32,
    /// All ones where a predicate source is negated.
    pub predicate_flips: [u32; 2],
    /// First rows of the destinations.
    pub destinations: [u16; 4],
    /// Rows of the sources. The first source of a memory instruction is the address.
    pub sources: [Source; 5],
    /// For instructions with more operands than fit above: the row of the constants from which on they are listed, a number an operand:
    /// first rows of the destinations, then the sources as in [`Source`].
    pub operand_list: u16,
    /// Machine code: signs of the sources, see [`sign`](crate::interpreter::machine::signs::sign).
    pub signs: u8,
    /// Machine code: uniform registers that a lane function writes.
    pub uniform: UniformResult,
    /// A parameter of the lane function: a table of `lop3`, an offset, a mode.
    pub immediate: u32,
    /// Where a branch goes.
    pub target: u32,
    /// Where its lanes meet again.
    pub reconvergence: u32,
    /// Added to addresses.
    pub offset: i64,
    /// The form of a memory instruction.
    pub memory: MemoryForm,
}
