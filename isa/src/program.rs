//! A decoded kernel: what an SM runs, wherever the code came from.

use crate::machine::{MachineProgram, PARAMETERS_AT};
use crate::operation::{Instruction, Row};
use crate::ptx::source::{SourceText, Span};
use crate::sass;
use crate::source_lines::InstructionLines;
use std::num::NonZeroU16;
use std::sync::Arc;

/// Multiply-adds of half precision that the tensor cores of a sub-core do in one pass: an `HMMA.884` of V100, 256 of them in two
/// cycles (NVIDIA Tesla V100 whitepaper: 8 tensor cores an SM, 64 a cycle each; Jia et al. 2018: a `wmma.mma` of 16 by 16 by 16 is
/// 16 `HMMA.884` where it sums up in single precision).
pub const MATRIX_PASS: u32 = 256;

/// Lanes of a warp.
pub const LANES: usize = 32;

/// The lanes of a mask, ascending.
#[inline(always)]
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| (mask >> lane) & 1 != 0)
}

/// The functional unit an instruction issues to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Pipe {
    /// Single-precision arithmetic.
    Fp32,
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
    /// Load/store units, with what stays in the SM: shared memory, constants, shuffles, barriers.
    Memory,
    /// The same units, with loads that may go below the SM: from global, local and generic addresses, textures.
    Load,
    /// The same units, with stores, reductions and atomics that may go below the SM.
    Store,
    /// Branches, exits, convergence.
    Branch,
    /// Issues without a functional unit: what the GPU's own code folds into operands (parameter loads, address-space casts).
    Free,
}

impl Pipe {
    /// Pipes in order.
    pub const ALL: [Pipe; 11] = [
        Pipe::Fp32,
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
    /// A step of Volta's product of matrices, of which its code has sixteen for a tile.
    TensorStep,
    /// The same with sums in half precision: eight for a tile, each twice as wide.
    TensorHalfStep,
    /// Turing's product of 16x8x8 halves as one instruction: four steps wide.
    TensorProduct,
    /// Turing's product of integers or bits as one instruction: two steps wide.
    TensorNarrowProduct,
    /// Comparison into a predicate.
    Predicate,
    /// A read of constant or parameter memory that the GPU's own code has in an operand.
    Constant,
    /// A load from a constant bank.
    ConstantLoad,
    /// Branches.
    Branch,
    /// Shuffle, vote, match: lanes exchange values through the memory pipe.
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

/// What an instruction is counted as; see `KernelCounters`.
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
/// Almost every instruction names few: these are here, and the places that it leaves are taken by entries that do not matter, so that
/// nobody has to count. The program keeps what does not fit; matrix instructions have up to 32 registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// What it reads, its guard and addresses included, and what it writes. Other places repeat the first, or name an entry that is
    /// never written.
    pub waits: [u16; 6],
    /// What it writes. Other places name an entry that nothing waits for.
    pub writes: [u16; 2],
    /// Where the program keeps the others: see [`Program::further_waits`] and [`Program::further_writes`].
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

/// Where an instruction stands in its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition<'p> {
    /// Line of the PTX text, counted from 1.
    pub line: u32,
    /// The instruction's text.
    pub text: &'p str,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterSlot {
    /// Offset in the parameter block, bytes.
    pub offset: u32,
    /// Size, bytes.
    pub bytes: u32,
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

/// What machine code says about the issue of an instruction: the control word, as a rule of an SM's warps needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssueControl {
    /// Cycles before the warp's next instruction can issue.
    pub stall: u8,
    /// Scoreboards that must be free before it issues, a bit each.
    pub wait_mask: u8,
    /// The scoreboard, if any, that is free again when its result is written, a bit.
    pub write_barrier: u8,
    /// The scoreboard, if any, that is free again when its operands are read, a bit.
    pub read_barrier: u8,
    /// Cycles that the register file takes longer to read its operands, because they lie in one bank.
    pub bank_conflicts: u8,
    /// The line with its constant operand.
    pub constant: ConstantLine,
}

/// Scoreboards of a warp in machine code: the six of control words, and one that instructions of code that is not scheduled hold until
/// they have ended.
pub const SCOREBOARDS: usize = 7;

/// What the SM needs of one instruction to time it. The semantics live beside it, private to this crate.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Unit it issues to.
    pub pipe: Pipe,
    /// When its result can be read.
    pub latency: LatencyClass,
    /// What it counts as.
    pub count: CountClass,
    /// Instructions of the GPU's own that this one stands for (a PTX division is a sequence): it occupies its pipe that often,
    /// and its result takes that many dependent passes of `latency`. At least 1.
    pub passes: u8,
    /// It computes on each lane alone: it knows no memory, clock or other lane, and the next instruction follows. See
    /// [`plain_function`](crate::interpreter::plain_function).
    pub is_plain: bool,
    /// Of machine code: what the compiler says about its issue. Of PTX the line with a parameter alone.
    pub control: IssueControl,
    /// What it waits for.
    pub dependencies: Dependencies,
}

