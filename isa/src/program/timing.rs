//! The facts about an instruction that an SM needs to time it.

use std::num::NonZeroU16;

/// Multiply-adds of half precision that the tensor cores of a sub-core do in one pass: an `HMMA.884` of V100, 256 of them in two
/// cycles (NVIDIA Tesla V100 whitepaper: 8 tensor cores an SM, 64 a cycle each; Jia et al. 2018: a `wmma.mma` of 16 by 16 by 16 is
/// 16 `HMMA.884` where it sums up in single precision).
pub const MATRIX_PASS: u32 = 256;

/// The functional unit an instruction issues to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pipe {
    /// Single-precision arithmetic.
    Fp32,
    /// Multiply-adds of integers, in the pipe of single precision or in the one of its two halves that has multipliers for them.
    Multiply,
    /// Integer arithmetic, logic, moves, comparisons.
    Int,
    /// Double-precision arithmetic.
    Fp64,
    /// Half-precision arithmetic.
    Fp16,
    /// Special functions: reciprocal, square root, sine, exponential; conversions.
    Sfu,
    /// Tensor cores.
    Tensor,
    /// Load/store units, also for accesses that stay in the SM: shared memory, constants, shuffles, barriers.
    Memory,
    /// The same units, with loads that may go below the SM: from global, local and generic addresses, textures.
    Load,
    /// The same units, with stores, reductions and atomics that may go below the SM.
    Store,
    /// Branches, exits, convergence.
    Branch,
    /// Issues without a functional unit: the GPU's own code folds such instructions into operands (parameter loads, address-space casts).
    Free,
}

impl Pipe {
    /// Pipes in order.
    pub const ALL: [Pipe; 12] = [
        Pipe::Fp32,
        Pipe::Multiply,
        Pipe::Int,
        Pipe::Fp64,
        Pipe::Fp16,
        Pipe::Sfu,
        Pipe::Tensor,
        Pipe::Memory,
        Pipe::Load,
        Pipe::Store,
        Pipe::Branch,
        Pipe::Free,
    ];

    /// The ways into the load/store units.
    pub const MEMORY: [Pipe; 3] = [Pipe::Memory, Pipe::Load, Pipe::Store];

    /// Whether it is one of [`Self::MEMORY`].
    #[inline]
    pub fn is_memory(self) -> bool {
        Self::MEMORY.contains(&self)
    }
}

/// How long a result takes; the topology gives each class its cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LatencyClass {
    /// 32-bit integer and logic.
    Integer,
    /// 32-bit integer multiply and multiply-add.
    IntegerMultiply,
    /// Single precision add, multiply, fused multiply-add.
    Single,
    /// Half precision.
    Half,
    /// Double precision.
    Double,
    /// One pass through the special-function unit.
    Special,
    /// Conversions between types that the special-function unit does.
    Conversion,
    /// The same from and to types of 64 bits.
    WideConversion,
    /// Tensor-core operation.
    Tensor,
    /// A step of Volta's product of matrices; its code has sixteen steps for a tile.
    TensorStep,
    /// The same with sums in half precision: eight for a tile, each twice as wide.
    TensorHalfStep,
    /// Products of 16 by 8 halves over 128 bits of depth, and others of as many bits, as one instruction: four steps wide. Deeper ones are
    /// several.
    TensorProduct,
    /// Products of integers or bits of 8 by 8 over 128 bits of depth as one instruction: two steps wide. Larger ones are several.
    TensorNarrowProduct,
    /// Comparison into a predicate.
    Predicate,
    /// A read of constant or parameter memory that the GPU's own code has in an operand.
    Constant,
    /// A load from a constant bank.
    ConstantLoad,
    /// Branches.
    Branch,
    /// Shuffle, match: lanes exchange values through the memory pipe.
    Exchange,
    /// Moves, constants and votes of the uniform datapath.
    UniformMove,
    /// The memory system says when.
    Variable,
    /// No latency: folded into the consumer.
    Zero,
}

