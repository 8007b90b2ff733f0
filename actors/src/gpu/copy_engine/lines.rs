//! The lines of a page, and the rate at which they are sent.

use crate::lines::LineRange;
use balar_protocol::copy::Rows;
use balar_protocol::memory::{MemoryKind, MemoryRequest};
use balar_protocol::{Clock, SimTime};
use serde::{Deserialize, Serialize};

/// The lines of a page, in runs of rows.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct PageLines {
    rows: Rows,
    /// Bytes of the packed rows for which no run was begun yet.
    next: u64,
    end: u64,
    run: LineRange,
}

impl PageLines {
    /// The lines of `bytes` bytes from `offset` of the packed rows on.
    pub fn new(rows: &Rows, offset: u64, bytes: u32) -> PageLines {
        PageLines { rows: *rows, next: offset, end: offset + u64::from(bytes), run: LineRange::new(0, 0) }
    }

    pub fn is_empty(&self) -> bool {
        self.run.is_empty() && self.next >= self.end
    }

    /// Forgets the lines that are left; returns how many they are.
    pub fn take_all(&mut self) -> u64 {
        let runs = self.rows.runs(self.next, self.end - self.next);
        let lines = runs.map(|(address, bytes)| u64::from(LineRange::new(address, bytes).count())).sum::<u64>();
        let begun = u64::from(std::mem::replace(&mut self.run, LineRange::new(0, 0)).count());
        self.next = self.end;
        begun + lines
    }

    /// As [`LineRange::next_request`], for the first run that has lines left.
    #[inline]
    pub fn next_request(&mut self, kind: MemoryKind, id: u32) -> Option<MemoryRequest> {
        if self.run.is_empty() {
            let (address, bytes) = self.rows.run_at(self.next, self.end)?;
            self.run = LineRange::new(address, bytes);
            self.next += bytes;
        }
        self.run.next_request(kind, id)
    }
}

/// How fast lines are sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRate {
    pub clock: Clock,
    pub lines_per_cycle: u32,
}

/// Gives each line a clock tick, so many a tick.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LinePacer {
    cycle: u64,
    time: SimTime,
    used: u32,
}

impl LinePacer {
    /// When the next line is sent, at `earliest` or after.
    #[inline]
    pub fn next(&mut self, rate: &LineRate, earliest: SimTime) -> SimTime {
        if self.time < earliest {
            self.cycle = rate.clock.cycle_at_or_after(earliest);
            self.time = rate.clock.time_of(self.cycle);
            self.used = 0;
        } else if self.used >= rate.lines_per_cycle {
            self.cycle += 1;
            self.time = rate.clock.time_of(self.cycle);
            self.used = 0;
        }
        self.used += 1;
        self.time
    }

    /// When the last of the next `lines` lines is sent, as [`LinePacer::next`] would say one by one; `None` where they are none.
    pub fn last_of(&mut self, rate: &LineRate, earliest: SimTime, lines: u64) -> Option<SimTime> {
        let more = lines.checked_sub(1)?;
        self.next(rate, earliest);
        let per_cycle = u64::from(rate.lines_per_cycle);
        let used = u64::from(self.used) - 1 + more;
        if used >= per_cycle {
            self.cycle += used / per_cycle;
            self.time = rate.clock.time_of(self.cycle);
        }
        self.used = (used % per_cycle) as u32 + 1;
        Some(self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::Frequency;

    #[test]
    fn rows_have_lines_of_their_own() {
        let rows = Rows { address: 0x1000, width: 160, height: 2, depth: 2, row_pitch: 256, slice_pitch: 0x1000 };
        let lines = |offset, bytes| {
            let mut page = PageLines::new(&rows, offset, bytes);
            let next = || page.next_request(MemoryKind::Load, 0).map(|request| (request.line, request.sectors));
            let lines: Vec<_> = std::iter::from_fn(next).collect();
            assert!(page.is_empty());
            lines
        };
        assert_eq!(lines(0, 320), [(0x1000, 15), (0x1080, 1), (0x1100, 15), (0x1180, 1)]);
        assert_eq!(lines(300, 60), [(0x1180, 1), (0x2000, 3)]);
        assert_eq!(lines(640, 0), []);
    }

    #[test]
    fn many_lines_take_as_long_as_one_after_another() {
        let rate = LineRate { clock: Clock::new(Frequency::from_hertz(1_312_000_000)), lines_per_cycle: 3 };
        let (mut single, mut many) = (LinePacer::default(), LinePacer::default());
        for (earliest, lines) in
            [(0, 1), (0, 2), (0, 1), (500, 7), (2000, 32), (2001, 0), (9_000_000, 33), (9_000_001, 3)]
        {
            let last = (0..lines).map(|_| single.next(&rate, SimTime(earliest))).last();
            assert_eq!(many.last_of(&rate, SimTime(earliest), lines), last, "{lines} lines from {earliest} on");
        }
    }

    #[test]
    fn the_lines_left_of_a_page_are_counted() {
        let rows = Rows { address: 0x1010, width: 300, height: 5, depth: 2, row_pitch: 512, slice_pitch: 0x1000 };
        for sent in 0..20 {
            let mut page = PageLines::new(&rows, 70, 2000);
            for _ in 0..sent {
                page.next_request(MemoryKind::Load, 0);
            }
            let mut rest = page;
            let left = std::iter::from_fn(|| rest.next_request(MemoryKind::Load, 0)).count();
            assert_eq!((page.take_all(), page.is_empty()), (left as u64, true), "after {sent}");
        }
    }

    #[test]
    fn lines_are_sent_at_the_clocks_rate() {
        let rate = LineRate { clock: Clock::new(Frequency::from_hertz(1_000_000_000)), lines_per_cycle: 2 };
        let mut pacer = LinePacer::default();
        let times: Vec<_> = [500, 500, 500, 500, 500, 2500].map(|t| pacer.next(&rate, SimTime(t)).0).to_vec();
        assert_eq!(times, [1000, 1000, 2000, 2000, 3000, 3000]);
        assert_eq!(pacer.next(&rate, SimTime(9_000)), SimTime(9_000));
    }
}
