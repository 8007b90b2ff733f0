//! The cascading tree prefetcher.

use super::prefetcher::{BlockFaults, Prefetcher};
use crate::unified_memory::{LEAF_PAGES, Node, PageSet, Tree};
use rand_pcg::Pcg32;

/// The tree-based neighbourhood prefetcher of UVMSmart (bafab5d).
///
/// The leaves that faulted become full. Then it looks at every node of the block's tree from the bottom: a node that is more than half
/// full, yet not full, is filled, which counts for the nodes above it. So one fault can fill a block with few pages there: traces of
/// transfers to the host show that the driver does not do so.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreePrefetcher;

impl Prefetcher for TreePrefetcher {
    fn prefetch(&mut self, faults: &BlockFaults, _: &mut Pcg32) -> PageSet {
        let mut valid = faults.resident.union(faults.faulted_leaves());
        fill(Tree::over_pages(faults.block.end).root(), &mut valid);
        faults.absent(valid)
    }
}

/// Fills nodes that are more than half full at and below a node, and returns the pages that count as valid there.
///
/// A node that was filled counts as full although leaves with some valid pages stay as they are.
fn fill(node: Node, valid: &mut PageSet) -> usize {
    let Some([left, right]) = node.children() else { return node.valid_pages(*valid) };
    let (pages, size) = (fill(left, valid) + fill(right, valid), node.leaves * LEAF_PAGES);
    if 2 * pages <= size || pages == size {
        return pages;
    }
    for leaf in node.leaf_numbers() {
        if valid.count_in_leaf(leaf) == 0 {
            *valid = valid.union(PageSet::leaf(leaf));
        }
    }
    size
}
