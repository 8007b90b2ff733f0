//! Helpers that tests of the host's parts share: programs of several threads, and GPUs that take a fixed time for everything.

use super::HostCpu;
use super::HostCpuParameters;
use super::{NodeView, OptionalPorts, Start};
use crate::catalogue::{CarveOuts, GpuDescription, ParameterSet, SmCapability, SmResources};
use crate::engine::Bench;
use crate::engine::EpochHook;
use crate::memory::DeviceMemory;
use balar_driver::code::CodeChoice;
use balar_driver::code::tables::{DriverTables, KernelInfo};
use balar_host::call::{Function, Launch};
use balar_host::{Call, CallResult, Host, Measurement, Next, Request, ThreadId, Verification};
use balar_isa::program::Resources;
use balar_protocol::copy::{CopyMessage, CopyOperation};
use balar_protocol::cuda::{CudaMessage, FaultCause, KernelFault, KernelLaunch};
use balar_protocol::managed::{HostPages, ManagedMessage};
use balar_protocol::{ContextId, DetailChoice, Payload, PortId, ProcessId, SimTime};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// A GPU with 80 SMs of compute capability 7.0 and little memory.
pub(super) fn gpu_description(part: String) -> GpuDescription {
    let clock = "1 GHz".parse().expect("a frequency");
    GpuDescription {
        part,
        compute_capability: (7, 0),
        sms: vec![
            SmCapability { resources: SmResources::VOLTA, cta_slots: 32, carve_outs: CarveOuts::NONE, clock };
            80
        ],
        memory_bytes: 64 << 20,
        memory_clock: None,
        memory_bus_bits: 0,
        cluster_groups: None,
        l2_bytes: 0,
    }
}

/// A microsecond, in picoseconds.
pub(super) const US: u64 = 1_000_000;
/// Time that kernels take, from their arrival at the GPU.
pub(super) const KERNEL: u64 = 5 * US;
/// The same of copies.
pub(super) const COPY: u64 = 10 * US;
/// The same for questions to the driver of unified memory and their answers.
pub(super) const MOVE: u64 = 20 * US;
/// Latency of every wire.
pub(super) const WIRE: u64 = 20_000;
const WINDOW: SimTime = SimTime(15_000);
/// The thread that runs host functions.
pub(super) const CALLBACKS: ThreadId = ThreadId(99);

/// A call made of the results of the thread's calls before.
pub(super) type Step = Box<dyn Fn(&[CallResult]) -> Call + Send>;

/// A call that does not depend on results.
pub(super) fn call(call: Call) -> Step {
    Box::new(move |_| call.clone())
}

/// A launch of the built-in kernel `k`.
pub(super) fn launch(stream: u32) -> Call {
    Call::Launch(Launch {
        function: Function::built_in("k"),
        grid: [4, 1, 1],
        block: [32, 1, 1],
        shared_memory_bytes: 0,
        stream,
        parameters: vec![1; 8],
        cooperative: false,
        cluster: None,
        non_portable_cluster: false,
        access_policy: None,
    })
}

/// A stream that waits for the default one.
pub(super) fn new_stream() -> Step {
    call(Call::StreamCreate { non_blocking: false, priority: 0 })
}

/// The results that a program saw, and the work of the GPUs.
#[derive(Default)]
pub(super) struct Seen {
    /// The results of each thread's calls.
    pub results: BTreeMap<ThreadId, Vec<CallResult>>,
    pub received: Vec<(u32, Arc<[u8]>)>,
    pub errors: String,
    /// The number of times at which the program was asked for its next act, as far as the test lets it be known.
    pub asked: u32,
    /// Host functions, in order.
    pub functions: Vec<u64>,
}

/// Processes that have kernel `k`.
const PROCESSES: u32 = 3;

struct Thread {
    process: ProcessId,
    device: u32,
    steps: VecDeque<Step>,
    in_call: bool,
    /// Asked so many times, it is still asleep outside its calls before each.
    sleeps: u32,
}

