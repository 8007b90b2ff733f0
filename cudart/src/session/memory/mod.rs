//! Memory that programs allocate and free: device memory, host memory, managed memory, pools, memory of other processes.

pub mod device_memory;
pub mod host_memory;
pub mod ipc;
pub mod managed;
pub mod pool;
