//! The GMMU: answers the TLBs of the SMs from its own TLB or by walking the page table.
//!
//! Memory is mapped onto itself and always there, but for the ranges that a driver of unified memory manages: their pages are there where it
//! has mapped them. A request for another one faults and waits, until the driver has mapped its page and requests are replayed.
//!
//! ```text
//!   SMs ──request──► TLB ──► walk ──► page table ──response──► SMs
//!                                         │ not there                         driver
//!                                         ▼                                     │
//!                    waiting requests, fault buffer ──faults──►             map, replay
//! ```

mod driver;
mod far_faults;
mod page_table;
mod parameters;
mod shootdowns;
mod walks;

pub use page_table::ManagedPageSizes;
pub use parameters::{FaultReporting, GmmuParameters, ShootdownWhen};

use crate::catalogue::{BuildContext, BuildError, ParameterSet, PortDefinition, UnitDefinition, nothing};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use crate::gpu::tlb::{identity, page_of};
use crate::unified_memory::PAGE_BYTES;
use balar_protocol::migration::{Faults, MigrationMessage};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::translation::{FaultKind, PageAccess, Translation, TranslationMessage};
use balar_protocol::{Clock, Message, Payload, PortId, Protocol};
use far_faults::{FarFaults, NewFault};
use page_table::{Mapping, PageTable};
use serde::{Deserialize, Serialize};
use shootdowns::Shootdowns;
use walks::{Asked, Due, Found, Walks};

/// Binary logarithm of the bytes of a page of managed memory.
const SMALL_PAGE_BITS: u8 = PAGE_BYTES.trailing_zeros() as u8;

balar_protocol::counters! {
    /// The counters of a GMMU.
    pub struct GmmuCounters {
        /// translation requests
        requests: "request",
        /// requests answered from the TLB
        tlb_hits: "request",
        /// requests that waited for a walk, their own or one under way
        tlb_misses: "request",
        /// page walks
        walks: "walk",
        /// cycles from arrival to answer, summed over requests
        latency: "cycle",
        /// walks that found their block in the page-walk cache
        walk_cache_hits: "walk",
        /// pages that were not there and that nothing waited for yet
        far_faults: "fault",
        /// requests that joined others that wait for their page
        faults_merged: "request",
        /// entries made in the fault buffer, or pages that the driver was told of
        fault_entries: "entry",
        /// faults that found the fault buffer full
        fault_overflows: "fault",
        /// cycles from fault to answer, summed over requests
        fault_latency: "cycle",
        /// replays of all requests that wait
        replays: "replay",
        /// requests tried again by replays
        replayed_requests: "request",
        /// pages mapped that were not
        pages_mapped: "page",
        /// pages unmapped that were mapped
        pages_unmapped: "page",
        /// shootdowns of TLB entries
        shootdowns: "shootdown",
        /// invalidations sent to SMs
        shootdown_messages: "message",
        /// reports of how often pages were used
        used_reports: "report",
    }
}

/// The GMMU in the catalogue of units.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "Gmmu",
    summary: "memory-management unit of the GPU: second-level TLB, page walks and far faults",
    parameters: GmmuParameters::DEFINITIONS,
    check: GmmuParameters::check,
    ports: &[
        PortDefinition::server("sm", Protocol::Translation, "the TLBs of the SMs").row(),
        PortDefinition::server("driver", Protocol::Migration, "the driver of unified memory").optional(),
    ],
    counters: GmmuCounters::DEFINITIONS,
    provides: nothing,
    weight: 2,
    build: |text, context| Ok(Box::new(Gmmu::new(ron::from_str(text)?, context)?)),
};

/// Everything that changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    table: PageTable,
    walks: Walks,
    faults: FarFaults,
    shootdowns: Shootdowns,
    /// The last cycle in which an answer leaves about memory that is not managed.
    last_identity: u64,
    counters: GmmuCounters,
}

