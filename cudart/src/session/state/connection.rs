//! A connection to the simulator, between its calls.

use crate::session::state::posting::{Counted, Posting};
use balar_host::CudaError;
use balar_host::tunnel::Client;

/// A thread's tunnel.
pub struct Connection {
    pub(in crate::session) client: Client,
    /// The thread's time, in nanoseconds, when its last call returned.
    pub(in crate::session) returned_at: u64,
    pub(in crate::session) posting: Posting,
    /// The simulator's number of the thread.
    pub(in crate::session) number: u32,
    /// Calls so far.
    pub(in crate::session) calls: u64,
    /// The device of its last call.
    pub(in crate::session) device: u32,
    /// The error of a posted call that came with the reply to a touch, which reports none.
    pub(in crate::session) missed: Option<CudaError>,
    /// Whether the calls of others wait for their order with those made here.
    pub(in crate::session) _counted: Option<Counted>,
}
