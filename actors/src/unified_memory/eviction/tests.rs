//! The vectors of the specification, section 2.5, random trees against its oracle, and each policy's order.

use super::*;
use crate::unified_memory::{Access, BlockId, PageSet};
use crate::unified_memory::{LEAF_PAGES, PAGE_BYTES};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// A memory where all pages may go but held ones.
#[derive(Default)]
struct Memory {
    /// Pages of each block: all, resident, held.
    blocks: Vec<(usize, PageSet, PageSet)>,
}

impl MemoryView for Memory {
    fn pages(&self, block: BlockId) -> usize {
        self.blocks[block.0 as usize].0
    }

    fn resident(&self, block: BlockId) -> PageSet {
        self.blocks[block.0 as usize].1
    }

    fn evictable(&self, block: BlockId) -> PageSet {
        let (_, resident, held) = self.blocks[block.0 as usize];
        resident.difference(held)
    }
}

fn random() -> Pcg32 {
    Pcg32::seed_from_u64(1)
}

const NO_OPTIONS: EvictionOptions = EvictionOptions { reserve_percent: 0, partial_leaves: false };

/// A memory with a policy.
struct Rig {
    memory: Memory,
    policy: Box<dyn EvictionPolicy>,
    random: Pcg32,
}

impl Rig {
    /// Blocks of these many pages, all of them there, arrived in their order.
    fn full(choice: EvictionChoice, options: EvictionOptions, pages: &[usize]) -> Rig {
        let mut rig = Rig { memory: Memory::default(), policy: choice.build(options), random: random() };
        for (block, &pages) in pages.iter().enumerate() {
            rig.memory.blocks.push((pages, PageSet::EMPTY, PageSet::EMPTY));
            rig.arrive(block as u32, PageSet::range(0..pages));
        }
        rig
    }

    fn arrive(&mut self, block: u32, pages: PageSet) {
        let resident = &mut self.memory.blocks[block as usize].1;
        *resident = resident.union(pages);
        self.policy.allocated(BlockId(block), Some(ChunkUse::Used));
        self.policy.arrived(BlockId(block), pages);
    }

    fn leave(&mut self, block: u32, pages: PageSet) {
        let resident = &mut self.memory.blocks[block as usize].1;
        *resident = resident.difference(pages);
        if resident.is_empty() {
            self.policy.allocated(BlockId(block), None);
        }
        self.policy.left(BlockId(block), pages);
    }

    fn access(&mut self, block: u32, page: usize) {
        self.policy.accessed(BlockId(block), page, Access::Read);
    }

    fn hold(&mut self, block: u32, pages: PageSet) {
        self.memory.blocks[block as usize].2 = pages;
    }

    /// Evicts: the block and the pages.
    fn evict(&mut self) -> Option<(u32, PageSet)> {
        let Victim { block, pages } = self.policy.victim(&self.memory, &mut self.random)?;
        assert!(self.memory.evictable(block).contains_all(pages));
        self.leave(block.0, pages);
        Some((block.0, pages))
    }

    /// Evicts: the chunks as KiB and first leaf.
    fn evict_chunks(&mut self) -> Vec<(u64, usize)> {
        let (_, pages) = self.evict().expect("something may go");
        pages.runs().map(|run| ((run.len() as u64 * PAGE_BYTES) >> 10, run.start / LEAF_PAGES)).collect()
    }
}

#[test]
fn the_tree_evicts_what_is_left_of_sparse_neighbourhoods() {
    // Rows of section 2.5: a tree of 512 KiB, leaves that are there, victims in their order, chunks.
    type Chunks<'a> = &'a [(u64, usize)];
    let check = |valid: &[usize], victims: &[usize], expected: &[Chunks]| {
        let mut rig = Rig::full(EvictionChoice::Tree, NO_OPTIONS, &[8 * LEAF_PAGES]);
        for leaf in (0..8).filter(|leaf| !valid.contains(leaf)) {
            rig.leave(0, PageSet::leaf(leaf));
        }
        // Victims are accessed in their order, then all others.
        for leaf in victims.iter().chain((0..8).filter(|leaf| !victims.contains(leaf)).collect::<Vec<_>>().iter()) {
            if valid.contains(leaf) {
                rig.access(0, leaf * LEAF_PAGES + 3);
            }
        }
        for chunks in expected {
            assert_eq!(rig.evict_chunks(), *chunks, "of {victims:?}");
        }
    };
    let all = [0, 1, 2, 3, 4, 5, 6, 7];
    check(&all, &[1, 3, 4, 0], &[&[(64, 1)], &[(64, 3)], &[(64, 4)], &[(64, 0), (64, 2), (192, 5)]]);
    check(&all, &[0, 1, 2], &[&[(64, 0)], &[(64, 1)], &[(128, 2)]]);
    let last: Chunks = &[(64, 0), (64, 2), (64, 4), (64, 6)];
    check(&all, &[1, 3, 5, 7, 0], &[&[(64, 1)], &[(64, 3)], &[(64, 5)], &[(64, 7)], last]);
    check(&all, &[0, 2, 4, 6], &[&[(64, 0)], &[(64, 2)], &[(64, 4)], &[(64, 6)]]);
    check(&[0, 1, 4, 5], &[0], &[&[(128, 0), (128, 4)]]);
}

