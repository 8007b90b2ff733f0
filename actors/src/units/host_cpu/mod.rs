//! The host CPU: it runs a host program, and does the CUDA driver's part of each call.
//!
//! A program is a sequence of CUDA calls. Each takes modelled host time; a call that waits for the GPU returns when the work
//! it waits for is done. The driver allocates device memory, checks launches, keeps the order of streams, and answers
//! the copy engine's requests for pages of host memory.

mod allocator;
mod calls;
mod dma;
mod images;
mod launch;
mod streams;
#[cfg(test)]
mod tests;

use crate::catalogue::{
    BuildContext, BuildError, ParameterProblem, ParameterSet, PortDefinition, Role, UnitDefinition,
};
use crate::device_memory::DeviceMemory;
use crate::engine::node::{GpuDescription, KernelTable, Node, SymbolTable};
use crate::engine::{Inbox, NextWake, Outbox, Unit, Window};
use allocator::DeviceAllocator;
use balar_host::{Bytes, Call, CallResult, CudaError, Host, Next, Request, ThreadId};
use balar_protocol::copy::CopyMessage;
use balar_protocol::cuda::{CudaMessage, KernelFault, LaunchId};
use balar_protocol::memory::MemoryMessage;
use balar_protocol::statistics::{ProgramOutcome, StatisticSink, Verification};
use balar_protocol::{Clock, Frequency, Message, Payload, PortId, Protocol, SimTime};
use dma::HostPages;
use images::Images;
use std::sync::{Arc, PoisonError};
use streams::{Streams, Work};

crate::parameters! {
    /// A host CPU with the CUDA driver. Costs are cycles of its clock; all are estimates for a driver of CUDA 10 on a server
    /// processor, chosen so that launches and small copies take the time measured on a V100.
    pub struct HostCpuParameters {
        /// clock of the core that runs the program
        clock: Frequency,
        /// cycles of a kernel launch (estimate: 2 us at 2660 MHz)
        launch_cost: u32 = "5300",
        /// cycles of starting a copy or fill (estimate: 6 us at 2660 MHz; with the copy engine's setup time and synchronize_cost the 28 us of a V100's small copy, gpu-benches cuda-memcpy)
        copy_cost: u32 = "16000",
        /// cycles of an allocation (estimate: 10 us at 2660 MHz)
        malloc_cost: u32 = "26600",
        /// cycles of freeing an allocation, beyond the wait for the device (estimate: 5 us at 2660 MHz)
        free_cost: u32 = "13300",
        /// cycles until a call that waits for the GPU returns, from the GPU's signal on (estimate: 2.5 us at 2660 MHz)
        synchronize_cost: u32 = "6650",
        /// cycles of any other call: streams, synchronisations with nothing to wait for (estimate: 0.5 us at 2660 MHz)
        call_cost: u32 = "1330",
        /// cycles of reading the clock (estimate: 20 ns at 2660 MHz)
        clock_cost: u32 = "53",
        /// operations not yet done beyond which a launch waits (CUDA queues 1024 launches)
        queue_depth: u32 = "1024",
        /// time to fetch a page for the copy engine where no host memory is wired, or its lines are not modelled (estimate)
        page_latency: SimTime = r#""100 ns""#,
        /// lines of transferred pages go to the host memory, where it is wired
        host_memory_lines: bool = "true",
    }
}

balar_protocol::counters! {
    /// What the host CPU counts.
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
        /// bytes copied from host to device
        bytes_host_to_device: "byte",
        /// bytes copied from device to host
        bytes_device_to_host: "byte",
        /// bytes of device memory allocated, the most at once
        device_memory_maximum: "byte",
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
            meaning: "launches to each GPU, completions back; programs use GPU 0",
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
    ],
    counters: HostCpuCounters::DEFINITIONS,
    build,
};

