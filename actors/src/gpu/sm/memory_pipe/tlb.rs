//! The TLBs that an SM reaches without the GMMU, and the counts of its uses of pages that the driver of unified memory follows.

use crate::gpu::tlb::{Tlb, covers};
use balar_protocol::translation::{Aperture, Translation};
use serde::{Deserialize, Serialize};

/// How often a page has been used since that was last reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Requests that went there.
    pub requests: u32,
    /// One of them changed it.
    pub written: bool,
    /// The cycle of the last report.
    pub reported: Option<u64>,
    /// A report has said that it was changed.
    pub dirty: bool,
}

/// One level of the TLBs of an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Level {
    entries: Tlb<Use>,
    /// The translation that was found last. It is found again without a search, which is no further use of it.
    recent: Translation,
}

/// No request has this address.
const NOWHERE: Translation =
    Translation { page: u64::MAX, valid_bits: 0, aperture: Aperture::Device, writable: false, followed: false };

impl Level {
    /// Room for `entries`, in sets of `ways` of them (0: all in one), each for at most `reach` bytes, a power of two.
    pub fn new(reach: u64, entries: u32, ways: u32) -> Level {
        Level { entries: Tlb::new(reach, entries, ways), recent: NOWHERE }
    }

    /// The translation of `address`, if it is held and allows to write where `writes` is set.
    #[inline(always)]
    pub fn lookup(&mut self, address: u64, writes: bool) -> Option<&Translation> {
        if covers(&self.recent, address) && (self.recent.writable || !writes) {
            return Some(&self.recent);
        }
        self.search(address, writes)
    }

    #[inline(never)]
    fn search(&mut self, address: u64, writes: bool) -> Option<&Translation> {
        let (translation, _) = self.entries.lookup(address, writes)?;
        self.recent = translation;
        Some(&self.recent)
    }

    /// Holds a translation around `address`. Gives the entry that had to go.
    pub fn insert(&mut self, address: u64, translation: &Translation, used: Use) -> Option<(Translation, Use)> {
        let allows = |translation: &Translation| (translation.aperture, translation.writable, translation.followed);
        if covers(&self.recent, address) && allows(&self.recent) != allows(translation) {
            self.recent = NOWHERE;
        }
        let gone = self.entries.insert(address, translation, used);
        if gone.is_some_and(|(gone, _)| gone.page == self.recent.page && gone.valid_bits == self.recent.valid_bits) {
            self.recent = NOWHERE;
        }
        gone
    }

    /// How often the page of `address` has been used, if it is held, with the page.
    pub fn used(&mut self, address: u64) -> Option<(Translation, &mut Use)> {
        self.entries.peek(address)
    }

    /// Drops the entries that overlap the range; `dropped` is told of each. Gives how many there were.
    pub fn invalidate(&mut self, address: u64, bytes: u64, mut dropped: impl FnMut(&Translation, Use)) -> u64 {
        self.recent = NOWHERE;
        self.entries.invalidate(address, bytes, |translation, used| dropped(&translation, used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::tlb::{IDENTITY_BITS, identity};
    use crate::test_support::Numbers;

    /// Against a list in the order of use. A page that was found last is found again without a search.
    #[test]
    fn the_page_that_was_found_last_stays_where_it_is_in_the_order_of_use() {
        let (mut level, mut numbers) = (Level::new(2 << 20, 16, 0), Numbers::new(9));
        let (mut list, mut recent): (Vec<u64>, Option<u64>) = (Vec::new(), None);
        let mut hits = 0;
        for step in 0..50_000 {
            // Few pages are used often.
            let most = if numbers.below(3) == 0 { 24 } else { 6 };
            let page = numbers.below(most);
            let address = (page << 21) + numbers.below(2 << 20);
            let is_held = list.contains(&page);
            assert_eq!(level.lookup(address, step % 2 == 0).is_some(), is_held, "step {step}");
            hits += u32::from(is_held);
            if is_held && recent != Some(page) {
                list.retain(|&other| other != page);
                list.push(page);
                recent = Some(page);
            } else if !is_held {
                let gone = (list.len() == 16).then(|| list.remove(0));
                list.push(page);
                recent = recent.filter(|_| gone != recent);
                let evicted = level.insert(address, &identity(address, IDENTITY_BITS), Use::default());
                assert_eq!(evicted.map(|(gone, _)| gone.page >> 21), gone, "step {step}");
            }
            if numbers.below(500) == 0 {
                let first = numbers.below(24);
                level.invalidate(first << 21, 3 << 21, |_, _| {});
                list.retain(|page| !(first..first + 3).contains(page));
                recent = None;
            }
        }
        assert!((10_000..49_000).contains(&hits), "{hits}");
    }

    #[test]
    fn the_page_that_was_found_last_is_forgotten_where_it_changes() {
        let mut level = Level::new(2 << 20, 16, 0);
        let read_only = Translation { writable: false, valid_bits: 12, page: 0, ..NOWHERE };
        level.insert(0, &read_only, Use::default());
        assert_eq!(level.lookup(0, true), None);
        assert_eq!(level.lookup(8, false), Some(&read_only));
        let remote = Translation { aperture: Aperture::Host, writable: true, ..read_only };
        level.insert(0, &remote, Use::default());
        assert_eq!(level.lookup(0, true), Some(&remote));
        assert_eq!(level.invalidate(0, 1, |_, _| {}), 1);
        assert_eq!(level.lookup(0, false), None);
    }
}
