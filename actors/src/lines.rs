//! A range of device addresses as requests for lines.

use balar_protocol::memory::{LINE_BYTES, MemoryKind, MemoryRequest, Scope, sectors_of, words_within};
use balar_protocol::residency::Residency;
use balar_protocol::translation::Aperture;
use serde::{Deserialize, Serialize};

/// The part of an address range for which no request was made yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineRange {
    next: u64,
    end: u64,
}

impl LineRange {
    /// `bytes` bytes from `address` on.
    pub fn new(address: u64, bytes: u64) -> LineRange {
        LineRange { next: address, end: address + bytes }
    }

    /// Is a request made for every byte of it?
    pub fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// Lines that it has left.
    pub fn count(&self) -> u32 {
        if self.is_empty() { 0 } else { (self.end.div_ceil(LINE_BYTES) - self.next / LINE_BYTES) as u32 }
    }

    /// Cuts off the whole lines with which the range begins, and says how many.
    pub fn skip_whole_lines(&mut self) -> u64 {
        if !self.next.is_multiple_of(LINE_BYTES) {
            return 0;
        }
        let lines = self.end.saturating_sub(self.next) / LINE_BYTES;
        self.next += lines * LINE_BYTES;
        lines
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
        let store = kind == MemoryKind::Store;
        Some(MemoryRequest {
            line,
            id,
            launch: 0,
            return_port: 0,
            data_bytes: if store { (end - first) as u16 } else { 0 },
            written_words: if store { words_within(first, end) } else { 0 },
            sectors: sectors_of(first, end),
            operations: 0,
            update_sectors: 0,
            kind,
            scope: Scope::Weak,
            aperture: Aperture::Device,
            is_far: false,
            residency: Residency::default(),
        })
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
            std::iter::from_fn(request).map(|r| (r.line, r.sectors, r.full_sectors(), r.data_bytes)).collect();
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
}
