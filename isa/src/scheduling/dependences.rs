//! Which instructions of a region wait for which, and the longest paths.

use super::node::{Node, Order, SPACES};
use super::region::Region;

/// Ends a chain of a list, and stands for no instruction.
const NONE: u32 = u32::MAX;

/// An instruction of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vertex {
    /// The first of the edges to instructions that wait for it.
    first_edge: u32,
    /// Instructions that must be issued before; those of several dependences count several times.
    pub predecessors: u32,
    /// Cycles from its issue to the end of the region.
    pub priority: u32,
}

/// Something waits for an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The place in the region of the instruction that waits.
    pub to: u32,
    /// How many cycles after the instruction it may start.
    pub latency: u32,
    /// The next edge of the same instruction.
    next: u32,
}

/// The last writer of something, and who read it since.
#[derive(Clone, Copy, Debug)]
struct History {
    writer: u32,
    /// The first in a chain of readers.
    first_reader: u32,
}

const NO_HISTORY: History = History { writer: NONE, first_reader: NONE };

#[derive(Clone, Copy, Debug)]
struct Reader {
    place: u32,
    next: u32,
}

/// The dependences of a region. The lists are used again for the next region: their memory is kept.
#[derive(Debug, Default)]
pub(super) struct Dependences {
    pub vertices: Vec<Vertex>,
    edges: Vec<Edge>,
    registers: Vec<History>,
    readers: Vec<Reader>,
}

impl Dependences {
    /// The edges from an instruction.
    pub fn edges_from(&self, vertex: &Vertex) -> impl Iterator<Item = &Edge> {
        let mut next = vertex.first_edge;
        std::iter::from_fn(move || {
            let edge = self.edges.get(next as usize)?;
            next = edge.next;
            Some(edge)
        })
    }

    fn depend(&mut self, from: u32, to: u32, latency: u32) {
        if from != to {
            let vertex = &mut self.vertices[from as usize];
            self.edges.push(Edge { to, latency, next: vertex.first_edge });
            vertex.first_edge = (self.edges.len() - 1) as u32;
            self.vertices[to as usize].predecessors += 1;
        }
    }

    /// The instruction at `place` reads something.
    fn read(&mut self, history: &mut History, place: u32) {
        self.readers.push(Reader { place, next: history.first_reader });
        history.first_reader = (self.readers.len() - 1) as u32;
    }

    /// The instruction at `place` writes something: it waits for all that read it since the last write.
    fn write(&mut self, history: &mut History, place: u32, latency: u32) {
        while let Some(&Reader { place: reader, next }) = self.readers.get(history.first_reader as usize) {
            self.depend(reader, place, latency);
            history.first_reader = next;
        }
        history.writer = place;
    }

    /// Finds the dependences and the longest paths of a region with these nodes.
    pub fn find(&mut self, region: &Region, nodes: &[Node]) {
        self.vertices.clear();
        self.vertices.resize(nodes.len(), Vertex { first_edge: NONE, predecessors: 0, priority: 0 });
        // Few operands make more than two edges.
        self.edges.clear();
        self.edges.reserve(2 * region.operand_count());
        self.readers.clear();
        self.readers.reserve(region.operand_count());
        self.registers.clear();
        self.registers.resize(region.register_count(), NO_HISTORY);
        let mut memory = [NO_HISTORY; SPACES];
        let (mut chained, mut carried) = (None, None);
        for (index, node) in nodes.iter().enumerate() {
            let place = index as u32;
            for operand in region.operands_of(index) {
                let mut history = self.registers[operand.number as usize];
                let writer = history.writer;
                if operand.is_read {
                    if writer != NONE {
                        self.depend(writer, place, nodes[writer as usize].latency);
                    }
                    self.read(&mut history, place);
                }
                if operand.is_written {
                    // A guarded write leaves the old value in some lanes: it follows the former write in any case.
                    if writer != NONE {
                        self.depend(writer, place, nodes[writer as usize].latency.max(1));
                    }
                    self.write(&mut history, place, 0);
                }
                self.registers[operand.number as usize] = history;
            }
            if let Some(access) = node.access {
                for (space, history) in memory.iter_mut().enumerate() {
                    if (access.spaces >> space) & 1 == 0 {
                        continue;
                    }
                    if history.writer != NONE {
                        self.depend(history.writer, place, 1);
                    }
                    if access.writes {
                        self.write(history, place, 1);
                    } else {
                        self.read(history, place);
                    }
                }
            }
            if node.order == Order::Chained
                && let Some(before) = chained.replace(place)
            {
                self.depend(before, place, 1);
            }
            if node.carries
                && let Some(before) = carried.replace(place)
            {
                self.depend(before, place, nodes[before as usize].latency);
            }
        }
        for index in (0..nodes.len()).rev() {
            let waiting = self.edges_from(&self.vertices[index]);
            let longest = waiting.map(|edge| edge.latency + self.vertices[edge.to as usize].priority).max();
            self.vertices[index].priority = longest.unwrap_or(0).max(nodes[index].latency);
        }
    }
}
