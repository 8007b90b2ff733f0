//! The thread that answers faults, and its knowledge of managed memory.

use crate::session::accesses::userfault::{Fault, Userfault};
use crate::session::connection::watch::WatchedMemory;
use crate::session::connection::{self, signals, simulator};
use crate::session::pages::PAGE;
use crate::session::state::{process, tunnel};
use balar_host::call::{HostPages, ModuleVariable, VariableKind};
use balar_host::memory::BASE;
use balar_host::tunnel::Role;
use balar_host::{Call, CallResult};
use rangemap::RangeSet;
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
    memory: Mutex<ManagedMemory>,
}

/// Managed memory of so many bytes, which take whole pages. `None` for other memory.
fn watched(start: u64, bytes: u64, device: u32) -> Option<WatchedMemory> {
    let end = start.checked_add(bytes)?.checked_next_multiple_of(PAGE)?;
    (start.is_multiple_of(PAGE) && start < end).then_some(WatchedMemory { start, end, device })
}

#[derive(Debug, Default)]
struct ManagedMemory {
    /// Allocations by first address.
    allocations: BTreeMap<u64, WatchedMemory>,
    /// Managed variables of each module.
    modules: BTreeMap<u32, Vec<u64>>,
    /// What is mapped. It is noted before it becomes true.
    mapped: RangeSet<u64>,
}

impl ManagedMemory {
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
        signals::without_signals(|| {
            thread.spawn(move || {
                // So that the simulator waits for it while it answers: without this, it only waits less exactly.
                let _known = simulator::open(Role::Accesses);
                let _ = sender.send(());
                watcher.run();
            })
        })?;
        let _ = receiver.recv();
        Ok(watcher)
    }

    fn memory(&self) -> MutexGuard<'_, ManagedMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins. Gives the memory that it frees, whose accesses are no longer seen.
    pub fn call_begins(&self, call: &Call) -> Vec<WatchedMemory> {
        let freed = match call {
            Call::Free { pointer } => vec![*pointer],
            Call::ModuleUnload { module } => self.memory().modules.get(module).cloned().unwrap_or_default(),
            _ => return Vec::new(),
        };
        freed.into_iter().filter_map(|start| self.end(start)).collect()
    }

    /// A call has succeeded: managed memory may have begun or ended with it.
    pub fn call_returned(&self, device: u32, call: &Call, result: &CallResult) {
        match (call, result) {
            (Call::MallocManaged { bytes }, CallResult::Pointer(start)) => {
                watched(*start, *bytes, device).into_iter().for_each(|allocation| self.begin(allocation));
            }
            (Call::ModuleUnload { module }, _) => drop(self.memory().modules.remove(module)),
            (Call::DeviceReset, _) => {
                let its = |allocation: &&WatchedMemory| allocation.device == device;
                let ended: Vec<WatchedMemory> = self.memory().allocations.values().filter(its).copied().collect();
                for allocation in ended {
                    self.end(allocation.start);
                }
            }
            _ => {}
        }
    }

    /// A module was loaded: its managed variables begin.
    pub fn module_loaded(&self, device: u32, module: u32, variables: &[ModuleVariable]) {
        let managed = variables.iter().filter(|variable| variable.kind == VariableKind::Managed);
        let managed = managed.filter_map(|variable| watched(variable.address, variable.bytes, device));
        let managed: Vec<WatchedMemory> = managed.collect();
        if !managed.is_empty() {
            managed.iter().for_each(|allocation| self.begin(*allocation));
            let starts = managed.into_iter().map(|allocation| allocation.start).collect();
            self.memory().modules.insert(module, starts);
        }
    }

    /// Accesses to an allocation are seen from now on.
    pub fn begin(&self, allocation: WatchedMemory) {
        let WatchedMemory { start, end, .. } = allocation;
        let mut memory = self.memory();
        // Pages of the memory that was here before.
        unmap(&(start..end));
        match self.userfault.register(&(start..end)) {
            Ok(()) => drop(memory.allocations.insert(start, allocation)),
            Err(error) => process::say(&format!(
                "the program's own accesses to {} bytes of managed memory at {start:#x} are not seen: {error}",
                end - start
            )),
        }
    }

    /// They are no longer.
    fn end(&self, start: u64) -> Option<WatchedMemory> {
        let mut memory = self.memory();
        let allocation = memory.allocations.remove(&start)?;
        let pages = start..allocation.end;
        memory.mapped.remove(pages.clone());
        // It fails for what is no longer mapped at all.
        let _ = self.userfault.unregister(&pages);
        Some(allocation)
    }

    /// The next access to any page is seen.
    pub fn forget_pages(&self) {
        let mut memory = self.memory();
        std::mem::take(&mut memory.mapped).iter().for_each(unmap);
    }

    fn run(&self) {
        while let Ok(fault) = self.userfault.next() {
            if !is_told() {
                self.give_up();
            }
            self.answer(&fault);
        }
        self.give_up();
    }

    /// Sees no access any more, and releases all threads that wait for an answer.
    fn give_up(&self) {
        let starts: Vec<u64> = self.memory().allocations.keys().copied().collect();
        for start in starts {
            self.end(start);
        }
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
            memory.mapped.remove(page.clone());
            let missing: Vec<Range<u64>> = memory.mapped.gaps(&run).collect();
            // It holds the page at least: an empty one would be refused.
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

/// Is there a simulator to be told of accesses, and a program that has not come to its end?
fn is_told() -> bool {
    !process::is_lost() && process::usable().is_ok()
}

/// Tells the simulator of an access, for the thread that waits for it. `None` where it is not told.
fn touch(fault: &Fault) -> Option<HostPages> {
    let call = Call::TouchManaged { pointer: fault.address, bytes: 1, write: fault.is_write };
    if let Some(tunnel) = tunnel::tunnel_of(fault.thread) {
        match tunnel.connection.try_lock() {
            Ok(mut connection) => {
                if let Some(connection) = connection.as_mut().filter(|connection| !simulator::has_failed(connection)) {
                    return simulator::touch(connection, fault.thread, &call);
                }
            }
            // A function of the program that a stream has come to: its thread's connection is in no call.
            Err(TryLockError::WouldBlock) if tunnel.runs_function() => {}
            Err(_) => return None,
        }
    }
    connection::touch(&call)
}
