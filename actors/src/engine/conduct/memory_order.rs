//! The order of accesses through a unit between memory clients and the L2: rules whose breach would flatter the unit.
//!
//! A unit that acknowledges a store before the L2 has it, or that answers from an old copy, seems fast, and no value shows it: timing
//! carries no data. So the traffic through the unit is followed, in the order of time. The ends of windows do not matter.

use balar_protocol::memory::{MemoryKind, MemoryRequest, MemoryResponse, SECTORS_PER_LINE, Scope};
use balar_protocol::{PortId, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who asks: the unit's port, and the return port of a requester behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Client {
    port: PortId,
    return_port: u16,
}

/// An access of a client without an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Access {
    client: Client,
    request: MemoryRequest,
    arrived: SimTime,
    /// Its place among all that has arrived and was sent.
    place: u64,
    /// Sectors that no request downstream has named since it arrived.
    unsent: u8,
    /// For a write: sectors that have not been acknowledged from below.
    unacknowledged: u8,
    /// For a write that others must see: it has a request downstream of its own.
    has_own_request: bool,
}

/// A request downstream without an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Sent {
    request: MemoryRequest,
    place: u64,
    /// The writes that it is for.
    covers: Vec<u64>,
}

/// A store that has gone downstream: the places of its arrival and of its departure.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Stored {
    arrived: u64,
    sent: u64,
}

/// Follows the accesses of clients through one unit, in the order of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MemoryOrder {
    /// The unit's copies have its clients' stores.
    updates_copies: bool,
    places: u64,
    writes: Vec<Access>,
    reads: Vec<Access>,
    below: Vec<Sent>,
    /// The place of the last load downstream that has brought a sector, by line and sector; 0: no load has.
    copies: BTreeMap<u64, [u64; SECTORS_PER_LINE as usize]>,
    /// The last store that went downstream, by client, line and sector.
    stored: BTreeMap<(Client, u64), [Stored; SECTORS_PER_LINE as usize]>,
    /// The place of the first request of each launch.
    launches: BTreeMap<u32, u64>,
}

impl MemoryOrder {
    /// The rules for a unit that says whether its copies have its clients' stores.
    pub fn new(updates_copies: bool) -> MemoryOrder {
        MemoryOrder { updates_copies, ..MemoryOrder::default() }
    }

    /// A client's request has arrived.
    pub fn arrived(&mut self, port: PortId, request: MemoryRequest, arrived: SimTime) {
        self.places += 1;
        let place = self.places;
        self.launches.entry(request.launch).or_insert(place);
        let client = Client { port, return_port: request.return_port };
        let (unsent, unacknowledged) = (request.sectors, request.sectors);
        let access = Access { client, request, arrived, place, unsent, unacknowledged, has_own_request: false };
        match request.kind {
            MemoryKind::Load => self.reads.push(access),
            MemoryKind::Store | MemoryKind::Atomic | MemoryKind::Reduction => self.writes.push(access),
        }
    }

    /// The unit sends a request downstream.
    ///
    /// # Errors
    ///
    /// The earlier write that it leaves behind, or the launches whose stores it mixes, in words.
    pub fn sent(&mut self, request: &MemoryRequest, at: SimTime) -> Result<(), String> {
        self.places += 1;
        let place = self.places;
        let covers = match request.kind {
            MemoryKind::Load => {
                self.read_is_sent(request, at)?;
                Vec::new()
            }
            _ => self.write_is_sent(request, at)?,
        };
        self.below.push(Sent { request: *request, place, covers });
        Ok(())
    }

    /// A load goes downstream: for the first client's load of its sectors that waits, or for the unit itself.
    fn read_is_sent(&mut self, request: &MemoryRequest, at: SimTime) -> Result<(), String> {
        let is_asked = |read: &&mut Access| read.request.line == request.line && read.unsent & request.sectors != 0;
        let Some(read) = self.reads.iter_mut().find(is_asked) else { return Ok(()) };
        read.unsent = 0;
        let overtaken = self.writes.iter().find(|write| {
            write.client == read.client
                && write.request.kind == MemoryKind::Store
                && write.place < read.place
                && write.request.line == request.line
                && write.unsent & request.sectors != 0
        });
        match overtaken {
            None => Ok(()),
            Some(write) => Err(format!(
                "the unit sent the {}, which had arrived at {}, downstream at {at}, and kept the store {} of the same sectors, which had \
                 arrived before at {}; rule: what a client has written is on its way before it is read",
                name(&read.request),
                read.arrived,
                write.request.id,
                write.arrived
            )),
        }
    }

