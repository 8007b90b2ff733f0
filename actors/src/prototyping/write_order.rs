//! Whether a unit lets a read overtake what the same client wrote before.

use balar_protocol::SimTime;
use balar_protocol::memory::{MemoryKind, MemoryRequest, MemoryResponse, Scope, ServedBy};

/// A write of the client that has not gone downstream in full.
#[derive(Debug)]
struct Write {
    request: MemoryRequest,
    arrived: SimTime,
    sectors: u8,
    /// Its place among the requests of the client.
    place: u64,
}

/// A read of the client without an answer.
#[derive(Debug)]
struct Read {
    request: MemoryRequest,
    arrived: SimTime,
    sent: bool,
    place: u64,
}

/// Follows the writes and reads of one client through a unit, in the order of time.
#[derive(Debug, Default)]
pub(super) struct WriteOrder {
    writes: Vec<Write>,
    reads: Vec<Read>,
    requests: u64,
}

impl WriteOrder {
    /// The client's request has arrived.
    pub fn arrived(&mut self, request: MemoryRequest, arrived: SimTime) {
        let place = self.requests;
        self.requests += 1;
        if request.kind == MemoryKind::Store {
            self.writes.push(Write { request, arrived, sectors: request.sectors, place });
        } else {
            self.reads.push(Read { request, arrived, sent: false, place });
        }
    }

    /// The unit sends a request downstream; says which earlier write it leaves behind.
    pub fn sent(&mut self, request: &MemoryRequest, at: SimTime) -> Result<(), String> {
        if request.kind == MemoryKind::Store {
            for write in self.writes.iter_mut().filter(|write| write.request.line == request.line) {
                write.sectors &= !request.sectors;
            }
            self.writes.retain(|write| write.sectors != 0);
            return Ok(());
        }
        // What no read of the client waits for is a request of the unit's own.
        let asked = self.reads.iter_mut().find(|read| {
            let other = &read.request;
            !read.sent
                && (other.line, other.kind) == (request.line, request.kind)
                && other.sectors & request.sectors != 0
        });
        let Some(read) = asked else { return Ok(()) };
        read.sent = true;
        let overtaken = self.writes.iter().find(|write| {
            write.place < read.place && write.request.line == request.line && write.sectors & request.sectors != 0
        });
        match overtaken {
            None => Ok(()),
            Some(write) => Err(format!(
                "the unit sent the {} {} of line {:#x}, which had arrived at {}, downstream at {at}, and kept the store {} of the \
                 same sectors, which had arrived before at {}; rule: what a client has written is on its way before it is read",
                name(read.request.kind),
                read.request.id,
                request.line,
                read.arrived,
                write.request.id,
                write.arrived
            )),
        }
    }

    /// The unit answers the client; says where it must not answer itself.
    pub fn answered(&mut self, response: &MemoryResponse, at: SimTime) -> Result<(), String> {
        let same = |read: &Read| {
            (read.request.id, read.request.line, read.request.kind) == (response.id, response.line, response.kind)
        };
        let Some(place) = self.reads.iter().position(same) else { return Ok(()) };
        let Read { request, .. } = self.reads.remove(place);
        if response.served_by == ServedBy::Intermediate && request.scope != Scope::Weak {
            return Err(format!(
                "at {at} the unit answered the {} {} of line {:#x} itself, which is of the scope {:?}; rule: only accesses of the \
                 scope Weak are answered from a copy",
                name(request.kind),
                request.id,
                request.line,
                request.scope
            ));
        }
        Ok(())
    }
}

fn name(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Load => "load",
        MemoryKind::Store => "store",
        MemoryKind::Atomic => "atomic",
        MemoryKind::Reduction => "reduction",
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory_bench::{load, store};
    use super::*;

    const AT: SimTime = SimTime(5);

    fn after_a_store() -> WriteOrder {
        let mut order = WriteOrder::default();
        order.arrived(store(1, 0x100, 64), SimTime(1));
        order
    }

    #[test]
    fn a_load_may_not_overtake_a_store_of_its_sectors() {
        let mut order = after_a_store();
        order.arrived(load(2, 0x120, 4), SimTime(2));
        let text = order.sent(&load(9, 0x120, 4), AT).expect_err("the store is kept");
        assert!(text.contains("load 2 of line 0x100") && text.contains("kept the store 1"), "{text}");
    }

    #[test]
    fn a_load_may_follow_the_store() {
        let mut order = after_a_store();
        order.arrived(load(2, 0x120, 4), SimTime(2));
        assert_eq!(order.sent(&store(9, 0x100, 128), AT), Ok(()));
        assert_eq!(order.sent(&load(9, 0x120, 4), AT), Ok(()));
    }

    #[test]
    fn other_sectors_other_lines_and_earlier_loads_are_free() {
        let mut order = WriteOrder::default();
        order.arrived(load(2, 0x100, 4), SimTime(0));
        order.arrived(store(1, 0x100, 64), SimTime(1));
        order.arrived(load(3, 0x140, 4), SimTime(2));
        order.arrived(load(4, 0x200, 4), SimTime(2));
        for sent in [load(9, 0x100, 4), load(9, 0x140, 4), load(9, 0x200, 4)] {
            assert_eq!(order.sent(&sent, AT), Ok(()));
        }
        // One of the unit's own: nobody waits for it.
        assert_eq!(order.sent(&load(9, 0x100, 128), AT), Ok(()));
    }

    #[test]
    fn a_load_that_the_unit_answers_itself_is_over() {
        let mut order = after_a_store();
        let own = load(2, 0x100, 4);
        order.arrived(own, SimTime(2));
        assert_eq!(order.answered(&own.response(0, ServedBy::Intermediate), AT), Ok(()));
        assert_eq!(order.sent(&load(9, 0x100, 4), AT), Ok(()));
    }

    #[test]
    fn a_volatile_load_is_answered_by_the_server() {
        for (served_by, right) in [(ServedBy::Intermediate, false), (ServedBy::L2, true)] {
            let mut order = WriteOrder::default();
            let volatile = MemoryRequest { scope: Scope::Device, ..load(2, 0x100, 4) };
            order.arrived(volatile, SimTime(2));
            assert_eq!(order.answered(&volatile.response(0, served_by), AT).is_ok(), right);
        }
    }
}