/// A program of threads. Each makes its calls one after another.
pub(super) struct Program {
    threads: BTreeMap<ThreadId, Thread>,
    callbacks: VecDeque<(ProcessId, u64)>,
    /// Processes that end when all their threads have come to their ends, and whether they are killed.
    ending: Vec<(ProcessId, bool)>,
    seen: Arc<Mutex<Seen>>,
    host_picoseconds: u64,
}

impl Program {
    pub fn new() -> Program {
        Program {
            threads: BTreeMap::new(),
            callbacks: VecDeque::new(),
            ending: Vec::new(),
            seen: Arc::default(),
            host_picoseconds: 0,
        }
    }

    /// One thread on GPU 0.
    pub fn of(steps: Vec<Step>) -> Program {
        Program::new().thread(0, steps)
    }

    /// Adds a thread that uses this device.
    pub fn thread(mut self, device: u32, steps: Vec<Step>) -> Program {
        let id = ThreadId(self.threads.len() as u32);
        self.threads
            .insert(id, Thread { process: ProcessId::FIRST, device, steps: steps.into(), in_call: false, sleeps: 0 });
        self
    }

    /// The last thread is of this process.
    pub fn of_process(mut self, process: u32) -> Program {
        if let Some(mut thread) = self.threads.last_entry() {
            thread.get_mut().process = ProcessId(process);
        }
        self
    }

    /// The process ends when its threads have made their calls, or is killed in the middle of the last ones.
    pub fn ending(mut self, process: u32, was_killed: bool) -> Program {
        self.ending.push((ProcessId(process), was_killed));
        self
    }

    /// The last thread sleeps until the program has been asked so many times.
    pub fn asleep(mut self, times: u32) -> Program {
        if let Some(mut thread) = self.threads.last_entry() {
            thread.get_mut().sleeps = times;
        }
        self
    }

    /// Every call is announced with this host time.
    pub fn taking(mut self, picoseconds: u64) -> Program {
        self.host_picoseconds = picoseconds;
        self
    }
}

impl Host for Program {
    fn next(&mut self) -> Next {
        let mut seen = self.seen.lock().expect("one thread");
        seen.asked += 1;
        if let Some((process, function)) = self.callbacks.pop_front() {
            let call = Call::CallbackDone { function };
            return Next::Call(Request { thread: CALLBACKS, process, device: 0, host_picoseconds: 0, call });
        }
        for (&id, thread) in &mut self.threads {
            if thread.in_call {
                continue;
            }
            if thread.sleeps > 0 {
                thread.sleeps -= 1;
                continue;
            }
            let Some(step) = thread.steps.pop_front() else { continue };
            let results = seen.results.entry(id).or_default();
            thread.in_call = true;
            let (device, host_picoseconds) = (thread.device, self.host_picoseconds);
            return Next::Call(Request {
                thread: id,
                process: thread.process,
                device,
                host_picoseconds,
                call: step(results),
            });
        }
        let is_over = |&mut (process, was_killed): &mut (ProcessId, bool)| {
            let mut own = self.threads.values().filter(|thread| thread.process == process);
            own.all(|thread| thread.steps.is_empty() && (was_killed || !thread.in_call))
        };
        let ended = self.ending.extract_if(.., is_over).next();
        if let Some((process, was_killed)) = ended {
            self.threads
                .values_mut()
                .filter(|thread| thread.process == process)
                .for_each(|thread| thread.in_call = false);
            return Next::ProcessEnds { process, was_killed };
        }
        let over = self.threads.values().all(|thread| !thread.in_call && thread.steps.is_empty());
        if over { Next::End { error: None } } else { Next::Waiting }
    }

    fn has_threads_outside(&self) -> bool {
        self.threads.values().any(|thread| !thread.in_call && !thread.steps.is_empty())
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        self.seen.lock().expect("one thread").results.entry(thread).or_default().push(result);
        if let Some(thread) = self.threads.get_mut(&thread) {
            thread.in_call = false;
        }
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        self.seen.lock().expect("one thread").functions.push(function);
        self.callbacks.push_back((process, function));
    }

