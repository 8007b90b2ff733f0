//! Managed memory where a driver of unified memory moves its pages: what that driver is told, and what it is waited for.
//!
//! Without one ([`DriverSettings::has_unified_memory`](crate::DriverSettings)) every page is resident wherever it is used: it is told
//! nothing, prefetches are places in the order of their streams, and the program's own accesses wait for nothing.

use crate::calls::{CallOutcome, NOTHING, Outcome, not_modelled};
use crate::effect::Effect;
use crate::order::work::{OperationNumber, Work};
use crate::wait::{Then, Until, Wait};
use crate::{Driver, Failure};
use balar_host::memory::MANAGED_BASE;
use balar_host::{Call, CudaError};
use balar_protocol::managed::{AdviceChange, ManagedMessage};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Advice and prefetches are about whole pages of the host's operating system, bytes.
const PAGE: u64 = 4096;

/// What the driver of unified memory was asked, and what it knows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UnifiedMemory {
    next: u32,
    /// By number: what is under way; the operation of a prefetch, none of what calls wait for.
    under_way: BTreeMap<u32, Option<OperationNumber>>,
    /// By GPU: bytes allocated otherwise, as it was told last.
    reserved: Vec<u64>,
}

impl UnifiedMemory {
    /// A number for what it is asked.
    fn begin(&mut self, operation: Option<OperationNumber>) -> u32 {
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.under_way.insert(id, operation);
        id
    }

    /// Is it over?
    pub fn is_over(&self, id: u32) -> bool {
        !self.under_way.contains_key(&id)
    }
}

/// A prefetch, as an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prefetch {
    pub address: u64,
    pub bytes: u64,
    /// A GPU, or `None` for the host.
    pub target: Option<u8>,
}

impl Driver {
    /// Tells the driver of unified memory something, where there is one.
    pub(crate) fn tell_unified_memory(&mut self, message: ManagedMessage) {
        if self.has_unified_memory {
            self.want(Effect::Managed(message));
        }
    }

    /// What has changed of the memory that is allocated otherwise: before what is done with it.
    pub(crate) fn tell_reserved(&mut self, into: &mut Vec<Effect>) {
        if !self.has_unified_memory {
            return;
        }
        let told = &mut self.state.unified_memory.reserved;
        told.resize(self.state.memories.len(), 0);
        for (gpu, (memory, told)) in self.state.memories.iter().zip(told).enumerate() {
            let bytes = memory.reserved();
            if std::mem::replace(told, bytes) != bytes {
                into.push(Effect::Managed(ManagedMessage::Reserved { gpu: gpu as u8, bytes }));
            }
        }
    }

