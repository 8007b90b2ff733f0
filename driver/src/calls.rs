//! What each CUDA call does.

use crate::Driver;
use crate::driver::State;
use crate::effect::MemoryChange;
use crate::launch::LaunchRequest;
use crate::order::events::no_event;
use crate::order::operations::{Edge, Operations};
use crate::order::streams::{StreamKey, Streams};
use crate::order::work::Delivery;
use crate::order::work::{OperationNumber, Work};
use crate::process::Process;
use crate::wait::{Then, Until, Wait};
use balar_host::CudaError;
use balar_host::call::Launch;
use balar_host::{Call, CallResult, ThreadId};
use balar_protocol::{ContextId, ProcessId};

/// Who makes a call: a thread, and the context that is current to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The thread.
    pub thread: ThreadId,
    /// The context.
    pub context: ContextId,
}

/// What becomes of a call when its host time is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It returns at once.
    Returns(CallResult),
    /// It waits for work.
    Waits(Wait),
}

pub(crate) type CallOutcome = Result<Outcome, (CudaError, String)>;

pub(crate) const NOTHING: CallOutcome = Ok(Outcome::Returns(CallResult::None));

impl Driver {
    /// What becomes of a thread's call, once its host part is over. The call may have to wait; then what it waits for may
    /// be over already.
    pub fn call(&mut self, caller: Caller, call: Call) -> Result<Outcome, CudaError> {
        let context = caller.context;
        let outcome = match call {
            Call::NotImplemented { function } => {
                Err((CudaError::NotSupported, format!("{function} is not implemented")))
            }
            Call::CallbackDone { function } => self.callback_done(context.process(), function),
            _ if context.gpu() >= self.gpus.len() => {
                Err((CudaError::InvalidDevice, format!("there is no device {}", context.gpu())))
            }
            Call::DeviceReset => {
                let until = Until::ContextBefore { context, number: self.state.operations.next() };
                Ok(Outcome::Waits(Wait { until, then: Then::Reset }))
            }
            _ if self.context(context).sticky.is_some() => Ok(Outcome::Returns(self.sticky_error(context))),
            call => self.perform(caller, call),
        };
        self.noted(context, outcome)
    }

    /// What a call waited for is over, and it goes on ([`Then::goes_on`]).
    pub fn goes_on(&mut self, caller: Caller, then: Then) -> Result<Outcome, CudaError> {
        let context = caller.context;
        let outcome = match then {
            Then::Again(call) => self.perform(caller, *call),
            Then::Synchronise if self.context(context).sticky.is_none() => {
                Ok(self.synchronise_managed(context.process()))
            }
            then => Ok(Outcome::Returns(self.finish(context, then).unwrap_or(CallResult::None))),
        };
        self.noted(context, outcome)
    }

    fn noted(&mut self, context: ContextId, outcome: CallOutcome) -> Result<Outcome, CudaError> {
        outcome.map_err(|failure| {
            let error = failure.0;
            self.own(context).last_error = Some(failure);
            error
        })
    }

    /// What a call waited for is over. Gives the error that it returns, if its context has failed.
    pub fn finish(&mut self, context: ContextId, then: Then) -> Option<CallResult> {
        let reset = matches!(then, Then::Reset);
        match then {
            Then::Nothing | Then::Again(_) | Then::Synchronise | Then::Touched(_) | Then::Read(..) => {}
            Then::Write(address, bytes) => self.change(MemoryChange::Write { address, bytes }),
            Then::Free(address) => self.end_allocation(address),
            Then::Unmap(pointer, bytes) => self.unmap(context, pointer, bytes),
            Then::Close(pointer) => self.close_memory(context.process(), pointer),
            Then::Unload(module) => self.unload_module(context, module),
            Then::Reset => self.reset_context(context),
        }
        (self.context(context).sticky.is_some() && !reset).then(|| self.sticky_error(context))
    }

