//! From the syntax tree of a kernel to a [`Program`].

mod address;
mod arithmetic;
mod asynchronous;
mod atomic;
mod collective;
mod comparison;
mod control;
mod convert;
mod float;
mod float_rules;
mod matrix;
mod memory;
mod movement;
mod operand_types;
mod operands;
mod texture;
mod timing;
mod video;

use crate::allocation::{Uses, Width, allocate};
use crate::control_flow::{Flow, Graph};
use crate::execution::CacheOperator;
use crate::interpreter::bodies::{Nothing, functions};
use crate::module::Layout;
use crate::operation::*;
use crate::program::{Dependencies, LANES, ParameterSlot, Program, Resources, SourcePosition, Timing};
use crate::ptx::ast::{self, Module, Statement};
use crate::ptx::error::RawError;
use crate::ptx::modifier::Modifier;
use crate::ptx::opcode::Opcode;
use crate::ptx::source::Span;
use crate::ptx::types::ScalarType;
use crate::ptx::{PtxErrorKind, PtxErrors};
use crate::scheduling::{Access, Node, Order, expected_latency, memory_latency, schedule, spaces};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Registers that the machine's calling convention takes beyond the program's own (stack pointer, spare pair).
const RESERVED_REGISTERS: u32 = 4;

/// An operand before registers have places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Slot {
    #[default]
    None,
    Register(u32),
    /// First row of the constants.
    Constant(u16),
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
    flow: Flow,
    cost: timing::Cost,
    span: Span,
    /// Whether it reads or writes the carry flag.
    carries: bool,
    /// Whether no instruction may be moved across it, beyond what its kind says.
    pinned: bool,
    /// Whether its guard is not that of the PTX instruction which it is part of.
    has_own_guard: bool,
}

/// The state of decoding one kernel.
struct Decoder<'a> {
    module: &'a Module,
    function: &'a ast::Function,
    layout: Layout,
    widths: Vec<Width>,
    /// The registers that hold the high halves of those of 128 bits, which have the low ones themselves.
    upper_halves: BTreeMap<u32, u32>,
    constants: Vec<Row>,
    known_constants: BTreeMap<(u64, bool), u16>,
    known_rows: BTreeMap<[u32; LANES], u16>,
    pending: Vec<Pending>,
    uses_thread_index: bool,
    schedules: bool,
}

type Decoded<T> = Result<T, RawError>;

impl Program {
    /// Decodes one kernel of a module; `addresses` are those of the module's device-memory variables, see
    /// [`crate::module::PtxModule::variables`].
    pub fn from_ptx(module: &Module, kernel: &str, addresses: &[u64]) -> Result<Program, PtxErrors> {
        Program::decode(module, kernel, addresses, true)
    }

    /// As [`Program::from_ptx`]; the instructions stay in the order of the text where `schedules` is false.
    pub(crate) fn decode(
        module: &Module,
        kernel: &str,
        addresses: &[u64],
        schedules: bool,
    ) -> Result<Program, PtxErrors> {
        let fail = |errors| PtxErrors::new(&module.source, errors, false);
        let function = module.function(kernel).filter(|function| function.is_entry && function.body.is_some());
        let Some(function) = function else {
            let message = format!("there is no kernel {kernel}");
            return Err(fail(vec![RawError::new(PtxErrorKind::UnknownSymbol, Span::default(), message)]));
        };
        let layout = Layout::new(module, function, addresses).map_err(|error| fail(vec![error]))?;
        let mut decoder = Decoder {
            module,
            function,
            layout,
            widths: function.register_types.iter().map(|scalar_type| width_of(*scalar_type)).collect(),
            upper_halves: BTreeMap::new(),
            constants: Vec::new(),
            known_constants: BTreeMap::new(),
            known_rows: BTreeMap::new(),
            pending: Vec::new(),
            uses_thread_index: false,
            schedules,
        };
        decoder.program().map_err(fail)
    }
}

fn width_of(scalar_type: ScalarType) -> Width {
    match scalar_type {
        ScalarType::Pred => Width::Predicate,
        other if other.bits() > 32 => Width::Two,
        _ => Width::One,
    }
}

