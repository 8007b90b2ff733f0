//! What the driver wants done, with a time and by way of ports.

use super::HostCpu;
use crate::engine::Outbox;
use crate::memory::{Bounds, WriteLog};
use balar_driver::{Effect, MemoryChange};
use balar_protocol::copy::CopyMessage;
use balar_protocol::cuda::CudaMessage;
use balar_protocol::{Payload, SimTime};

impl HostCpu {
    /// Does what the driver wants done, at `now`.
    pub(super) fn carry_out(&mut self, now: SimTime, out: &mut Outbox) {
        let mut effects = std::mem::take(&mut self.effects);
        self.driver.take_effects(&mut effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Memory(change) => apply(change, now, &mut self.writer, self.costs.bounds),
                Effect::Launch { gpu, launch } => {
                    out.send(self.ports[gpu].command, now, Payload::Cuda(CudaMessage::Launch(launch)));
                }
                Effect::Copy { gpu, id, operation } => {
                    let message = CopyMessage::Command(Box::new((id, operation)));
                    out.send(self.ports[gpu].data, now, Payload::Copy(message));
                }
                Effect::Reset { gpu } => out.send(self.ports[gpu].command, now, Payload::Cuda(CudaMessage::Reset)),
                Effect::CallBack { function } => {
                    if let Some(host) = &mut self.host {
                        host.call_back(function);
                        self.ask_at = Some(now);
                    }
                }
                Effect::Tell(words) => {
                    if let Some(host) = &mut self.host {
                        host.printed(&[], format!("{words}\n").as_bytes());
                    }
                }
            }
        }
        self.effects = effects;
    }
}

/// Logs a change of memory at `time`.
pub fn apply(change: MemoryChange, time: SimTime, log: &mut WriteLog, bounds: Bounds) {
    match change {
        MemoryChange::Map { address, bytes } => log.map(time, address, bytes, bounds),
        MemoryChange::Open { address, bytes, owner, gpus } => log.map_reserved(time, address, bytes, owner, gpus),
        MemoryChange::Unmap { address } => log.unmap(time, address),
        MemoryChange::Write { address, bytes } => log.write(time, address, &bytes, 0..bytes.len()),
        MemoryChange::Copy { destination, source, bytes } => log.copy(time, destination, source, bytes),
        MemoryChange::Peer { gpu, peer, enabled } => log.set_peer(time, gpu, peer, enabled),
        MemoryChange::Heap { gpu, address, bytes } => log.set_heap(time, gpu, address, bytes),
        MemoryChange::PrintCapacity { gpu, bytes } => log.set_print_capacity(time, gpu, bytes),
        MemoryChange::Image { handle, image } => log.set_image(time, handle, image),
    }
}
