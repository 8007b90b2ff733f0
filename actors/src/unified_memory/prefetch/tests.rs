//! The vectors of the specification, sections 2.3 and 2.4, and random trees against the oracle of section 2.6.

use super::*;
use crate::unified_memory::LEAF_PAGES;
use crate::unified_memory::transfers::{SplitRule, transfers};
use crate::unified_memory::{BLOCK_PAGES, PageSet};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use std::ops::Range;

fn random() -> Pcg32 {
    Pcg32::seed_from_u64(1)
}

/// A transfer: KiB, and the leaf in which it begins.
type Move = (u64, usize);

/// A fault on the first page of a leaf, and the transfers that it causes.
type Row = (usize, Vec<Move>);

/// Serves faults on some pages of a block together; moved pages are resident afterwards.
fn serve(
    prefetcher: &mut dyn Prefetcher,
    pages: usize,
    resident: &mut PageSet,
    faulted: PageSet,
    rule: SplitRule,
) -> Vec<Move> {
    let prefetched = prefetcher.prefetch(&BlockFaults::new(pages, *resident, faulted), &mut random());
    assert!(prefetched.intersection(resident.union(faulted)).is_empty());
    let moved = prefetched.union(faulted);
    *resident = resident.union(moved);
    transfers(moved, faulted, rule)
        .map(|transfer| (transfer.bytes() >> 10, transfer.pages.start / LEAF_PAGES))
        .collect()
}

/// Faults on the first pages of leaves of a tree, one after the other, with the transfers of each.
fn replay(prefetcher: &mut dyn Prefetcher, leaves: usize, resident: &[usize], expected: &[Row]) {
    let mut resident = resident.iter().fold(PageSet::EMPTY, |set, &leaf| set.union(PageSet::leaf(leaf)));
    for &(leaf, ref moves) in expected {
        let fault = PageSet::range(leaf * LEAF_PAGES..leaf * LEAF_PAGES + 1);
        let served = serve(prefetcher, leaves * LEAF_PAGES, &mut resident, fault, SplitRule::AtCause);
        assert_eq!(served, *moves, "{prefetcher:?} on a fault in leaf {leaf}");
    }
}

/// The driver's rule alone.
fn driver(leaves: usize, expected: &[Row]) {
    replay(&mut DriverPrefetcher::default(), leaves, &[], expected);
}

/// UVMSmart's rule alone.
fn cascade(leaves: usize, expected: &[Row]) {
    replay(&mut TreePrefetcher, leaves, &[], expected);
}

/// Both rules.
fn both(leaves: usize, expected: &[Row]) {
    driver(leaves, expected);
    cascade(leaves, expected);
}

fn row(leaf: usize, moves: &[Move]) -> Row {
    (leaf, moves.to_vec())
}

/// A fault that moves its leaf and nothing else.
fn own(leaf: usize) -> Row {
    row(leaf, &[(4, leaf), (60, leaf)])
}

/// A fault when all leaves before it are there: it doubles the pages that are there.
fn doubling(leaf: usize) -> Row {
    row(leaf, &[(4, leaf), (leaf as u64 * 64 - 4, leaf)])
}

#[test]
fn examples_of_the_study() {
    both(8, &[own(1), own(3), own(5), own(7), row(0, &[(4, 0), (60, 0), (64, 2), (64, 4), (64, 6)])]);
    both(8, &[own(1), own(3), row(0, &[(4, 0), (60, 0), (64, 2)]), doubling(4)]);
    // The same examples, with leaves counted from 1 as in the study's text.
    both(8, &[own(0), own(2), own(4), own(6), row(1, &[(4, 1), (60, 1), (64, 3), (64, 5), (64, 7)])]);
    both(8, &[own(0), own(2), row(1, &[(4, 1), (60, 1), (64, 3)]), doubling(4)]);
}

#[test]
fn transfers_to_the_gpu_as_traced() {
    let first = [own(0), own(1), row(2, &[(4, 2), (124, 2)])];
    both(32, &[&first[..], &[4, 8, 16].map(doubling)].concat());
    // An allocation of 6 MiB is three such trees; nothing crosses 2 MiB, for a prefetcher sees one block.
    let second = [own(1), own(3), row(0, &[(4, 0), (60, 0), (64, 2)])];
    both(32, &[&second[..], &[4, 8, 16].map(doubling)].concat());
    let third = [own(1), own(3), own(5), own(7), row(0, &[(4, 0), (60, 0), (64, 2), (64, 4), (64, 6)])];
    both(32, &[&third[..], &[8, 16].map(doubling)].concat());
    // The tail tree of 2 MiB + 192 KiB.
    both(4, &first);
}

