//! A TLB: translations of pages of several sizes together. The least recently used translation of a set goes first.

use crate::slab::{NONE, Slab};
use crate::unified_memory::PAGE_BYTES;
use balar_protocol::translation::{Aperture, Translation};
use serde::{Deserialize, Serialize};

/// Binary logarithm of the bytes around an address for which [`identity`] is true: the smallest part of the memory map in which all memory
/// is of one kind, half of the host window.
pub const IDENTITY_BITS: u8 = 39;

/// The translation of an address that is mapped onto itself, with `valid_bits` known bits.
#[inline]
pub fn identity(address: u64, valid_bits: u8) -> Translation {
    let aperture = if balar_host::memory::is_pinned(address) { Aperture::Host } else { Aperture::Device };
    Translation { page: page_of(address, valid_bits), valid_bits, aperture, writable: true, followed: false }
}

/// The first address of the page of `2^bits` bytes in which `address` lies.
#[inline]
pub const fn page_of(address: u64, bits: u8) -> u64 {
    address >> bits << bits
}

/// Is `address` one that the translation tells of?
#[inline]
pub const fn covers(translation: &Translation, address: u64) -> bool {
    (address ^ translation.page) >> translation.valid_bits == 0
}

/// A translation that is held, with the owner's note about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry<T> {
    /// The page's address, and in its low bits the binary logarithm of its bytes.
    key: u64,
    aperture: Aperture,
    writable: bool,
    followed: bool,
    kept: T,
    next_in_bucket: u32,
    /// Its neighbours in the order of use.
    newer: u32,
    older: u32,
}

/// The binary logarithm of the bytes of the page in an entry's key.
#[inline]
const fn bits_of(key: u64) -> u8 {
    (key & (PAGE_BYTES - 1)) as u8
}

impl<T> Entry<T> {
    fn translation(&self) -> Translation {
        Translation {
            page: self.key & !(PAGE_BYTES - 1),
            valid_bits: bits_of(self.key),
            aperture: self.aperture,
            writable: self.writable,
            followed: self.followed,
        }
    }
}

/// Entries among which one is chosen to go: the ends of their list in the order of use.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Set {
    newest: u32,
    oldest: u32,
    held: u32,
}

/// A translation cache, set-associative or fully associative. Each operation but [`Tlb::invalidate`] takes the same time for any number of
/// entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tlb<T> {
    /// Binary logarithm of the most bytes of an entry.
    reach_bits: u8,
    /// Entries of a set.
    ways: u32,
    entries: Slab<Entry<T>>,
    /// The first entry of each chain, by a hash of the key.
    buckets: Vec<u32>,
    sets: Vec<Set>,
    /// Which sizes there are, with the number of entries of each.
    sizes: Vec<(u8, u32)>,
}

impl<T> Tlb<T> {
    /// Room for `entries`, in sets of `ways` of them (0: all in one), each for at most `reach` bytes, a power of two.
    pub fn new(reach: u64, entries: u32, ways: u32) -> Tlb<T> {
        let ways = if ways == 0 { entries } else { ways.min(entries) };
        let sets = entries.checked_div(ways).unwrap_or(0);
        Tlb {
            reach_bits: reach.trailing_zeros() as u8,
            ways,
            entries: Slab::default(),
            buckets: vec![NONE; (entries as usize).next_power_of_two().max(2)],
            sets: vec![Set { newest: NONE, oldest: NONE, held: 0 }; sets as usize],
            sizes: Vec::new(),
        }
    }

    /// Have both room for the same entries?
    pub fn is_like(&self, other: &Tlb<T>) -> bool {
        let shape = |tlb: &Tlb<T>| (tlb.reach_bits, tlb.ways, tlb.buckets.len(), tlb.sets.len());
        shape(self) == shape(other)
    }

