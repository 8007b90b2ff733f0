//! Transfers: the work of an engine, one after another, the way of each, and its beginning and end.

use super::CopyEngine;
use super::state::{Queued, Route, TO_DEVICE, TO_HOST, Transfer};
use crate::engine::Outbox;
use crate::memory::transfer;
use balar_host::memory::{MANAGED_BASE, Place, place_of};
use balar_protocol::copy::{CopyId, CopyMessage, CopyOperation, Rows};
use balar_protocol::{Payload, SimTime};

impl CopyEngine {
    /// A command has come.
    pub(super) fn enqueue(&mut self, id: CopyId, operation: CopyOperation) {
        let operation = joined(operation);
        let route = self.route(&operation);
        let engine = if route == Route::Outward { TO_HOST } else { TO_DEVICE };
        self.state.engines[engine].queue.push_back(Queued { id, operation, route });
    }

    /// Begins queued transfers until one is under way.
    pub(super) fn begin_transfers(&mut self, engine: usize, now: SimTime, out: &mut Outbox) {
        while self.state.engines[engine].active.is_none() {
            let Some(Queued { id, operation, route }) = self.state.engines[engine].queue.pop_front() else { return };
            if let Some(error) = transfer::problem(&self.device_memory.view(), &operation) {
                self.state.engines[engine].counters.transfers_refused += 1;
                let completed = CopyMessage::Completed { copy: id, data: None, error: Some(error.into()) };
                out.send(self.ports.data, now, Payload::Copy(completed));
                continue;
            }
            let bytes = operation.bytes();
            let data = self.begin_values(now, &operation);
            let state = &mut self.state.engines[engine];
            let started = now.max(state.free_at);
            let setup = match route {
                Route::Within => self.parameters.device_setup_time,
                _ => self.parameters.setup_time,
            };
            let ready = started + setup;
            state.next_page = ready;
            let transfer =
                Transfer { id, operation, route, bytes, started, next_offset: 0, open_pages: 0, data, done_at: ready };
            if let Some(timeline) = &self.timeline {
                timeline.begins(engine, &transfer);
            }
            state.active = Some(transfer);
            self.work(engine, now, out);
        }
    }

    fn route(&self, operation: &CopyOperation) -> Route {
        let view = self.device_memory.view();
        let is_own = |rows: Option<&Rows>| rows.map(|rows| is_own(self.gpu, rows.address, view.place_of(rows.address)));
        let fills = matches!(operation, CopyOperation::Fill { .. });
        match (is_own(operation.source()), is_own(operation.destination())) {
            (Some(true), Some(true)) => Route::Within,
            (None, Some(is_own)) if fills => {
                if is_own {
                    Route::Within
                } else {
                    Route::Outward
                }
            }
            (Some(true), _) => Route::Outward,
            (_, Some(true)) => Route::Inward,
            (Some(false), None) => Route::Outward,
            (_, Some(false)) | (None, None) => Route::Beyond,
        }
    }

    /// Sends lines and pages that can be sent and begins transfers that can be begun; completes the transfer where nothing is left.
    pub(super) fn work(&mut self, engine: usize, now: SimTime, out: &mut Outbox) {
        loop {
            self.send_lines(engine, now, out);
            if !self.begin_page(engine, now, out) {
                break;
            }
        }
        let state = &mut self.state.engines[engine];
        let finished =
            state.active.take_if(|transfer| transfer.next_offset >= transfer.bytes && transfer.open_pages == 0);
        let Some(transfer) = finished else { return };
        let at = transfer.done_at.max(now);
        let counters = &mut state.counters;
        counters.transfers += 1;
        counters.busy_time += (at - transfer.started).0;
        *match Counted::of(&transfer) {
            Counted::HostToDevice => &mut counters.bytes_host_to_device,
            Counted::DeviceToHost => &mut counters.bytes_device_to_host,
            Counted::DeviceToDevice => &mut counters.bytes_device_to_device,
            Counted::Filled => &mut counters.bytes_filled,
        } += transfer.bytes;
        if let Some(timeline) = &self.timeline {
            timeline.ends(engine, at);
        }
        let brings = matches!(transfer.operation, CopyOperation::DeviceToHost { .. });
        let data = brings.then(|| Box::new(transfer.data));
        let completed = CopyMessage::Completed { copy: transfer.id, data, error: None };
        state.free_at = at;
        out.send(self.ports.data, at, Payload::Copy(completed));
    }
}

/// The counter of a transfer's bytes.
pub(super) enum Counted {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    Filled,
}

impl Counted {
    pub fn of(transfer: &Transfer) -> Counted {
        let is_host = |rows: Option<&Rows>| rows.is_some_and(|rows| place_of(rows.address) == Place::HostWindow);
        match &transfer.operation {
            CopyOperation::HostToDevice { .. } => Counted::HostToDevice,
            CopyOperation::DeviceToHost { .. } => Counted::DeviceToHost,
            CopyOperation::Fill { .. } => Counted::Filled,
            copy if transfer.route == Route::Inward && is_host(copy.source()) => Counted::HostToDevice,
            copy if transfer.route == Route::Outward && is_host(copy.destination()) => Counted::DeviceToHost,
            CopyOperation::DeviceToDevice { .. } => Counted::DeviceToDevice,
        }
    }
}

/// Is the address, which is of this place, in this GPU's memory? Managed memory is, for every GPU.
pub(super) fn is_own(gpu: usize, address: u64, place: Place) -> bool {
    match place {
        Place::Device(owner) => owner as usize == gpu,
        Place::HostWindow => address >= MANAGED_BASE,
        Place::Elsewhere => false,
    }
}

/// The operation with rows joined where they follow each other without gaps.
fn joined(operation: CopyOperation) -> CopyOperation {
    match operation {
        CopyOperation::HostToDevice { destination, data } => {
            CopyOperation::HostToDevice { destination: destination.joined(), data }
        }
        CopyOperation::DeviceToHost { source } => CopyOperation::DeviceToHost { source: source.joined() },
        CopyOperation::DeviceToDevice { destination, source } => {
            CopyOperation::DeviceToDevice { destination: destination.joined(), source: source.joined() }
        }
        CopyOperation::Fill { destination, value, element_bytes } => {
            CopyOperation::Fill { destination: destination.joined(), value, element_bytes }
        }
    }
}
