//! The order in which the entries of several logs take effect.

use balar_protocol::SimTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Merges logs by (time, unit, sequence). Each log is in the order of its times.
#[derive(Debug, Default)]
pub(super) struct Merge {
    /// The logs with their next entries: (its time, unit, log, entry).
    heads: BinaryHeap<Reverse<(SimTime, u32, u32, u32)>>,
}

impl Merge {
    /// Adds a log of this unit, whose first entry has this time; `None`: it is empty.
    pub fn add(&mut self, unit: u32, log: usize, first: Option<SimTime>) {
        self.heads.extend(first.map(|time| Reverse((time, unit, log as u32, 0))));
    }

    /// Calls `apply(log, entry)` for all entries in order. It gives the time of the log's next entry, where there is one.
    pub fn run(&mut self, mut apply: impl FnMut(usize, usize) -> Option<SimTime>) {
        while let Some(mut head) = self.heads.peek_mut() {
            let Reverse((time, _, log, entry)) = &mut *head;
            match apply(*log as usize, *entry as usize) {
                Some(next) => {
                    *time = next;
                    *entry += 1;
                }
                None => {
                    PeekMut::pop(head);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg32;

    #[test]
    fn a_merge_is_a_sort() {
        let mut random = Pcg32::seed_from_u64(1);
        for _ in 0..200 {
            let count = random.next_u32() % 9;
            let logs: Vec<(u32, Vec<SimTime>)> = (0..count)
                .map(|log| {
                    let length = random.next_u32() % 8;
                    let mut times: Vec<_> = (0..length).map(|_| SimTime(u64::from(random.next_u32() % 5))).collect();
                    times.sort();
                    // Units in an order of their own: 7 and 11 have no common divisor.
                    (log * 7 % 11, times)
                })
                .collect();
            let mut expected: Vec<_> = (logs.iter().enumerate())
                .flat_map(|(log, (unit, times))| {
                    times.iter().enumerate().map(move |(entry, &time)| (time, *unit, entry, log))
                })
                .collect();
            expected.sort();
            let mut merge = Merge::default();
            for (log, (unit, times)) in logs.iter().enumerate() {
                merge.add(*unit, log, times.first().copied());
            }
            let mut merged = Vec::new();
            merge.run(|log, entry| {
                let (unit, times) = &logs[log];
                merged.push((times[entry], *unit, entry, log));
                times.get(entry + 1).copied()
            });
            assert_eq!(merged, expected);
        }
    }
}
