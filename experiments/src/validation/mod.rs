//! Studies: simulated beside measured.

pub mod unified_memory;