impl LatencyClass {
    /// Classes in order.
    pub const COUNT: usize = LatencyClass::Zero as usize + 1;
}

/// The pipe, the latency and the class of an instruction that PTX and machine code have alike.
pub(crate) type SharedCost = (Pipe, LatencyClass, CountClass);

/// A vote among lanes. ptxas gives `VOTE` stall cycles and no scoreboard, as it does arithmetic and not shuffles.
pub(crate) const VOTE: SharedCost = (Pipe::Int, LatencyClass::Integer, CountClass::Other);
/// A product by a group of warps: the tensor cores go on with it after it has issued, see `GroupForm::passes`.
pub(crate) const GROUP_PRODUCT: SharedCost = (Pipe::Tensor, LatencyClass::Tensor, CountClass::Other);
/// A fence of the GPU or the system, which waits for stores.
pub(crate) const FENCE: SharedCost = (Pipe::Memory, LatencyClass::Variable, CountClass::Other);
/// A fence of a CTA, and what else waits for nothing.
pub(crate) const CTA_FENCE: SharedCost = (Pipe::Branch, LatencyClass::Integer, CountClass::Other);

/// The class that counts an instruction; see `KernelCounters`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CountClass {
    /// Nothing more than an instruction.
    Other,
    /// Integer arithmetic, logic, comparison.
    Integer,
    /// Single-precision add or subtract.
    SingleAdd,
    /// Single-precision multiply.
    SingleMultiply,
    /// Single-precision fused multiply-add.
    SingleFma,
    /// Double-precision add or subtract.
    DoubleAdd,
    /// Double-precision multiply.
    DoubleMultiply,
    /// Double-precision fused multiply-add.
    DoubleFma,
    /// Half-precision arithmetic.
    Half,
    /// Conversion.
    Conversion,
    /// Branch, exit, call.
    Control,
    /// Load, store, atomic: counted by the SM from the access.
    Memory,
    /// Barrier.
    Barrier,
}

impl CountClass {
    /// Classes in order.
    pub const COUNT: usize = CountClass::Barrier as usize + 1;
}

/// Guard of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Predicate register plus one; 0 = unguarded.
    pub predicate_plus_one: u8,
    /// Lanes run where the predicate is false.
    pub negated: bool,
}

/// The registers an instruction waits for, as indices into the warp's scoreboard.
///
/// Index space: 32-bit register slots first (a 64-bit register marks both its slots when written and is read by its first), then predicates.
///
/// Almost every instruction names few registers. These are here, and entries that do not matter fill the other places, so that no code has
/// to count. The program keeps further registers; matrix instructions have up to 32, those of groups of warps up to 140.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// The registers that it reads, its guard and addresses included, and the registers that it writes. Other places repeat the first, or
    /// name an entry that is never written.
    pub waits: [u16; 6],
    /// The registers that it writes. Other places name an entry that nothing waits for.
    pub writes: [u16; 2],
    /// Where the program keeps the others: see [`Program::further_waits`](super::Program::further_waits) and
    /// [`Program::further_writes`](super::Program::further_writes).
    pub(crate) further: u32,
    pub(crate) further_wait_count: u8,
    pub(crate) further_write_count: u8,
}

impl Dependencies {
    /// Whether all entries are here.
    #[inline(always)]
    pub fn is_complete(&self) -> bool {
        self.further_wait_count | self.further_write_count == 0
    }
}

/// A line of a constant bank that an instruction of machine code names an operand in, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstantLine(Option<NonZeroU16>);

impl ConstantLine {
    /// Bytes of a line.
    pub const BYTES: u32 = 64;
    /// Lines of a bank, which has 64 KiB.
    const LINES: u32 = 1024;

    /// The line with the byte at `offset` of a bank.
    pub(crate) fn of(bank: u32, offset: u32) -> ConstantLine {
        let number = bank % 8 * Self::LINES + offset / Self::BYTES % Self::LINES;
        ConstantLine(NonZeroU16::new(number as u16 + 1))
    }

