//! From the syntax trees of a kernel and the functions that it reaches to a [`Program`].
//!
//! Operands become register rows; instructions get pipes, latency classes and passes (`timing.rs`); `call.rs` has calls, `recursion.rs` registers saved for
//! recursion, and `assembly.rs` puts all of it together.

mod address;
mod arithmetic;
mod assembly;
mod asynchronous;
mod atomic;
mod bulk;
mod call;
mod collective;
mod comparison;
mod control;
mod convert;
mod float;
mod float_rules;
mod frame;
mod matrix;
mod matrix_group;
mod memory;
mod movement;
mod operand_types;
mod operands;
mod recursion;
mod texture;
mod timing;
mod video;

use crate::control_flow::Flow;
use crate::execution::CacheOperator;
use crate::lanes::LANES;
use crate::layout::{FRAME_ALIGNMENT, Frame, Layout};
use crate::linkage::Linkage;
use crate::liveness::{Registers, Uses, Width};
use crate::operation::*;
use crate::program::Program;
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::ast::{self, LabelId, LocationId, Module, Statement};
use crate::ptx::error::RawError;
use crate::ptx::modifier::Modifier;
use crate::ptx::opcode::Opcode;
use crate::ptx::source::Span;
use crate::ptx::types::ScalarType;
use crate::ptx::{PtxErrorKind, PtxErrors};
use crate::scheduling::{Access, Node, Order, expected_latency, memory_latency, spaces};
use std::collections::BTreeMap;

/// An operand before registers have places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Slot {
    #[default]
    None,
    Register(u32),
    /// First row of the constants.
    Constant(u16),
    /// The 32-bit address where the function's frame begins.
    Frame,
    /// The 32-bit address where it ends, and the frames of the functions that it calls begin.
    FrameEnd,
}

/// All operands of an instruction with many of them: its lane function finds them through `Instruction::operand_list`.
#[derive(Default)]
struct OperandList {
    destinations: Vec<Slot>,
    sources: Vec<Slot>,
}

/// An instruction before registers have places.
struct Pending {
    instruction: Instruction,
    guard: Option<u32>,
    destinations: [Slot; 4],
    sources: [Slot; 5],
    predicate_destinations: [Slot; 2],
    predicate_sources: [Slot; 2],
    /// Operands of instructions that have more than fit above.
    list: OperandList,
    label: Option<u32>,
    /// The functions that it calls: places in the list of functions.
    callees: Vec<usize>,
    flow: Flow,
    cost: timing::Cost,
    span: Span,
    /// The place in the source that the PTX instruction was compiled from.
    location: Option<LocationId>,
    /// Whether it reads or writes the carry flag.
    carries: bool,
    /// Whether no instruction may be moved across it, beyond what its kind says.
    pinned: bool,
    /// Whether its guard is not that of the PTX instruction which it is part of.
    has_own_guard: bool,
}

/// The state of decoding a kernel and its functions, one function after the other.
struct Decoder<'a> {
    linkage: &'a Linkage,
    /// The kernel, and the functions that it reaches; see [`Linkage::reachable`].
    functions: &'a [u32],
    /// For each function, the cycle of calls that it is part of. Cycles with smaller numbers call cycles with larger ones.
    cycles: &'a [assembly::Cycle],
    /// The place in the list of the function that is being decoded.
    current: usize,
    module_number: u32,
    module: &'a Module,
    function: &'a ast::Function,
    layout: Layout<'a>,
    frame: Frame,
    widths: Vec<Width>,
    /// The registers that hold the high halves of those of 128 bits, which have the low ones themselves.
    upper_halves: BTreeMap<u32, u32>,
    constants: Vec<Row>,
    known_constants: BTreeMap<(u64, bool), u16>,
    known_rows: BTreeMap<[u32; LANES], u16>,
    /// Constants that are addresses in shared memory, by value and width.
    known_shared: BTreeMap<(u64, bool), u16>,
    /// First rows of the tables of matrix forms, by the packed form.
    known_places: BTreeMap<u32, u16>,
    pending: Vec<Pending>,
    /// The function's lists of branch and call targets, and prototypes.
    label_tables: BTreeMap<LabelId, &'a Statement>,
    /// Targets of the function's branches by table.
    tables: Vec<Vec<u32>>,
    /// Where the memory ended that `alloca` had taken before the function was called.
    taken_before: Option<u32>,
    uses_alloca: bool,
    schedules: bool,
}

