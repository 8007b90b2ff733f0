//! Which addresses are mapped, and who may access them.

use super::{EntryKind, WriteLog};
use crate::memory::{Arena, Bounds, GpuSet};
use balar_protocol::SimTime;
use serde::{Deserialize, Serialize};

/// A change of what is legal to access.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum LegalityChange {
    Map {
        address: u64,
        bytes: u64,
        bounds: Bounds,
    },
    /// Memory of a GPU is at reserved addresses, for these GPUs alone.
    MapReserved {
        address: u64,
        bytes: u64,
        owner: u8,
        gpus: GpuSet,
    },
    Unmap {
        address: u64,
    },
    /// Whether a GPU may access another one's memory.
    Peer {
        gpu: u8,
        peer: u8,
        enabled: bool,
    },
    /// Whom an allocation is opened to.
    Open {
        address: u64,
        gpus: GpuSet,
    },
}

impl WriteLog {
    /// At `time`, the range becomes an allocation: accesses to it, and within `bounds`, are legal from the next window on.
    pub fn map(&mut self, time: SimTime, address: u64, bytes: u64, bounds: Bounds) {
        self.push(time, EntryKind::Legality(LegalityChange::Map { address, bytes, bounds }));
    }

    /// At `time`, memory of the GPU `owner` is at reserved addresses: these GPUs alone may access it. Replaces what was said before
    /// of a range that begins there.
    pub fn map_reserved(&mut self, time: SimTime, address: u64, bytes: u64, owner: usize, gpus: GpuSet) {
        let change = LegalityChange::MapReserved { address, bytes, owner: owner as u8, gpus };
        self.push(time, EntryKind::Legality(change));
    }

    /// At `time`, the allocation at `address` ends.
    pub fn unmap(&mut self, time: SimTime, address: u64) {
        self.push(time, EntryKind::Legality(LegalityChange::Unmap { address }));
    }

    /// From `time` on, a GPU may access all memory of another one, or no longer.
    pub fn set_peer(&mut self, time: SimTime, gpu: usize, peer: usize, enabled: bool) {
        let change = LegalityChange::Peer { gpu: gpu as u8, peer: peer as u8, enabled };
        self.push(time, EntryKind::Legality(change));
    }

    /// From `time` on, these GPUs may access the allocation at `address`, beside those that may access all memory of its own.
    pub fn open_to(&mut self, time: SimTime, address: u64, gpus: GpuSet) {
        self.push(time, EntryKind::Legality(LegalityChange::Open { address, gpus }));
    }
}

impl LegalityChange {
    pub fn apply(&self, arena: &mut Arena) {
        match *self {
            LegalityChange::Map { address, bytes, bounds } => arena.map(address, bytes, bounds),
            LegalityChange::MapReserved { address, bytes, owner, gpus } => {
                arena.map_reserved(address, bytes, owner, gpus);
            }
            LegalityChange::Unmap { address } => arena.allocations.remove(address),
            LegalityChange::Peer { gpu, peer, enabled } => {
                arena.allocations.set_peer(usize::from(gpu), usize::from(peer), enabled);
            }
            LegalityChange::Open { address, gpus } => arena.allocations.open_to(address, gpus),
        }
    }
}
