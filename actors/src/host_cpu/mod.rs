//! The host CPU: it runs a host program, and does the CUDA driver's part of each call.
//!
//! The program's threads make CUDA calls. Each takes modelled host time; a call that waits for a GPU returns when the work
//! it waits for is done. The driver allocates memory, loads code, checks launches, keeps the order of streams, events and graphs, and
//! answers the copy engines' requests for pages of host memory.
//!
//! The driver has no clock: this unit charges what calls cost, sends the effects on their way, and tells the driver when work is over.
//! `threads.rs` has the program's threads and their calls, `costs.rs` what calls cost, `effects.rs` what the driver wants done, `dma.rs` pages
//! for the copy engines, `conditions.rs` what graphs go by, `activity.rs` what devices do, for tools that ask, `spans.rs` and `timeline.rs`
//! what is told of calls and copies. A copy that is not timed is an entry of this unit's own log, and is done when the epoch ends. Managed
//! memory is timed as the memory of whichever GPU accesses it, unless a driver of unified memory is wired to the port `managed`: then
//! prefetches, copies, fills, synchronisations and the program's own accesses wait for that driver.

mod activity;
mod conditions;
mod costs;
mod dma;
pub mod effects;
mod functional;
mod host_time;
#[cfg(test)]
mod managed;
#[cfg(test)]
mod programs;
mod spans;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
mod threads;
mod timeline;

use crate::catalogue::bounds::{CLOCK, HOST_CYCLES, TIME};
use crate::catalogue::{
    BuildContext, BuildError, Capability, GpuDescription, ParameterSet, PortDefinition, Role, UnitDefinition,
};
use crate::engine::{Inbox, NextWake, Outbox, Unit, Window};
use crate::memory::{Bounds, DeviceMemory, Printed, Writer};
use activity::ActivityLog;
use balar_driver::code::CodeChoice;
use balar_driver::code::tables::DriverTables;
use balar_driver::{Driver, DriverSettings, Effect, OtherNode};
use balar_host::{DriverVersion, Host, ThreadId};
use balar_protocol::copy::CopyMessage;
use balar_protocol::cuda::CudaMessage;
use balar_protocol::managed::ManagedMessage;
use balar_protocol::memory::MemoryMessage;
use balar_protocol::statistics::{ProgramOutcome, StatisticSink};
use balar_protocol::{Clock, ContextId, DetailChoice, Frequency, Message, Payload, PortId, Protocol, SimTime};
use conditions::Conditions;
use costs::Staging;
use dma::HostPages;
use functional::MadeCopies;
use host_time::HostTime;
use spans::Spans;
use std::collections::BTreeMap;
use std::sync::Arc;
use threads::Threads;
use timeline::HostTimeline;

