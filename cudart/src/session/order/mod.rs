//! The order of streams: streams and events, work that is put into a stream at once, and work that goes into a graph instead.

pub mod access_policy;
pub mod batch;
pub mod capture;
pub mod copying;
pub mod enqueue;
pub mod event;
pub mod fill;
pub mod graph_launch;
pub mod launch;
pub mod operation;
pub mod staging;
pub mod stream;