#[test]
fn transfers_to_the_host_as_traced() {
    driver(32, &[own(16), own(8), own(4), own(2), own(1), row(0, &[(4, 0), (60, 0), (64, 3)])]);
    driver(32, &[own(16), own(8), own(4), own(0), own(3), row(1, &[(4, 1), (124, 1)])]);
    let third: &[Move] = &[(4, 1), (124, 1), (64, 4), (64, 6)];
    driver(32, &[own(16), own(8), own(0), own(7), own(5), own(3), row(1, third)]);
    // The tail tree of 2 MiB + 192 KiB: the last fault brings its neighbour's neighbour too.
    driver(4, &[own(2), own(1), row(0, &[(4, 0), (60, 0), (64, 3)])]);
}

#[test]
fn the_cascade_moves_a_whole_block_to_the_host() {
    let last: &[Move] = &[(4, 0), (60, 0), (64, 3), (192, 5), (448, 9), (960, 17)];
    cascade(32, &[own(16), own(8), own(4), own(2), own(1), row(0, last)]);
    // 1728 KiB for one fault, where the study states a bound of 1020 KiB beyond the fault's page.
    let moved: u64 = last.iter().map(|(kib, _)| kib).sum();
    assert_eq!(moved, 1728);
}

#[test]
fn the_rules_differ_where_filling_cascades() {
    let first = [own(4), own(1), own(2)];
    driver(8, &[&first[..], &[row(0, &[(4, 0), (60, 0), (64, 3)])]].concat());
    cascade(8, &[&first[..], &[row(0, &[(4, 0), (60, 0), (64, 3), (192, 5)])]].concat());
    // Here they agree.
    both(8, &[own(1), own(3), own(6), own(4), row(5, &[(64, 0), (64, 2), (4, 5), (60, 5), (64, 7)])]);
}

#[test]
fn half_is_not_enough() {
    for leaves in [2, 4, 8, 16, 32] {
        both(leaves, &[own(0)]);
        for prefetcher in [&mut TreePrefetcher as &mut dyn Prefetcher, &mut DriverPrefetcher::default()] {
            let half: Vec<usize> = (0..leaves / 2 - 1).collect();
            replay(prefetcher, leaves, &half, &[own(leaves / 2 - 1)]);
        }
    }
}

#[test]
fn leaves_of_one_cycle_are_served_together() {
    let mut sequential = SequentialLocalPrefetcher;
    replay(&mut sequential, 32, &[], &[own(1), own(3)]);
    let faulted = PageSet::from_iter([4 * LEAF_PAGES, 5 * LEAF_PAGES]);
    let mut serve = |rule| serve(&mut sequential, BLOCK_PAGES, &mut PageSet::default(), faulted, rule);
    assert_eq!(serve(SplitRule::AfterFault), [(4, 4), (64, 4), (60, 5)]);
    assert_eq!(serve(SplitRule::AtCause), [(4, 4), (60, 4), (4, 5), (60, 5)]);
}

#[test]
fn on_demand_moves_faulting_pages() {
    let faulted = PageSet::from_iter([3, 4, 100]);
    let served = serve(&mut OnDemand, BLOCK_PAGES, &mut PageSet::default(), faulted, SplitRule::AfterFault);
    assert_eq!(served, [(4, 0), (4, 0), (4, 6)]);
}

#[test]
fn random_pages_are_spread_over_the_tail_tree() {
    let mut generator = random();
    let mut draw =
        |resident, faulted| RandomPrefetcher.prefetch(&BlockFaults::new(64, resident, faulted), &mut generator);
    let mut seen = PageSet::EMPTY;
    for _ in 0..1000 {
        let drawn = draw(PageSet::EMPTY, PageSet::range(0..1));
        assert!(drawn.len() <= 1 && PageSet::range(1..64).contains_all(drawn), "{drawn:?}");
        seen = seen.union(drawn);
    }
    assert_eq!(seen, PageSet::range(1..64));
    // Pages that are there are not drawn again: the fault moves alone.
    assert_eq!(draw(PageSet::range(1..64), PageSet::range(0..1)), PageSet::EMPTY);
    assert!((1..=16).contains(&draw(PageSet::EMPTY, PageSet::range(0..16)).len()));
    // The same seed draws the same pages.
    let drawn = |()| RandomPrefetcher.prefetch(&BlockFaults::new(512, PageSet::EMPTY, PageSet::leaf(0)), &mut random());
    assert_eq!(drawn(()), drawn(()));
}