/// What a kernel asks of an SM.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// 32-bit registers of a thread, the estimate that limits occupancy: as many as the GPU's own assembler would name. Warps get
    /// them in units of the SM's.
    pub registers_per_thread: u32,
    /// Static shared memory, bytes.
    pub shared_bytes: u32,
    /// Local memory of a thread, bytes.
    pub local_bytes: u32,
    /// `.maxntid`, where given.
    pub maximum_threads: Option<u32>,
    /// `.reqntid`, where given.
    pub required_block: Option<[u32; 3]>,
}

/// A kernel's name, shared.
pub type KernelName = Arc<str>;

/// The largest alignment of what `alloca` gives.
pub(crate) const LARGEST_ALIGNMENT: u32 = 1024;

/// What calls need to know at run time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    /// Targets of the branches by table.
    pub tables: Vec<u32>,
    /// Address and entry of the functions, by address.
    pub entries: Vec<(u64, u32)>,
    /// The row of the stack pointer, in programs with functions.
    pub stack_pointer: u16,
    /// Bytes of a thread's stack that frames may begin in.
    pub stack_bytes: u32,
    /// The row with the bytes that `alloca` has taken, in programs that have it.
    pub taken: u16,
    /// Where the memory of `alloca` begins.
    pub first_taken: u32,
    /// Bytes that it may take.
    pub most_taken: u32,
}

/// Code that follows a program's own and that other programs have, too: functions of a module of machine code.
#[derive(Debug, Default)]
pub(crate) struct SharedCode {
    pub timings: Vec<Timing>,
    pub instructions: Vec<Instruction>,
    /// The instructions as they were decoded; those of the device runtime's functions, at the end, have none.
    pub decoded: Vec<sass::Instruction>,
}

/// A decoded kernel with the functions that it can reach, the kernel first.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) name: KernelName,
    /// From which instruction on the text is which, ascending.
    pub(crate) sources: Vec<(u32, SourceText)>,
    pub(crate) resources: Resources,
    pub(crate) parameters: Vec<ParameterSlot>,
    pub(crate) parameter_bytes: u32,
    pub(crate) timings: Vec<Timing>,
    /// Where each instruction stands in its text.
    pub(crate) spans: Vec<Span>,
    /// Of PTX: where the functions begin, ascending, with their names.
    pub(crate) functions: Vec<(u32, Box<str>)>,
    /// Of PTX: the lines that it was compiled from, where the text says so.
    pub(crate) source_lines: Option<Arc<InstructionLines>>,
    pub(crate) instructions: Vec<Instruction>,
    /// What follows [`Self::timings`] and [`Self::instructions`].
    pub(crate) shared: Arc<SharedCode>,
    pub(crate) calls: Calls,
    /// Immediates, one value in all lanes; and operand lists, see [`Instruction::operand_list`]. What a launch says has its places here,
    /// too: see [`Program::launch_constants`].
    pub(crate) constants: Arc<[Row]>,
    /// Of machine code: what else only that has.
    pub(crate) machine: Option<Box<MachineProgram>>,
    /// Scoreboard entries that do not fit into [`Dependencies`].
    pub(crate) further_dependencies: Vec<u16>,
    /// 128-byte rows of a warp's register file.
    pub(crate) register_rows: u16,
    /// Those that a warp starts with as zeros: all that may be read before they are written.
    pub(crate) zeroed_rows: Vec<u16>,
    /// Predicate slots of a warp, the two reserved ones included.
    pub(crate) predicate_slots: u16,
}

impl Program {
    /// The kernel's name as its source gives it.
    pub fn name(&self) -> &KernelName {
        &self.name
    }

    /// The file that the instruction at `pc` came from.
    pub fn file_name(&self, pc: u32) -> &str {
        self.source(pc).map_or("", SourceText::name)
    }

    fn source(&self, pc: u32) -> Option<&SourceText> {
        let after = self.sources.partition_point(|(first, _)| *first <= pc);
        self.sources.get(after.saturating_sub(1)).map(|(_, source)| source)
    }

    /// What it asks of an SM.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The same program with a stack of this size for what has no known depth, recursion and `alloca`; `None` where it has neither, or
    /// its stack is as large.
    #[must_use]
    pub fn with_stack(&self, bytes: u32) -> Option<Program> {
        let calls = &self.calls;
        let is_recursive = calls.stack_bytes != u32::MAX;
        let own = if is_recursive { calls.stack_bytes } else { calls.most_taken };
        if own == 0 || bytes <= own {
            return None;
        }
        // What lies behind the stack keeps its alignment.
        let growth = (bytes - own).next_multiple_of(LARGEST_ALIGNMENT);
        let mut program = self.clone();
        let mut all = 0;
        if is_recursive {
            program.calls.stack_bytes += growth;
            all += growth;
        }
        if calls.most_taken > 0 {
            program.calls.first_taken += all;
            program.calls.most_taken += growth;
            all += growth;
        }
        program.resources.local_bytes = self.resources.local_bytes.saturating_add(all);
        Some(program)
    }

