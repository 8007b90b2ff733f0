//! From decoded functions to a program: registers get places, branches their meeting points, frames their sizes.

use super::{Decoded, Decoder, OperandList, Pending, Slot};
use crate::allocation::{Allocation, Places, allocate};
use crate::control_flow::{Flow, Graph};
use crate::execution::Space;
use crate::lanes::LANES;
use crate::layout::{FRAME_ALIGNMENT, Frame, Layout};
use crate::linkage::{Linkage, address_of};
use crate::liveness::{Uses, Width, liveness};
use crate::machine::code::PARAMETERS_AT;
use crate::operation::*;
use crate::program::parts::{ClusterNeeds, Resources};
use crate::program::timing::{ConstantLine, Dependencies, IssueControl, Timing};
use crate::program::{Calls, Program};
use crate::ptx::PtxErrorKind;
use crate::ptx::ast::{self, Module};
use crate::ptx::error::RawError;
use crate::ptx::source::{SourceText, Span};
use crate::register_demand::{Demand, demand, registers};
use crate::scheduling::{Node, schedule};
use crate::source_lines::{InstructionLines, PlaceId, SourceLines};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A thread's stack where functions call themselves. CUDA's default limit (cudaLimitStackSize) is 1 KiB, for frames that hold little more
/// than the values that do not fit into registers: frames of PTX hold every argument.
const STACK_BYTES: u32 = 16 << 10;

/// A function's place in the cycles of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    /// The cycle's number, or the function's own where it cannot call itself. Callees have smaller numbers than their callers.
    pub number: usize,
    /// Whether it can call itself.
    pub is_recursive: bool,
}

/// A decoded function.
struct Code {
    frame: Frame,
    /// In the order of the text.
    pending: Vec<Pending>,
    /// The place in the text of the instruction at each place of the program.
    order: Vec<u32>,
    /// Branch targets.
    tables: Vec<Vec<u32>>,
    widths: Vec<Width>,
    allocation: Allocation,
    demand: Demand,
}

