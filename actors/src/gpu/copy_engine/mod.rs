//! The copy engines of a GPU: transfers between host memory and device memory, in pages over the data link, and within
//! device memory. Another GPU's memory is reached as host memory is: its pages cross this GPU's link, and what its own link and
//! memory would do is not modelled.
//!
//! What kernels read and write of pinned host memory passes here, too, on its way over the data link.
//!
//! There are two engines, one for what is written to the device and one for what is read back; each does one transfer
//! after another. Towards the device, the engine asks the host for pages and writes them, line by line, through the
//! crossbar, so that copied lines are found in L2 as on hardware. Back, it loads lines and sends pages.

pub(crate) mod lines;
#[cfg(test)]
mod tests;

use crate::catalogue::{
    BuildContext, BuildError, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition,
};
use crate::engine::{Inbox, NextWake, Outbox, Unit, Window};
use crate::memory::{DeviceMemory, WriteLog, Writer};
use balar_host::memory::{MANAGED_BASE, Place, place_of};
use balar_protocol::copy::{CopyId, CopyMessage, CopyOperation, Rows};
use balar_protocol::memory::{MemoryKind, MemoryMessage};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Bandwidth, Bytes, Clock, Frequency, Message, Payload, PortId, Protocol, SimTime};
use lines::{LinePacer, PageLines};
use std::collections::VecDeque;
use std::sync::Arc;

crate::parameters! {
    /// The copy engines of a GPU.
    pub struct CopyEngineParameters {
        /// clock of the engines' port into the crossbar
        clock: Frequency,
        /// bytes of a page, the piece in which a transfer crosses the data link
        page_bytes: Bytes = r#""4 KiB""#,
        /// time from a command to its first page (a V100's copies of up to 16 kB take 28 to 34 us, gpu-benches cuda-memcpy; this is the engine's share of it, an estimate)
        setup_time: SimTime = r#""20 us""#,
        /// rate at which an engine moves pages to or from the host (V100 over PCI Express 3 x16: 12.35 GB/s, gpu-benches cuda-memcpy)
        host_bandwidth: Bandwidth = r#""12.35 GB/s""#,
        /// pages asked for and not yet done, for each engine (estimate: enough to hide the link's latency)
        outstanding_pages: u32 = "8",
        /// line requests sent into the crossbar and not yet answered, for each engine (estimate)
        outstanding_lines: u32 = "2048",
        /// line requests that an engine sends in a cycle (estimate)
        lines_per_cycle: u32 = "4",
        /// copied lines pass through the L2; otherwise only their values change
        through_l2: bool = "true",
    }
}

balar_protocol::counters! {
    /// What a copy engine counts.
    pub struct CopyEngineCounters {
        /// transfers done
        transfers: "transfer",
        /// transfers refused, for their range is not inside an allocation
        transfers_refused: "transfer",
        /// bytes copied from host to device
        bytes_host_to_device: "byte",
        /// bytes copied from device to host
        bytes_device_to_host: "byte",
        /// bytes copied within the device
        bytes_device_to_device: "byte",
        /// bytes set to a value
        bytes_filled: "byte",
        /// pages moved
        pages: "page",
        /// line loads sent to the L2
        line_loads: "request",
        /// line stores sent to the L2
        line_stores: "request",
        /// most line requests unanswered at once
        outstanding_lines_maximum: "request" maximum,
        /// time with a transfer under way
        busy_time: "ps",
    }
}

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "CopyEngine",
    summary: "copies between host and device memory, one engine for each direction",
    parameters: CopyEngineParameters::DEFINITIONS,
    check: CopyEngineParameters::check,
    ports: &[
        PortDefinition {
            name: "data",
            protocol: Protocol::Copy,
            role: Role::Server,
            indexed: false,
            required: true,
            meaning: "commands and pages from the host, pages and completions back",
        },
        PortDefinition {
            name: "memory",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: false,
            required: false,
            meaning: "into the crossbar, and the way of kernels to host memory; needed where through_l2 is true",
        },
    ],
    counters: CopyEngineCounters::DEFINITIONS,
    build,
};

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: CopyEngineParameters = ron::from_str(text)?;
    let mut problems = Vec::new();
    if parameters.page_bytes.0 == 0 || parameters.page_bytes.0 > 1 << 30 {
        problems.push(ParameterProblem::new("page_bytes", "expected 1 B to 1 GiB"));
    }
    for (key, value) in [
        ("outstanding_pages", parameters.outstanding_pages),
        ("outstanding_lines", parameters.outstanding_lines),
        ("lines_per_cycle", parameters.lines_per_cycle),
    ] {
        if value == 0 {
            problems.push(ParameterProblem::new(key, "must not be zero"));
        }
    }
    if parameters.through_l2 && context.ports.get("memory").is_none() {
        problems.push(ParameterProblem::new("through_l2", "is true, which needs the port memory to be wired"));
    }
    if !problems.is_empty() {
        return Err(BuildError::Parameters(problems));
    }
    let ports = Ports { data: context.required_port("data")?, memory: context.ports.get("memory") };
    let gpu = context.gpu_index()?;
    Ok(Box::new(CopyEngine::new(&parameters, ports, gpu, (context.memory()?, context.writer()?))))
}

