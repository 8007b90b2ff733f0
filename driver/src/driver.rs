//! The driver: its state, and how work begins and ends.

use crate::Failure;
use crate::allocator::DeviceAllocator;
use crate::code::CodeChoice;
use crate::code::loader::ModuleLoader;
use crate::code::tables::{DriverTables, KernelTable, ProgramTable, SymbolTable};
use crate::contexts::ContextFailure;
use crate::copies::CopyUnderWay;
use crate::effect::{Effect, MemoryChange};
use crate::graphs::FIRST_GRAPH_QUEUE;
use crate::ipc::SharedEvents;
use crate::managed::UnifiedMemory;
use crate::memory::HostWindow;
use crate::order::operations::Operations;
use crate::order::work::{OperationNumber, Work};
use crate::process::Process;
use crate::virtual_memory::VirtualMemory;
use crate::wait::Until;
use balar_host::memory::gpu_base;
use balar_protocol::copy::CopyId;
use balar_protocol::cuda::{Code, LaunchId, ProgramId};
use balar_protocol::device_launch::DeviceKernel;
use balar_protocol::{ContextId, DetailChoice, GpuDescription, ProcessId, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of pageable memory that asynchronous copies of a context may keep at once (a choice: as much as a program's end of the tunnel
/// allows).
const MAXIMUM_KEPT_BYTES: u64 = 64 << 20;

/// What a driver is made for.
#[derive(Clone, Debug, Default)]
pub struct DriverSettings {
    /// The GPUs, in the order of the topology.
    pub gpus: Vec<GpuDescription>,
    /// By GPU: addresses without memory that programs can reserve.
    pub reservable: Vec<Range<u64>>,
    /// Whether there is pinned and managed memory.
    pub has_host_window: bool,
    /// Whether a driver of unified memory moves the pages of managed memory.
    pub has_unified_memory: bool,
    /// Operations of a context that are not yet done beyond which a call that adds one waits.
    pub queue_depth: usize,
    /// Which code of modules is loaded.
    pub code: CodeChoice,
    /// Which launches and copies are timed.
    pub detail: DetailChoice,
    /// Nodes that a program could run on instead, with the compute capability of their GPUs: what is named where an image has no code for
    /// this one's.
    pub other_nodes: &'static [OtherNode],
}

/// A node by its name, and the compute capability of its GPUs.
pub type OtherNode = (&'static str, (u32, u32));

/// What the driver has moved and handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes copied from host to device.
    pub bytes_host_to_device: u64,
    /// Bytes copied from device to host.
    pub bytes_device_to_host: u64,
    /// Bytes copied from a device to another.
    pub bytes_peer: u64,
    /// Bytes of pinned and managed memory, the most at once.
    pub host_window_maximum: u64,
    /// Bytes of one GPU's memory, the most at once.
    pub device_memory_maximum: u64,
}

/// How much work the driver has given to GPUs so far: the number of the next launch, and that of the next copy or fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// See [`LaunchId`](balar_protocol::cuda::LaunchId).
    pub launches: u32,
    /// See [`CopyId`].
    pub copies: u32,
}

/// All that the driver's future depends on, beside the code that is loaded.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// Programs with larger stacks, by what they were made of and the stack: their numbers and the local memory of a thread.
    pub(crate) enlarged: BTreeMap<(ProgramId, u32), (Code, u32)>,
    /// Those that have made a call and have not ended, or of which something is still under way.
    pub(crate) processes: BTreeMap<ProcessId, Process>,
    /// By GPU: what of its memory is whose.
    pub(crate) memories: Vec<DeviceAllocator>,
    pub(crate) operations: Operations,
    /// Events that several processes know.
    pub(crate) shared_events: SharedEvents,
    /// Pinned and managed memory.
    pub(crate) window: HostWindow,
    pub(crate) virtual_memory: VirtualMemory,
    pub(crate) unified_memory: UnifiedMemory,
    /// What the copy engines have been given and have not done.
    pub(crate) commands: BTreeMap<CopyId, CopyUnderWay>,
    pub(crate) next_launch: u32,
    pub(crate) next_copy: u32,
    pub(crate) next_graph_queue: u32,
    /// Why a context has failed, the first of all.
    pub(crate) failure: Option<ContextFailure>,
    /// No thread is left to run host functions.
    pub(crate) program_ended: bool,
    pub(crate) totals: Totals,
}

