//! The choice of the next instruction: the earliest that can start, of these the one with the longest path behind it.

use super::Node;
use super::dependences::Dependences;
use super::region::{Pressure, Region, Register};

/// An instruction on the way through an order.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// The cycle from which on its operands are ready.
    start: u32,
    /// By how many words it changes what is live; known from when it is ready.
    change: i32,
    /// Instructions that it waits for.
    waits: u32,
    /// Less for what goes first among those that can start in the same cycle: the longest path, then the order of the text.
    rank: u64,
}

/// Puts one region after the other into an order. The lists are used again for the next region: their memory is kept.
#[derive(Debug, Default)]
pub(super) struct ListScheduler {
    dependences: Dependences,
    registers: Vec<Register>,
    /// By place in the region.
    candidates: Vec<Candidate>,
    /// The places of the instructions that wait for no other, in no order.
    ready: Vec<u32>,
    found: Vec<u32>,
}

impl ListScheduler {
    /// Orders a region of these nodes with at most `most` words live, or leaves it as it is where that is not found.
    pub fn schedule(&mut self, region: &Region, nodes: &[Node], most: i32, order: &mut [u32]) {
        if region.len() < 3 {
            return;
        }
        self.dependences.find(region, nodes);
        let least = region.pressure.min(most);
        let mut limits = [most, (most + least) / 2, least].into_iter();
        let mut failed = None;
        // The same limit fails in the same way.
        if limits.any(|limit| failed.replace(limit) != Some(limit) && self.order(region, limit)) {
            for (place, former) in order.iter_mut().zip(&self.found) {
                *place = region.start + former;
            }
        }
    }

    /// Issues instruction after instruction of a machine that issues one a cycle; false where more than `most` words would be live.
    fn order(&mut self, region: &Region, most: i32) -> bool {
        let ListScheduler { dependences, registers, candidates, ready, found } = self;
        let mut pressure = Pressure::new(region, registers);
        candidates.clear();
        ready.clear();
        found.clear();
        for (vertex, place) in dependences.vertices.iter().zip(0..) {
            let rank = u64::from(!vertex.priority) << 32 | u64::from(place);
            candidates.push(Candidate { start: 0, change: 0, waits: vertex.predecessors, rank });
            if vertex.predecessors == 0 {
                ready.push(place);
                candidates[place as usize].change = pressure.change(region.operands_of(place as usize));
            }
        }
        let mut cycle = 0;
        while !ready.is_empty() {
            let chosen = choose(ready, candidates, cycle, (most - pressure.live).max(0));
            let place = ready.swap_remove(chosen);
            let start = candidates[place as usize].start.max(cycle);
            cycle = start + 1;
            pressure.issue(region.operands_of(place as usize), place, |last, words| {
                candidates[last as usize].change -= words;
            });
            if pressure.live > most {
                return false;
            }
            found.push(place);
            for edge in dependences.edges_from(&dependences.vertices[place as usize]) {
                let candidate = &mut candidates[edge.to as usize];
                candidate.start = candidate.start.max(start + edge.latency);
                candidate.waits -= 1;
                if candidate.waits == 0 {
                    // What it changes is worked out once. From now on, it is affected only by becoming a register's last user: a
                    // register that holds no value yet is first written, and all others that name it wait for that.
                    candidate.change = pressure.change(region.operands_of(edge.to as usize));
                    ready.push(edge.to);
                }
            }
        }
        true
    }
}

/// The place in `ready` of the instruction to issue: the earliest that can start, then the lowest rank, of those that take no more than
/// `room` words. Where there is none, the first in the order of the text.
fn choose(ready: &[u32], candidates: &[Candidate], cycle: u32, room: i32) -> usize {
    let mut best = None;
    let mut least = (u32::MAX, u64::MAX);
    for (index, place) in ready.iter().enumerate() {
        let candidate = &candidates[*place as usize];
        let key = (candidate.start.max(cycle), candidate.rank);
        if candidate.change <= room && key < least {
            (best, least) = (Some(index), key);
        }
    }
    let first_of_text = || (0..ready.len()).min_by_key(|index| ready[*index]).unwrap_or(0);
    best.unwrap_or_else(first_of_text)
}
