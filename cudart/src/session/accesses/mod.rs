//! The program's own reads and writes of managed memory, on a node that moves its pages.
//!
//! ```text
//!   a thread: load or store ──► no page there ──► the kernel: a fault ──► `watcher`: Call::TouchManaged, for that thread
//!        ▲                                                                   │ pages that the host may access
//!        └───────────── the thread tries again ◄──── pages are mapped ◄──────┘
//! ```
//!
//! Managed memory is part of a file that the simulator has, too: its bytes are there whether the program has mapped a page or not. So
//! that a page is not mapped means that the next access will be seen, and nothing else.
//!
//! - **Invariant:** a page of managed memory is mapped only after a touch has brought it to the host, and only until a call has returned
//!   that gave a device work which may take it away. While such work may be under way, it is also mapped only until the next call returns
//!   that has waited for a device.
//! - **Invariant:** a thread that waits for a page waits for a call of its own at most, never for one that another thread makes. A fault
//!   within a call is answered without asking the simulator, for that hears nothing before the call is complete.
//! - **Invariant:** where the simulator is gone, or the program is at its end, faults are answered at once.
//!
//! Where the kernel refuses to tell of faults, the simulator is told to assume that the host accesses all of it between its waits
//! ([`Call::AssumeHostAccesses`]). A program without managed memory, and one on a node that moves no pages, has none of this.

mod userfault;
mod watcher;

use crate::session::connection::watch::{self, Before, CallWatcher};
use crate::session::connection::{self, description};
use crate::session::state::process;
use balar_host::call::{CopyEnd, ModuleVariable, VariableKind};
use balar_host::memory::MANAGED_BASE;
use balar_host::tunnel::{ACCESSES_VARIABLE, ASSUMED};
use balar_host::{Call, CallResult, CudaError};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use userfault::Userfault;
use watcher::Watcher;

/// How accesses to managed memory are known.
#[derive(Debug)]
enum AccessMode {
    /// The kernel tells of them.
    Seen(&'static Watcher),
    /// They are not: the simulator has been told.
    Assumed,
}

static MODE: OnceLock<Result<AccessMode, CudaError>> = OnceLock::new();
/// Accesses are seen.
static IS_WATCHING: AtomicBool = AtomicBool::new(false);
/// Calls that have given devices work.
static GIVEN: AtomicU64 = AtomicU64::new(0);
/// The number of them that are over.
static OVER: AtomicU64 = AtomicU64::new(0);

/// Hears of the program's calls, once accesses are seen.
struct Hearer;

/// Who sees accesses, if anyone does.
fn watcher() -> Option<&'static Watcher> {
    match MODE.get() {
        Some(Ok(AccessMode::Seen(watcher))) if IS_WATCHING.load(Ordering::Acquire) => Some(watcher),
        _ => None,
    }
}

impl CallWatcher for Hearer {
    fn begins(&self, call: &Call) -> Before {
        let freed = watcher().map(|watcher| watcher.call_begins(call)).unwrap_or_default();
        Before { given: GIVEN.load(Ordering::SeqCst), freed }
    }

    fn returned(&self, device: u32, call: &Call, result: &Result<CallResult, CudaError>, before: Before) {
        let Some(watcher) = watcher() else { return };
        match result {
            Ok(result) => watcher.call_returned(device, call, result),
            // It has freed nothing.
            Err(_) => before.freed.into_iter().for_each(|memory| watcher.begin(memory)),
        }
        if gives_work(call) {
            GIVEN.fetch_add(1, Ordering::SeqCst);
            watcher.forget_pages();
        } else if waits(call, result) && OVER.load(Ordering::SeqCst) < GIVEN.load(Ordering::SeqCst) {
            watcher.forget_pages();
            // The work of other devices is not over.
            let has_one = process::node().is_some_and(|node| node.description.devices.len() == 1);
            if *call == Call::DeviceSynchronize && result.is_ok() && has_one {
                OVER.fetch_max(before.given, Ordering::SeqCst);
            }
        }
    }

    fn function_begins(&self) {
        if let Some(watcher) = watcher() {
            watcher.forget_pages();
        }
    }
}