#[test]
fn the_driver_heeds_advice_and_thrashing() {
    let prefetch = |faults: &BlockFaults| DriverPrefetcher::default().prefetch(faults, &mut random());
    let page = |page| PageSet::range(page..page + 1);
    let plain = BlockFaults::new(128, PageSet::EMPTY, page(0));
    assert_eq!(prefetch(&plain), PageSet::range(1..16));

    assert_eq!(
        prefetch(&BlockFaults { first_touch_at_preferred_location: true, ..plain.clone() }),
        PageSet::range(1..128)
    );
    // A thrashing page in the leaf: the leaf does not count as there, so that only the faulting page is.
    assert_eq!(prefetch(&BlockFaults { thrashing: page(9), ..plain.clone() }), PageSet::EMPTY);
    // A fault on a thrashing page prefetches nothing; one beside it fills the leaf from its own pages.
    assert_eq!(prefetch(&BlockFaults { thrashing: page(0), ..plain.clone() }), PageSet::EMPTY);
    let crowded = BlockFaults { thrashing: page(15), ..BlockFaults::new(128, PageSet::range(1..9), page(0)) };
    assert_eq!(prefetch(&crowded), PageSet::range(9..15));

    assert_eq!(
        prefetch(&BlockFaults { mapped_on_host: page(5), ..plain.clone() }),
        PageSet::range(1..16).difference(page(5))
    );
    assert_eq!(prefetch(&BlockFaults { at_preferred_location: PageSet::range(8..99), ..plain }), PageSet::range(1..8));
}

#[test]
fn the_driver_waits_for_faults_and_has_a_threshold() {
    let faults = BlockFaults::new(64, PageSet::EMPTY, PageSet::range(0..1));
    let waiting = DriverPrefetcher { minimum_faults: 2, ..DriverPrefetcher::default() };
    assert_eq!(waiting.clone().prefetch(&faults, &mut random()), PageSet::EMPTY);
    let later = BlockFaults { fault_count: 2, ..faults.clone() };
    assert_eq!(waiting.clone().prefetch(&later, &mut random()), PageSet::range(1..16));
    // One leaf of four is 25 %.
    for (threshold_percent, end) in [(24, 64), (25, 32), (49, 32), (50, 16)] {
        let mut prefetcher = DriverPrefetcher { threshold_percent, ..DriverPrefetcher::default() };
        assert_eq!(prefetcher.prefetch(&faults, &mut random()), PageSet::range(1..end), "at {threshold_percent} %");
    }
}

#[test]
fn the_driver_knows_blocks_of_any_size() {
    let prefetch = |block: Range<usize>, resident: PageSet, fault: usize| {
        let faults = BlockFaults { block, ..BlockFaults::new(512, resident, PageSet::range(fault..fault + 1)) };
        DriverPrefetcher::default().prefetch(&faults, &mut random())
    };
    // Smaller than a leaf: whole.
    assert_eq!(prefetch(0..5, PageSet::EMPTY, 2), PageSet::from_iter([0, 1, 3, 4]));
    // The rest of a leaf at the end is a neighbourhood: 32..36 of 0..36 is too little.
    assert_eq!(prefetch(0..36, PageSet::EMPTY, 33), PageSet::from_iter([32, 34, 35]));
    // With one more leaf there it is 20 of 36 pages, more than 51 %.
    assert_eq!(prefetch(0..36, PageSet::range(0..16), 33), PageSet::range(16..36).difference(PageSet::range(33..34)));
    // A block that begins inside of its first leaf: the prefix moves whole.
    assert_eq!(prefetch(12..64, PageSet::EMPTY, 13), PageSet::from_iter([12, 14, 15]));
}

