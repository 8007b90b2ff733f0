//! The lines of a page, and the rate at which they are sent.

use crate::lines::LineRange;
use balar_protocol::copy::Rows;
use balar_protocol::memory::{MemoryKind, MemoryRequest};
use balar_protocol::{Clock, SimTime};

/// The lines of a page: of rows, run by run.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLines {
    rows: Rows,
    /// Bytes of the packed rows for which no run was begun yet.
    next: u64,
    end: u64,
    run: LineRange,
}

impl PageLines {
    /// Of `bytes` bytes from `offset` of the packed rows on.
    pub fn new(rows: &Rows, offset: u64, bytes: u32) -> PageLines {
        PageLines { rows: *rows, next: offset, end: offset + u64::from(bytes), run: LineRange::new(0, 0) }
    }

    pub fn is_empty(&self) -> bool {
        self.run.is_empty() && self.next >= self.end
    }

    /// As [`LineRange::next_request`], of the first run that has lines left.
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

/// Gives each line a clock tick, so many a tick.
#[derive(Debug)]
pub(super) struct LinePacer {
    clock: Clock,
    lines_per_cycle: u32,
    cycle: u64,
    time: SimTime,
    used: u32,
}

impl LinePacer {
    pub fn new(clock: Clock, lines_per_cycle: u32) -> LinePacer {
        LinePacer { clock, lines_per_cycle, cycle: 0, time: SimTime::ZERO, used: 0 }
    }

    /// When the next line is sent, at `earliest` or after.
    #[inline]
    pub fn next(&mut self, earliest: SimTime) -> SimTime {
        if self.time < earliest {
            self.cycle = self.clock.cycle_at_or_after(earliest);
            self.time = self.clock.time_of(self.cycle);
            self.used = 0;
        } else if self.used == self.lines_per_cycle {
            self.cycle += 1;
            self.time = self.clock.time_of(self.cycle);
            self.used = 0;
        }
        self.used += 1;
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn lines_are_sent_at_the_clocks_rate() {
        let mut pacer = LinePacer::new(Clock::new(balar_protocol::Frequency::from_hertz(1_000_000_000)), 2);
        let times: Vec<_> = [500, 500, 500, 500, 500, 2500].map(|t| pacer.next(SimTime(t)).0).to_vec();
        assert_eq!(times, [1000, 1000, 2000, 2000, 3000, 3000]);
        assert_eq!(pacer.next(SimTime(9_000)), SimTime(9_000));
    }
}