fn build(text: &str, context: &BuildContext) -> Result<Box<dyn Unit>, BuildError> {
    let parameters: HostCpuParameters = ron::from_str(text)?;
    if parameters.queue_depth == 0 {
        return Err(BuildError::Parameters(vec![ParameterProblem::new("queue_depth", "must not be zero")]));
    }
    let ports = Ports {
        command: context.required_port("command")?,
        data: context.required_port("data")?,
        memory: context.ports.get("memory").filter(|_| parameters.host_memory_lines),
    };
    Ok(Box::new(HostCpu::new(&parameters, ports, context.node)))
}

/// The unit's ports; those of GPU 0.
#[derive(Clone, Copy)]
struct Ports {
    command: PortId,
    data: PortId,
    memory: Option<PortId>,
}

/// What a blocked call waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wait {
    /// This operation of a stream, by its place in the order.
    Operation { stream: u32, number: u64 },
    /// Everything in a stream.
    Stream(u32),
    /// Everything on the device; then the allocation at this address ends.
    DeviceThenFree(u64),
    /// Everything on the device.
    Device,
    /// Room for one more launch.
    QueueRoom,
}

/// Where the program stands.
enum State {
    /// There is none.
    NoProgram,
    /// The call before has returned: the next one is made at this time.
    Returning { at: SimTime, result: CallResult },
    /// In a call, or computing, until this time.
    Calling { until: SimTime, call: Call },
    /// In a call that waits for the GPU.
    Waiting { since: SimTime, call: &'static str, wait: Wait },
    /// At its end.
    Ended,
}

/// The unit.
struct HostCpu {
    clock: Clock,
    costs: HostCpuParameters,
    ports: Ports,
    compute_capability: (u32, u32),
    gpu: Option<GpuDescription>,
    memory: Option<Arc<DeviceMemory>>,
    kernels: Arc<KernelTable>,
    symbols: Arc<SymbolTable>,
    program: Option<Box<dyn Host>>,
    state: State,
    streams: Streams,
    allocator: DeviceAllocator,
    images: Images,
    pages: HostPages,
    next_launch: u32,
    next_copy: u32,
    /// What a synchronous copy from the device brought.
    received: Option<Vec<u8>>,
    /// The error that ended the context: every later call returns it.
    sticky: Option<(CudaError, String)>,
    /// The last error a call returned, in words.
    last_error: Option<(CudaError, String)>,
    /// The error that ended the program.
    exit_error: Option<String>,
    /// All that the kernels have printed.
    printed: Vec<u8>,
    counters: HostCpuCounters,
}

impl HostCpu {
    fn new(parameters: &HostCpuParameters, ports: Ports, node: &Node) -> HostCpu {
        let program = node.workload.lock().unwrap_or_else(PoisonError::into_inner).take();
        let gpu = node.gpus.first();
        HostCpu {
            clock: Clock::new(parameters.clock),
            costs: parameters.clone(),
            ports,
            compute_capability: gpu.map_or((0, 0), |gpu| gpu.compute_capability),
            gpu: gpu.cloned(),
            memory: node.memory.clone(),
            kernels: Arc::clone(&node.kernels),
            symbols: Arc::clone(&node.symbols),
            state: match program {
                Some(_) => State::Returning { at: SimTime::ZERO, result: CallResult::Start },
                None => State::NoProgram,
            },
            program,
            streams: Streams::new(),
            allocator: DeviceAllocator::new(DeviceMemory::BASE, gpu.map_or(0, |gpu| gpu.memory_bytes)),
            images: Images::default(),
            pages: HostPages::default(),
            next_launch: 1,
            next_copy: 1,
            received: None,
            sticky: None,
            last_error: None,
            exit_error: None,
            printed: Vec::new(),
            counters: HostCpuCounters::default(),
        }
    }

    /// Gives the GPU what its streams let it have.
    fn dispatch(&mut self, now: SimTime, out: &mut Outbox) {
        let ports = self.ports;
        self.streams.dispatch(|work| match work {
            Work::Kernel(launch) => out.send(ports.command, now, Payload::Cuda(CudaMessage::Launch(launch.clone()))),
            Work::Copy { id, operation, .. } => {
                let command = CopyMessage::Command(Box::new((*id, operation.clone())));
                out.send(ports.data, now, Payload::Copy(command));
            }
        });
    }

