//! The state of the process and of its threads, without what is done with it: what the simulator has told, who is connected, which streams
//! and events there are, which of them are captured.

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
