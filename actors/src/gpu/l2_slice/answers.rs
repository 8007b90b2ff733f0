//! The way out of a slice: answers wait for the data array, and for a place in the crossbar or for the wires to the other partition.
//!
//! Hits, fills and atomics have a queue each, since their latencies differ; within one, answers become ready in its order. The data array
//! takes the answer that has been ready for longest: a hit behind an atomic does not wait for it.

use super::input::Asker;
use crate::gpu::places::Places;
use balar_protocol::memory::MemoryResponse;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Its data were here.
    Hit,
    /// Its data have come from memory.
    Fill,
    /// The atomics unit.
    Atomic,
}

const SOURCES: usize = 3;

/// Cycles that answers have waited since they were ready, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waited {
    /// For the data array and the crossbar.
    pub in_all: u64,
    /// For a place in the crossbar.
    pub for_crossbar: u64,
}

/// An answer that has not left.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Answer {
    /// The first cycle in which the data array can take it.
    ready: u64,
    /// Bytes that it takes of the array.
    bytes: u64,
    asker: Asker,
    response: MemoryResponse,
}

/// Answers that have not left, or will leave in a known cycle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answers {
    waiting: [VecDeque<Answer>; SOURCES],
    /// The cycles in which answers of each queue but that of fills, which has no end, leave, in order; those before the last look at it may
    /// be gone.
    leaving: [VecDeque<u64>; SOURCES],
    /// Bytes a cycle of the data array, and its first free byte slot (cycle x bytes a cycle).
    rate: u64,
    free: u64,
    /// Bytes a cycle of the wires to the other partition, and their first free byte slot.
    near_rate: u64,
    near_free: u64,
    /// Those of the crossbar's queue.
    places: Places,
}

impl Answers {
    /// None, for a data array and wires to the other partition of so many bytes a cycle, and a crossbar with so many places; 0 = any
    /// number.
    pub fn new(bytes_per_cycle: u32, near_bytes_per_cycle: u32, places: u32) -> Answers {
        Answers {
            waiting: Default::default(),
            leaving: Default::default(),
            rate: u64::from(bytes_per_cycle),
            free: 0,
            near_rate: u64::from(near_bytes_per_cycle),
            near_free: 0,
            places: Places::of_queue(places),
        }
    }

    /// Are both of the same shape?
    pub fn fits(&self, other: &Answers) -> bool {
        (self.rate, self.near_rate) == (other.rate, other.near_rate) && self.places.fits(&other.places)
    }

    /// An answer is ready from a cycle on, which is not before those of the others of its source.
    #[inline]
    pub fn push(&mut self, source: Source, ready: u64, bytes: u64, (asker, response): (Asker, MemoryResponse)) {
        self.waiting[source as usize].push_back(Answer { ready, bytes, asker, response });
    }

    /// The crossbar has a place more from `cycle` on.
    pub fn add_place(&mut self, cycle: u64) {
        self.places.add(cycle);
    }

    /// Is nothing known of a place?
    pub fn lacks_places(&self) -> bool {
        self.places.next().is_none()
    }

    /// The source of the next answer to leave, the byte slot from which it wants the data array, and who gets it; places aside.
    #[inline]
    fn next_wanted(&self) -> Option<(usize, u64, Asker)> {
        let mut next: Option<(usize, u64, Asker)> = None;
        for (source, queue) in self.waiting.iter().enumerate() {
            if let Some(answer) = queue.front()
                && next.is_none_or(|(_, ready, _)| answer.ready < ready)
            {
                next = Some((source, answer.ready, answer.asker));
            }
        }
        next.map(|(source, ready, asker)| (source, (ready * self.rate).max(self.free), asker))
    }

    /// The cycle from which an answer to `asker` has a place; `None` where nothing is known of one.
    #[inline]
    fn next_place(&self, asker: Asker) -> Option<u64> {
        match asker {
            Asker::Crossbar => self.places.next(),
            Asker::Near => Some(0),
        }
    }

    /// The cycle in which the next answer leaves, as far as is known; `None` where none waits, or for a place.
    pub fn next(&self) -> Option<u64> {
        let (_, slot, asker) = self.next_wanted()?;
        Some((slot / self.rate).max(self.next_place(asker)?))
    }

