//! Sets of the 4 KiB pages of a 2 MiB block.

use super::{BLOCK_LEAVES, BLOCK_PAGES, LEAF_PAGES};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

const WORD_PAGES: usize = u64::BITS as usize;
const WORDS: usize = BLOCK_PAGES / WORD_PAGES;

/// A set of the 512 pages of a block, a bit each.
///
/// Page 0 is the first page of the block's first 64 KiB leaf. A block with fewer pages leaves the rest empty.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSet([u64; WORDS]);

/// The lowest `count` bits.
const fn low_bits(count: usize) -> u64 {
    if count >= WORD_PAGES { u64::MAX } else { (1 << count) - 1 }
}

/// The bits of `pages` that lie in word `word`.
fn word_bits(pages: &Range<usize>, word: usize) -> u64 {
    let first = word * WORD_PAGES;
    low_bits(pages.end.saturating_sub(first)) & !low_bits(pages.start.saturating_sub(first))
}

impl PageSet {
    /// No page.
    pub const EMPTY: PageSet = PageSet([0; WORDS]);
    /// All 512 pages.
    pub const FULL: PageSet = PageSet([u64::MAX; WORDS]);

    /// The pages of a range, as far as a block has them.
    pub fn range(pages: Range<usize>) -> PageSet {
        PageSet(std::array::from_fn(|word| word_bits(&pages, word)))
    }

    /// The pages of one 64 KiB leaf.
    pub fn leaf(leaf: usize) -> PageSet {
        PageSet::range(leaf * LEAF_PAGES..(leaf + 1) * LEAF_PAGES)
    }

    /// Adds a page; true where it was not there.
    ///
    /// # Panics
    ///
    /// Where a block has no such page.
    pub fn insert(&mut self, page: usize) -> bool {
        let (word, bit) = (&mut self.0[page / WORD_PAGES], 1 << (page % WORD_PAGES));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Takes a page out; true where it was there.
    ///
    /// # Panics
    ///
    /// Where a block has no such page.
    pub fn remove(&mut self, page: usize) -> bool {
        let (word, bit) = (&mut self.0[page / WORD_PAGES], 1 << (page % WORD_PAGES));
        let there = *word & bit != 0;
        *word &= !bit;
        there
    }

    /// Is the page in the set? A page that no block has is in none.
    pub fn contains(&self, page: usize) -> bool {
        self.0.get(page / WORD_PAGES).is_some_and(|word| word >> (page % WORD_PAGES) & 1 == 1)
    }

    /// Is every page of `other` in this set?
    pub fn contains_all(&self, other: PageSet) -> bool {
        other.difference(*self).is_empty()
    }

    /// Is there no page?
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// How many pages.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// How many pages of a range.
    pub fn count(&self, pages: Range<usize>) -> usize {
        let words = pages.start / WORD_PAGES..pages.end.div_ceil(WORD_PAGES).min(WORDS);
        words.map(|word| (self.0[word] & word_bits(&pages, word)).count_ones() as usize).sum()
    }

    /// How many pages of a 64 KiB leaf.
    pub fn count_in_leaf(&self, leaf: usize) -> usize {
        self.count(leaf * LEAF_PAGES..(leaf + 1) * LEAF_PAGES)
    }

    /// The pages in either set.
    #[must_use]
    pub fn union(self, other: PageSet) -> PageSet {
        self.by_word(other, |a, b| a | b)
    }

    /// The pages in both sets.
    #[must_use]
    pub fn intersection(self, other: PageSet) -> PageSet {
        self.by_word(other, |a, b| a & b)
    }

    /// The pages in this set and not in the other.
    #[must_use]
    pub fn difference(self, other: PageSet) -> PageSet {
        self.by_word(other, |a, b| a & !b)
    }

    fn by_word(self, other: PageSet, operation: impl Fn(u64, u64) -> u64) -> PageSet {
        PageSet(std::array::from_fn(|word| operation(self.0[word], other.0[word])))
    }

    /// The first page at or after `page`.
    pub fn first_from(&self, page: usize) -> Option<usize> {
        let first_word = page / WORD_PAGES;
        (first_word..WORDS).find_map(|word| {
            let skipped = if word == first_word { page % WORD_PAGES } else { 0 };
            let rest = self.0[word] & !low_bits(skipped);
            (rest != 0).then(|| word * WORD_PAGES + rest.trailing_zeros() as usize)
        })
    }

    /// The first page at or after `page` that is not in the set; 512 where all are.
    pub fn first_absent_from(&self, page: usize) -> usize {
        PageSet::FULL.difference(*self).first_from(page).unwrap_or(BLOCK_PAGES)
    }

    /// The longest ranges of contiguous pages, ascending.
    pub fn runs(self) -> impl Iterator<Item = Range<usize>> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let start = self.first_from(next)?;
            next = self.first_absent_from(start);
            Some(start..next)
        })
    }

    /// The pages, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let page = self.first_from(next)?;
            next = page + 1;
            Some(page)
        })
    }

    /// The 64 KiB leaves with at least one page in the set, ascending.
    pub fn leaves(self) -> impl Iterator<Item = usize> {
        (0..BLOCK_LEAVES).filter(move |&leaf| self.count_in_leaf(leaf) > 0)
    }
}

