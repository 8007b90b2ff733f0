//! The parameters of a launch, from a program's pointers to the bytes that a kernel gets.

use crate::session::code::loaded::LoadedKernel;
use balar_host::CudaError;
use std::ffi::c_void;

/// Ends the list of a launch's `extra`.
const EXTRA_END: usize = 0;
/// The next entry of `extra` is the address of all arguments in one buffer.
const EXTRA_BUFFER: usize = 1;
/// The next entry is the address of the buffer's size.
const EXTRA_BYTES: usize = 2;

/// The values of a kernel's parameters, each at its offset.
///
/// # Safety
///
/// `arguments` points to as many pointers as the kernel has parameters, each to a value of that parameter's size.
pub unsafe fn pack(kernel: &LoadedKernel, arguments: *const *const c_void) -> Result<Vec<u8>, CudaError> {
    let parameters = &kernel.description().parameters;
    let bytes = parameters.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
    let mut block = vec![0; bytes as usize];
    if parameters.is_empty() {
        return Ok(block);
    }
    if arguments.is_null() {
        return Err(CudaError::InvalidValue);
    }
    for (index, &(offset, bytes)) in parameters.iter().enumerate() {
        // SAFETY: the caller's promise; the block reaches to the end of each parameter.
        unsafe {
            let argument = *arguments.add(index);
            if argument.is_null() {
                return Err(CudaError::InvalidValue);
            }
            std::ptr::copy_nonoverlapping(
                argument.cast::<u8>(),
                block.as_mut_ptr().add(offset as usize),
                bytes as usize,
            );
        }
    }
    Ok(block)
}

/// The values of a kernel's parameters, from `arguments` or from `extra`.
///
/// # Safety
///
/// The two are arguments as `cuLaunchKernel` wants them for this kernel.
pub unsafe fn parameters(
    kernel: &LoadedKernel,
    arguments: *const *const c_void,
    extra: *const *const c_void,
) -> Result<Vec<u8>, CudaError> {
    if !arguments.is_null() && !extra.is_null() {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: the caller's.
    unsafe { if extra.is_null() { pack(kernel, arguments) } else { buffer(kernel, extra) } }
}

/// The arguments in the one buffer that `extra` names.
///
/// # Safety
///
/// `extra` is a list of names and values that ends with [`EXTRA_END`].
unsafe fn buffer(kernel: &LoadedKernel, mut extra: *const *const c_void) -> Result<Vec<u8>, CudaError> {
    let (mut address, mut bytes) = (std::ptr::null::<u8>(), 0);
    // SAFETY: the caller's list; the buffer has as many bytes as it says.
    unsafe {
        loop {
            match extra.read() as usize {
                EXTRA_END => break,
                EXTRA_BUFFER => address = extra.add(1).read().cast(),
                EXTRA_BYTES => bytes = extra.add(1).read().cast::<usize>().read_unaligned(),
                _ => return Err(CudaError::InvalidValue),
            }
            extra = extra.add(2);
        }
        let wanted = kernel.description().parameters.iter().map(|(offset, bytes)| offset + bytes).max().unwrap_or(0);
        if bytes < wanted as usize || (address.is_null() && wanted > 0) {
            return Err(CudaError::InvalidValue);
        }
        if wanted == 0 {
            return Ok(Vec::new());
        }
        Ok(std::slice::from_raw_parts(address, wanted as usize).to_vec())
    }
}
