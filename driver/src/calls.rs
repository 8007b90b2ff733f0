//! What each CUDA call does.

use crate::Driver;
use crate::launch::LaunchRequest;
use crate::order::operations::Edge;
use crate::order::streams::StreamKey;
use crate::order::work::Delivery;
use crate::order::work::{OperationNumber, Work};
use crate::wait::{Then, Until, Wait};
use balar_host::CudaError;
use balar_host::call::{CopyEnd, CopyShape, Launch};
use balar_host::{Bytes, Call, CallResult, ThreadId};

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
    /// What becomes of a thread's call on a device, once its host part is over. The call may have to wait; then what it waits for may
    /// be over already.
    pub fn call(&mut self, thread: ThreadId, device: usize, call: Call) -> Result<Outcome, CudaError> {
        let outcome = match call {
            Call::NotImplemented { function } => {
                Err((CudaError::NotSupported, format!("{function} is not implemented")))
            }
            Call::CallbackDone { function } => self.callback_done(function),
            _ if device >= self.state.contexts.len() => {
                Err((CudaError::InvalidDevice, format!("there is no device {device}")))
            }
            Call::DeviceReset => {
                let until = Until::DeviceBefore { device, number: self.state.operations.next() };
                Ok(Outcome::Waits(Wait { until, then: Then::Reset }))
            }
            _ if self.state.contexts[device].sticky.is_some() => Ok(Outcome::Returns(self.sticky_error(device))),
            call => self.perform(thread, device, call),
        };
        self.noted(outcome)
    }

    /// A call that had to wait before it could do anything is made again.
    pub fn retry(&mut self, thread: ThreadId, device: usize, call: Call) -> Result<Outcome, CudaError> {
        let outcome = self.perform(thread, device, call);
        self.noted(outcome)
    }

    fn noted(&mut self, outcome: CallOutcome) -> Result<Outcome, CudaError> {
        outcome.map_err(|failure| {
            let error = failure.0;
            self.state.last_error = Some(failure);
            error
        })
    }

    /// What a call waited for is over. Gives the error that it returns, if its context has failed.
    pub fn finish(&mut self, device: usize, then: Then) -> Option<CallResult> {
        let reset = matches!(then, Then::Reset);
        match then {
            Then::Nothing | Then::Again(_) => {}
            Then::Free(address) => self.end_allocation(address),
            Then::Unmap(pointer, bytes) => self.unmap(pointer, bytes),
            Then::Unload(module) => self.unload_module(module),
            Then::Reset => self.reset_device(device),
        }
        (self.state.contexts[device].sticky.is_some() && !reset).then(|| self.sticky_error(device))
    }

    fn perform(&mut self, thread: ThreadId, device: usize, call: Call) -> CallOutcome {
        match call {
            Call::Launch(ref launch) => {
                let stream = launch.stream;
                let key = self.find_stream(device, stream)?;
                let (work, extra) = self.work_of(device, key, Delivery::None, call)?;
                self.push(key, work, &extra);
                let until = Until::QueueRoom(device);
                if self.is_over(&until) { NOTHING } else { Ok(Outcome::Waits(Wait { until, then: Then::Nothing })) }
            }
            Call::MemcpyHostToDevice { stream, asynchronous, .. }
            | Call::MemcpyDeviceToDevice { stream, asynchronous, .. }
            | Call::Copy { stream, asynchronous, .. }
            | Call::Memset { stream, asynchronous, .. } => {
                self.stream_call(thread, device, stream, None, asynchronous, call)
            }
            Call::MemcpyDeviceToHost { stream, asynchronous, transfer, .. } => {
                self.stream_call(thread, device, stream, Some(transfer), asynchronous, call)
            }
            Call::HostFunction { stream, .. }
            | Call::EventRecord { stream, .. }
            | Call::StreamWaitEvent { stream, .. } => self.stream_call(thread, device, stream, None, true, call),
            Call::GraphLaunch { nodes, stream } => self.launch_graph(device, nodes, stream),
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
            | Call::SetDynamicSharedLimit { .. } => self.module_call(device, call),
            Call::ArrayCreate { .. }
            | Call::ArrayDestroy { .. }
            | Call::TextureCreate { .. }
            | Call::SurfaceCreate { .. }
            | Call::ImageDestroy { .. }
            | Call::TextureBind { .. }
            | Call::SurfaceBind { .. } => self.image_call(device, call),
            Call::SetLimit { limit, bytes } => {
                self.set_limit(device, limit, bytes)?;
                NOTHING
            }
            Call::GetLimit { limit } => Ok(Outcome::Returns(CallResult::Size(self.limit(device, limit)))),
            Call::PeerAccess { peer, enabled } => {
                self.peer_access(device, peer, enabled)?;
                NOTHING
            }
            other => self.memory_call(device, other),
        }
    }

    /// A call that adds one operation to a stream; a synchronous one waits for it.
    fn stream_call(
        &mut self,
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
        let (work, extra) = self.work_of(device, key, delivery, call)?;
        let number = self.push(key, work, &extra);
        if let Some(event) = event {
            self.state.events.record(event, number);
        }
        if waits { Ok(Outcome::Waits(Wait::operations(vec![number]))) } else { NOTHING }
    }

    /// What an asynchronous call does when its turn has come, and what it waits for beyond the order of its stream.
    pub(crate) fn work_of(
        &mut self,
        device: usize,
        key: StreamKey,
        delivery: Delivery,
        call: Call,
    ) -> Result<(Work, Vec<Edge>), (CudaError, String)> {
        let of_stream = self.state.streams.device(key);
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
                let priority = self.state.streams.priority(key);
                return Ok((self.launch(device, &function, request, priority)?, Vec::new()));
            }
            Call::HostFunction { function, .. } => return Ok((Work::HostFunction(function), Vec::new())),
            Call::EventRecord { event, .. } => {
                let of_event = self.state.events.device(event)?;
                if of_event != of_stream {
                    let text = format!("event {event} is of device {of_event}, its stream of {of_stream}");
                    return Err((CudaError::InvalidResourceHandle, text));
                }
                return Ok((Work::Record(event), Vec::new()));
            }
            Call::StreamWaitEvent { event, .. } => {
                let awaited = self.state.events.awaited(event, &self.state.operations)?;
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
                Ok(Outcome::Returns(CallResult::Stream(self.state.streams.create(device, non_blocking, priority))))
            }
            Call::StreamDestroy { stream } if self.state.streams.destroy(stream) => NOTHING,
            Call::StreamDestroy { stream } => Err(no_stream(stream)),
            Call::StreamSynchronize { stream } => {
                let key = self.find_stream(device, stream)?;
                Ok(Outcome::Waits(Wait::operations(self.state.streams.ends(key, &self.state.operations))))
            }
            Call::StreamQuery { stream } => {
                let key = self.find_stream(device, stream)?;
                if self.state.streams.ends(key, &self.state.operations).is_empty() {
                    return NOTHING;
                }
                Err((CudaError::NotReady, format!("stream {stream} has work to do")))
            }
            Call::EventCreate { timed } => {
                Ok(Outcome::Returns(CallResult::Event(self.state.events.create(device, timed))))
            }
            Call::EventDestroy { event } => {
                self.state.events.destroy(event)?;
                NOTHING
            }
            Call::EventSynchronize { event } => {
                let awaited = self.state.events.awaited(event, &self.state.operations)?;
                Ok(Outcome::Waits(Wait::operations(awaited.into_iter().collect())))
            }
            Call::EventQuery { event } => match self.state.events.awaited(event, &self.state.operations)? {
                None => NOTHING,
                Some(_) => Err((CudaError::NotReady, format!("event {event} is not done"))),
            },
            Call::EventElapsed { start, end } => {
                let picoseconds = self.state.events.elapsed(start, end, &self.state.operations)?;
                Ok(Outcome::Returns(CallResult::Elapsed { picoseconds }))
            }
            Call::DeviceSynchronize => {
                let until = Until::DeviceBefore { device, number: self.state.operations.next() };
                Ok(Outcome::Waits(Wait { until, then: Then::Nothing }))
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// A host function has run.
    fn callback_done(&mut self, function: u64) -> CallOutcome {
        let Some(number) = self.state.operations.host_function(function) else {
            return Err((CudaError::InvalidValue, format!("no stream waits for host function {function}")));
        };
        self.state.operations.complete(number);
        NOTHING
    }

    /// Adds an operation to a stream.
    pub(crate) fn push(&mut self, key: StreamKey, work: Work, extra: &[Edge]) -> OperationNumber {
        self.state.streams.push(key, work, extra, &mut self.state.operations)
    }

    /// The stream that a thread means.
    pub(crate) fn find_stream(&self, device: usize, stream: u32) -> Result<StreamKey, (CudaError, String)> {
        self.state.streams.find(device, stream).ok_or_else(|| no_stream(stream))
    }
}

fn no_stream(stream: u32) -> (CudaError, String) {
    (CudaError::InvalidResourceHandle, format!("there is no stream {stream}"))
}

/// A call that nothing takes.
pub(crate) fn not_modelled(call: &Call) -> (CudaError, String) {
    (CudaError::NotSupported, format!("{} is not modelled", call.name()))
}