/// The unit's ports.
#[derive(Clone, Copy)]
struct Ports {
    data: PortId,
    memory: Option<PortId>,
}

/// What a transfer has to do with the data link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// Nothing: it stays within the GPU's memory.
    Within,
    /// Its bytes come over the link and are written to the GPU's memory.
    Inward,
    /// Its bytes come from the GPU's memory, or from nowhere (fills), and go over the link.
    Outward,
    /// Its bytes come over the link, and are written to where they came from.
    Beyond,
}

/// The transfer an engine works on.
struct Transfer {
    id: CopyId,
    operation: CopyOperation,
    route: Route,
    bytes: u64,
    started: SimTime,
    /// Offset of the first page not yet begun.
    next_offset: u64,
    /// Pages begun and not yet done.
    open_pages: u32,
    /// Of device-to-host: what has been read.
    data: Vec<u8>,
    /// The latest time at which a page was done.
    done_at: SimTime,
}

/// A page whose lines are being loaded or stored.
struct Page {
    engine: usize,
    kind: MemoryKind,
    offset: u64,
    bytes: u32,
    /// Lines not yet sent.
    unsent: PageLines,
    /// Requests sent and not yet answered.
    unanswered: u32,
    /// No line is sent earlier.
    not_before: SimTime,
}

/// One engine.
struct Engine {
    queue: VecDeque<(CopyId, CopyOperation, Route)>,
    active: Option<Transfer>,
    /// When the transfer before was done.
    free_at: SimTime,
    /// Earliest time for the next page to or from the host.
    next_page: SimTime,
    pacer: LinePacer,
    /// Pages with lines to send, by slot, in order.
    sending: VecDeque<u32>,
    unanswered: u32,
    counters: CopyEngineCounters,
}

/// The unit.
struct CopyEngine {
    ports: Ports,
    /// The number of its GPU.
    gpu: usize,
    device_memory: Arc<DeviceMemory>,
    writer: Writer,
    page_bytes: u64,
    setup_time: SimTime,
    host_bandwidth: Bandwidth,
    outstanding_pages: u32,
    outstanding_lines: u32,
    through_l2: bool,
    /// Towards the device (and within it), and towards the host.
    engines: [Engine; 2],
    /// Pages by slot; the slot is the `id` of its line requests.
    pages: Vec<Page>,
    free_pages: Vec<u32>,
}

const TO_DEVICE: usize = 0;
const TO_HOST: usize = 1;

impl CopyEngine {
    fn new(
        parameters: &CopyEngineParameters,
        ports: Ports,
        gpu: usize,
        (device_memory, writer): (Arc<DeviceMemory>, Writer),
    ) -> CopyEngine {
        let engine = || Engine {
            queue: VecDeque::new(),
            active: None,
            free_at: SimTime::ZERO,
            next_page: SimTime::ZERO,
            pacer: LinePacer::new(Clock::new(parameters.clock), parameters.lines_per_cycle),
            sending: VecDeque::new(),
            unanswered: 0,
            counters: CopyEngineCounters::default(),
        };
        CopyEngine {
            ports,
            gpu,
            device_memory,
            writer,
            page_bytes: parameters.page_bytes.0,
            setup_time: parameters.setup_time,
            host_bandwidth: parameters.host_bandwidth,
            outstanding_pages: parameters.outstanding_pages,
            outstanding_lines: parameters.outstanding_lines,
            through_l2: parameters.through_l2,
            engines: [engine(), engine()],
            pages: Vec::new(),
            free_pages: Vec::new(),
        }
    }

