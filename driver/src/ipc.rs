//! Memory and events that processes share (`cudaIpc*`).
//!
//! All processes of a node have one address space, so memory that is opened lies where its owner has it. It is its owner's alone to
//! free: when it ends, it ends for all.

use crate::allocator::DeviceAllocator;
use crate::calls::{CallOutcome, Outcome};
use crate::effect::MemoryChange;
use crate::order::events::Record;
use crate::order::work::OperationNumber;
use crate::wait::{Then, Until, Wait};
use crate::{Driver, Failure};
use balar_host::call::IpcCall;
use balar_host::memory::{Place, place_of};
use balar_host::{CallResult, CudaError};
use balar_protocol::{ContextId, ProcessId, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Memory of other processes that a process has opened, by first address: how many times.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Imports(BTreeMap<u64, u32>);

impl Imports {
    /// Is the allocation that begins there open?
    pub fn holds(&self, base: u64) -> bool {
        self.0.contains_key(&base)
    }
}

/// Events that several processes may know, by handle.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SharedEvents {
    events: BTreeMap<u64, SharedEvent>,
    last: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct SharedEvent {
    /// Whose it was first.
    context: ContextId,
    record: Option<Record>,
    /// Processes' events that are this one.
    references: u32,
}

impl SharedEvents {
    /// The last record of an event.
    pub fn record_of(&self, handle: u64) -> Option<Record> {
        self.events.get(&handle)?.record
    }

    fn add(&mut self, context: ContextId, record: Option<Record>) -> u64 {
        self.last += 1;
        self.events.insert(self.last, SharedEvent { context, record, references: 1 });
        self.last
    }
}

impl Driver {
    /// From now on an event of a process stands for this operation.
    pub(crate) fn record_event(&mut self, process: ProcessId, event: u32, operation: OperationNumber) {
        if let Some(handle) = self.process(process).events.record(event, operation)
            && let Some(shared) = self.state.shared_events.events.get_mut(&handle)
        {
            shared.record = Some(Record::of(operation));
        }
    }

    /// The operation of an event's record is done. Events that processes share keep no time.
    pub(crate) fn event_recorded(&mut self, process: ProcessId, event: u32, operation: OperationNumber, now: SimTime) {
        self.process(process).events.recorded(event, operation, now);
    }

    /// The operation that an event of a process stands for and that is not done; `None` where there is nothing to wait for.
    pub(crate) fn awaited(&mut self, process: ProcessId, event: u32) -> Result<Option<OperationNumber>, Failure> {
        let record = match self.process(process).events.record_of(event)? {
            Ok(record) => record,
            Err(handle) => self.state.shared_events.record_of(handle),
        };
        let operation = record.map(|record| record.operation);
        Ok(operation.filter(|&operation| self.state.operations.is_pending(operation)))
    }

    /// Processes' events that were these have ended.
    pub(crate) fn release_events(&mut self, handles: impl IntoIterator<Item = u64>) {
        for handle in handles {
            if let Some(event) = self.state.shared_events.events.get_mut(&handle) {
                event.references -= 1;
                if event.references == 0 {
                    self.state.shared_events.events.remove(&handle);
                }
            }
        }
    }

    /// A call about what processes share.
    pub(crate) fn ipc_call(&mut self, context: ContextId, call: IpcCall) -> CallOutcome {
        match call {
            IpcCall::MemoryHandle { pointer } => {
                let allocation = self.device_memory(pointer).and_then(|memory| memory.allocation_of(pointer));
                match allocation {
                    Some((base, _, owner)) if owner == context.process() => {
                        Ok(Outcome::Returns(CallResult::Object(base)))
                    }
                    _ => Err(invalid(format!("no device memory of this process is at {pointer:#x}"))),
                }
            }
            IpcCall::OpenMemory { handle } => self.open_memory(context, handle),
            IpcCall::CloseMemory { pointer } => {
                if !self.own(context).imports.holds(pointer) {
                    return Err(invalid(format!("no memory of another process was opened at {pointer:#x}")));
                }
                let until = Until::ProcessBefore(context.process(), self.state.operations.next());
                Ok(Outcome::Waits(Wait { until, then: Then::Close(pointer) }))
            }
            IpcCall::EventHandle { event } => {
                let handle = match self.own(context).events.record_of(event)? {
                    Err(handle) => handle,
                    Ok(record) => {
                        self.own(context).events.check_shareable(event)?;
                        let handle = self.state.shared_events.add(context, record);
                        self.own(context).events.set_shared(event, handle);
                        handle
                    }
                };
                Ok(Outcome::Returns(CallResult::Object(handle)))
            }
            IpcCall::OpenEvent { handle } => {
                let Some(shared) = self.state.shared_events.events.get_mut(&handle) else {
                    return Err((CudaError::InvalidResourceHandle, format!("no event has the handle {handle}")));
                };
                if shared.context.process() == context.process() {
                    return Err(own_handle());
                }
                shared.references += 1;
                let of = ContextId::new(context.process(), shared.context.gpu());
                let event = self.own(context).events.import(of, handle);
                Ok(Outcome::Returns(CallResult::Event(event)))
            }
        }
    }

    fn open_memory(&mut self, context: ContextId, base: u64) -> CallOutcome {
        let process = context.process();
        let owner = self.device_memory(base).and_then(|memory| memory.owner(base));
        match owner {
            None => return Err(invalid(format!("no device memory has the handle {base:#x}"))),
            Some(owner) if owner == process => return Err(own_handle()),
            Some(_) => {}
        }
        *self.own(context).imports.0.entry(base).or_default() += 1;
        self.change(MemoryChange::Share { address: base, process, enabled: true });
        // As with `cudaIpcMemLazyEnablePeerAccess`, which is the one flag that there is.
        if let Place::Device(gpu) = place_of(base)
            && gpu as usize != context.gpu()
            && self.context(context).peers.insert(gpu)
        {
            self.change(MemoryChange::Peer { context, peer: gpu as usize, enabled: true });
        }
        Ok(Outcome::Returns(CallResult::Pointer(base)))
    }

    /// Memory that a process has opened is closed once.
    pub(crate) fn close_memory(&mut self, process: ProcessId, base: u64) {
        let imports = &mut self.process(process).imports.0;
        // Another thread may have closed it meanwhile.
        let Some(count) = imports.get_mut(&base) else { return };
        *count -= 1;
        if *count == 0 {
            imports.remove(&base);
            self.change(MemoryChange::Share { address: base, process, enabled: false });
        }
    }

    /// All that a process has opened is closed.
    pub(crate) fn close_imports(&mut self, process: ProcessId) {
        for address in std::mem::take(&mut self.process(process).imports.0).into_keys() {
            self.change(MemoryChange::Share { address, process, enabled: false });
        }
    }

    /// An allocation has ended: nobody has it open any more.
    pub(crate) fn end_imports_of(&mut self, base: u64) {
        for process in self.state.processes.values_mut() {
            process.imports.0.remove(&base);
        }
    }

    /// What of the memory that has this address is whose.
    fn device_memory(&self, address: u64) -> Option<&DeviceAllocator> {
        let Place::Device(gpu) = place_of(address) else { return None };
        self.state.memories.get(gpu as usize)
    }
}

fn invalid(text: String) -> Failure {
    (CudaError::InvalidValue, text)
}

/// The process that a handle is from cannot open it (`cudaErrorDeviceUninitialized`, as CUDA has it).
fn own_handle() -> Failure {
    (CudaError::DeviceUninitialized, "a handle is for other processes than its own".to_owned())
}