    /// A write goes downstream: the writes of clients that it is for.
    fn write_is_sent(&mut self, request: &MemoryRequest, at: SimTime) -> Result<Vec<u64>, String> {
        let place = self.places;
        let waits = |write: &Access| {
            (write.request.kind, write.request.line) == (request.kind, request.line)
                && write.unsent & request.sectors != 0
        };
        let is_it = |write: &Access| {
            let own = &write.request;
            waits(write)
                && (own.sectors, own.written_words, own.data_bytes, own.launch, own.scope)
                    == (request.sectors, request.written_words, request.data_bytes, request.launch, request.scope)
        };
        let exact = self.writes.iter().position(is_it);
        if exact.is_none() {
            let sectors_of = |of_launch: &dyn Fn(u32) -> bool| {
                let found = self.writes.iter().filter(|write| waits(write) && of_launch(write.request.launch));
                found.fold(0, |all, write| all | write.unsent) & request.sectors
            };
            if sectors_of(&|launch| launch == request.launch) != sectors_of(&|_| true) {
                let other = self.writes.iter().find(|write| waits(write) && write.request.launch != request.launch);
                let other = other.map_or(String::new(), |write| name(&write.request));
                return Err(format!(
                    "at {at} the unit sent a {} for launch {}, and put the {other} into it, which is of another launch; rule: \
                     what two launches write is not combined",
                    name(request),
                    request.launch
                ));
            }
        }
        let mut covers = Vec::new();
        let mut owner = exact;
        for (index, write) in self.writes.iter_mut().enumerate() {
            if !waits(write) || write.request.launch != request.launch {
                continue;
            }
            let can_own = write.request.scope <= request.scope;
            let wants_own = write.request.scope != Scope::Weak || write.request.kind == MemoryKind::Atomic;
            if wants_own {
                // One request downstream is the own request of one write: another one needs another.
                match owner {
                    Some(owner) if owner != index => continue,
                    _ if !can_own => continue,
                    _ => owner = Some(index),
                }
                write.has_own_request = true;
            }
            write.unsent &= !request.sectors;
            covers.push(write.place);
            if request.kind == MemoryKind::Store {
                let stored = self.stored.entry((write.client, request.line)).or_default();
                for sector in sectors(request.sectors & write.request.sectors) {
                    if stored[sector].arrived < write.place {
                        stored[sector] = Stored { arrived: write.place, sent: place };
                    }
                }
            }
        }
        Ok(covers)
    }

    /// An answer has come from downstream.
    pub fn answered_below(&mut self, response: &MemoryResponse) {
        let is_it = |sent: &Sent| {
            let own = &sent.request;
            (own.id, own.line, own.kind) == (response.id, response.line, response.kind)
        };
        let Some(at) = self.below.iter().position(is_it) else { return };
        let Sent { request, place, covers } = self.below.remove(at);
        if request.kind == MemoryKind::Load {
            let copies = self.copies.entry(request.line).or_default();
            for sector in sectors(request.sectors) {
                copies[sector] = copies[sector].max(place);
            }
            return;
        }
        for write in self.writes.iter_mut().filter(|write| covers.contains(&write.place)) {
            write.unacknowledged &= !request.sectors;
        }
    }