    fn handle(&mut self, message: Message, out: &mut Outbox) {
        let now = message.time;
        match message.payload {
            Payload::Copy(CopyMessage::Command(command)) => {
                let (id, operation) = *command;
                let operation = joined(operation);
                let route = self.route(&operation);
                let engine = if route == Route::Outward { TO_HOST } else { TO_DEVICE };
                self.engines[engine].queue.push_back((id, operation, route));
            }
            Payload::Copy(CopyMessage::Page { copy, offset, bytes, .. }) => {
                self.page_arrived(now, copy, offset, bytes, out);
            }
            Payload::Memory(MemoryMessage::Response(response)) => self.line_answered(now, response.id, out),
            // The way of kernels to host memory: the engines do not take part.
            Payload::Memory(MemoryMessage::Request(request)) => {
                out.send(self.ports.data, now, Payload::Copy(CopyMessage::Access(request)));
            }
            Payload::Copy(CopyMessage::Accessed(response)) => {
                if let Some(port) = self.ports.memory {
                    out.send(port, now, Payload::Memory(MemoryMessage::Response(response)));
                }
            }
            // Credits and anything else change nothing: the engine bounds its own requests.
            _ => {}
        }
        for engine in [TO_DEVICE, TO_HOST] {
            self.begin_transfers(engine, now, out);
        }
    }