    #[inline]
    fn bucket(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.buckets.len().trailing_zeros())) as usize
    }

    #[inline]
    fn set(&self, key: u64) -> usize {
        if self.sets.len() == 1 { 0 } else { ((key >> bits_of(key)) % self.sets.len() as u64) as usize }
    }

    /// The entry with this key.
    #[inline]
    fn at(&self, key: u64) -> Option<u32> {
        let mut at = self.buckets[self.bucket(key)];
        while at != NONE {
            let entry = &self.entries[at];
            if entry.key == key {
                return Some(at);
            }
            at = entry.next_in_bucket;
        }
        None
    }

    /// An entry of `address`, for the smallest page that may be accessed so.
    #[inline]
    fn find(&self, address: u64, writes: bool) -> Option<u32> {
        let with_size = |&(bits, _): &(u8, u32)| self.at(page_of(address, bits) | u64::from(bits));
        self.sizes.iter().filter_map(with_size).find(|&at| !writes || self.entries[at].writable)
    }

    /// The translation of `address`, if it is held and allows to write where `writes` is set, and the note about it. It counts as used.
    #[inline]
    pub fn lookup(&mut self, address: u64, writes: bool) -> Option<(Translation, &mut T)> {
        let at = self.find(address, writes)?;
        let set = self.set(self.entries[at].key);
        if self.sets[set].newest != at {
            self.unlink(at, set);
            self.link(at, set);
        }
        let entry = &mut self.entries[at];
        Some((entry.translation(), &mut entry.kept))
    }

    /// The translation of `address`, if it is held, and the note about it. It does not count as used.
    pub fn peek(&mut self, address: u64) -> Option<(Translation, &mut T)> {
        let at = self.find(address, false)?;
        let entry = &mut self.entries[at];
        Some((entry.translation(), &mut entry.kept))
    }

    /// Holds as much of a translation as an entry reaches, around `address`. An entry of the same page is replaced: its place in the order
    /// of use and the note about it stay. Gives the entry that had to go.
    pub fn insert(&mut self, address: u64, translation: &Translation, kept: T) -> Option<(Translation, T)> {
        if self.sets.is_empty() {
            return None;
        }
        let bits = self.reach_bits.min(translation.valid_bits);
        let key = page_of(address, bits) | u64::from(bits);
        let Translation { aperture, writable, followed, .. } = *translation;
        if let Some(at) = self.at(key) {
            let entry = &mut self.entries[at];
            (entry.aperture, entry.writable, entry.followed) = (aperture, writable, followed);
            return None;
        }
        let set = self.set(key);
        let gone = (self.sets[set].held == self.ways).then(|| self.remove(self.sets[set].oldest));
        let bucket = self.bucket(key);
        let next_in_bucket = self.buckets[bucket];
        let entry = Entry { key, aperture, writable, followed, kept, next_in_bucket, newer: NONE, older: NONE };
        let at = self.entries.insert(entry);
        self.buckets[bucket] = at;
        self.link(at, set);
        match self.sizes.iter_mut().find(|(size, _)| *size == bits) {
            Some((_, count)) => *count += 1,
            None => {
                self.sizes.push((bits, 1));
                self.sizes.sort_unstable();
            }
        }
        gone
    }

    /// Drops the entries that overlap the range; `dropped` is told of each. Gives how many there were.
    pub fn invalidate(&mut self, address: u64, bytes: u64, mut dropped: impl FnMut(Translation, T)) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let last = address.saturating_add(bytes - 1);
        let pages = self.sizes.iter().map(|&(bits, _)| (last >> bits) - (address >> bits) + 1);
        let pages = pages.fold(0, u64::saturating_add);
        let found: Vec<u32> = if pages <= u64::from(self.entries.len()) {
            let sizes = self.sizes.iter();
            let keys = sizes.flat_map(|&(bits, _)| {
                (address >> bits..=last >> bits).map(move |page| page << bits | u64::from(bits))
            });
            keys.filter_map(|key| self.at(key)).collect()
        } else {
            let overlaps = |&at: &u32| {
                let Translation { page, valid_bits, .. } = self.entries[at].translation();
                page <= last && page_of(address, valid_bits) <= page
            };
            self.in_order_of_use().filter(overlaps).collect()
        };
        for &at in &found {
            let (translation, kept) = self.remove(at);
            dropped(translation, kept);
        }
        found.len() as u64
    }

    /// The entries set by set, each from the one used last.
    fn in_order_of_use(&self) -> impl Iterator<Item = u32> {
        let exists = |&at: &u32| at != NONE;
        self.sets.iter().flat_map(move |set| {
            std::iter::successors(Some(set.newest).filter(exists), move |&at| {
                Some(self.entries[at].older).filter(exists)
            })
        })
    }

    fn remove(&mut self, at: u32) -> (Translation, T) {
        let key = self.entries[at].key;
        self.unlink(at, self.set(key));
        let bucket = self.bucket(key);
        let next = self.entries[at].next_in_bucket;
        if self.buckets[bucket] == at {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.entries[before].next_in_bucket != at {
                before = self.entries[before].next_in_bucket;
            }
            self.entries[before].next_in_bucket = next;
        }
        if let Some(place) = self.sizes.iter().position(|&(bits, _)| bits == bits_of(key)) {
            self.sizes[place].1 -= 1;
            if self.sizes[place].1 == 0 {
                self.sizes.remove(place);
            }
        }
        let entry = self.entries.remove(at);
        (entry.translation(), entry.kept)
    }

    /// Takes an entry out of the order of use.
    fn unlink(&mut self, at: u32, set: usize) {
        let Entry { newer, older, .. } = self.entries[at];
        match newer {
            NONE => self.sets[set].newest = older,
            newer => self.entries[newer].older = older,
        }
        match older {
            NONE => self.sets[set].oldest = newer,
            older => self.entries[older].newer = newer,
        }
        self.sets[set].held -= 1;
    }

    /// Puts an entry into the order of use, as the one used last.
    fn link(&mut self, at: u32, set: usize) {
        let older = std::mem::replace(&mut self.sets[set].newest, at);
        match older {
            NONE => self.sets[set].oldest = at,
            older => self.entries[older].newer = at,
        }
        let entry = &mut self.entries[at];
        (entry.newer, entry.older) = (NONE, older);
        self.sets[set].held += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::Numbers;

    fn page(address: u64, bits: u8) -> Translation {
        identity(address, bits)
    }

    fn holds(tlb: &mut Tlb<u32>, address: u64) -> bool {
        tlb.lookup(address, false).is_some()
    }

    #[test]
    fn reach_is_entries_times_page() {
        let mut tlb = Tlb::new(2 << 20, 16, 0);
        for number in 0..16u64 {
            assert!(!holds(&mut tlb, number << 21));
            assert_eq!(tlb.insert(number << 21, &page(number << 21, IDENTITY_BITS), 7), None);
        }
        assert!((0..16).all(|number| holds(&mut tlb, (number << 21) + 12345)));
        let gone = tlb.insert(16 << 21, &page(16 << 21, IDENTITY_BITS), 7);
        assert_eq!(gone, Some((page(0, 21), 7)), "the least recently used page goes");
        assert!(!holds(&mut tlb, 0) && holds(&mut tlb, 1 << 21));
    }

    #[test]
    fn pages_of_several_sizes_live_together() {
        let mut tlb = Tlb::new(32 << 20, 8, 0);
        for (address, bits) in [(0x1000, 12), (0x2_0000, 16), (0x20_0000, 21), (0x800_0000, 39)] {
            tlb.insert(address, &page(address, bits), 0);
        }
        for (address, found) in [
            (0xfff, None),
            (0x1fff, Some((0x1000, 12))),
            (0x2000, None),
            (0x2_ffff, Some((0x2_0000, 16))),
            (0x3f_ffff, Some((0x20_0000, 21))),
            (0x9ff_ffff, Some((0x800_0000, 25))),
            (0xa00_0000, None),
        ] {
            let translation = tlb.lookup(address, false).map(|(translation, _)| translation);
            assert_eq!(translation.map(|found| (found.page, found.valid_bits)), found, "{address:#x}");
        }
    }

    #[test]
    fn a_write_misses_where_it_is_not_allowed() {
        let mut tlb = Tlb::new(4096, 4, 0);
        let mut read_only = Translation { writable: false, ..page(0x1000, 12) };
        tlb.insert(0x1000, &read_only, 3);
        assert_eq!(tlb.lookup(0x1000, true), None);
        assert_eq!(tlb.lookup(0x1000, false), Some((read_only, &mut 3)));
        read_only.writable = true;
        assert_eq!(tlb.insert(0x1000, &read_only, 9), None);
        assert_eq!(tlb.lookup(0x1000, true), Some((read_only, &mut 3)), "what is kept stays");
    }

    #[test]
    fn a_set_has_its_ways() {
        // Four sets of two; pages 0, 4 and 8 share one.
        let mut tlb = Tlb::new(4096, 8, 2);
        for number in [0u64, 4, 1, 8] {
            tlb.insert(number << 12, &page(number << 12, 12), 0);
        }
        assert_eq!([0u64, 1, 4, 8].map(|number| holds(&mut tlb, number << 12)), [false, true, true, true]);
    }

    #[test]
    fn a_shootdown_drops_what_overlaps_it() {
        let build = || {
            let mut tlb = Tlb::new(2 << 20, 1024, 0);
            for number in 0..300u32 {
                let address = u64::from(number) << 12;
                tlb.insert(address, &page(address, 12), number);
            }
            tlb.insert(4 << 20, &page(4 << 20, 21), 1000);
            tlb
        };
        for (address, bytes, gone) in [
            (4096, 1, vec![1]),
            (4096, 4097, vec![1, 2]),
            (0x1fff, 2, vec![1, 2]),
            (299 << 12, 16 << 20, vec![1000, 299]),
            ((6 << 20) - 1, 1, vec![1000]),
            (6 << 20, u64::MAX, vec![]),
            (0, 0, vec![]),
        ] {
            let (mut tlb, mut dropped) = (build(), Vec::new());
            let count = tlb.invalidate(address, bytes, |_, number| dropped.push(number));
            dropped.sort_unstable_by_key(|&number| std::cmp::Reverse(number));
            let mut expected = gone.clone();
            expected.sort_unstable_by_key(|&number| std::cmp::Reverse(number));
            assert_eq!((count as usize, dropped), (gone.len(), expected), "{address:#x} {bytes:#x}");
        }
        let mut all = build();
        assert_eq!(all.invalidate(0, u64::MAX, |_, _| {}), 301);
        assert!(!holds(&mut all, 0) && !holds(&mut all, 4 << 20));
    }

    #[test]
    fn no_entries_hold_nothing() {
        let mut tlb = Tlb::new(4096, 0, 0);
        assert_eq!(tlb.insert(0, &page(0, 12), 0), None);
        assert!(!holds(&mut tlb, 0));
        assert_eq!(tlb.invalidate(0, u64::MAX, |_, _| {}), 0);
    }

    /// Against a list in the order of use, with pages of two sizes.
    #[test]
    fn agrees_with_a_list() {
        for (entries, ways) in [(48u32, 0u32), (48, 4), (5, 1)] {
            let mut tlb = Tlb::new(1 << 16, entries, ways);
            let sets = entries.checked_div(ways).map_or(1, u64::from);
            let most = (u64::from(entries) / sets) as usize;
            // (page, bits), the one used last at the end.
            let mut list: Vec<(u64, u8)> = Vec::new();
            let mut numbers = Numbers::new(5);
            for step in 0..20_000 {
                let address = numbers.below(200) << 12;
                let held = list.iter().copied().filter(|&(page, bits)| page == page_of(address, bits));
                let found = held.min_by_key(|&(_, bits)| bits);
                match numbers.below(40) {
                    0 => {
                        let bytes = numbers.below(1 << 17) + 1;
                        let before = list.len();
                        list.retain(|&(page, bits)| page + (1 << bits) <= address || address + bytes <= page);
                        assert_eq!(tlb.invalidate(address, bytes, |_, _| {}), (before - list.len()) as u64);
                    }
                    1..20 => {
                        let result = tlb.lookup(address, false).map(|(found, _)| (found.page, found.valid_bits));
                        assert_eq!(result, found, "step {step}");
                        if let Some(found) = found {
                            list.retain(|&other| other != found);
                            list.push(found);
                        }
                    }
                    choice => {
                        let bits = if choice < 30 { 12 } else { 16 };
                        let new = (page_of(address, bits), bits);
                        let set = |(page, bits): (u64, u8)| (page >> bits) % sets;
                        let full = list.iter().filter(|&&other| set(other) == set(new)).count() == most;
                        let oldest = list.iter().copied().find(|&other| set(other) == set(new));
                        let goes = oldest.filter(|_| full && !list.contains(&new));
                        let gone = tlb
                            .insert(address, &page(address, bits), ())
                            .map(|(gone, ())| (gone.page, gone.valid_bits));
                        assert_eq!(gone, goes, "step {step}");
                        list.retain(|&other| Some(other) != goes);
                        if !list.contains(&new) {
                            list.push(new);
                        }
                    }
                }
            }
        }
    }
}
