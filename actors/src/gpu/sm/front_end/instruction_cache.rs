//! The instruction cache: which lines of which programs an SM holds, and which are on their way.

use crate::slab::Slab;
use balar_protocol::cuda::ProgramId;
use balar_protocol::memory::LINE_BYTES;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Code of all programs lies here, above device memory and local memory; each program has a mebibyte.
const CODE_WINDOW: u64 = 0x7f80_0000_0000;
const CODE_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Line {
    Absent,
    UnderWay,
    Present,
}

/// A line of code on its way, named in requests by its place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Fetch {
    program: ProgramId,
    line: u32,
}

/// Lines of 128 bytes, first in first out, with a prefetcher that asks for the lines after a missing one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InstructionCache {
    capacity: usize,
    prefetch: u32,
    instructions_per_line: u32,
    programs: Vec<(ProgramId, Vec<Line>)>,
    resident: VecDeque<Fetch>,
    fetches: Slab<Fetch>,
}

impl InstructionCache {
    /// A cache of `bytes` for instructions of `instruction_bytes`; without bytes every lookup hits.
    pub fn new(bytes: u64, instruction_bytes: u32, prefetch: u32) -> InstructionCache {
        InstructionCache {
            capacity: (bytes / LINE_BYTES) as usize,
            prefetch,
            instructions_per_line: (LINE_BYTES as u32 / instruction_bytes.max(1)).max(1),
            programs: Vec::new(),
            resident: VecDeque::new(),
            fetches: Slab::default(),
        }
    }

    /// Instructions of a line.
    #[inline]
    pub fn line_length(&self) -> u32 {
        self.instructions_per_line
    }

    /// Lines on their way.
    pub fn under_way(&self) -> u32 {
        self.fetches.len()
    }

    /// Is the line here? Where it is not, calls `request` with (number, address) of each line to fetch: the missing one unless it
    /// is on its way, and those after it that the prefetcher adds. A program has `instructions` instructions.
    #[inline(always)]
    pub fn lookup(
        &mut self,
        program: ProgramId,
        line: u32,
        instructions: usize,
        mut request: impl FnMut(u32, u64),
    ) -> bool {
        if self.capacity == 0 {
            return true;
        }
        let at = match self.programs.iter().position(|(id, _)| *id == program) {
            Some(at) => at,
            None => {
                let lines = instructions.div_ceil(self.instructions_per_line as usize);
                self.programs.push((program, vec![Line::Absent; lines]));
                self.programs.len() - 1
            }
        };
        if self.programs[at].1[line as usize] == Line::Present {
            return true;
        }
        let last = (line + self.prefetch).min(self.programs[at].1.len() as u32 - 1);
        for wanted in line..=last {
            let state = &mut self.programs[at].1[wanted as usize];
            if *state == Line::Absent {
                *state = Line::UnderWay;
                let number = self.fetches.insert(Fetch { program, line: wanted });
                let base = CODE_WINDOW + u64::from(program.0) * CODE_BYTES;
                request(number, base + u64::from(wanted) * LINE_BYTES % CODE_BYTES);
            }
        }
        false
    }

    /// Fetch `number` has arrived.
    pub fn arrived(&mut self, number: u32) {
        let fetch = self.fetches.remove(number);
        if self.resident.len() == self.capacity
            && let Some(oldest) = self.resident.pop_front()
        {
            self.set(oldest, Line::Absent);
        }
        self.set(fetch, Line::Present);
        self.resident.push_back(fetch);
    }

    fn set(&mut self, fetch: Fetch, state: Line) {
        if let Some((_, lines)) = self.programs.iter_mut().find(|(id, _)| *id == fetch.program) {
            lines[fetch.line as usize] = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(cache: &mut InstructionCache, line: u32) -> (bool, Vec<u32>) {
        let mut asked = Vec::new();
        let hit = cache.lookup(ProgramId(1), line, 100, |number, _| asked.push(number));
        (hit, asked)
    }

    #[test]
    fn a_miss_asks_for_the_line_and_those_after_it() {
        let mut cache = InstructionCache::new(128 << 10, 16, 2);
        assert_eq!(cache.line_length(), 8);
        assert_eq!(look(&mut cache, 0), (false, vec![0, 1, 2]));
        assert_eq!(look(&mut cache, 0), (false, vec![]), "they are on their way");
        cache.arrived(0);
        assert_eq!(look(&mut cache, 0), (true, vec![]));
        assert_eq!(look(&mut cache, 1), (false, vec![0]), "line 1 is on its way, line 3 is new");
        assert_eq!(cache.under_way(), 3);
    }

    #[test]
    fn the_last_line_is_not_passed() {
        let mut cache = InstructionCache::new(128 << 10, 16, 8);
        assert_eq!(look(&mut cache, 12), (false, vec![0]));
    }

    #[test]
    fn the_first_line_in_goes_first() {
        let mut cache = InstructionCache::new(2 * 128, 16, 0);
        for line in 0..3 {
            look(&mut cache, line);
            cache.arrived(0);
        }
        assert_eq!(look(&mut cache, 2), (true, vec![]));
        assert_eq!(look(&mut cache, 1), (true, vec![]));
        assert_eq!(look(&mut cache, 0), (false, vec![0]));
    }

    #[test]
    fn without_a_capacity_everything_hits() {
        assert_eq!(look(&mut InstructionCache::new(0, 16, 8), 5), (true, vec![]));
    }
}
