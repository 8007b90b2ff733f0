//! Managed memory where a driver of unified memory moves its pages: the messages to that driver, and the waits for it.
//!
//! A process that cannot tell its own accesses says so ([`Call::AssumeHostAccesses`](balar_host::Call)): its allocations are on the host
//! until GPUs ask for them, and again whenever it has waited for a device, a stream or an event.
//!
//! Without one ([`DriverSettings::has_unified_memory`](crate::DriverSettings)) every page is resident wherever it is used: it is told
//! nothing, prefetches are places in the order of their streams, and the program's own accesses wait for nothing.

use super::host_window::HostWindow;
use crate::effect::{Effect, Effects};
use crate::keys::OperationNumber;
use crate::order::work::{Prefetch, Transfer, Work};
use crate::outcome::Outcome;
use crate::wait::{Then, Until};
use balar_host::memory::MANAGED_BASE;
use balar_protocol::managed::{AdviceChange, HostPages, ManagedMessage};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Advice and prefetches are about whole pages of the host's operating system, bytes.
const PAGE: u64 = 4096;

/// The questions to the driver of unified memory, and its knowledge.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UnifiedMemory {
    /// Is there one?
    exists: bool,
    next: u32,
    /// Questions that are under way, with their askers, by number.
    under_way: BTreeMap<u32, Asker>,
    /// Copies and fills whose pages are brought first: how many ranges are still to come.
    copies: BTreeMap<OperationNumber, (ContextId, u32)>,
    /// The results of touches that are over, by number.
    touched: BTreeMap<u32, Option<HostPages>>,
    /// Bytes allocated otherwise, as it was told last, by GPU.
    reserved: Vec<u64>,
    /// Processes that do not tell their own accesses.
    assuming: BTreeSet<ProcessId>,
}

/// For whom the driver of unified memory does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Asker {
    /// A call that waits for it.
    Call,
    /// This prefetch, which is over with it.
    Prefetch(OperationNumber),
    /// This copy or fill, which begins when all its pages are there.
    Copy(OperationNumber),
}

/// The next step when the driver of unified memory is done with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// A prefetch is over.
    Prefetch(OperationNumber),
    /// A copy or fill of a context begins.
    Copy(OperationNumber, ContextId),
}

impl UnifiedMemory {
    /// It was asked for nothing. `exists`: is there a driver of unified memory?
    pub fn new(exists: bool) -> UnifiedMemory {
        UnifiedMemory { exists, ..UnifiedMemory::default() }
    }

    /// Is there a driver of unified memory?
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// A number for a question.
    fn begin(&mut self, asker: Asker) -> u32 {
        let id = self.next;
        self.next = id.wrapping_add(1);
        self.under_way.insert(id, asker);
        id
    }

    /// Is it over?
    pub fn is_over(&self, id: u32) -> bool {
        !self.under_way.contains_key(&id)
    }

    /// Tells the driver of unified memory something, where there is one.
    fn tell(&self, message: ManagedMessage, effects: &mut Effects) {
        if self.exists {
            effects.want(Effect::Managed(message));
        }
    }

    /// Tells changes of the memory that is allocated otherwise; `reserved`: the bytes of each GPU's.
    pub fn tell_reserved(&mut self, reserved: impl ExactSizeIterator<Item = u64>, into: &mut Vec<Effect>) {
        if !self.exists {
            return;
        }
        self.reserved.resize(reserved.len(), 0);
        for (gpu, (bytes, told)) in reserved.zip(&mut self.reserved).enumerate() {
            if std::mem::replace(told, bytes) != bytes {
                into.push(Effect::Managed(ManagedMessage::Reserved { gpu: gpu as u8, bytes }));
            }
        }
    }

    /// A managed allocation begins.
    pub fn allocated(&self, process: ProcessId, address: u64, bytes: u64, effects: &mut Effects) {
        self.tell(ManagedMessage::Allocate { address, bytes }, effects);
        if self.assuming.contains(&process) {
            self.tell(ManagedMessage::AssumeHostAccesses { address, process }, effects);
        }
    }

    /// A managed allocation ends.
    pub fn freed(&self, address: u64, effects: &mut Effects) {
        self.tell(ManagedMessage::Free { address }, effects);
    }

    /// Advice on managed memory.
    pub fn advise(&self, pointer: u64, bytes: u64, advice: AdviceChange, effects: &mut Effects) {
        let (address, bytes) = whole_pages(pointer, bytes);
        self.tell(ManagedMessage::Advise { address, bytes, advice }, effects);
    }

    /// A process does not tell its own accesses.
    pub fn assume_host_accesses(&mut self, process: ProcessId, window: &HostWindow, effects: &mut Effects) {
        self.assuming.insert(process);
        for address in window.managed_of_process(process) {
            self.tell(ManagedMessage::AssumeHostAccesses { address, process }, effects);
        }
    }