#[test]
fn random_trees_agree_with_the_oracle() {
    // Section 2.6: level by level, a node with something in it yet less than half is emptied.
    fn oracle(valid: &mut [bool], leaf: usize) {
        valid[leaf] = false;
        let mut width = 2;
        while width <= valid.len() {
            for node in valid.chunks_mut(width) {
                let count = node.iter().filter(|&&leaf| leaf).count();
                if 0 < 2 * count && 2 * count < width {
                    node.fill(false);
                }
            }
            width *= 2;
        }
    }
    let mut generator = random();
    for _ in 0..1000 {
        let leaves = 1usize << (generator.next_u32() % 6);
        let mut rig = Rig::full(EvictionChoice::Tree, NO_OPTIONS, &[leaves * LEAF_PAGES]);
        let mut valid = vec![true; leaves];
        while valid.contains(&true) {
            let there: Vec<_> = (0..leaves).filter(|&leaf| valid[leaf]).collect();
            let mut order = there.clone();
            for index in (1..order.len()).rev() {
                order.swap(index, generator.next_u32() as usize % (index + 1));
            }
            order.iter().for_each(|leaf| rig.access(0, leaf * LEAF_PAGES));
            let before = valid.clone();
            oracle(&mut valid, order[0]);
            let expected =
                (0..leaves).filter(|&leaf| before[leaf] && !valid[leaf]).flat_map(|leaf| PageSet::leaf(leaf).iter());
            assert_eq!(rig.evict(), Some((0, expected.collect())), "{before:?}, first {}", order[0]);
        }
        assert_eq!(rig.evict(), None);
    }
}

#[test]
fn leaves_go_by_block_and_then_by_leaf() {
    let mut rig = Rig::full(EvictionChoice::SequentialLocal, NO_OPTIONS, &[64, 64, 64]);
    rig.access(0, 17);
    rig.access(2, 50);
    rig.access(0, 0);
    // Block 1 first, in its leaves' order (they arrived at once: by number), then block 2 without the leaf accessed, and so on.
    let evicted: Vec<_> =
        std::iter::from_fn(|| rig.evict()).map(|(block, pages)| (block, pages.leaves().next())).collect();
    let leaves = |block, leaves: [usize; 4]| leaves.map(|leaf| (block, Some(leaf)));
    assert_eq!(evicted, [leaves(1, [0, 1, 2, 3]), leaves(2, [0, 1, 2, 3]), leaves(0, [2, 3, 1, 0])].concat());
}

#[test]
fn partly_filled_leaves_go_where_they_may() {
    for choice in [EvictionChoice::SequentialLocal, EvictionChoice::Tree] {
        for (partial_leaves, expected) in [(false, None), (true, Some((0, PageSet::range(0..5))))] {
            let mut rig = Rig::full(choice, EvictionOptions { partial_leaves, ..NO_OPTIONS }, &[16]);
            rig.leave(0, PageSet::range(5..16));
            assert_eq!(rig.evict(), expected);
        }
        // All that a small block has of a leaf is a whole leaf.
        assert_eq!(Rig::full(choice, NO_OPTIONS, &[5]).evict(), Some((0, PageSet::range(0..5))));
    }
}

#[test]
fn pages_go_one_by_one() {
    let mut rig = Rig::full(EvictionChoice::LeastRecentPage, NO_OPTIONS, &[3, 2]);
    rig.access(0, 0);
    rig.access(1, 0);
    rig.hold(0, PageSet::range(1..2));
    let page = |block, page| Some((block, PageSet::range(page..page + 1)));
    assert_eq!(
        [rig.evict(), rig.evict(), rig.evict(), rig.evict(), rig.evict()],
        [page(0, 2), page(1, 1), page(0, 0), page(1, 0), None]
    );
    rig.hold(0, PageSet::EMPTY);
    assert_eq!([rig.evict(), rig.evict()], [page(0, 1), None]);
}

#[test]
fn random_pages_are_spread_and_spare_the_reserve() {
    let options = EvictionOptions { reserve_percent: 25, ..NO_OPTIONS };
    let mut seen = PageSet::EMPTY;
    let mut rig = Rig::full(EvictionChoice::RandomPage, options, &[16]);
    for _ in 0..1000 {
        let victim = rig.policy.victim(&rig.memory, &mut rig.random).expect("something may go");
        assert_eq!(victim.pages.len(), 1);
        seen = seen.union(victim.pages);
    }
    assert_eq!(seen, PageSet::range(4..16));
    // From the end of the list the search goes on at its start.
    rig.hold(0, PageSet::range(5..16));
    assert_eq!(rig.evict(), Some((0, PageSet::range(4..5))));
}