/// Decodes a kernel and the functions that it can reach.
pub(super) fn program(
    linkage: &Linkage,
    kernel: u32,
    addresses: &[u64],
    schedules: bool,
) -> Result<Program, Vec<(u32, RawError)>> {
    let reachable = linkage.reachable(kernel);
    let functions: Vec<u32> = reachable.iter().map(|(number, _)| *number).collect();
    let cycles = cycles(&reachable);
    let layout = Layout::new(linkage, &functions, addresses).map_err(|error| vec![error])?;
    let (module_number, function) = linkage.function(kernel);
    let mut decoder = Decoder {
        linkage,
        functions: &functions,
        cycles: &cycles,
        current: 0,
        module_number,
        module: &linkage.modules[module_number as usize],
        function,
        layout,
        frame: Frame::default(),
        widths: Vec::new(),
        constants: Vec::new(),
        known_constants: BTreeMap::new(),
        known_rows: BTreeMap::new(),
        known_shared: BTreeMap::new(),
        known_places: BTreeMap::new(),
        upper_halves: BTreeMap::new(),
        pending: Vec::new(),
        label_tables: BTreeMap::new(),
        tables: Vec::new(),
        taken_before: None,
        uses_alloca: false,
        schedules,
    };
    let mut codes = Vec::with_capacity(functions.len());
    let mut errors = Vec::new();
    for place in 0..functions.len() {
        decoder.select(place);
        let module = decoder.module_number;
        match decoder.code() {
            Ok(code) => codes.push(code),
            Err(found) => errors.extend(found.into_iter().map(|error| (module, error))),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    decoder.select(0);
    decoder.assemble(&reachable, codes).map_err(|error| vec![(module_number, error)])
}

/// Finds the cycles of calls: Tarjan's strongly connected components.
fn cycles(reachable: &[(u32, Vec<usize>)]) -> Vec<Cycle> {
    const UNSEEN: usize = usize::MAX;
    let count = reachable.len();
    let mut found = vec![Cycle { number: 0, is_recursive: false }; count];
    let mut order = vec![UNSEEN; count];
    let mut lowest = vec![0; count];
    let mut on_stack = vec![false; count];
    let mut stack = Vec::new();
    let (mut next, mut numbers) = (0, 0);
    // All functions are reached from the kernel.
    let mut path = vec![(0, 0)];
    while let Some((place, edge)) = path.last_mut() {
        let place = *place;
        if *edge == 0 && order[place] == UNSEEN {
            (order[place], lowest[place]) = (next, next);
            next += 1;
            stack.push(place);
            on_stack[place] = true;
        }
        if let Some(&callee) = reachable[place].1.get(*edge) {
            *edge += 1;
            if order[callee] == UNSEEN {
                path.push((callee, 0));
            } else if on_stack[callee] {
                lowest[place] = lowest[place].min(order[callee]);
            }
            continue;
        }
        path.pop();
        if let Some((caller, _)) = path.last() {
            lowest[*caller] = lowest[*caller].min(lowest[place]);
        }
        if lowest[place] == order[place] {
            let first = stack.iter().rposition(|other| *other == place).unwrap_or(0);
            let is_recursive = stack.len() - first > 1 || reachable[place].1.contains(&place);
            for member in stack.drain(first..) {
                on_stack[member] = false;
                found[member] = Cycle { number: numbers, is_recursive };
            }
            numbers += 1;
        }
    }
    found
}

/// The common needs of the functions of a program.
struct Plan {
    /// Where each function's registers begin.
    bases: Vec<Places>,
    /// Registers of all.
    total: Places,
    /// Most words that are live on a path of calls, by the estimate of [`demand`].
    words: u32,
    /// Bytes of local memory of a thread.
    local_bytes: u32,
    /// Bytes of a thread's stack that frames may begin in.
    stack_bytes: u32,
    /// Size of each frame.
    frames: Vec<u32>,
}

/// Gives the functions their ranges of registers. The range of a function lies after the ranges of all its callers. Functions that can call
/// each other share a range: they save values that they need later before such calls.
fn plan(cycles: &[Cycle], callees: &[(u32, Vec<usize>)], codes: &[Code]) -> Plan {
    let alignment = codes.iter().map(|code| code.frame.alignment).max().unwrap_or(1).max(FRAME_ALIGNMENT);
    let count = cycles.iter().map(|cycle| cycle.number + 1).max().unwrap_or(0);
    let mut members = vec![Vec::new(); count];
    for (place, cycle) in cycles.iter().enumerate() {
        members[cycle.number].push(place);
    }
    let mut frames = Vec::with_capacity(codes.len());
    for (code, cycle) in codes.iter().zip(cycles) {
        // A frame holds a return address at least: that bounds recursion.
        let least = if cycle.is_recursive { alignment } else { 0 };
        frames.push(code.frame.bytes.max(least).next_multiple_of(alignment));
    }
    let mut group_bases = vec![Places::default(); count];
    let mut total = Places::default();
    for number in (0..count).rev() {
        for &place in &members[number] {
            let end = group_bases[number].plus(codes[place].allocation.count);
            total = total.max(end);
            for &callee in &callees[place].1 {
                let other = cycles[callee].number;
                if other != number {
                    group_bases[other] = group_bases[other].max(end);
                }
            }
        }
    }
    // Callees come first.
    let mut words = vec![0u32; count];
    let mut depths = vec![0u32; count];
    for number in 0..count {
        let mut own = 0;
        let mut frame = 0;
        let (mut below, mut depth) = (0, 0);
        for &place in &members[number] {
            own = own.max(codes[place].demand.words);
            frame = frame.max(frames[place]);
            depth = depth.max(codes[place].frame.outgoing);
            for &callee in &callees[place].1 {
                let other = cycles[callee].number;
                if other != number {
                    below = below.max(words[other]);
                    depth = depth.max(depths[other]);
                }
            }
        }
        words[number] = own.saturating_add(below);
        depths[number] = frame.saturating_add(depth);
    }
    let kernel = cycles[0].number;
    let is_recursive = cycles.iter().any(|cycle| cycle.is_recursive);
    let largest = codes.iter().zip(&frames).map(|(code, bytes)| bytes.saturating_add(code.frame.outgoing)).max();
    let (mut local_bytes, mut stack_bytes) = (depths[kernel], u32::MAX);
    if codes.len() == 1 {
        local_bytes = codes[0].frame.bytes;
    } else if is_recursive {
        stack_bytes = STACK_BYTES.max(local_bytes);
        local_bytes = stack_bytes.saturating_add(largest.unwrap_or(0)).next_multiple_of(alignment);
    }
    Plan {
        bases: cycles.iter().map(|cycle| group_bases[cycle.number]).collect(),
        total,
        words: words[kernel],
        local_bytes,
        stack_bytes,
        frames,
    }
}

/// Where a function's registers and instructions are in the program.
struct Place<'a> {
    base: Places,
    total: Places,
    code: &'a Code,
    first: u32,
    frame_bytes: u32,
    stack_pointer: Source,
}

impl Place<'_> {
    fn row(&self, register: u32) -> u16 {
        let place = self.code.allocation.places[register as usize] as usize;
        let row = match self.code.widths[register as usize] {
            Width::Predicate => self.base.predicates + place + usize::from(FIRST_PREDICATE),
            Width::One => self.total.first_narrow() + self.base.narrow + place,
            Width::Two => usize::from(FIRST_ROW) + 2 * (self.base.wide + place),
        };
        row as u16
    }

    /// The rows whose contents at the start the function may see. Like a place that another register had before, no other row's
    /// contents are ever read. Ascending.
    fn rows_read_first(&self) -> Vec<u16> {
        let read_first = self.code.allocation.read_first.iter();
        let rows = read_first.flat_map(|&register| match self.code.widths[register as usize] {
            Width::Predicate => 0..0,
            Width::One => self.row(register)..self.row(register) + 1,
            Width::Two => self.row(register)..self.row(register) + 2,
        });
        let mut rows: Vec<u16> = rows.collect();
        rows.sort_unstable();
        rows
    }

    fn source(&self, slot: Slot, scoreboard: &mut Scoreboard) -> Source {
        match slot {
            Slot::None => Source(SINK_ROW),
            Slot::Constant(row) => Source(row | Source::CONSTANT),
            Slot::Register(register) => {
                let row = self.row(register);
                scoreboard.read(row);
                Source(row)
            }
            Slot::Frame | Slot::FrameEnd => self.stack_pointer,
        }
    }

    fn destination(&self, slot: Slot, scoreboard: &mut Scoreboard) -> u16 {
        let Slot::Register(register) = slot else { return SINK_ROW };
        let row = self.row(register);
        scoreboard.write(row);
        if self.code.widths[register as usize] == Width::Two {
            scoreboard.write(row + 1);
        }
        row
    }
}