/// The CUDA driver of a node.
#[derive(Debug)]
pub struct Driver {
    pub(crate) kernels: Arc<KernelTable>,
    pub(crate) symbols: Arc<SymbolTable>,
    pub(crate) loader: ModuleLoader,
    pub(crate) programs: Arc<ProgramTable>,
    pub(crate) gpus: Vec<GpuDescription>,
    pub(crate) has_unified_memory: bool,
    queue_depth: usize,
    pub(crate) code: CodeChoice,
    pub(crate) detail: DetailChoice,
    pub(crate) other_nodes: &'static [OtherNode],
    /// The kernels that a kernel can launch, and those that these can, by the code of the first: found again where they are not there.
    pub(crate) device_kernels: BTreeMap<ProgramId, Arc<[DeviceKernel]>>,
    pub(crate) state: State,
    /// What is to be done and has not been taken.
    effects: Vec<Effect>,
}

impl Driver {
    /// A driver for a node on which nothing but the code of `tables` is loaded.
    pub fn new(settings: DriverSettings, tables: &DriverTables) -> Driver {
        let DriverSettings {
            gpus,
            reservable,
            has_host_window,
            has_unified_memory,
            queue_depth,
            code,
            detail,
            other_nodes,
        } = settings;
        // Where nothing is timed, no pages move.
        let has_unified_memory = has_unified_memory && !detail.times_nothing();
        let memory = |(index, gpu): (usize, &GpuDescription)| DeviceAllocator::new(gpu_base(index), gpu.memory_bytes);
        let state = State {
            enlarged: BTreeMap::new(),
            processes: BTreeMap::new(),
            memories: gpus.iter().enumerate().map(memory).collect(),
            operations: Operations::default(),
            shared_events: SharedEvents::default(),
            window: HostWindow::new(has_host_window),
            virtual_memory: VirtualMemory::new(&reservable),
            unified_memory: UnifiedMemory::default(),
            commands: BTreeMap::new(),
            next_launch: 1,
            next_copy: 1,
            next_graph_queue: FIRST_GRAPH_QUEUE,
            failure: None,
            program_ended: false,
            totals: Totals::default(),
        };
        Driver {
            kernels: Arc::clone(&tables.kernels),
            symbols: Arc::clone(&tables.symbols),
            loader: ModuleLoader::new(tables),
            programs: Arc::clone(&tables.programs),
            gpus,
            has_unified_memory,
            queue_depth,
            code,
            detail,
            other_nodes,
            device_kernels: BTreeMap::new(),
            state,
            effects: Vec::new(),
        }
    }

    /// Its state: a plain value. Effects must have been taken.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Goes on from a state that a driver of the same node had. The tables must hold the code that was loaded then, under its numbers.
    ///
    /// # Errors
    ///
    /// The number of a program that is not loaded; the driver is as it was.
    pub fn restore(&mut self, mut state: State) -> Result<(), ProgramId> {
        let complete = |code: &mut Code| {
            let found = self.programs.get(code.id()).ok_or(code.id())?;
            *code = found;
            Ok(())
        };
        state.enlarged.values_mut().try_for_each(|(code, _)| complete(code))?;
        state.operations.launches_mut().try_for_each(|launch| {
            complete(&mut launch.code)?;
            let mut kernels = launch.device_kernels.to_vec();
            kernels.iter_mut().try_for_each(|kernel| complete(&mut kernel.code))?;
            launch.device_kernels = kernels.into();
            Ok(())
        })?;
        self.state = state;
        Ok(())
    }

    /// Begins what has nothing left to wait for. `now` is what the events that are recorded will tell.
    pub fn begin(&mut self, now: SimTime) {
        self.end_objects();
        self.forget_ended();
        while let Some((number, context, work)) = self.state.operations.begin() {
            match work {
                Work::Kernel(launch) => {
                    self.effects.push(Effect::Launch(Arc::clone(launch)));
                }
                Work::Copy(_) => {
                    if !self.bring_for_copy(number, context) {
                        self.begin_copy(number, context);
                    }
                }
                Work::Prefetch(prefetch) => {
                    let prefetch = *prefetch;
                    self.begin_prefetch(number, prefetch);
                }
                Work::HostFunction(function) => {
                    let (process, function) = (context.process(), *function);
                    if self.state.program_ended || self.process(process).ended {
                        self.state.operations.complete(number);
                    } else {
                        self.effects.push(Effect::CallBack { process, function });
                    }
                }
                Work::Record(event) => {
                    let event = *event;
                    self.state.operations.complete(number);
                    self.event_recorded(context.process(), event, number, now);
                }
                Work::Free(address) => {
                    let address = *address;
                    self.state.operations.complete(number);
                    self.end_allocation(address);
                }
                Work::Conditions(values) => {
                    let values = std::mem::take(values);
                    self.state.operations.complete(number);
                    for (address, value) in values {
                        self.change(MemoryChange::Write { address, bytes: value.to_le_bytes().as_slice().into() });
                    }
                }
                Work::Conditional(work) => {
                    let address = work.node.address;
                    self.effects.push(Effect::ReadCondition { operation: number, address });
                }
                Work::EndOfGraph(of) => {
                    let of = *of;
                    self.state.operations.complete(number);
                    self.chosen_graph_ended(of);
                }
                Work::Nothing => {
                    self.state.operations.complete(number);
                }
            }
        }
    }

