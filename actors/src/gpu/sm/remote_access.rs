//! Accesses to the shared memory of other CTAs of the cluster: what a warp asks, and how it is done where the memory is.

use super::execution::Execution;
use super::warps::cluster::{ClusterSlot, Elsewhere};
use super::warps::copies::complete;
use super::warps::cta::CtaSlot;
use balar_isa::cluster::{OFFSET_BITS, rank_of, shared_base};
use balar_isa::execution::{AccessKind, LaneValues, value_of_bytes};
use balar_isa::program::{LANES, Program, lanes};
use balar_protocol::cluster::{ClusterPlace, RemoteAccess, RemoteBulk, RemoteKind};
use balar_protocol::cuda::{FaultAccess, FaultCause, FaultSpace, LaunchId};
use serde::{Deserialize, Serialize};

/// An access that is under way to other SMs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RemoteWait {
    /// The warp's slot.
    pub warp: u16,
    /// The generation of that slot.
    pub generation: u32,
    /// The instruction.
    pub pc: u32,
    /// Answers that are still to come, one of each CTA.
    pub answers: u32,
    /// Registers wait for them.
    pub returns: bool,
}

/// The ranks whose memory an access names, a bit each.
pub fn ranks_of(execution: &Execution) -> u32 {
    let access = &execution.access;
    lanes(access.mask).fold(0, |ranks, lane| ranks | 1 << (rank_of(access.addresses[lane]) % u32::BITS))
}

/// Makes `message` the part of the last step's access that is for the CTA of a rank.
pub fn fill(
    message: &mut RemoteAccess,
    execution: &Execution,
    (cluster, launch): (&ClusterSlot, LaunchId),
    rank: u32,
    (elsewhere, from, id): (&Elsewhere, ClusterPlace, u32),
) {
    let (access, pc) = (&execution.access, elsewhere.pc);
    message.cluster = cluster.id(launch);
    message.to = cluster.member(rank).unwrap_or_default();
    message.rank = rank as u8;
    (message.from, message.id) = (from, id);
    message.bytes = access.bytes;
    message.kind = match access.kind {
        AccessKind::Load => RemoteKind::Load,
        AccessKind::Store => RemoteKind::Store,
        AccessKind::Atomic => RemoteKind::Atomic { pc },
        AccessKind::Reduction => RemoteKind::Reduction { pc },
    };
    message.mask = lanes(access.mask)
        .filter(|&lane| rank_of(access.addresses[lane]) == rank)
        .fold(0, |mask, lane| mask | 1 << lane);
    message.offsets = access.addresses.map(|address| (address & OFFSET_BITS) as u32);
    let values = &execution.values;
    let sent = if access.kind == AccessKind::Store { &values.accessed } else { &values.operands };
    message.values = [sent.low, sent.high];
    message.replacements = [values.replacements.low, values.replacements.high];
    (message.barriers, message.fault) = (elsewhere.barriers.clone(), None);
}

/// The values that an answer has brought.
pub fn values_of(answer: &RemoteAccess) -> LaneValues {
    let [low, high] = answer.values;
    LaneValues { low, high }
}

/// Is this the CTA of that rank in that cluster?
fn is_member(cta: &CtaSlot, access: (balar_protocol::cluster::ClusterId, u8)) -> bool {
    let (cluster, rank) = access;
    cta.launch.as_ref().is_some_and(|launch| {
        launch.id == cluster.launch
            && cta.cluster.size() > 1
            && cta.cluster.id(launch.id) == cluster
            && cta.cluster.rank() == u32::from(rank)
    })
}

/// Tells an `mbarrier` object that so many bytes have come. False where none can be at that place.
fn complete_at(shared: &mut [u8], offset: u32, bytes: u32) -> bool {
    offset.is_multiple_of(8) && complete(shared, offset, bytes)
}

