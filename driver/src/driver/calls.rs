//! The way of each CUDA call to the part that performs it.

use super::parts::{Driver, DriverState};
use crate::effect::MemoryChange;
use crate::outcome::{CallOutcome, Caller, NOTHING, Outcome, not_modelled};
use crate::process::Process;
use crate::process::images::ImageNeeds;
use crate::wait::Then;
use balar_host::call::IpcCall;
use balar_host::{Call, CallResult, CudaError};
use balar_protocol::ContextId;

impl Driver {
    /// Performs a thread's call, once its host part is over. The call may have to wait; the work that it waits for may be over already.
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
            Call::DeviceReset => Ok(Outcome::waits(self.state.order.end_of_context(context), Then::Reset)),
            _ if self.state.processes.has_failed(context) => Ok(Outcome::Returns(self.sticky_error(context))),
            call => self.perform(caller, call),
        };
        self.noted(context, outcome)
    }

    /// The work that a call waited for is over, and the call goes on ([`Then::goes_on`]).
    pub fn goes_on(&mut self, caller: Caller, then: Then) -> Result<Outcome, CudaError> {
        let context = caller.context;
        let outcome = match then {
            Then::Again(call) => self.perform(caller, *call),
            Then::Synchronise if !self.state.processes.has_failed(context) => {
                Ok(self.state.memory.unified.synchronise(context.process(), &mut self.effects))
            }
            then => Ok(Outcome::Returns(self.finish(context, then).unwrap_or(CallResult::None))),
        };
        self.noted(context, outcome)
    }

    fn noted(&mut self, context: ContextId, outcome: CallOutcome) -> Result<Outcome, CudaError> {
        outcome.map_err(|failure| {
            let error = failure.0;
            self.state.processes.own(context).last_error = Some(failure);
            error
        })
    }

    fn sticky_error(&mut self, context: ContextId) -> CallResult {
        self.state.processes.sticky_error(context, &mut self.effects)
    }

    /// The work that a call waited for is over. Gives the error that the call returns, if its context has failed.
    pub fn finish(&mut self, context: ContextId, then: Then) -> Option<CallResult> {
        let reset = matches!(then, Then::Reset);
        let Driver { code, state, effects, .. } = self;
        let DriverState { processes, memory, .. } = state;
        let process = context.process();
        match then {
            Then::Nothing | Then::Again(_) | Then::Synchronise | Then::Touched(_) | Then::Read(..) => {}
            Then::Write(address, bytes) => effects.change(MemoryChange::Write { address, bytes }),
            Then::Free(address) => memory.end(address, effects),
            Then::Unmap(pointer, bytes) => memory.unmap(process, pointer, bytes, effects),
            Then::Close(pointer) => memory.close(process, pointer, effects),
            Then::Unload(module) => code.unload(module, processes.own(context), memory, effects),
            Then::Reset => self.reset_context(context),
        }
        (self.state.processes.has_failed(context) && !reset).then(|| self.sticky_error(context))
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
            | Call::SetDynamicSharedLimit { .. }
            | Call::SetPreferredCarveOut { .. } => self.module_call(context, call),
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
            | Call::AssumeHostAccesses => self.state.memory.managed_call(context.process(), call, &mut self.effects),
            Call::VirtualMemory(call) => {
                let DriverState { memory, order, .. } = &mut self.state;
                memory.virtual_memory_call(context, call, order.end_of_process(context.process()), &mut self.effects)
            }
            Call::Ipc(call) => self.ipc_call(context, call),
            Call::Profiler(call) => {
                self.state.processes.profiler_call(caller, call);
                NOTHING
            }
            Call::SetLimit { limit, bytes } => {
                let DriverState { processes, memory, .. } = &mut self.state;
                self.code.limits_change();
                let gpu = &self.gpus[context.gpu()];
                processes.context(context).set_limit((context, gpu), limit, bytes, memory, &mut self.effects)?;
                NOTHING
            }
            Call::GetLimit { limit } => {
                let gpu = &self.gpus[context.gpu()];
                Ok(Outcome::Returns(CallResult::Size(self.state.processes.context(context).limit(limit, gpu))))
            }
            Call::ResetPersistingL2 => {
                self.state.launches.residency.reset(context.gpu());
                NOTHING
            }
            Call::PeerAccess { peer, enabled } => {
                let gpus = self.gpus.len();
                let own = self.state.processes.context(context);
                own.peer_access(context, peer, enabled, gpus, &mut self.effects)?;
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

    /// Modules and their kernels.
    fn module_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        let Driver { code, state, effects, .. } = self;
        let DriverState { processes, memory, order, .. } = state;
        let own = processes.own(context);
        match call {
            Call::ModuleLoad { images, name } => {
                code.load(context, (&images, &name), own, memory, effects).map(Outcome::Returns)
            }
            Call::ModuleUnload { module } => {
                own.modules.check(context, module)?;
                Ok(Outcome::waits(order.end_of_context(context), Then::Unload(module)))
            }
            Call::FunctionAttributes { function } => {
                let attributes = code.attributes(context, &function, own, effects)?;
                Ok(Outcome::Returns(CallResult::Attributes(attributes)))
            }
            Call::SetDynamicSharedLimit { function, bytes } => {
                code.set_dynamic_shared_limit(context, function, bytes, own, effects)?;
                NOTHING
            }
            Call::SetPreferredCarveOut { function, percent } => {
                code.set_preferred_carve_out(context, function, percent, own, effects)?;
                NOTHING
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// Arrays, textures and surfaces.
    fn image_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        let Driver { code, state, effects, .. } = self;
        let DriverState { processes, memory, order, .. } = state;
        let Process { images, modules, .. } = processes.own(context);
        if let Call::ImageDestroy { object } = call {
            // The call does not wait for kernels launched before.
            images.destroy_object(object, order.operations.next())?;
            processes.end_images(&order.operations, effects);
            return NOTHING;
        }
        images.call(context, call, ImageNeeds { modules, symbols: &code.symbols, memory, order, effects })
    }

    /// Device memory, pinned and managed memory.
    fn memory_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        let DriverState { processes, memory, order, .. } = &mut self.state;
        if let Call::MallocAsync { stream, .. } = call {
            processes.own(context).find_stream(context, stream)?;
        }
        memory.call(context, call, order, processes.has_ended(), &mut self.effects)
    }

    /// Memory and events that processes share (`cudaIpc*`).
    fn ipc_call(&mut self, context: ContextId, call: IpcCall) -> CallOutcome {
        let DriverState { processes, memory, order, .. } = &mut self.state;
        let own = processes.own(context);
        let process = context.process();
        match call {
            IpcCall::MemoryHandle { pointer } => {
                Ok(Outcome::Returns(CallResult::Object(memory.handle_of(process, pointer)?)))
            }
            IpcCall::OpenMemory { handle } => {
                let gpu = memory.open(process, handle, &mut self.effects)?;
                // As with `cudaIpcMemLazyEnablePeerAccess`, which is the one flag that there is.
                if let Some(gpu) = gpu.filter(|gpu| *gpu as usize != context.gpu())
                    && own.context(context).peers.insert(gpu)
                {
                    self.effects.change(MemoryChange::Peer { context, peer: gpu as usize, enabled: true });
                }
                Ok(Outcome::pointer(handle))
            }
            IpcCall::CloseMemory { pointer } => {
                memory.check_open(process, pointer)?;
                Ok(Outcome::waits(order.end_of_process(process), Then::Close(pointer)))
            }
            IpcCall::EventHandle { event } => {
                let handle = order.shared_events.handle_of(context, event, &mut own.events)?;
                Ok(Outcome::Returns(CallResult::Object(handle)))
            }
            IpcCall::OpenEvent { handle } => {
                let event = order.shared_events.open(context, handle, &mut own.events)?;
                Ok(Outcome::Returns(CallResult::Event(event)))
            }
        }
    }
}
