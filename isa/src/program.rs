//! A decoded kernel: the program that an SM runs, for PTX and for machine code.
//!
//! `timing` has the facts about an instruction that an SM needs, `parts` the parts that programs are put together from.

pub(crate) mod parts;
pub(crate) mod timing;

use crate::cluster::SharedAddress;
use crate::execution::AtomicFunction;
pub use crate::lanes::{LANES, lanes};
use crate::machine::code::PARAMETERS_AT;
use crate::machine::program::MachineProgram;
use crate::operation::operand::Row;
use crate::operation::{Instruction, Kind, MemoryForm};
use crate::ptx::source::{SourceText, Span};
use crate::sass;
use crate::source_lines::{InstructionLines, SourcePlace};
pub(crate) use parts::SharedCode;
pub use parts::{ClusterNeeds, KernelName, ParameterSlot, Resources};
use std::sync::Arc;
pub use timing::{
    BankReads, ConstantLine, CountClass, CountedWait, Dependencies, Guard, IssueControl, LatencyClass, MATRIX_PASS,
    Pipe, SCOREBOARDS, Timing,
};

/// Where an instruction stands in its source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition<'p> {
    /// Line of the PTX text, counted from 1.
    pub line: u32,
    /// The instruction's text.
    pub text: &'p str,
}

/// The largest alignment of memory that `alloca` gives.
pub(crate) const LARGEST_ALIGNMENT: u32 = 1024;

/// The facts that calls need at run time.
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
    /// PTX: the beginnings of the functions, ascending, with their names.
    pub(crate) functions: Vec<(u32, Box<str>)>,
    /// PTX: the lines that it was compiled from, where the text says so.
    pub(crate) source_lines: Option<Arc<InstructionLines>>,
    pub(crate) instructions: Vec<Instruction>,
    /// The code behind [`Self::timings`] and [`Self::instructions`].
    pub(crate) shared: Arc<SharedCode>,
    pub(crate) calls: Calls,
    /// Immediates, one value in all lanes; and operand lists, see [`Instruction::operand_list`]. The values of a launch have their places
    /// here, too: see [`Program::launch_constants`].
    pub(crate) constants: Arc<[Row]>,
    /// PTX: the constants among these that are addresses in shared memory, which name the rank of a CTA.
    pub(crate) shared_addresses: Vec<SharedAddress>,
    /// The parts that only machine code has.
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

    /// Its demands on an SM.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The same program with a stack of this size for needs of no known depth, recursion and `alloca`; `None` where it has neither, or its
    /// stack is as large.
    #[must_use]
    pub fn with_stack(&self, bytes: u32) -> Option<Program> {
        let calls = &self.calls;
        let is_recursive = calls.stack_bytes != u32::MAX;
        let own = if is_recursive { calls.stack_bytes } else { calls.most_taken };
        if own == 0 || bytes <= own {
            return None;
        }
        // Memory behind the stack keeps its alignment.
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

    /// The place of constant bank 3 in device memory, for machine code that has one.
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

    /// The timing of the instruction at `pc`, which is less than [`Program::len`].
    #[inline(always)]
    pub fn timing(&self, pc: u32) -> &Timing {
        match self.timings.get(pc as usize) {
            Some(timing) => timing,
            None => self.shared_timing(pc),
        }
    }

    /// The instruction at `pc`, which is less than [`Program::len`].
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

    /// The registers that an instruction waits for beyond [`Dependencies::waits`].
    #[inline]
    pub fn further_waits(&self, dependencies: &Dependencies) -> &[u16] {
        let first = dependencies.further as usize;
        &self.further_dependencies[first..first + usize::from(dependencies.further_wait_count)]
    }

    /// The registers that an instruction writes beyond [`Dependencies::writes`].
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

    /// Whether it is known after how many cycles the code that its compiler made may use the results of its instructions. Of machine code
    /// for Hopper it is not: it comes too early in places for the latencies that were measured.
    pub fn has_known_latencies(&self) -> bool {
        self.machine.as_ref().is_none_or(|machine| !machine.is_hopper())
    }

    /// Machine code: the instruction at `pc` as it was decoded; `None` for functions of the device runtime.
    pub fn machine_instruction(&self, pc: u32) -> Option<&sass::Instruction> {
        self.machine.as_ref()?.instruction(pc)
    }

    /// What the instruction at `pc`, an atomic or a reduction, does to a value in shared memory; `None` for any other.
    pub fn atomic_function(&self, pc: u32) -> Option<AtomicFunction> {
        if pc as usize >= self.len() {
            return None;
        }
        let instruction = self.instruction(pc);
        let MemoryForm { operation, data_type, .. } = instruction.memory;
        matches!(instruction.kind, Kind::Atomic | Kind::AndTell).then_some(AtomicFunction { operation, data_type })
    }

    /// Whether the instruction at `pc` is one of machine code that reads a texture or a surface.
    pub fn is_machine_image_read(&self, pc: u32) -> bool {
        use sass::Opcode::{Suld, Tex, Tld, Tld4, Txd};
        let opcode = self.machine_instruction(pc).map(sass::Instruction::opcode);
        matches!(opcode, Some(Tex | Tld | Tld4 | Txd | Suld))
    }

    /// An instruction with where it stands, for messages: `vectorAdd.ptx:31: add.f32 %f3, %f1, %f2;`, or of machine code with its
    /// address, `vectorAdd+0xd0: FADD R9, R4, R3`. Where the code names the line of its source, that comes first, with the lines of the
    /// calls that were inlined: `sum.cu:7, inlined at sum.cu:17 (vectorAdd+0xd0: FADD R9, R4, R3)`.
    pub fn describe(&self, pc: u32) -> String {
        let own = match &self.machine {
            Some(machine) => machine.describe(pc),
            None => {
                let position = self.position(pc);
                format!("{}:{}: {}", self.file_name(pc), position.line, position.text)
            }
        };
        let lines = std::iter::successors(self.source_place(pc), |place| place.call());
        let lines: Vec<String> = lines.map(|place| format!("{}:{}", place.file(), place.line())).collect();
        if lines.is_empty() { own } else { format!("{} ({own})", lines.join(", inlined at ")) }
    }

    /// Where the instruction at `pc` stands in the source; nothing of machine code.
    pub fn position(&self, pc: u32) -> SourcePosition<'_> {
        let Some(&span) = self.spans.get(pc as usize) else { return SourcePosition::default() };
        let Some(source) = self.source(pc) else { return SourcePosition::default() };
        SourcePosition { line: source.line_of(span.start), text: span.text(source.text()) }
    }

    /// The line of a source file that the instruction at `pc` was compiled from; `None` where the code does not say.
    pub fn source_place(&self, pc: u32) -> Option<SourcePlace<'_>> {
        let lines = match &self.machine {
            Some(machine) => machine.source_lines(),
            None => self.source_lines.as_deref()?,
        };
        lines.place(pc)
    }

    /// Entries of a warp's scoreboard, which [`Dependencies`] index.
    pub fn scoreboard_size(&self) -> usize {
        usize::from(self.register_rows) + usize::from(self.predicate_slots)
    }
}
