//! Clusters of CTAs: accesses to the shared memory of other SMs, and the barrier of a cluster.
//!
//! Such an access leaves the SM when it has gone through the memory pipe, and goes to the SM of the CTA that it names through the network
//! between SMs (`gpu/sm_network`). Values are read and written when it arrives there; the answer comes back as late as one from that SM's
//! own shared memory. Bank conflicts there, and with the accesses of that SM's own warps, are not modelled. Stores are answered, too, so
//! that a fence orders them. A warp stays until all its accesses are answered.

use super::profile::Profile;
use super::progress::{Sm, Step};
use super::remote_access::{RemoteWait, fill, perform, perform_bulk, ranks_of, values_of};
use super::warps::cluster::Elsewhere;
use super::warps::cta::Completion;
use super::warps::readiness::Ready;
use super::warps::slot::Status;
use crate::engine::Outbox;
use balar_isa::execution::{AccessKind, MemoryAccess, Space};
use balar_isa::program::lanes;
use balar_protocol::cluster::{ClusterArrival, ClusterMessage, ClusterPlace, RemoteAccess, RemoteBulk};
use balar_protocol::cuda::{FaultCause, KernelFault, LaunchId};
use balar_protocol::{Payload, PortId};

/// The message about an SM that no network joins to others.
const NO_NETWORK: &str = "clusters of CTAs on a GPU without an SmNetwork, which would join its SMs";

impl<P: Profile> Sm<P> {
    /// Why a CTA of a cluster cannot run here, if it cannot.
    pub(super) fn refusal_of_clusters(&self) -> Option<FaultCause> {
        self.wiring.cluster.is_none().then(|| FaultCause::Unsupported(NO_NETWORK.to_owned()))
    }

    /// The last step's access is one to the shared memory of other CTAs: it leaves.
    pub(super) fn access_elsewhere(&mut self, warp: usize, elsewhere: Elsewhere, step: &mut Step) {
        let (cycle, pc) = (step.now.cycle, elsewhere.pc);
        let Some(port) = self.wiring.cluster else {
            let lane = self.execution.access.mask.trailing_zeros() as u8;
            return self.fail(warp, (pc, lane), FaultCause::Unsupported(NO_NETWORK.to_owned()), cycle, step.out);
        };
        let leaves = self.leave_pipe(warp, cycle);
        let ranks = ranks_of(&self.execution);
        let returns = matches!(self.execution.access.kind, AccessKind::Load | AccessKind::Atomic);
        let (slot, _, cta) = self.state.warps.all_of(warp);
        let Some(launch) = cta.launch.as_ref().map(|launch| launch.id) else { return };
        let answers = ranks.count_ones();
        let wait = RemoteWait { warp: warp as u16, generation: slot.generation, pc, answers, returns };
        let id = self.state.remote.insert(wait);
        slot.outstanding += answers;
        slot.expects_answers = true;
        let from = ClusterPlace { sm: self.wiring.index as u16, slot: slot.cta };
        let at = self.wiring.ports.clock.time_of(leaves);
        for rank in lanes(ranks) {
            let mut message = Box::<RemoteAccess>::default();
            fill(&mut message, &self.execution, (&cta.cluster, launch), rank as u32, (&elsewhere, from, id));
            step.out.send(port, at, Payload::Cluster(ClusterMessage::Access(message)));
        }
        if returns {
            self.set_results_in_order(warp, pc, Ready::PENDING);
        }
    }

    /// The last step's access goes through the memory pipe: gives the cycle in which it is through.
    fn leave_pipe(&mut self, warp: usize, cycle: u64) -> u64 {
        let (pipe, front_end) = (&mut self.state.pipe, &mut self.state.front_end);
        let from = front_end.addresses_from(warp, cycle);
        let access = MemoryAccess { space: Space::Global, mask: 0, ..MemoryAccess::default() };
        let (through, taken) = pipe.accept_empty(&self.specification.pipe, &access, (cycle, from));
        front_end.leaves(&self.specification.front_end, warp, from, taken.first);
        through
    }

    /// A message has come from the network.
    pub(super) fn cluster_received(&mut self, message: &ClusterMessage, step: &mut Step) {
        match message {
            ClusterMessage::Access(access) => self.remote_access_received(access, step),
            ClusterMessage::Answer(answer) => self.answer_received(answer, step),
            ClusterMessage::Bulk(bulk) => self.bulk_received(bulk, step),
            ClusterMessage::BulkDone(bulk) => self.bulk_done(bulk, step),
            ClusterMessage::Release(release) => self.cluster_released(*release, step),
            ClusterMessage::Arrive(_) | ClusterMessage::Leave(_) => {
                Payload::Cluster(message.clone()).unexpected("cluster")
            }
        }
    }

    /// Sends an answer when the SM's shared memory would have given it.
    fn answer(&self, port: PortId, message: ClusterMessage, step: &mut Step) {
        let at = self.wiring.ports.clock.time_of(step.now.cycle + self.specification.pipe.shared_latency());
        step.out.send(port, at, Payload::Cluster(message));
    }

    fn remote_access_received(&mut self, access: &RemoteAccess, step: &mut Step) {
        let Some(port) = self.wiring.cluster else { return };
        let mut answer = Box::new(access.clone());
        perform(&mut answer, self.state.warps.cta_at(access.to.slot));
        self.answer(port, ClusterMessage::Answer(answer), step);
    }