    /// Begins queued transfers until one is under way.
    fn begin_transfers(&mut self, engine: usize, now: SimTime, out: &mut Outbox) {
        while self.engines[engine].active.is_none() {
            let Some((id, operation, route)) = self.engines[engine].queue.pop_front() else { return };
            if let Some(error) = self.problem(&operation) {
                self.engines[engine].counters.transfers_refused += 1;
                let completed = CopyMessage::Completed { copy: id, data: None, error: Some(error.into()) };
                out.send(self.ports.data, now, Payload::Copy(completed));
                continue;
            }
            let bytes = operation.bytes();
            let data = match operation {
                CopyOperation::DeviceToHost { .. } => vec![0; bytes as usize],
                _ => Vec::new(),
            };
            if let CopyOperation::Fill { destination, value, element_bytes } = operation {
                for (address, bytes) in destination.runs(0, bytes) {
                    self.writer.fill(now, address, bytes, value, element_bytes);
                }
            }
            let state = &mut self.engines[engine];
            let started = now.max(state.free_at);
            let ready = started + self.setup_time;
            state.next_page = ready;
            state.active = Some(Transfer {
                id,
                operation,
                route,
                bytes,
                started,
                next_offset: 0,
                open_pages: 0,
                data,
                done_at: ready,
            });
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

    /// Why a transfer cannot be done.
    fn problem(&self, operation: &CopyOperation) -> Option<String> {
        let (destination, source) = (operation.destination(), operation.source());
        let bytes = operation.bytes();
        if [destination, source].into_iter().flatten().any(|rows| rows.bytes() != bytes) {
            return Some(format!("{bytes} bytes to or from rows of another size"));
        }
        let view = self.device_memory.view();
        let inside = |rows: &Rows| rows.span().is_some_and(|span| view.is_allocated(rows.address, span));
        let outside = [destination, source].into_iter().flatten().find(|rows| bytes > 0 && !inside(rows))?;
        let span = outside.span().unwrap_or(u64::MAX);
        Some(format!("{span} bytes at {:#x} are not inside one allocation", outside.address))
    }

    /// Sends what can be sent and begins what can be begun; completes the transfer where nothing is left.
    fn work(&mut self, engine: usize, now: SimTime, out: &mut Outbox) {
        loop {
            self.send_lines(engine, now, out);
            if !self.begin_page(engine, now, out) {
                break;
            }
        }
        let state = &mut self.engines[engine];
        let finished =
            state.active.take_if(|transfer| transfer.next_offset >= transfer.bytes && transfer.open_pages == 0);
        let Some(transfer) = finished else { return };
        let at = transfer.done_at.max(now);
        let counters = &mut state.counters;
        counters.transfers += 1;
        counters.busy_time += (at - transfer.started).0;
        let is_host = |rows: Option<&Rows>| rows.is_some_and(|rows| place_of(rows.address) == Place::HostWindow);
        let (count, data) = match &transfer.operation {
            CopyOperation::HostToDevice { .. } => (&mut counters.bytes_host_to_device, None),
            CopyOperation::DeviceToHost { .. } => (&mut counters.bytes_device_to_host, Some(Box::new(transfer.data))),
            CopyOperation::Fill { .. } => (&mut counters.bytes_filled, None),
            copy if transfer.route == Route::Inward && is_host(copy.source()) => {
                (&mut counters.bytes_host_to_device, None)
            }
            copy if transfer.route == Route::Outward && is_host(copy.destination()) => {
                (&mut counters.bytes_device_to_host, None)
            }
            CopyOperation::DeviceToDevice { .. } => (&mut counters.bytes_device_to_device, None),
        };
        *count += transfer.bytes;
        let completed = CopyMessage::Completed { copy: transfer.id, data, error: None };
        state.free_at = at;
        out.send(self.ports.data, at, Payload::Copy(completed));
    }

    /// Begins the next page of a transfer, if it has one and there is room. False where not.
    fn begin_page(&mut self, engine: usize, now: SimTime, out: &mut Outbox) -> bool {
        let page_bytes = self.page_bytes;
        let host_bandwidth = self.host_bandwidth;
        let outstanding_pages = self.outstanding_pages;
        let gpu = self.gpu;
        let lines_free = self.engines[engine].unanswered < self.outstanding_lines;
        let state = &mut self.engines[engine];
        let Some(transfer) = &mut state.active else { return false };
        if transfer.next_offset >= transfer.bytes {
            return false;
        }
        let offset = transfer.next_offset;
        let bytes = page_bytes.min(transfer.bytes - offset) as u32;
        let with_host = transfer.route != Route::Within;
        let from_host = matches!(transfer.route, Route::Inward | Route::Beyond);
        if with_host && transfer.open_pages >= outstanding_pages {
            return false;
        }
        let can_send = state.sending.is_empty() && lines_free;
        if !from_host && !can_send {
            return false;
        }
        let at = state.next_page.max(now);
        if with_host {
            state.next_page = at + host_bandwidth.time_for(u64::from(bytes));
        }
        transfer.next_offset += u64::from(bytes);
        transfer.open_pages += 1;
        state.counters.pages += 1;
        if from_host {
            let request = CopyMessage::PageRequest { copy: transfer.id, offset, bytes };
            out.send(self.ports.data, at, Payload::Copy(request));
            return true;
        }
        let place = |rows: &Rows| self.device_memory.view().place_of(rows.address);
        let (kind, rows) = match (transfer.operation.source(), transfer.operation.destination()) {
            (Some(source), _) if is_own(gpu, source.address, place(source)) => (MemoryKind::Load, Some(*source)),
            (None, Some(destination)) if transfer.route == Route::Within => (MemoryKind::Store, Some(*destination)),
            // What crosses the link has no lines in the GPU's memory.
            _ => (MemoryKind::Store, None),
        };
        self.open_page(engine, kind, offset, bytes, rows, at);
        true
    }

    /// A page is ready to have its lines sent, where it has any: those of `rows`.
    fn open_page(
        &mut self,
        engine: usize,
        kind: MemoryKind,
        offset: u64,
        bytes: u32,
        rows: Option<Rows>,
        not_before: SimTime,
    ) {
        let unsent = match rows {
            Some(rows) => PageLines::new(&rows, offset, bytes),
            None => PageLines::new(&Rows::linear(0, 0), 0, 0),
        };
        let page = Page { engine, kind, offset, bytes, unsent, unanswered: 0, not_before };
        let slot = match self.free_pages.pop() {
            Some(slot) => {
                self.pages[slot as usize] = page;
                slot
            }
            None => {
                self.pages.push(page);
                (self.pages.len() - 1) as u32
            }
        };
        self.engines[engine].sending.push_back(slot);
    }

    /// Sends lines of the pages in turn while fewer than the limit are unanswered.
    fn send_lines(&mut self, engine: usize, now: SimTime, out: &mut Outbox) {
        while let Some(&slot) = self.engines[engine].sending.front() {
            let state = &mut self.engines[engine];
            let page = &mut self.pages[slot as usize];
            let earliest = page.not_before.max(now);
            let mut last = earliest;
            let memory = self.ports.memory.filter(|_| self.through_l2);
            while state.unanswered < self.outstanding_lines {
                let Some(request) = page.unsent.next_request(page.kind, slot) else { break };
                last = state.pacer.next(earliest);
                if let Some(port) = memory {
                    state.unanswered += 1;
                    page.unanswered += 1;
                    out.send(port, last, Payload::Memory(MemoryMessage::Request(request)));
                    match page.kind {
                        MemoryKind::Load => state.counters.line_loads += 1,
                        _ => state.counters.line_stores += 1,
                    }
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
    fn page_arrived(&mut self, now: SimTime, copy: CopyId, offset: u64, bytes: u32, out: &mut Outbox) {
        let Some(transfer) = &self.engines[TO_DEVICE].active else { return };
        let end = offset + u64::from(bytes);
        if transfer.id != copy || end > transfer.bytes {
            return;
        }
        let Some(destination) = transfer.operation.destination().copied() else { return };
        match &transfer.operation {
            CopyOperation::HostToDevice { data, .. } => {
                let mut from = offset as usize;
                for (address, bytes) in destination.runs(offset, u64::from(bytes)) {
                    self.writer.write(now, address, data, from..from + bytes as usize);
                    from += bytes as usize;
                }
            }
            CopyOperation::DeviceToDevice { source, .. } => {
                copy_runs(&mut self.writer, now, &destination, source, offset, u64::from(bytes));
            }
            CopyOperation::DeviceToHost { .. } | CopyOperation::Fill { .. } => return,
        }
        let rows = (transfer.route == Route::Inward).then_some(destination);
        self.open_page(TO_DEVICE, MemoryKind::Store, offset, bytes, rows, now);
        self.work(TO_DEVICE, now, out);
    }

    /// A line request of the page in `slot` is answered.
    fn line_answered(&mut self, now: SimTime, slot: u32, out: &mut Outbox) {
        let Some(page) = self.pages.get_mut(slot as usize).filter(|page| page.unanswered > 0) else { return };
        page.unanswered -= 1;
        let engine = page.engine;
        let all = page.unanswered == 0 && page.unsent.is_empty();
        self.engines[engine].unanswered -= 1;
        if all {
            self.page_answered(slot, now, now, out);
        }
        // Nothing new can be sent unless a line waits for this answer or a page was done.
        if all || !self.engines[engine].sending.is_empty() {
            self.work(engine, now, out);
        }
    }

    /// Every line of the page in `slot` is done, at `at`.
    fn page_answered(&mut self, slot: u32, now: SimTime, at: SimTime, out: &mut Outbox) {
        let page = &self.pages[slot as usize];
        let (engine, kind, offset, bytes) = (page.engine, page.kind, page.offset, page.bytes);
        self.free_pages.push(slot);
        let Some(transfer) = &mut self.engines[engine].active else { return };
        match (&transfer.operation, kind) {
            (CopyOperation::DeviceToHost { source }, _) => {
                let view = self.device_memory.view();
                // The range was inside an allocation when the transfer began. Where it was freed since, the bytes stay zero.
                if view.allocation_of(source.address).is_some() {
                    let mut to = offset as usize;
                    for (address, bytes) in source.runs(offset, u64::from(bytes)) {
                        let bytes = bytes as usize;
                        transfer.data[to..to + bytes].copy_from_slice(view.bytes(address, bytes));
                        to += bytes;
                    }
                }
            }
            (CopyOperation::DeviceToDevice { destination, source }, MemoryKind::Load) => {
                copy_runs(&mut self.writer, now, destination, source, offset, u64::from(bytes));
                if transfer.route == Route::Within {
                    let destination = *destination;
                    self.open_page(engine, MemoryKind::Store, offset, bytes, Some(destination), at);
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

/// Is the address, which is of this place, in this GPU's memory? Managed memory is, for every GPU.
fn is_own(gpu: usize, address: u64, place: Place) -> bool {
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

/// Logs copies of `bytes` bytes from `offset` of the packed rows on.
fn copy_runs(log: &mut WriteLog, now: SimTime, destination: &Rows, source: &Rows, offset: u64, bytes: u64) {
    let (mut at, end) = (offset, offset + bytes);
    while let (Some((to, room)), Some((from, there))) = (destination.run_at(at, end), source.run_at(at, end)) {
        let bytes = room.min(there);
        log.copy(now, to, from, bytes);
        at += bytes;
    }
}

impl Unit for CopyEngine {
    fn advance(&mut self, _window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        self.writer.open(|_| {});
        while let Some(message) = inbox.take() {
            self.handle(message, out);
        }
        self.writer.close();
        NextWake::OnMessage
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.engines[TO_DEVICE].counters.write_of("to_device", sink);
        self.engines[TO_HOST].counters.write_of("to_host", sink);
    }

    fn outstanding(&self) -> Option<String> {
        let transfer = self.engines.iter().find_map(|engine| Some((engine.active.as_ref()?, engine.unanswered)));
        transfer.map(|(transfer, unanswered)| {
            format!(
                "transfer {} of {} bytes: {} bytes begun, {} pages and {unanswered} line requests unanswered",
                transfer.id.0, transfer.bytes, transfer.next_offset, transfer.open_pages
            )
        })
    }
}
