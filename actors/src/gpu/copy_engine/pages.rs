//! The pages of transfers: each is begun when there is room, crosses the link, and has its lines in the GPU's memory.

use super::CopyEngine;
use super::lines::{LineRate, PageLines};
use super::state::{Page, Route, TO_DEVICE};
use super::transfers::is_own;
use crate::engine::Outbox;
use crate::memory::transfer;
use balar_protocol::copy::{CopyId, CopyMessage, CopyOperation, Rows};
use balar_protocol::memory::{MemoryKind, MemoryMessage};
use balar_protocol::{Payload, PortId, SimTime};

/// How the lines of a transfer go to memory.
struct Way {
    port: Option<PortId>,
    rate: LineRate,
    /// Lines not yet answered at most.
    most: u32,
}

impl CopyEngine {
    /// The way of an engine's present transfer.
    fn way(&self, engine: usize) -> Way {
        let stays = self.state.engines[engine].active.as_ref().is_some_and(|transfer| transfer.route == Route::Within);
        match self.ports.device.filter(|_| stays) {
            Some(port) => {
                Way { port: Some(port), rate: self.device_rate, most: self.parameters.device_outstanding_lines }
            }
            None => Way { port: self.ports.memory, rate: self.rate, most: self.parameters.outstanding_lines },
        }
    }

    /// Begins the next page of a transfer, if it has one and there is room. False where not.
    pub(super) fn begin_page(&mut self, engine: usize, now: SimTime, out: &mut Outbox) -> bool {
        let most = self.way(engine).most;
        let parameters = &self.parameters;
        let state = &mut self.state.engines[engine];
        let lines_free = state.unanswered < most;
        let Some(transfer) = &mut state.active else { return false };
        if transfer.next_offset >= transfer.bytes {
            return false;
        }
        let offset = transfer.next_offset;
        let bytes = parameters.page_bytes.0.min(transfer.bytes - offset) as u32;
        let with_host = transfer.route != Route::Within;
        let from_host = matches!(transfer.route, Route::Inward | Route::Beyond);
        if with_host && transfer.open_pages >= parameters.outstanding_pages {
            return false;
        }
        let can_send = state.sending.is_empty() && lines_free;
        if !from_host && !can_send {
            return false;
        }
        let at = state.next_page.max(now);
        if with_host {
            state.next_page = at + parameters.host_bandwidth.time_for(u64::from(bytes));
        }
        transfer.next_offset += u64::from(bytes);
        transfer.open_pages += 1;
        state.counters.pages += 1;
        if from_host {
            let request = CopyMessage::PageRequest { copy: transfer.id, offset, bytes };
            out.send(self.ports.data, at, Payload::Copy(request));
            return true;
        }
        let is_own = |rows: &Rows| is_own(self.gpu, rows.address, self.device_memory.view().place_of(rows.address));
        let (kind, rows) = match (transfer.operation.source(), transfer.operation.destination()) {
            (Some(source), _) if is_own(source) => (MemoryKind::Load, Some(*source)),
            (None, Some(destination)) if transfer.route == Route::Within => (MemoryKind::Store, Some(*destination)),
            // A page that crosses the link has no lines in the GPU's memory.
            _ => (MemoryKind::Store, None),
        };
        self.open_page(engine, kind, (offset, bytes), rows, at);
        true
    }

    /// A page, of so many bytes from an offset on, is ready to have its lines sent, where it has any: the lines of `rows`.
    fn open_page(
        &mut self,
        engine: usize,
        kind: MemoryKind,
        (offset, bytes): (u64, u32),
        rows: Option<Rows>,
        not_before: SimTime,
    ) {
        let unsent = match rows {
            Some(rows) => PageLines::new(&rows, offset, bytes),
            None => PageLines::new(&Rows::linear(0, 0), 0, 0),
        };
        let page = Page { engine: engine as u8, kind, offset, bytes, unsent, unanswered: 0, not_before };
        let slot = self.state.pages.open(page);
        self.state.engines[engine].sending.push_back(slot);
    }

