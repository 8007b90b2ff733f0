//! An L2 of two partitions: each line belongs to a slice of one of them, and one slice of the other keeps copies of it.
//!
//! NVIDIA's A100 and H100 have such an L2: "Each L2 partition caches data for memory accesses from SMs in the GPCs directly connected to
//! the partition. Hardware cache-coherence maintains the CUDA programming model" (NVIDIA A100 Tensor Core GPU Architecture). How is not
//! published. Here an SM asks a slice of its own partition. That slice answers loads of its own lines and of its copies. A load that finds
//! no copy goes on to the slice that the line belongs to, and leaves a copy. Stores and atomics go on to it, too: it is the point of
//! coherence, which knows of which sectors there are copies, and tells the other slice when one is out of date or when it gives the line
//! up. A store by the SMs that read the copies takes theirs away on its way; a fill that is under way meanwhile stays. The copies of an
//! A100 are for weak loads alone ([`Copies`]).
//!
//! The latencies of an A100 and an H800 agree with that (Luo et al., arXiv 2501.12084; validation/README.md, "Changes of the models").

use super::counters::Stall;
use super::input::Asker;
use super::sets::{Line, Place};
use super::{Copies, L2Slice, L2SliceParameters, Source};
use crate::catalogue::{BuildContext, ParameterProblem, Peer};
use crate::engine::Outbox;
use balar_protocol::memory::{
    MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse, SECTOR_BYTES, Scope, sector_count,
};
use balar_protocol::{Payload, PortId, SimTime};

/// The slice of the other partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    /// The port to it, for its lines.
    pub far: Option<PortId>,
    /// The port from it, for the lines of this one.
    pub near: Option<PortId>,
    /// Which loads find and leave copies.
    copies: Copies,
}

/// The return port of loads for a copy, which no requester has; what is passed on keeps its own.
pub(super) const COPY: u16 = u16::MAX;

impl Partition {
    /// That of a slice with these parameters.
    pub fn of(context: &BuildContext, parameters: &L2SliceParameters) -> Result<Partition, ParameterProblem> {
        let L2SliceParameters { ways, copies, .. } = *parameters;
        let partition = Partition { far: context.ports.get("far"), near: context.ports.get("near"), copies };
        if partition.far.is_some() != partition.near.is_some() {
            let [wired, other] = if partition.far.is_some() { ["far", "near"] } else { ["near", "far"] };
            let problem = format!("expected a wire to this port, too, as {wired} has one");
            return Err(ParameterProblem::new(other, problem));
        }
        let crossbar = context.ports.get("crossbar").and_then(|crossbar| context.ports.peer(crossbar));
        if let Some(crossbar) = crossbar.filter(|crossbar| crossbar.partitions() > 1 && partition.far.is_none()) {
            let Peer { path, .. } = crossbar;
            let problem =
                format!("expected a wire to this port, as `partitions` of {path} is {}", crossbar.partitions());
            return Err(ParameterProblem::new("far", problem));
        }
        if partition.far.is_some() && ways < 2 {
            let problem = format!("expected at least 2 in an L2 of two partitions, found {ways}");
            return Err(ParameterProblem::new("ways", problem));
        }
        Ok(partition)
    }

    /// Is a request for a line of the other partition passed on to it as it is?
    #[inline]
    pub fn is_passed_on(&self, request: &MemoryRequest) -> bool {
        request.kind.carries_data() || (self.copies == Copies::OfWeakLoads && request.scope != Scope::Weak)
    }
}

impl L2Slice {
    /// MSHRs in use for lines that belong to the other partition, or to this one.
    #[inline]
    pub(super) fn mshrs_in_use(&mut self, is_far: bool) -> &mut u32 {
        if is_far { &mut self.state.far_mshr_used } else { &mut self.state.mshr_used }
    }

    /// Counts a request that found sectors `there` or on their way.
    #[inline]
    pub(super) fn count(&mut self, asker: Asker, request: &MemoryRequest, there: u8) {
        let counters = &mut self.state.counters;
        if asker == Asker::Crossbar {
            counters.count(request, there);
            self.state.by_launch.of(request.launch).count(request, there);
            return;
        }
        counters.near_requests += 1;
        if request.kind == MemoryKind::Load {
            counters.near_sectors_read += u64::from(sector_count(request.sectors));
            counters.near_sector_hits_read += u64::from(sector_count(request.sectors & there));
        }
    }