    fn receive(&mut self, _: ProcessId, transfer: u32, data: Arc<[u8]>) {
        self.seen.lock().expect("one thread").received.push((transfer, data));
    }

    fn printed(&mut self, _: ProcessId, _: &[u8], error: &[u8]) {
        self.seen.lock().expect("one thread").errors.push_str(&String::from_utf8_lossy(error));
    }

    fn verification(&self) -> Verification {
        Verification::NotChecked
    }

    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }
}

/// A host with GPUs of 64 MiB that the test plays. Calls cost 0.1 us, launches 1 us, copies 2 us, allocations and frees 3 us, and
/// 0.5 us after a wait.
pub(super) struct Play {
    pub unit: HostCpu,
    bench: Bench,
    pub memory: Arc<DeviceMemory>,
    pub seen: Arc<Mutex<Seen>>,
    /// The messages that arrived, with their places and times.
    pub trace: Vec<(u64, String)>,
    /// Launches that fail, by number.
    pub faulty: Vec<(u32, FaultCause)>,
    pub launches: Vec<Arc<KernelLaunch>>,
    pub operations: Vec<(usize, CopyOperation)>,
    /// The messages to the driver of unified memory, with their times.
    pub managed: Vec<(u64, ManagedMessage)>,
    end: SimTime,
}

impl Play {
    pub fn new(program: Program, gpus: usize, extra: &str) -> Play {
        Play::with(program, gpus, extra, false)
    }

    /// With a driver of unified memory, which the test plays.
    pub fn with_unified_memory(program: Program, gpus: usize) -> Play {
        Play::with(program, gpus, "", true)
    }

    fn with(program: Program, gpus: usize, extra: &str, has_unified_memory: bool) -> Play {
        let text = format!(
            r#"(clock: "1 GHz"{extra}, launch_cost: 1000, copy_cost: 2000, malloc_cost: 3000, free_cost: 3000, synchronize_cost: 500, call_cost: 100, pageable_copies: None)"#
        );
        let parameters = HostCpuParameters::from_ron(&text).expect("parameters are complete");
        let seen = program.seen.clone();
        let gpu = |index| gpu_description(format!("gpu[{index}]"));
        let memory = Arc::new(DeviceMemory::of_node(&vec![64 << 20; gpus]).expect("the system maps without reserving"));
        let tables = DriverTables::default();
        for gpu in 0..gpus {
            let resources = Resources { registers_per_thread: 32, ..Resources::default() };
            let kernel = KernelInfo { name: "k".into(), resources, parameter_bytes: 8, ..KernelInfo::default() };
            for process in (0..PROCESSES).map(ProcessId) {
                tables.kernels.insert(ContextId::new(process, gpu), 0, kernel.clone());
            }
        }
        let ports: Vec<_> = (0..gpus as u16).map(|gpu| (PortId(2 * gpu), PortId(2 * gpu + 1))).collect();
        let descriptions: Vec<_> = (0..gpus).map(gpu).collect();
        let node = NodeView { gpus: &descriptions, memory: &memory, unit: 0 };
        let start = Start {
            host: Some(Box::new(program)),
            tables,
            code: CodeChoice::default(),
            detail: DetailChoice::default(),
            other_nodes: &[],
        };
        let managed = has_unified_memory.then_some(PortId(2 * gpus as u16));
        let optional = OptionalPorts { memory: None, managed };
        let unit = HostCpu::new(&parameters, &ports, optional, &node, start);
        let bench = Bench::new(&vec![SimTime(WIRE); 2 * gpus + 1]);
        Play {
            unit,
            bench,
            memory,
            seen,
            trace: Vec::new(),
            faulty: Vec::new(),
            launches: Vec::new(),
            operations: Vec::new(),
            managed: Vec::new(),
            end: SimTime(0),
        }
    }

