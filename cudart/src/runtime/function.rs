//! What the program asks of and about kernels.

use crate::abi::arguments::Out;
use crate::cuda_api;
use crate::session::code::Kernel;
use crate::session::{connection, module, process, registry};
use balar_host::call::{Function, FunctionAttributes};
use balar_host::{Call, CallResult, CudaError};
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `cudaFuncAttributes` of CUDA 11 and before.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes11 {
    shared_bytes: usize,
    constant_bytes: usize,
    local_bytes: usize,
    maximum_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    cache_mode: c_int,
    maximum_dynamic_shared_bytes: c_int,
    carveout: c_int,
}

/// `cudaFuncAttributes` from CUDA 12 on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    base: Attributes11Fields,
    cluster_must_be_set: c_int,
    cluster: [c_int; 3],
    cluster_scheduling: c_int,
    non_portable_clusters: c_int,
    reserved: [c_int; 16],
}

/// [`Attributes11`] without the padding at its end, which later fields take.
type Attributes11Fields = [u32; 13];

impl Attributes11 {
    fn of(attributes: &FunctionAttributes, carveout: c_int) -> Attributes11 {
        let int = |value: u32| value.min(i32::MAX as u32) as c_int;
        Attributes11 {
            shared_bytes: attributes.shared_bytes as usize,
            constant_bytes: attributes.constant_bytes as usize,
            local_bytes: attributes.local_bytes as usize,
            maximum_threads: int(attributes.maximum_threads),
            registers: int(attributes.registers),
            ptx_version: int(attributes.ptx_version),
            binary_version: int(attributes.binary_version),
            cache_mode: 0,
            maximum_dynamic_shared_bytes: int(attributes.maximum_dynamic_shared_bytes),
            carveout,
        }
    }

    fn fields(&self) -> Attributes11Fields {
        let size = |value: usize| [value as u32, (value as u64 >> 32) as u32];
        let [shared, constant, local] = [self.shared_bytes, self.constant_bytes, self.local_bytes].map(size);
        [
            shared[0],
            shared[1],
            constant[0],
            constant[1],
            local[0],
            local[1],
            self.maximum_threads as u32,
            self.registers as u32,
            self.ptx_version as u32,
            self.binary_version as u32,
            self.cache_mode as u32,
            self.maximum_dynamic_shared_bytes as u32,
            self.carveout as u32,
        ]
    }
}

/// What the device that runs a kernel says of it.
pub fn attributes(kernel: &Kernel) -> Result<FunctionAttributes, CudaError> {
    let loaded = kernel.loaded()?;
    let call = Call::FunctionAttributes { function: loaded.function() };
    match connection::call_on(loaded.device, &call)? {
        CallResult::Attributes(attributes) => Ok(attributes),
        _ => Err(CudaError::Unknown),
    }
}

fn attributes_of(name: usize) -> Result<Attributes11, CudaError> {
    let kernel = registry::kernel(name)?;
    Ok(Attributes11::of(&attributes(&kernel)?, kernel.carveout.load(Ordering::Relaxed)))
}

/// Values of `cudaFuncAttribute`.
mod attribute {
    pub const DYNAMIC_SHARED_BYTES: i32 = 8;
    pub const CARVEOUT: i32 = 9;
    pub const NON_PORTABLE_CLUSTERS: i32 = 14;
    pub const CLUSTER_SCHEDULING: i32 = 15;
}

fn set_attribute(kernel: &Arc<Kernel>, device: u32, attribute: c_int, value: c_int) -> Result<(), CudaError> {
    match attribute {
        attribute::DYNAMIC_SHARED_BYTES => {
            let bytes = u32::try_from(value).map_err(|_| CudaError::InvalidValue)?;
            let module = kernel.code.on(device)?;
            if !module.functions.contains_key(&kernel.name) {
                return Err(CudaError::InvalidDeviceFunction);
            }
            let function = Function { module: module.number, name: kernel.name.clone() };
            connection::call_on(device, &Call::SetDynamicSharedLimit { function, bytes }).map(|_| ())
        }
        attribute::CARVEOUT if (-1..=100).contains(&value) => {
            kernel.carveout.store(value, Ordering::Relaxed);
            Ok(())
        }
        // The devices have no clusters: how they would be scheduled changes nothing.
        attribute::NON_PORTABLE_CLUSTERS | attribute::CLUSTER_SCHEDULING => Ok(()),
        _ => Err(CudaError::InvalidValue),
    }
}

cuda_api! {
    fn cudaFuncGetAttributes(result: Out<Attributes>, function: usize) {
        result.check()?;
        let base = attributes_of(function)?.fields();
        result.set(Attributes { base, ..Attributes::default() })
    }

    fn cudaFuncGetAttributes_11(result: Out<Attributes11>, function: usize) {
        result.check()?;
        result.set(attributes_of(function)?)
    }

    fn cudaFuncSetAttribute(function: usize, attribute: c_int, value: c_int) {
        let kernel = registry::kernel(function)?;
        set_attribute(&kernel, kernel.device(), attribute, value)
    }

    fn cudaKernelSetAttributeForDevice(kernel: usize, attribute: c_int, value: c_int, device: c_int) {
        process::device_of(device)?;
        set_attribute(&registry::kernel(kernel)?, device as u32, attribute, value)
    }

    /// A hint: shared memory and the L1 cache are divided as launches need it.
    fn cudaFuncSetCacheConfig(function: usize, preference: c_int) {
        if !(0..=3).contains(&preference) {
            return Err(CudaError::InvalidValue);
        }
        registry::kernel(function).map(|_| ())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    /// Sizes by a C compiler, with the headers of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<Attributes11>(56, 8);
        assert_eq!(size_of::<Attributes>(), 140);
        assert_eq!(offset_of!(Attributes11, registers), 28);
        assert_eq!(offset_of!(Attributes11, carveout), 48);
        assert_eq!(offset_of!(Attributes, cluster_must_be_set), 52);
        assert_eq!(offset_of!(Attributes, non_portable_clusters), 72);
    }

    #[test]
    fn both_layouts_begin_alike() {
        let known = FunctionAttributes { local_bytes: 24, registers: 37, ..FunctionAttributes::default() };
        let attributes = Attributes11::of(&known, -1);
        let fields = attributes.fields();
        assert_eq!((fields[4], fields[5], fields[7], fields[12]), (24, 0, 37, u32::MAX));
    }
}
