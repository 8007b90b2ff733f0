//! How work begins, and what follows its end.

use super::parts::{Driver, DriverState};
use crate::effect::{Effect, MemoryChange};
use crate::launch::faults::failure_of;
use crate::memory::unified::Done;
use crate::order::work::{Delivery, Work};
use crate::process::context::ContextFailure;
use balar_host::CudaError;
use balar_host::call::ConditionalKind;
use balar_protocol::SimTime;
use balar_protocol::copy::CopyId;
use balar_protocol::cuda::{KernelFault, LaunchId};
use balar_protocol::managed::HostPages;
use std::sync::Arc;

impl Driver {
    /// Begins work that has nothing left to wait for. `now` is the time that recorded events will tell.
    pub fn begin(&mut self, now: SimTime) {
        self.state.processes.end_images(&self.state.order.operations, &mut self.effects);
        self.forget_ended();
        let Driver { state, effects, .. } = self;
        let DriverState { processes, memory, order, copies, program_ended, .. } = state;
        let operations = &mut order.operations;
        while let Some((number, context, work)) = operations.begin() {
            match work {
                Work::Kernel(launch) => effects.want(Effect::Launch(Arc::clone(launch))),
                Work::Copy(copy) => {
                    if !memory.unified.bring_for_copy(number, context, copy, effects) {
                        copies.begin(number, context, copy, effects);
                    }
                }
                Work::Prefetch(prefetch) => memory.unified.begin_prefetch(number, *prefetch, effects),
                Work::HostFunction(function) => {
                    let (process, function) = (context.process(), *function);
                    if *program_ended || processes.of(process).ended {
                        operations.complete(number);
                    } else {
                        effects.want(Effect::CallBack { process, function });
                    }
                }
                Work::Record(event) => {
                    let event = *event;
                    operations.complete(number);
                    // Events that processes share keep no time.
                    processes.own(context).events.recorded(event, number, now);
                }
                Work::Free(address) => {
                    let address = *address;
                    operations.complete(number);
                    memory.end(address, effects);
                }
                Work::Conditions(values) => {
                    let values = std::mem::take(values);
                    operations.complete(number);
                    for (address, value) in values {
                        let bytes = value.to_le_bytes().as_slice().into();
                        effects.change(MemoryChange::Write { address, bytes });
                    }
                }
                Work::Conditional(work) => {
                    effects.want(Effect::ReadCondition { operation: number, address: work.node.address });
                }
                Work::EndOfGraph(of) => {
                    let of = *of;
                    operations.complete(number);
                    // The graph is done that a conditional node has chosen.
                    let Some((_, Work::Conditional(work))) = operations.under_way(of) else { continue };
                    if work.node.kind == ConditionalKind::While {
                        effects.want(Effect::ReadCondition { operation: of, address: work.node.address });
                    } else {
                        operations.complete(of);
                    }
                }
                Work::Nothing => drop(operations.complete(number)),
            }
        }
    }

    /// Moves the effects since the last call of this function into `into`, in order.
    pub fn take_effects(&mut self, into: &mut Vec<Effect>) {
        self.state.memory.tell_reserved(into);
        self.effects.take(into);
    }

    /// A kernel is over.
    pub fn kernel_completed(&mut self, launch: LaunchId, fault: Option<KernelFault>) {
        let DriverState { processes, memory, order, .. } = &mut self.state;
        let Some((context, launch)) = order.operations.complete_kernel(launch) else { return };
        if launch.is_cooperative() {
            memory.end(launch.grid_workspace, &mut self.effects);
        }
        if let Some(fault) = fault {
            processes.fail(context, failure_of(&fault, launch.block), &mut order.operations, memory);
        }
    }

    /// A copy engine is done with a command. Gives the bytes that it brought for pageable memory, and who gets them.
    pub fn copy_completed(
        &mut self,
        id: CopyId,
        data: Option<Arc<[u8]>>,
        error: Option<Box<str>>,
    ) -> Option<(Delivery, Arc<[u8]>)> {
        let DriverState { processes, memory, order, copies, .. } = &mut self.state;
        let under_way = copies.take(id)?;
        let Some((_, Work::Copy(copy))) = order.operations.complete(under_way.number) else { return None };
        if let Some(error) = error {
            let failure = ContextFailure::new(CudaError::InvalidValue, error.into(), None);
            processes.fail(under_way.context, failure, &mut order.operations, memory);
            return None;
        }
        let data = data?;
        copies.moved.device_to_host += data.len() as u64;
        Some((copy.delivery, data))
    }

    /// The driver of unified memory has done its work of this number.
    pub fn managed_done(&mut self, id: u32) {
        let DriverState { memory, order, copies, .. } = &mut self.state;
        match memory.unified.done(id) {
            Some(Done::Prefetch(operation)) => drop(order.operations.complete(operation)),
            Some(Done::Copy(operation, context)) => {
                if let Some((_, Work::Copy(copy))) = order.operations.under_way(operation) {
                    copies.begin(operation, context, copy, &mut self.effects);
                }
            }
            None => {}
        }
    }

    /// The same of a touch, which gives pages.
    pub fn managed_touched(&mut self, id: u32, pages: Option<HostPages>) {
        self.state.memory.unified.touched(id, pages);
        self.managed_done(id);
    }

    /// The pages that a touch has given, once: `None` where nobody was asked for them.
    pub fn take_touched(&mut self, touch: Option<u32>) -> Option<Option<HostPages>> {
        self.state.memory.unified.take_touched(touch)
    }
}