impl Decoder<'_> {
    fn program(&mut self) -> Result<Program, Vec<RawError>> {
        let mut errors = Vec::new();
        let mut labels = vec![u32::MAX; self.function.labels.len()];
        let function = self.function;
        let statements = function.body.as_ref().map(|body| &body.statements[..]).unwrap_or_default();
        let mut end = function.span;
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
        // Threads that run off the text end.
        self.start(
            end,
            (
                crate::program::Pipe::Branch,
                crate::program::LatencyClass::Branch,
                crate::program::CountClass::Control,
                1,
            ),
        );
        self.last().instruction.kind = Kind::Exit;
        self.last().flow = Flow::Exit { conditional: false };
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
        self.assemble()
    }

    /// Gives registers their places and branches their meeting points.
    fn assemble(&mut self) -> Result<Program, Vec<RawError>> {
        let flows: Vec<Flow> = self.pending.iter().map(|pending| pending.flow).collect();
        let graph = Graph::new(&flows);
        for (block, meeting) in graph.reconvergence().into_iter().enumerate() {
            self.pending[graph.starts[block + 1] as usize - 1].instruction.reconvergence = meeting;
        }
        let mut uses: Vec<Uses> = self.pending.iter().map(Pending::uses).collect();
        if self.schedules {
            let nodes: Vec<Node> = self.pending.iter().map(Pending::node).collect();
            let order = schedule(&graph, &uses, &nodes, &self.widths);
            uses = in_order(uses, &order);
            self.pending = in_order(std::mem::take(&mut self.pending), &order);
        }
        let allocation = allocate(&graph, &uses, &self.widths);
        let limit = usize::from(Source::CONSTANT);
        if allocation.rows >= limit || self.constants.len() >= limit || allocation.predicates > 255 {
            let message = format!(
                "kernel {} needs {} registers and {} predicates at once",
                self.function.name, allocation.rows, allocation.predicates
            );
            return Err(vec![RawError::new(PtxErrorKind::Limit, self.function.span, message)]);
        }
        let place = |slot: Slot| match slot {
            Slot::Register(register) => Some(allocation.places[register as usize]),
            _ => None,
        };
        let source_at = |slot: Slot, scoreboard: &mut Scoreboard| match slot {
            Slot::None => Source(SINK_ROW),
            Slot::Constant(row) => Source(row | Source::CONSTANT),
            Slot::Register(register) => {
                let row = allocation.places[register as usize];
                scoreboard.read(row);
                Source(row)
            }
        };
        let destination_at = |slot: Slot, scoreboard: &mut Scoreboard| {
            let Slot::Register(register) = slot else { return SINK_ROW };
            let row = allocation.places[register as usize];
            scoreboard.write(row);
            if self.widths[register as usize] == Width::Two {
                scoreboard.write(row + 1);
            }
            row
        };
        let mut instructions = Vec::with_capacity(self.pending.len());
        let mut timings = Vec::with_capacity(self.pending.len());
        let mut positions = Vec::with_capacity(self.pending.len());
        let mut constants = std::mem::take(&mut self.constants);
        let mut lists: BTreeMap<Vec<u32>, u16> = BTreeMap::new();
        let mut further_dependencies = Vec::new();
        let source = &self.module.source;
        for pending in &self.pending {
            let mut instruction = pending.instruction;
            let mut scoreboard = Scoreboard::default();
            let predicate_base = allocation.rows as u16;
            for index in 0..5 {
                instruction.sources[index] = source_at(pending.sources[index], &mut scoreboard);
            }
            for index in 0..4 {
                instruction.destinations[index] = destination_at(pending.destinations[index], &mut scoreboard);
            }
            let OperandList { destinations, sources } = &pending.list;
            if !destinations.is_empty() || !sources.is_empty() {
                let mut list: Vec<u32> =
                    destinations.iter().map(|slot| u32::from(destination_at(*slot, &mut scoreboard))).collect();
                list.extend(sources.iter().map(|slot| u32::from(source_at(*slot, &mut scoreboard).0)));
                instruction.operand_list = *lists.entry(list).or_insert_with_key(|list| {
                    let row = constants.len();
                    constants.extend(list.chunks(LANES).map(|part| {
                        let mut row = Row::ZERO;
                        row.0[..part.len()].copy_from_slice(part);
                        row
                    }));
                    row.min(limit) as u16
                });
            }
            for index in 0..2 {
                if let Some(slot) = place(pending.predicate_destinations[index]) {
                    instruction.predicate_destinations[index] = slot as u8;
                    scoreboard.write(predicate_base + slot);
                }
                if let Some(slot) = place(pending.predicate_sources[index]) {
                    instruction.predicate_sources[index] = slot as u8;
                    scoreboard.read(predicate_base + slot);
                }
            }
            if let Some(guard) = pending.guard {
                let slot = allocation.places[guard as usize];
                instruction.guard = slot as u8;
                scoreboard.read(predicate_base + slot);
            }
            let dependencies = scoreboard.dependencies(&mut further_dependencies);
            let (pipe, latency, count, passes) = pending.cost;
            timings.push(Timing { pipe, latency, count, passes, dependencies });
            let line = source.line_column(pending.span.start).line;
            positions.push(SourcePosition { line, text: pending.span.text(source.text()).into() });
            instructions.push(instruction);
        }
        if constants.len() >= limit {
            let message = format!("kernel {} has more than {limit} constants and operand lists", self.function.name);
            return Err(vec![RawError::new(PtxErrorKind::Limit, self.function.span, message)]);
        }
        let performance = &self.function.performance;
        let registers = (allocation.pressure as u32 + RESERVED_REGISTERS).next_multiple_of(8).clamp(16, 255);
        let resources = Resources {
            registers_per_thread: registers.min(performance.maximum_registers.unwrap_or(255).max(16)),
            shared_bytes: self.layout.shared_bytes,
            local_bytes: self.layout.local_bytes,
            maximum_threads: performance.maximum_threads.map(|sizes| sizes.iter().product()),
            required_block: performance.required_threads,
        };
        Ok(Program {
            name: (&*self.function.name).into(),
            file_name: source.name().into(),
            resources,
            parameters: self.layout.parameters.clone(),
            parameter_bytes: self.layout.parameter_bytes,
            timings,
            positions,
            instructions,
            constants,
            further_dependencies,
            register_rows: allocation.rows as u16,
            uses_thread_index: self.uses_thread_index,
            predicate_slots: allocation.predicates as u16,
        })
    }

    /// Begins an instruction: one that does nothing yet.
    fn start(&mut self, span: Span, cost: timing::Cost) {
        let instruction = Instruction {
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
            immediate: 0,
            target: 0,
            reconvergence: NEVER,
            offset: 0,
            memory: MemoryForm::NONE,
        };
        self.pending.push(Pending {
            instruction,
            guard: None,
            destinations: Default::default(),
            sources: Default::default(),
            predicate_destinations: Default::default(),
            predicate_sources: Default::default(),
            list: OperandList::default(),
            label: None,
            flow: Flow::Next,
            cost,
            span,
            carries: false,
            pinned: false,
            has_own_guard: false,
        });
    }

    /// The instruction that is being decoded.
    fn last(&mut self) -> &mut Pending {
        let index = self.pending.len() - 1;
        &mut self.pending[index]
    }

    fn instruction(&mut self, instruction: &ast::Instruction) -> Decoded<()> {
        // Operands that need instructions of their own are computed first: the destination's place in the list is kept.
        let refused = || {
            let text = instruction.span.text(self.module.source.text());
            let head = text.split([';', '\n']).next().unwrap_or(text).trim();
            RawError::new(
                PtxErrorKind::UnknownInstruction,
                instruction.span,
                format!("`{head}` is not supported by the simulator"),
            )
        };
        let refused_error = refused();
        let before = self.pending.len();
        let known = match instruction.opcode {
            Opcode::Ld | Opcode::Ldu | Opcode::St => self.memory(instruction)?,
            Opcode::Atom | Opcode::Red => self.atomic(instruction)?,
            Opcode::Cp | Opcode::Mbarrier => self.asynchronous(instruction)?,
            Opcode::Isspacep
            | Opcode::Mapa
            | Opcode::Getctarank
            | Opcode::Prefetch
            | Opcode::Prefetchu
            | Opcode::Applypriority
            | Opcode::Discard
            | Opcode::Createpolicy => self.addresses(instruction)?,
            Opcode::Bra
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
            Opcode::Tex | Opcode::Tld4 | Opcode::Txq | Opcode::Suq | Opcode::Suld | Opcode::Sust | Opcode::Sured => {
                self.texture(instruction)?
            }
            _ => self.arithmetic(instruction)?,
        };
        if !known {
            return Err(refused_error);
        }
        let carries =
            matches!(instruction.opcode, Opcode::Addc | Opcode::Subc | Opcode::Madc) || instruction.has(Modifier::Cc);
        let pinned = matches!(instruction.opcode, Opcode::Activemask | Opcode::Mbarrier)
            || [Modifier::Acquire, Modifier::Release, Modifier::AcquireRelease, Modifier::SequentiallyConsistent]
                .into_iter()
                .any(|order| instruction.has(order));
        for pending in &mut self.pending[before..] {
            pending.carries |= carries;
            pending.pinned |= pinned;
        }
        if let Some(guard) = instruction.guard {
            for pending in self.pending[before..].iter_mut().filter(|pending| !pending.has_own_guard) {
                pending.guard = Some(guard.register.0);
                pending.instruction.guard_flip = if guard.negated { u32::MAX } else { 0 };
                match &mut pending.flow {
                    Flow::Branch { conditional, .. } | Flow::Exit { conditional } => *conditional = true,
                    Flow::Next => {}
                }
            }
        }
        Ok(())
    }
}

