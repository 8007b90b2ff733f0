//! What each CUDA call costs and does.

use super::launch::LaunchRequest;
use super::operations::Edge;
use super::streams::StreamKey;
use super::threads::{Then, Until, Wait};
use super::work::Delivery;
use super::work::{OperationNumber, Work};
use super::{CudaError, HostCpu};
use crate::engine::Outbox;
use balar_host::call::{CopyEnd, CopyShape, Launch, VirtualMemoryCall};
use balar_host::{Bytes, Call, CallResult, ThreadId};
use balar_protocol::SimTime;

/// What becomes of a call when its host time is over.
pub(super) enum Outcome {
    Returns(CallResult),
    Waits(Wait),
}

pub(super) type CallOutcome = Result<Outcome, (CudaError, String)>;

pub(super) const NOTHING: CallOutcome = Ok(Outcome::Returns(CallResult::None));

impl HostCpu {
    /// When a call made at `now` has done its host part.
    pub(super) fn call_ends(&mut self, now: SimTime, call: &Call) -> SimTime {
        let costs = &self.costs;
        let counters = &mut self.counters;
        let (counter, cycles) = match call {
            Call::Compute { nanoseconds } => return now.saturating_add(SimTime(nanoseconds.saturating_mul(1000))),
            Call::ReadClock => return self.after(now, costs.clock_cost),
            Call::Exit { .. } => return now,
            Call::CallbackDone { .. } => {
                counters.host_functions += 1;
                return now;
            }
            Call::Malloc { .. } | Call::ArrayCreate { .. } | Call::MallocHost { .. } | Call::MallocManaged { .. } => {
                (&mut counters.calls_memory, costs.malloc_cost)
            }
            Call::Free { .. } | Call::ArrayDestroy { .. } | Call::FreeHost { .. } => {
                (&mut counters.calls_memory, costs.free_cost)
            }
            Call::Launch(_) => (&mut counters.calls_launch, costs.launch_cost),
            Call::GraphLaunch { .. } => (&mut counters.calls_graph, costs.launch_cost),
            Call::StreamCreate { .. } | Call::StreamDestroy { .. } => (&mut counters.calls_stream, costs.call_cost),
            Call::StreamSynchronize { .. } | Call::DeviceSynchronize | Call::EventSynchronize { .. } => {
                (&mut counters.calls_synchronize, costs.call_cost)
            }
            Call::MemcpyHostToDevice { .. }
            | Call::MemcpyDeviceToHost { .. }
            | Call::MemcpyDeviceToDevice { .. }
            | Call::Copy { .. }
            | Call::Memset { .. } => (&mut counters.calls_copy, costs.copy_cost),
            Call::EventCreate { .. }
            | Call::EventDestroy { .. }
            | Call::EventRecord { .. }
            | Call::EventQuery { .. }
            | Call::EventElapsed { .. }
            | Call::StreamQuery { .. }
            | Call::StreamWaitEvent { .. } => (&mut counters.calls_event, costs.call_cost),
            Call::ModuleLoad { .. }
            | Call::ModuleUnload { .. }
            | Call::FunctionAttributes { .. }
            | Call::SetDynamicSharedLimit { .. } => (&mut counters.calls_module, costs.call_cost),
            Call::DeviceReset
            | Call::VirtualMemory(VirtualMemoryCall::Release { .. } | VirtualMemoryCall::Unmap { .. }) => {
                (&mut counters.calls_memory, costs.free_cost)
            }
            Call::VirtualMemory(VirtualMemoryCall::Create { .. }) => (&mut counters.calls_memory, costs.malloc_cost),
            _ => (&mut counters.calls_memory, costs.call_cost),
        };
        *counter += 1;
        counters.calls += 1;
        self.after(now, cycles)
    }

