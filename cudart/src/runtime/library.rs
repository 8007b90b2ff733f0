//! Code that is loaded at run time (`cudaLibrary*`): as the driver has it.

use super::function::outcome_of;
use crate::abi::arguments::{In, Out, Text};
use crate::cuda_api;
use crate::driver::module;
use std::ffi::c_void;

cuda_api! {
    fn cudaLibraryLoadData(
        library: Out<u64>,
        image: *const c_void,
        options: In<u32>,
        values: *mut *mut c_void,
        count: u32,
        library_options: *const c_void,
        library_values: *const c_void,
        library_count: u32,
    ) {
        // SAFETY: the same contract as this function's.
        outcome_of(unsafe {
            module::cuLibraryLoadData(
                library,
                image,
                options,
                values,
                count,
                library_options,
                library_values,
                library_count,
            )
        })
    }

    fn cudaLibraryLoadFromFile(
        library: Out<u64>,
        path: Text,
        options: In<u32>,
        values: *mut *mut c_void,
        count: u32,
        library_options: *const c_void,
        library_values: *const c_void,
        library_count: u32,
    ) {
        // SAFETY: the same contract as this function's.
        outcome_of(unsafe {
            module::cuLibraryLoadFromFile(
                library,
                path,
                options,
                values,
                count,
                library_options,
                library_values,
                library_count,
            )
        })
    }

    fn cudaLibraryUnload(library: u64) {
        // SAFETY: the same contract as this function's.
        outcome_of(unsafe { module::cuLibraryUnload(library) })
    }

    fn cudaLibraryGetKernel(kernel: Out<u64>, library: u64, name: Text) {
        // SAFETY: the same contract as this function's.
        outcome_of(unsafe { module::cuLibraryGetKernel(kernel, library, name) })
    }

    fn cudaLibraryGetKernelCount(count: Out<u32>, library: u64) {
        // SAFETY: the same contract as this function's.
        outcome_of(unsafe { module::cuLibraryGetKernelCount(count, library) })
    }

    fn cudaLibraryEnumerateKernels(kernels: *mut u64, room: u32, library: u64) {
        // SAFETY: the same contract as this function's.
        outcome_of(unsafe { module::cuLibraryEnumerateKernels(kernels, room, library) })
    }

    fn cudaLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, library: u64, name: Text) {
        crate::session::process::description()?;
        // SAFETY: the same contract as this function's.
        outcome_of(unsafe { module::cuLibraryGetGlobal(address, bytes, library, name) })
    }

    fn cudaLibraryGetManaged(address: Out<u64>, bytes: Out<usize>, library: u64, name: Text) {
        crate::session::process::description()?;
        // SAFETY: the same contract as this function's.
        outcome_of(unsafe { module::cuLibraryGetManaged(address, bytes, library, name) })
    }
}
