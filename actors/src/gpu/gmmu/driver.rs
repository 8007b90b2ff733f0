//! The orders of the driver of unified memory to a GMMU: which memory is managed, which pages are mapped, and when requests are tried
//! again.

use super::Gmmu;
use super::page_table::{Mapping, pages_of};
use super::parameters::ShootdownWhen;
use super::shootdowns::{Then, ranges};
use crate::engine::Outbox;
use balar_protocol::Payload;
use balar_protocol::migration::{Faults, MigrationMessage};
use balar_protocol::translation::TranslationMessage;
use std::ops::Range;

impl Gmmu {
    /// The driver has said something.
    pub(super) fn obey(&mut self, message: &MigrationMessage, cycle: u64, out: &mut Outbox) {
        match *message {
            MigrationMessage::Manage { address, bytes, managed: true } => {
                self.manage(pages_of(address, bytes), cycle, out);
            }
            MigrationMessage::Manage { address, bytes, managed: false } => {
                self.release(pages_of(address, bytes), cycle, out);
            }
            MigrationMessage::Fetch { limit } => {
                let (entries, overflows) = self.state.faults.fetch(limit);
                self.tell_driver(MigrationMessage::Faults(Box::new(Faults { entries, overflows })), cycle, out);
            }
            MigrationMessage::Map { address, bytes, aperture, writable, replay } => {
                self.map(pages_of(address, bytes), Mapping { aperture, writable }, replay, cycle, out);
            }
            MigrationMessage::Unmap { address, bytes, id } => self.unmap(pages_of(address, bytes), id, cycle, out),
            MigrationMessage::Replay { flush } => self.replay(flush, cycle, out),
            MigrationMessage::Pending
            | MigrationMessage::Faults(_)
            | MigrationMessage::Unmapped { .. }
            | MigrationMessage::Used { .. }
            | MigrationMessage::Transfer { .. }
            | MigrationMessage::Transferred { .. } => Payload::Migration(message.clone()).unexpected("driver"),
        }
    }

    /// Pages of the range are there only where they are mapped. TLBs drop all translations of it, also those that they are about to be
    /// told.
    fn manage(&mut self, pages: Range<u64>, cycle: u64, out: &mut Outbox) {
        self.state.table.manage(pages.clone());
        let ranges = [(pages.start, pages.end - pages.start)];
        self.shoot_down(&ranges, Then::Nothing, cycle.max(self.state.last_identity), out);
    }

    /// The range is mapped onto itself again, and nobody waits for its pages any more.
    fn release(&mut self, pages: Range<u64>, cycle: u64, out: &mut Outbox) {
        self.state.table.release(pages.clone());
        self.state.faults.forget_entries(&pages);
        self.shoot_down(&[(pages.start, pages.end - pages.start)], Then::Nothing, cycle, out);
        self.try_again(pages, cycle, out);
    }

    fn map(&mut self, pages: Range<u64>, mapping: Mapping, replay: bool, cycle: u64, out: &mut Outbox) {
        self.state.counters.pages_mapped += self.state.table.map(pages.clone(), mapping);
        if self.parameters.shootdown_when == ShootdownWhen::EachUpdate {
            let then = Then::Mapped { pages: pages.clone(), replay, held: Vec::new() };
            let ranges = ranges(self.parameters.shootdown_scope, &pages, || self.state.table.mapped(pages.clone()));
            self.shoot_down(&ranges, then, cycle, out);
        } else if replay {
            self.try_again(pages, cycle, out);
        }
    }

    fn unmap(&mut self, pages: Range<u64>, id: u32, cycle: u64, out: &mut Outbox) {
        let ranges = ranges(self.parameters.shootdown_scope, &pages, || self.state.table.mapped(pages.clone()));
        self.state.counters.pages_unmapped += self.state.table.unmap(pages);
        self.shoot_down(&ranges, Then::Unmapped { id }, cycle, out);
    }

    /// All requests that wait are taken in again, by page.
    fn replay(&mut self, flush: bool, cycle: u64, out: &mut Outbox) {
        let waiting = self.state.faults.replay(flush);
        self.state.counters.replays += 1;
        self.state.counters.replayed_requests += waiting.len() as u64;
        for (page, asked) in waiting {
            self.look_up(page, asked, cycle, out);
        }
    }

    /// The requests that wait for pages of the range go on, or fault again where they still may not.
    fn try_again(&mut self, pages: Range<u64>, cycle: u64, out: &mut Outbox) {
        for (page, asked) in self.state.faults.take_waiting(pages) {
            self.settle(page, asked, cycle, out);
        }
    }

    /// This GMMU and the TLBs of the SMs drop their translations of the ranges. `then` follows when all of them have said so.
    fn shoot_down(&mut self, ranges: &[(u64, u64)], then: Then, cycle: u64, out: &mut Outbox) {
        self.state.counters.shootdowns += 1;
        let messages = ranges.len() * self.sms.len();
        self.state.counters.shootdown_messages += messages as u64;
        if messages == 0 {
            return self.go_on(then, cycle, out);
        }
        let id = self.state.shootdowns.begin(messages as u32, then);
        for &(address, bytes) in ranges {
            self.state.walks.invalidate(address, bytes);
            let leaves = self.state.shootdowns.take_time(cycle, self.parameters.shootdown_latency);
            let invalidate = TranslationMessage::Invalidate { address, bytes, id };
            for &sm in &self.sms {
                out.send(sm, self.clock.time_of(leaves), Payload::Translation(invalidate));
            }
        }
    }

    /// A shootdown is over.
    pub(super) fn go_on(&mut self, then: Then, cycle: u64, out: &mut Outbox) {
        match then {
            Then::Nothing => {}
            Then::Unmapped { id } => self.tell_driver(MigrationMessage::Unmapped { id }, cycle, out),
            Then::Mapped { pages, replay, held } => {
                if replay {
                    self.try_again(pages, cycle, out);
                }
                for (page, asked) in held {
                    self.settle(page, asked, cycle, out);
                }
            }
        }
    }
}