impl Decoder<'_> {
    /// Decodes the selected function up to its registers' places among its own.
    fn code(&mut self) -> Result<Code, Vec<RawError>> {
        self.statements()?;
        self.reduce_unread();
        self.save_registers().map_err(|error| vec![error])?;
        let flows: Vec<Flow> = self.pending.iter().map(|pending| pending.flow).collect();
        let graph = Graph::new(&flows, &self.tables);
        for (block, meeting) in graph.reconvergence().into_iter().enumerate() {
            self.pending[graph.starts[block + 1] as usize - 1].instruction.reconvergence = meeting;
        }
        let uses: Vec<Uses> = self.pending.iter().map(Pending::uses).collect();
        let liveness = liveness(&graph, &uses, self.widths.len());
        let order = if self.schedules {
            let nodes: Vec<Node> = self.pending.iter().map(Pending::node).collect();
            schedule(&graph, &liveness, &uses, &nodes, &self.widths)
        } else {
            (0..uses.len() as u32).collect()
        };
        let allocation = allocate(&graph, &liveness, &uses, &order, &self.widths);
        Ok(Code {
            frame: std::mem::take(&mut self.frame),
            pending: std::mem::take(&mut self.pending),
            order,
            tables: std::mem::take(&mut self.tables),
            widths: std::mem::take(&mut self.widths),
            allocation,
            demand: demand(self.function),
        })
    }

    /// Puts the functions one after the other.
    fn assemble(&mut self, callees: &[(u32, Vec<usize>)], codes: Vec<Code>) -> Decoded<Program> {
        let plan = plan(self.cycles, callees, &codes);
        let has_functions = codes.len() > 1;
        let rows = plan.total.rows() + usize::from(has_functions) + usize::from(self.uses_alloca);
        let predicates = plan.total.predicate_slots();
        let limit = usize::from(Source::CONSTANT);
        if rows >= limit || self.constants.len() + 1 >= limit || predicates > 255 {
            let message =
                format!("kernel {} needs {rows} registers and {predicates} predicates at once", self.function.name);
            return Err(RawError::new(PtxErrorKind::Limit, self.function.span, message));
        }
        let Slot::Constant(zero) = self.constant(0, false) else {
            return Err(RawError::new(PtxErrorKind::Limit, self.function.span, "no constant"));
        };
        let stack_pointer = if has_functions { (rows - 1) as u16 } else { SINK_ROW };
        let mut local_bytes = plan.local_bytes;
        let mut calls = Calls { stack_pointer, stack_bytes: plan.stack_bytes, ..Calls::default() };
        if self.uses_alloca {
            calls.taken = plan.total.rows() as u16;
            calls.first_taken = local_bytes.next_multiple_of(crate::program::LARGEST_ALIGNMENT);
            calls.most_taken = STACK_BYTES;
            local_bytes = calls.first_taken.saturating_add(STACK_BYTES);
        }
        let mut firsts = Vec::with_capacity(codes.len());
        let mut count = 0;
        for code in &codes {
            firsts.push(count as u32);
            count += code.pending.len();
        }
        let mut output = Output {
            calls,
            constants: std::mem::take(&mut self.constants),
            lists: BTreeMap::new(),
            further_dependencies: Vec::new(),
            rows,
            firsts: &firsts,
        };
        let mut zeroed_rows: Vec<u16> = (0..rows as u16).collect();
        let mut text = Text::of(count);
        for (index, code) in codes.iter().enumerate() {
            let number = self.functions[index];
            let places = text.begin(self.linkage, number, firsts[index]);
            if index > 0 {
                output.calls.entries.push((address_of(number), firsts[index]));
            }
            let place = Place {
                base: plan.bases[index],
                total: plan.total,
                code,
                first: firsts[index],
                frame_bytes: plan.frames[index],
                stack_pointer: if index == 0 { Source(zero | Source::CONSTANT) } else { Source(stack_pointer) },
            };
            if !has_functions && !self.uses_alloca {
                zeroed_rows = place.rows_read_first();
            }
            text.append(&place, &places, &mut output);
        }
        output.calls.entries.sort_unstable();
        if output.constants.len() >= limit {
            let message = format!("kernel {} has more than {limit} constants and operand lists", self.function.name);
            return Err(RawError::new(PtxErrorKind::Limit, self.function.span, message));
        }
        let performance = &self.function.performance;
        let calls = codes.iter().any(|code| code.demand.calls);
        let resources = Resources {
            registers_per_thread: registers(plan.words, calls, performance),
            shared_bytes: self.layout.shared_bytes,
            reserved_shared_bytes: 0,
            local_bytes,
            maximum_threads: performance.maximum_threads.map(|sizes| sizes.iter().product()),
            required_block: performance.required_threads,
            clusters: ClusterNeeds {
                required: performance.required_cluster,
                is_explicit: performance.explicit_cluster,
                maximum_size: performance.maximum_cluster_rank,
            },
        };
        Ok(Program {
            name: (&*self.function.name).into(),
            sources: text.sources,
            resources,
            parameters: self.layout.parameters.clone(),
            parameter_bytes: self.layout.parameter_bytes,
            timings: text.timings,
            spans: text.spans,
            functions: text.functions,
            source_lines: (!text.source_lines.by_pc.is_empty()).then(|| Arc::new(text.source_lines)),
            instructions: text.instructions,
            shared: Arc::default(),
            calls: output.calls,
            constants: output.constants.into(),
            shared_addresses: self.known_shared.iter().map(|(&(_, wide), &row)| (row, wide)).collect(),
            machine: None,
            further_dependencies: output.further_dependencies,
            register_rows: rows as u16,
            zeroed_rows,
            predicate_slots: predicates as u16,
        })
    }
}