    fn bulk_received(&mut self, bulk: &RemoteBulk, step: &mut Step) {
        let Some(port) = self.wiring.cluster else { return };
        let mut answer = Box::new(bulk.clone());
        perform_bulk(&mut answer, self.state.warps.cta_at(bulk.to.slot));
        if self.specification.check_hazards && answer.fault.is_none() {
            answer.fault = self.hazard_of_remote_copy(bulk);
        }
        self.answer(port, ClusterMessage::BulkDone(answer), step);
    }

    /// Bytes that a CTA has sent are where they should be, or its kernel fails.
    fn bulk_done(&mut self, bulk: &RemoteBulk, step: &mut Step) {
        let Some(cause) = &bulk.fault else { return };
        let slot = bulk.from.slot;
        let sender = self.state.warps.cta_at(slot).and_then(|cta| Some((cta.launch.clone()?, cta.cta)));
        let Some((launch, cta)) = sender.filter(|(launch, _)| launch.id == bulk.cluster.launch) else { return };
        let fault = KernelFault::of(&launch, cta, [0; 3], cause.clone(), "a bulk copy to another CTA".to_owned());
        self.end_cta(usize::from(slot), Some(fault), step.now.cycle, step.out);
    }

    fn answer_received(&mut self, answer: &RemoteAccess, step: &mut Step) {
        let cycle = step.now.cycle;
        let wait = &mut self.state.remote[answer.id];
        wait.answers -= 1;
        let RemoteWait { warp, generation, pc, answers, returns } = *wait;
        if answers == 0 {
            self.state.remote.remove(answer.id);
        }
        let warp = usize::from(warp);
        if self.state.warps.is_current(warp, generation) {
            if let Some((lane, cause)) = &answer.fault {
                return self.fail(warp, (pc, *lane), cause.clone(), cycle, step.out);
            }
            if returns {
                let (program, state, _) = self.state.warps.context(warp).parts();
                state.write_deferred_result(program, pc, &values_of(answer), answer.mask);
                if answers == 0 {
                    self.results_arrived(warp, pc, cycle + 1);
                    if self.state.warps.warp(warp).status == Status::Memory {
                        self.resume(warp, cycle, step);
                    }
                }
            }
        }
        self.acknowledged(warp, generation, step);
    }

    /// Lanes of a warp arrive at the barrier of their cluster.
    pub(super) fn arrive_at_cluster(&mut self, warp: usize, mask: u32, step: &mut Step) {
        let (slot, _, cta) = self.state.warps.all_of(warp);
        cta.counters.inst_barriers += 1;
        let is_complete = cta.cluster.arrive(slot.warp_in_cta, mask, cta.live_threads);
        let cta = usize::from(slot.cta);
        if is_complete {
            self.cta_arrives_at_cluster(cta, step);
        }
    }

    /// Lanes of a warp have ended: the barrier of their cluster may have waited for them alone.
    pub(super) fn exit_of_cluster(&mut self, warp: usize, mask: u32, step: &mut Step) {
        let (slot, _, cta) = self.state.warps.all_of(warp);
        let is_complete = cta.cluster.exit(slot.warp_in_cta, mask, cta.live_threads);
        let cta = usize::from(slot.cta);
        if is_complete {
            self.cta_arrives_at_cluster(cta, step);
        }
    }

    /// All threads of a CTA have arrived at the barrier of their cluster.
    fn cta_arrives_at_cluster(&mut self, number: usize, step: &mut Step) {
        let cycle = step.now.cycle;
        let cta = self.state.warps.cta(number);
        let launch = cta.launch.as_ref().map_or(LaunchId(0), |launch| launch.id);
        match (cta.cluster.arrival(launch, number), self.wiring.cluster) {
            (Some(arrival), Some(port)) => {
                let at = self.wiring.ports.clock.time_of(cycle + self.specification.barrier_latency);
                step.out.send(port, at, Payload::Cluster(ClusterMessage::Arrive(arrival)));
            }
            // The CTA is its own cluster.
            _ => self.release_cluster(number, cycle + self.specification.barrier_latency, step),
        }
    }

    fn cluster_released(&mut self, release: ClusterArrival, step: &mut Step) {
        let number = usize::from(release.slot);
        let is_there = self.state.warps.cta_at(release.slot).is_some_and(|cta| {
            cta.launch.as_ref().is_some_and(|launch| cta.cluster.arrival(launch.id, number) == Some(release))
        });
        // The CTA may have ended meanwhile.
        if is_there {
            self.release_cluster(number, step.now.cycle + 1, step);
        }
    }

    /// The threads of a CTA go on from the barrier of their cluster at `resume`.
    fn release_cluster(&mut self, cta: usize, resume: u64, step: &mut Step) {
        self.state.warps.cta(cta).cluster.release();
        self.release_barrier(cta, Completion::OF_CLUSTER, resume, step);
    }

    /// A CTA ends or is dropped: its cluster does not wait for it any more.
    pub(super) fn leave_cluster(&mut self, number: usize, cycle: u64, out: &mut Outbox) {
        let Some(port) = self.wiring.cluster else { return };
        let cta = self.state.warps.cta(number);
        let Some(launch) = cta.launch.as_ref().map(|launch| launch.id) else { return };
        if let Some(arrival) = cta.cluster.arrival(launch, number) {
            // Behind its last arrival.
            let at = self.wiring.ports.clock.time_of(cycle + self.specification.barrier_latency);
            out.send(port, at, Payload::Cluster(ClusterMessage::Leave(arrival)));
        }
    }
}