    /// Goes on until the time, microseconds.
    pub fn until(&mut self, microseconds: u64) {
        while self.end < SimTime(microseconds * US) {
            self.end += WINDOW;
            let sent = self.bench.run(&mut self.unit, WINDOW, self.end);
            self.memory.epoch_ends();
            for (time, port, payload) in sent {
                self.arrived(time, port, payload);
            }
        }
    }

    fn arrived(&mut self, time: SimTime, port: PortId, payload: Payload) {
        let gpu = usize::from(port.0 / 2);
        match payload {
            Payload::Cuda(CudaMessage::Launch(launch)) => {
                self.trace.push((time.0, format!("gpu {gpu}: launch {} stream {}", launch.id.0, launch.stream)));
                let cause = self.faulty.iter().find(|(id, _)| *id == launch.id.0).map(|(_, cause)| cause.clone());
                let fault = cause.map(|cause| {
                    let instruction = "k.ptx:7".to_owned();
                    let (kernel, launch) = (launch.name.clone(), launch.id);
                    Box::new(KernelFault {
                        cause,
                        kernel,
                        launch,
                        cta: [1, 0, 0],
                        thread: [2, 0, 0],
                        instruction,
                        origin: None,
                    })
                });
                let completed = CudaMessage::LaunchCompleted { launch: launch.id, fault, ran: None };
                self.bench.deliver(time + SimTime(KERNEL + WIRE), port, Payload::Cuda(completed));
                self.launches.push(launch);
            }
            Payload::Cuda(CudaMessage::Reset(_)) => self.trace.push((time.0, format!("gpu {gpu}: reset"))),
            Payload::Cuda(CudaMessage::Abort(context)) => {
                self.trace.push((time.0, format!("gpu {gpu}: abort of process {}", context.process())));
            }
            Payload::Copy(CopyMessage::Command(command)) => {
                let (copy, operation) = *command;
                self.trace.push((time.0, format!("gpu {gpu}: copy of {}", operation.bytes())));
                let data = match &operation {
                    CopyOperation::DeviceToHost { source } => Some(Box::new(vec![7; source.bytes() as usize].into())),
                    _ => None,
                };
                let completed = CopyMessage::Completed { copy, data, error: None };
                self.bench.deliver(time + SimTime(COPY + WIRE), port, Payload::Copy(completed));
                self.operations.push((gpu, operation));
            }
            Payload::Managed(message) => {
                self.managed.push((time.0, message));
                let done = match message {
                    ManagedMessage::Prefetch { id, .. } | ManagedMessage::Synchronise { id, .. } => {
                        ManagedMessage::Done { id }
                    }
                    ManagedMessage::Touch { id, address, write, .. } => {
                        let pages = HostPages { address: address & !4095, bytes: 8192, writable: write };
                        ManagedMessage::Touched { id, pages: Some(pages) }
                    }
                    _ => return,
                };
                self.bench.deliver(time + SimTime(MOVE + WIRE), port, Payload::Managed(done));
            }
            other => panic!("unexpected {other:?}"),
        }
    }

    /// The results of a thread's calls.
    pub fn results(&self, thread: u32) -> Vec<CallResult> {
        self.seen.lock().expect("one thread").results.get(&ThreadId(thread)).cloned().unwrap_or_default()
    }

    /// The times that a thread has read, picoseconds.
    pub fn times(&self, thread: u32) -> Vec<u64> {
        let time = |result: &CallResult| match result {
            CallResult::Time { picoseconds } => Some(*picoseconds),
            _ => None,
        };
        self.results(thread).iter().filter_map(time).collect()
    }

    /// The messages that arrived, without the times.
    pub fn words(&self) -> Vec<&str> {
        self.trace.iter().map(|(_, words)| words.as_str()).collect()
    }

    /// Does an address belong to an allocation?
    pub fn is_mapped(&self, address: u64) -> bool {
        self.memory.view().allocation_of(address).is_some()
    }
}

/// Runs a program of one thread on GPU 0 for a while.
pub(super) fn run(steps: Vec<Step>) -> Play {
    let mut play = Play::new(Program::of(steps), 1, "");
    play.until(200);
    play
}