/// The items in another order: `order` names the former place of each.
fn in_order<T>(items: Vec<T>, order: &[u32]) -> Vec<T> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.iter().filter_map(|&former| items[former as usize].take()).collect()
}

impl Pending {
    /// What the scheduler needs to know beyond registers.
    fn node(&self) -> Node {
        let Instruction { kind, memory, .. } = &self.instruction;
        let is_volatile = memory.cache == CacheOperator::Volatile;
        let access = |writes| Access { spaces: spaces(memory.space), writes: writes || is_volatile };
        let (_, latency, _, passes) = self.cost;
        let (order, access) = match kind {
            Kind::Lanes => (Order::Free, None),
            Kind::Load if is_volatile => (Order::Chained, Some(access(true))),
            Kind::Load => (Order::Free, Some(access(false))),
            Kind::Store | Kind::Atomic | Kind::Copy => (Order::Chained, Some(access(true))),
            Kind::Image(form) if form.writes() => (Order::Chained, Some(access(true))),
            Kind::Image(_) => (Order::Free, Some(access(false))),
            // Matrix instructions exchange registers alone, and the lanes that meet there are those of the same instruction.
            Kind::Collective if !self.list.destinations.is_empty() => (Order::Free, None),
            Kind::Branch
            | Kind::Exit
            | Kind::Counter
            | Kind::Barrier(_)
            | Kind::Fence
            | Kind::Collective
            | Kind::WarpBarrier
            | Kind::Sleep
            | Kind::CopyCommit
            | Kind::CopyWait
            | Kind::CopyArrive
            | Kind::BarrierTest
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
        let registers = |slots: &[Slot]| -> Vec<u32> {
            slots
                .iter()
                .filter_map(|slot| if let Slot::Register(register) = slot { Some(*register) } else { None })
                .collect()
        };
        let mut reads = registers(&self.sources);
        reads.extend(registers(&self.list.sources));
        reads.extend(registers(&self.predicate_sources));
        reads.extend(self.guard);
        let mut writes = registers(&self.destinations);
        writes.extend(registers(&self.list.destinations));
        writes.extend(registers(&self.predicate_destinations));
        Uses { reads, writes, guarded: self.guard.is_some() }
    }
}

/// The scoreboard entries of one instruction, each once.
#[derive(Default)]
struct Scoreboard {
    reads: SmallVec<[u16; 12]>,
    writes: SmallVec<[u16; 12]>,
}

impl Scoreboard {
    fn read(&mut self, index: u16) {
        if !self.reads.contains(&index) {
            self.reads.push(index);
        }
    }

