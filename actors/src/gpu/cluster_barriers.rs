//! The barriers of clusters of CTAs: which CTAs have arrived, and which have ended.

use balar_protocol::cluster::ClusterId;
use balar_protocol::cuda::LaunchId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The barrier of a cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ClusterBarrier<M> {
    /// The CTAs that have arrived in this phase and wait.
    arrived: Vec<M>,
    /// CTAs that have ended, which nobody waits for.
    left: u32,
}

/// The barriers of the clusters that run. A cluster is forgotten when its last CTA has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterBarriers<M> {
    clusters: BTreeMap<ClusterId, ClusterBarrier<M>>,
}

impl<M> Default for ClusterBarriers<M> {
    fn default() -> Self {
        ClusterBarriers { clusters: BTreeMap::new() }
    }
}

impl<M: Copy + PartialEq> ClusterBarriers<M> {
    fn barrier(&mut self, id: ClusterId) -> &mut ClusterBarrier<M> {
        self.clusters.entry(id).or_insert_with(|| ClusterBarrier { arrived: Vec::new(), left: 0 })
    }

    /// A CTA of a cluster of `size` arrives. Gives those that go on, it among them, where it was the last.
    pub fn arrive(&mut self, id: ClusterId, size: u32, member: M) -> Vec<M> {
        let barrier = self.barrier(id);
        if !barrier.arrived.contains(&member) {
            barrier.arrived.push(member);
        }
        barrier.complete(size)
    }

    /// A CTA of a cluster of `size` has ended. Gives those that go on where they waited for it alone.
    pub fn leave(&mut self, id: ClusterId, size: u32, member: M) -> Vec<M> {
        let barrier = self.barrier(id);
        barrier.arrived.retain(|arrived| *arrived != member);
        barrier.left += 1;
        if barrier.left >= size {
            self.clusters.remove(&id);
            return Vec::new();
        }
        barrier.complete(size)
    }

    /// The clusters of a launch are not there any more.
    pub fn forget(&mut self, launch: LaunchId) {
        self.clusters.retain(|id, _| id.launch != launch);
    }

    /// Clusters of which some CTAs wait at the barrier, and these CTAs.
    pub fn waiting(&self) -> (usize, usize) {
        let waiting = self.clusters.values().map(|barrier| barrier.arrived.len()).filter(|arrived| *arrived > 0);
        waiting.fold((0, 0), |(clusters, ctas), arrived| (clusters + 1, ctas + arrived))
    }
}

impl<M> ClusterBarrier<M> {
    fn complete(&mut self, size: u32) -> Vec<M> {
        let is_complete = self.arrived.len() as u32 + self.left >= size;
        if is_complete { std::mem::take(&mut self.arrived) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: ClusterId = ClusterId { launch: LaunchId(1), number: 4 };

    #[test]
    fn the_last_cta_lets_all_go_on() {
        let mut barriers = ClusterBarriers::default();
        for phase in 0..3 {
            assert_eq!(barriers.arrive(CLUSTER, 3, 'a'), [], "{phase}");
            assert_eq!(barriers.arrive(CLUSTER, 3, 'b'), []);
            assert_eq!(barriers.waiting(), (1, 2));
            assert_eq!(barriers.arrive(CLUSTER, 3, 'c'), ['a', 'b', 'c']);
        }
        assert_eq!(barriers.waiting(), (0, 0));
    }

    #[test]
    fn ctas_that_have_ended_are_not_waited_for() {
        let mut barriers = ClusterBarriers::default();
        assert_eq!(barriers.arrive(CLUSTER, 3, 'a'), []);
        assert_eq!(barriers.arrive(CLUSTER, 3, 'b'), []);
        // One that has arrived ends: it counts once.
        assert_eq!(barriers.leave(CLUSTER, 3, 'b'), []);
        assert_eq!(barriers.leave(CLUSTER, 3, 'c'), ['a']);
        assert_eq!(barriers.arrive(CLUSTER, 3, 'a'), ['a'], "the only one that is left");
        assert!(!barriers.clusters.is_empty());
        assert_eq!(barriers.leave(CLUSTER, 3, 'a'), []);
        assert!(barriers.clusters.is_empty());
    }
}
