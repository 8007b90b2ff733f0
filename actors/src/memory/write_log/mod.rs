//! The writes of one unit to device memory in one value epoch.
//!
//! The log holds entries in the order of their times. Each concern has a room of its own with its entries, how they are logged, and their
//! effect on memory:
//!
//! - [`store`]: stores of warps,
//! - [`lines`]: stores of warps that run for their values alone,
//! - [`lane_operation`]: atomics and heap operations, which return a value to each lane,
//! - [`bulk`]: writes, fills and copies of the host and the copy engines,
//! - [`legality`]: the addresses that are mapped, and their owners,
//! - [`gpu_state`]: textures, device heaps and printed text.

mod bulk;
mod filter;
mod gpu_state;
mod lane_operation;
mod legality;
mod lines;
mod overlay;
mod store;

pub use lane_operation::AtomicResult;
pub(crate) use lane_operation::LoggedKind;

use super::arena::Arena;
use balar_protocol::SimTime;
use bulk::BulkOperation;
use filter::SectorFilter;
use gpu_state::GpuStateChange;
use lane_operation::{LaneOperation, LoggedLane};
use legality::LegalityChange;
use lines::Lines;
pub use lines::Unknown;
use serde::{Deserialize, Serialize};
use store::{StoredRuns, Stores};

/// A unit's writes to device memory within one value epoch, and after it the old values of its atomics.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WriteLog {
    entries: Vec<Entry>,
    /// Stores of warps.
    stores: Stores,
    /// Stores of warps that run for their values alone.
    lines: Lines,
    /// The lanes of atomics and heap operations.
    lanes: Vec<LoggedLane>,
    /// Printed records, one after the other.
    text: Vec<u8>,
    /// The sectors that stores and atomics of this epoch write.
    filter: SectorFilter,
    /// Was an entry logged at an earlier time than the one before it?
    disordered: bool,
    /// The epoch has ended, and atomics have their old values.
    applied: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    time: SimTime,
    kind: EntryKind,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum EntryKind {
    Store(StoredRuns),
    /// All that was gathered by lines.
    Lines,
    Lanes(LaneOperation),
    Bulk(BulkOperation),
    Legality(LegalityChange),
    GpuState(GpuStateChange),
}

impl Entry {
    /// The operation, of an entry of lanes.
    fn lanes(&self) -> Option<&LaneOperation> {
        match &self.kind {
            EntryKind::Lanes(operation) => Some(operation),
            _ => None,
        }
    }
}

/// What each file of this folder logs is a kind of entry.
macro_rules! entry_kinds {
    ($($kind:ident: $logged:ty),* $(,)?) => {
        $(impl From<$logged> for EntryKind {
            fn from(logged: $logged) -> EntryKind {
                EntryKind::$kind(logged)
            }
        })*
    };
}
entry_kinds! {
    Store: StoredRuns,
    Lanes: LaneOperation,
    Bulk: BulkOperation,
    Legality: LegalityChange,
    GpuState: GpuStateChange,
}

// Most entries are small: an image, the one large thing, is in a box.
const _: () = assert!(size_of::<Entry>() <= 64);

impl WriteLog {
    /// Is there nothing to apply?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// When an entry takes effect; `None` behind the last one.
    pub(super) fn time(&self, entry: usize) -> Option<SimTime> {
        self.entries.get(entry).map(|entry| entry.time)
    }

    /// Forgets everything; a unit calls it at the start of its next window, after reading [`Self::atomic_results`].
    pub fn clear(&mut self) {
        if !self.entries.is_empty() {
            self.entries.clear();
            self.stores.clear();
            self.lines.clear();
            self.lanes.clear();
            self.text.clear();
            self.filter = SectorFilter::default();
            self.disordered = false;
            self.applied = false;
        }
    }

    /// Has the epoch ended in which it was written?
    pub(super) fn is_applied(&self) -> bool {
        self.applied
    }

    pub(super) fn set_applied(&mut self) {
        self.applied = true;
    }

    fn push(&mut self, time: SimTime, kind: impl Into<EntryKind>) {
        self.disordered |= self.entries.last().is_some_and(|last| last.time > time);
        self.entries.push(Entry { time, kind: kind.into() });
    }

    /// All that was gathered by lines is an entry.
    fn push_lines(&mut self, time: SimTime) {
        self.push(time, EntryKind::Lines);
    }

    /// Puts the entries in the order of their times; entries of one time stay as they were logged.
    pub(super) fn put_in_order(&mut self) {
        if self.disordered {
            self.entries.sort_by_key(|entry| entry.time);
            self.disordered = false;
        }
    }

    /// Applies an entry to memory.
    pub(super) fn apply(&mut self, entry: usize, arena: &mut Arena) {
        match &mut self.entries[entry].kind {
            EntryKind::Store(runs) => self.stores.apply(runs, arena),
            EntryKind::Lines => self.lines.apply(arena),
            EntryKind::Lanes(operation) => operation.apply(&mut self.lanes, arena),
            EntryKind::Bulk(operation) => operation.apply(arena),
            EntryKind::Legality(change) => change.apply(arena),
            EntryKind::GpuState(change) => change.apply(&self.text, arena),
        }
    }
}

#[cfg(test)]
mod tests;
