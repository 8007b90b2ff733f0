//! TLB shootdowns of a GMMU: the TLBs that have yet to drop entries, and the steps after that.

use super::walks::Asked;
use balar_protocol::migration::ShootdownScope;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// What follows a shootdown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Then {
    /// Nothing.
    Nothing,
    /// The driver is told that its pages are unmapped.
    Unmapped {
        /// The driver's number.
        id: u32,
    },
    /// Pages that have been mapped can be given out.
    Mapped {
        /// The pages.
        pages: Range<u64>,
        /// Requests that wait for them go on.
        replay: bool,
        /// Requests whose pages were looked up meanwhile.
        held: Vec<(u64, Asked)>,
    },
}

/// A shootdown under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Shootdown {
    /// Acknowledgements that have not come.
    remaining: u32,
    then: Then,
}

/// The shootdowns under way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Shootdowns {
    next: u32,
    /// The first cycle in which an invalidation can begin.
    free: u64,
    under_way: BTreeMap<u32, Shootdown>,
    /// How many of them hold requests back.
    mappings: u32,
}

/// The ranges that are invalidated for a range of pages. Where mapped pages matter, they are given.
pub fn ranges(scope: ShootdownScope, pages: &Range<u64>, mapped: impl FnOnce() -> Vec<u64>) -> Vec<(u64, u64)> {
    match scope {
        ShootdownScope::Entry => mapped().into_iter().map(|page| (page, crate::unified_memory::PAGE_BYTES)).collect(),
        ShootdownScope::Range => vec![(pages.start, pages.end - pages.start)],
        ShootdownScope::All => vec![(0, u64::MAX)],
    }
}

impl Shootdowns {
    /// A shootdown begins that so many acknowledgements end; gives its number.
    pub fn begin(&mut self, acknowledgements: u32, then: Then) -> u32 {
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.mappings += u32::from(matches!(then, Then::Mapped { .. }));
        self.under_way.insert(id, Shootdown { remaining: acknowledgements, then });
        id
    }

    /// The GMMU begins an invalidation, in `cycle` at the earliest; gives the cycle in which it leaves.
    pub fn take_time(&mut self, cycle: u64, latency: u32) -> u64 {
        self.free = self.free.max(cycle) + u64::from(latency);
        self.free
    }

    /// A TLB has dropped the entries of a shootdown; gives the next step where it was the last.
    pub fn acknowledge(&mut self, id: u32) -> Option<Then> {
        let shootdown = self.under_way.get_mut(&id)?;
        shootdown.remaining = shootdown.remaining.saturating_sub(1);
        if shootdown.remaining > 0 {
            return None;
        }
        let then = self.under_way.remove(&id)?.then;
        self.mappings -= u32::from(matches!(then, Then::Mapped { .. }));
        Some(then)
    }

    /// Keeps a request back whose page has been mapped while TLBs still hold old entries. False where it need not wait.
    pub fn holds(&mut self, page: u64, asked: Asked) -> bool {
        if self.mappings == 0 {
            return false;
        }
        let found = self.under_way.values_mut().find_map(|shootdown| match &mut shootdown.then {
            Then::Mapped { pages, held, .. } if pages.contains(&page) => Some(held),
            _ => None,
        });
        found.map(|held| held.push((page, asked))).is_some()
    }

    /// Shootdowns under way, and acknowledgements that have not come.
    pub fn under_way(&self) -> (usize, u32) {
        (self.under_way.len(), self.under_way.values().map(|shootdown| shootdown.remaining).sum())
    }
}
