//! The network between the SMs of a GPU: accesses to the shared memory of other CTAs of a cluster, and the barriers of clusters.
//!
//! A message takes the port of the SM that it comes from, and that of the SM that it goes to, for as many cycles as its data need at the
//! ports' rate, one at least; what finds a port taken waits. So messages from one SM to another keep their order. The network counts the
//! arrivals at a cluster's barrier, and tells all its CTAs when the last has come.
//!
//! **Invariant:** nothing depends on where windows end: when a message leaves follows from the messages before it, in the order of time and
//! source.

#[cfg(test)]
mod tests;

use crate::catalogue::bounds::{CLOCK, CYCLES};
use crate::catalogue::{
    BuildContext, BuildError, Capability, ParameterProblem, ParameterSet, PortDefinition, UnitDefinition,
};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use crate::gpu::cluster_barriers::ClusterBarriers;
use balar_protocol::cluster::{ClusterArrival, ClusterMessage};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Clock, Frequency, Payload, PortId, Protocol};
use serde::{Deserialize, Serialize};

crate::parameters! {
    /// The network between the SMs of a GPU.
    pub struct SmNetworkParameters {
        /// clock of the network
        #[range(CLOCK)]
        clock: Frequency,
        /// cycles from the grant of a message to its departure (estimate)
        #[range(CYCLES)]
        latency: u32 = "5",
        /// bytes of data a cycle from an SM, and as many to it (estimate: 3.27 TB/s of the 114 SMs of an H800 PCIe at 1755 MHz, clusters of two; Luo et al., arXiv 2501.12084)
        #[range(1..=4096)]
        bytes_per_cycle: u32 = "16",
        /// SMs of each GPC, in their order: a cluster is placed within one. SMs that none has, all where the list is empty, are one more
        gpcs: Vec<u32> = "[]",
    }
}

balar_protocol::counters! {
    /// The counters of the network between SMs.
    pub struct SmNetworkCounters {
        /// accesses and answers that were passed on, and transfers of bytes
        messages: "message",
        /// bytes of data that they carried
        bytes: "byte",
        /// cycles that they waited for the ports of SMs, summed
        wait_cycles: "cycle",
        /// barriers of clusters that all CTAs have come to
        cluster_barriers: "barrier",
    }
}

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "SmNetwork",
    summary: "network between SMs: shared memory of clusters of CTAs, and their barriers",
    parameters: SmNetworkParameters::DEFINITIONS,
    check: SmNetworkParameters::check,
    ports: &[PortDefinition::server("sm", Protocol::Cluster, "the SMs, in their order").row()],
    counters: SmNetworkCounters::DEFINITIONS,
    provides,
    weight: 2,
    build,
};

fn provides(text: &str) -> Vec<Capability> {
    let parameters: Option<SmNetworkParameters> = ron::from_str(text).ok();
    parameters.map(|parameters| Capability::SmNetwork { gpcs: parameters.gpcs }).into_iter().collect()
}

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: SmNetworkParameters = ron::from_str(text)?;
    let mut problems = parameters.range_problems();
    let ports: Vec<(u32, PortId)> = context.ports.row("sm").collect();
    let sms = context.surroundings.gpu(context.part).map_or(0, |(_, gpu)| gpu.sms.len());
    if ports.len() != sms || ports.iter().zip(0..).any(|((index, _), expected)| *index != expected) {
        let problem = format!("expected a wire to each of the {sms} SMs of {}, found {}", context.part, ports.len());
        problems.push(ParameterProblem::new("sm", problem));
    }
    let misplaced = ports.iter().find_map(|(index, port)| {
        let peer = context.ports.peer(*port)?;
        (peer.index() != *index)
            .then(|| format!("its port sm[{index}] leads to {}, expected the SM of that number", peer.path))
    });
    problems.extend(misplaced.map(|problem| ParameterProblem::new("sm", problem)));
    problems.into_result()?;
    Ok(Box::new(SmNetwork::new(&parameters, ports.into_iter().map(|(_, port)| port).collect())))
}

/// Everything that changes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    /// The first cycle in which each SM's port takes another message from it, and to it.
    free_from: Vec<u64>,
    free_to: Vec<u64>,
    barriers: ClusterBarriers<(u16, u16)>,
    counters: SmNetworkCounters,
}

