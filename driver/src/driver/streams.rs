//! Calls that add one operation to a stream, and calls about streams and events themselves.

use super::parts::{Driver, DriverState};
use crate::copies::{AskedCopy, AskedFill, CopyPlaces};
use crate::keys::{OperationNumber, StreamKey};
use crate::launch::validation::LaunchRequest;
use crate::launch::{AskedLaunch, LaunchNeeds};
use crate::order::operations::Edge;
use crate::order::work::{Delivery, Work};
use crate::outcome::{CallOutcome, Caller, Failure, NOTHING, Outcome, no_stream, not_modelled};
use crate::wait::{Until, Wait};
use balar_host::call::Launch;
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::{ContextId, ProcessId};

impl Driver {
    /// A call that adds one operation to a stream. A synchronous one waits for it, another one for room.
    pub(super) fn stream_call(&mut self, caller: Caller, call: Call) -> CallOutcome {
        let Caller { thread, context } = caller;
        let stream = call.stream().unwrap_or_default();
        let key = self.state.processes.own(context).find_stream(context, stream)?;
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
        let DriverState { processes, order, .. } = &mut self.state;
        let range = processes.range_of(caller);
        let own = processes.own(context);
        let number = own.streams.push(key, work.in_range(range.as_ref()), &extra, &mut order.operations);
        if let Some(event) = event {
            order.shared_events.record(event, number, &mut own.events);
        }
        if waits { Ok(Outcome::Waits(Wait::operations(vec![number]))) } else { order.wait_for_room(context) }
    }

    /// The work of an asynchronous call when its turn has come, and the work that it waits for beyond the order of its stream.
    pub(super) fn work_of(
        &mut self,
        context: ContextId,
        key: StreamKey,
        delivery: Delivery,
        call: Call,
    ) -> Result<(Work, Vec<Edge>), Failure> {
        let DriverState { processes, memory, order, .. } = &mut self.state;
        let own = processes.own(context);
        let of_stream = own.streams.context(key);
        let work = match call {
            Call::Launch(launch) => self.launch(context, key, launch)?,
            Call::HostFunction { function, .. } => Work::HostFunction(function),
            Call::EventRecord { event, .. } => {
                let (of_event, of_stream) = (own.events.gpu(event)?, of_stream.gpu());
                if of_event != of_stream {
                    let text = format!("event {event} is of device {of_event}, its stream of {of_stream}");
                    return Err((CudaError::InvalidResourceHandle, text));
                }
                Work::Record(event)
            }
            Call::StreamWaitEvent { event, .. } => {
                let awaited = order.awaited(&own.events, event)?;
                return Ok((Work::Nothing, awaited.into_iter().map(Edge::Done).collect()));
            }
            Call::FreeAsync { pointer, .. } => memory.free_in_order(context.process(), pointer)?,
            Call::Prefetch { pointer, bytes, device, .. } => {
                memory.prefetch(context.process(), pointer, bytes, device)?
            }
            Call::Copy { .. } | Call::Memset { .. } => self.transfer(of_stream, delivery, call)?,
            other => return Err(not_modelled(&other)),
        };
        Ok((work, Vec::new()))
    }

    /// A kernel in a stream of its context.
    fn launch(&mut self, context: ContextId, key: StreamKey, launch: Launch) -> Result<Work, Failure> {
        let Driver { gpus, detail, code, state, effects } = self;
        let DriverState { launches, processes, memory, .. } = state;
        let own = processes.own(context);
        let of_stream = own.streams.context(key);
        let Launch { function, grid, block, shared_memory_bytes, stream, parameters, cooperative, .. } = launch;
        let (cluster, non_portable_cluster) = (launch.cluster, launch.non_portable_cluster);
        if of_stream != context {
            let text = format!("stream {stream} is of device {}, not {}", of_stream.gpu(), context.gpu());
            return Err((CudaError::InvalidResourceHandle, text));
        }
        let dynamic_shared_bytes = shared_memory_bytes;
        let request = LaunchRequest {
            grid,
            block,
            dynamic_shared_bytes,
            stream,
            parameters,
            cooperative,
            cluster,
            non_portable_cluster,
        };
        let (priority, window) = (own.streams.priority(key), launch.access_policy);
        let asked = AskedLaunch { context, function: &function, request, priority, window };
        let needs = LaunchNeeds { code, own, memory, gpu: &gpus[context.gpu()], detail, effects };
        launches.launch(asked, needs)
    }

