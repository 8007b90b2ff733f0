//! The units of a node between its host and its GPUs: links, the host's memory, the driver of unified memory.
//!
//! `unified_memory_driver` is the host's driver of unified memory: `blocks.rs` has the places of pages, `tasks.rs` its work step by step,
//! `service.rs` faults, `room.rs` evictions, `host.rs` the requests of the host CPU. `migration_link.rs` carries pages. The two wires of a
//! `Link` carry its latency between them, an eighth on the host's side: every wire keeps a latency above zero, and the CTA scheduler, which
//! is busy while kernels run, does not shorten windows.

pub mod host_memory;
pub mod link;
pub mod migration_link;
pub mod unified_memory_driver;
