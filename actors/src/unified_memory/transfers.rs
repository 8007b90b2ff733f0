//! How the pages that move are cut into transfers over the link.

use super::{PAGE_BYTES, PageSet};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Where contiguous pages are cut into transfers. A transfer never spans a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SplitRule {
    /// After each faulting page: prefetched pages before it share its transfer (UVMSmart, bafab5d).
    AfterFault,
    /// Between pages that a fault moves and pages that are prefetched (NVIDIA's open kernel modules 595.45.04).
    #[default]
    AtCause,
}

/// One transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its pages.
    pub pages: Range<usize>,
    /// How many of them faulted.
    pub faulted: usize,
}

impl Transfer {
    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }
}

/// The transfers, ascending, by which `moved` pages of a block are moved. `faulted` pages among them were asked for.
pub fn transfers(moved: PageSet, faulted: PageSet, rule: SplitRule) -> impl Iterator<Item = Transfer> {
    let (by_fault, by_prefetch) = (moved.intersection(faulted), moved.difference(faulted));
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = moved.first_from(next)?;
        next = match rule {
            SplitRule::AfterFault => {
                let run_end = moved.first_absent_from(start);
                by_fault.first_from(start).map_or(run_end, |fault| run_end.min(fault + 1))
            }
            SplitRule::AtCause if by_fault.contains(start) => by_fault.first_absent_from(start),
            SplitRule::AtCause => by_prefetch.first_absent_from(start),
        };
        Some(Transfer { pages: start..next, faulted: by_fault.count(start..next) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_pages_are_cut_by_either_rule() {
        // Rows of the specification, section 2.2: faulting pages of a leaf that moves whole, KiB of the transfers.
        let check = |faults: &[usize], after_fault: &[u64], at_cause: &[u64]| {
            let faulted = faults.iter().copied().collect();
            for (rule, expected) in [(SplitRule::AfterFault, after_fault), (SplitRule::AtCause, at_cause)] {
                let cut: Vec<_> = transfers(PageSet::leaf(0), faulted, rule).collect();
                let sizes: Vec<_> = cut.iter().map(|transfer| transfer.bytes() >> 10).collect();
                assert_eq!(sizes, expected, "{faults:?}, {rule:?}");
                assert_eq!(cut.iter().map(|transfer| transfer.faulted).sum::<usize>(), faults.len());
            }
        };
        check(&[0], &[4, 60], &[4, 60]);
        check(&[5], &[24, 40], &[20, 4, 40]);
        check(&[15], &[64], &[60, 4]);
        check(&[2, 3], &[12, 4, 48], &[8, 8, 48]);
        check(&[3, 9], &[16, 24, 24], &[12, 4, 20, 4, 24]);
    }

    #[test]
    fn gaps_cut() {
        let moved = PageSet::range(0..4).union(PageSet::range(8..12));
        for rule in [SplitRule::AfterFault, SplitRule::AtCause] {
            let pages: Vec<_> = transfers(moved, PageSet::range(0..1), rule).map(|transfer| transfer.pages).collect();
            assert_eq!(pages, [0..1, 1..4, 8..12]);
            // A fault in the second run does not reach into the first.
            let pages: Vec<_> = transfers(moved, PageSet::range(8..9), rule).map(|transfer| transfer.pages).collect();
            assert_eq!(pages, [0..4, 8..9, 9..12]);
        }
    }
}
