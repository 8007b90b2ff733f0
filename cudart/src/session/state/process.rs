//! The process's part of CUDA's state: whether it may make calls, and the node that it runs on.

use crate::session::state::visible_devices;
use balar_host::{CudaError, NodeDescription};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

static NODE: OnceLock<SeenNode> = OnceLock::new();

/// The process is a child of one that has used CUDA.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The library has ended: the program's own destructors have run.
static ENDED: AtomicBool = AtomicBool::new(false);
/// The simulator does not answer any longer.
static LOST: AtomicBool = AtomicBool::new(false);
/// Held by a thread that connects.
static CONNECTING: Mutex<()> = Mutex::new(());
static RESETS: AtomicU64 = AtomicU64::new(0);

/// The simulator's description of the node.
pub struct SeenNode {
    /// Its devices that the program sees.
    pub description: NodeDescription,
    /// The node's numbers of these.
    pub numbers: Vec<u32>,
    /// The memory that the program shares with devices, if the simulator gave it.
    pub memory: Option<OwnedFd>,
}

impl SeenNode {
    /// A node as the program sees it.
    pub fn new(mut description: NodeDescription, memory: Option<OwnedFd>) -> SeenNode {
        let count = description.devices.len() as u32;
        let numbers = match std::env::var_os(visible_devices::VARIABLE) {
            Some(list) => visible_devices::visible(&list.to_string_lossy(), count),
            None => (0..count).collect(),
        };
        description.devices = numbers.iter().map(|number| description.devices[*number as usize].clone()).collect();
        SeenNode { description, numbers, memory }
    }

    /// Are the program's numbers those of the node?
    pub fn shows_all(&self) -> bool {
        self.numbers.iter().copied().eq(0..self.numbers.len() as u32)
    }
}

/// Refuses every call in those states of the process in which CUDA does.
pub fn usable() -> Result<(), CudaError> {
    if ENDED.load(Ordering::Relaxed) {
        return Err(CudaError::CudartUnloading);
    }
    if FORKED.load(Ordering::Relaxed) {
        return Err(CudaError::InitializationError);
    }
    Ok(())
}

/// The node, if a thread has connected.
pub fn node() -> Option<&'static SeenNode> {
    NODE.get()
}

/// Waits until no other thread connects. From now on a forked child has copies of state that only one process may use.
pub fn connecting() -> MutexGuard<'static, ()> {
    static WATCHED: Once = Once::new();
    // SAFETY: the handler does nothing but look at a lock and store to an atomic.
    WATCHED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
    CONNECTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the description that the simulator gave to the first thread that connected.
pub fn set_node(node: impl FnOnce() -> SeenNode) -> &'static SeenNode {
    NODE.get_or_init(node)
}

extern "C" fn in_child() {
    // A parent that has never connected leaves nothing that the child could misuse.
    if NODE.get().is_some() || CONNECTING.try_lock().is_err() {
        FORKED.store(true, Ordering::Relaxed);
    }
}

/// How often devices have been reset.
pub fn resets() -> u64 {
    RESETS.load(Ordering::Relaxed)
}

/// A device has been reset.
pub fn count_reset() {
    RESETS.fetch_add(1, Ordering::Relaxed);
}

/// The error of calls that do not reach the simulator.
pub const NO_SIMULATOR: CudaError = CudaError::DevicesUnavailable;

/// The simulator is gone.
pub fn lose() -> CudaError {
    LOST.store(true, Ordering::Relaxed);
    NO_SIMULATOR
}

/// Is the process a child of one that has used CUDA?
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Whether the simulator is gone.
pub fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Writes a line for the user.
pub fn say(text: &str) {
    // The line is lost if nobody reads standard error.
    let _ = writeln!(std::io::stderr(), "balar-actors: {text}");
}

/// The library has ended: the program's own destructors have run.
pub fn end() {
    ENDED.store(true, Ordering::Relaxed);
}
