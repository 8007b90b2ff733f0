//! The cluster protocol: the SMs that run the CTAs of a cluster, and the network between them.
//!
//! An SM is the client, the network the server. The network passes accesses and bulk bytes on to the SM of the CTA that they name, and their
//! answers back; it counts the arrivals at a cluster's barrier itself. Values are read and written when a message arrives at the SM of the
//! memory: messages of this protocol carry data, for shared memory is a part of its SM.

use crate::fault::FaultCause;
use crate::launch::LaunchId;
use crate::ports::Side;
use serde::{Deserialize, Serialize};

/// Lanes of a warp.
const LANES: usize = 32;
/// CTAs that a cluster can have, where the kernel allows more than the portable number (CUDA C++ Programming Guide, "Thread Block
/// Clusters").
pub const MAXIMUM_CLUSTER: u32 = 16;
/// CTAs that a cluster can have on every GPU that knows clusters (likewise).
pub const PORTABLE_CLUSTER: u32 = 8;

/// The place of a CTA: an SM of the GPU and its CTA slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterPlace {
    /// The SM's number, which is that of its port at the network.
    pub sm: u16,
    /// The slot.
    pub slot: u16,
}

/// A cluster of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClusterId {
    /// The launch.
    pub launch: LaunchId,
    /// The cluster's number in the grid.
    pub number: u64,
}

/// What an access does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemoteKind {
    /// Reads.
    #[default]
    Load,
    /// Writes.
    Store,
    /// Does what the instruction at this place of the kernel does to a value, and gives the old one back.
    Atomic {
        /// The place.
        pc: u32,
    },
    /// The same, and gives nothing back.
    Reduction {
        /// The place.
        pc: u32,
    },
}

impl RemoteKind {
    /// Does its answer carry values?
    pub const fn returns_data(self) -> bool {
        matches!(self, RemoteKind::Load | RemoteKind::Atomic { .. })
    }

    /// Does the access itself carry values?
    pub const fn sends_data(self) -> bool {
        !matches!(self, RemoteKind::Load)
    }
}

/// An access of the lanes of a warp to the shared memory of one other CTA of the cluster; the same, with the values that it gives back, is
/// the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteAccess {
    /// The cluster.
    pub cluster: ClusterId,
    /// Where the CTA is whose memory it is, and that CTA's rank.
    pub to: ClusterPlace,
    /// The rank of that CTA.
    pub rank: u8,
    /// Bytes of each lane: 1, 2, 4, 8 or 16.
    pub bytes: u8,
    /// Where it comes from.
    pub from: ClusterPlace,
    /// The sender's own number, echoed in the answer.
    pub id: u32,
    /// What it does.
    pub kind: RemoteKind,
    /// Lanes that take part.
    pub mask: u32,
    /// Offsets in the CTA's shared memory.
    pub offsets: [u32; LANES],
    /// The values that are stored, or the operands of an atomic; in an answer, those that were read. Bytes 0 to 7 and 8 to 15 of each lane.
    pub values: [[u64; LANES]; 2],
    /// The values that an atomic with two operands has besides.
    pub replacements: [[u64; LANES]; 2],
    /// For a store or a reduction that tells an `mbarrier` object of the same CTA of its bytes: the offset of the object, by lane.
    pub barriers: Option<Box<[u32; LANES]>>,
    /// In an answer: the first lane whose access is not allowed, and why.
    pub fault: Option<(u8, FaultCause)>,
}

impl RemoteAccess {
    /// Bytes that all its lanes read or write together.
    pub const fn data_bytes(&self) -> u64 {
        self.mask.count_ones() as u64 * self.bytes as u64
    }
}

