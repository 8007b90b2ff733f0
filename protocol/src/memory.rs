//! The memory protocol: loads, stores and atomics in 128-byte lines of four 32-byte sectors.
//!
//! A request names one line and the sectors it touches. It carries no data: values live in the device memory, timing travels here.
//! Every request but [`MemoryMessage::Credit`] is answered by one [`MemoryResponse`] with the same `id`, stores included
//! (their acknowledgement is what a memory fence waits for).

use serde::{Deserialize, Serialize};

/// Bytes of a cache line.
pub const LINE_BYTES: u64 = 128;
/// Bytes of a sector, the unit of every transfer below L1.
pub const SECTOR_BYTES: u64 = 32;
/// Sectors of a line.
pub const SECTORS_PER_LINE: u32 = 4;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryKind {
    /// Reads whole sectors.
    Load,
    /// Writes bytes; answered by an acknowledgement without data.
    Store,
    /// Reads, modifies and writes at the L2 slice, and returns the old values.
    Atomic,
    /// Like an atomic, but nothing is returned: answered by an acknowledgement without data.
    Reduction,
}

impl MemoryKind {
    /// Does the request carry data towards memory?
    pub const fn carries_data(self) -> bool {
        !matches!(self, MemoryKind::Load)
    }

    /// Does the response carry data back?
    pub const fn returns_data(self) -> bool {
        matches!(self, MemoryKind::Load | MemoryKind::Atomic)
    }
}

/// A request for one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRequest {
    /// Address of the line in device memory, a multiple of [`LINE_BYTES`].
    pub line: u64,
    /// The requester's own number, echoed in the response.
    pub id: u32,
    /// The kernel launch it belongs to (0: none).
    pub launch: u32,
    /// Where the response goes back to: set by each unit that forwards (the crossbar: its input port).
    pub return_port: u16,
    /// Bytes that a store, atomic or reduction carries.
    pub data_bytes: u16,
    /// Which of the four sectors it touches, bit i = sector i.
    pub sectors: u8,
    /// Of a store: sectors written in full, so that an L2 miss needs no fill.
    pub full_sectors: u8,
    /// Of an atomic or reduction: lanes that take part, the number of operations to do.
    pub operations: u8,
    /// What it does.
    pub kind: MemoryKind,
}

/// Who supplied the sectors of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServedBy {
    /// All sectors hit in the L2 slice.
    L2,
    /// At least one sector came from device memory.
    DeviceMemory,
    /// Host memory, over the link.
    HostMemory,
    /// A unit between the SM and the L2, a prefetcher's buffer say.
    Intermediate,
}

/// The answer to a [`MemoryRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryResponse {
    /// The request's line.
    pub line: u64,
    /// The request's number.
    pub id: u32,
    /// The request's launch.
    pub launch: u32,
    /// The request's return port, as the responder received it.
    pub return_port: u16,
    /// The request's sectors.
    pub sectors: u8,
    /// Of these, the sectors that hit in L2.
    pub hit_sectors: u8,
    /// The request's kind.
    pub kind: MemoryKind,
    /// Who supplied it.
    pub served_by: ServedBy,
}

impl MemoryRequest {
    /// The response to this request.
    pub const fn response(&self, hit_sectors: u8, served_by: ServedBy) -> MemoryResponse {
        MemoryResponse {
            line: self.line,
            id: self.id,
            launch: self.launch,
            return_port: self.return_port,
            sectors: self.sectors,
            hit_sectors,
            kind: self.kind,
            served_by,
        }
    }
}

impl MemoryResponse {
    /// Bytes of data that it carries.
    pub const fn data_bytes(&self) -> u64 {
        if self.kind.returns_data() { self.sectors.count_ones() as u64 * SECTOR_BYTES } else { 0 }
    }
}

/// Loads or stores of consecutive bytes, which arrive together: what a bulk transfer asks of a memory of many lines.
///
/// It stands for one [`MemoryRequest`] a line, in ascending order, with the sectors that its bytes touch: it takes as long, and counts
/// as many. Memories answer it once; caches and crossbars do not take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBurst {
    /// Address of the first byte.
    pub address: u64,
    /// How many bytes.
    pub bytes: u32,
    /// The requester's own number, echoed in the answer.
    pub id: u32,
    /// What it does: [`MemoryKind::Load`] or [`MemoryKind::Store`].
    pub kind: MemoryKind,
}

/// Messages of the memory protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryMessage {
    /// Towards memory.
    Request(MemoryRequest),
    /// Back to the requester.
    Response(MemoryResponse),
    /// Towards memory.
    Burst(MemoryBurst),
    /// Back to the requester: every line of its burst is done.
    BurstDone(MemoryBurst),
    /// The receiver of requests has taken `count` of them out of its input queue: as many more may be sent.
    Credit {
        /// Queue entries freed.
        count: u16,
    },
    /// Write back every dirty sector and drop the rest of what may be stale: sent between kernels where a topology asks for it.
    Invalidate,
}