/// A module was loaded on a device: accesses to its managed variables are seen from now on.
pub fn module_loaded(device: u32, module: u32, variables: &[ModuleVariable]) {
    if variables.iter().any(|variable| variable.kind == VariableKind::Managed) {
        // A failure is that of the connection, which the next call reports as well.
        let _ = prepare();
    }
    if let Some(watcher) = watcher() {
        watcher.module_loaded(device, module, variables);
    }
}

/// Finds out how accesses can be known, before there is anything to access: before managed memory is allocated.
///
/// # Errors
///
/// The connection has failed.
pub fn prepare() -> Result<(), CudaError> {
    description::description()?;
    if !process::node().is_some_and(|node| node.description.moves_managed_memory) {
        return Ok(());
    }
    match MODE.get_or_init(choose) {
        Ok(_) => Ok(()),
        Err(error) => Err(*error),
    }
}

fn choose() -> Result<AccessMode, CudaError> {
    let is_wanted = std::env::var_os(ACCESSES_VARIABLE).is_none_or(|wanted| wanted != ASSUMED);
    let reason = match is_wanted.then(Userfault::open) {
        Some(Ok(userfault)) => match Watcher::start(userfault) {
            Ok(watcher) => {
                IS_WATCHING.store(true, Ordering::Release);
                watch::install(&Hearer);
                return Ok(AccessMode::Seen(watcher));
            }
            Err(error) => Some(error.to_string()),
        },
        Some(Err(error)) => Some(std::io::Error::from(error).to_string()),
        None => None,
    };
    if let Some(reason) = reason {
        process::say(&format!(
            "the system does not let this program see its own accesses to managed memory (userfaultfd: {reason}): all of it is taken to \
             be used by the host before each launch and after each synchronisation"
        ));
    }
    connection::done(&Call::AssumeHostAccesses).map(|()| AccessMode::Assumed)
}

/// Does a call give a device work that may take pages away from the host, or change the host's rights to its own pages?
fn gives_work(call: &Call) -> bool {
    let is_managed = |end: &CopyEnd| matches!(end, CopyEnd::Memory { address, .. } if *address >= MANAGED_BASE);
    match call {
        Call::Launch(_) | Call::GraphLaunch { .. } | Call::Prefetch { .. } | Call::Advise { .. } => true,
        Call::Copy { destination, source, .. } => is_managed(destination) || is_managed(source),
        Call::Memset { pointer, .. } => *pointer >= MANAGED_BASE,
        _ => false,
    }
}

/// Has a call waited for a device, or found that it is done with something?
fn waits(call: &Call, result: &Result<CallResult, CudaError>) -> bool {
    match call {
        Call::StreamQuery { .. } | Call::EventQuery { .. } => result.is_ok(),
        Call::DeviceSynchronize
        | Call::StreamSynchronize { .. }
        | Call::EventSynchronize { .. }
        | Call::Copy { asynchronous: false, .. }
        | Call::Memset { asynchronous: false, .. }
        | Call::Free { .. }
        | Call::FreeHost { .. }
        | Call::ArrayDestroy { .. }
        | Call::ModuleUnload { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::Bytes;

    #[test]
    fn copies_take_pages_where_an_end_is_managed() {
        let device = balar_host::memory::BASE;
        let copy = |destination, source| gives_work(&Call::copy_within(destination, source, 8, 0, true));
        assert!(copy(MANAGED_BASE, device) && copy(device, MANAGED_BASE + 8) && !copy(device, device + 8));
        assert!(!gives_work(&Call::copy_to_device(device, Bytes::absent(8), 0, true)));
        assert!(gives_work(&Call::copy_from_device(MANAGED_BASE, 8, 0, 0, false)));
        assert!(gives_work(&Call::memset(MANAGED_BASE, 0, 8, 0, true)) && !gives_work(&Call::memset(8, 0, 8, 0, true)));
        assert!(!gives_work(&Call::DeviceSynchronize) && !gives_work(&Call::Malloc { bytes: 8 }));
    }

    #[test]
    fn a_query_that_finds_work_has_waited_for_none() {
        let query = Call::StreamQuery { stream: 0 };
        assert!(waits(&query, &Ok(CallResult::None)) && !waits(&query, &Err(CudaError::NotReady)));
        assert!(waits(&Call::memset(8, 0, 8, 0, false), &Ok(CallResult::None)));
        assert!(!waits(&Call::memset(8, 0, 8, 0, true), &Ok(CallResult::None)));
    }
}