/// Bytes for the shared memory of a CTA of the cluster, and for an `mbarrier` object there that waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteBulk {
    /// The cluster.
    pub cluster: ClusterId,
    /// Where the CTA is.
    pub to: ClusterPlace,
    /// The rank of that CTA.
    pub rank: u8,
    /// Where it comes from.
    pub from: ClusterPlace,
    /// The sender's own number, echoed in the answer.
    pub id: u32,
    /// The offset of the first byte.
    pub offset: u32,
    /// The bytes.
    pub data: Box<[u8]>,
    /// The offset of the `mbarrier` object that is told how many bytes have come.
    pub barrier: Option<u32>,
    /// In an answer, which has no bytes: why it could not be done.
    pub fault: Option<FaultCause>,
}

/// A CTA at its cluster's barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterArrival {
    /// The cluster.
    pub cluster: ClusterId,
    /// The CTA's slot.
    pub slot: u16,
    /// CTAs of the cluster.
    pub size: u8,
}

/// Messages of the cluster protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ClusterMessage {
    /// SM to SM.
    Access(Box<RemoteAccess>),
    /// Back: it is done.
    Answer(Box<RemoteAccess>),
    /// SM to SM.
    Bulk(Box<RemoteBulk>),
    /// Back: the bytes are there.
    BulkDone(Box<RemoteBulk>),
    /// SM to network: all threads of a CTA that have not ended have arrived at the cluster's barrier.
    Arrive(ClusterArrival),
    /// SM to network: a CTA has ended, and is not waited for any more.
    Leave(ClusterArrival),
    /// Network to SM: all CTAs of the cluster have arrived; those of the CTA that wait go on.
    Release(ClusterArrival),
}

impl ClusterMessage {
    /// Which side sends it; `None` where the network passes it on.
    pub const fn sender(&self) -> Option<Side> {
        match self {
            ClusterMessage::Arrive(_) | ClusterMessage::Leave(_) => Some(Side::Client),
            ClusterMessage::Release(_) => Some(Side::Server),
            ClusterMessage::Access(_)
            | ClusterMessage::Answer(_)
            | ClusterMessage::Bulk(_)
            | ClusterMessage::BulkDone(_) => None,
        }
    }

    /// The SM that the network passes it on to.
    pub fn destination(&self) -> Option<u16> {
        match self {
            ClusterMessage::Access(access) => Some(access.to.sm),
            ClusterMessage::Answer(answer) => Some(answer.from.sm),
            ClusterMessage::Bulk(bulk) => Some(bulk.to.sm),
            ClusterMessage::BulkDone(bulk) => Some(bulk.from.sm),
            ClusterMessage::Arrive(_) | ClusterMessage::Leave(_) | ClusterMessage::Release(_) => None,
        }
    }

    /// Bytes of data that it carries.
    pub fn data_bytes(&self) -> u64 {
        match self {
            ClusterMessage::Access(access) if access.kind.sends_data() => access.data_bytes(),
            ClusterMessage::Answer(answer) if answer.kind.returns_data() => answer.data_bytes(),
            ClusterMessage::Bulk(bulk) => bulk.data.len() as u64,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_carry_the_data_of_their_direction() {
        let access = |kind| RemoteAccess { kind, bytes: 8, mask: 0b111, ..RemoteAccess::default() };
        for (kind, there, back) in [
            (RemoteKind::Load, 0, 24),
            (RemoteKind::Store, 24, 0),
            (RemoteKind::Atomic { pc: 1 }, 24, 24),
            (RemoteKind::Reduction { pc: 1 }, 24, 0),
        ] {
            assert_eq!(ClusterMessage::Access(Box::new(access(kind))).data_bytes(), there, "{kind:?}");
            assert_eq!(ClusterMessage::Answer(Box::new(access(kind))).data_bytes(), back, "{kind:?}");
        }
    }

    #[test]
    fn messages_go_to_the_cta_and_back() {
        let places = [3, 7].map(|sm| ClusterPlace { sm, slot: 1 });
        let access = Box::new(RemoteAccess { from: places[0], to: places[1], ..RemoteAccess::default() });
        assert_eq!(ClusterMessage::Access(access.clone()).destination(), Some(7));
        assert_eq!(ClusterMessage::Answer(access).destination(), Some(3));
    }
}