    /// The bank, and the line's first byte in it.
    #[inline]
    pub fn get(self) -> Option<(u32, u32)> {
        let number = u32::from(self.0?.get() - 1);
        Some((number / Self::LINES, number % Self::LINES * Self::BYTES))
    }
}

/// The words of machine code about the issue of an instruction: the control word, as a rule of an SM's warps needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssueControl {
    /// Cycles before the warp's next instruction can issue.
    pub stall: u8,
    /// Scoreboards that must be free before it issues, a bit each.
    pub wait_mask: u8,
    /// A scoreboard that some may still hold when it issues.
    pub counted_wait: CountedWait,
    /// The scoreboard, if any, that is free again when its result is written, a bit.
    pub write_barrier: u8,
    /// The scoreboard, if any, that is free again when its operands are read, a bit.
    pub read_barrier: u8,
    /// The registers that it reads of either bank of the register file.
    pub bank_reads: BankReads,
    /// Of a product of matrices: so many of the least ones of its class, see [`LatencyClass`]; 0 is one.
    pub products: u8,
    /// The line with its constant operand.
    pub constant: ConstantLine,
}

/// Registers of 32 bits that an instruction of the pipes of arithmetic reads of each of the two banks of a register file; none of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BankReads(u8);

impl BankReads {
    /// Most registers of a bank that are told apart.
    const MOST: u8 = 0xf;

    /// So many of the bank of even registers, and of the bank of odd ones.
    pub fn new([even, odd]: [u8; 2]) -> BankReads {
        BankReads(even.min(Self::MOST) | odd.min(Self::MOST) << 4)
    }

    /// Reads it no register?
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Registers of the bank of even ones, and of the bank of odd ones.
    #[inline]
    pub fn by_bank(self) -> [u8; 2] {
        [self.0 & Self::MOST, self.0 >> 4]
    }

    /// Registers of the bank that most are read of.
    #[inline]
    pub fn of_one_bank(self) -> u8 {
        let [even, odd] = self.by_bank();
        even.max(odd)
    }
}

/// A wait until at most so many instructions hold a scoreboard (`DEPBAR.LE SB0, 0x2`), or none: the scoreboard in the low three bits, and
/// how many above. Code waits so where these instructions let go of it in the order in which they took it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedWait(u8);

impl CountedWait {
    /// Holders that it can name. Who may let more hold a scoreboard waits until so many do.
    const MOST: u8 = u8::MAX >> 3;

    /// Until at most `most` of them, and at least one, hold the scoreboard.
    pub(crate) fn until(scoreboard: u8, most: u8) -> CountedWait {
        CountedWait(scoreboard & 7 | most.min(Self::MOST) << 3)
    }

    /// The scoreboard, and how many may hold it.
    #[inline]
    pub fn get(self) -> Option<(usize, u16)> {
        (self.0 != 0).then(|| (usize::from(self.0 & 7), u16::from(self.0 >> 3)))
    }
}

/// Scoreboards of a warp in machine code: the six of control words, and one that instructions of code that is not scheduled hold until
/// they have ended.
pub const SCOREBOARDS: usize = 7;

/// The facts about one instruction that the SM needs to time it. The semantics live beside it, private to this crate.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Unit it issues to.
    pub pipe: Pipe,
    /// When its result can be read.
    pub latency: LatencyClass,
    /// The class that counts it.
    pub count: CountClass,
    /// Instructions of the GPU's own that this one stands for (a PTX division is a sequence): it occupies its pipe that often,
    /// and its result takes that many dependent passes of `latency`. At least 1.
    pub passes: u8,
    /// It computes on each lane alone: it knows no memory, clock or other lane, and the next instruction follows. See
    /// [`plain_function`](crate::interpreter::plain_function).
    pub is_plain: bool,
    /// Machine code: the compiler's words about its issue. For PTX only the line with a parameter.
    pub control: IssueControl,
    /// The registers that it waits for.
    pub dependencies: Dependencies,
}