type Decoded<T> = Result<T, RawError>;

impl Program {
    /// Decodes one kernel and the functions that it can reach; `addresses` are those of the variables in device memory, see
    /// [`crate::module::PtxModule::variables`]. The instructions stay in the order of the text where `schedules` is false.
    pub(crate) fn decode(
        linkage: &Linkage,
        kernel: u32,
        addresses: &[u64],
        schedules: bool,
    ) -> Result<Program, PtxErrors> {
        assembly::program(linkage, kernel, addresses, schedules).map_err(|errors| linkage.errors(errors))
    }
}

fn width_of(scalar_type: ScalarType) -> Width {
    match scalar_type {
        ScalarType::Pred => Width::Predicate,
        other if other.bits() > 32 => Width::Two,
        _ => Width::One,
    }
}

impl<'a> Decoder<'a> {
    /// Turns to a function of the list, and forgets the facts about another one.
    fn select(&mut self, place: usize) {
        let (module_number, function) = self.linkage.function(self.functions[place]);
        self.layout.select(self.functions, place);
        self.current = place;
        self.module_number = module_number;
        self.module = &self.linkage.modules[module_number as usize];
        self.function = function;
        self.widths = function.register_types.iter().map(|scalar_type| width_of(*scalar_type)).collect();
        self.frame = Frame { alignment: FRAME_ALIGNMENT, ..Frame::default() };
        self.pending = Vec::new();
        self.tables = Vec::new();
        self.label_tables = BTreeMap::new();
        self.taken_before = None;
        self.upper_halves = BTreeMap::new();
    }

    fn is_kernel(&self) -> bool {
        self.current == 0
    }

    /// Decodes the statements of the selected function.
    fn statements(&mut self) -> Result<(), Vec<RawError>> {
        let function = self.function;
        let statements = function.body.as_ref().map(|body| &body.statements[..]).unwrap_or_default();
        for statement in statements {
            if let Statement::BranchTargets { table: label, .. }
            | Statement::CallTargets { table: label, .. }
            | Statement::CallPrototype { label, .. } = statement
            {
                self.label_tables.insert(*label, statement);
            }
        }
        self.lay_out_frame(statements).map_err(|error| vec![error])?;
        // Most statements are one instruction.
        self.pending.reserve(statements.len() + 1);
        let mut errors = Vec::new();
        let mut labels = vec![u32::MAX; self.function.labels.len()];
        let mut end = function.span;
        self.take_parameters();
        let allocates = |statement: &Statement| matches!(statement, Statement::Instruction(instruction) if instruction.opcode == Opcode::Alloca);
        if statements.iter().any(allocates) {
            self.uses_alloca = true;
            self.keep_stack(function.span);
        }
        for statement in statements {
            match statement {
                Statement::Label(label) => labels[label.index()] = self.pending.len() as u32,
                Statement::Instruction(instruction) => {
                    end = instruction.span;
                    if let Err(error) = self.instruction(instruction) {
                        errors.push(error);
                    }
                }
                _ => {}
            }
        }
        // Threads that run off the text end, or return.
        self.leave(end, (Pipe::Branch, LatencyClass::Branch, CountClass::Control, 1));
        if !errors.is_empty() {
            return Err(errors);
        }
        for pending in &mut self.pending {
            if let Some(label) = pending.label {
                let target = labels[label as usize];
                pending.instruction.target = target;
                if let Flow::Branch { target: place, .. } = &mut pending.flow {
                    *place = target;
                }
            }
        }
        for entry in self.tables.iter_mut().flatten() {
            *entry = labels[*entry as usize];
        }
        Ok(())
    }

    /// Begins an instruction: one that does nothing yet.
    fn start(&mut self, span: Span, cost: timing::Cost) {
        self.pending.push(Pending::new(span, cost));
    }

