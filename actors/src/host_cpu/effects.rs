//! The driver's effects, carried out with a time and by way of ports.

use super::HostCpu;
use crate::engine::Outbox;
use crate::memory::{Bounds, WriteLog};
use balar_driver::{Effect, MemoryChange};
use balar_protocol::copy::{CopyId, CopyMessage, CopyOperation};
use balar_protocol::cuda::CudaMessage;
use balar_protocol::{ContextId, Detail, Payload, SimTime};

impl HostCpu {
    /// Carries out the driver's effects, at `now`.
    pub(super) fn carry_out(&mut self, now: SimTime, out: &mut Outbox) {
        let mut effects = std::mem::take(&mut self.effects);
        self.driver.take_effects(&mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Memory(change) => apply(change, now, &mut self.writer, self.costs.bounds),
                Effect::Launch(launch) => {
                    let operation = self.driver.operation_of_launch(launch.id);
                    self.activity.kernel_begins(now, operation, &launch);
                    self.command(launch.context, CudaMessage::Launch(launch), now, out);
                }
                Effect::Copy { gpu, id, operation, detail: Detail::Functional } => {
                    self.copy_begins(now, gpu, id, &operation);
                    self.copy_at_once(now, id, &operation);
                }
                Effect::Copy { gpu, id, operation, detail: Detail::Timed } => {
                    self.copy_begins(now, gpu, id, &operation);
                    let message = CopyMessage::Command(Box::new((id, operation)));
                    out.send(self.ports[gpu].data, now, Payload::Copy(message));
                }
                Effect::Managed(message) => {
                    if let Some(port) = self.managed_port {
                        out.send(port, now, Payload::Managed(message));
                    }
                }
                Effect::ReadCondition { operation, address } => self.condition_wanted(now, operation, address),
                Effect::Reset(context) => self.command(context, CudaMessage::Reset(context), now, out),
                Effect::Abort(context) => self.command(context, CudaMessage::Abort(context), now, out),
                Effect::CallBack { process, function } => {
                    if let Some(host) = &mut self.host {
                        host.call_back(process, function);
                        self.ask_at = Some(now);
                    }
                }
                Effect::Tell(process, words) => {
                    if let Some(host) = &mut self.host {
                        host.printed(process, &[], format!("{words}\n").as_bytes());
                    }
                }
            }
        }
        self.effects = effects;
    }

    /// Notes that a copy is given to an engine.
    fn copy_begins(&mut self, now: SimTime, gpu: usize, id: CopyId, operation: &CopyOperation) {
        let copy = self.driver.copy_under_way(id);
        self.activity.copy_begins(now, (gpu, id), copy.map(|copy| copy.number), operation);
        if let Some(copy) = copy {
            self.spans.copy_begins(now, (gpu, id), copy, operation);
        }
    }

    /// Sends a message to the CTA scheduler of a context's GPU.
    fn command(&self, context: ContextId, message: CudaMessage, now: SimTime, out: &mut Outbox) {
        out.send(self.ports[context.gpu()].command, now, Payload::Cuda(message));
    }
}

/// Logs a change of memory at `time`.
pub fn apply(change: MemoryChange, time: SimTime, log: &mut WriteLog, bounds: Bounds) {
    match change {
        MemoryChange::Map { process, address, bytes } => log.map_for(process, time, address, bytes, bounds),
        MemoryChange::Open { address, bytes, owner, gpus } => log.map_reserved(time, address, bytes, owner, gpus),
        MemoryChange::Unmap { address } => log.unmap(time, address),
        MemoryChange::Write { address, bytes } => log.write(time, address, &bytes, 0..bytes.len()),
        MemoryChange::Zero { address, bytes } => log.zero(time, address, bytes),
        MemoryChange::Copy { destination, source, bytes } => log.copy(time, destination, source, bytes),
        MemoryChange::Share { address, process, enabled } => log.share(time, address, process, enabled),
        MemoryChange::Peer { context, peer, enabled } => log.set_peer(time, context, peer, enabled),
        MemoryChange::Heap { context, address, bytes } => log.set_heap(time, context, address, bytes),
        MemoryChange::LaunchPool { context, address, bytes } => log.set_launch_pool(time, context, address, bytes),
        MemoryChange::PrintCapacity { context, bytes } => log.set_print_capacity(time, context, bytes),
        MemoryChange::Image { process, handle, image } => log.set_image(time, process, handle, image),
    }
}
