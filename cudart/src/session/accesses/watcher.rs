//! The thread that answers faults, and what it knows of managed memory.

use super::PAGE;
use super::spans::Spans;
use super::userfault::{Fault, Userfault};
use crate::session::connection::{self, Connection};
use crate::session::{callbacks, process, thread};
use balar_host::call::{HostPages, VariableKind};
use balar_host::memory::BASE;
use balar_host::tunnel::Role;
use balar_host::{Call, CallResult};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mm::Advice;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// Managed memory whose accesses are seen.
#[derive(Debug)]
pub struct Watcher {
    userfault: Userfault,
    memory: Mutex<Memory>,
}

/// An allocation.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    /// The first address after its pages.
    end: u64,
    /// The program's number of the device that was current.
    device: u32,
}

#[derive(Debug, Default)]
struct Memory {
    /// By first address.
    allocations: BTreeMap<u64, Allocation>,
    /// Managed variables of each module.
    modules: BTreeMap<u32, Vec<u64>>,
    /// What is mapped. It is noted before it becomes true.
    mapped: Spans,
}

impl Memory {
    /// The pages of the allocation that holds an address.
    fn around(&self, address: u64) -> Option<Range<u64>> {
        let (&start, allocation) = self.allocations.range(..=address).next_back()?;
        (address < allocation.end).then_some(start..allocation.end)
    }
}

impl Watcher {
    /// Starts the thread, and waits until the simulator knows it.
    pub fn start(userfault: Userfault) -> std::io::Result<&'static Watcher> {
        static WATCHER: OnceLock<Watcher> = OnceLock::new();
        let watcher = WATCHER.get_or_init(|| Watcher { userfault, memory: Mutex::default() });
        let (sender, receiver) = sync_channel(1);
        let thread = std::thread::Builder::new().name("managed memory".to_owned());
        callbacks::without_signals(|| {
            thread.spawn(move || {
                // So that the simulator waits for it while it answers: without this, it only waits less exactly.
                let _known = Connection::open(Role::Accesses);
                let _ = sender.send(());
                watcher.run();
            })
        })?;
        let _ = receiver.recv();
        Ok(watcher)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call has succeeded: managed memory may have begun or ended with it.
    pub fn called(&self, device: u32, call: &Call, result: &CallResult) {
        match (call, result) {
            (Call::MallocManaged { bytes }, CallResult::Pointer(start)) => self.begin(*start, *bytes, device),
            (Call::Free { pointer }, _) => self.end(*pointer),
            (Call::ModuleLoad { .. }, CallResult::Module { module, variables, .. }) => {
                let managed = variables.iter().filter(|variable| variable.kind == VariableKind::Managed);
                let managed: Vec<(u64, u64)> = managed.map(|variable| (variable.address, variable.bytes)).collect();
                for &(start, bytes) in &managed {
                    self.begin(start, bytes, device);
                }
                if !managed.is_empty() {
                    self.memory().modules.insert(*module, managed.into_iter().map(|(start, _)| start).collect());
                }
            }
            (Call::ModuleUnload { module }, _) => {
                let ended = self.memory().modules.remove(module).unwrap_or_default();
                ended.into_iter().for_each(|start| self.end(start));
            }
            (Call::DeviceReset, _) => {
                let its = |(start, allocation): (&u64, &Allocation)| (allocation.device == device).then_some(*start);
                let ended: Vec<u64> = self.memory().allocations.iter().filter_map(its).collect();
                ended.into_iter().for_each(|start| self.end(start));
            }
            _ => {}
        }
    }

