//! The binary tree over the 64 KiB leaves of a block, by which pages are prefetched and evicted.

use super::{BLOCK_LEAVES, LEAF_BYTES, LEAF_PAGES, PAGE_BYTES, PageSet};
use std::ops::Range;

/// A binary tree over a power of two of leaves, 1 to 32. The valid pages below a node follow from the set of valid pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    leaves: usize,
}

/// A node of a [`Tree`]: the leaves below it. A leaf is a node of one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The first leaf below it.
    pub first_leaf: usize,
    /// How many leaves are below it, a power of two.
    pub leaves: usize,
}

impl Node {
    /// The pages below it.
    pub fn pages(self) -> Range<usize> {
        self.first_leaf * LEAF_PAGES..(self.first_leaf + self.leaves) * LEAF_PAGES
    }

    /// The numbers of the leaves below it.
    pub fn leaf_numbers(self) -> Range<usize> {
        self.first_leaf..self.first_leaf + self.leaves
    }

    /// Bytes that it spans.
    pub fn bytes(self) -> u64 {
        self.leaves as u64 * LEAF_BYTES
    }

    /// Pages of `valid` below it.
    pub fn valid_pages(self, valid: PageSet) -> usize {
        valid.count(self.pages())
    }

    /// Bytes of `valid` below it.
    pub fn valid_bytes(self, valid: PageSet) -> u64 {
        self.valid_pages(valid) as u64 * PAGE_BYTES
    }

    /// Its left and its right half; `None` for a leaf.
    pub fn children(self) -> Option<[Node; 2]> {
        let leaves = self.leaves / 2;
        let child = |first_leaf| Node { first_leaf, leaves };
        (leaves > 0).then(|| [child(self.first_leaf), child(self.first_leaf + leaves)])
    }
}

impl Tree {
    /// A tree over this many leaves; `None` unless they are a power of two up to 32.
    pub fn new(leaves: usize) -> Option<Tree> {
        (leaves.is_power_of_two() && leaves <= BLOCK_LEAVES).then_some(Tree { leaves })
    }

    /// The smallest tree over the first `pages` pages, at most a block's.
    pub fn over_pages(pages: usize) -> Tree {
        Tree { leaves: pages.div_ceil(LEAF_PAGES).next_power_of_two().min(BLOCK_LEAVES) }
    }

    /// How many leaves it has.
    pub fn leaves(self) -> usize {
        self.leaves
    }

    /// The node above all leaves.
    pub fn root(self) -> Node {
        Node { first_leaf: 0, leaves: self.leaves }
    }

    /// The nodes above the leaves, level by level from the bottom, each level from the left.
    pub fn inner_nodes(self) -> impl Iterator<Item = Node> {
        let widths = (1..=self.leaves.ilog2()).map(|level| 1 << level);
        widths
            .flat_map(move |leaves| (0..self.leaves).step_by(leaves).map(move |first_leaf| Node { first_leaf, leaves }))
    }

    /// A leaf and the nodes above it, up to the root.
    pub fn path(self, leaf: usize) -> impl Iterator<Item = Node> {
        (0..=self.leaves.ilog2()).map(move |level| Node { first_leaf: leaf >> level << level, leaves: 1 << level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_a_power_of_two_of_leaves() {
        assert_eq!(
            [0, 1, 3, 8, 32, 64].map(|leaves| Tree::new(leaves).is_some()),
            [false, true, false, true, true, false]
        );
        assert_eq!([0, 1, 16, 17, 48, 512].map(|pages| Tree::over_pages(pages).leaves()), [1, 1, 1, 2, 4, 32]);
    }

    #[test]
    fn nodes_know_what_is_valid_below_them() {
        let tree = Tree::new(4).expect("four leaves");
        let valid = PageSet::leaf(1).union(PageSet::range(32..36));
        let node = |first_leaf, leaves| Node { first_leaf, leaves };
        let bottom_up: Vec<_> = tree.inner_nodes().map(|node| (node, node.valid_bytes(valid) >> 10)).collect();
        assert_eq!(bottom_up, [(node(0, 2), 64), (node(2, 2), 16), (node(0, 4), 80)]);
        assert_eq!(tree.path(2).collect::<Vec<_>>(), [node(2, 1), node(2, 2), node(0, 4)]);
        assert_eq!(tree.root().children(), Some([node(0, 2), node(2, 2)]));
        assert_eq!((node(2, 1).children(), node(2, 1).pages(), node(2, 2).bytes()), (None, 32..48, 128 << 10));
    }
}
