//! A CTA in its cluster: the places of the other CTAs, and which of its threads have arrived at the cluster's barrier.

use balar_isa::program::{LANES, lanes};
use balar_protocol::cluster::{ClusterArrival, ClusterId, ClusterPlace, RemoteBulk};
use balar_protocol::cta::CtaCluster;
use balar_protocol::cuda::LaunchId;
use serde::{Deserialize, Serialize};

/// Warps of a CTA.
const WARPS: usize = 32;

/// The part of a CTA slot that is about the CTA's cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSlot {
    /// The cluster; `None` where the CTA has none beside itself.
    cluster: Option<CtaCluster>,
    /// The lanes of each warp that have arrived at the barrier in its present phase.
    arrived: [u32; WARPS],
    /// How many these are.
    threads: u32,
    /// Whether all of the CTA have, and the cluster was told so.
    has_arrived: bool,
}

impl ClusterSlot {
    /// A CTA begins.
    pub fn start(&mut self, cluster: Option<&CtaCluster>) {
        self.cluster = cluster.cloned();
        self.release();
    }

    /// The CTA's rank.
    #[inline]
    pub fn rank(&self) -> u32 {
        self.cluster.as_ref().map_or(0, |cluster| u32::from(cluster.rank))
    }

    /// CTAs of the cluster.
    pub fn size(&self) -> u32 {
        self.cluster.as_ref().map_or(1, |cluster| cluster.members.len() as u32)
    }

    /// Where the CTA of a rank is.
    pub fn member(&self, rank: u32) -> Option<ClusterPlace> {
        self.cluster.as_ref()?.members.get(rank as usize).copied()
    }

    /// The cluster, of a CTA of this launch.
    pub fn id(&self, launch: LaunchId) -> ClusterId {
        ClusterId { launch, number: self.cluster.as_ref().map_or(0, |cluster| cluster.number) }
    }

    /// What the network is told of a CTA of this launch in this slot; `None` where the CTA has no cluster beside itself.
    pub fn arrival(&self, launch: LaunchId, slot: usize) -> Option<ClusterArrival> {
        self.cluster.as_ref()?;
        Some(ClusterArrival { cluster: self.id(launch), slot: slot as u16, size: self.size() as u8 })
    }

    /// Lanes of a warp arrive at the barrier, in a CTA of which so many threads have not ended. True where they were the last of the CTA.
    pub fn arrive(&mut self, warp: u32, mask: u32, live_threads: u32) -> bool {
        let arrived = &mut self.arrived[warp as usize % WARPS];
        self.threads += (mask & !*arrived).count_ones();
        *arrived |= mask;
        self.is_complete(live_threads)
    }

    /// Lanes of a warp have ended, and so many threads of the CTA have not. True where the barrier waited for them alone.
    pub fn exit(&mut self, warp: u32, mask: u32, live_threads: u32) -> bool {
        let arrived = &mut self.arrived[warp as usize % WARPS];
        self.threads -= (mask & *arrived).count_ones();
        *arrived &= !mask;
        self.is_complete(live_threads)
    }

    fn is_complete(&mut self, live_threads: u32) -> bool {
        let is_complete = !self.has_arrived && self.threads > 0 && self.threads == live_threads;
        self.has_arrived |= is_complete;
        is_complete
    }

    /// Those lanes of a mask that have arrived in the present phase, and so have to wait for its end.
    #[inline]
    pub fn waiting(&self, warp: u32, mask: u32) -> u32 {
        self.arrived[warp as usize % WARPS] & mask
    }

    /// The phase has ended.
    pub fn release(&mut self) {
        self.arrived = [0; WARPS];
        self.threads = 0;
        self.has_arrived = false;
    }
}

/// What a step leaves of an access to the shared memory of other CTAs, beside the access and its values.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The instruction.
    pub pc: u32,
    /// The offsets of the `mbarrier` objects there that are told of the bytes, by lane, where any are.
    pub barriers: Option<Box<[u32; LANES]>>,
}

/// Bytes that a copy sends to other CTAs of its cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sent {
    /// The ranks of these CTAs, a bit each.
    pub ranks: u16,
    /// Where the bytes begin there.
    pub offset: u32,
    /// Where the `mbarrier` object is that is told of them.
    pub barrier: u32,
    /// The bytes.
    pub data: Box<[u8]>,
}

impl Sent {
    /// The messages, from a CTA of this cluster and launch.
    pub fn messages(
        &self,
        cluster: &ClusterSlot,
        launch: LaunchId,
        from: ClusterPlace,
    ) -> impl Iterator<Item = Box<RemoteBulk>> {
        lanes(self.ranks.into()).map(move |rank: usize| {
            Box::new(RemoteBulk {
                cluster: cluster.id(launch),
                to: cluster.member(rank as u32).unwrap_or_default(),
                rank: rank as u8,
                from,
                id: 0,
                offset: self.offset,
                data: self.data.clone(),
                barrier: Some(self.barrier),
                fault: None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thread_of_a_cta_arrives_for_it() {
        let mut slot = ClusterSlot::default();
        for phase in 0..2 {
            assert!(!slot.arrive(0, u32::MAX, 48), "{phase}");
            assert_eq!((slot.waiting(0, 0b11), slot.waiting(1, 0b11)), (0b11, 0));
            assert!(slot.arrive(1, 0xffff, 48));
            slot.release();
            assert_eq!(slot.waiting(0, u32::MAX), 0);
        }
    }

    #[test]
    fn threads_that_end_are_not_waited_for() {
        let mut slot = ClusterSlot::default();
        assert!(!slot.arrive(0, 0xff, 64));
        // Threads that have arrived and end do not stand for those that have not.
        assert!(!slot.exit(0, 0xf, 60));
        assert!(!slot.exit(1, u32::MAX, 28));
        assert!(slot.exit(0, 0xffff_ff00, 4));
        assert!(!slot.exit(0, 0xf0, 0), "it has arrived already");
    }
}