    /// Advice, and what the program itself does with managed memory.
    pub(crate) fn managed_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        let process = context.process();
        match call {
            Call::Advise { pointer, bytes, advice } => {
                self.check_managed(process, pointer, bytes)?;
                let location = match advice {
                    AdviceChange::PreferredLocation(location) | AdviceChange::AccessedBy(location, _) => location,
                    AdviceChange::ReadMostly(_) | AdviceChange::NoPreferredLocation => None,
                };
                self.check_location(location.map(u32::from))?;
                let (address, bytes) = whole_pages(pointer, bytes);
                self.tell_unified_memory(ManagedMessage::Advise { address, bytes, advice });
                NOTHING
            }
            Call::TouchManaged { pointer, bytes, write } => {
                self.check_managed(process, pointer, bytes)?;
                Ok(self.touch(pointer, bytes, write, Then::Touched))
            }
            Call::WriteManaged { pointer, data } => {
                self.check_managed(process, pointer, data.len())?;
                let bytes = data.data().cloned().unwrap_or_default();
                Ok(self.touch(pointer, data.len(), true, Then::Write(pointer, bytes)))
            }
            Call::ReadManaged { pointer, bytes } => {
                self.check_managed(process, pointer, bytes)?;
                Ok(self.touch(pointer, bytes, false, Then::Read(pointer, bytes)))
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// The program's own access; `then` happens when its pages are where the host may access them.
    fn touch(&mut self, address: u64, bytes: u64, write: bool, then: Then) -> Outcome {
        if !self.has_unified_memory {
            return Outcome::Waits(Wait { until: Until::Operations(Vec::new()), then });
        }
        let id = self.state.unified_memory.begin(None);
        self.want(Effect::Managed(ManagedMessage::Touch { address, bytes, write, id }));
        Outcome::Waits(Wait { until: Until::Managed(id), then })
    }

    /// What a prefetch does in its stream: nothing where pages do not move.
    pub(crate) fn prefetch(
        &self,
        context: ContextId,
        pointer: u64,
        bytes: u64,
        target: Option<u32>,
    ) -> Result<Work, Failure> {
        self.check_location(target)?;
        self.check_managed(context.process(), pointer, bytes)?;
        if !self.has_unified_memory {
            return Ok(Work::Nothing);
        }
        let (address, bytes) = whole_pages(pointer, bytes);
        // There are fewer GPUs than a byte counts.
        Ok(Work::Prefetch(Prefetch { address, bytes, target: target.map(|gpu| gpu as u8) }))
    }

    /// Gives a prefetch to the driver of unified memory.
    pub(crate) fn begin_prefetch(&mut self, number: OperationNumber, prefetch: Prefetch) {
        let Prefetch { address, bytes, target } = prefetch;
        let id = self.state.unified_memory.begin(Some(number));
        self.want(Effect::Managed(ManagedMessage::Prefetch { address, bytes, target, id }));
    }

    /// What happens when the program has waited for a device: the driver of unified memory is waited for as well, where there is one and
    /// the process has managed memory.
    pub(crate) fn after_synchronisation(&self, process: ProcessId) -> Then {
        if self.has_unified_memory && self.state.window.has_managed(process) {
            Then::Synchronise
        } else {
            Then::Nothing
        }
    }

    /// The program has waited for all that its device does.
    pub(crate) fn synchronise_managed(&mut self) -> Outcome {
        let id = self.state.unified_memory.begin(None);
        self.want(Effect::Managed(ManagedMessage::Synchronise { id }));
        Outcome::Waits(Wait { until: Until::Managed(id), then: Then::Nothing })
    }

    /// The driver of unified memory is done with what it was asked under this number.
    pub fn managed_done(&mut self, id: u32) {
        if let Some(Some(operation)) = self.state.unified_memory.under_way.remove(&id) {
            self.state.operations.complete(operation);
        }
    }

    /// Refuses what is not wholly in one managed allocation of the process.
    fn check_managed(&self, process: ProcessId, pointer: u64, bytes: u64) -> Result<(), Failure> {
        if bytes > 0 && pointer >= MANAGED_BASE && self.state.window.contains(process, pointer, bytes) {
            return Ok(());
        }
        Err((CudaError::InvalidValue, format!("{bytes} bytes at {pointer:#x} are not managed memory")))
    }

    /// Refuses a GPU that there is not; the host is always there.
    fn check_location(&self, gpu: Option<u32>) -> Result<(), Failure> {
        match gpu.filter(|gpu| *gpu as usize >= self.gpus.len()) {
            Some(gpu) => Err((CudaError::InvalidDevice, format!("there is no device {gpu}"))),
            None => Ok(()),
        }
    }
}

/// The pages that hold a range: their first address, and their bytes.
fn whole_pages(address: u64, bytes: u64) -> (u64, u64) {
    let first = address & !(PAGE - 1);
    (first, (address + bytes).next_multiple_of(PAGE) - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_rounded_out_to_pages() {
        let expected =
            [((0, 1), (0, 4096)), ((4095, 2), (0, 8192)), ((4096, 4096), (4096, 4096)), ((8191, 1), (4096, 4096))];
        for ((address, bytes), pages) in expected {
            assert_eq!(whole_pages(address, bytes), pages, "{bytes} bytes at {address}");
        }
    }
}
