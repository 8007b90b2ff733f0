//! The order of work: operations wait for each other; streams, events and graphs say for which.

pub(crate) mod events;
pub(crate) mod graph;
pub(crate) mod operations;
mod queue;
pub(crate) mod shared_events;
pub(crate) mod streams;
pub(crate) mod work;

pub(crate) use queue::Order;