    /// The unit answers a client.
    ///
    /// # Errors
    ///
    /// Why it may not answer so, in words.
    pub fn answered(&mut self, port: PortId, response: &MemoryResponse, at: SimTime) -> Result<(), String> {
        let client = Client { port, return_port: response.return_port };
        let is_it = |access: &Access| {
            let own = &access.request;
            access.client == client && (own.id, own.line, own.kind) == (response.id, response.line, response.kind)
        };
        if response.kind == MemoryKind::Load {
            let Some(place) = self.reads.iter().position(is_it) else { return Ok(()) };
            let read = self.reads.remove(place);
            return sectors(read.request.sectors).try_for_each(|sector| self.check_copy(&read, sector, at));
        }
        let Some(place) = self.writes.iter().position(is_it) else { return Ok(()) };
        let write = self.writes.remove(place);
        let needs_own = write.request.scope != Scope::Weak || write.request.kind == MemoryKind::Atomic;
        if needs_own && !write.has_own_request {
            return Err(format!(
                "at {at} the unit answered the {}, which is of the scope {:?}, and had sent no request of its own for it downstream; \
                 rule: atomics, and accesses of the scopes Device and System, are neither answered nor combined on the way",
                name(&write.request),
                write.request.scope
            ));
        }
        if write.unacknowledged != 0 {
            let verb = if write.unsent == 0 { "acknowledged" } else { "sent" };
            return Err(format!(
                "at {at} the unit acknowledged the {}, which had arrived at {}, before what it wrote was {verb} downstream; rule: an \
                 acknowledgement says that all threads of the GPU see the write, for fences wait for it",
                name(&write.request),
                write.arrived
            ));
        }
        Ok(())
    }

    /// May the unit answer a load's sector with its copy?
    fn check_copy(&self, read: &Access, sector: usize, at: SimTime) -> Result<(), String> {
        let what = name(&read.request);
        let copy = self.copies.get(&read.request.line).map_or(0, |copies| copies[sector]);
        if read.request.scope != Scope::Weak && copy < read.place {
            return Err(format!(
                "at {at} the unit answered the {what} itself, which is of the scope {:?}; rule: only accesses of the scope Weak are \
                 answered from a copy",
                read.request.scope
            ));
        }
        if self.updates_copies {
            return Ok(());
        }
        if copy == 0 {
            return Err(format!(
                "at {at} the unit answered the {what}, and nothing that it has asked for downstream has brought sector {sector}; rule: \
                 a load is answered by the memory, or from a copy of what the memory has sent"
            ));
        }
        let begun = self.launches.get(&read.request.launch).copied().unwrap_or(0);
        if copy < begun {
            return Err(format!(
                "at {at} the unit answered the {what} from a copy that it had asked for before launch {} began; rule: a copy is of one \
                 launch, for between two launches other units write",
                read.request.launch
            ));
        }
        let unsent = self.writes.iter().any(|write| {
            write.client == read.client
                && write.place < read.place
                && (write.request.kind, write.request.line) == (MemoryKind::Store, read.request.line)
                && write.unsent & 1 << sector != 0
        });
        let stored = self.stored.get(&(read.client, read.request.line)).map_or(Stored::default(), |of| of[sector]);
        if unsent || (stored.arrived < read.place && copy < stored.sent) {
            return Err(format!(
                "at {at} the unit answered the {what} from a copy that is older than a store of the same client to sector {sector}; rule: \
                 a client reads what it has written (a unit whose copies have what its clients store declares it: \
                 `const UPDATES_COPIES: bool = true`)"
            ));
        }
        Ok(())
    }

    /// The accesses that the unit sleeps on although others must see them: it sleeps until a message comes, and none is on its way from
    /// below.
    pub fn held(&self) -> Option<String> {
        if !self.below.is_empty() {
            return None;
        }
        let all = self.writes.iter().chain(&self.reads);
        let held = all.filter(|access| access.request.scope != Scope::Weak && access.unsent != 0);
        held.min_by_key(|access| access.place).map(|access| {
            format!(
                "the unit holds the {} back, which had arrived at {} and is of the scope {:?}, and sleeps; rule: only stores of the \
                 scope Weak are held back",
                name(&access.request),
                access.arrived,
                access.request.scope
            )
        })
    }
}

/// The numbers of the sectors of a mask.
fn sectors(mask: u8) -> impl Iterator<Item = usize> {
    (0..SECTORS_PER_LINE as usize).filter(move |sector| mask >> sector & 1 == 1)
}

fn name(request: &MemoryRequest) -> String {
    let kind = match request.kind {
        MemoryKind::Load => "load",
        MemoryKind::Store => "store",
        MemoryKind::Atomic => "atomic",
        MemoryKind::Reduction => "reduction",
    };
    format!("{kind} {} of line {:#x}", request.id, request.line)
}

#[cfg(test)]
mod tests;
