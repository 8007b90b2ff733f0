//! The writes, fills and copies of the host and the copy engines.

use super::WriteLog;
use crate::memory::arena::Arena;
use balar_protocol::SimTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Range;
use std::sync::Arc;

/// A change of many bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum BulkOperation {
    /// Bytes of the host.
    Write { address: u64, data: HostBytes },
    /// Elements of a value.
    Fill { address: u64, bytes: u64, value: u32, element_bytes: u8 },
    /// Zeros for whole pages, without touching them.
    Zero { address: u64, bytes: u64 },
    /// Bytes of the memories themselves.
    Copy { destination: u64, source: u64, bytes: u64 },
}

/// A part of a copy's bytes. Saved without the rest, which other entries bring.
#[derive(Clone, Debug)]
pub(super) struct HostBytes {
    data: Arc<[u8]>,
    first: usize,
    end: usize,
}

impl HostBytes {
    fn as_slice(&self) -> &[u8] {
        &self.data[self.first..self.end]
    }
}

impl Serialize for HostBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(serializer)
    }
}

impl<'a> Deserialize<'a> for HostBytes {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let data: Vec<u8> = Vec::deserialize(deserializer)?;
        Ok(HostBytes { first: 0, end: data.len(), data: data.into() })
    }
}

impl WriteLog {
    /// At `time`, the elements of 1, 2 or 4 bytes from `address` on become `value`, as far as `bytes` go.
    pub fn fill(&mut self, time: SimTime, address: u64, bytes: u64, value: u32, element_bytes: u8) {
        self.push(time, BulkOperation::Fill { address, bytes, value, element_bytes });
    }

    /// At `time`, all bytes of the range become zero. Memory that the simulator has taken for whole pages of it is given back.
    pub fn zero(&mut self, time: SimTime, address: u64, bytes: u64) {
        self.push(time, BulkOperation::Zero { address, bytes });
    }

    /// At `time`, `data[range]` is written from device address `address` on.
    pub fn write(&mut self, time: SimTime, address: u64, data: &Arc<[u8]>, range: Range<usize>) {
        let data = HostBytes { data: Arc::clone(data), first: range.start, end: range.end };
        self.push(time, BulkOperation::Write { address, data });
    }

    /// At `time`, `bytes` from `source` are copied to `destination`, as they are then.
    pub fn copy(&mut self, time: SimTime, destination: u64, source: u64, bytes: u64) {
        self.push(time, BulkOperation::Copy { destination, source, bytes });
    }
}

impl BulkOperation {
    pub fn apply(&mut self, arena: &mut Arena) {
        match self {
            BulkOperation::Write { address, data } => {
                let written = data.as_slice();
                if let Some(bytes) = arena.mapping.bytes_mut(*address, written.len()) {
                    bytes.write(written);
                }
                // A large copy's bytes are not kept until the unit runs again.
                *data = HostBytes { data: Arc::default(), first: 0, end: 0 };
            }
            BulkOperation::Fill { address, bytes, value, element_bytes } => {
                if let Some(bytes) = arena.mapping.bytes_mut(*address, *bytes as usize) {
                    bytes.fill(&value.to_le_bytes()[..usize::from(*element_bytes).clamp(1, 4)]);
                }
            }
            BulkOperation::Zero { address, bytes } => arena.mapping.zero(*address, *bytes),
            BulkOperation::Copy { destination, source, bytes } => arena.mapping.copy(*destination, *source, *bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_copy_is_saved_without_the_rest() {
        let data: Arc<[u8]> = (0..200u8).collect();
        let part = HostBytes { data, first: 3, end: 7 };
        let saved = postcard::to_stdvec(&part).expect("four bytes can be written");
        assert_eq!(saved, [4, 3, 4, 5, 6]);
        let read: HostBytes = postcard::from_bytes(&saved).expect("four bytes can be read");
        assert_eq!(read.as_slice(), [3, 4, 5, 6]);
    }
}