impl FromIterator<usize> for PageSet {
    /// # Panics
    ///
    /// Where a block has no such page.
    fn from_iter<T: IntoIterator<Item = usize>>(pages: T) -> PageSet {
        let mut set = PageSet::EMPTY;
        for page in pages {
            set.insert(page);
        }
        set
    }
}

impl fmt::Debug for PageSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.runs()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{Rng, SeedableRng};
    use rand_pcg::Pcg32;
    use std::collections::BTreeSet;

    fn random_pages(random: &mut Pcg32) -> BTreeSet<usize> {
        let runs = random.next_u32() % 6;
        let mut pages = BTreeSet::new();
        for _ in 0..runs {
            let start = random.next_u32() as usize % BLOCK_PAGES;
            let end = (start + 1 + random.next_u32() as usize % 150).min(BLOCK_PAGES);
            pages.extend(start..end);
        }
        pages
    }

    #[test]
    fn sets_of_pages_are_sets() {
        let mut random = Pcg32::seed_from_u64(1);
        for _ in 0..500 {
            let (a, b) = (random_pages(&mut random), random_pages(&mut random));
            let (x, y): (PageSet, PageSet) = (a.iter().copied().collect(), b.iter().copied().collect());
            let listed = |set: PageSet| set.iter().collect::<BTreeSet<_>>();
            assert_eq!(listed(x), a);
            assert_eq!((x.len(), x.is_empty()), (a.len(), a.is_empty()));
            assert_eq!(listed(x.union(y)), &a | &b);
            assert_eq!(listed(x.intersection(y)), &a & &b);
            assert_eq!(listed(x.difference(y)), &a - &b);
            assert_eq!(x.contains_all(y), b.is_subset(&a));
            let (from, to) = (random.next_u32() as usize % 513, random.next_u32() as usize % 513);
            assert_eq!(x.count(from..to), a.iter().filter(|page| (from..to).contains(page)).count());
            assert_eq!(PageSet::range(from..to).len(), to.saturating_sub(from));
            assert_eq!(x.first_from(from), a.range(from..).next().copied());
            assert_eq!(x.first_absent_from(from), (from..=512).find(|page| !a.contains(page)).expect("512 is absent"));
            let runs: Vec<_> = x.runs().collect();
            assert_eq!(runs.iter().cloned().flatten().collect::<BTreeSet<_>>(), a);
            assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start), "{runs:?}");
            assert_eq!(x.leaves().collect::<BTreeSet<_>>(), a.iter().map(|page| page / 16).collect());
        }
    }

    #[test]
    fn pages_come_and_go() {
        let mut set = PageSet::range(60..70);
        assert_eq!((set.insert(70), set.insert(64), set.remove(60), set.remove(60)), (true, false, true, false));
        assert_eq!(set, PageSet::range(61..71));
        assert_eq!((set.contains(61), set.contains(71), set.contains(600)), (true, false, false));
        assert_eq!(PageSet::leaf(31), PageSet::range(496..512));
        assert_eq!(PageSet::range(0..512), PageSet::FULL);
        assert_eq!(format!("{set:?}"), "{61..71}");
    }
}