#[test]
fn blocks_go_whole() {
    for (choice, expected) in [
        (EvictionChoice::LeastRecentBlock, [1, 0, 2]),
        // Block 2 was accessed least; of 0 and 1, both accessed twice, 1 was written.
        (EvictionChoice::LeastFrequentBlock, [2, 0, 1]),
        (EvictionChoice::Driver, [0, 1, 2]),
    ] {
        let mut rig = Rig::full(choice, NO_OPTIONS, &[512, 20, 512]);
        rig.policy.accessed(BlockId(1), 0, Access::Write);
        rig.access(1, 0);
        rig.access(0, 1);
        rig.access(0, 2);
        rig.access(2, 0);
        let held: Vec<_> = std::iter::from_fn(|| rig.evict()).map(|(block, pages)| (block, pages.len())).collect();
        assert_eq!(held, expected.map(|block| (block, if block == 1 { 20 } else { 512 })), "{choice:?}");
    }
}

#[test]
fn blocks_that_are_held_stay() {
    for choice in [EvictionChoice::LeastRecentBlock, EvictionChoice::LeastFrequentBlock, EvictionChoice::Driver] {
        let mut rig = Rig::full(choice, NO_OPTIONS, &[512, 512]);
        rig.hold(0, PageSet::range(100..101));
        assert_eq!([rig.evict(), rig.evict()], [Some((1, PageSet::FULL)), None], "{choice:?}");
    }
}

#[test]
fn accesses_are_remembered_when_a_block_comes_back() {
    let mut rig = Rig::full(EvictionChoice::LeastFrequentBlock, NO_OPTIONS, &[4, 4]);
    rig.access(0, 0);
    rig.leave(0, PageSet::range(0..4));
    rig.arrive(0, PageSet::range(0..2));
    assert_eq!([rig.evict(), rig.evict()].map(|victim| victim.map(|(block, _)| block)), [Some(1), Some(0)]);
}

#[test]
fn the_driver_takes_unused_and_discarded_memory_first() {
    let mut rig = Rig::full(EvictionChoice::Driver, NO_OPTIONS, &[8, 8, 8, 8]);
    rig.policy.allocated(BlockId(1), Some(ChunkUse::Discarded));
    rig.memory.blocks[3].1 = PageSet::EMPTY;
    rig.policy.allocated(BlockId(3), Some(ChunkUse::Unused));
    // Memory of block 0 is allocated anew, so that it is the last.
    rig.arrive(0, PageSet::range(0..8));
    let mut evict = || {
        let Victim { block, pages } = rig.policy.victim(&rig.memory, &mut random())?;
        rig.policy.allocated(block, None);
        Some((block.0, pages.len()))
    };
    assert_eq!(std::iter::from_fn(&mut evict).collect::<Vec<_>>(), [(3, 0), (1, 8), (2, 8), (0, 8)]);
}

#[test]
fn the_reserve_is_a_share_of_the_candidates() {
    let check = |choice, percent, expected: Option<u32>| {
        let options = EvictionOptions { reserve_percent: percent, ..NO_OPTIONS };
        let mut rig = Rig::full(choice, options, &[16, 16, 16, 16, 16]);
        assert_eq!(rig.evict().map(|(block, _)| block), expected, "{choice:?}, {percent} %");
    };
    for choice in EvictionChoice::ALL.iter().copied().filter(|&choice| choice != EvictionChoice::RandomPage) {
        check(choice, 0, Some(0));
        check(choice, 19, Some(0));
        check(choice, 20, Some(1));
        check(choice, 60, Some(3));
        check(choice, 100, None);
    }
}

#[test]
fn the_reserve_ends_inside_of_a_block() {
    for choice in [EvictionChoice::SequentialLocal, EvictionChoice::Tree] {
        // A quarter of eight leaves: the two least recent ones of the first block.
        let options = EvictionOptions { reserve_percent: 25, ..NO_OPTIONS };
        let mut rig = Rig::full(choice, options, &[64, 64]);
        assert_eq!(rig.evict(), Some((0, PageSet::leaf(2))), "{choice:?}");
    }
}

#[test]
fn states_are_saved_and_restored() {
    for &choice in EvictionChoice::ALL {
        let mut rig = Rig::full(choice, NO_OPTIONS, &[64, 30, 512]);
        rig.access(0, 20);
        rig.access(1, 2);
        rig.evict().expect("something may go");
        let mut restored = choice.build(EvictionOptions { reserve_percent: 99, partial_leaves: true });
        restored.restore(&rig.policy.save().expect("it is written")).expect("it is read");
        let victims = |policy: &mut dyn EvictionPolicy| policy.victim(&rig.memory, &mut random());
        assert_eq!(victims(restored.as_mut()), victims(rig.policy.as_mut()), "{choice:?}");
        assert!(restored.restore(&[]).is_err(), "{choice:?}");
    }
}

#[test]
fn ron_names_policies() {
    let read = |text: &str| ron::from_str::<EvictionChoice>(text);
    for &choice in EvictionChoice::ALL {
        assert_eq!(read(&format!("{choice:?}")), Ok(choice));
    }
    assert_eq!(EvictionChoice::default(), EvictionChoice::Driver);
    assert!(read("Clock").is_err());
    assert_eq!(
        ron::from_str("(reserve_percent: 10)"),
        Ok(EvictionOptions { reserve_percent: 10, partial_leaves: false })
    );
}
