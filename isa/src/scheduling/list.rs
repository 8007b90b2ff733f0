//! The choice of the next instruction: the earliest that can start, and among several such, the one with the longest path behind it.

use super::dependences::Dependences;
use super::node::Node;
use super::region::{Pressure, Region, Register};

/// An instruction on the way through an order.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    /// The cycle from which on its operands are ready.
    start: u32,
    /// The change of live words by it; known from when it is ready.
    change: i32,
    /// Instructions that it waits for.
    waits: u32,
    /// Its place among all of the region by the longest path, then the order of the text.
    rank: u32,
}

/// The instructions that wait for no other.
#[derive(Debug, Default)]
struct Ready {
    /// Those that can start by now: a bit for each rank.
    now: Vec<u64>,
    /// Those that start later, each with its cycle and rank, in no order.
    later: Vec<(u32, u32)>,
    /// No instruction of `later` starts before this cycle.
    next_start: u32,
}

/// Puts one region after the other into an order. The lists are used again for the next region: their memory is kept.
#[derive(Debug, Default)]
pub(super) struct ListScheduler {
    dependences: Dependences,
    registers: Vec<Register>,
    /// Candidates, by place in the region.
    candidates: Vec<Candidate>,
    /// The places by rank, each with the inverse of its priority in the upper half.
    ranked: Vec<u64>,
    ready: Ready,
    found: Vec<u32>,
}

impl ListScheduler {
    /// Orders a region of these nodes with at most `most` words live, or leaves it as it is where that is not found.
    pub fn schedule(&mut self, region: &Region, nodes: &[Node], most: i32, order: &mut [u32]) {
        if region.len() < 3 {
            return;
        }
        self.dependences.find(region, nodes);
        let vertices = self.dependences.vertices.iter().zip(0..);
        self.ranked.clear();
        self.ranked.extend(vertices.map(|(vertex, place)| u64::from(!vertex.priority) << 32 | place));
        self.ranked.sort_unstable();
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
        let ListScheduler { dependences, registers, candidates, ranked, ready, found } = self;
        let mut pressure = Pressure::new(region, registers);
        found.clear();
        ready.clear(ranked.len());
        candidates.clear();
        candidates.resize(ranked.len(), Candidate::default());
        for (rank, key) in ranked.iter().enumerate() {
            let place = place_of(*key) as usize;
            let waits = dependences.vertices[place].predecessors;
            let change = if waits == 0 { pressure.change(region.operands_of(place)) } else { 0 };
            candidates[place] = Candidate { start: 0, change, waits, rank: rank as u32 };
            if waits == 0 {
                ready.add(&candidates[place], 0);
            }
        }
        let mut cycle = 0;
        while found.len() < ranked.len() {
            let room = (most - pressure.live).max(0);
            ready.bring(cycle);
            let fits = |rank: u32| candidates[place_of(ranked[rank as usize]) as usize].change <= room;
            let rank = ready.take(fits).or_else(|| ready.take_first(ranked));
            let Some(rank) = rank else { return false };
            let place = place_of(ranked[rank as usize]);
            debug_assert_eq!(candidates[place as usize].change, pressure.change(region.operands_of(place as usize)));
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
                    ready.add(candidate, cycle);
                }
            }
        }
        true
    }
}

impl Ready {
    fn clear(&mut self, instructions: usize) {
        self.now.clear();
        self.now.resize(instructions.div_ceil(64), 0);
        self.later.clear();
        self.next_start = u32::MAX;
    }

    fn add(&mut self, candidate: &Candidate, cycle: u32) {
        if candidate.start <= cycle {
            self.now[candidate.rank as usize / 64] |= 1 << (candidate.rank % 64);
        } else {
            self.later.push((candidate.start, candidate.rank));
            self.next_start = self.next_start.min(candidate.start);
        }
    }

    /// Finds those that can start by now.
    fn bring(&mut self, cycle: u32) {
        if cycle < self.next_start {
            return;
        }
        self.next_start = u32::MAX;
        let mut index = 0;
        while let Some(&(start, rank)) = self.later.get(index) {
            if start <= cycle {
                self.now[rank as usize / 64] |= 1 << (rank % 64);
                self.later.swap_remove(index);
            } else {
                self.next_start = self.next_start.min(start);
                index += 1;
            }
        }
    }

    /// Takes the rank of the instruction to issue: among the instructions that fit, the earliest that can start, then the one of the lowest
    /// rank.
    fn take(&mut self, fits: impl Fn(u32) -> bool) -> Option<u32> {
        for (word, bits) in self.now.iter_mut().enumerate() {
            let mut rest = *bits;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                let rank = word as u32 * 64 + bit;
                if fits(rank) {
                    *bits &= !(1 << bit);
                    return Some(rank);
                }
                rest &= rest - 1;
            }
        }
        let fitting = (0..self.later.len()).filter(|index| fits(self.later[*index].1));
        let index = fitting.min_by_key(|index| self.later[*index])?;
        Some(self.later.swap_remove(index).1)
    }

    /// Takes the rank of the first instruction in the order of the text, for where none fits.
    fn take_first(&mut self, ranked: &[u64]) -> Option<u32> {
        let bits =
            self.now.iter().zip(0..).flat_map(|(bits, word)| {
                (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
            });
        let later = self.later.iter().map(|(_, rank)| *rank);
        let rank = bits.chain(later).min_by_key(|rank| place_of(ranked[*rank as usize]))?;
        self.now[rank as usize / 64] &= !(1 << (rank % 64));
        self.later.retain(|(_, other)| *other != rank);
        Some(rank)
    }
}

/// The place in its region of a ranked instruction.
const fn place_of(key: u64) -> u32 {
    key as u32
}
