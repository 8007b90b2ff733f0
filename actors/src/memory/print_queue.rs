//! What kernels have printed and the host has not taken yet.

use std::collections::VecDeque;

/// A first-in first-out buffer of printed records. Where it is full, the oldest records give way to the newest.
#[derive(Debug)]
pub(crate) struct PrintQueue {
    capacity: usize,
    bytes: VecDeque<u8>,
    /// Length of each record, oldest first.
    records: VecDeque<usize>,
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
        PrintQueue { capacity, bytes: VecDeque::new(), records: VecDeque::new() }
    }

    /// From now on it holds so many bytes; what is there stays.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    /// Adds a record; one that is larger than the queue is lost.
    pub fn push(&mut self, record: &[u8]) {
        if record.is_empty() || record.len() > self.capacity {
            return;
        }
        while self.bytes.len() + record.len() > self.capacity {
            let oldest = self.records.pop_front().unwrap_or(self.bytes.len());
            self.bytes.drain(..oldest);
        }
        self.bytes.extend(record);
        self.records.push_back(record.len());
    }

    /// All that is there.
    pub fn take(&mut self) -> Vec<u8> {
        self.records.clear();
        std::mem::take(&mut self.bytes).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_records_give_way() {
        let mut queue = PrintQueue::new(10);
        for record in ["one\n", "two\n", "three\n"] {
            queue.push(record.as_bytes());
        }
        assert_eq!(queue.take(), b"two\nthree\n");
        assert_eq!(queue.take(), b"");
        queue.push(b"more than ten bytes");
        queue.push(b"0123456789");
        queue.push(b"x");
        assert_eq!(queue.take(), b"x");
    }
}
