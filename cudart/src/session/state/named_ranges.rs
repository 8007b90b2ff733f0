//! The named ranges of a program (NVTX) that are open, and that the simulator is still to be told of.

use balar_host::tunnel::{EVERY_THREAD, RANGES_VARIABLE};
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

static SHARED: Mutex<Shared> =
    Mutex::new(Shared { untold: Vec::new(), started: BTreeMap::new(), last: 0, names: Vec::new() });

/// The state that all threads share.
pub(in crate::session) struct Shared {
    /// Open ranges that the simulator is to be told of once their threads use it.
    pub(in crate::session) untold: Vec<NamedRange>,
    /// Ranges that have been started and are ended by their numbers.
    pub(in crate::session) started: BTreeMap<u64, OpenRange>,
    pub(in crate::session) last: u64,
    /// Names that the program has registered.
    pub(in crate::session) names: Vec<String>,
}

impl Shared {
    /// The names of a thread's ranges that the simulator is to be told of; the names of all threads' ranges where every thread tells.
    pub(in crate::session) fn take_untold(&mut self, thread: u32) -> impl Iterator<Item = String> + '_ {
        let its = self.untold.extract_if(.., move |range| range.thread == thread || every_thread_tells());
        its.map(|range| range.name)
    }
}

/// A range, and the kernel's number of the thread that has begun it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRange {
    pub(in crate::session) thread: u32,
    pub(in crate::session) name: String,
}

/// An open range; `None` if it has no name, or the simulator will not hear of it.
pub type OpenRange = Option<NamedRange>;

pub(in crate::session) fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Do threads tell that make no calls of CUDA?
pub(in crate::session) fn every_thread_tells() -> bool {
    static ALL: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os(RANGES_VARIABLE).is_some_and(|all| all == EVERY_THREAD));
    *ALL
}
