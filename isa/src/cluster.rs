//! Clusters of CTAs: the place of a CTA in its cluster, and addresses in the shared memory of a cluster.
//!
//! An address in shared memory is the rank of a CTA in its top byte and an offset below (own finding from the code that ptxas makes for
//! sm_90: `mapa` replaces that byte, `getctarank` reads it). A CTA's own addresses have its own rank. The generic address of a place is the
//! same number behind the beginning of the shared window.
//!
//! PTX names its variables in shared memory by constants: each CTA has those of its own rank ([`Program::constants_of_rank`](crate::program::Program::constants_of_rank)).

use serde::{Deserialize, Serialize};

/// Where the rank begins in an address.
pub const RANK_SHIFT: u32 = 24;
/// The bits of an offset.
pub const OFFSET_BITS: u64 = (1 << RANK_SHIFT) - 1;

/// The rank that an address in shared memory names.
pub const fn rank_of(address: u64) -> u32 {
    (address >> RANK_SHIFT) as u32
}

/// The first address of the shared memory of the CTA of a rank.
pub const fn shared_base(rank: u32) -> u64 {
    (rank as u64) << RANK_SHIFT
}

/// The CTAs of a launch's clusters in each dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterShape {
    /// CTAs in x, y, z, which divide the grid.
    pub dimensions: [u32; 3],
    /// Whether the launch or the kernel names them (`%is_explicit_cluster`).
    pub is_explicit: bool,
}

impl Default for ClusterShape {
    /// Each CTA is a cluster.
    fn default() -> ClusterShape {
        ClusterShape { dimensions: [1; 3], is_explicit: false }
    }
}

impl From<Option<[u32; 3]>> for ClusterShape {
    fn from(named: Option<[u32; 3]>) -> ClusterShape {
        named.map_or_else(ClusterShape::default, |dimensions| ClusterShape {
            dimensions: dimensions.map(|extent| extent.max(1)),
            is_explicit: true,
        })
    }
}

impl ClusterShape {
    /// CTAs of a cluster.
    pub fn size(&self) -> u32 {
        self.dimensions.iter().product()
    }

    /// Clusters of a grid (`%nclusterid`).
    pub fn clusters(&self, grid: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|axis| grid[axis] / self.dimensions[axis])
    }

    /// The cluster of a CTA (`%clusterid`).
    pub fn cluster_of(&self, cta: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|axis| cta[axis] / self.dimensions[axis])
    }

    /// The place of a CTA in its cluster (`%cluster_ctaid`).
    pub fn place_of(&self, cta: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|axis| cta[axis] % self.dimensions[axis])
    }

    /// The rank of a CTA in its cluster, x fastest (`%cluster_ctarank`).
    pub fn rank_of(&self, cta: [u32; 3]) -> u32 {
        let ([x, y, z], [width, height, _]) = (self.place_of(cta), self.dimensions);
        x + width * (y + height * z)
    }
}

/// A constant that is an address in shared memory: its first row, and whether it has 64 bits.
pub(crate) type SharedAddress = (u16, bool);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctas_have_places_in_clusters() {
        let shape = ClusterShape::from(Some([2, 3, 1]));
        assert_eq!((shape.size(), shape.clusters([4, 9, 5])), (6, [2, 3, 5]));
        assert_eq!((shape.cluster_of([3, 7, 4]), shape.place_of([3, 7, 4])), ([1, 2, 4], [1, 1, 0]));
        assert_eq!(shape.rank_of([3, 7, 4]), 3);
        assert!(shape.is_explicit && !ClusterShape::from(None).is_explicit);
    }

    #[test]
    fn an_address_names_a_rank() {
        assert_eq!((rank_of(shared_base(5) + 0x400), shared_base(5) & OFFSET_BITS), (5, 0));
        assert_eq!(rank_of(0xffff), 0);
    }
}