/// The instructions of the functions so far, one function after the other.
struct Text {
    instructions: Vec<Instruction>,
    timings: Vec<Timing>,
    spans: Vec<Span>,
    /// Where the functions of each module begin, and its source.
    sources: Vec<(u32, SourceText)>,
    /// The module of the last function.
    module: Option<u32>,
    /// Where each function begins, and its name.
    functions: Vec<(u32, Box<str>)>,
    source_lines: InstructionLines,
}

impl Text {
    /// Nothing yet, with room for so many instructions.
    fn of(count: usize) -> Text {
        Text {
            instructions: Vec::with_capacity(count),
            timings: Vec::with_capacity(count),
            spans: Vec::with_capacity(count),
            sources: Vec::new(),
            module: None,
            functions: Vec::new(),
            source_lines: InstructionLines::default(),
        }
    }

    /// Begins the function `number` at the instruction `first`; gives the places in source files that its instructions are of.
    fn begin(&mut self, linkage: &Linkage, number: u32, first: u32) -> Vec<PlaceId> {
        let (number, function) = linkage.function(number);
        let module = &linkage.modules[number as usize];
        self.functions.push((first, function.name.clone()));
        if self.module.replace(number) != Some(number) {
            self.sources.push((first, module.source.clone()));
        }
        places(module, function, &mut self.source_lines.lines)
    }

