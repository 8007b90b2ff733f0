//! The units of a node between its host and its GPUs: links, and the host's memory.

pub mod host_memory;
pub mod link;