    /// Keeps account of the copies of the line of a request.
    #[inline]
    pub(super) fn follow_copies(
        &mut self,
        cycle: u64,
        index: u32,
        (asker, request): (Asker, &MemoryRequest),
        out: &mut Outbox,
    ) {
        let line = self.sets.line_mut(index);
        match (asker, request.kind) {
            (Asker::Near, MemoryKind::Load) if request.return_port == COPY => line.copied |= request.sectors,
            // It has taken its own away.
            (Asker::Near, _) => line.copied &= !request.sectors,
            (_, MemoryKind::Load) => {}
            (Asker::Crossbar, _) => {
                let line = *line;
                self.forget_copies(cycle, &line, line.copied & request.sectors, out);
                self.sets.line_mut(index).copied &= !request.sectors;
            }
        }
    }

    /// The other partition has no copies of sectors of a line any more.
    #[inline]
    pub(super) fn forget_copies(&mut self, cycle: u64, line: &Line, sectors: u8, out: &mut Outbox) {
        if let Some(near) = self.partition.near
            && sectors != 0
        {
            self.state.counters.near_sectors_forgotten += u64::from(sector_count(sectors));
            // Answers leave at the beginning of a cycle: so none is sent at the same time, and their order is that of their times.
            let depart = self.clock.time_of(cycle + u64::from(self.parameters.miss_latency)) + SimTime(1);
            let message = MemoryMessage::Forget { line: line.address, sectors };
            out.send(near, depart, Payload::Memory(message));
        }
    }

    /// A store, an atomic or a load without a copy, of a line that belongs to the other partition, goes on to it.
    pub(super) fn forward(&mut self, cycle: u64, place: Place, request: &MemoryRequest, out: &mut Outbox) {
        self.count(Asker::Crossbar, request, 0);
        self.state.counters.far_passed_on += 1;
        if request.kind.carries_data() {
            self.forget(place, request.line, request.sectors);
        }
        let depart = self.clock.time_of(cycle + u64::from(self.parameters.miss_latency));
        let port = self.partition.far.unwrap_or(self.memory);
        let request = MemoryRequest { is_far: false, ..*request };
        out.send(port, depart, Payload::Memory(MemoryMessage::Request(request)));
    }

    /// A copy of sectors of a line is here no more.
    fn forget(&mut self, place: Place, line: u64, sectors: u8) {
        if let Some(index) = self.sets.find(place, line) {
            let line = self.sets.line_mut(index);
            line.valid &= !sectors;
        }
    }

    /// The other partition says or asks something.
    pub(super) fn handle_partition(&mut self, port: PortId, payload: &Payload, cycle: u64) {
        let is = |wired: Option<PortId>| wired == Some(port);
        match payload {
            Payload::Memory(MemoryMessage::Request(request)) if is(self.partition.near) => {
                self.enqueue(Asker::Near, cycle, request);
            }
            Payload::Memory(MemoryMessage::Response(response)) if is(self.partition.far) => {
                self.receive_far(cycle, response);
            }
            Payload::Memory(MemoryMessage::Forget { line, sectors }) if is(self.partition.far) => {
                self.forget(self.sets.place(*line), *line, *sectors);
            }
            payload => payload.unexpected(if is(self.partition.near) { "near" } else { "far" }),
        }
    }

    /// The other partition answers: with a copy, or to what was passed on.
    fn receive_far(&mut self, cycle: u64, response: &MemoryResponse) {
        if response.return_port == COPY {
            if (response.id as usize) < self.sets.len() {
                let is_last = self.fill(cycle, response, Some(response.served_by));
                self.state.far_mshr_used -= u32::from(is_last);
            }
            self.unblock(cycle, |stall| matches!(stall, Stall::Mshr | Stall::Merge | Stall::Set));
            return;
        }
        let ready = cycle + u64::from(self.parameters.fill_latency);
        let data = response.data_bytes().max(SECTOR_BYTES);
        self.state.answers.push(Source::Fill, ready, data, (Asker::Crossbar, *response));
    }
}

#[cfg(test)]
mod tests;
