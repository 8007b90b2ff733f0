//! Memory in the order of streams, and the pools that it comes from.

use crate::abi::arguments::{In, Out};
use crate::abi::pool::{MemAccessDesc, MemLocation, MemPoolProps};
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::memory::pool;
use balar_host::CudaError;
use std::ffi::c_int;

runtime_api! {
    stream fn cudaMallocAsync(pointer: Out<u64>, bytes: usize, stream: StreamHandle) {
        pointer.check()?;
        pointer.set(pool::allocate(bytes as u64, None, stream)?)
    }

    stream fn cudaMallocFromPoolAsync(pointer: Out<u64>, bytes: usize, pool: u64, stream: StreamHandle) {
        pointer.check()?;
        pointer.set(pool::allocate(bytes as u64, Some(pool), stream)?)
    }

    stream fn cudaFreeAsync(pointer: u64, stream: StreamHandle) {
        pool::free(pointer, stream)
    }

    fn cudaDeviceGetDefaultMemPool(pool: Out<u64>, device: c_int) {
        pool.set(pool::default_of(device)?)
    }

    fn cudaDeviceGetMemPool(pool: Out<u64>, device: c_int) {
        pool.set(pool::current_of(device)?)
    }

    fn cudaDeviceSetMemPool(device: c_int, pool: u64) {
        pool::set_current_of(device, pool)
    }

    fn cudaMemGetDefaultMemPool(pool: Out<u64>, location: In<MemLocation>, kind: u32) {
        pool.set(pool::default_at(location.get()?, kind)?)
    }

    fn cudaMemGetMemPool(pool: Out<u64>, location: In<MemLocation>, kind: u32) {
        pool.set(pool::current_at(location.get()?, kind)?)
    }

    fn cudaMemSetMemPool(location: In<MemLocation>, kind: u32, pool: u64) {
        pool::set_current_at(location.get()?, kind, pool)
    }

    fn cudaMemPoolCreate(pool: Out<u64>, properties: In<MemPoolProps>) {
        pool.check()?;
        pool.set(pool::create(&properties.get()?)?)
    }

    fn cudaMemPoolDestroy(pool: u64) {
        pool::destroy(pool)
    }

    fn cudaMemPoolTrimTo(pool: u64, keep: usize) {
        pool::trim(pool, keep)
    }

    fn cudaMemPoolGetAttribute(pool: u64, kind: u32, value: Out<u64>) {
        pool::get_attribute(pool, kind, value)
    }

    fn cudaMemPoolSetAttribute(pool: u64, kind: u32, value: In<u64>) {
        pool::change_attribute(pool, kind, value)
    }

    fn cudaMemPoolSetAccess(pool: u64, wanted: In<MemAccessDesc>, count: usize) {
        pool::change_access(pool, &wanted.array(count)?)
    }

    fn cudaMemPoolGetAccess(flags: Out<u32>, pool: u64, location: In<MemLocation>) {
        flags.set(pool::access(pool, location.get()?)?)
    }

    fn cudaMemPoolExportToShareableHandle(_handle: u64, pool: u64, _kind: u32, _flags: u32) {
        // No pool can be exported to other processes.
        pool::check(pool).and(Err(CudaError::InvalidValue))
    }

    fn cudaMemPoolImportFromShareableHandle(_pool: Out<u64>, _handle: u64, _kind: u32, _flags: u32) {
        Err(CudaError::NotSupported)
    }

    fn cudaMemPoolExportPointer(_data: u64, _pointer: u64) {
        Err(CudaError::InvalidValue)
    }

    fn cudaMemPoolImportPointer(_pointer: Out<u64>, pool: u64, _data: u64) {
        pool::check(pool).and(Err(CudaError::InvalidValue))
    }
}
