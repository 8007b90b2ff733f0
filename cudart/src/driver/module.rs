//! Modules, which belong to a device, and libraries, which any device can use; their kernels and variables.

use crate::abi::arguments::{In, Out, Text, write_handles};
use crate::abi::jit::answer_options;
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::code::module::{self, LoadingMode};
use crate::session::code::{Image, Kernel, function, image};
use crate::session::connection::description;
use crate::session::contexts::context;
use balar_host::call::ModuleVariable;
use std::ffi::{c_char, c_int, c_void};

fn load(place: Out<u64>, name: &str, images: Vec<Image>) -> Outcome {
    place.check()?;
    place.set(module::load(name, images)?)
}

fn load_library(place: Out<u64>, name: &str, images: Vec<Image>) -> Outcome {
    place.check()?;
    place.set(module::load_library(name, images)?)
}

fn write_variable(address: Out<u64>, bytes: Out<usize>, variable: &ModuleVariable) -> Outcome {
    address.set_if_wanted(variable.address);
    bytes.set_if_wanted(variable.bytes as usize);
    Ok(())
}

fn parameter(kernel: u64, index: usize, offset: Out<usize>, bytes: Out<usize>) -> Outcome {
    let (at, size) = module::parameter(&*Kernel::of_handle(kernel)?, index)?;
    offset.set(at)?;
    bytes.set_if_wanted(size);
    Ok(())
}

driver_api! {
    context fn cuModuleLoad(place: Out<u64>, path: Text) {
        let path = path.get()?;
        load(place, &path, image::in_file(&path)?)
    }

    context fn cuModuleLoadData(place: Out<u64>, address: *const c_void) {
        load(place, "cuModuleLoadData", image::at(address)?)
    }

    context fn cuModuleLoadDataEx(
        place: Out<u64>, address: *const c_void, count: u32, options: In<u32>, values: Out<*mut c_void>,
    ) {
        let images = image::at(address)?;
        answer_options(options, values, count, || load(place, "cuModuleLoadDataEx", images))
    }

    context fn cuModuleLoadFatBinary(place: Out<u64>, address: *const c_void) {
        load(place, "cuModuleLoadFatBinary", image::at(address)?)
    }

    context fn cuModuleUnload(module: u64) {
        module::unload(module)
    }

    fn cuModuleGetLoadingMode(place: Out<c_int>) {
        place.set(LoadingMode::of_process() as c_int)
    }

    context fn cuModuleGetFunction(place: Out<u64>, module: u64, name: Text) {
        place.check()?;
        place.set(module::function(module, &name.get()?)?)
    }

    context fn cuModuleGetFunctionCount(place: Out<u32>, module: u64) {
        place.set(module::function_count(module)? as u32)
    }

    context fn cuModuleEnumerateFunctions(place: *mut u64, room: u32, module: u64) {
        // SAFETY: CUDA's contract.
        unsafe { write_handles(place, room, &module::functions(module)?) }
    }

    context fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, module: u64, name: Text) {
        write_variable(address, bytes, &module::global(module, &name.get()?)?)
    }

    fn cuLibraryLoadData(
        place: Out<u64>, address: *const c_void, options: In<u32>, values: Out<*mut c_void>, count: u32,
        _library_options: *const c_void, _library_values: *const c_void, _library_count: u32,
    ) {
        let images = image::at(address)?;
        answer_options(options, values, count, || load_library(place, "cuLibraryLoadData", images))
    }

    fn cuLibraryLoadFromFile(
        place: Out<u64>, path: Text, options: In<u32>, values: Out<*mut c_void>, count: u32,
        _library_options: *const c_void, _library_values: *const c_void, _library_count: u32,
    ) {
        let path = path.get()?;
        let images = image::in_file(&path)?;
        answer_options(options, values, count, || load_library(place, &path, images))
    }

    fn cuLibraryUnload(library: u64) {
        module::unload_library(library)
    }

    fn cuLibraryGetKernel(place: Out<u64>, library: u64, name: Text) {
        place.check()?;
        place.set(module::library_kernel(library, &name.get()?)?)
    }

    fn cuLibraryGetKernelCount(place: Out<u32>, library: u64) {
        place.set(module::library_kernel_count(library)? as u32)
    }

    fn cuLibraryEnumerateKernels(place: *mut u64, room: u32, library: u64) {
        // SAFETY: CUDA's contract.
        unsafe { write_handles(place, room, &module::library_kernels(library)?) }
    }

    context fn cuLibraryGetModule(place: Out<u64>, library: u64) {
        place.set(module::of_library(library)?)
    }

    context fn cuLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, library: u64, name: Text) {
        write_variable(address, bytes, &module::library_global(library, &name.get()?)?)
    }

    fn cuLibraryGetManaged(address: Out<u64>, bytes: Out<usize>, library: u64, name: Text) {
        write_variable(address, bytes, &module::library_managed(library, &name.get()?)?)
    }

    context fn cuKernelGetFunction(place: Out<u64>, kernel: u64) {
        Kernel::of_handle(kernel)?;
        // A kernel of a library is also the function of the current context.
        place.set(kernel)
    }

    fn cuKernelGetLibrary(place: Out<u64>, kernel: u64) {
        place.set(module::library_of_kernel(&*Kernel::of_handle(kernel)?)?)
    }

    fn cuKernelGetName(place: Out<*const c_char>, kernel: u64) {
        place.set(module::name_for_c(&*Kernel::of_handle(kernel)?))
    }

    fn cuFuncGetName(place: Out<*const c_char>, function: u64) {
        place.set(module::name_for_c(&*Kernel::of_handle(function)?))
    }

    fn cuKernelGetParamInfo(kernel: u64, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        parameter(kernel, index, offset, bytes)
    }

    fn cuFuncGetParamInfo(function: u64, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        parameter(function, index, offset, bytes)
    }

    fn cuFuncGetParamCount(function: u64, count: Out<usize>) {
        count.set(module::parameter_count(&*Kernel::of_handle(function)?)?)
    }

    fn cuKernelGetParamCount(kernel: u64, count: Out<usize>) {
        count.set(module::parameter_count(&*Kernel::of_handle(kernel)?)?)
    }

    context fn cuFuncGetModule(place: Out<u64>, function: u64) {
        place.set(module::of_kernel(&*Kernel::of_handle(function)?)?)
    }

    fn cuFuncIsLoaded(place: Out<c_int>, function: u64) {
        const LOADED: c_int = 1;
        Kernel::of_handle(function)?;
        place.set(LOADED)
    }

    fn cuFuncLoad(function: u64) {
        Kernel::of_handle(function)?.loaded().map(|_| ())
    }

    context fn cuKernelSetCacheConfig(kernel: u64, preference: c_int, device: c_int) {
        description::device_of(device)?;
        let kernel = Kernel::of_handle(kernel)?;
        context::with_device(device as u32, || function::set_cache(&kernel, kernel.device(), preference))
    }
}