    fn handle(&mut self, message: Message, out: &mut Outbox) {
        let now = message.time;
        match message.payload {
            Payload::Cuda(CudaMessage::LaunchCompleted { launch, fault }) => {
                self.kernel_completed(now, launch, fault.map(|fault| *fault), out);
            }
            Payload::Copy(CopyMessage::PageRequest { copy, offset, bytes }) => {
                self.page_requested(now, copy, offset, bytes, out);
            }
            Payload::Copy(CopyMessage::Page { copy, offset, bytes, .. }) => {
                self.page_received(now, copy, offset, bytes, out);
            }
            Payload::Copy(CopyMessage::Completed { copy, data, error }) => {
                if let Some(work) = self.streams.complete_copy(copy) {
                    self.copy_completed(work, data.map(|data| *data), error);
                    self.pages.forget(copy);
                    self.operation_done(now, out);
                }
            }
            Payload::Memory(MemoryMessage::Response(response)) => self.host_line_answered(now, response.id, out),
            // Nothing else is sent to a host; the loader has checked the protocols of its ports.
            _ => {}
        }
    }

    fn kernel_completed(&mut self, now: SimTime, launch: LaunchId, fault: Option<KernelFault>, out: &mut Outbox) {
        let Some(work) = self.streams.complete_kernel(launch) else { return };
        if let Work::Kernel(launch) = work
            && launch.is_cooperative()
        {
            self.end_allocation(now, launch.grid_workspace, out);
        }
        if let Some(fault) = fault {
            self.fail_context(launch::error_of(&fault.cause), fault.to_string());
        }
        self.operation_done(now, out);
    }

    fn copy_completed(&mut self, work: Work, data: Option<Vec<u8>>, error: Option<Box<str>>) {
        let Work::Copy { transfer, .. } = work else { return };
        if let Some(error) = error {
            self.fail_context(CudaError::InvalidValue, error.into());
            return;
        }
        let Some(data) = data else { return };
        self.counters.bytes_device_to_host += data.len() as u64;
        match (transfer, &mut self.program) {
            (Some(transfer), Some(program)) => program.receive(transfer, data),
            _ => self.received = Some(data),
        }
    }

    /// Asynchronous work failed: from now on every call returns the error. The first one stays.
    fn fail_context(&mut self, error: CudaError, text: String) {
        if self.sticky.is_none() {
            self.sticky = Some((error, text));
            self.streams.drop_waiting();
        }
    }

    /// Something is done: others may start, and the program may go on.
    fn operation_done(&mut self, now: SimTime, out: &mut Outbox) {
        self.dispatch(now, out);
        let State::Waiting { since, wait, .. } = &self.state else { return };
        if !self.is_over(wait) {
            return;
        }
        let since = *since;
        // Before the call returns, whatever it returns.
        let wait = wait.clone();
        self.take_printed();
        if let Wait::DeviceThenFree(address) = wait {
            self.end_allocation(now, address, out);
        }
        let returned = self.after(now, self.costs.synchronize_cost);
        self.counters.cycles_waiting += self.cycles(since, returned);
        let result = match (&self.sticky, self.received.take()) {
            (Some(_), _) => self.sticky_error(),
            (None, Some(data)) => CallResult::Data(Bytes::from(data)),
            (None, None) => CallResult::None,
        };
        self.state = State::Returning { at: returned, result };
    }

    /// Gives the program what kernels have printed. The ends of kernels come here later than a window's length after what
    /// they printed, so all of that is there.
    fn take_printed(&mut self) {
        let Some(memory) = &self.memory else { return };
        let text = memory.take_printed(0);
        if text.is_empty() {
            return;
        }
        if let Some(program) = &mut self.program {
            program.printed(&text, &[]);
        }
        self.printed.extend_from_slice(&text);
    }