    /// Sends lines of the pages in turn while fewer than the limit are unanswered.
    pub(super) fn send_lines(&mut self, engine: usize, now: SimTime, out: &mut Outbox) {
        let Way { port, rate, most } = self.way(engine);
        let memory = port.filter(|_| self.parameters.through_l2);
        while let Some(&slot) = self.state.engines[engine].sending.front() {
            let state = &mut self.state.engines[engine];
            let page = &mut self.state.pages.pages[slot as usize];
            let earliest = page.not_before.max(now);
            let mut last = earliest;
            let Some(port) = memory else {
                // Its lines take their time, and go nowhere.
                last = state.pacer.last_of(&rate, earliest, page.unsent.take_all()).unwrap_or(last);
                state.sending.pop_front();
                self.page_answered(slot, now, last, out);
                continue;
            };
            while state.unanswered < most {
                let Some(request) = page.unsent.next_request(page.kind, slot) else { break };
                last = state.pacer.next(&rate, earliest);
                state.unanswered += 1;
                page.unanswered += 1;
                out.send(port, last, Payload::Memory(MemoryMessage::Request(request)));
                match page.kind {
                    MemoryKind::Load => state.counters.line_loads += 1,
                    _ => state.counters.line_stores += 1,
                }
            }
            state.counters.outstanding_lines_maximum =
                state.counters.outstanding_lines_maximum.max(u64::from(state.unanswered));
            if !page.unsent.is_empty() {
                return;
            }
            state.sending.pop_front();
            if page.unanswered == 0 {
                self.page_answered(slot, now, last, out);
            }
        }
    }

    /// A page of a transfer towards the device has come over the link.
    pub(super) fn page_arrived(&mut self, now: SimTime, copy: CopyId, offset: u64, bytes: u32, out: &mut Outbox) {
        let Some(transfer) = &self.state.engines[TO_DEVICE].active else { return };
        let (route, end) = (transfer.route, offset + u64::from(bytes));
        if transfer.id != copy || end > transfer.bytes {
            return;
        }
        let Some(destination) = self.write_page(TO_DEVICE, now, offset, bytes) else { return };
        let rows = (route == Route::Inward).then_some(destination);
        self.open_page(TO_DEVICE, MemoryKind::Store, (offset, bytes), rows, now);
        self.work(TO_DEVICE, now, out);
    }

    /// A line request of the page in `slot` is answered.
    pub(super) fn line_answered(&mut self, now: SimTime, slot: u32, out: &mut Outbox) {
        let Some(page) = self.state.pages.pages.get_mut(slot as usize).filter(|page| page.unanswered > 0) else {
            return;
        };
        page.unanswered -= 1;
        let engine = usize::from(page.engine);
        let all = page.unanswered == 0 && page.unsent.is_empty();
        self.state.engines[engine].unanswered -= 1;
        if all {
            self.page_answered(slot, now, now, out);
        }
        // Nothing new can be sent unless a line waits for this answer or a page was done.
        if all || !self.state.engines[engine].sending.is_empty() {
            self.work(engine, now, out);
        }
    }

    /// Every line of the page in `slot` is done, at `at`.
    fn page_answered(&mut self, slot: u32, now: SimTime, at: SimTime, out: &mut Outbox) {
        let Page { engine, kind, offset, bytes, .. } = self.state.pages.pages[slot as usize];
        let engine = usize::from(engine);
        self.state.pages.free.push(slot);
        let Some(transfer) = &mut self.state.engines[engine].active else { return };
        match (&transfer.operation, kind) {
            (CopyOperation::DeviceToHost { source }, _) => {
                let source = *source;
                transfer.read_page(&self.device_memory, &source, offset, bytes);
            }
            (CopyOperation::DeviceToDevice { destination, .. }, MemoryKind::Load) => {
                transfer::write(&mut self.writer, now, &transfer.operation, offset, u64::from(bytes));
                if transfer.route == Route::Within {
                    let destination = *destination;
                    self.open_page(engine, MemoryKind::Store, (offset, bytes), Some(destination), at);
                    return;
                }
            }
            _ => {}
        }
        if transfer.route == Route::Outward {
            let last = transfer.next_offset >= transfer.bytes && transfer.open_pages == 1;
            let message = CopyMessage::Page { copy: transfer.id, offset, bytes, last };
            out.send(self.ports.data, at, Payload::Copy(message));
        }
        transfer.open_pages -= 1;
        transfer.done_at = transfer.done_at.max(at);
    }
}