    /// A copy or fill in a stream of this context.
    fn transfer(&mut self, context: ContextId, delivery: Delivery, call: Call) -> Result<Work, Failure> {
        let DriverState { processes, memory, copies, .. } = &mut self.state;
        let own = processes.own(context);
        let places = CopyPlaces {
            context,
            images: &own.images,
            memory,
            symbols: &self.code.symbols,
            gpus: self.gpus.len(),
            detail: self.detail.of_copy(&own.ranges),
        };
        match call {
            Call::Copy { destination, source, shape, .. } => {
                copies.copy(AskedCopy { destination, source, shape, delivery }, &places)
            }
            Call::Memset { pointer, value, shape, pitch, element_bytes, .. } => {
                places.fill(AskedFill { address: pointer, shape, pitches: pitch, value, element_bytes })
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// Streams and events themselves, and waiting for them.
    pub(super) fn order_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        let DriverState { processes, memory, order, .. } = &mut self.state;
        let process = context.process();
        let own = processes.own(context);
        match call {
            Call::StreamCreate { non_blocking, priority } => {
                let stream = own.streams.create(context, non_blocking, priority);
                Ok(Outcome::Returns(CallResult::Stream(stream)))
            }
            Call::StreamDestroy { stream } if own.streams.destroy(stream) => NOTHING,
            Call::StreamDestroy { stream } => Err(no_stream(stream)),
            Call::StreamSynchronize { stream } => {
                let key = own.find_stream(context, stream)?;
                let until = Until::Operations(own.streams.ends(key, &order.operations));
                Ok(Outcome::waits(until, memory.after_wait(process)))
            }
            Call::StreamQuery { stream } => {
                let key = own.find_stream(context, stream)?;
                if own.streams.ends(key, &order.operations).is_empty() {
                    return NOTHING;
                }
                Err((CudaError::NotReady, format!("stream {stream} has work to do")))
            }
            Call::EventCreate { timed } => Ok(Outcome::Returns(CallResult::Event(own.events.create(context, timed)))),
            Call::EventDestroy { event } => {
                let shared = own.events.destroy(event)?;
                order.shared_events.release(shared);
                NOTHING
            }
            Call::EventSynchronize { event } => {
                let awaited: Vec<OperationNumber> = order.awaited(&own.events, event)?.into_iter().collect();
                Ok(Outcome::waits(Until::Operations(awaited), memory.after_wait(process)))
            }
            Call::EventQuery { event } => match order.awaited(&own.events, event)? {
                None => NOTHING,
                Some(_) => Err((CudaError::NotReady, format!("event {event} is not done"))),
            },
            Call::EventElapsed { start, end } => {
                let picoseconds = own.events.elapsed(start, end, &order.operations)?;
                Ok(Outcome::Returns(CallResult::Elapsed { picoseconds }))
            }
            Call::DeviceSynchronize => {
                Ok(Outcome::waits(order.end_of_context(context), memory.after_synchronisation(process)))
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// A host function has run.
    pub(super) fn callback_done(&mut self, process: ProcessId, function: u64) -> CallOutcome {
        let operations = &mut self.state.order.operations;
        let Some(number) = operations.host_function(process, function) else {
            return Err((CudaError::InvalidValue, format!("no stream waits for host function {function}")));
        };
        operations.complete(number);
        NOTHING
    }
}