crate::parameters! {
    /// A host CPU with the CUDA driver. Costs are cycles of its clock; all are estimates for a driver of CUDA 10 on a server
    /// processor, chosen so that launches and small copies take the time measured on a V100.
    pub struct HostCpuParameters {
        /// clock of the core that runs the program
        #[range(CLOCK)]
        clock: Frequency,
        /// cycles of a kernel launch (estimate: 2 us at 2660 MHz)
        #[range(HOST_CYCLES)]
        launch_cost: u32 = "5300",
        /// cycles of starting a copy or fill (estimate: 6 us at 2660 MHz; with the copy engine's setup time and synchronize_cost the 28 us of a V100's small copy, gpu-benches cuda-memcpy)
        #[range(HOST_CYCLES)]
        copy_cost: u32 = "16000",
        /// cycles of an allocation (estimate: 10 us at 2660 MHz)
        #[range(HOST_CYCLES)]
        malloc_cost: u32 = "26600",
        /// cycles of freeing an allocation, beyond the wait for the device (estimate: 5 us at 2660 MHz)
        #[range(HOST_CYCLES)]
        free_cost: u32 = "13300",
        /// cycles until a call that waits for the GPU returns, from the GPU's signal on (estimate: 2.5 us at 2660 MHz)
        #[range(HOST_CYCLES)]
        synchronize_cost: u32 = "6650",
        /// cycles of any other call: streams, synchronisations with nothing to wait for (estimate: 0.5 us at 2660 MHz)
        #[range(HOST_CYCLES)]
        call_cost: u32 = "1330",
        /// cycles of reading the clock (estimate: 20 ns at 2660 MHz)
        #[range(HOST_CYCLES)]
        clock_cost: u32 = "53",
        /// operations not yet done beyond which a launch waits (CUDA queues 1024 launches)
        #[range(1..=1 << 20)]
        queue_depth: u32 = "1024",
        /// time to fetch a page for the copy engine where no host memory is wired, or its lines are not modelled (estimate)
        #[range(TIME)]
        page_latency: SimTime = r#""100 ns""#,
        /// lines of transferred pages go to the host memory, where it is wired
        host_memory_lines: bool = "true",
        /// time that a program computes between its calls: None; Fixed("1 us"), the same before every call; or Measured(clock: "3 GHz"), the time that it took on a processor of that clock, scaled to the clock of this one
        host_time: HostTime = "None",
        /// the way of pageable data that is copied: None, the copy engine reads and writes them as page-locked ones; or Copied("6 GB/s"), the driver copies them through page-locked memory at this rate, before a transfer to a device and after one from it (PCI Express 3.0 x16: 5 to 6 GB/s in all, where page-locked data have 11 to 12: P. Entschev, rapidsai/dask-cuda#98, and on a V100 numba/numba#4336; 1 / (1 / 5.5 - 1 / 11.5) is 10.5)
        pageable_copies: Staging = r#"Copied("10.5 GB/s")"#,
        /// the bytes that a kernel may access beside allocations: Pages, bytes that share a page with one (2 MiB of device memory, 4 KiB of host memory), as on hardware; or Allocations, nothing, which finds accesses out of bounds
        bounds: Bounds = "Pages",
        /// version of CUDA that the driver has, 11.0 to 13.5: cuDriverGetVersion tells it; newer functions are not there, and runtimes of a newer major version are refused
        driver_version: DriverVersion = r#""13.5""#,
    }
}

balar_protocol::counters! {
    /// The counters of the host CPU.
    pub struct HostCpuCounters {
        /// CUDA calls made
        calls: "call",
        /// calls that returned an error
        calls_failed: "call",
        /// allocations and frees
        calls_memory: "call",
        /// kernel launches
        calls_launch: "call",
        /// copies and fills
        calls_copy: "call",
        /// creations and destructions of streams
        calls_stream: "call",
        /// synchronisations
        calls_synchronize: "call",
        /// records, waits, queries and times of events, queries of streams
        calls_event: "call",
        /// modules loaded and unloaded, attributes of kernels
        calls_module: "call",
        /// launches of graphs
        calls_graph: "call",
        /// host functions that streams have run
        host_functions: "call",
        /// bytes copied from host to device
        bytes_host_to_device: "byte",
        /// bytes copied from device to host
        bytes_device_to_host: "byte",
        /// bytes copied from device to another device
        bytes_peer: "byte",
        /// bytes of pinned and managed memory allocated, the most at once
        host_window_maximum: "byte" maximum,
        /// bytes of device memory allocated, the most at once
        device_memory_maximum: "byte" maximum,
        /// cycles the program computed or was in the driver
        cycles_busy: "cycle",
        /// cycles the program waited for the GPU
        cycles_waiting: "cycle",
        /// lines of pages read from host memory
        host_memory_loads: "request",
        /// lines of pages written to host memory
        host_memory_stores: "request",
    }
}

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "HostCpu",
    summary: "runs a host program and the CUDA driver: allocation, streams, launches, copies",
    parameters: HostCpuParameters::DEFINITIONS,
    check: HostCpuParameters::check,
    ports: &[
        PortDefinition {
            name: "command",
            protocol: Protocol::Cuda,
            role: Role::Client,
            indexed: true,
            required: true,
            meaning: "launches to each GPU, completions back",
        },
        PortDefinition {
            name: "data",
            protocol: Protocol::Copy,
            role: Role::Client,
            indexed: true,
            required: true,
            meaning: "transfers to each GPU's copy engine and back",
        },
        PortDefinition {
            name: "memory",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: false,
            required: false,
            meaning: "host memory, which the copy engines' pages are read from and written to",
        },
        PortDefinition {
            name: "managed",
            protocol: Protocol::Managed,
            role: Role::Client,
            indexed: false,
            required: false,
            meaning: "the driver of unified memory, which moves the pages of managed memory; where it is not wired, they are resident everywhere",
        },
    ],
    counters: HostCpuCounters::DEFINITIONS,
    provides,
    weight: 2,
    build,
};

