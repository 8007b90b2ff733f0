//! The state of the process and of its threads, without the functions that use it: facts from the simulator, connections, streams and
//! events, and captures.

pub mod captures;
pub mod connection;
pub mod dependency;
pub mod events;
pub mod handles;
pub mod named_ranges;
pub(in crate::session) mod posting;
pub mod process;
pub mod streams;
pub mod thread;
pub mod tunnel;
pub mod visible_devices;
