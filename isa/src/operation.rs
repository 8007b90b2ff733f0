//! The decoded form of an instruction: operands are rows of the register file, targets are indices.

use crate::execution::{AtomicOperation, AtomicType, BarrierKind, CacheOperator, Space, SystemCall};
use crate::interpreter::bodies::{Nothing, functions};
use crate::interpreter::registers::Registers;
use crate::interpreter::texture::ImageForm;
use crate::program::LANES;
use serde::{Deserialize, Serialize};

/// One 32-bit register of all lanes. A 64-bit register is two adjacent rows, lane `i` in bytes `8 * i` to `8 * i + 7` of the pair.
/// Narrower values are zero-extended to 32 bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[repr(C, align(64))]
pub(crate) struct Row(pub [u32; LANES]);

// SAFETY: 128 bytes of plain integers, a multiple of the alignment: no padding, every bit pattern valid.
unsafe impl bytemuck::Zeroable for Row {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Row {}

impl Row {
    pub const ZERO: Row = Row([0; LANES]);
}

/// A row, or the first of two, where an operand's values are: in the register file, or in the program's constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source(pub u16);

impl Source {
    /// Set in the index of a row of the program's constants.
    pub const CONSTANT: u16 = 0x8000;
}

/// A predicate slot that is true in all lanes: the guard of unguarded instructions.
pub(crate) const TRUE_PREDICATE: u8 = 0;
/// A predicate slot that is written and never read.
pub(crate) const SINK_PREDICATE: u8 = 1;
/// First slot of the program's own predicates.
pub(crate) const FIRST_PREDICATE: u8 = 2;
/// Rows that are written and never read, so that `_` is an operand like any other.
pub(crate) const SINK_ROW: u16 = 0;
/// First row of the program's own registers.
pub(crate) const FIRST_ROW: u16 = 2;

/// Computes registers from registers in the lanes of a mask.
///
/// # Safety
/// The instruction comes from a decoded program, `Registers` from a warp of that program, the slice is its constants; and the
/// processor has the features that the function was compiled for.
pub(crate) type LaneFunction = unsafe fn(&Instruction, &mut Registers, &[Row], u32);

/// What an instruction does beyond registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Nothing: the lane function says it all.
    Lanes,
    /// Reads the cycle counter or the timer: `immediate` is a `Counter`.
    Counter,
    /// Reads memory.
    Load,
    /// Of machine code: reads memory where the first predicate source is true; elsewhere the destinations become zero.
    LoadOrZero,
    /// Of machine code: reads matrices, whose elements it distributes among lanes.
    LoadMatrices,
    /// Writes memory.
    Store,
    /// Atomic or reduction.
    Atomic,
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
    /// Gives back such memory: what lies beyond the first source.
    StackRestore,
    /// Ends lanes.
    Exit,
    /// Arrives at a CTA barrier.
    Barrier(BarrierKind),
    /// Memory fence.
    Fence,
    /// Lanes exchange values: the lane function does it once they are together.
    Collective,
    /// Waits until the lanes of a mask are together.
    WarpBarrier,
    /// Sleeps.
    Sleep,
    /// Copies from device to shared memory.
    Copy,
    /// Makes a group of the copies since the last.
    CopyCommit,
    /// Waits for copies: `immediate` is the number of groups that may be under way, or [`ALL_COPIES`].
    CopyWait,
    /// Arrives at an `mbarrier` object when the copies have come.
    CopyArrive,
    /// Asks whether a phase of an `mbarrier` object is complete: `immediate` is a `barrier_test`.
    BarrierTest,
    /// Ends the kernel with an error.
    Trap,
    /// Of machine code: which lanes are where.
    Convergence(ConvergenceKind),
}

/// What instructions of machine code do to where lanes are.
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
    /// `BRA.U`: to the target where all lanes that run together go there; else none does, and what follows is under predicates.
    BranchIfUnanimous,
    /// `BRA.DIV`: to the target where lanes of the warp are elsewhere.
    BranchIfDiverged,
    /// `BRA.CONV`: to the target where none is.
    BranchIfConverged,
    /// To the address that the first source has, plus `offset`: `BRX`, `JMX`, `CALL` and `RET` by registers.
    Jump,
}

/// No copy may be under way, in a group or not.
pub(crate) const ALL_COPIES: u32 = u32::MAX;

/// How an instruction of kind `BarrierTest` names the phase, and whether it waits a little: a set of bits.
pub(crate) mod barrier_test {
    /// By its parity rather than by a state.
    pub const PARITY: u32 = 1;
    /// `try_wait`.
    pub const SUSPENDS: u32 = 2;
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

/// What a memory instruction accesses.
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
    /// Machine code: what is added to addresses, the uniform register whose row is the instruction's `operand_list`.
    pub uniform: UniformAddress,
    /// Machine code: by how many bits the address register is shifted to the left first.
    pub scale: u8,
    /// Of atomics.
    pub operation: AtomicOperation,
    /// Of atomics.
    pub data_type: AtomicType,
    /// Atomics that return nothing.
    pub is_reduction: bool,
    /// Atomics of machine code that return whether they stored rather than what they found.
    pub succeeds: bool,
    /// Atomics with a second operand: what a compare-and-swap stores, the bytes that an arrival expects.
    pub has_replacement: bool,
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
        succeeds: false,
        has_replacement: false,
    };
}

/// A pc that is never reached: branches that do not reconverge before the threads end.
pub(crate) const NEVER: u32 = u32::MAX;

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    /// The lane function: portable, and with the processor's vector features.
    pub functions: [LaneFunction; 2],
    /// What else it does.
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
    /// Rows of the sources. Of memory instructions, the first is the address.
    pub sources: [Source; 5],
    /// Of instructions with more operands than fit above: the row of the constants from which on they are listed, a number an
    /// operand: first rows of the destinations, then the sources as in [`Source`].
    pub operand_list: u16,
    /// Of machine code: signs of the sources, see [`sign`](crate::interpreter::machine::signs::sign).
    pub signs: u8,
    /// What the lane function wants to know: a table of `lop3`, an offset, a mode.
    pub immediate: u32,
    /// Where a branch goes.
    pub target: u32,
    /// Where its lanes meet again.
    pub reconvergence: u32,
    /// Added to addresses.
    pub offset: i64,
    /// Of memory instructions.
    pub memory: MemoryForm,
}

impl Instruction {
    /// One that does nothing, in all lanes.
    pub fn nothing() -> Instruction {
        Instruction {
            functions: functions::<Nothing>(),
            kind: Kind::Lanes,
            guard: TRUE_PREDICATE,
            predicate_destinations: [SINK_PREDICATE; 2],
            predicate_sources: [TRUE_PREDICATE; 2],
            guard_flip: 0,
            predicate_flips: [0; 2],
            destinations: [SINK_ROW; 4],
            sources: [Source(SINK_ROW); 5],
            operand_list: 0,
            signs: 0,
            immediate: 0,
            target: 0,
            reconvergence: NEVER,
            offset: 0,
            memory: MemoryForm::NONE,
        }
    }
}