/// A GMMU. It answers through the port at which it was asked.
#[derive(Debug)]
pub struct Gmmu {
    clock: Clock,
    parameters: GmmuParameters,
    /// Ports by the number of the TLB; and the number by the port.
    sms: Vec<PortId>,
    tlbs: Vec<u16>,
    driver: Option<PortId>,
    state: State,
}

impl Gmmu {
    /// A GMMU with the wired ports of `context`.
    pub fn new(parameters: GmmuParameters, context: &BuildContext) -> Result<Gmmu, BuildError> {
        parameters.check_values()?;
        let sms: Vec<PortId> = context.ports.row("sm").map(|(_, port)| port).collect();
        let mut tlbs = vec![0; sms.iter().map(|port| usize::from(port.0) + 1).max().unwrap_or(0)];
        for (tlb, port) in sms.iter().enumerate() {
            tlbs[usize::from(port.0)] = tlb as u16;
        }
        Ok(Gmmu {
            clock: Clock::new(parameters.clock),
            driver: context.ports.get("driver"),
            state: State {
                table: PageTable::default(),
                walks: Walks::new(&parameters),
                faults: FarFaults::new(sms.len()),
                shootdowns: Shootdowns::default(),
                last_identity: 0,
                counters: GmmuCounters::default(),
            },
            sms,
            tlbs,
            parameters,
        })
    }

    fn receive(&mut self, message: Message, cycle: u64, out: &mut Outbox) {
        match message.payload {
            Payload::Translation(TranslationMessage::Request { address, id, access }) => {
                let tlb = self.tlbs[usize::from(message.port.0)];
                self.state.counters.requests += 1;
                self.look_up(address, Asked::new(tlb, id, access, cycle), cycle, out);
            }
            Payload::Translation(TranslationMessage::Joined { address, id, requests, access }) => {
                let tlb = self.tlbs[usize::from(message.port.0)];
                self.join(page_of(address, SMALL_PAGE_BITS), (tlb, id), (requests, access), cycle, out);
            }
            Payload::Translation(TranslationMessage::Used { page, requests, written }) => {
                self.state.counters.used_reports += 1;
                self.tell_driver(MigrationMessage::Used { page, requests, written }, cycle, out);
            }
            Payload::Translation(TranslationMessage::Invalidated { id }) => {
                if let Some(then) = self.state.shootdowns.acknowledge(id) {
                    self.go_on(then, cycle, out);
                }
            }
            Payload::Migration(message) => self.obey(&message, cycle, out),
            payload => payload.unexpected("sm[*]"),
        }
    }

    /// A request is taken in: its page is known at once, or looked up when the TLB or a walk has found it.
    fn look_up(&mut self, address: u64, asked: Asked, cycle: u64, out: &mut Outbox) {
        let cycle = self.state.walks.take_slot(cycle, &self.parameters);
        if self.state.table.is_managed(address) {
            let page = page_of(address, SMALL_PAGE_BITS);
            let found = self.state.walks.begin(page, asked, cycle, &self.parameters);
            return self.count(found);
        }
        let translation = self.identity(address);
        let (ready, found) = self.state.walks.translate(address, translation.valid_bits, cycle, &self.parameters);
        self.count(found);
        self.state.last_identity = self.state.last_identity.max(ready);
        self.answer(asked, translation, ready, out);
    }

    fn count(&mut self, found: Found) {
        let counters = &mut self.state.counters;
        match found {
            Found::Hit => counters.tlb_hits += 1,
            Found::Joined => counters.tlb_misses += 1,
            Found::Walked { cached } => {
                counters.tlb_misses += 1;
                counters.walks += 1;
                counters.walk_cache_hits += u64::from(cached);
            }
        }
    }

    /// The translation of an address that is not managed.
    fn identity(&self, address: u64) -> Translation {
        let valid_bits = self.state.table.identity_bits(address);
        let page_bits = valid_bits.min(self.parameters.page_size.0.trailing_zeros() as u8);
        Translation { page: page_of(address, page_bits), valid_bits, ..identity(address, valid_bits) }
    }