#[test]
fn ron_names_prefetchers() {
    let read = |text: &str| ron::from_str::<PrefetcherChoice>(text);
    for name in ["None", "Random", "SequentialLocal", "Tree", "Driver()"] {
        let built = read(name).unwrap_or_else(|error| panic!("{name}: {error}")).build();
        assert_eq!(built.save(), Ok(Vec::new()), "{name}");
    }
    let expected = DriverPrefetcher { threshold_percent: 75, minimum_faults: 1 };
    assert_eq!(read("Driver(threshold_percent: 75)"), Ok(PrefetcherChoice::Driver(expected)));
    assert_eq!(read("Driver()"), Ok(PrefetcherChoice::default()));
    assert_eq!(PrefetcherChoice::NAMES, ["None", "Random", "SequentialLocal", "Tree", "Driver"]);
    // As a parameter among others.
    #[derive(serde::Deserialize)]
    struct Parameters {
        prefetchers: Vec<PrefetcherChoice>,
        entries: u32,
    }
    let read_in = ron::from_str::<Parameters>("(prefetchers: [Tree, Driver(minimum_faults: 2,), None], entries: 7)");
    let Parameters { prefetchers, entries } = read_in.expect("they are parameters");
    let waiting = DriverPrefetcher { minimum_faults: 2, ..DriverPrefetcher::default() };
    assert_eq!(prefetchers, [PrefetcherChoice::Tree, PrefetcherChoice::Driver(waiting), PrefetcherChoice::None]);
    assert_eq!(entries, 7);
    for (text, problem) in [("Forest", "Forest"), ("Driver(treshold: 3)", "treshold")] {
        let error = read(text).expect_err("it is wrong").code.to_string();
        assert!(error.contains(problem), "{error}");
    }
}

/// The cascade on leaves, as section 2.6 states it: level by level, with sums.
fn cascade_oracle(valid: &mut [bool], faulted: &[usize]) {
    for &leaf in faulted {
        valid[leaf] = true;
    }
    let mut width = 2;
    while width <= valid.len() {
        for node in valid.chunks_mut(width) {
            let count = node.iter().filter(|&&leaf| leaf).count();
            if count > width / 2 && count < width {
                node.fill(true);
            }
        }
        width *= 2;
    }
}

/// The driver's rule on leaves, as section 2.6 states it.
fn driver_oracle(valid: &mut [bool], faulted: &[usize]) {
    for &leaf in faulted {
        valid[leaf] = true;
    }
    let before = valid.to_vec();
    for &leaf in faulted {
        let widths = std::iter::successors(Some(2), |width| Some(width * 2)).take_while(|&width| width <= before.len());
        let full_enough = |&width: &usize| {
            let first = leaf / width * width;
            100 * before[first..first + width].iter().filter(|&&leaf| leaf).count() > 51 * width
        };
        if let Some(width) = widths.filter(full_enough).last() {
            valid[leaf / width * width..][..width].fill(true);
        }
    }
}

#[test]
fn random_trees_agree_with_the_oracles() {
    let leaf_set = |valid: &[bool]| {
        (0..valid.len()).filter(|&leaf| valid[leaf]).fold(PageSet::EMPTY, |set, leaf| set.union(PageSet::leaf(leaf)))
    };
    let mut generator = random();
    type Oracle = fn(&mut [bool], &[usize]);
    let rules: [(Box<dyn Prefetcher>, Oracle); 2] =
        [(Box::new(TreePrefetcher), cascade_oracle), (Box::<DriverPrefetcher>::default(), driver_oracle)];
    for (mut prefetcher, oracle) in rules {
        for _ in 0..3000 {
            let leaves = 1usize << (generator.next_u32() % 6);
            let density = generator.next_u32() % 101;
            let mut valid: Vec<bool> = (0..leaves).map(|_| generator.next_u32() % 100 < density).collect();
            let absent: Vec<usize> = (0..leaves).filter(|&leaf| !valid[leaf]).collect();
            let faulted: Vec<usize> = absent.into_iter().filter(|_| generator.next_u32().is_multiple_of(4)).collect();
            // Any page of a leaf stands for the leaf.
            let pages: PageSet =
                faulted.iter().map(|leaf| leaf * LEAF_PAGES + generator.next_u32() as usize % LEAF_PAGES).collect();
            let resident = leaf_set(&valid);
            if faulted.is_empty() {
                continue;
            }
            let faults = BlockFaults::new(leaves * LEAF_PAGES, resident, pages);
            let prefetched = prefetcher.prefetch(&faults, &mut generator);
            oracle(&mut valid, &faulted);
            assert_eq!(
                resident.union(pages).union(prefetched),
                leaf_set(&valid),
                "{prefetcher:?}: {resident:?}, faults {pages:?}"
            );
        }
    }
}