    /// The instruction that is being decoded.
    fn last(&mut self) -> &mut Pending {
        let index = self.pending.len() - 1;
        &mut self.pending[index]
    }

    /// The message about an instruction that the simulator does not execute.
    fn refused(&self, instruction: &ast::Instruction) -> RawError {
        let text = instruction.span.text(self.module.source.text());
        let head = text.split([';', '\n']).next().unwrap_or(text).trim();
        let message = format!("`{head}` is not supported by the simulator");
        RawError::new(PtxErrorKind::UnknownInstruction, instruction.span, message)
    }

    fn instruction(&mut self, instruction: &ast::Instruction) -> Decoded<()> {
        let before = self.pending.len();
        let known = match instruction.opcode {
            Opcode::St | Opcode::Red if instruction.has(Modifier::Async) => self.access_and_tell(instruction)?,
            Opcode::Ld | Opcode::Ldu | Opcode::St => self.memory(instruction)?,
            Opcode::Atom | Opcode::Red => self.atomic(instruction)?,
            Opcode::Cp if instruction.has(Modifier::Bulk) => self.bulk(instruction)?,
            Opcode::Cp | Opcode::Mbarrier => self.asynchronous(instruction)?,
            Opcode::Tensormap => self.tensor_map(instruction)?,
            Opcode::Isspacep
            | Opcode::Mapa
            | Opcode::Getctarank
            | Opcode::Prefetch
            | Opcode::Prefetchu
            | Opcode::Applypriority
            | Opcode::Discard
            | Opcode::Createpolicy => self.addresses(instruction)?,
            Opcode::Call => self.call(instruction)?,
            Opcode::Alloca | Opcode::Stacksave | Opcode::Stackrestore => self.stack(instruction)?,
            Opcode::Bra
            | Opcode::Brx
            | Opcode::Exit
            | Opcode::Ret
            | Opcode::Trap
            | Opcode::Brkpt
            | Opcode::Bar
            | Opcode::Barrier
            | Opcode::Membar
            | Opcode::Fence
            | Opcode::Shfl
            | Opcode::Vote
            | Opcode::Match
            | Opcode::Redux
            | Opcode::Activemask
            | Opcode::Pmevent
            | Opcode::Nanosleep => self.control(instruction)?,
            Opcode::Mov => self.movement(instruction)?,
            Opcode::Cvt | Opcode::Cvta => self.conversion(instruction)?,
            Opcode::Wmma | Opcode::Mma | Opcode::Ldmatrix | Opcode::Stmatrix | Opcode::Movmatrix => {
                self.matrix(instruction)?
            }
            Opcode::Wgmma => self.matrix_group(instruction)?,
            Opcode::Tex | Opcode::Tld4 | Opcode::Txq | Opcode::Suq | Opcode::Suld | Opcode::Sust | Opcode::Sured => {
                self.texture(instruction)?
            }
            _ => self.arithmetic(instruction)?,
        };
        if !known {
            return Err(self.refused(instruction));
        }
        let mut carries = matches!(instruction.opcode, Opcode::Addc | Opcode::Subc | Opcode::Madc);
        let mut pinned =
            matches!(instruction.opcode, Opcode::Activemask | Opcode::Mbarrier | Opcode::Membar | Opcode::Fence);
        for modifier in &instruction.modifiers {
            match modifier {
                Modifier::Cc => carries = true,
                Modifier::Acquire | Modifier::Release | Modifier::AcquireRelease | Modifier::SequentiallyConsistent => {
                    pinned = true
                }
                _ => {}
            }
        }
        for pending in &mut self.pending[before..] {
            pending.location = instruction.location;
            pending.carries |= carries;
            pending.pinned |= pinned;
        }
        if let Some(guard) = instruction.guard {
            for pending in self.pending[before..].iter_mut().filter(|pending| !pending.has_own_guard) {
                pending.guard = Some(guard.register.0);
                pending.instruction.guard_flip = if guard.negated { u32::MAX } else { 0 };
                match &mut pending.flow {
                    Flow::Branch { conditional, .. } | Flow::Table { conditional, .. } | Flow::Exit { conditional } => {
                        *conditional = true;
                    }
                    Flow::Next => {}
                }
            }
        }
        Ok(())
    }
}