    fn perform(&mut self, caller: Caller, call: Call) -> CallOutcome {
        let context = caller.context;
        match call {
            Call::Launch(_)
            | Call::Copy { .. }
            | Call::Memset { .. }
            | Call::HostFunction { .. }
            | Call::EventRecord { .. }
            | Call::StreamWaitEvent { .. }
            | Call::FreeAsync { .. }
            | Call::Prefetch { .. } => self.stream_call(caller, call),
            Call::GraphLaunch { nodes, conditions, stream } => self.launch_graph(caller, nodes, conditions, stream),
            Call::StreamCreate { .. }
            | Call::StreamDestroy { .. }
            | Call::StreamSynchronize { .. }
            | Call::StreamQuery { .. }
            | Call::EventCreate { .. }
            | Call::EventDestroy { .. }
            | Call::EventSynchronize { .. }
            | Call::EventQuery { .. }
            | Call::EventElapsed { .. }
            | Call::DeviceSynchronize => self.order_call(context, call),
            Call::ModuleLoad { .. }
            | Call::ModuleUnload { .. }
            | Call::FunctionAttributes { .. }
            | Call::SetDynamicSharedLimit { .. } => self.module_call(context, call),
            Call::ArrayCreate { .. }
            | Call::ArrayDestroy { .. }
            | Call::TextureCreate { .. }
            | Call::SurfaceCreate { .. }
            | Call::ImageDestroy { .. }
            | Call::TextureBind { .. }
            | Call::SurfaceBind { .. } => self.image_call(context, call),
            Call::Malloc { .. }
            | Call::Free { .. }
            | Call::MallocAsync { .. }
            | Call::MallocHost { .. }
            | Call::FreeHost { .. }
            | Call::MallocManaged { .. }
            | Call::MemoryInfo
            | Call::PointerInfo { .. } => self.memory_call(context, call),
            Call::Advise { .. }
            | Call::TouchManaged { .. }
            | Call::WriteManaged { .. }
            | Call::ReadManaged { .. }
            | Call::AssumeHostAccesses => self.managed_call(context, call),
            Call::VirtualMemory(call) => self.virtual_memory_call(context, call),
            Call::Ipc(call) => self.ipc_call(context, call),
            Call::Profiler(call) => {
                self.profiler_call(caller, call);
                NOTHING
            }
            Call::SetLimit { limit, bytes } => {
                self.set_limit(context, limit, bytes)?;
                NOTHING
            }
            Call::GetLimit { limit } => Ok(Outcome::Returns(CallResult::Size(self.limit(context, limit)))),
            Call::PeerAccess { peer, enabled } => {
                self.peer_access(context, peer, enabled)?;
                NOTHING
            }
            // `Driver::call` answers the first three; the others are no calls of CUDA.
            Call::NotImplemented { .. }
            | Call::CallbackDone { .. }
            | Call::DeviceReset
            | Call::Compute { .. }
            | Call::ReadClock
            | Call::Management(_)
            | Call::Exit { .. } => Err(not_modelled(&call)),
        }
    }

    /// A call that adds one operation to a stream. A synchronous one waits for it, another one for room.
    fn stream_call(&mut self, caller: Caller, call: Call) -> CallOutcome {
        let Caller { thread, context } = caller;
        let stream = call.stream().unwrap_or_default();
        let key = self.find_stream(context, stream)?;
        let waits = matches!(call, Call::Copy { asynchronous: false, .. } | Call::Memset { asynchronous: false, .. });
        // Bytes for pageable memory come with the call's result, or under the program's number.
        let delivery = match call {
            Call::Copy { transfer, asynchronous: true, .. } => Delivery::Transfer(context.process(), transfer),
            _ => Delivery::Thread(thread),
        };
        let event = match call {
            Call::EventRecord { event, .. } => Some(event),
            _ => None,
        };
        let (work, extra) = self.work_of(context, key, delivery, call)?;
        if matches!(work, Work::Free(0)) {
            return NOTHING;
        }
        let range = self.range_of(caller);
        let number = self.push(context, key, work.in_range(range.as_ref()), &extra);
        if let Some(event) = event {
            self.record_event(context.process(), event, number);
        }
        if waits { Ok(Outcome::Waits(Wait::operations(vec![number]))) } else { self.wait_for_room(context) }
    }

    /// A call that has added to a stream returns when there is room for more.
    pub(crate) fn wait_for_room(&self, context: ContextId) -> CallOutcome {
        let until = Until::QueueRoom(context);
        if self.is_over(&until) { NOTHING } else { Ok(Outcome::Waits(Wait { until, then: Then::Nothing })) }
    }

    /// What an asynchronous call does when its turn has come, and what it waits for beyond the order of its stream.
    pub(crate) fn work_of(
        &mut self,
        context: ContextId,
        key: StreamKey,
        delivery: Delivery,
        call: Call,
    ) -> Result<(Work, Vec<Edge>), (CudaError, String)> {
        let of_stream = self.own(context).streams.context(key);
        let work = match call {
            Call::Launch(launch) => {
                if of_stream != context {
                    let (owner, device) = (of_stream.gpu(), context.gpu());
                    let text = format!("stream {} is of device {owner}, not {device}", launch.stream);
                    return Err((CudaError::InvalidResourceHandle, text));
                }
                let Launch { function, grid, block, shared_memory_bytes, stream, parameters, cooperative } = launch;
                let dynamic_shared_bytes = shared_memory_bytes;
                let request = LaunchRequest { grid, block, dynamic_shared_bytes, stream, parameters, cooperative };
                let priority = self.own(context).streams.priority(key);
                return Ok((self.launch(context, &function, request, priority)?, Vec::new()));
            }
            Call::HostFunction { function, .. } => return Ok((Work::HostFunction(function), Vec::new())),
            Call::EventRecord { event, .. } => {
                let (of_event, of_stream) = (self.own(context).events.gpu(event)?, of_stream.gpu());
                if of_event != of_stream {
                    let text = format!("event {event} is of device {of_event}, its stream of {of_stream}");
                    return Err((CudaError::InvalidResourceHandle, text));
                }
                return Ok((Work::Record(event), Vec::new()));
            }
            Call::StreamWaitEvent { event, .. } => {
                let awaited = self.awaited(context.process(), event)?;
                return Ok((Work::Nothing, awaited.into_iter().map(Edge::Done).collect()));
            }
            Call::FreeAsync { pointer, .. } => return Ok((self.free_in_order(context, pointer)?, Vec::new())),
            Call::Prefetch { pointer, bytes, device, .. } => {
                return Ok((self.prefetch(context, pointer, bytes, device)?, Vec::new()));
            }
            Call::Copy { destination, source, shape, .. } => {
                self.copy(of_stream, destination, source, shape, delivery)?
            }
            Call::Memset { pointer, value, shape, pitch, element_bytes, .. } => {
                self.fill(of_stream, pointer, shape, pitch, (value, element_bytes))?
            }
            other => return Err(not_modelled(&other)),
        };
        Ok((work, Vec::new()))
    }

