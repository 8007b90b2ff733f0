//! The order of instructions inside basic blocks: a list scheduler, as the GPU's own assembler has one.
//!
//! PTX is not scheduled: a compiler emits each load right before its use, and an in-order machine would wait for every one. The
//! scheduler moves independent instructions, loads first of all, into these gaps. Blocks begin and end where they did, and nothing
//! moves across pinned instructions: branches, barriers, fences, reads of clocks, exchanges between lanes. The latencies are a
//! heuristic of this pass and no timing: what an instruction takes is the topology's to say.

use crate::control_flow::Graph;
use crate::execution::Space;
use crate::liveness::{LiveSet, liveness, words_of};
use crate::liveness::{Uses, Width};
use crate::program::LatencyClass;
use std::cmp::Reverse;

/// Registers that a region may take beyond those that it had in the order of the text: enough for some 16 loads in flight.
const EXTRA_REGISTERS: i64 = 16;
/// Registers beyond which no region grows.
const MOST_REGISTERS: i64 = 96;
/// Registers of a thread up to which an SM holds all its warps (64 Ki registers, 2048 threads), less the 4 of the calling convention.
const FULL_OCCUPANCY_REGISTERS: i64 = 28;

/// Instructions that are ordered together at most: the time that this takes grows with the square.
const LONGEST_REGION: u32 = 1024;

/// How freely an instruction moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As its operands and its memory access allow.
    Free,
    /// And not across another of its kind: stores, atomics, volatile accesses.
    Chained,
    /// It stays, and no instruction moves across it.
    Pinned,
}

/// What an instruction accesses in memory that can change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Spaces that it may reach, a bit each; see [`spaces`].
    pub spaces: u8,
    /// Whether accesses of the same space may not pass it.
    pub writes: bool,
}

/// An instruction as the scheduler sees it, beyond its registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub order: Order,
    pub access: Option<Access>,
    /// Whether it reads or writes the carry flag.
    pub carries: bool,
    /// Cycles that its result is expected to take.
    pub latency: u32,
}

/// The spaces that an access may reach: all where the address is generic, none where the memory never changes.
pub(crate) fn spaces(space: Option<Space>) -> u8 {
    match space {
        Some(Space::Global) => 1,
        Some(Space::Shared) => 2,
        Some(Space::Local) => 4,
        Some(Space::Constant | Space::Parameter) => 0,
        None => 7,
    }
}

const SPACES: usize = 3;

/// Cycles that a load is expected to take: shared memory as measured on V100 (27), device memory about an L2 hit.
pub(crate) fn memory_latency(space: Option<Space>) -> u32 {
    match space {
        Some(Space::Shared) => 27,
        Some(Space::Constant | Space::Parameter) => 8,
        Some(Space::Global | Space::Local) | None => 200,
    }
}

/// Cycles that one pass of a class is expected to take.
pub(crate) fn expected_latency(class: LatencyClass) -> u32 {
    match class {
        LatencyClass::Special | LatencyClass::Conversion => 20,
        LatencyClass::Double => 8,
        LatencyClass::Zero => 0,
        LatencyClass::Variable | LatencyClass::Branch => 1,
        _ => 4,
    }
}

/// A new order: the former place of the instruction at each place.
pub(crate) fn schedule(graph: &Graph, uses: &[Uses], nodes: &[Node], widths: &[Width]) -> Vec<u32> {
    let liveness = liveness(graph, uses, widths.len());
    let mut regions = Vec::new();
    let mut live = LiveSet::new(widths);
    let mut numbers = vec![0; widths.len()];
    for block in 0..graph.len() {
        live.clear();
        liveness.live_out(block).for_each(|register| live.insert(register));
        let first = graph.starts[block];
        let mut end = graph.starts[block + 1];
        while end > first {
            let is_pinned = |pc: u32| nodes[pc as usize].order == Order::Pinned;
            if is_pinned(end - 1) {
                end -= 1;
                live.step_back(&uses[end as usize]);
                continue;
            }
            let mut start = end - 1;
            while start > first && end - start < LONGEST_REGION && !is_pinned(start - 1) {
                start -= 1;
            }
            regions.push(Region::new(start, end, uses, &mut live, &mut numbers));
            end = start;
        }
    }
    let pressure = regions.iter().map(|region| region.pressure).max().unwrap_or(0);
    // Registers are given out eight at a time: what is left of the last eight costs nothing.
    let spare = ((pressure + 4 + 7) / 8 * 8 - 4).max(FULL_OCCUPANCY_REGISTERS);
    let mut order: Vec<u32> = (0..uses.len() as u32).collect();
    for region in &regions {
        let most = region.pressure.max(spare).max((region.pressure + EXTRA_REGISTERS).min(MOST_REGISTERS));
        region.schedule(most, uses, nodes, &mut numbers, &mut order);
    }
    order
}

