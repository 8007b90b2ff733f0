//! Code that is loaded at run time (`cudaLibrary*`).

use crate::abi::arguments::{In, Out, Text, write_handles};
use crate::abi::jit::answer_options;
use crate::runtime_api;
use crate::session::code::{Image, image, module};
use crate::session::connection::description;
use balar_host::CudaError;
use balar_host::call::ModuleVariable;
use std::ffi::c_void;

fn load(library: Out<u64>, name: &str, images: Vec<Image>) -> Result<(), CudaError> {
    library.check()?;
    library.set(module::load_library(name, images)?)
}

fn write_variable(address: Out<u64>, bytes: Out<usize>, variable: &ModuleVariable) {
    address.set_if_wanted(variable.address);
    bytes.set_if_wanted(variable.bytes as usize);
}

runtime_api! {
    fn cudaLibraryLoadData(
        library: Out<u64>,
        image: *const c_void,
        options: In<u32>,
        values: Out<*mut c_void>,
        count: u32,
        _library_options: *const c_void,
        _library_values: *const c_void,
        _library_count: u32,
    ) {
        let images = image::at(image)?;
        answer_options(options, values, count, || load(library, "cudaLibraryLoadData", images))
    }

    fn cudaLibraryLoadFromFile(
        library: Out<u64>,
        path: Text,
        options: In<u32>,
        values: Out<*mut c_void>,
        count: u32,
        _library_options: *const c_void,
        _library_values: *const c_void,
        _library_count: u32,
    ) {
        let path = path.get()?;
        let images = image::in_file(&path)?;
        answer_options(options, values, count, || load(library, &path, images))
    }

    fn cudaLibraryUnload(library: u64) {
        module::unload_library(library)
    }

    fn cudaLibraryGetKernel(kernel: Out<u64>, library: u64, name: Text) {
        kernel.check()?;
        kernel.set(module::library_kernel(library, &name.get()?)?)
    }

    fn cudaLibraryGetKernelCount(count: Out<u32>, library: u64) {
        count.set(module::library_kernel_count(library)? as u32)
    }

    fn cudaLibraryEnumerateKernels(kernels: *mut u64, room: u32, library: u64) {
        // SAFETY: CUDA's contract.
        unsafe { write_handles(kernels, room, &module::library_kernels(library)?) }
    }

    fn cudaLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, library: u64, name: Text) {
        description::description()?;
        write_variable(address, bytes, &module::library_global(library, &name.get()?)?);
        Ok(())
    }

    fn cudaLibraryGetManaged(address: Out<u64>, bytes: Out<usize>, library: u64, name: Text) {
        description::description()?;
        write_variable(address, bytes, &module::library_managed(library, &name.get()?)?);
        Ok(())
    }
}