    /// Streams and events themselves, and waiting for them.
    fn order_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        match call {
            Call::StreamCreate { non_blocking, priority } => {
                let stream = self.own(context).streams.create(context, non_blocking, priority);
                Ok(Outcome::Returns(CallResult::Stream(stream)))
            }
            Call::StreamDestroy { stream } if self.own(context).streams.destroy(stream) => NOTHING,
            Call::StreamDestroy { stream } => Err(no_stream(stream)),
            Call::StreamSynchronize { stream } => {
                let key = self.find_stream(context, stream)?;
                let until = Until::Operations(self.ends(context, key));
                Ok(Outcome::Waits(Wait { until, then: self.after_wait(context.process()) }))
            }
            Call::StreamQuery { stream } => {
                let key = self.find_stream(context, stream)?;
                if self.ends(context, key).is_empty() {
                    return NOTHING;
                }
                Err((CudaError::NotReady, format!("stream {stream} has work to do")))
            }
            Call::EventCreate { timed } => {
                let event = self.own(context).events.create(context, timed);
                Ok(Outcome::Returns(CallResult::Event(event)))
            }
            Call::EventDestroy { event } => {
                let shared = self.own(context).events.destroy(event)?;
                self.release_events(shared);
                NOTHING
            }
            Call::EventSynchronize { event } => {
                let awaited = self.awaited(context.process(), event)?;
                let until = Until::Operations(awaited.into_iter().collect());
                Ok(Outcome::Waits(Wait { until, then: self.after_wait(context.process()) }))
            }
            Call::EventQuery { event } => match self.awaited(context.process(), event)? {
                None => NOTHING,
                Some(_) => Err((CudaError::NotReady, format!("event {event} is not done"))),
            },
            Call::EventElapsed { start, end } => {
                let State { processes, operations, .. } = &mut self.state;
                let events = processes.get(&context.process()).map(|process| &process.events);
                let picoseconds = events.ok_or_else(|| no_event(start))?.elapsed(start, end, operations)?;
                Ok(Outcome::Returns(CallResult::Elapsed { picoseconds }))
            }
            Call::DeviceSynchronize => {
                let until = Until::ContextBefore { context, number: self.state.operations.next() };
                Ok(Outcome::Waits(Wait { until, then: self.after_synchronisation(context.process()) }))
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// A host function has run.
    fn callback_done(&mut self, process: ProcessId, function: u64) -> CallOutcome {
        let Some(number) = self.state.operations.host_function(process, function) else {
            return Err((CudaError::InvalidValue, format!("no stream waits for host function {function}")));
        };
        self.state.operations.complete(number);
        NOTHING
    }

    /// The streams of a context's process, and all operations.
    pub(crate) fn order(&mut self, context: ContextId) -> (&mut Streams, &mut Operations) {
        let gpus = self.gpus.len();
        let State { processes, operations, .. } = &mut self.state;
        let process = context.process();
        (&mut processes.entry(process).or_insert_with(|| Process::new(process, gpus)).streams, operations)
    }

    /// Adds an operation to a stream of a context's process.
    pub(crate) fn push(&mut self, context: ContextId, key: StreamKey, work: Work, extra: &[Edge]) -> OperationNumber {
        let (streams, operations) = self.order(context);
        streams.push(key, work, extra, operations)
    }

    /// The operations whose ends are the end of all that was asked of a stream so far.
    fn ends(&mut self, context: ContextId, key: StreamKey) -> Vec<OperationNumber> {
        let (streams, operations) = self.order(context);
        streams.ends(key, operations)
    }

    /// The stream that a thread means.
    pub(crate) fn find_stream(&mut self, context: ContextId, stream: u32) -> Result<StreamKey, (CudaError, String)> {
        self.own(context).streams.find(context.gpu(), stream).ok_or_else(|| no_stream(stream))
    }
}

fn no_stream(stream: u32) -> (CudaError, String) {
    (CudaError::InvalidResourceHandle, format!("there is no stream {stream}"))
}

/// A call that nothing takes.
pub(crate) fn not_modelled(call: &Call) -> (CudaError, String) {
    (CudaError::NotSupported, format!("{} is not modelled", call.name()))
}
