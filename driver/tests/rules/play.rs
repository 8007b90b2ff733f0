//! A program, and GPUs that the test plays: calls take no time, kernels and copies a fixed one, and everything happens in order.

use balar_driver::code::CodeChoice;
use balar_driver::code::tables::{DriverTables, KernelInfo};
use balar_driver::{
    Caller, Delivery, Driver, DriverSettings, Effect, MemoryChange, OperationNumber, Outcome, Then, Wait,
};
use balar_host::call::{Function, Launch};
use balar_host::memory::gpu_base;
use balar_host::{Bytes, Call, CallResult, CudaError, ThreadId};
use balar_isa::program::Resources;
use balar_protocol::copy::{CopyId, CopyOperation};
use balar_protocol::cuda::{FaultCause, KernelFault, KernelLaunch, LaunchId};
use balar_protocol::managed::ManagedMessage;
use balar_protocol::{
    CarveOuts, ContextId, DetailChoice, GpuDescription, ProcessId, SimTime, SmCapability, SmResources,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Time that kernels take, microseconds.
pub(super) const KERNEL: u64 = 5;
/// The same of copies.
pub(super) const COPY: u64 = 10;
/// Time that the driver of unified memory takes for what it is waited for, microseconds.
pub(super) const MOVE: u64 = 20;
/// Picoseconds of a microsecond.
pub(super) const US: u64 = 1_000_000;
/// Memory of a GPU, bytes.
const MEMORY: u64 = 64 << 20;
/// Addresses behind it that programs can reserve, bytes.
const RESERVABLE: u64 = 1 << 30;
/// Processes that have kernel `k`.
const PROCESSES: u32 = 3;
/// Operations of a context that are under way before a call waits.
const QUEUE_DEPTH: usize = 1024;
/// The thread that runs host functions.
const CALLBACKS: ThreadId = ThreadId(99);

/// A call made of the results of the thread's calls before.
pub(super) type Step = Box<dyn Fn(&[CallResult]) -> Call>;

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

/// The pointer that call number `index` of the thread gave.
pub(super) fn pointer(results: &[CallResult], index: usize) -> u64 {
    match results[index] {
        CallResult::Pointer(pointer) => pointer,
        ref other => panic!("call {index} gave {other:?}"),
    }
}

/// The first address of GPU 0's memory.
pub(super) fn first() -> u64 {
    gpu_base(0)
}

/// A GPU with 80 SMs of compute capability 7.0 and little memory.
fn gpu_description() -> GpuDescription {
    let clock = "1 GHz".parse().expect("a frequency");
    GpuDescription {
        part: "gpu".to_owned(),
        compute_capability: (7, 0),
        sms: vec![
            SmCapability { resources: SmResources::VOLTA, cta_slots: 32, carve_outs: CarveOuts::NONE, clock };
            80
        ],
        memory_bytes: MEMORY,
        memory_clock: None,
        memory_bus_bits: 0,
        cluster_groups: None,
        l2_bytes: 0,
    }
}

/// Where a thread stands.
enum ThreadState {
    /// Outside of calls, from this time on.
    Outside(u64),
    Waiting(Wait),
}

struct Thread {
    id: ThreadId,
    context: ContextId,
    steps: VecDeque<Step>,
    state: ThreadState,
    results: Vec<CallResult>,
    /// What a synchronous copy from the device brought.
    received: Option<Arc<[u8]>>,
}

impl Thread {
    fn is_in_call(&self) -> bool {
        matches!(self.state, ThreadState::Waiting(_))
    }

    /// When it makes its next call; `None` where that is for others to say, or never.
    fn next_call(&self) -> Option<u64> {
        match self.state {
            ThreadState::Outside(from) if !self.steps.is_empty() => Some(from),
            _ => None,
        }
    }
}

/// A program of threads, each of which makes its calls one after another. Threads that can take turns: each makes a call.
#[derive(Default)]
pub(super) struct Program {
    threads: Vec<Thread>,
    /// Processes that end when all their threads have come to their ends, and whether they are killed.
    ending: Vec<(ProcessId, bool)>,
}

impl Program {
    /// One thread on GPU 0.
    pub fn of(steps: Vec<Step>) -> Program {
        Program::default().thread(0, steps)
    }

    /// Adds a thread that uses this device.
    pub fn thread(mut self, device: usize, steps: Vec<Step>) -> Program {
        self.threads.push(Thread {
            id: ThreadId(self.threads.len() as u32),
            context: ContextId::first(device),
            steps: steps.into(),
            state: ThreadState::Outside(0),
            results: Vec::new(),
            received: None,
        });
        self
    }

    /// The last thread is of this process.
    pub fn of_process(mut self, process: u32) -> Program {
        if let Some(thread) = self.threads.last_mut() {
            thread.context = ContextId::new(ProcessId(process), thread.context.gpu());
        }
        self
    }

    /// The process ends when its threads have made their calls, or is killed in the middle of the last ones.
    pub fn ending(mut self, process: u32, was_killed: bool) -> Program {
        self.ending.push((ProcessId(process), was_killed));
        self
    }
}

/// What a GPU will have done.
enum Done {
    Kernel(LaunchId, Option<KernelFault>),
    Copy(CopyId, Option<Arc<[u8]>>),
    Managed(u32),
    Condition(OperationNumber),
}

/// A driver of GPUs of 64 MiB that the test plays, and a program.
pub(super) struct Play {
    pub driver: Driver,
    program: Program,
    /// The thread whose turn it is to make a call.
    turn: usize,
    has_ended: bool,
    /// Microseconds since the start.
    now: u64,
    /// What GPUs will have done, by time and order.
    due: VecDeque<(u64, Done)>,
    /// Host functions that nobody has run yet.
    to_call_back: VecDeque<(ProcessId, u64)>,
    /// What GPUs were told, when.
    pub trace: Vec<(u64, String)>,
    /// What the driver of unified memory was told.
    pub managed: Vec<ManagedMessage>,
    /// Launches that fail, by number.
    pub faulty: Vec<(u32, FaultCause)>,
    pub launches: Vec<Arc<KernelLaunch>>,
    pub operations: Vec<(usize, CopyOperation)>,
    /// Host functions, in order, and what the calls after them gave.
    pub functions: Vec<u64>,
    pub function_results: Vec<CallResult>,
    /// What the words that conditional nodes go by will be found to be, in order; then 0.
    pub conditions: VecDeque<u32>,
    /// What the program was told on its standard error stream.
    pub errors: String,
    /// By first address: bytes of allocations and mappings, and the GPUs that may access them.
    allocations: BTreeMap<u64, (u64, u8)>,
    images: BTreeSet<(ProcessId, u64)>,
}

impl Play {
    pub fn new(program: Program, gpus: usize) -> Play {
        Play::with(program, gpus, false)
    }

    /// With a driver of unified memory, which the test plays.
    pub fn with_unified_memory(program: Program, gpus: usize) -> Play {
        Play::with(program, gpus, true)
    }

    fn with(program: Program, gpus: usize, has_unified_memory: bool) -> Play {
        let tables = DriverTables::default();
        for gpu in 0..gpus {
            let resources = Resources { registers_per_thread: 32, ..Resources::default() };
            let kernel = KernelInfo { name: "k".into(), resources, parameter_bytes: 8, ..KernelInfo::default() };
            for process in (0..PROCESSES).map(ProcessId) {
                tables.kernels.insert(ContextId::new(process, gpu), 0, kernel.clone());
            }
        }
        let reservable = |gpu| gpu_base(gpu) + MEMORY..gpu_base(gpu) + MEMORY + RESERVABLE;
        let settings = DriverSettings {
            gpus: vec![gpu_description(); gpus],
            reservable: (0..gpus).map(reservable).collect(),
            has_host_window: true,
            has_unified_memory,
            queue_depth: QUEUE_DEPTH,
            code: CodeChoice::default(),
            detail: DetailChoice::default(),
            other_nodes: &[("volta_node", (7, 0)), ("turing_node", (7, 5))],
        };
        Play {
            driver: Driver::new(settings, &tables),
            program,
            turn: 0,
            has_ended: false,
            now: 0,
            due: VecDeque::new(),
            to_call_back: VecDeque::new(),
            trace: Vec::new(),
            managed: Vec::new(),
            faulty: Vec::new(),
            launches: Vec::new(),
            operations: Vec::new(),
            functions: Vec::new(),
            function_results: Vec::new(),
            conditions: VecDeque::new(),
            errors: String::new(),
            allocations: BTreeMap::new(),
            images: BTreeSet::new(),
        }
    }

    /// Goes on until nothing is left to happen.
    pub fn finish(&mut self) {
        self.until(u64::MAX);
    }

    /// Goes on until everything up to this time has happened, microseconds.
    pub fn until(&mut self, time: u64) {
        loop {
            if self.calls() || self.ends_process() || self.ends_program() {
                continue;
            }
            let threads = self.program.threads.iter().filter_map(Thread::next_call);
            let next = threads.chain(self.due.iter().map(|(due, _)| *due)).min();
            let Some(next) = next.filter(|next| *next <= time) else { return };
            self.now = next;
            if let Some(index) = self.due.iter().position(|(due, _)| *due == next)
                && let Some((_, done)) = self.due.remove(index)
            {
                self.completed(done);
            }
        }
    }

    /// A thread makes a call, if one can.
    fn calls(&mut self) -> bool {
        if let Some((process, function)) = self.to_call_back.pop_front() {
            let caller = Caller { thread: CALLBACKS, context: ContextId::new(process, 0) };
            let outcome = self.driver.call(caller, Call::CallbackDone { function });
            let Ok(Outcome::Returns(result)) = outcome else { panic!("{outcome:?}") };
            self.function_results.push(result);
            self.work_done();
            return true;
        }
        let count = self.program.threads.len();
        let can_call = |thread: &Thread| thread.next_call().is_some_and(|from| from <= self.now);
        let mut turns = (self.turn..self.turn + count).map(|turn| turn % count);
        let Some(index) = turns.find(|&index| can_call(&self.program.threads[index])) else { return false };
        self.turn = index + 1;
        let thread = &mut self.program.threads[index];
        let Some(step) = thread.steps.pop_front() else { return false };
        match step(&thread.results) {
            Call::Compute { nanoseconds } => {
                thread.state = ThreadState::Outside(self.now + nanoseconds / 1000);
                thread.results.push(CallResult::None);
            }
            Call::ReadClock => thread.results.push(CallResult::Time { picoseconds: self.now * US }),
            call => {
                let caller = Caller { thread: thread.id, context: thread.context };
                let outcome = self.driver.call(caller, call);
                self.begin_work();
                self.goes_on(index, outcome);
            }
        }
        true
    }

    /// A thread's call returns or waits, unless what it waits for is over.
    fn goes_on(&mut self, index: usize, outcome: Result<Outcome, CudaError>) {
        let result = match outcome {
            Ok(Outcome::Returns(result)) => result,
            Err(error) => CallResult::Error(error),
            Ok(Outcome::Waits(wait)) if self.driver.is_over(&wait.until) => return self.wait_is_over(index, wait.then),
            Ok(Outcome::Waits(wait)) => {
                self.program.threads[index].state = ThreadState::Waiting(wait);
                return;
            }
        };
        let thread = &mut self.program.threads[index];
        thread.state = ThreadState::Outside(self.now);
        thread.results.push(result);
    }

    fn wait_is_over(&mut self, index: usize, then: Then) {
        let thread = &mut self.program.threads[index];
        let (caller, received) = (Caller { thread: thread.id, context: thread.context }, thread.received.take());
        let outcome = if then.goes_on() {
            self.driver.goes_on(caller, then)
        } else {
            Ok(Outcome::Returns(match (self.driver.finish(caller.context, then), received) {
                (Some(error), _) => error,
                (None, Some(data)) => CallResult::Data(Bytes::from(data)),
                (None, None) => CallResult::None,
            }))
        };
        self.carry_out();
        self.goes_on(index, outcome);
    }

    /// A process ends whose threads have come to their ends, if there is one.
    fn ends_process(&mut self) -> bool {
        let threads = &mut self.program.threads;
        let is_over = |&mut (process, was_killed): &mut (ProcessId, bool)| {
            let mut own = threads.iter().filter(|thread| thread.context.process() == process);
            own.all(|thread| thread.steps.is_empty() && (was_killed || !thread.is_in_call()))
        };
        let Some((process, was_killed)) = self.program.ending.extract_if(.., is_over).next() else { return false };
        threads.retain(|thread| thread.context.process() != process || !thread.is_in_call());
        self.driver.end_process(process, was_killed);
        self.work_done();
        true
    }

    fn ends_program(&mut self) -> bool {
        let is_over = |thread: &Thread| thread.steps.is_empty() && !thread.is_in_call();
        if self.has_ended || !self.program.threads.iter().all(is_over) {
            return false;
        }
        self.has_ended = true;
        self.driver.program_ended();
        self.begin_work();
        true
    }

    fn completed(&mut self, done: Done) {
        match done {
            Done::Kernel(launch, fault) => self.driver.kernel_completed(launch, fault),
            Done::Managed(id) => self.driver.managed_done(id),
            Done::Condition(operation) => {
                let value = self.conditions.pop_front().unwrap_or(0);
                self.driver.condition_read(operation, value);
            }
            Done::Copy(copy, data) => {
                if let Some((Delivery::Thread(id), data)) = self.driver.copy_completed(copy, data, None)
                    && let Some(thread) = self.program.threads.iter_mut().find(|thread| thread.id == id)
                {
                    thread.received = Some(data);
                }
            }
        }
        self.work_done();
    }

    fn begin_work(&mut self) {
        self.driver.begin(SimTime(self.now * US));
        self.carry_out();
    }

    /// Something is done: others may start, and threads may go on.
    fn work_done(&mut self) {
        self.begin_work();
        for index in 0..self.program.threads.len() {
            let thread = &mut self.program.threads[index];
            match std::mem::replace(&mut thread.state, ThreadState::Outside(self.now)) {
                ThreadState::Waiting(wait) if self.driver.is_over(&wait.until) => self.wait_is_over(index, wait.then),
                state => thread.state = state,
            }
        }
    }

    /// Does what the driver wants done.
    fn carry_out(&mut self) {
        let mut effects = Vec::new();
        self.driver.take_effects(&mut effects);
        for effect in effects {
            match effect {
                Effect::Memory(change) => self.memory_changes(change),
                Effect::Launch(launch) => {
                    let (id, gpu) = (launch.id, launch.context.gpu());
                    self.told(format!("gpu {gpu}: launch {} stream {}", id.0, launch.stream));
                    let cause = self.faulty.iter().find(|(number, _)| *number == id.0).map(|(_, cause)| cause.clone());
                    let fault = cause.map(|cause| KernelFault {
                        cause,
                        kernel: launch.name.clone(),
                        launch: id,
                        cta: [1, 0, 0],
                        thread: [2, 0, 0],
                        instruction: "k.ptx:7".to_owned(),
                        origin: None,
                    });
                    self.due.push_back((self.now + KERNEL, Done::Kernel(id, fault)));
                    self.launches.push(launch);
                }
                Effect::Copy { gpu, id, operation, .. } => {
                    self.told(format!("gpu {gpu}: copy of {}", operation.bytes()));
                    let data = match &operation {
                        CopyOperation::DeviceToHost { source } => Some(vec![7; source.bytes() as usize].into()),
                        _ => None,
                    };
                    self.due.push_back((self.now + COPY, Done::Copy(id, data)));
                    self.operations.push((gpu, operation));
                }
                Effect::Managed(message) => {
                    let id = match message {
                        ManagedMessage::Prefetch { id, bytes, target, .. } => {
                            self.told(format!("prefetch of {bytes} to {target:?}"));
                            Some(id)
                        }
                        ManagedMessage::Touch { id, .. } | ManagedMessage::Synchronise { id, .. } => Some(id),
                        _ => None,
                    };
                    self.due.extend(id.map(|id| (self.now + MOVE, Done::Managed(id))));
                    self.managed.push(message);
                }
                Effect::Reset(context) => self.told(format!("gpu {}: reset", context.gpu())),
                Effect::Abort(context) => {
                    self.told(format!("gpu {}: abort of process {}", context.gpu(), context.process()));
                }
                Effect::CallBack { process, function } => {
                    self.functions.push(function);
                    self.to_call_back.push_back((process, function));
                }
                Effect::ReadCondition { operation, .. } => {
                    self.told("a condition is read".to_owned());
                    self.due.push_back((self.now, Done::Condition(operation)));
                }
                Effect::Tell(_, words) => self.errors.push_str(&(words + "\n")),
            }
        }
    }

    fn told(&mut self, words: String) {
        self.trace.push((self.now, words));
    }

    fn memory_changes(&mut self, change: MemoryChange) {
        match change {
            MemoryChange::Map { address, bytes, .. } => drop(self.allocations.insert(address, (bytes, u8::MAX))),
            MemoryChange::Open { address, bytes, gpus, .. } => drop(self.allocations.insert(address, (bytes, gpus))),
            MemoryChange::Unmap { address } => drop(self.allocations.remove(&address)),
            MemoryChange::Image { process, handle, image: Some(_) } => drop(self.images.insert((process, handle))),
            MemoryChange::Image { process, handle, image: None } => drop(self.images.remove(&(process, handle))),
            // No test here asks for the contents of memory, nor for the other users of it.
            MemoryChange::Write { .. }
            | MemoryChange::Zero { .. }
            | MemoryChange::Copy { .. }
            | MemoryChange::Share { .. }
            | MemoryChange::Peer { .. }
            | MemoryChange::Heap { .. }
            | MemoryChange::LaunchPool { .. }
            | MemoryChange::PrintCapacity { .. } => {}
        }
    }

    /// The results of a thread's calls.
    pub fn results(&self, thread: u32) -> Vec<CallResult> {
        let thread = self.program.threads.iter().find(|own| own.id == ThreadId(thread));
        thread.map(|thread| thread.results.clone()).unwrap_or_default()
    }

    /// The times that a thread has read, microseconds.
    pub fn times(&self, thread: u32) -> Vec<u64> {
        let time = |result: &CallResult| match result {
            CallResult::Time { picoseconds } => Some(picoseconds / US),
            _ => None,
        };
        self.results(thread).iter().filter_map(time).collect()
    }

    /// What GPUs were told, without the times.
    pub fn words(&self) -> Vec<&str> {
        self.trace.iter().map(|(_, words)| words.as_str()).collect()
    }

    /// Does an address belong to an allocation, or to a mapping that some process may access?
    pub fn is_mapped(&self, address: u64) -> bool {
        self.gpus_of(address) != 0
    }

    /// The GPUs that may access a mapping: a bit for each.
    pub fn gpus_of(&self, address: u64) -> u8 {
        let before = self.allocations.range(..=address).next_back();
        before.filter(|(start, (bytes, _))| address - **start < *bytes).map_or(0, |(_, (_, gpus))| *gpus)
    }

    /// Does a texture or surface handle mean something to kernels?
    pub fn has_image(&self, process: ProcessId, handle: u64) -> bool {
        self.images.contains(&(process, handle))
    }
}

/// Runs a program of one thread on GPU 0 to its end.
pub(super) fn run(steps: Vec<Step>) -> Play {
    let mut play = Play::new(Program::of(steps), 1);
    play.finish();
    play
}