/// The unit.
#[derive(Debug)]
struct SmNetwork {
    clock: Clock,
    latency: u64,
    bytes_per_cycle: u64,
    /// The port of each SM.
    ports: Vec<PortId>,
    /// The SM at each port.
    sms: Vec<u16>,
    state: State,
}

impl SmNetwork {
    fn new(parameters: &SmNetworkParameters, ports: Vec<PortId>) -> SmNetwork {
        let mut sms = vec![0; ports.iter().map(|port| usize::from(port.0) + 1).max().unwrap_or(0)];
        ports.iter().zip(0..).for_each(|(port, sm)| sms[usize::from(port.0)] = sm);
        let count = ports.len();
        SmNetwork {
            clock: Clock::new(parameters.clock),
            latency: u64::from(parameters.latency),
            bytes_per_cycle: u64::from(parameters.bytes_per_cycle),
            ports,
            sms,
            state: State { free_from: vec![0; count], free_to: vec![0; count], ..State::default() },
        }
    }

    /// Passes a message on.
    fn pass(&mut self, from: u16, cycle: u64, message: ClusterMessage, out: &mut Outbox) {
        let Some(to) = message.destination().filter(|to| usize::from(*to) < self.ports.len()) else {
            Payload::Cluster(message).unexpected("sm[*]")
        };
        let bytes = message.data_bytes();
        let State { free_from, free_to, counters, .. } = &mut self.state;
        let cycles = bytes.div_ceil(self.bytes_per_cycle).max(1);
        let leaves = cycle.max(free_from[usize::from(from)]);
        free_from[usize::from(from)] = leaves + cycles;
        let arrives = leaves.max(free_to[usize::from(to)]);
        free_to[usize::from(to)] = arrives + cycles;
        counters.messages += 1;
        counters.bytes += bytes;
        counters.wait_cycles += arrives - cycle;
        // The last byte follows the first.
        let departs = arrives + self.latency + cycles - 1;
        out.send(self.ports[usize::from(to)], self.clock.time_of(departs), Payload::Cluster(message));
    }

    /// All CTAs of a cluster have come to its barrier.
    fn release(&mut self, arrival: ClusterArrival, members: Vec<(u16, u16)>, cycle: u64, out: &mut Outbox) {
        if members.is_empty() {
            return;
        }
        self.state.counters.cluster_barriers += 1;
        for (sm, slot) in members {
            let free = &mut self.state.free_to[usize::from(sm)];
            let arrives = cycle.max(*free);
            *free = arrives + 1;
            let at = self.clock.time_of(arrives + self.latency);
            let release = ClusterMessage::Release(ClusterArrival { slot, ..arrival });
            out.send(self.ports[usize::from(sm)], at, Payload::Cluster(release));
        }
    }
}

impl Unit for SmNetwork {
    fn advance(&mut self, _window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        while let Some(message) = inbox.take() {
            let cycle = self.clock.cycle_at_or_after(message.time);
            let from = self.sms[usize::from(message.port.0)];
            let Payload::Cluster(of_cluster) = message.payload else { message.payload.unexpected("sm[*]") };
            match of_cluster {
                ClusterMessage::Arrive(arrival) => {
                    let member = (from, arrival.slot);
                    let members = self.state.barriers.arrive(arrival.cluster, arrival.size.into(), member);
                    self.release(arrival, members, cycle, out);
                }
                ClusterMessage::Leave(arrival) => {
                    let member = (from, arrival.slot);
                    let members = self.state.barriers.leave(arrival.cluster, arrival.size.into(), member);
                    self.release(arrival, members, cycle, out);
                }
                passed => self.pass(from, cycle, passed, out),
            }
        }
        NextWake::OnMessage
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.state.counters.write(sink);
    }

    fn outstanding(&self) -> Option<String> {
        let (clusters, ctas) = self.state.barriers.waiting();
        (clusters > 0).then(|| format!("{ctas} CTAs of {clusters} clusters wait at the barriers of their clusters"))
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&self.state)
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        let state: State = restore_state(state)?;
        if [&state.free_from, &state.free_to].into_iter().any(|ports| ports.len() != self.ports.len()) {
            return Err(StateError::Mismatch("another number of SMs".to_owned()));
        }
        self.state = state;
        Ok(())
    }
}