fn provides(text: &str) -> Vec<Capability> {
    let parameters: Result<HostCpuParameters, _> = ron::from_str(text);
    parameters.map(|parameters| Capability::Driver { version: parameters.driver_version }).into_iter().collect()
}

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: HostCpuParameters = ron::from_str(text)?;
    parameters.range_problems().into_result()?;
    let gpus = (0..).map_while(|gpu| Some((context.ports.at("command", gpu)?, context.ports.at("data", gpu)?)));
    let mut gpus: Vec<_> = gpus.collect();
    if gpus.is_empty() {
        gpus.push((context.required_port("command")?, context.required_port("data")?));
    }
    let memory = context.ports.get("memory").filter(|_| parameters.host_memory_lines);
    let optional = OptionalPorts { memory, managed: context.ports.get("managed") };
    let node = NodeView { gpus: &context.surroundings.gpus, memory: &context.memory()?, unit: context.unit };
    let start = context.surroundings.take().unwrap_or_default();
    let mut host = HostCpu::new(&parameters, &gpus, optional, &node, start);
    host.timeline = HostTimeline::of(context);
    Ok(Box::new(host))
}

/// The parts that the host CPU starts with: the first one that is built takes them.
#[derive(Default)]
pub struct Start {
    /// The program; `None` where there is none.
    pub host: Option<Box<dyn Host>>,
    /// The code that is loaded before the run.
    pub tables: DriverTables,
    /// Which code of modules is loaded during it.
    pub code: CodeChoice,
    /// Which launches and copies are timed.
    pub detail: DetailChoice,
    /// Nodes that a program could run on instead.
    pub other_nodes: &'static [OtherNode],
}

/// The host CPU's view of its node.
struct NodeView<'a> {
    /// The GPUs in the order of the topology.
    gpus: &'a [GpuDescription],
    memory: &'a Arc<DeviceMemory>,
    /// The host CPU's number among the units.
    unit: u32,
}

/// The ports to a GPU.
#[derive(Clone, Copy, Debug)]
struct GpuPorts {
    /// To its CTA scheduler.
    command: PortId,
    /// To its copy engine.
    data: PortId,
}

/// Ports that need not be wired.
#[derive(Clone, Copy, Debug, Default)]
struct OptionalPorts {
    /// To the host's memory.
    memory: Option<PortId>,
    /// To the driver of unified memory.
    managed: Option<PortId>,
}

/// The unit: it gives the driver time, ports and a program.
struct HostCpu {
    clock: Clock,
    costs: HostCpuParameters,
    ports: Vec<GpuPorts>,
    memory_port: Option<PortId>,
    managed_port: Option<PortId>,
    memory: Arc<DeviceMemory>,
    writer: Writer,
    driver: Driver,
    /// The driver's effects; empty between calls of it.
    effects: Vec<Effect>,
    /// The program; `None` where there is none.
    host: Option<Box<dyn Host>>,
    /// When the program is asked for its next act, beside the times when a call of it returns.
    ask_at: Option<SimTime>,
    /// The program has ended.
    ended: bool,
    /// Work has ended otherwise than by being done: others may begin.
    work_ended: bool,
    threads: Threads,
    pages: HostPages,
    made_copies: MadeCopies,
    conditions: Conditions,
    /// The error that ended the program.
    exit_error: Option<String>,
    /// All that the kernels have printed.
    printed: Vec<u8>,
    /// Launches that were refused: how many, and the first one.
    refused: (u64, Option<String>),
    /// How often the program called functions that are not implemented.
    not_implemented: BTreeMap<String, u64>,
    counters: HostCpuCounters,
    /// The work of devices, for tools that ask.
    activity: ActivityLog,
    /// Where to tell of calls.
    timeline: Option<HostTimeline>,
    spans: Spans,
}

/// An act of the unit by itself.
enum Event {
    /// The program is asked for its next act.
    Ask,
    /// A thread goes on.
    Thread(ThreadId),
    /// A copy that was not timed is done.
    CopyEnd,
    /// The word is read that a conditional node of a graph goes by.
    Condition,
}

