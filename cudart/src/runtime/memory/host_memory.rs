//! Pinned host memory.

use crate::abi::arguments::Out;
use crate::runtime_api;
use crate::session::memory::host_memory;

runtime_api! {
    fn cudaMallocHost(pointer: Out<u64>, bytes: usize) {
        pointer.check()?;
        pointer.set(host_memory::allocate(bytes, 0)?)
    }

    fn cudaHostAlloc(pointer: Out<u64>, bytes: usize, flags: u32) {
        pointer.check()?;
        pointer.set(host_memory::allocate(bytes, flags)?)
    }

    fn cudaFreeHost(pointer: u64) {
        host_memory::free(pointer)
    }

    fn cudaHostRegister(pointer: u64, bytes: usize, flags: u32) {
        host_memory::register(pointer, bytes, flags)
    }

    fn cudaHostUnregister(pointer: u64) {
        host_memory::unregister(pointer)
    }

    fn cudaHostGetDevicePointer(device_pointer: Out<u64>, pointer: u64, flags: u32) {
        device_pointer.check()?;
        device_pointer.set(host_memory::device_pointer(pointer, flags)?)
    }

    fn cudaHostGetFlags(flags: Out<u32>, pointer: u64) {
        flags.check()?;
        flags.set(host_memory::flags(pointer)?)
    }
}