    /// The host part of a thread's call is over.
    pub(super) fn end_call(&mut self, now: SimTime, thread: ThreadId, device: usize, call: Call, out: &mut Outbox) {
        let name = call.name();
        if matches!(call, Call::Launch(_) | Call::GraphLaunch { .. }) {
            self.take_printed();
        }
        let outcome = match call {
            Call::Compute { .. } | Call::Exit { .. } => NOTHING,
            Call::ReadClock => Ok(Outcome::Returns(CallResult::Time { picoseconds: now.picoseconds() })),
            Call::NotImplemented { function } => {
                let text = format!("{function} is not implemented");
                *self.not_implemented.entry(function).or_default() += 1;
                Err((CudaError::NotSupported, text))
            }
            Call::CallbackDone { function } => self.callback_done(now, function, out),
            _ if device >= self.contexts.len() => {
                Err((CudaError::InvalidDevice, format!("there is no device {device}")))
            }
            Call::DeviceReset => {
                let until = Until::DeviceBefore { device, number: self.operations.next() };
                Ok(Outcome::Waits(Wait { until, then: Then::Reset }))
            }
            _ if self.contexts[device].sticky.is_some() => Ok(Outcome::Returns(self.sticky_error(device))),
            call => self.perform(now, thread, device, call),
        };
        self.dispatch(now, out);
        match outcome {
            // The program may read its managed variables at once: their initial values must be there.
            Ok(Outcome::Returns(result @ CallResult::Module { .. })) => {
                self.call_returns(self.writer.visible_at(now), thread, result);
            }
            Ok(Outcome::Returns(result)) => self.call_returns(now, thread, result),
            Ok(Outcome::Waits(wait)) if self.is_over(&wait.until) => {
                self.take_printed();
                if let Then::Again(again) = wait.then {
                    return self.retry_call(now, thread, device, name, *again);
                }
                self.finish(now, device, wait.then, out);
                self.call_returns(now, thread, CallResult::None);
            }
            Ok(Outcome::Waits(wait)) => self.call_waits(now, thread, name, wait),
            Err((error, text)) => self.call_fails(now, thread, error, text),
        }
    }

    fn call_fails(&mut self, now: SimTime, thread: ThreadId, error: CudaError, text: String) {
        self.last_error = Some((error, text));
        self.call_returns(now, thread, CallResult::Error(error));
    }

    /// A call that had to wait before it could do anything is made again, at no cost.
    pub(super) fn retry_call(&mut self, now: SimTime, thread: ThreadId, device: usize, name: &'static str, call: Call) {
        match self.perform(now, thread, device, call) {
            Ok(Outcome::Returns(result)) => self.call_returns(now, thread, result),
            Ok(Outcome::Waits(wait)) => self.call_waits(now, thread, name, wait),
            Err((error, text)) => self.call_fails(now, thread, error, text),
        }
    }

    fn perform(&mut self, now: SimTime, thread: ThreadId, device: usize, call: Call) -> CallOutcome {
        match call {
            Call::Launch(ref launch) => {
                let stream = launch.stream;
                let key = self.find_stream(device, stream)?;
                let (work, extra) = self.work_of(now, device, key, Delivery::None, call)?;
                self.push(key, work, &extra);
                let until = Until::QueueRoom(device);
                if self.is_over(&until) { NOTHING } else { Ok(Outcome::Waits(Wait { until, then: Then::Nothing })) }
            }
            Call::MemcpyHostToDevice { stream, asynchronous, .. }
            | Call::MemcpyDeviceToDevice { stream, asynchronous, .. }
            | Call::Copy { stream, asynchronous, .. }
            | Call::Memset { stream, asynchronous, .. } => {
                self.stream_call(now, thread, device, stream, None, asynchronous, call)
            }
            Call::MemcpyDeviceToHost { stream, asynchronous, transfer, .. } => {
                self.stream_call(now, thread, device, stream, Some(transfer), asynchronous, call)
            }
            Call::HostFunction { stream, .. }
            | Call::EventRecord { stream, .. }
            | Call::StreamWaitEvent { stream, .. } => self.stream_call(now, thread, device, stream, None, true, call),
            Call::GraphLaunch { nodes, stream } => self.launch_graph(now, device, nodes, stream),
            Call::StreamCreate { .. }
            | Call::StreamDestroy { .. }
            | Call::StreamSynchronize { .. }
            | Call::StreamQuery { .. }
            | Call::EventCreate { .. }
            | Call::EventDestroy { .. }
            | Call::EventSynchronize { .. }
            | Call::EventQuery { .. }
            | Call::EventElapsed { .. }
            | Call::DeviceSynchronize => self.order_call(device, call),
            Call::ModuleLoad { .. }
            | Call::ModuleUnload { .. }
            | Call::FunctionAttributes { .. }
            | Call::SetDynamicSharedLimit { .. } => self.module_call(now, device, call),
            Call::ArrayCreate { .. }
            | Call::ArrayDestroy { .. }
            | Call::TextureCreate { .. }
            | Call::SurfaceCreate { .. }
            | Call::ImageDestroy { .. }
            | Call::TextureBind { .. }
            | Call::SurfaceBind { .. } => self.image_call(now, device, call),
            Call::SetLimit { limit, bytes } => {
                self.set_limit(now, device, limit, bytes)?;
                NOTHING
            }
            Call::GetLimit { limit } => Ok(Outcome::Returns(CallResult::Size(self.limit(device, limit)))),
            Call::PeerAccess { peer, enabled } => {
                self.peer_access(now, device, peer, enabled)?;
                NOTHING
            }
            other => self.memory_call(now, device, other),
        }
    }