    fn is_over(&self, wait: &Wait) -> bool {
        match *wait {
            Wait::Operation { stream, number } => self.streams.is_done(stream, number),
            Wait::Stream(stream) => self.streams.is_idle(stream),
            Wait::Device | Wait::DeviceThenFree(_) => self.streams.pending() == 0,
            Wait::QueueRoom => self.streams.pending() < self.costs.queue_depth as usize,
        }
    }

    /// `cycles` of the host's clock after `time`.
    fn after(&self, time: SimTime, cycles: u32) -> SimTime {
        time + self.clock.time_of(u64::from(cycles))
    }

    fn cycles(&self, start: SimTime, end: SimTime) -> u64 {
        self.clock.cycle_at_or_after(end - start)
    }

    /// The program makes its next call.
    fn make_call(&mut self, now: SimTime, result: CallResult) {
        let Some(program) = &mut self.program else { return };
        if matches!(result, CallResult::Error(_)) {
            self.counters.calls_failed += 1;
        }
        if result != CallResult::Start {
            program.complete(ThreadId(0), result);
        }
        let Next::Call(Request { call, .. }) = program.next() else {
            self.state = State::Ended;
            return;
        };
        if let Call::Exit { error } = &call {
            self.take_printed();
            self.exit_error = error.as_ref().map(|failure| match &self.last_error {
                Some((error, text)) if *error == failure.error => format!("{failure}: {text}"),
                _ => failure.to_string(),
            });
            self.state = State::Ended;
            return;
        }
        let until = self.call_ends(now, &call);
        self.counters.cycles_busy += self.cycles(now, until);
        self.state = State::Calling { until, call };
    }
}

impl Unit for HostCpu {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        out.log.clear();
        loop {
            let own = match &self.state {
                State::Returning { at, .. } => Some(*at),
                State::Calling { until, .. } => Some(*until),
                State::NoProgram | State::Waiting { .. } | State::Ended => None,
            };
            let message = inbox.next_time();
            match (own, message) {
                (_, Some(time)) if own.is_none_or(|own| time <= own) => {
                    if let Some(message) = inbox.take() {
                        self.handle(message, out);
                    }
                }
                (Some(time), _) if time >= window.until => return NextWake::At(time),
                (Some(time), _) => match std::mem::replace(&mut self.state, State::Ended) {
                    State::Returning { result, .. } => self.make_call(time, result),
                    State::Calling { call, .. } => self.end_call(time, call, out),
                    other => self.state = other,
                },
                (None, _) => return NextWake::OnMessage,
            }
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.counters.write(sink);
        let Some(program) = &self.program else { return };
        let ended = matches!(self.state, State::Ended);
        let unreported = || self.sticky.as_ref().map(|(error, text)| format!("{error}: {text}"));
        let mut outcome = ProgramOutcome {
            finished: ended,
            error: self.exit_error.clone().or_else(unreported),
            printed: self.printed.clone(),
            ..Default::default()
        };
        if ended {
            outcome.verification = match program.verification() {
                balar_host::Verification::NotChecked => Verification::NotChecked,
                balar_host::Verification::Passed => Verification::Passed,
                balar_host::Verification::Failed { message } => Verification::Failed(message),
            };
            let results = program.measurements().into_iter();
            outcome.results = results.map(|m| (m.name.to_owned(), m.value, m.unit.to_owned())).collect();
        }
        sink.outcome = Some(outcome);
    }

    fn outstanding(&self) -> Option<String> {
        let work = self.streams.oldest();
        match &self.state {
            State::Waiting { call, .. } => {
                let work = work.unwrap_or_else(|| "nothing".to_owned());
                Some(format!("{call} waits; the oldest work not done is {work}"))
            }
            State::NoProgram | State::Ended => work.map(|work| format!("{work} is not done")),
            State::Returning { .. } | State::Calling { .. } => Some("the program runs".to_owned()),
        }
    }
}
