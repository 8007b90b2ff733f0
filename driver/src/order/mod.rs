//! The order of work: operations wait for each other; streams, events and graphs say for which.

pub(crate) mod events;
pub(crate) mod operations;
pub(crate) mod streams;
pub(crate) mod work;