    /// The translation of a managed address whose page is mapped.
    fn mapped(&self, address: u64, mapping: Mapping) -> Translation {
        let valid_bits = self.state.table.page_bits(address, mapping, self.parameters.managed_page_sizes);
        let Mapping { aperture, writable } = mapping;
        Translation { page: page_of(address, valid_bits), valid_bits, aperture, writable, followed: false }
    }

    /// The translation that the TLBs of SMs are told: an SM that follows pages does so page by page.
    fn told(&self, page: u64, translation: Translation) -> Translation {
        if self.parameters.follow_use && self.driver.is_some() {
            Translation { page, valid_bits: SMALL_PAGE_BITS, followed: true, ..translation }
        } else {
            translation
        }
    }

    fn answer(&mut self, asked: Asked, translation: Translation, cycle: u64, out: &mut Outbox) {
        let counters = &mut self.state.counters;
        counters.latency += cycle - asked.arrived;
        counters.fault_latency += asked.faulted.map_or(0, |faulted| cycle - faulted);
        let response = TranslationMessage::Response { id: asked.id, translation };
        out.send(self.sms[usize::from(asked.tlb)], self.clock.time_of(cycle), Payload::Translation(response));
    }

    /// The page table is looked up for a request: it is answered, waits, or faults.
    fn settle(&mut self, page: u64, asked: Asked, cycle: u64, out: &mut Outbox) {
        if !self.state.table.is_managed(page) {
            let translation = self.identity(page);
            return self.answer(asked, translation, cycle, out);
        }
        if self.state.shootdowns.holds(page, asked) {
            return;
        }
        match self.state.table.lookup(page).filter(|mapping| mapping.allows(asked.access)) {
            Some(mapping) => {
                let translation = self.told(page, self.mapped(page, mapping));
                self.answer(asked, translation, cycle, out);
            }
            None => self.fault(page, asked, cycle, out),
        }
    }

    /// The page of a request is not there, or may not be accessed like that.
    fn fault(&mut self, page: u64, asked: Asked, cycle: u64, out: &mut Outbox) {
        let is_new = asked.faulted.is_none();
        let waits = Asked { faulted: asked.faulted.or(Some(cycle)), ..asked };
        let fault = self.state.faults.add(page, waits, cycle, self.parameters.faults);
        let counters = &mut self.state.counters;
        counters.far_faults += u64::from(is_new && fault.is_first);
        counters.faults_merged += u64::from(is_new && !fault.is_first);
        if is_new {
            let (id, page_bits) = (asked.id, SMALL_PAGE_BITS);
            let nack = TranslationMessage::Fault { id, address: page, page_bits, kind: FaultKind::NotResident };
            out.send(self.sms[usize::from(asked.tlb)], self.clock.time_of(cycle), Payload::Translation(nack));
        }
        self.report(&fault, cycle, out);
    }

    /// More requests wait for a page. Where it has faulted, each of them is a fault; where it was found meanwhile, nothing follows.
    fn join(
        &mut self,
        page: u64,
        number: (u16, u32),
        (requests, access): (u32, PageAccess),
        cycle: u64,
        out: &mut Outbox,
    ) {
        if let Some(asked) = self.state.walks.find(page, number) {
            asked.requests += requests;
            return;
        }
        let fault = self.state.faults.join(page, number, (requests, access), self.parameters.faults);
        self.report(&fault, cycle, out);
    }

    /// The driver is told of a buffer that is no longer empty.
    fn report(&mut self, fault: &NewFault, cycle: u64, out: &mut Outbox) {
        let counters = &mut self.state.counters;
        counters.fault_entries += u64::from(fault.entries);
        counters.fault_overflows += u64::from(fault.overflows);
        if fault.is_pending {
            self.tell_driver(MigrationMessage::Pending, cycle, out);
        }
    }

