//! Pages of host memory that the copy engines read and write, without the program's part.

use super::HostCpu;
use crate::engine::Outbox;
use crate::lines::LineRange;
use balar_driver::CopyUnderWay;
use balar_protocol::copy::{CopyId, CopyMessage};
use balar_protocol::memory::{MemoryBurst, MemoryKind, MemoryMessage, MemoryRequest, ServedBy};
use balar_protocol::{Payload, PortId, SimTime};

/// Host buffers begin at multiples of this, bytes: a page of the host's operating system.
const HOST_PAGE: u64 = 4096;

/// The id of stores to host memory, whose acknowledgement nothing waits for.
const STORE_ID: u32 = u32::MAX;

/// A page being read from host memory.
#[derive(Clone, Copy, Debug)]
struct PageRead {
    /// The port of the copy engine that asked.
    data: PortId,
    copy: CopyId,
    offset: u64,
    bytes: u32,
    last: bool,
}

/// A transfer that waits for host memory.
#[derive(Clone, Copy, Debug)]
enum HostRead {
    /// A page of a transfer.
    Page(PageRead),
    /// A kernel's own access, from the copy engine at this port.
    Access(PortId, MemoryRequest),
}

/// Pages under way, and where the buffers of transfers lie in host memory.
#[derive(Debug, Default)]
pub(super) struct HostPages {
    /// Reads by slot, the `id` of the request.
    reads: Vec<HostRead>,
    free: Vec<u32>,
    /// Host address of the buffer of each transfer under way.
    buffers: Vec<(CopyId, u64)>,
    next_buffer: u64,
}

impl HostPages {
    /// Host address of a transfer's buffer. Each transfer has a buffer of its own: only timing depends on it.
    fn buffer(&mut self, copy: CopyId, bytes: u64) -> u64 {
        if let Some((_, address)) = self.buffers.iter().find(|(id, _)| *id == copy) {
            return *address;
        }
        let address = self.next_buffer;
        self.next_buffer += bytes.next_multiple_of(HOST_PAGE);
        self.buffers.push((copy, address));
        address
    }

    /// The transfer is over.
    pub fn forget(&mut self, copy: CopyId) {
        self.buffers.retain(|(id, _)| *id != copy);
    }

    fn open(&mut self, read: HostRead) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.reads[slot as usize] = read;
                slot
            }
            None => {
                self.reads.push(read);
                (self.reads.len() - 1) as u32
            }
        }
    }
}

impl HostCpu {
    /// The copy engine asks for a page of a transfer towards the device. One from another GPU's memory does not touch the host's.
    pub(super) fn page_requested(&mut self, now: SimTime, copy: CopyId, offset: u64, bytes: u32, out: &mut Outbox) {
        let Some(&CopyUnderWay { engine, bytes: total, reads_host, .. }) = self.driver.copy_under_way(copy) else {
            return;
        };
        let last = offset + u64::from(bytes) >= total;
        let data = self.ports[engine].data;
        let Some(port) = self.memory_port.filter(|_| reads_host) else {
            let page = CopyMessage::Page { copy, offset, bytes, last };
            out.send(data, now + self.costs.page_latency, Payload::Copy(page));
            return;
        };
        let address = self.pages.buffer(copy, total) + offset;
        self.counters.host_memory_loads += u64::from(LineRange::new(address, u64::from(bytes)).count());
        let id = self.pages.open(HostRead::Page(PageRead { data, copy, offset, bytes, last }));
        let burst = MemoryBurst { address, bytes, id, kind: MemoryKind::Load };
        out.send(port, now, Payload::Memory(MemoryMessage::Burst(burst)));
    }

    /// A kernel reads or writes a line of pinned host memory.
    pub(super) fn host_access(&mut self, now: SimTime, data: PortId, request: MemoryRequest, out: &mut Outbox) {
        let Some(port) = self.memory_port else {
            let done = CopyMessage::Accessed(request.response(0, ServedBy::HostMemory));
            out.send(data, now + self.costs.page_latency, Payload::Copy(done));
            return;
        };
        let count = if request.kind == MemoryKind::Load {
            &mut self.counters.host_memory_loads
        } else {
            &mut self.counters.host_memory_stores
        };
        *count += 1;
        let id = self.pages.open(HostRead::Access(data, request));
        out.send(port, now, Payload::Memory(MemoryMessage::Request(MemoryRequest { id, ..request })));
    }

    /// A page, or a line that a kernel accesses, has come from host memory.
    pub(super) fn host_memory_answered(&mut self, now: SimTime, slot: u32, out: &mut Outbox) {
        let (data, answer) = match self.pages.reads.get(slot as usize) {
            Some(&HostRead::Page(PageRead { data, copy, offset, bytes, last })) => {
                (data, CopyMessage::Page { copy, offset, bytes, last })
            }
            Some(&HostRead::Access(data, request)) => {
                (data, CopyMessage::Accessed(request.response(0, ServedBy::HostMemory)))
            }
            // A store, among others.
            None => return,
        };
        self.pages.free.push(slot);
        out.send(data, now, Payload::Copy(answer));
    }

    /// The copy engine brings a page of a transfer out of the device. One to another GPU's memory does not touch the host's.
    pub(super) fn page_received(&mut self, now: SimTime, copy: CopyId, offset: u64, bytes: u32, out: &mut Outbox) {
        let Some(port) = self.memory_port else { return };
        let to_host = self.driver.copy_under_way(copy).filter(|it| it.writes_host);
        let Some(&CopyUnderWay { bytes: total, .. }) = to_host else { return };
        let address = self.pages.buffer(copy, total) + offset;
        self.counters.host_memory_stores += u64::from(LineRange::new(address, u64::from(bytes)).count());
        let burst = MemoryBurst { address, bytes, id: STORE_ID, kind: MemoryKind::Store };
        out.send(port, now, Payload::Memory(MemoryMessage::Burst(burst)));
    }
}