    fn begin(&self, start: u64, bytes: u64, device: u32) {
        let Some(end) = start.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(PAGE)) else { return };
        if !start.is_multiple_of(PAGE) || start >= end {
            return;
        }
        let mut memory = self.memory();
        // Pages of what was here before.
        unmap(&(start..end));
        match self.userfault.register(&(start..end)) {
            Ok(()) => drop(memory.allocations.insert(start, Allocation { end, device })),
            Err(error) => process::say(&format!(
                "the program's own accesses to {bytes} bytes of managed memory at {start:#x} are not seen: {error}"
            )),
        }
    }

    fn end(&self, start: u64) {
        let mut memory = self.memory();
        let Some(Allocation { end, .. }) = memory.allocations.remove(&start) else { return };
        memory.mapped.remove(&(start..end));
        // It fails for what is no longer mapped at all.
        let _ = self.userfault.unregister(&(start..end));
    }

    /// The next access to any page is seen.
    pub fn forget_pages(&self) {
        let mut memory = self.memory();
        if !memory.mapped.is_empty() {
            memory.mapped.take().for_each(|span| unmap(&span));
        }
    }

    fn run(&self) {
        while let Ok(fault) = self.userfault.next() {
            self.answer(&fault);
        }
        // Nobody waits for what nobody answers.
        let starts: Vec<u64> = self.memory().allocations.keys().copied().collect();
        starts.into_iter().for_each(|start| self.end(start));
    }

    /// Has the page brought to the host, and maps it with those that are there, too.
    fn answer(&self, fault: &Fault) {
        let page = fault.address..fault.address + PAGE;
        let touched = if self.memory().around(fault.address).is_some() { touch(fault) } else { None };
        let mut memory = self.memory();
        let Some(all) = memory.around(fault.address) else {
            // It has ended meanwhile.
            return self.userfault.wake(&page);
        };
        let (run, writable) = match touched {
            Some(HostPages { address, bytes, writable }) if (address..address + bytes).contains(&page.start) => {
                (address.max(all.start)..(address + bytes).min(all.end), writable || fault.is_write)
            }
            _ => (page.clone(), true),
        };
        let answered = if fault.is_protected {
            self.userfault.allow_writes(&run)
        } else {
            // The page itself may have lost its mapping to the system; all else that is noted has it.
            memory.mapped.remove(&page);
            let missing = memory.mapped.missing(&run);
            memory.mapped.insert(run);
            missing.into_iter().try_for_each(|span| self.map(&span, !writable))
        };
        if let Err(error) = answered {
            // Without a page of the file there is nothing to map: the access is the kernel's business, as it would be without us.
            if !matches!(error, Errno::NOENT | Errno::SRCH) {
                process::say(&format!("an access to managed memory at {:#x} is not seen: {error}", fault.address));
            }
            let _ = self.userfault.unregister(&page);
        }
        self.userfault.wake(&page);
    }

    /// Maps pages, which the file gets where it has not had them.
    fn map(&self, span: &Range<u64>, protected: bool) -> Result<(), Errno> {
        match self.userfault.map(span, protected) {
            Err(Errno::FAULT) => {
                let memory = process::node().and_then(|node| node.memory.as_ref()).ok_or(Errno::FAULT)?;
                rustix::fs::fallocate(memory, FallocateFlags::empty(), span.start - BASE, span.end - span.start)?;
                self.userfault.map(span, protected)
            }
            outcome => outcome,
        }
    }
}

/// Takes pages of the file out of the program's mapping.
fn unmap(span: &Range<u64>) {
    // SAFETY: pages of the host window, whose bytes are in its file.
    let _ = unsafe {
        rustix::mm::madvise(span.start as *mut c_void, (span.end - span.start) as usize, Advice::LinuxDontNeed)
    };
}

/// Tells the simulator of an access, for the thread that waits for it. `None` where it is not told.
fn touch(fault: &Fault) -> Option<HostPages> {
    if process::is_lost() || process::usable().is_err() {
        return None;
    }
    let call = Call::TouchManaged { pointer: fault.address, bytes: 1, write: fault.is_write };
    if let Some(tunnel) = thread::tunnel_of(fault.thread) {
        match tunnel.connection.try_lock() {
            Ok(mut connection) => {
                if let Some(connection) = connection.as_mut().filter(|connection| !connection.has_failed()) {
                    return connection.touch(fault.thread, &call);
                }
            }
            // A function of the program that a stream has come to: its thread's connection is in no call.
            Err(TryLockError::WouldBlock) if tunnel.runs_function() => {}
            Err(_) => return None,
        }
    }
    connection::touch(&call)
}