    /// Its parameters, in order.
    pub fn parameters(&self) -> &[ParameterSlot] {
        &self.parameters
    }

    /// Bytes of the parameter block.
    pub fn parameter_bytes(&self) -> u32 {
        self.parameter_bytes
    }

    /// Where parameters begin in constant bank 0.
    #[inline]
    pub fn parameters_at(&self) -> u32 {
        self.machine.as_ref().map_or(PARAMETERS_AT, |machine| machine.parameter_base.0)
    }

    /// Where constant bank 3 lies in device memory, of machine code that has one.
    #[inline]
    pub fn constant_bank_3(&self) -> Option<u64> {
        self.machine.as_ref()?.bank_3.map(|(address, _)| address)
    }

    /// Instructions.
    pub fn len(&self) -> usize {
        self.instructions.len() + self.shared.instructions.len()
    }

    /// Whether it has no instruction; never so for a decoded kernel, which ends with an exit at least.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the SM needs to time the instruction at `pc`, which is less than [`Program::len`].
    #[inline(always)]
    pub fn timing(&self, pc: u32) -> &Timing {
        match self.timings.get(pc as usize) {
            Some(timing) => timing,
            None => self.shared_timing(pc),
        }
    }

    /// What the instruction at `pc` does, which is less than [`Program::len`].
    #[inline(always)]
    pub(crate) fn instruction(&self, pc: u32) -> &Instruction {
        match self.instructions.get(pc as usize) {
            Some(instruction) => instruction,
            None => self.shared_instruction(pc),
        }
    }

    /// Not where most instructions are: a function of its own, so that finding those costs no more than the check of their number.
    #[inline(never)]
    fn shared_timing(&self, pc: u32) -> &Timing {
        &self.shared.timings[pc as usize - self.timings.len()]
    }

    /// As [`Self::shared_timing`].
    #[inline(never)]
    fn shared_instruction(&self, pc: u32) -> &Instruction {
        &self.shared.instructions[pc as usize - self.instructions.len()]
    }

    /// What an instruction waits for beyond [`Dependencies::waits`].
    #[inline]
    pub fn further_waits(&self, dependencies: &Dependencies) -> &[u16] {
        let first = dependencies.further as usize;
        &self.further_dependencies[first..first + usize::from(dependencies.further_wait_count)]
    }

    /// What an instruction writes beyond [`Dependencies::writes`].
    #[inline]
    pub fn further_writes(&self, dependencies: &Dependencies) -> &[u16] {
        let first = dependencies.further as usize + usize::from(dependencies.further_wait_count);
        &self.further_dependencies[first..first + usize::from(dependencies.further_write_count)]
    }

    /// Whether it is machine code, whose instructions issue by their [`Timing::control`].
    #[inline(always)]
    pub fn is_machine_code(&self) -> bool {
        self.machine.is_some()
    }

    /// Of machine code: the instruction at `pc` as it was decoded; `None` of functions of the device runtime.
    pub fn machine_instruction(&self, pc: u32) -> Option<&sass::Instruction> {
        self.machine.as_ref()?.instruction(pc)
    }

    /// Whether the instruction at `pc` is one of machine code that reads a texture or a surface.
    pub fn is_machine_image_read(&self, pc: u32) -> bool {
        use sass::Opcode::{Suld, Tex, Tld, Tld4, Txd};
        let opcode = self.machine_instruction(pc).map(sass::Instruction::opcode);
        matches!(opcode, Some(Tex | Tld | Tld4 | Txd | Suld))
    }

    /// An instruction with where it stands, for messages: `vectorAdd.ptx:31: add.f32 %f3, %f1, %f2;`, or of machine code with its
    /// address, `vectorAdd+0xd0: FADD R9, R4, R3`.
    pub fn describe(&self, pc: u32) -> String {
        if let Some(machine) = &self.machine {
            return machine.describe(pc);
        }
        let position = self.position(pc);
        format!("{}:{}: {}", self.file_name(pc), position.line, position.text)
    }

    /// Where the instruction at `pc` stands in the source; nothing of machine code.
    pub fn position(&self, pc: u32) -> SourcePosition<'_> {
        let Some(&span) = self.spans.get(pc as usize) else { return SourcePosition::default() };
        let Some(source) = self.source(pc) else { return SourcePosition::default() };
        SourcePosition { line: source.line_of(span.start), text: span.text(source.text()) }
    }

    /// Entries of a warp's scoreboard: what [`Dependencies`] index.
    pub fn scoreboard_size(&self) -> usize {
        usize::from(self.register_rows) + usize::from(self.predicate_slots)
    }
}