    /// Adds the instructions of a function.
    fn append(&mut self, place: &Place, places: &[PlaceId], output: &mut Output) {
        for place_in_text in &place.code.order {
            let pending = &place.code.pending[*place_in_text as usize];
            let (instruction, dependencies) = output.placed(pending, place);
            let (pipe, latency, count, passes) = pending.cost;
            let is_plain = instruction.kind == Kind::Lanes;
            let control = IssueControl { constant: parameter_line(&instruction), ..IssueControl::default() };
            self.timings.push(Timing { pipe, latency, count, passes, is_plain, control, dependencies });
            self.spans.push(pending.span);
            self.source_lines.set(self.instructions.len(), pending.location.map(|location| places[location.index()]));
            self.instructions.push(instruction);
        }
    }
}

/// The places in source files that `.loc` of a function names.
fn places(module: &Module, function: &ast::Function, lines: &mut SourceLines) -> Vec<PlaceId> {
    let mut places: Vec<PlaceId> = Vec::with_capacity(function.locations.len());
    for location in &function.locations {
        let file = module.files.iter().find(|(number, _)| *number == location.file);
        let file =
            file.map_or_else(|| Cow::Owned(format!("file {}", location.file)), |(_, name)| Cow::Borrowed(&**name));
        let inlined = location.inlined.as_ref().map(|inlining| {
            let name = module.debug_string(&inlining.name).unwrap_or(&inlining.name.0);
            (name, places[inlining.call.index()])
        });
        places.push(lines.add(&file, location.line, inlined));
    }
    places
}

/// The output that the instructions of all functions share.
struct Output<'a> {
    calls: Calls,
    constants: Vec<Row>,
    /// The rows where the operand lists are that have been met.
    lists: BTreeMap<Vec<u32>, u16>,
    further_dependencies: Vec<u16>,
    rows: usize,
    /// First instruction of each function.
    firsts: &'a [u32],
}