/// A register in a region.
#[derive(Clone, Copy, Debug)]
struct Register {
    words: i64,
    /// Holds a value.
    is_live: bool,
    /// Its value is needed after the region.
    stays: bool,
    /// Instructions to come that read or write it, an operand each.
    uses: u32,
}

/// How often an instruction names a register.
#[derive(Clone, Copy, Debug)]
struct Operand {
    /// The register's number in its region.
    number: u32,
    count: u32,
}

/// Instructions between pinned ones.
struct Region {
    start: u32,
    end: u32,
    /// The registers that the instructions name: each has its place in this list as its number.
    names: Vec<u32>,
    /// As they are before the first instruction.
    registers: Vec<Register>,
    /// The operands of all instructions, in the order of the text, each register once an instruction.
    operands: Vec<Operand>,
    /// Where the operands of each instruction begin.
    first_operands: Vec<u32>,
    /// Words that are live before the first instruction.
    live: i64,
    /// Most words that are live in the order of the text.
    pressure: i64,
}

/// The words that are live while a region is put into an order.
struct Pressure<'r> {
    region: &'r Region,
    registers: Vec<Register>,
    live: i64,
    most: i64,
}

impl<'r> Pressure<'r> {
    fn new(region: &'r Region) -> Self {
        Pressure { region, registers: region.registers.clone(), live: region.live, most: region.live }
    }

    /// By how many words an instruction changes what is live.
    fn change(&self, index: usize) -> i64 {
        let mut change = 0;
        for operand in self.region.operands_of(index) {
            let register = &self.registers[operand.number as usize];
            let is_live = register.stays || register.uses > operand.count;
            change += (i64::from(is_live) - i64::from(register.is_live)) * register.words;
        }
        change
    }

    fn issue(&mut self, index: usize) {
        self.live += self.change(index);
        self.most = self.most.max(self.live);
        for operand in self.region.operands_of(index) {
            let register = &mut self.registers[operand.number as usize];
            register.uses -= operand.count;
            register.is_live = register.stays || register.uses > 0;
        }
    }
}

/// An instruction of a region, and what waits for it.
#[derive(Clone, Debug, Default)]
struct Vertex {
    /// Instructions of the region, and how many cycles after this one each may start.
    successors: Vec<(usize, u32)>,
    /// Instructions that must be issued before; those of several dependences count several times.
    predecessors: u32,
    /// Cycles from its issue to the end of the region.
    priority: u32,
}

impl Region {
    /// `live` are the registers that are live after the region, and afterwards those that are live before it. `numbers` is room for
    /// a number of each register.
    fn new(start: u32, end: u32, uses: &[Uses], live: &mut LiveSet, numbers: &mut [u32]) -> Self {
        let uses = &uses[start as usize..end as usize];
        let operands = |uses: &Uses| uses.reads.len() + uses.writes.len();
        let mut region = Region {
            start,
            end,
            names: Vec::new(),
            registers: Vec::new(),
            operands: Vec::with_capacity(uses.iter().map(operands).sum()),
            first_operands: Vec::with_capacity(uses.len() + 1),
            live: 0,
            pressure: 0,
        };
        for uses in uses {
            let first = region.operands.len();
            region.first_operands.push(first as u32);
            for &name in uses.reads.iter().chain(&uses.writes) {
                // A number of an earlier region says nothing here.
                let mut number = numbers[name as usize];
                if region.names.get(number as usize) != Some(&name) {
                    number = region.names.len() as u32;
                    numbers[name as usize] = number;
                    let words = words_of(live.width(name));
                    region.names.push(name);
                    region.registers.push(Register { words, is_live: false, stays: live.contains(name), uses: 0 });
                }
                region.registers[number as usize].uses += 1;
                match region.operands[first..].iter_mut().find(|operand| operand.number == number) {
                    Some(operand) => operand.count += 1,
                    None => region.operands.push(Operand { number, count: 1 }),
                }
            }
        }
        region.first_operands.push(region.operands.len() as u32);
        for instruction in uses.iter().rev() {
            live.step_back(instruction);
        }
        region.live = live.words();
        for (register, name) in region.registers.iter_mut().zip(&region.names) {
            register.is_live = live.contains(*name);
        }
        let mut pressure = Pressure::new(&region);
        (0..uses.len()).for_each(|index| pressure.issue(index));
        region.pressure = pressure.most;
        region
    }

    fn operands_of(&self, index: usize) -> &[Operand] {
        &self.operands[self.first_operands[index] as usize..self.first_operands[index + 1] as usize]
    }

