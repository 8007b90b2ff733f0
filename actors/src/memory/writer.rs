//! How a unit writes to memory: into a log of its own, which is applied at the end of the epoch.

use super::{DeviceMemory, WriteLog};
use balar_protocol::SimTime;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a log lies between the windows of its unit.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// Is there a log? Its unit looks here first.
    filled: AtomicBool,
    /// An empty one where there is none, so that nothing is allocated.
    log: Mutex<Box<WriteLog>>,
}

impl Shelf {
    /// Swaps the log here with `log`.
    pub(super) fn swap(&self, log: &mut Box<WriteLog>) {
        std::mem::swap(&mut *self.log.lock().unwrap_or_else(PoisonError::into_inner), log);
    }
}

/// Logs that wait for the end of the epoch, with the number of the unit that each belongs to.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Is there any? The end of most epochs looks here alone.
    any: AtomicBool,
    shelves: Mutex<Vec<(u32, Arc<Shelf>)>>,
}

impl Waiting {
    fn add(&self, unit: u32, shelf: &Arc<Shelf>) {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.push((unit, Arc::clone(shelf)));
        self.any.store(true, Ordering::Release);
    }

    /// Does any log wait?
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Swaps the logs that wait with `other`, which is empty.
    pub(super) fn take(&self, other: &mut Vec<(u32, Arc<Shelf>)>) {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *shelves, other);
        self.any.store(false, Ordering::Release);
    }
}

/// A unit's way to write to memory.
///
/// A unit calls [`Writer::open`] at the start of a window and [`Writer::close`] at its end. In between it is the log of the unit's writes
/// in this epoch; its own loads look there, too.
#[derive(Debug)]
pub struct Writer {
    memory: Arc<DeviceMemory>,
    /// The unit: logs of one time are applied in this order.
    unit: u32,
    log: Box<WriteLog>,
    /// Has this epoch's log been announced?
    announced: bool,
    shelf: Arc<Shelf>,
}

impl Writer {
    pub(super) fn new(memory: Arc<DeviceMemory>, unit: u32) -> Writer {
        Writer { memory, unit, log: Box::default(), announced: false, shelf: Arc::default() }
    }

    /// Takes the log back. Where its epoch has ended, `ended` sees it, with the old values of its atomics, before it is emptied.
    pub fn open(&mut self, ended: impl FnOnce(&WriteLog)) {
        if !self.shelf.filled.load(Ordering::Acquire) {
            return;
        }
        self.shelf.swap(&mut self.log);
        self.shelf.filled.store(false, Ordering::Release);
        if self.log.is_applied() {
            ended(&self.log);
            self.log.clear();
            self.announced = false;
        }
    }

    /// Leaves the writes for the end of the epoch.
    pub fn close(&mut self) {
        if self.log.is_empty() {
            return;
        }
        self.shelf.swap(&mut self.log);
        self.shelf.filled.store(true, Ordering::Release);
        if !self.announced {
            self.announced = true;
            self.memory.waiting.add(self.unit, &self.shelf);
        }
    }

    /// The time when writes at `time` can be seen by all units: the end of that epoch.
    pub fn visible_at(&self, time: SimTime) -> SimTime {
        self.memory.epoch_end(time)
    }
}

/// The writes of a unit that other units do not see yet, or whose end the unit has not seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedWriter(Option<Box<WriteLog>>);

impl Writer {
    /// The log as it lies between windows.
    pub fn save(&self) -> SavedWriter {
        let log = || self.shelf.log.lock().unwrap_or_else(PoisonError::into_inner).clone();
        SavedWriter(self.shelf.filled.load(Ordering::Acquire).then(log))
    }

    /// Leaves a saved log between windows of a unit that has written nothing; it is applied with the others of its epoch, unless it was
    /// before it was saved.
    pub fn restore(&mut self, saved: SavedWriter) {
        let Some(mut log) = saved.0 else { return };
        self.announced = true;
        if !log.is_applied() {
            self.memory.waiting.add(self.unit, &self.shelf);
        }
        self.shelf.swap(&mut log);
        self.shelf.filled.store(true, Ordering::Release);
    }
}

impl Deref for Writer {
    type Target = WriteLog;

    fn deref(&self) -> &WriteLog {
        &self.log
    }
}

impl DerefMut for Writer {
    fn deref_mut(&mut self) -> &mut WriteLog {
        &mut self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EpochHook;
    use crate::memory::Bounds;

    fn word(memory: &DeviceMemory) -> u8 {
        let mut byte = [0];
        assert!(memory.read(DeviceMemory::BASE, &mut byte));
        byte[0]
    }

    #[test]
    fn writes_of_several_windows_become_visible_at_the_end_of_the_epoch() {
        let memory = Arc::new(DeviceMemory::new(4096).expect("a page can be mapped"));
        let mut log = WriteLog::default();
        log.map(SimTime(0), DeviceMemory::BASE, 64, Bounds::Allocations);
        memory.apply(&mut log);
        let (mut first, mut second) = (memory.writer(7), memory.writer(3));
        // The later write of one byte wins; of two at the same time, that of the later unit.
        let write = |writer: &mut Writer, time, value| {
            writer.open(|_| panic!("no epoch has ended"));
            writer.fill(SimTime(time), DeviceMemory::BASE, 1, value, 1);
            writer.close();
        };
        write(&mut first, 5, 1);
        write(&mut second, 6, 2);
        write(&mut first, 6, 3);
        assert_eq!(word(&memory), 0);
        memory.epoch_ends();
        assert_eq!(word(&memory), 3);
        let mut ended = false;
        first.open(|log| ended = !log.is_empty());
        assert!(ended && first.is_empty());
        // Nothing is applied a second time.
        first.fill(SimTime(9), DeviceMemory::BASE, 1, 9, 1);
        first.close();
        memory.epoch_ends();
        memory.epoch_ends();
        assert_eq!(word(&memory), 9);
        second.open(|log| assert!(!log.is_empty()));
    }
}
