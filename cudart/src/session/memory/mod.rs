//! Memory that programs allocate and free: of devices, of the host, managed, in pools, of other processes.

pub mod device_memory;
pub mod host_memory;
pub mod ipc;
pub mod managed;
pub mod pool;
