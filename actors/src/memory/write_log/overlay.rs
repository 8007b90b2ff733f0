//! A unit's own writes, as its own loads see them before the epoch ends.

use super::{EntryKind, WriteLog};
use crate::memory::access_pattern::AccessPattern;
use balar_isa::execution::{LaneValues, MemoryAccess};
use balar_isa::program::lanes;

impl WriteLog {
    /// May a write of this window touch the access, which is aligned? False is certain.
    #[inline]
    pub fn may_touch(&self, access: &MemoryAccess) -> bool {
        !self.entries.is_empty() && self.filter.may_touch(access, AccessPattern::of(access))
    }

    /// As [`Self::may_touch`], for an access whose pattern is known.
    #[inline]
    pub(crate) fn may_touch_pattern(&self, access: &MemoryAccess, pattern: AccessPattern) -> bool {
        !self.entries.is_empty() && self.filter.may_touch(access, pattern)
    }

    /// Lays this window's own stores over the `values` from the arena.
    ///
    /// # Errors
    ///
    /// An own atomic of the window touches the access: the value is not known yet. The error is the token of the latest such
    /// atomic; the values mean nothing.
    pub fn overlay(&self, access: &MemoryAccess, values: &mut LaneValues) -> Result<(), u32> {
        let bytes = u64::from(access.bytes);
        let addresses = || lanes(access.mask).map(|lane| access.addresses[lane]);
        let (Some(low), Some(high)) = (addresses().min(), addresses().max()) else { return Ok(()) };
        let near = |address: u64, length: u64| address < high + bytes && low < address + length;
        let touches = |address: u64, length: u64| {
            near(address, length) && addresses().any(|start| address < start + bytes && start < address + length)
        };
        let mut blocking = None;
        for entry in &self.entries {
            match &entry.kind {
                EntryKind::Lanes(operation)
                    if operation.written(&self.lanes).any(|(address, length)| touches(address, length)) =>
                {
                    blocking = Some(operation.token);
                }
                EntryKind::Store(runs) if blocking.is_none() => {
                    for run in self.stores.runs(*runs).iter().filter(|run| near(run.address, u64::from(run.bytes))) {
                        lay_over(run.address, self.stores.data(run), access, values);
                    }
                }
                _ => {}
            }
        }
        blocking.map_or(Ok(()), Err)
    }
}

/// Lays `data`, which is stored from `address` on, over the lanes that it touches.
fn lay_over(address: u64, data: &[u8], access: &MemoryAccess, values: &mut LaneValues) {
    let bytes = u64::from(access.bytes);
    let end = address + data.len() as u64;
    for lane in lanes(access.mask) {
        let start = access.addresses[lane];
        let (from, to) = (start.max(address), (start + bytes).min(end));
        if from < to {
            let mut value = values.get(lane).to_le_bytes();
            value[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&data[(from - address) as usize..(to - address) as usize]);
            values.set(lane, u128::from_le_bytes(value));
        }
    }
}
