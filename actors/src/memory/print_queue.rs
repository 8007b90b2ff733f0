//! The text that kernels have printed and the host has not taken yet.

use std::collections::VecDeque;

/// A first-in first-out buffer of printed records. Where it is full, the oldest records give way to the newest.
#[derive(Debug)]
pub(crate) struct PrintQueue {
    capacity: usize,
    bytes: VecDeque<u8>,
    /// Length of each record, oldest first.
    records: VecDeque<usize>,
    /// Records that found no room or gave way, since text was taken last.
    lost: u64,
}

/// The text that kernels have printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text of all records.
    pub text: Vec<u8>,
    /// Records that found no room: each is the output of a `printf` of a thread.
    pub lost: u64,
    /// Bytes that there is room for.
    pub capacity: u64,
}

impl Default for PrintQueue {
    fn default() -> Self {
        PrintQueue::new(PrintQueue::DEFAULT_CAPACITY)
    }
}

impl PrintQueue {
    /// Bytes of the queue: the default of `cudaLimitPrintfFifoSize` (CUDA C++ Programming Guide, "Associated Host-Side API":
    /// 1 MB). A record takes as much as its text; the GPU's own keeps format and arguments instead, in a form of its own.
    pub const DEFAULT_CAPACITY: usize = 1 << 20;

    /// An empty queue.
    pub fn new(capacity: usize) -> PrintQueue {
        PrintQueue { capacity, bytes: VecDeque::new(), records: VecDeque::new(), lost: 0 }
    }

    /// From now on it holds so many bytes; the text that is there stays.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    /// Adds a record; one that is larger than the queue is lost.
    pub fn push(&mut self, record: &[u8]) {
        if record.is_empty() {
            return;
        }
        if record.len() > self.capacity {
            self.lost += 1;
            return;
        }
        while self.bytes.len() + record.len() > self.capacity {
            let oldest = self.records.pop_front().unwrap_or(self.bytes.len());
            self.bytes.drain(..oldest);
            self.lost += 1;
        }
        self.bytes.extend(record);
        self.records.push_back(record.len());
    }

    /// All that is there, and how much is not.
    pub fn take(&mut self) -> Printed {
        self.records.clear();
        let text = std::mem::take(&mut self.bytes).into();
        Printed { text, lost: std::mem::take(&mut self.lost), capacity: self.capacity as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_records_give_way() {
        let mut queue = PrintQueue::new(10);
        let taken = |queue: &mut PrintQueue| {
            let Printed { text, lost, .. } = queue.take();
            (String::from_utf8(text).expect("text"), lost)
        };
        for record in ["one\n", "two\n", "three\n"] {
            queue.push(record.as_bytes());
        }
        assert_eq!(taken(&mut queue), ("two\nthree\n".to_owned(), 1));
        assert_eq!(taken(&mut queue), (String::new(), 0));
        queue.push(b"more than ten bytes");
        queue.push(b"0123456789");
        queue.push(b"x");
        // One did not fit at all, and one gave way.
        assert_eq!(taken(&mut queue), ("x".to_owned(), 2));
    }
}
