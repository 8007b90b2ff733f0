//! How contexts and processes end, and the things that end with them.

use super::parts::{Driver, DriverState};
use crate::effect::{Effect, MemoryChange};
use balar_protocol::{ContextId, ProcessId};

impl Driver {
    /// Everything of a process on a device ends; nothing of it is under way. A failed context works again.
    pub(super) fn reset_context(&mut self, context: ContextId) {
        let Driver { code, state, effects, .. } = self;
        let DriverState { processes, memory, order, .. } = state;
        let own = processes.own(context);
        for module in own.modules.of_context(context) {
            code.unload(module, own, memory, effects);
        }
        memory.end_context(context, effects);
        own.streams.destroy_all(context);
        let (handles, events) = (own.images.destroy_all(context), own.events.destroy_all(context));
        order.shared_events.release(events);
        for handle in handles {
            effects.change(MemoryChange::Image { process: context.process(), handle, image: None });
        }
        own.context(context).reset(context, effects);
    }

    /// A process has ended: no thread of it makes calls any more. Work of it that has begun is done first; where it was killed, its
    /// kernels end at once. Then everything that it had goes.
    pub fn end_process(&mut self, process: ProcessId, was_killed: bool) {
        let DriverState { processes, order, .. } = &mut self.state;
        if processes.get(process).is_none() {
            return;
        }
        processes.of(process).ended = true;
        for context in processes.contexts_of(process) {
            if was_killed {
                // What others wait for goes on: nobody is left to say otherwise.
                order.operations.drop_waiting(context);
                if order.operations.count(context) > 0 {
                    self.effects.want(Effect::Abort(context));
                }
            }
        }
        order.operations.end_host_functions(process);
        self.forget_ended();
    }

    /// Processes that have ended go when nothing of them is under way.
    pub(super) fn forget_ended(&mut self) {
        for process in self.state.processes.to_forget(&self.state.order.operations) {
            for context in self.state.processes.contexts_of(process) {
                self.reset_context(context);
            }
            self.state.memory.end_process(process, &mut self.effects);
            self.state.processes.forget(process);
        }
    }

    /// The program has ended: nobody is left to run host functions.
    pub fn program_ended(&mut self) {
        self.state.program_ended = true;
        for process in self.state.processes.numbers() {
            self.state.order.operations.end_host_functions(process);
        }
    }
}