    /// Orders the region with at most `most` words live, or leaves it as it is where that is not found.
    fn schedule(&self, most: i64, uses: &[Uses], nodes: &[Node], numbers: &mut [u32], order: &mut [u32]) {
        if self.end - self.start < 3 {
            return;
        }
        let range = self.start as usize..self.end as usize;
        let (uses, nodes) = (&uses[range.clone()], &nodes[range.clone()]);
        for (number, name) in self.names.iter().enumerate() {
            numbers[*name as usize] = number as u32;
        }
        let vertices = vertices(uses, nodes, numbers, self.names.len());
        let least = self.pressure.min(most);
        for most in [most, (most + least) / 2, least] {
            if let Some(found) = self.list_schedule(most, &vertices) {
                for (place, former) in order[range].iter_mut().zip(found) {
                    *place = self.start + former as u32;
                }
                return;
            }
        }
    }

    /// Issues instruction after instruction of a machine that issues one a cycle; `None` where more than `most` words would be live.
    fn list_schedule(&self, most: i64, vertices: &[Vertex]) -> Option<Vec<usize>> {
        let mut pressure = Pressure::new(self);
        let mut waits: Vec<u32> = vertices.iter().map(|vertex| vertex.predecessors).collect();
        let mut starts = vec![0u32; vertices.len()];
        let mut ready: Vec<usize> = (0..vertices.len()).filter(|index| waits[*index] == 0).collect();
        let mut order = Vec::with_capacity(vertices.len());
        let mut cycle = 0;
        while !ready.is_empty() {
            let fits = |index: usize| {
                let change = pressure.change(index);
                change <= 0 || pressure.live + change <= most
            };
            // The earliest that can start, then the longest path, then the order of the text. Where none fits, the order of the text.
            let place = (0..ready.len())
                .filter(|place| fits(ready[*place]))
                .min_by_key(|place| {
                    let index = ready[*place];
                    (starts[index].max(cycle), Reverse(vertices[index].priority), index)
                })
                .or_else(|| (0..ready.len()).min_by_key(|place| ready[*place]))?;
            let index = ready.swap_remove(place);
            let start = starts[index].max(cycle);
            cycle = start + 1;
            pressure.issue(index);
            if pressure.most > most {
                return None;
            }
            order.push(index);
            for &(successor, latency) in &vertices[index].successors {
                starts[successor] = starts[successor].max(start + latency);
                waits[successor] -= 1;
                if waits[successor] == 0 {
                    ready.push(successor);
                }
            }
        }
        Some(order)
    }
}

/// The last writer of something, and who read it since.
#[derive(Clone, Debug, Default)]
struct History {
    writer: Option<usize>,
    readers: Vec<usize>,
}

/// The dependences of a region's instructions, and the longest paths. `numbers` has the number, below `registers`, of each register.
fn vertices(uses: &[Uses], nodes: &[Node], numbers: &[u32], registers: usize) -> Vec<Vertex> {
    let mut vertices = vec![Vertex::default(); uses.len()];
    let mut depend = |from: usize, to: usize, latency: u32| {
        if from != to {
            vertices[from].successors.push((to, latency));
            vertices[to].predecessors += 1;
        }
    };
    let mut registers = vec![History::default(); registers];
    let mut memory: [History; SPACES] = Default::default();
    let mut chained: Option<usize> = None;
    let mut carried: Option<usize> = None;
    for (index, (uses, node)) in uses.iter().zip(nodes).enumerate() {
        for register in &uses.reads {
            let history = &mut registers[numbers[*register as usize] as usize];
            if let Some(writer) = history.writer {
                depend(writer, index, nodes[writer].latency);
            }
            history.readers.push(index);
        }
        for register in &uses.writes {
            let history = &mut registers[numbers[*register as usize] as usize];
            // A guarded write leaves the old value in some lanes: it follows the former write in any case.
            if let Some(writer) = history.writer.replace(index) {
                depend(writer, index, nodes[writer].latency.max(1));
            }
            for reader in history.readers.drain(..) {
                depend(reader, index, 0);
            }
        }
        if let Some(access) = node.access {
            for (space, history) in memory.iter_mut().enumerate() {
                if (access.spaces >> space) & 1 == 0 {
                    continue;
                }
                if let Some(writer) = history.writer {
                    depend(writer, index, 1);
                }
                if access.writes {
                    history.writer = Some(index);
                    for reader in history.readers.drain(..) {
                        depend(reader, index, 1);
                    }
                } else {
                    history.readers.push(index);
                }
            }
        }
        if node.order == Order::Chained
            && let Some(before) = chained.replace(index)
        {
            depend(before, index, 1);
        }
        if node.carries
            && let Some(before) = carried.replace(index)
        {
            depend(before, index, nodes[before].latency);
        }
    }
    for index in (0..vertices.len()).rev() {
        let longest = vertices[index].successors.iter().map(|(to, latency)| latency + vertices[*to].priority).max();
        vertices[index].priority = longest.unwrap_or(0).max(nodes[index].latency);
    }
    vertices
}

#[cfg(test)]
mod tests;