impl Output<'_> {
    /// An instruction with its operands in their places.
    fn placed(&mut self, pending: &Pending, place: &Place) -> (Instruction, Dependencies) {
        let mut instruction = pending.instruction;
        let mut scoreboard = Scoreboard::default();
        let predicate_base = self.rows as u16;
        // An operand that is not there stays the sink.
        for (source, slot) in instruction.sources.iter_mut().zip(&pending.sources) {
            if *slot != Slot::None {
                *source = place.source(*slot, &mut scoreboard);
            }
            if *slot == Slot::FrameEnd {
                instruction.offset += i64::from(place.frame_bytes);
            }
        }
        for (destination, slot) in instruction.destinations.iter_mut().zip(&pending.destinations) {
            if *slot != Slot::None {
                *destination = place.destination(*slot, &mut scoreboard);
            }
        }
        let OperandList { destinations, sources } = &pending.list;
        if !destinations.is_empty() || !sources.is_empty() {
            let mut list: Vec<u32> =
                destinations.iter().map(|slot| u32::from(place.destination(*slot, &mut scoreboard))).collect();
            list.extend(sources.iter().map(|slot| u32::from(place.source(*slot, &mut scoreboard).0)));
            let constants = &mut self.constants;
            instruction.operand_list = *self.lists.entry(list).or_insert_with_key(|list| {
                let row = constants.len();
                constants.extend(list.chunks(LANES).map(|part| {
                    let mut row = Row::ZERO;
                    row.0[..part.len()].copy_from_slice(part);
                    row
                }));
                row.min(usize::from(Source::CONSTANT)) as u16
            });
        }
        for index in 0..2 {
            if let Slot::Register(register) = pending.predicate_destinations[index] {
                let slot = place.row(register);
                instruction.predicate_destinations[index] = slot as u8;
                scoreboard.write(predicate_base + slot);
            }
            if let Slot::Register(register) = pending.predicate_sources[index] {
                let slot = place.row(register);
                instruction.predicate_sources[index] = slot as u8;
                scoreboard.read(predicate_base + slot);
            }
        }
        if let Some(guard) = pending.guard {
            let slot = place.row(guard);
            instruction.guard = slot as u8;
            scoreboard.read(predicate_base + slot);
        }
        if instruction.reconvergence != NEVER {
            instruction.reconvergence += place.first;
        }
        self.direct(&mut instruction, pending, place);
        let always_ready = predicate_base + u16::from(TRUE_PREDICATE);
        (instruction, scoreboard.dependencies(always_ready, &mut self.further_dependencies))
    }

    /// Gives branches and calls their targets.
    fn direct(&mut self, instruction: &mut Instruction, pending: &Pending, place: &Place) {
        match instruction.kind {
            Kind::Branch => instruction.target += place.first,
            Kind::BranchTable => {
                let tables = &mut self.calls.tables;
                instruction.immediate = tables.len() as u32;
                if let Flow::Table { table, .. } = pending.flow {
                    tables.extend(place.code.tables[table as usize].iter().map(|target| target + place.first));
                }
                instruction.offset = tables.len() as i64 - i64::from(instruction.immediate);
            }
            Kind::Call => {
                instruction.immediate = place.frame_bytes;
                instruction.target = pending.callees.first().map_or(0, |callee| self.firsts[*callee]);
            }
            Kind::CallThrough => instruction.immediate = place.frame_bytes,
            _ => {}
        }
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

    /// Puts the first entries into the instruction's own table and the others into the program's. `always_ready` is never written.
    fn dependencies(mut self, always_ready: u16, further: &mut Vec<u16>) -> Dependencies {
        let mut dependencies = Dependencies {
            waits: [always_ready; _],
            // Nothing waits for an instruction without a destination.
            writes: [SINK_ROW; _],
            further: further.len() as u32,
            ..Dependencies::default()
        };
        for index in 0..self.writes.len() {
            self.read(self.writes[index]);
        }
        // To look at an entry twice takes less than to look at another one.
        if let Some(&first) = self.reads.first() {
            dependencies.waits.fill(first);
        }
        let mut divide = |entries: &[u16], own: &mut [u16]| {
            let count = entries.len().min(own.len());
            own[..count].copy_from_slice(&entries[..count]);
            further.extend(&entries[count..]);
            (entries.len() - count) as u8
        };
        dependencies.further_wait_count = divide(&self.reads, &mut dependencies.waits);
        dependencies.further_write_count = divide(&self.writes, &mut dependencies.writes);
        dependencies
    }
}

/// The line of constant bank 0 that holds a parameter in the GPU's own code, for an instruction that loads one.
fn parameter_line(instruction: &Instruction) -> ConstantLine {
    let is_parameter = instruction.kind == Kind::Lanes && instruction.memory.space == Some(Space::Parameter);
    if is_parameter { ConstantLine::of(0, PARAMETERS_AT + instruction.offset as u32) } else { ConstantLine::default() }
}