/// Does an access in the memory of `cta`, where that is the CTA that it names; it becomes its own answer.
pub fn perform(access: &mut RemoteAccess, cta: Option<&mut CtaSlot>) {
    let Some(cta) = cta.filter(|cta| is_member(cta, (access.cluster, access.rank))) else {
        let lane = access.mask.trailing_zeros() as usize % LANES;
        let rank = u32::from(access.rank);
        let address = shared_base(rank) + u64::from(access.offsets[lane]);
        access.fault = Some((lane as u8, FaultCause::AbsentCta { rank, address }));
        return;
    };
    let function = match access.kind {
        RemoteKind::Atomic { pc } | RemoteKind::Reduction { pc } => {
            let program = cta.launch.as_ref().and_then(|launch| launch.code.program::<Program>());
            let function = program.and_then(|program| program.atomic_function(pc));
            if function.is_none() {
                let cause =
                    FaultCause::Unsupported("an update of another CTA's shared memory that is no atomic".to_owned());
                access.fault = Some((access.mask.trailing_zeros() as u8 % LANES as u8, cause));
                return;
            }
            function
        }
        RemoteKind::Load | RemoteKind::Store => None,
    };
    let length = usize::from(access.bytes).min(16);
    for lane in lanes(access.mask) {
        let place = access.offsets[lane] as usize;
        let Some(memory) = place.checked_add(length).and_then(|end| cta.shared.get_mut(place..end)) else {
            return refuse(access, lane);
        };
        let sent = wide(access.values, lane);
        let read = match (access.kind, function) {
            (RemoteKind::Load, _) => value_of_bytes(memory),
            (_, Some(function)) => function.update(memory, sent, wide(access.replacements, lane)),
            _ => {
                memory.copy_from_slice(&sent.to_le_bytes()[..length]);
                0
            }
        };
        (access.values[0][lane], access.values[1][lane]) = (read as u64, (read >> 64) as u64);
        let barrier = access.barriers.as_ref().map(|barriers| barriers[lane]);
        if barrier.is_some_and(|barrier| !complete_at(&mut cta.shared, barrier, length as u32)) {
            return refuse(access, lane);
        }
    }
}

fn wide([low, high]: [[u64; LANES]; 2], lane: usize) -> u128 {
    u128::from(low[lane]) | u128::from(high[lane]) << 64
}

/// A lane's place is not in the memory.
#[cold]
fn refuse(access: &mut RemoteAccess, lane: usize) {
    let kind = match access.kind {
        RemoteKind::Load => FaultAccess::Load,
        RemoteKind::Store => FaultAccess::Store,
        RemoteKind::Atomic { .. } | RemoteKind::Reduction { .. } => FaultAccess::Atomic,
    };
    let address = shared_base(access.rank.into()) + u64::from(access.offsets[lane]);
    let (bytes, space) = (u32::from(access.bytes), FaultSpace::Shared);
    access.fault = Some((lane as u8, FaultCause::IllegalAddress { address, bytes, access: kind, space }));
}

/// Writes bytes to the memory of `cta`, where that is the CTA that they are for, and tells the `mbarrier` object that waits for them; the
/// message becomes its own answer.
pub fn perform_bulk(bulk: &mut RemoteBulk, cta: Option<&mut CtaSlot>) {
    let data = std::mem::take(&mut bulk.data);
    let (rank, bytes) = (u32::from(bulk.rank), data.len() as u32);
    let address = shared_base(rank) + u64::from(bulk.offset);
    let Some(cta) = cta.filter(|cta| is_member(cta, (bulk.cluster, bulk.rank))) else {
        bulk.fault = Some(FaultCause::AbsentCta { rank, address });
        return;
    };
    let first = bulk.offset as usize;
    let place = first.checked_add(data.len()).and_then(|end| cta.shared.get_mut(first..end));
    let is_written = place.map(|place| place.copy_from_slice(&data)).is_some();
    let is_told = bulk.barrier.is_none_or(|barrier| complete_at(&mut cta.shared, barrier, bytes));
    if !is_written || !is_told {
        let (access, space) = (FaultAccess::Store, FaultSpace::Shared);
        bulk.fault = Some(FaultCause::IllegalAddress { address, bytes, access, space });
    }
}
