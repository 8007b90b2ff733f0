//! Attributes and settings of kernels.

use crate::abi::arguments::Out;
use crate::abi::function::{Attributes, Attributes11};
use crate::runtime_api;
use crate::session::code::{function, module, registry};
use crate::session::connection::description;
use balar_host::CudaError;
use std::ffi::{c_char, c_int};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

fn attributes_of(name: usize) -> Result<Attributes11, CudaError> {
    let kernel = registry::kernel(name)?;
    Ok(Attributes11::of(&function::attributes(&kernel)?, kernel.carveout.load(Ordering::Relaxed)))
}

runtime_api! {
    fn cudaFuncGetAttributes(result: Out<Attributes>, function: usize) {
        result.check()?;
        let kernel = registry::kernel(function)?;
        let clusters = *kernel.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        let attributes = function::attributes(&kernel)?;
        result.set(Attributes::of(&attributes, kernel.carveout.load(Ordering::Relaxed), clusters))
    }

    fn cudaFuncGetAttributes_11(result: Out<Attributes11>, function: usize) {
        result.check()?;
        result.set(attributes_of(function)?)
    }

    fn cudaFuncSetAttribute(function: usize, attribute: c_int, value: c_int) {
        let kernel = registry::kernel(function)?;
        function::set_attribute(&kernel, kernel.device(), attribute, value)
    }

    fn cudaKernelSetAttributeForDevice(kernel: usize, attribute: c_int, value: c_int, device: c_int) {
        description::device_of(device)?;
        function::set_attribute(&*registry::kernel(kernel)?, device as u32, attribute, value)
    }

    fn cudaFuncSetCacheConfig(function: usize, preference: c_int) {
        if !(0..=3).contains(&preference) {
            return Err(CudaError::InvalidValue);
        }
        let kernel = registry::kernel(function)?;
        function::set_cache(&kernel, kernel.device(), preference)
    }

    /// Banks have four bytes.
    fn cudaFuncSetSharedMemConfig(function: usize, bank_size: c_int) {
        if !(0..=2).contains(&bank_size) {
            return Err(CudaError::InvalidValue);
        }
        registry::kernel(function).map(|_| ())
    }

    fn cudaFuncGetName(name: Out<*const c_char>, function: usize) {
        let kernel = registry::kernel(function)?;
        name.set(module::name_for_c(&kernel))
    }

    fn cudaFuncGetParamCount(function: usize, count: Out<usize>) {
        count.check()?;
        count.set(module::parameter_count(&*registry::kernel(function)?)?)
    }

    fn cudaFuncGetParamInfo(function: usize, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        let (at, size) = module::parameter(&*registry::kernel(function)?, index)?;
        offset.set(at)?;
        bytes.set_if_wanted(size);
        Ok(())
    }

    fn cudaGetFuncBySymbol(function: Out<u64>, symbol: usize) {
        function.check()?;
        let kernel = registry::kernel(symbol)?;
        kernel.loaded()?;
        function.set(kernel.handle())
    }

    fn cudaGetKernel(kernel: Out<u64>, symbol: usize) {
        kernel.check()?;
        kernel.set(registry::kernel(symbol)?.handle())
    }
}