    /// What is to be done since it was asked last, in order.
    pub fn take_effects(&mut self, into: &mut Vec<Effect>) {
        self.tell_reserved(into);
        into.append(&mut self.effects);
    }

    /// Is what a call waits for over?
    pub fn is_over(&self, until: &Until) -> bool {
        match until {
            Until::Operations(numbers) => !numbers.iter().any(|&number| self.state.operations.is_pending(number)),
            &Until::ContextBefore { context, number } => self.state.operations.is_done_before(context, number),
            &Until::ProcessBefore(process, number) => {
                self.contexts_of(process).all(|context| self.state.operations.is_done_before(context, number))
            }
            &Until::QueueRoom(context) => self.free_places(context) > 0,
            Until::EndedProcesses => !self.has_ended_processes(),
            &Until::Managed(id) => self.state.unified_memory.is_over(id),
        }
    }

    /// How many operations can be added to the streams of a context without any call having to wait for room: the one that takes the
    /// last place does.
    pub fn queue_room(&self, context: ContextId) -> usize {
        self.free_places(context).saturating_sub(1)
    }

    /// How many operations fit into the queue of a context.
    fn free_places(&self, context: ContextId) -> usize {
        let operations = &self.state.operations;
        let has_bytes = operations.kept_bytes(context) <= MAXIMUM_KEPT_BYTES;
        if has_bytes { self.queue_depth.saturating_sub(operations.count(context)) } else { 0 }
    }

    /// The program has ended: nobody is left to run host functions.
    pub fn program_ended(&mut self) {
        self.state.program_ended = true;
        let processes: Vec<ProcessId> = self.state.processes.keys().copied().collect();
        processes.into_iter().for_each(|process| self.state.operations.end_host_functions(process));
    }

    /// Will streams come to host functions?
    pub fn has_functions_to_come(&self) -> bool {
        self.state.operations.has_functions_to_come()
    }

    /// The oldest operation that is not yet done, in words.
    pub fn oldest(&self) -> Option<String> {
        self.state.operations.oldest()
    }

    /// The last error that a call of a process returned, in words.
    pub fn last_error(&self, process: ProcessId) -> Option<&Failure> {
        self.state.processes.get(&process)?.last_error.as_ref()
    }

    /// Why a context has failed, of the first one that has and was not reset.
    pub fn failure(&self) -> Option<&ContextFailure> {
        let contexts = self.state.processes.values().flat_map(|process| &process.contexts);
        contexts.filter_map(|context| context.sticky.as_ref()).next().or(self.state.failure.as_ref())
    }

