//! The units of a node between its host and its GPUs: links, the host's memory, the driver of unified memory.

pub mod host_memory;
pub mod link;
pub mod migration_link;
pub mod unified_memory_driver;