impl HostCpu {
    /// `gpus`: the ports to the CTA scheduler and the copy engine of each GPU.
    fn new(
        parameters: &HostCpuParameters,
        gpus: &[(PortId, PortId)],
        optional: OptionalPorts,
        node: &NodeView,
        start: Start,
    ) -> HostCpu {
        let Start { host, tables, code, detail, other_nodes } = start;
        let has_host_window = node.memory.shared_file().is_some();
        let settings = DriverSettings {
            gpus: node.gpus.to_vec(),
            reservable: (0..gpus.len()).map(|gpu| node.memory.reservable(gpu)).collect(),
            has_host_window,
            has_unified_memory: optional.managed.is_some(),
            queue_depth: parameters.queue_depth as usize,
            code,
            detail,
            other_nodes,
        };
        HostCpu {
            clock: Clock::new(parameters.clock),
            costs: parameters.clone(),
            ports: gpus.iter().map(|&(command, data)| GpuPorts { command, data }).collect(),
            memory_port: optional.memory,
            managed_port: optional.managed,
            writer: node.memory.writer(node.unit),
            memory: Arc::clone(node.memory),
            driver: Driver::new(settings, &tables),
            effects: Vec::new(),
            ask_at: host.is_some().then_some(SimTime::ZERO),
            host,
            ended: false,
            work_ended: false,
            threads: Threads::default(),
            pages: HostPages::default(),
            made_copies: MadeCopies::default(),
            conditions: Conditions::default(),
            exit_error: None,
            printed: Vec::new(),
            refused: (0, None),
            not_implemented: BTreeMap::new(),
            counters: HostCpuCounters::default(),
            activity: ActivityLog::new(gpus.len()),
            timeline: None,
            spans: Spans::default(),
        }
    }

    /// Begins work that has nothing left to wait for.
    fn begin_work(&mut self, now: SimTime, out: &mut Outbox) {
        self.driver.begin(now);
        self.carry_out(now, out);
    }

    /// Something is done: others may start, and threads may go on.
    fn work_done(&mut self, now: SimTime, out: &mut Outbox) {
        self.begin_work(now, out);
        self.wake_threads(now, out);
    }

    fn handle(&mut self, message: Message, out: &mut Outbox) {
        let now = message.time;
        match message.payload {
            Payload::Cuda(CudaMessage::LaunchCompleted { launch, fault, ran }) => {
                self.activity.kernel_ends(now, launch, ran);
                self.driver.kernel_completed(launch, fault.map(|fault| *fault));
                self.work_done(now, out);
            }
            Payload::Copy(CopyMessage::PageRequest { copy, offset, bytes }) => {
                self.page_requested(now, copy, offset, bytes, out);
            }
            Payload::Copy(CopyMessage::Page { copy, offset, bytes, .. }) => {
                self.page_received(now, copy, offset, bytes, out);
            }
            Payload::Copy(CopyMessage::Access(request)) => self.host_access(now, message.port, request, out),
            Payload::Copy(CopyMessage::Completed { copy, data, error }) => {
                self.pages.forget(copy);
                self.copy_completed(now, copy, data.map(|data| *data), error, out);
            }
            Payload::Managed(ManagedMessage::Done { id }) => {
                self.driver.managed_done(id);
                self.work_done(now, out);
            }
            Payload::Managed(ManagedMessage::Touched { id, pages }) => {
                self.driver.managed_touched(id, pages);
                self.work_done(now, out);
            }
            Payload::Memory(MemoryMessage::Response(response)) => self.host_memory_answered(now, response.id, out),
            Payload::Memory(MemoryMessage::BurstDone(burst)) => self.host_memory_answered(now, burst.id, out),
            // Nothing else is sent to a host; the loader has checked the protocols of its ports.
            _ => {}
        }
    }

    /// Gives the program the text that kernels have printed. The end of a kernel comes here more than an epoch after its text, so all of
    /// its text is there.
    fn take_printed(&mut self) {
        let contexts: Vec<ContextId> = self.driver.contexts().collect();
        for context in contexts {
            let Printed { text, lost, capacity } = self.memory.take_printed(context);
            if text.is_empty() && lost == 0 {
                continue;
            }
            let notice = lost_output(lost, capacity);
            if let Some(host) = &mut self.host {
                host.printed(context.process(), &text, notice.as_bytes());
            }
            self.printed.extend_from_slice(&text);
            self.printed.extend_from_slice(notice.as_bytes());
        }
    }