    /// The contexts of all processes that have made a call.
    pub fn contexts(&self) -> impl Iterator<Item = ContextId> + '_ {
        self.state.processes.keys().flat_map(|process| self.contexts_of(*process))
    }

    /// The number of the next operation that a call asks for.
    pub fn next_operation(&self) -> OperationNumber {
        self.state.operations.next()
    }

    /// Is an operation not yet done?
    pub fn is_pending(&self, number: OperationNumber) -> bool {
        self.state.operations.is_pending(number)
    }

    /// The operation that a launch is, until it is done.
    pub fn operation_of_launch(&self, launch: LaunchId) -> Option<OperationNumber> {
        self.state.operations.of_launch(launch)
    }

    /// How much work it has given to GPUs.
    pub fn issued(&self) -> Issued {
        Issued { launches: self.state.next_launch, copies: self.state.next_copy }
    }

    /// What it has moved and handed out.
    pub fn totals(&self) -> &Totals {
        &self.state.totals
    }

    /// Words for a process's standard error stream.
    pub(crate) fn tell(&mut self, process: ProcessId, words: &str) {
        self.effects.push(Effect::Tell(process, words.to_owned()));
    }

    /// Memory changes.
    pub(crate) fn change(&mut self, change: MemoryChange) {
        self.effects.push(Effect::Memory(change));
    }

    /// Something is to be done.
    pub(crate) fn want(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::tables::KernelInfo;
    use crate::test_support::{gpu_description, program};
    use crate::{Caller, Outcome, Wait};
    use balar_host::call::{BUILT_IN_MODULE, Function, Launch};
    use balar_host::{Call, CallResult, ThreadId};
    use balar_isa::program::Resources;

    const CALLER: Caller = Caller { thread: ThreadId(0), context: ContextId::first(0) };

    fn tables() -> DriverTables {
        let tables = DriverTables::default();
        let resources = Resources { registers_per_thread: 32, ..Resources::default() };
        let code = tables.programs.add(program());
        let kernel = KernelInfo { name: "k".into(), code, resources, ..KernelInfo::default() };
        tables.kernels.insert(ContextId::first(0), BUILT_IN_MODULE, kernel);
        tables
    }

    fn driver(tables: &DriverTables) -> Driver {
        let settings = DriverSettings {
            gpus: vec![gpu_description()],
            has_host_window: true,
            queue_depth: 8,
            ..DriverSettings::default()
        };
        Driver::new(settings, tables)
    }

    fn launch(stream: u32) -> Call {
        Call::Launch(Launch {
            function: Function { module: BUILT_IN_MODULE, name: "k".into() },
            grid: [1; 3],
            block: [32, 1, 1],
            shared_memory_bytes: 0,
            stream,
            parameters: Vec::new(),
            cooperative: false,
        })
    }

    /// What the driver wants done, in words.
    fn wanted(driver: &mut Driver) -> Vec<String> {
        driver.begin(SimTime(7));
        let mut effects = Vec::new();
        driver.take_effects(&mut effects);
        effects.iter().map(|effect| format!("{effect:?}")).collect()
    }

    /// Makes calls that leave something of every kind; then others on what it left, whose outcomes and effects it gives.
    fn before(driver: &mut Driver) {
        let calls = [
            Call::StreamCreate { non_blocking: true, priority: -1 },
            Call::EventCreate { timed: true },
            Call::Malloc { bytes: 5 << 20 },
            Call::MallocManaged { bytes: 4096 },
            launch(1),
            Call::EventRecord { event: 1, stream: 1 },
            Call::HostFunction { stream: 1, function: 9 },
            launch(0),
        ];
        for call in calls {
            let outcome = driver.call(CALLER, call);
            assert!(matches!(outcome, Ok(Outcome::Returns(_))), "{outcome:?}");
        }
        assert_eq!(wanted(driver).iter().filter(|effect| effect.starts_with("Launch")).count(), 2);
    }

    fn after(driver: &mut Driver) -> Vec<String> {
        let mut seen = vec![format!("{:?}", driver.call(CALLER, Call::EventQuery { event: 1 }))];
        for launch in [LaunchId(1), LaunchId(2)] {
            driver.kernel_completed(launch, None);
            seen.append(&mut wanted(driver));
        }
        let calls = [
            Call::CallbackDone { function: 9 },
            Call::EventElapsed { start: 1, end: 1 },
            Call::Malloc { bytes: 1 },
            Call::DeviceReset,
            Call::StreamQuery { stream: 1 },
            launch(2),
        ];
        for call in calls {
            seen.push(format!("{:?}", driver.call(CALLER, call)));
            seen.append(&mut wanted(driver));
        }
        seen
    }

    #[test]
    fn a_saved_state_goes_on_as_the_driver_would_have() {
        let tables = tables();
        let mut first = driver(&tables);
        before(&mut first);
        let saved = postcard::to_stdvec(first.state()).expect("a state is a plain value");
        let mut second = driver(&tables);
        assert_eq!(second.restore(postcard::from_bytes(&saved).expect("it can be read")), Ok(()));
        assert_eq!(postcard::to_stdvec(second.state()).expect("a plain value"), saved);
        let (expected, seen) = (after(&mut first), after(&mut second));
        assert_eq!(seen, expected);
        assert!(seen.iter().any(|words| words.ends_with("function: 9 }")), "{seen:?}");
        assert!(seen.iter().any(|words| words.contains("Elapsed { picoseconds: 0 }")), "{seen:?}");
    }

    #[test]
    fn a_state_with_code_that_is_not_loaded_is_refused() {
        let tables = tables();
        let mut first = driver(&tables);
        let key = (ProgramId(3), 2048);
        first.state.enlarged.insert(key, (tables.programs.add(program()), 64));
        let saved = postcard::to_stdvec(first.state()).expect("a state is a plain value");
        let state = postcard::from_bytes(&saved).expect("it can be read");
        assert_eq!(driver(&DriverTables::default()).restore(state), Err(ProgramId(2)));
        let state = postcard::from_bytes(&saved).expect("it can be read");
        assert_eq!(driver(&tables).restore(state), Ok(()));
    }

    #[test]
    fn a_wait_that_is_over_says_so() {
        let mut driver = driver(&tables());
        assert_eq!(driver.call(CALLER, launch(0)), Ok(Outcome::Returns(CallResult::None)));
        let Ok(Outcome::Waits(Wait { until, .. })) = driver.call(CALLER, Call::DeviceSynchronize) else {
            panic!("a kernel is under way");
        };
        driver.begin(SimTime(0));
        assert!(!driver.is_over(&until));
        driver.kernel_completed(LaunchId(1), None);
        assert!(driver.is_over(&until));
    }
}
