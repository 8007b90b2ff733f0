//! The connection of each thread to the simulator: calls, their results, the messages that come with these, and functions of the program
//! that streams run.

pub mod activity;
pub mod callbacks;
pub mod calls;
pub mod description;
pub mod host_rows;
pub mod host_window;
pub mod management;
pub mod printed;
pub mod signals;
pub mod simulator;
pub mod transfers;
pub mod translation;
pub mod waiting_bytes;
pub mod watch;

pub use calls::{call, call_on, call_with, connect, done, pointer, tell, touch};
pub use simulator::Sink;