    /// `cycles` of the host's clock after `time`.
    fn after(&self, time: SimTime, cycles: u32) -> SimTime {
        time + self.clock.time_of(u64::from(cycles))
    }

    fn cycles(&self, start: SimTime, end: SimTime) -> u64 {
        self.clock.cycle_at_or_after(end - start)
    }

    /// The next act of the unit by itself.
    fn next_event(&self) -> Option<(SimTime, Event)> {
        let ask = self.ask_at.map(|at| (at, Event::Ask));
        let thread = self.threads.next().map(|(at, thread)| (at, Event::Thread(thread)));
        let copy = self.made_copies.next().map(|at| (at, Event::CopyEnd));
        let condition = self.conditions.next().map(|at| (at, Event::Condition));
        // The first of equals.
        [copy, condition, ask, thread].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

impl HostCpu {
    fn run(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        loop {
            let own = self.next_event();
            match (own, inbox.next_time()) {
                (own, Some(time)) if own.as_ref().is_none_or(|(own, _)| time <= *own) => {
                    if let Some(message) = inbox.take() {
                        self.handle(message, out);
                    }
                }
                (Some((time, _)), _) if time >= window.until => return NextWake::At(time),
                (Some((time, event)), _) => {
                    match event {
                        Event::Ask => self.ask(time),
                        Event::Thread(thread) => self.step_thread(time, thread, out),
                        Event::CopyEnd => self.made_copy_ends(time, out),
                        Event::Condition => self.read_condition(time, out),
                    }
                    if std::mem::take(&mut self.work_ended) {
                        self.work_done(time, out);
                    }
                    if self.ended {
                        // Calls that waited for host functions of the program.
                        self.begin_work(time, out);
                    }
                }
                (None, _) => return NextWake::OnMessage,
            }
        }
    }
}

/// The message to the program where kernels have printed more than there is room for; nothing where they have not.
fn lost_output(lost: u64, capacity: u64) -> String {
    let outputs = match lost {
        0 => return String::new(),
        1 => "1 output of printf is".to_owned(),
        _ => format!("{lost} outputs of printf are"),
    };
    format!("balar-actors: {outputs} lost: the buffer holds {capacity} bytes (cudaLimitPrintfFifoSize)\n")
}

impl Unit for HostCpu {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        self.writer.open(|_| {});
        let wake = self.run(window, inbox, out);
        self.writer.close();
        wake
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        let totals = self.driver.totals();
        let counters = HostCpuCounters {
            bytes_host_to_device: totals.bytes_host_to_device,
            bytes_device_to_host: totals.bytes_device_to_host,
            bytes_peer: totals.bytes_peer,
            host_window_maximum: totals.host_window_maximum,
            device_memory_maximum: totals.device_memory_maximum,
            ..self.counters
        };
        counters.write(sink);
    }

    fn records(&self, sink: &mut StatisticSink) {
        let Some(host) = &self.host else { return };
        let failed = self.driver.failure();
        let unreported = || failed.map(|failure| format!("{}: {}", failure.error, failure.text));
        let mut outcome = ProgramOutcome {
            finished: self.ended,
            error: self.exit_error.clone().or_else(unreported),
            printed: self.printed.clone(),
            launches_refused: self.refused.0,
            first_refused: self.refused.1.clone(),
            peer_accessed: self.memory.view().peer_accessed(),
            ..Default::default()
        };
        if self.ended {
            outcome.verification = host.verification();
            let results = host.measurements().into_iter();
            outcome.results = results.map(|m| (m.name.to_owned(), m.value, m.unit.to_owned())).collect();
        }
        let missing = self.not_implemented.iter();
        outcome.results.extend(
            missing.map(|(function, calls)| (format!("{function}, not implemented"), *calls as f64, "call".to_owned())),
        );
        sink.outcome = Some(outcome);
    }

    fn outstanding(&self) -> Option<String> {
        let work = self.driver.oldest();
        if self.host.is_none() || self.ended {
            return work.map(|work| format!("{work} is not done"));
        }
        Some(match self.threads.waiting() {
            Some(call) => {
                let work = work.unwrap_or_else(|| "nothing".to_owned());
                format!("{call} waits; the oldest work not done is {work}")
            }
            None => "the program runs".to_owned(),
        })
    }
}