    /// The program's own access. `then` makes the next step of its number, for the time when its pages are where the host may access them.
    pub fn touch(
        &mut self,
        (address, bytes): (u64, u64),
        write: bool,
        effects: &mut Effects,
        then: impl FnOnce(Option<u32>) -> Then,
    ) -> Outcome {
        if !self.exists {
            return Outcome::waits(Until::Operations(Vec::new()), then(None));
        }
        let id = self.begin(Asker::Call);
        effects.want(Effect::Managed(ManagedMessage::Touch { address, bytes, write, id }));
        Outcome::waits(Until::Managed(id), then(Some(id)))
    }

    /// The pages that a touch has given, once: `None` where nobody was asked for them.
    pub fn take_touched(&mut self, touch: Option<u32>) -> Option<Option<HostPages>> {
        self.touched.remove(&touch?)
    }

    /// The work of a prefetch in its stream: nothing where pages do not move.
    pub fn prefetch(&self, pointer: u64, bytes: u64, target: Option<u32>) -> Work {
        if !self.exists {
            return Work::Nothing;
        }
        let (address, bytes) = whole_pages(pointer, bytes);
        // There are fewer GPUs than a byte counts.
        Work::Prefetch(Prefetch { address, bytes, target: target.map(|gpu| gpu as u8) })
    }

    /// Gives a prefetch to the driver of unified memory.
    pub fn begin_prefetch(&mut self, number: OperationNumber, prefetch: Prefetch, effects: &mut Effects) {
        let Prefetch { address, bytes, target } = prefetch;
        let id = self.begin(Asker::Prefetch(number));
        effects.want(Effect::Managed(ManagedMessage::Prefetch { address, bytes, target, id }));
    }

    /// Brings the pages of a copy's or fill's managed ends to the GPU whose engine does it. Is there any such end? Then the copy begins
    /// when they are there.
    pub fn bring_for_copy(
        &mut self,
        number: OperationNumber,
        context: ContextId,
        copy: &Transfer,
        effects: &mut Effects,
    ) -> bool {
        if !self.exists {
            return false;
        }
        let ends = copy.operation.destination().into_iter().chain(copy.operation.source());
        let managed = ends.filter(|rows| rows.address >= MANAGED_BASE);
        let ranges = managed.filter_map(|rows| Some((rows.address, rows.span()?))).filter(|(_, bytes)| *bytes > 0);
        // There are fewer GPUs than a byte counts.
        let target = Some(copy.device as u8);
        let mut count = 0;
        for (address, bytes) in ranges {
            let (address, bytes) = whole_pages(address, bytes);
            let id = self.begin(Asker::Copy(number));
            effects.want(Effect::Managed(ManagedMessage::Prefetch { address, bytes, target, id }));
            count += 1;
        }
        if count > 0 {
            self.copies.insert(number, (context, count));
        }
        count > 0
    }

    /// The next step when the program has waited for a device: a wait for the driver of unified memory as well, where there is one and the
    /// process has managed memory.
    pub fn after_synchronisation(&self, process: ProcessId, window: &HostWindow) -> Then {
        if self.exists && window.has_managed(process) { Then::Synchronise } else { Then::Nothing }
    }

    /// The same of a stream or an event: pages come back then only to a process that does not tell of its accesses.
    pub fn after_wait(&self, process: ProcessId, window: &HostWindow) -> Then {
        if self.assuming.contains(&process) { self.after_synchronisation(process, window) } else { Then::Nothing }
    }

    /// The program has waited for all that its device does.
    pub fn synchronise(&mut self, process: ProcessId, effects: &mut Effects) -> Outcome {
        let id = self.begin(Asker::Call);
        effects.want(Effect::Managed(ManagedMessage::Synchronise { id, process }));
        Outcome::waits(Until::Managed(id), Then::Nothing)
    }

    /// The driver of unified memory has answered the question of this number. Gives the next step.
    pub fn done(&mut self, id: u32) -> Option<Done> {
        match self.under_way.remove(&id)? {
            Asker::Call => None,
            Asker::Prefetch(operation) => Some(Done::Prefetch(operation)),
            Asker::Copy(operation) => {
                let (context, left) = self.copies.get_mut(&operation)?;
                *left -= 1;
                if *left > 0 {
                    return None;
                }
                let context = *context;
                self.copies.remove(&operation);
                Some(Done::Copy(operation, context))
            }
        }
    }

    /// A touch has given pages; it is done then.
    pub fn touched(&mut self, id: u32, pages: Option<HostPages>) {
        self.touched.insert(id, pages);
    }

    /// A process is gone.
    pub fn forget(&mut self, process: ProcessId) {
        self.assuming.remove(&process);
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
