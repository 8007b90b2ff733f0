//! How the size of a managed allocation is rounded, and the trees that it becomes.
//!
//! The rounding is UVMSmart's (bafab5d). nvprof traces of a GTX 1080 Ti agree with it: the fourth leaf of the tail of an allocation of 2
//! MiB + 192 KiB is prefetched.

use super::{BLOCK_BYTES, BLOCK_LEAVES, BLOCK_PAGES, LEAF_BYTES, LEAF_PAGES, Tree};

/// Why there is no such allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// An allocation without a byte.
    #[error("a managed allocation needs at least one byte")]
    Empty,
    /// Its rounded size does not fit 64 bits.
    #[error("a managed allocation of {0} bytes is larger than an address space")]
    TooLarge(u64),
}

/// The trees of an allocation: full ones of 2 MiB, then at most one smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationTrees {
    /// Trees of 2 MiB.
    pub full: u64,
    /// The leaves of the last, smaller tree, a power of two below 32; 0 where there is none.
    pub tail_leaves: usize,
}

impl AllocationTrees {
    /// The trees of an allocation of `bytes`: the part beyond whole 2 MiB is rounded up to 64 KiB times a power of two.
    ///
    /// # Errors
    ///
    /// Where `bytes` is 0, or does not fit 64 bits when rounded.
    pub fn new(bytes: u64) -> Result<AllocationTrees, AllocationError> {
        if bytes == 0 {
            return Err(AllocationError::Empty);
        }
        let (full, rest) = (bytes / BLOCK_BYTES, bytes % BLOCK_BYTES);
        let tail_leaves = if rest == 0 { 0 } else { (rest.div_ceil(LEAF_BYTES) as usize).next_power_of_two() };
        let trees = match tail_leaves {
            BLOCK_LEAVES => AllocationTrees { full: full + 1, tail_leaves: 0 },
            _ => AllocationTrees { full, tail_leaves },
        };
        let whole = trees.full.checked_mul(BLOCK_BYTES);
        let rounded = whole.and_then(|whole| whole.checked_add(trees.tail_leaves as u64 * LEAF_BYTES));
        rounded.map(|_| trees).ok_or(AllocationError::TooLarge(bytes))
    }

    /// The rounded size in bytes.
    pub fn bytes(self) -> u64 {
        self.full * BLOCK_BYTES + self.tail_leaves as u64 * LEAF_BYTES
    }

    /// How many trees.
    pub fn count(self) -> u64 {
        self.full + u64::from(self.tail_leaves > 0)
    }

    /// Tree `index`, where there is one: it covers the bytes from `index` * 2 MiB on.
    pub fn tree(self, index: u64) -> Option<Tree> {
        if index < self.full {
            Tree::new(BLOCK_LEAVES)
        } else if index == self.full {
            Tree::new(self.tail_leaves)
        } else {
            None
        }
    }

    /// The pages of tree `index`; 0 where there is none.
    pub fn pages(self, index: u64) -> usize {
        self.tree(index).map_or(0, |tree| tree.leaves() * LEAF_PAGES).min(BLOCK_PAGES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    #[test]
    fn sizes_are_rounded_to_trees() {
        // Rows of the specification, section 2.1: bytes, rounded bytes, leaves of the trees.
        let check = |bytes: u64, rounded: u64, leaves: &[usize]| {
            let trees = AllocationTrees::new(bytes).expect("it is not empty");
            assert_eq!(trees.bytes(), rounded, "of {bytes}");
            let each: Vec<_> = (0..trees.count()).map(|index| trees.tree(index).expect("it exists").leaves()).collect();
            assert_eq!(each, leaves, "of {bytes}");
            assert_eq!((trees.tree(trees.count()), trees.pages(trees.count())), (None, 0));
            assert_eq!((0..trees.count()).map(|index| trees.pages(index) as u64 * 4096).sum::<u64>(), rounded);
        };
        check(4 * MIB + 192 * KIB, 4 * MIB + 256 * KIB, &[32, 32, 4]);
        check(2 * MIB + 192 * KIB, 2 * MIB + 256 * KIB, &[32, 4]);
        check(1, 64 * KIB, &[1]);
        check(64 * KIB, 64 * KIB, &[1]);
        check(65 * KIB, 128 * KIB, &[2]);
        check(1200 * 1200 * 4, 6 * MIB, &[32, 32, 32]);
        check(2 * MIB, 2 * MIB, &[32]);
    }

    #[test]
    fn some_sizes_cannot_be_allocated() {
        assert_eq!(AllocationTrees::new(0), Err(AllocationError::Empty));
        assert_eq!(AllocationTrees::new(u64::MAX), Err(AllocationError::TooLarge(u64::MAX)));
    }
}
