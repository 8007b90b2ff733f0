//! Reads of textures and surfaces by a warp that runs machine code. Their results come in order, on which machine code relies: of
//! several reads it gives the last alone a scoreboard.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The reads of a warp whose results are still to come, or are held back for the sake of an earlier one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ImageReads {
    /// The program counter of each, and from which cycle on its results could be read, where that is known.
    waiting: VecDeque<(u32, Option<u64>)>,
    /// From when on the results of those before them can be read.
    last: u64,
}

impl ImageReads {
    /// The warp begins to run a program.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.last = 0;
    }

    /// The instruction at `pc` has issued, whose results could be read from `ready` on, or when an answer comes: from when on they can
    /// be read; `None` where that is not known before an answer comes.
    pub fn issued(&mut self, pc: u32, ready: Option<u64>) -> Option<u64> {
        if let (Some(ready), true) = (ready, self.waiting.is_empty()) {
            self.last = self.last.max(ready);
            return Some(self.last);
        }
        self.waiting.push_back((pc, ready));
        None
    }

    /// The answer for an instruction has come. False where it is none of these.
    pub fn answered(&mut self, pc: u32, ready: u64) -> bool {
        let first = self.waiting.iter_mut().find(|read| read.0 == pc && read.1.is_none());
        first.is_some_and(|read| {
            read.1 = Some(ready);
            true
        })
    }

    /// The next instruction whose results have come, and from when on they can be read.
    pub fn next_complete(&mut self) -> Option<(u32, u64)> {
        let &(pc, ready) = self.waiting.front()?;
        self.last = self.last.max(ready?);
        self.waiting.pop_front();
        Some((pc, self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        let mut reads = ImageReads::default();
        assert_eq!(reads.issued(1, Some(50)), Some(50));
        assert_eq!(reads.issued(2, Some(40)), Some(50), "the one before comes at 50");
        assert_eq!(reads.issued(3, None), None);
        assert_eq!(reads.issued(4, None), None);
        assert_eq!(reads.issued(5, Some(60)), None, "those before have no answer");
        assert!(!reads.answered(9, 70), "a read of other memory");
        assert!(reads.answered(4, 80));
        assert_eq!(reads.next_complete(), None);
        assert!(reads.answered(3, 90));
        let complete: Vec<_> = std::iter::from_fn(|| reads.next_complete()).collect();
        assert_eq!(complete, [(3, 90), (4, 90), (5, 90)]);
        assert_eq!(reads.issued(6, Some(80)), Some(90));
        reads.clear();
        assert_eq!(reads.issued(6, Some(80)), Some(80));
    }

    #[test]
    fn one_instruction_may_wait_for_several_answers() {
        let mut reads = ImageReads::default();
        assert_eq!((reads.issued(1, None), reads.issued(1, None)), (None, None));
        assert!(reads.answered(1, 10) && reads.answered(1, 20) && !reads.answered(1, 30));
        assert_eq!((reads.next_complete(), reads.next_complete()), (Some((1, 10)), Some((1, 20))));
    }
}
