//! The choice of the next instruction: the earliest that can start, of these the one with the longest path behind it.

use super::Node;
use super::dependences::Dependences;
use super::region::{Pressure, Region, Register};

/// An instruction on the way through an order.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    /// The cycle from which on its operands are ready.
    start: u32,
    /// By how many words it changes what is live; known from when it is ready.
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
    /// The ranks of those that start later, in no order.
    later: Vec<u32>,
    /// No instruction of `later` starts before this cycle.
    next_start: u32,
}

/// Puts one region after the other into an order. The lists are used again for the next region: their memory is kept.
#[derive(Debug, Default)]
pub(super) struct ListScheduler {
    dependences: Dependences,
    registers: Vec<Register>,
    /// By place in the region.
    candidates: Vec<Candidate>,
    /// The places by rank.
    ranked: Vec<u32>,
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
        let vertices = &self.dependences.vertices;
        self.ranked.clear();
        self.ranked.extend(0..vertices.len() as u32);
        self.ranked
            .sort_unstable_by_key(|place| u64::from(!vertices[*place as usize].priority) << 32 | u64::from(*place));
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
        for (rank, place) in ranked.iter().enumerate() {
            let place = *place as usize;
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
            let candidate_of = |rank: u32| &candidates[ranked[rank as usize] as usize];
            ready.bring(cycle, candidate_of);
            let rank = ready.take(room, candidate_of).or_else(|| ready.take_first(ranked));
            let Some(rank) = rank else { return false };
            let place = ranked[rank as usize];
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
            self.later.push(candidate.rank);
            self.next_start = self.next_start.min(candidate.start);
        }
    }

    /// Finds those that can start by now.
    fn bring<'c>(&mut self, cycle: u32, candidate_of: impl Fn(u32) -> &'c Candidate) {
        if cycle < self.next_start {
            return;
        }
        self.next_start = u32::MAX;
        let now = &mut self.now;
        let next_start = &mut self.next_start;
        self.later.retain(|&rank| {
            let start = candidate_of(rank).start;
            if start <= cycle {
                now[rank as usize / 64] |= 1 << (rank % 64);
            } else {
                *next_start = (*next_start).min(start);
            }
            start > cycle
        });
    }

    /// Takes the rank of the instruction to issue: of those that take no more than `room` words the earliest that can start, then the
    /// one of the lowest rank.
    fn take<'c>(&mut self, room: i32, candidate_of: impl Fn(u32) -> &'c Candidate) -> Option<u32> {
        for (word, bits) in self.now.iter_mut().enumerate() {
            let mut rest = *bits;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                let rank = word as u32 * 64 + bit;
                if candidate_of(rank).change <= room {
                    *bits &= !(1 << bit);
                    return Some(rank);
                }
                rest &= rest - 1;
            }
        }
        let fits = |index: &usize| candidate_of(self.later[*index]).change <= room;
        let key = |index: &usize| (candidate_of(self.later[*index]).start, self.later[*index]);
        let index = (0..self.later.len()).filter(fits).min_by_key(key)?;
        Some(self.later.swap_remove(index))
    }

    /// Takes the rank of the first instruction in the order of the text, for where none fits.
    fn take_first(&mut self, ranked: &[u32]) -> Option<u32> {
        let bits =
            self.now.iter().zip(0..).flat_map(|(bits, word)| {
                (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| word * 64 + bit)
            });
        let rank = bits.chain(self.later.iter().copied()).min_by_key(|rank| ranked[*rank as usize])?;
        self.now[rank as usize / 64] &= !(1 << (rank % 64));
        self.later.retain(|other| *other != rank);
        Some(rank)
    }
}
