//! Bytes of asynchronous copies from the program's own memory. The simulator keeps them until their streams reach them, and a program may
//! ask for copies without end. Where more bytes wait than there is room for, a copy is over when its call returns, as CUDA says that a copy
//! from pageable memory may be. Such a copy waits for earlier work alone: all work that a stream waits for has been asked for before the
//! copy.

use balar_host::Call;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that may wait in all streams together.
const ROOM: u64 = 64 << 20;

/// Bytes that wait, or that have been copied without being waited for, by device and stream.
static WAITING: Mutex<Waiting> = Mutex::new(Waiting(BTreeMap::new()));

/// Bytes by device and stream.
struct Waiting(BTreeMap<(u32, u32), u64>);

impl Waiting {
    fn lock() -> MutexGuard<'static, Waiting> {
        WAITING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts bytes, if there is room for them.
    fn add(&mut self, device: u32, stream: u32, bytes: u64) -> bool {
        let waiting: u64 = self.0.values().sum();
        let fits = waiting + bytes <= ROOM;
        if fits {
            *self.0.entry((device, stream)).or_default() += bytes;
        }
        fits
    }

    /// A call has returned: forgets the bytes of streams that have finished all that was enqueued before it.
    fn returned(&mut self, device: u32, call: &Call) {
        match call {
            Call::StreamSynchronize { stream } | Call::Copy { stream, asynchronous: false, .. } => {
                self.0.remove(&(device, *stream));
            }
            Call::DeviceSynchronize | Call::DeviceReset => self.0.retain(|(other, _), _| *other != device),
            _ => {}
        }
    }
}

/// Is there room for the bytes of a copy, now or later?
pub fn can_have_room(bytes: u64) -> bool {
    bytes <= ROOM
}

/// Counts the bytes of a copy, if there is room for them.
pub fn add(device: u32, stream: u32, bytes: u64) -> bool {
    Waiting::lock().add(device, stream, bytes)
}

/// The streams, with their devices, in which bytes wait.
pub fn streams() -> Vec<(u32, u32)> {
    Waiting::lock().0.keys().copied().collect()
}

/// A stream has finished.
pub fn forget(device: u32, stream: u32) {
    Waiting::lock().0.remove(&(device, stream));
}

/// A call on a device has returned without an error.
pub fn returned(device: u32, call: &Call) {
    Waiting::lock().returned(device, call);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_wait_until_their_stream_has_been_waited_for() {
        let mut waiting = Waiting(BTreeMap::new());
        assert!(waiting.add(0, 1, ROOM / 2) && waiting.add(1, 2, ROOM / 2));
        assert!(!waiting.add(0, 1, 1));
        waiting.returned(0, &Call::StreamQuery { stream: 1 });
        waiting.returned(0, &Call::StreamSynchronize { stream: 3 });
        assert!(!waiting.add(0, 1, 1));
        waiting.returned(0, &Call::StreamSynchronize { stream: 1 });
        assert!(waiting.add(0, 1, ROOM / 2) && !waiting.add(0, 1, 1));
        waiting.returned(1, &Call::DeviceSynchronize);
        assert!(waiting.add(0, 3, ROOM / 2) && !waiting.add(0, 3, 1));
        waiting.returned(0, &Call::DeviceReset);
        assert!(waiting.add(0, 1, ROOM));
    }
}