    fn tell_driver(&self, message: MigrationMessage, cycle: u64, out: &mut Outbox) {
        if let Some(port) = self.driver {
            out.send(port, self.clock.time_of(cycle), Payload::Migration(message));
        }
    }

    /// The next cycle in which something happens by itself; `u64::MAX` where nothing will.
    #[inline]
    fn next_event(&self) -> u64 {
        self.state.walks.next_due().min(self.state.faults.next_due())
    }

    /// Does the work that is due in a cycle whose messages are all there.
    fn end_cycle(&mut self, cycle: u64, out: &mut Outbox) {
        while let Some(due) = self.state.walks.take_due(cycle) {
            match due {
                Due::Hit(page, asked) => self.end_lookup(page, asked, cycle, out),
                Due::Walk(page) => self.end_walk(page, cycle, out),
            }
        }
        if self.state.faults.next_due() <= cycle {
            let faults = Faults { entries: self.state.faults.take_fresh(), overflows: 0 };
            if !faults.entries.is_empty() {
                self.tell_driver(MigrationMessage::Faults(Box::new(faults)), cycle, out);
            }
        }
    }

    /// The TLB has found the page of a request, which may have been unmapped meanwhile: then it walks.
    fn end_lookup(&mut self, page: u64, asked: Asked, cycle: u64, out: &mut Outbox) {
        let table = &self.state.table;
        let is_there = table.lookup(page).is_some_and(|mapping| mapping.allows(asked.access));
        if is_there || !table.is_managed(page) {
            return self.settle(page, asked, cycle, out);
        }
        if let Found::Walked { cached } = self.state.walks.begin_walk(page, asked, cycle, &self.parameters) {
            self.state.counters.walks += 1;
            self.state.counters.walk_cache_hits += u64::from(cached);
        }
    }

    fn end_walk(&mut self, page: u64, cycle: u64, out: &mut Outbox) {
        let mapping = self.state.table.lookup(page).filter(|_| self.state.table.is_managed(page));
        let translation = mapping.map(|mapping| self.mapped(page, mapping));
        for asked in self.state.walks.end_walk(page, translation.as_ref()) {
            self.settle(page, asked, cycle, out);
        }
    }
}

impl Unit for Gmmu {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        loop {
            let message = inbox.next_time().map_or(u64::MAX, |time| self.clock.cycle_at_or_after(time));
            let event = self.next_event();
            // A cycle ends when all of its messages are there, which may come in several windows.
            if event < message {
                let time = self.clock.time_of(event);
                if time >= window.until {
                    return NextWake::At(time);
                }
                self.end_cycle(event, out);
            } else if let Some(taken) = inbox.take() {
                self.receive(taken, message, out);
            } else {
                return NextWake::OnMessage;
            }
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.state.counters.write(sink);
    }

    fn outstanding(&self) -> Option<String> {
        let State { walks, faults, shootdowns, .. } = &self.state;
        let mut waits = Vec::new();
        let (requests, pages, first) = faults.waiting();
        if requests > 0 {
            waits.push(format!(
                "{requests} requests wait for {pages} pages that are not mapped, the first at {first:#x}"
            ));
        }
        if walks.under_way() > 0 {
            waits.push(format!("{} lookups under way", walks.under_way()));
        }
        let (count, acknowledgements) = shootdowns.under_way();
        if count > 0 {
            waits.push(format!("{count} shootdowns wait for {acknowledgements} acknowledgements of SMs"));
        }
        if waits.is_empty() { None } else { Some(waits.join("; ")) }
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&self.state)
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        let state: State = restore_state(state)?;
        if !state.walks.is_like(&self.state.walks) || !state.faults.is_like(&self.state.faults) {
            return Err(StateError::Mismatch("another number of entries, walkers or SMs".to_owned()));
        }
        self.state = state;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
