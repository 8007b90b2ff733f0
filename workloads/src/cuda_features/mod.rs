//! The features of CUDA beyond kernels on arrays: streams, cooperative launches, a heap, output and calls on the device.

pub(crate) mod concurrent;
pub(crate) mod device_heap;
pub(crate) mod device_print;
pub(crate) mod grid_sync;
pub(crate) mod virtual_dispatch;
