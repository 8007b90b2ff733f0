//! The copy engines of a GPU: transfers between host memory and device memory, in pages over the data link, and within device memory.
//! Another GPU's memory is reached as host memory is: its pages cross this GPU's link, and the time of its own link and memory is not
//! modelled.
//!
//! Kernels' reads and writes of pinned host memory pass here, too, on their way over the data link.
//!
//! There are two engines, one for writes to the device and one for reads back; each does one transfer after another. Towards the device,
//! the engine asks the host for pages and writes them, line by line, through the crossbar, so that copied lines are found in L2 as on
//! hardware. Back, it loads lines and sends pages.
//!
//! Kernels reach pinned memory past L1 and L2: crossbar, copy engine, data link, host memory. A page of a transfer is one message on its
//! whole way: over the link, and as a burst to host memory, which works out its lines one after another, as it would single requests, and
//! answers when the last is done. Only through L2 (`through_l2`) each line travels alone. The bytes of a transfer exist once in the
//! simulator beside the memory itself: bytes that the tunnel has received are written page by page, and bytes that have been read are sent
//! by the tunnel.

mod lines;
mod pages;
mod parameters;
mod state;
#[cfg(test)]
mod tests;
mod timeline;
mod transfers;
mod values;

pub use parameters::{CopyEngineCounters, CopyEngineParameters};

use crate::catalogue::{BuildContext, BuildError, ParameterSet, PortDefinition, Role, UnitDefinition, nothing};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use crate::memory::{DeviceMemory, SavedWriter, Writer};
use balar_protocol::copy::CopyMessage;
use balar_protocol::memory::MemoryMessage;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Clock, Message, Payload, PortId, Protocol};
use lines::LineRate;
use parameters::problems;
use state::{State, TO_DEVICE, TO_HOST};
use std::sync::Arc;
use timeline::CopyTimeline;

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
        PortDefinition {
            name: "device",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: false,
            required: false,
            meaning: "into the crossbar for copies within the device and fills, for which hardware runs a kernel; without it they go by memory",
        },
    ],
    counters: CopyEngineCounters::DEFINITIONS,
    provides: nothing,
    weight: 2,
    build,
};

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: CopyEngineParameters = ron::from_str(text)?;
    problems(&parameters, context).into_result()?;
    let ports = Ports {
        data: context.required_port("data")?,
        memory: context.ports.get("memory"),
        device: context.ports.get("device"),
    };
    let gpu = context.gpu_index()?;
    let mut engine = CopyEngine::new(parameters, ports, gpu, (context.memory()?, context.writer()?));
    engine.timeline = CopyTimeline::of(context);
    Ok(Box::new(engine))
}

/// The unit's ports.
#[derive(Clone, Copy, Debug)]
struct Ports {
    data: PortId,
    memory: Option<PortId>,
    device: Option<PortId>,
}

/// The unit.
struct CopyEngine {
    parameters: CopyEngineParameters,
    rate: LineRate,
    /// That of transfers within the device by a port of their own.
    device_rate: LineRate,
    ports: Ports,
    /// The number of its GPU.
    gpu: usize,
    device_memory: Arc<DeviceMemory>,
    writer: Writer,
    state: State,
    /// Where to tell of transfers.
    timeline: Option<CopyTimeline>,
}

impl CopyEngine {
    fn new(
        parameters: CopyEngineParameters,
        ports: Ports,
        gpu: usize,
        (device_memory, writer): (Arc<DeviceMemory>, Writer),
    ) -> CopyEngine {
        let [rate, device_rate] = [parameters.lines_per_cycle, parameters.device_lines_per_cycle]
            .map(|lines_per_cycle| LineRate { clock: Clock::new(parameters.clock), lines_per_cycle });
        CopyEngine {
            parameters,
            rate,
            device_rate,
            ports,
            gpu,
            device_memory,
            writer,
            state: State::default(),
            timeline: None,
        }
    }

    fn handle(&mut self, message: Message, out: &mut Outbox) {
        let now = message.time;
        match message.payload {
            Payload::Copy(CopyMessage::Command(command)) => {
                let (id, operation) = *command;
                self.enqueue(id, operation);
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
        self.state.engines[TO_DEVICE].counters.write_of("to_device", sink);
        self.state.engines[TO_HOST].counters.write_of("to_host", sink);
    }

    fn outstanding(&self) -> Option<String> {
        let engines = self.state.engines.iter();
        let mut active = engines.filter_map(|engine| Some((engine.active.as_ref()?, engine.unanswered)));
        active.next().map(|(transfer, unanswered)| {
            format!(
                "transfer {} of {} bytes: {} bytes begun, {} pages and {unanswered} line requests unanswered",
                transfer.id.0, transfer.bytes, transfer.next_offset, transfer.open_pages
            )
        })
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&(&self.state, self.writer.save()))
    }

    fn restore(&mut self, state: &[u8], _: &dyn CodeSource) -> Result<(), StateError> {
        let (state, writer): (State, SavedWriter) = restore_state(state)?;
        self.writer.restore(writer);
        self.state = state;
        Ok(())
    }
}
