//! What the process asks of the node without using its devices: the node's description, and what management tools ask (NVML).
//!
//! It has a connection of its own, which belongs to no thread and makes no call of CUDA: a process that forks afterwards may still use
//! CUDA in its children, as on hardware.

use super::process;
use balar_host::tunnel::{Client, Role, SOCKET_VARIABLE};
use balar_host::{CudaError, DriverVersion, NodeDescription};
use rustix::process::{Pid, getpid};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The connection of a process, and what the simulator has told it about the node.
struct Management {
    client: Client,
    node: NodeDescription,
}

/// What belongs to one process: a forked child has a copy of its parent's, whose lock another thread may have held.
struct Own {
    process: Pid,
    management: Mutex<Option<Management>>,
}

/// That of the process, or of the one it was forked from; null at first. It is never freed.
static OWN: AtomicPtr<Own> = AtomicPtr::new(std::ptr::null_mut());

/// That of the calling process.
fn own() -> &'static Own {
    let process = getpid();
    loop {
        let known = OWN.load(Ordering::Acquire);
        // SAFETY: what is stored there is never freed.
        if let Some(own) = unsafe { known.as_ref() }.filter(|own| own.process == process) {
            return own;
        }
        let new = Box::into_raw(Box::new(Own { process, management: Mutex::new(None) }));
        if OWN.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: another thread was first, so that nobody knows of this one.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

fn lock(own: &'static Own) -> MutexGuard<'static, Option<Management>> {
    own.management.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `use_it` with the connection of the process.
///
/// # Errors
///
/// No device where the program does not run on a simulator; otherwise, that of a simulator that is gone.
fn with<T>(use_it: impl FnOnce(&mut Management) -> Result<T, CudaError>) -> Result<T, CudaError> {
    let Some(path) = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Err(CudaError::NoDevice);
    };
    if process::is_lost() {
        return Err(process::NO_SIMULATOR);
    }
    let mut management = lock(own());
    if management.as_ref().is_none_or(|management| management.client.has_ended()) {
        let connected = Client::connect(&path, Role::Management);
        let (client, welcome) = connected.map_err(|_| process::NO_SIMULATOR)?;
        *management = Some(Management { client, node: welcome.node });
    }
    management.as_mut().map_or(Err(CudaError::Unknown), use_it)
}

/// Is the process connected so?
pub fn is_connected() -> bool {
    // SAFETY: what is stored there is never freed.
    let own = unsafe { OWN.load(Ordering::Acquire).as_ref() }.filter(|own| own.process == getpid());
    own.is_some_and(|own| lock(own).is_some())
}

/// The node, with all its devices.
///
/// # Errors
///
/// As [`with`].
pub fn node() -> Result<NodeDescription, CudaError> {
    with(|management| Ok(management.node.clone()))
}

/// The version of the node's driver; the newest one where there is no node to ask.
pub fn driver_version() -> DriverVersion {
    match process::node() {
        Some(node) => node.description.driver_version,
        None => node().map_or(DriverVersion::NEWEST, |node| node.driver_version),
    }
}
