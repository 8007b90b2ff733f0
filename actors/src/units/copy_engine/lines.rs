//! A range of device addresses as line requests, and the rate at which they are sent.

use balar_protocol::copy::Rows;
use balar_protocol::memory::{LINE_BYTES, MemoryKind, MemoryRequest, SECTOR_BYTES};
use balar_protocol::{Clock, SimTime};

/// The part of an address range for which no request was made yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::units) struct LineRange {
    next: u64,
    end: u64,
}

impl LineRange {
    pub fn new(address: u64, bytes: u64) -> LineRange {
        LineRange { next: address, end: address + bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// Lines that it has left.
    pub fn count(&self) -> u32 {
        if self.is_empty() { 0 } else { (self.end.div_ceil(LINE_BYTES) - self.next / LINE_BYTES) as u32 }
    }

    /// The request for the first line of the range, which is then cut off. A store fills the sectors that it covers wholly.
    #[inline]
    pub fn next_request(&mut self, kind: MemoryKind, id: u32) -> Option<MemoryRequest> {
        if self.is_empty() {
            return None;
        }
        let line = self.next - self.next % LINE_BYTES;
        let first = self.next - line;
        let end = (self.end - line).min(LINE_BYTES);
        self.next = line + end;
        let mask = |from: u64, to: u64| if to > from { ((1u8 << (to - from)) - 1) << from } else { 0 };
        let store = kind == MemoryKind::Store;
        Some(MemoryRequest {
            line,
            id,
            launch: 0,
            return_port: 0,
            data_bytes: if store { (end - first) as u16 } else { 0 },
            sectors: mask(first / SECTOR_BYTES, end.div_ceil(SECTOR_BYTES)),
            full_sectors: if store { mask(first.div_ceil(SECTOR_BYTES), end / SECTOR_BYTES) } else { 0 },
            operations: 0,
            kind,
        })
    }
}

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

    fn requests(address: u64, bytes: u64, kind: MemoryKind) -> Vec<(u64, u8, u8, u16)> {
        let mut range = LineRange::new(address, bytes);
        let count = range.count();
        let request = || range.next_request(kind, 0);
        let requests: Vec<_> =
            std::iter::from_fn(request).map(|r| (r.line, r.sectors, r.full_sectors, r.data_bytes)).collect();
        assert_eq!(requests.len() as u32, count);
        requests
    }

    #[test]
    fn a_range_is_cut_into_lines_and_sectors() {
        assert_eq!(requests(0x1000, 256, MemoryKind::Store), [(0x1000, 15, 15, 128), (0x1080, 15, 15, 128)]);
        assert_eq!(requests(0x1010, 32, MemoryKind::Store), [(0x1000, 0b11, 0, 32)]);
        assert_eq!(
            requests(0x1050, 0x80, MemoryKind::Store),
            [(0x1000, 0b1100, 0b1000, 48), (0x1080, 0b111, 0b11, 80)]
        );
        assert_eq!(requests(0x1060, 64, MemoryKind::Load), [(0x1000, 0b1000, 0, 0), (0x1080, 1, 0, 0)]);
        assert_eq!(requests(0x1000, 0, MemoryKind::Load), []);
        assert_eq!(requests(0x1002, 1, MemoryKind::Store), [(0x1000, 1, 0, 1)]);
    }

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
