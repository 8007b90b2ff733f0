//! Stores that are not acknowledged when their warps leave: a CTA ends without them, its kernel does not.
//!
//! Hardware does the same: a block of a V100 that only stores makes room for the next one 362 cycles after it was placed, fewer than its
//! own start and a way to the L2 and back take together (RRZE gpu-benches, gpu-stream, one block of 16 threads an SM).

use super::GENERATION_BITS;
use crate::slab::Slab;
use balar_protocol::cuda::LaunchId;
use serde::{Deserialize, Serialize};

/// A CTA whose warps have left before their stores were acknowledged.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LeftCta {
    launch: LaunchId,
    /// Stores of these warps that are not acknowledged.
    outstanding: u32,
    /// Whether its end has been reported, and the end of its stores is to be.
    has_ended: bool,
}

/// A warp that has left.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct LeftWarp {
    generation: u32,
    outstanding: u32,
    cta: u32,
}

/// Warps that have left, by their slots, and their CTAs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LeftStores {
    ctas: Slab<LeftCta>,
    warps: Vec<Vec<LeftWarp>>,
}

impl LeftStores {
    /// A warp of a launch leaves its slot with stores under way. `cta` is the key of its CTA, which it gets where it has none.
    pub fn leave(
        &mut self,
        (warp, generation): (usize, u32),
        outstanding: u32,
        launch: LaunchId,
        cta: &mut Option<u32>,
    ) {
        let new = LeftCta { launch, outstanding: 0, has_ended: false };
        let cta = *cta.get_or_insert_with(|| self.ctas.insert(new));
        self.ctas[cta].outstanding += outstanding;
        if self.warps.len() <= warp {
            self.warps.resize(warp + 1, Vec::new());
        }
        self.warps[warp].push(LeftWarp { generation: generation & GENERATION_BITS, outstanding, cta });
    }

    /// A store of a warp that is not there any more has been acknowledged: gives the launch of a CTA that has ended, and whose last
    /// store it was.
    pub fn acknowledged(&mut self, warp: usize, generation: u32) -> Option<LaunchId> {
        let left = self.warps.get_mut(warp)?;
        let at = left.iter().position(|left| left.generation == generation & GENERATION_BITS)?;
        left[at].outstanding -= 1;
        let LeftWarp { outstanding, cta: key, .. } = left[at];
        if outstanding == 0 {
            left.swap_remove(at);
        }
        let cta = &mut self.ctas[key];
        cta.outstanding -= 1;
        (cta.outstanding == 0 && cta.has_ended).then(|| self.ctas.remove(key).launch)
    }

    /// The CTA under a key ends. True where stores of it are under way, whose end will be reported.
    pub fn end(&mut self, cta: u32) -> bool {
        let left = &mut self.ctas[cta];
        left.has_ended = true;
        if left.outstanding == 0 {
            self.ctas.remove(cta);
            return false;
        }
        true
    }

    /// The CTA under a key fails: nobody asks for its stores.
    pub fn forget(&mut self, cta: u32) {
        for left in &mut self.warps {
            left.retain(|warp| warp.cta != cta);
        }
        self.ctas.remove(cta);
    }

    /// Stores of warps that have left.
    #[cfg(test)]
    fn outstanding(&self) -> u32 {
        self.warps.iter().flatten().map(|warp| warp.outstanding).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_store_of_an_ended_cta_is_told() {
        let mut left = LeftStores::default();
        let mut cta = None;
        left.leave((3, 9), 2, LaunchId(5), &mut cta);
        left.leave((4, 1), 1, LaunchId(5), &mut cta);
        assert_eq!(left.outstanding(), 3);
        assert_eq!([left.acknowledged(3, 9), left.acknowledged(3, 8), left.acknowledged(4, 1)], [None; 3]);
        assert!(left.end(cta.expect("it has a key")));
        // Another warp has the slot by now, and leaves as well.
        let mut other = None;
        left.leave((3, 11), 1, LaunchId(6), &mut other);
        assert_eq!(left.acknowledged(3, 9), Some(LaunchId(5)));
        assert_eq!(left.acknowledged(3, 11), None, "its CTA goes on");
        assert!(!left.end(other.expect("it has a key")), "nothing of it is under way");
        assert_eq!(left.outstanding(), 0);
    }

    #[test]
    fn stores_of_a_failed_cta_are_forgotten() {
        let mut left = LeftStores::default();
        let mut cta = None;
        left.leave((0, 2), 4, LaunchId(1), &mut cta);
        left.forget(cta.expect("it has a key"));
        assert_eq!((left.acknowledged(0, 2), left.outstanding()), (None, 0));
    }
}
