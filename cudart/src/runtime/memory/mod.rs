//! Memory: allocating and freeing it, copies and fills, arrays, facts about addresses.

pub mod array;
pub mod array_copy;
pub mod batch;
pub mod copy;
pub mod device_memory;
pub mod fill;
pub mod host_memory;
pub mod ipc;
pub mod managed;
pub mod pointer;
pub mod pool;
pub mod symbol;