    fn write(&mut self, index: u16) {
        if !self.writes.contains(&index) {
            self.writes.push(index);
        }
    }

    /// Puts the first entries into the instruction's own table and the others into the program's.
    fn dependencies(self, further: &mut Vec<u16>) -> Dependencies {
        let mut dependencies = Dependencies { further: further.len() as u32, ..Dependencies::default() };
        let mut divide = |entries: &[u16], own: &mut [u16]| {
            let count = entries.len().min(own.len());
            own[..count].copy_from_slice(&entries[..count]);
            further.extend(&entries[count..]);
            (count as u8, (entries.len() - count) as u8)
        };
        (dependencies.read_count, dependencies.further_read_count) = divide(&self.reads, &mut dependencies.reads);
        (dependencies.write_count, dependencies.further_write_count) = divide(&self.writes, &mut dependencies.writes);
        dependencies
    }
}

/// The parameter slots of a kernel: each at a multiple of its alignment.
pub(crate) fn parameter_slots(function: &ast::Function) -> (Vec<ParameterSlot>, u32) {
    let mut offset = 0u32;
    let slots = function
        .parameters
        .iter()
        .map(|parameter| {
            let bytes = u32::try_from(parameter.bytes().unwrap_or(0)).unwrap_or(u32::MAX);
            offset = offset.next_multiple_of(parameter.alignment.max(1));
            let slot = ParameterSlot { offset, bytes };
            offset = offset.saturating_add(bytes);
            slot
        })
        .collect();
    (slots, offset)
}