    /// A call that adds one operation to a stream; a synchronous one waits for it.
    #[expect(clippy::too_many_arguments, reason = "what a call is made of")]
    fn stream_call(
        &mut self,
        now: SimTime,
        thread: ThreadId,
        device: usize,
        stream: u32,
        transfer: Option<u32>,
        asynchronous: bool,
        call: Call,
    ) -> CallOutcome {
        let key = self.find_stream(device, stream)?;
        // Bytes for pageable memory come with the call's result, or under the program's number.
        let delivery = match transfer {
            Some(transfer) if asynchronous => Delivery::Transfer(transfer),
            _ => Delivery::Thread(thread),
        };
        let waits = !asynchronous || matches!(call, Call::Copy { destination: CopyEnd::Bytes(_), .. });
        let event = match call {
            Call::EventRecord { event, .. } => Some(event),
            _ => None,
        };
        let (work, extra) = self.work_of(now, device, key, delivery, call)?;
        let number = self.push(key, work, &extra);
        if let Some(event) = event {
            self.events.record(event, number);
        }
        if waits { Ok(Outcome::Waits(Wait::operations(vec![number]))) } else { NOTHING }
    }

    /// What an asynchronous call does when its turn has come, and what it waits for beyond the order of its stream.
    pub(super) fn work_of(
        &mut self,
        now: SimTime,
        device: usize,
        key: StreamKey,
        delivery: Delivery,
        call: Call,
    ) -> Result<(Work, Vec<Edge>), (CudaError, String)> {
        let of_stream = self.streams.device(key);
        let memory = |address| CopyEnd::Memory { address, row_pitch: 0, slice_pitch: 0 };
        let work = match call {
            Call::Launch(launch) => {
                if of_stream != device {
                    let text = format!("stream {} is of device {of_stream}, not {device}", launch.stream);
                    return Err((CudaError::InvalidResourceHandle, text));
                }
                let Launch { function, grid, block, shared_memory_bytes, stream, parameters, cooperative } = launch;
                let dynamic_shared_bytes = shared_memory_bytes;
                let request = LaunchRequest { grid, block, dynamic_shared_bytes, stream, parameters, cooperative };
                let priority = self.streams.priority(key);
                return Ok((self.launch(now, device, &function, request, priority)?, Vec::new()));
            }
            Call::HostFunction { function, .. } => return Ok((Work::HostFunction(function), Vec::new())),
            Call::EventRecord { event, .. } => {
                let of_event = self.events.device(event)?;
                if of_event != of_stream {
                    let text = format!("event {event} is of device {of_event}, its stream of {of_stream}");
                    return Err((CudaError::InvalidResourceHandle, text));
                }
                return Ok((Work::Record(event), Vec::new()));
            }
            Call::StreamWaitEvent { event, .. } => {
                let awaited = self.events.awaited(event, &self.operations)?;
                return Ok((Work::Nothing, awaited.into_iter().map(Edge::Done).collect()));
            }
            Call::FreeAsync { pointer, .. } => return Ok((Work::Free(pointer), Vec::new())),
            Call::Prefetch { .. } => return Ok((Work::Nothing, Vec::new())),
            Call::MemcpyHostToDevice { destination, data, .. } => {
                let bytes = data.len();
                self.copy(of_stream, memory(destination), CopyEnd::Bytes(data), CopyShape::linear(bytes), delivery)?
            }
            Call::MemcpyDeviceToHost { source, bytes, .. } => {
                let end = CopyEnd::Bytes(Bytes::absent(bytes));
                self.copy(of_stream, end, memory(source), CopyShape::linear(bytes), delivery)?
            }
            Call::MemcpyDeviceToDevice { destination, source, bytes, .. } => {
                self.copy(of_stream, memory(destination), memory(source), CopyShape::linear(bytes), delivery)?
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
    fn order_call(&mut self, device: usize, call: Call) -> CallOutcome {
        match call {
            Call::StreamCreate { non_blocking, priority } => {
                Ok(Outcome::Returns(CallResult::Stream(self.streams.create(device, non_blocking, priority))))
            }
            Call::StreamDestroy { stream } if self.streams.destroy(stream) => NOTHING,
            Call::StreamDestroy { stream } => Err(no_stream(stream)),
            Call::StreamSynchronize { stream } => {
                let key = self.find_stream(device, stream)?;
                Ok(Outcome::Waits(Wait::operations(self.streams.ends(key, &self.operations))))
            }
            Call::StreamQuery { stream } => {
                let key = self.find_stream(device, stream)?;
                if self.streams.ends(key, &self.operations).is_empty() {
                    return NOTHING;
                }
                Err((CudaError::NotReady, format!("stream {stream} has work to do")))
            }
            Call::EventCreate { timed } => Ok(Outcome::Returns(CallResult::Event(self.events.create(device, timed)))),
            Call::EventDestroy { event } => {
                self.events.destroy(event)?;
                NOTHING
            }
            Call::EventSynchronize { event } => {
                let awaited = self.events.awaited(event, &self.operations)?;
                Ok(Outcome::Waits(Wait::operations(awaited.into_iter().collect())))
            }
            Call::EventQuery { event } => match self.events.awaited(event, &self.operations)? {
                None => NOTHING,
                Some(_) => Err((CudaError::NotReady, format!("event {event} is not done"))),
            },
            Call::EventElapsed { start, end } => {
                let picoseconds = self.events.elapsed(start, end, &self.operations)?;
                Ok(Outcome::Returns(CallResult::Elapsed { picoseconds }))
            }
            Call::DeviceSynchronize => {
                let until = Until::DeviceBefore { device, number: self.operations.next() };
                Ok(Outcome::Waits(Wait { until, then: Then::Nothing }))
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// A host function has run.
    fn callback_done(&mut self, now: SimTime, function: u64, out: &mut Outbox) -> CallOutcome {
        let Some(number) = self.operations.host_function(function) else {
            return Err((CudaError::InvalidValue, format!("no stream waits for host function {function}")));
        };
        self.operations.complete(number);
        self.operation_done(now, out);
        NOTHING
    }

    /// Adds an operation to a stream.
    pub(super) fn push(&mut self, key: StreamKey, work: Work, extra: &[Edge]) -> OperationNumber {
        self.streams.push(key, work, extra, &mut self.operations)
    }

    /// The stream that a thread means.
    pub(super) fn find_stream(&self, device: usize, stream: u32) -> Result<StreamKey, (CudaError, String)> {
        self.streams.find(device, stream).ok_or_else(|| no_stream(stream))
    }
}

fn no_stream(stream: u32) -> (CudaError, String) {
    (CudaError::InvalidResourceHandle, format!("there is no stream {stream}"))
}

/// A call that nothing takes.
pub(super) fn not_modelled(call: &Call) -> (CudaError, String) {
    (CudaError::NotSupported, format!("{} is not modelled", call.name()))
}