    /// Lets the answers go that leave before cycle `limit`; none that is ready before then comes later. `send` gets each with who gets it
    /// and its cycle. Gives the cycles that they have waited.
    #[inline]
    pub fn leave(&mut self, limit: u64, mut send: impl FnMut(Asker, u64, &MemoryResponse)) -> Waited {
        let mut waited = Waited::default();
        while let Some((source, wanted, asker)) = self.next_wanted() {
            let Some(from) = self.next_place(asker) else { break };
            let slot = wanted.max(from * self.rate);
            let cycle = slot / self.rate;
            if cycle >= limit {
                break;
            }
            let Some(answer) = self.waiting[source].pop_front() else { break };
            if asker == Asker::Crossbar {
                self.places.take();
            }
            waited.in_all += cycle - answer.ready;
            waited.for_crossbar += cycle - wanted / self.rate;
            self.free = slot + answer.bytes;
            if source != Source::Fill as usize {
                self.leaving[source].push_back(cycle);
            }
            let cycle = if asker == Asker::Near { self.cross(cycle, answer.bytes) } else { cycle };
            send(asker, cycle, &answer.response);
        }
        waited
    }

    /// The cycle in which so many bytes that leave the data array in `cycle` are on the wires to the other partition.
    fn cross(&mut self, cycle: u64, bytes: u64) -> u64 {
        let slot = self.near_free.max(cycle * self.near_rate);
        self.near_free = slot + bytes;
        slot / self.near_rate
    }

    /// How many answers of a source may not have left: [`Self::under_way`] is not more in any cycle.
    #[inline]
    pub fn at_most(&self, source: Source) -> usize {
        self.leaving[source as usize].len() + self.waiting[source as usize].len()
    }

    /// How many answers of a source have not left by `cycle`, which is not before earlier ones. All that leave by then have been let go.
    #[inline]
    pub fn under_way(&mut self, source: Source, cycle: u64) -> usize {
        let leaving = &mut self.leaving[source as usize];
        while leaving.front().is_some_and(|&left| left <= cycle) {
            leaving.pop_front();
        }
        self.at_most(source)
    }

    /// The next cycle in which an answer of a source leaves, where that is known.
    pub fn next_leaving(&self, source: Source) -> Option<u64> {
        self.leaving[source as usize].front().copied()
    }

    /// Forgets when answers have left: nobody asks for how many are under way.
    #[inline]
    pub fn forget_left(&mut self) {
        self.leaving.iter_mut().for_each(VecDeque::clear);
    }

    /// Answers that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::memory::{MemoryRequest, ServedBy};

    fn response(id: u32) -> MemoryResponse {
        MemoryRequest { id, ..MemoryRequest::default() }.response(0, ServedBy::L2)
    }

    /// (number, cycle) of those that leave before `limit`.
    fn left(answers: &mut Answers, limit: u64) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        answers.leave(limit, |_, cycle, response| all.push((response.id, cycle)));
        all
    }

    #[test]
    fn the_answer_that_is_ready_first_goes_first() {
        let mut answers = Answers::new(32, 32, 0);
        answers.push(Source::Atomic, 80, 32, (Asker::Crossbar, response(1)));
        answers.push(Source::Hit, 50, 64, (Asker::Crossbar, response(2)));
        answers.push(Source::Hit, 51, 32, (Asker::Crossbar, response(3)));
        answers.push(Source::Fill, 51, 32, (Asker::Crossbar, response(4)));
        assert_eq!(answers.next(), Some(50));
        // The first takes the array for two cycles.
        assert_eq!(left(&mut answers, 60), [(2, 50), (3, 52), (4, 53)]);
        assert_eq!((answers.waiting(), answers.next()), (1, Some(80)));
        assert_eq!(left(&mut answers, 100), [(1, 80)]);
    }

    #[test]
    fn answers_wait_for_places() {
        let mut answers = Answers::new(32, 32, 2);
        for id in 0..4 {
            answers.push(Source::Hit, 10, 32, (Asker::Crossbar, response(id)));
        }
        assert_eq!(left(&mut answers, 100), [(0, 10), (1, 11)]);
        assert!(answers.lacks_places());
        assert_eq!(answers.next(), None);
        answers.add_place(40);
        assert_eq!(answers.next(), Some(40));
        let waited = answers.leave(100, |_, cycle, _| assert_eq!(cycle, 40));
        assert_eq!(waited, Waited { in_all: 30, for_crossbar: 28 }, "the array was free in cycle 12");
        assert_eq!(answers.under_way(Source::Hit, 11), 2, "one leaves in cycle 40, one waits");
        assert_eq!(answers.next_leaving(Source::Hit), Some(40));
        assert_eq!(answers.under_way(Source::Hit, 40), 1);
    }
}
