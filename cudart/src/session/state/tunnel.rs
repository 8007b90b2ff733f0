//! The connection of each thread to the simulator, and where others find it.

use crate::session::state::connection::Connection;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A thread's connection, from its first call on. Who answers the thread's faults uses it while the thread waits for a page.
#[derive(Default)]
pub struct Tunnel {
    pub(in crate::session) connection: Mutex<Option<Connection>>,
    runs_function: AtomicBool,
}

impl Tunnel {
    /// The connection, once nobody else uses it.
    pub(in crate::session) fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the thread run a function of the program that a stream has come to? It keeps its connection meanwhile, and makes no call.
    pub(in crate::session) fn runs_function(&self) -> bool {
        self.runs_function.load(Ordering::SeqCst)
    }

    /// Calls such a function.
    pub(in crate::session) fn run_function(&self, function: impl FnOnce()) {
        self.runs_function.store(true, Ordering::SeqCst);
        function();
        self.runs_function.store(false, Ordering::SeqCst);
    }
}

/// The tunnels of all threads that are connected, by the kernel's numbers of the threads.
static TUNNELS: Mutex<BTreeMap<u32, Arc<Tunnel>>> = Mutex::new(BTreeMap::new());

/// All of them.
pub(in crate::session) fn tunnels() -> MutexGuard<'static, BTreeMap<u32, Arc<Tunnel>>> {
    TUNNELS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tunnel of a thread.
pub(in crate::session) fn tunnel_of(thread: u32) -> Option<Arc<Tunnel>> {
    tunnels().get(&thread).cloned()
}