impl Pending {
    fn new(span: Span, cost: timing::Cost) -> Self {
        let instruction = Instruction::nothing();
        Pending {
            instruction,
            guard: None,
            destinations: Default::default(),
            sources: Default::default(),
            predicate_destinations: Default::default(),
            predicate_sources: Default::default(),
            list: OperandList::default(),
            label: None,
            callees: Vec::new(),
            flow: Flow::Next,
            cost,
            span,
            location: None,
            carries: false,
            pinned: false,
            has_own_guard: false,
        }
    }

    /// The facts that the scheduler needs to know beyond registers.
    fn node(&self) -> Node {
        let Instruction { kind, memory, .. } = &self.instruction;
        let is_volatile = memory.cache == CacheOperator::Volatile;
        let access = |writes| Access { spaces: spaces(memory.space), writes: writes || is_volatile };
        let (_, latency, _, passes) = self.cost;
        let (order, access) = match kind {
            Kind::Lanes => (Order::Free, None),
            Kind::Load if is_volatile => (Order::Chained, Some(access(true))),
            Kind::Load | Kind::LoadOrZero | Kind::LoadMatrices => (Order::Free, Some(access(false))),
            Kind::Store | Kind::StoreMatrices | Kind::Atomic | Kind::Copy | Kind::CopyPart => {
                (Order::Chained, Some(access(true)))
            }
            Kind::Image(form) if form.writes() => (Order::Chained, Some(access(true))),
            Kind::Image(_) => (Order::Free, Some(access(false))),
            // Matrix instructions exchange registers alone, and the lanes that meet there are those of the same instruction.
            Kind::Collective if !self.list.destinations.is_empty() => (Order::Free, None),
            Kind::Branch
            | Kind::BranchTable
            | Kind::Call
            | Kind::CallThrough
            | Kind::Return
            | Kind::System(_)
            | Kind::StackAllocate
            | Kind::StackSave
            | Kind::StackRestore
            | Kind::Exit
            | Kind::Counter
            | Kind::Barrier(_)
            | Kind::ClusterArrive
            | Kind::ClusterWait
            | Kind::Fence
            | Kind::Collective
            | Kind::WarpBarrier
            | Kind::Sleep
            | Kind::CopyCommit
            | Kind::CopyWait
            | Kind::CopyArrive
            | Kind::AndTell
            | Kind::WarpBarrierApart
            | Kind::BarrierTest
            | Kind::Bulk(_)
            | Kind::BulkCommit
            | Kind::BulkWait
            | Kind::ReplaceField(_)
            | Kind::CopyTensorMap
            | Kind::GroupProduct
            | Kind::ProductCommit
            | Kind::ProductWait
            | Kind::Convergence(_)
            | Kind::Trap => (Order::Pinned, None),
        };
        Node {
            order: if self.pinned || self.flow != Flow::Next { Order::Pinned } else { order },
            access: access.filter(|access| access.spaces != 0),
            carries: self.carries,
            latency: match kind {
                Kind::Load | Kind::Atomic | Kind::Image(_) => memory_latency(memory.space),
                _ => expected_latency(latency) * u32::from(passes),
            },
        }
    }

    fn uses(&self) -> Uses {
        let registers = |slots: &[Slot], found: &mut Registers| {
            for slot in slots {
                if let Slot::Register(register) = slot {
                    found.push(*register);
                }
            }
        };
        let (mut reads, mut writes) = (Registers::new(), Registers::new());
        registers(&self.sources, &mut reads);
        registers(&self.list.sources, &mut reads);
        registers(&self.predicate_sources, &mut reads);
        reads.extend(self.guard);
        registers(&self.destinations, &mut writes);
        registers(&self.list.destinations, &mut writes);
        registers(&self.predicate_destinations, &mut writes);
        Uses { reads, writes, guarded: self.guard.is_some() }
    }
}
