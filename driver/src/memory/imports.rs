//! Memory of other processes that a process has opened (`cudaIpc*`).
//!
//! All processes of a node have one address space, so memory that is opened lies where its owner has it. It is its owner's alone to
//! free: when it ends, it ends for all.

use crate::effect::{Effects, MemoryChange};
use balar_protocol::ProcessId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Allocations that other processes than their owners have opened, by process and first address: how many times.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Imports(BTreeMap<ProcessId, BTreeMap<u64, u32>>);

impl Imports {
    /// Has the process opened the allocation that begins there?
    pub fn holds(&self, process: ProcessId, base: u64) -> bool {
        self.0.get(&process).is_some_and(|its| its.contains_key(&base))
    }

    /// A process opens an allocation once more.
    pub fn open(&mut self, process: ProcessId, base: u64, effects: &mut Effects) {
        *self.0.entry(process).or_default().entry(base).or_default() += 1;
        effects.change(MemoryChange::Share { address: base, process, enabled: true });
    }

    /// Memory that a process has opened is closed once.
    pub fn close(&mut self, process: ProcessId, base: u64, effects: &mut Effects) {
        // Another thread may have closed it meanwhile.
        let Some(its) = self.0.get_mut(&process) else { return };
        let Some(count) = its.get_mut(&base) else { return };
        *count -= 1;
        if *count == 0 {
            its.remove(&base);
            effects.change(MemoryChange::Share { address: base, process, enabled: false });
        }
    }

    /// All that a process has opened is closed.
    pub fn close_all(&mut self, process: ProcessId, effects: &mut Effects) {
        for address in self.0.remove(&process).unwrap_or_default().into_keys() {
            effects.change(MemoryChange::Share { address, process, enabled: false });
        }
    }

    /// An allocation has ended: nobody has it open any more.
    pub fn forget(&mut self, base: u64) {
        for its in self.0.values_mut() {
            its.remove(&base);
        }
    }
}
