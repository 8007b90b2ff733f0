//! Which addresses are mapped, and who may access them.

use super::WriteLog;
use crate::memory::arena::Arena;
use crate::memory::{Bounds, GpuSet};
use balar_protocol::{ContextId, ProcessId, SimTime};
use serde::{Deserialize, Serialize};

/// A change of the addresses that may be accessed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum LegalityChange {
    Map {
        address: u64,
        bytes: u64,
        process: ProcessId,
        bounds: Bounds,
    },
    /// Memory of a GPU is at reserved addresses, for these GPUs alone.
    MapReserved {
        address: u64,
        bytes: u64,
        process: ProcessId,
        owner: u8,
        gpus: GpuSet,
    },
    Unmap {
        address: u64,
    },
    /// Whether a context may access the memory that its process has on another GPU.
    Peer {
        context: ContextId,
        peer: u8,
        enabled: bool,
    },
    /// Whether another process may access an allocation, too.
    Share {
        address: u64,
        process: ProcessId,
        enabled: bool,
    },
    /// Whom an allocation is opened to.
    Open {
        address: u64,
        gpus: GpuSet,
    },
}

impl WriteLog {
    /// At `time`, the range becomes an allocation of the first process: accesses to it, and within `bounds`, are legal from the next
    /// window on.
    pub fn map(&mut self, time: SimTime, address: u64, bytes: u64, bounds: Bounds) {
        self.map_for(ProcessId::FIRST, time, address, bytes, bounds);
    }

    /// As [`Self::map`], for `process`.
    pub fn map_for(&mut self, process: ProcessId, time: SimTime, address: u64, bytes: u64, bounds: Bounds) {
        self.push(time, LegalityChange::Map { address, bytes, process, bounds });
    }

    /// At `time`, memory of the context `owner` is at reserved addresses: its process on these GPUs alone may access it. Replaces earlier
    /// memory of a range that begins there.
    pub fn map_reserved(&mut self, time: SimTime, address: u64, bytes: u64, owner: ContextId, gpus: GpuSet) {
        let (process, owner) = (owner.process(), owner.gpu() as u8);
        let change = LegalityChange::MapReserved { address, bytes, process, owner, gpus };
        self.push(time, change);
    }

    /// From `time` on, `process` may access the allocation at `address` as its owner may, or no longer.
    pub fn share(&mut self, time: SimTime, address: u64, process: ProcessId, enabled: bool) {
        self.push(time, LegalityChange::Share { address, process, enabled });
    }

    /// At `time`, the allocation at `address` ends.
    pub fn unmap(&mut self, time: SimTime, address: u64) {
        self.push(time, LegalityChange::Unmap { address });
    }

    /// From `time` on, a context may access all memory that its process has on another GPU, or no longer.
    pub fn set_peer(&mut self, time: SimTime, context: ContextId, peer: usize, enabled: bool) {
        let change = LegalityChange::Peer { context, peer: peer as u8, enabled };
        self.push(time, change);
    }

    /// From `time` on, these GPUs may access the allocation at `address`, beside those that may access all memory of its own.
    pub fn open_to(&mut self, time: SimTime, address: u64, gpus: GpuSet) {
        self.push(time, LegalityChange::Open { address, gpus });
    }
}

impl LegalityChange {
    pub fn apply(&self, arena: &mut Arena) {
        match *self {
            LegalityChange::Map { address, bytes, process, bounds } => arena.map(process, address, bytes, bounds),
            LegalityChange::MapReserved { address, bytes, process, owner, gpus } => {
                arena.map_reserved(process, address, bytes, owner, gpus);
            }
            LegalityChange::Unmap { address } => arena.allocations.remove(address),
            LegalityChange::Peer { context, peer, enabled } => {
                arena.allocations.set_peer(context, usize::from(peer), enabled);
            }
            LegalityChange::Share { address, process, enabled } => arena.allocations.share(address, process, enabled),
            LegalityChange::Open { address, gpus } => arena.allocations.open_to(address, gpus),
        }
    }
}
