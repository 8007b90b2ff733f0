//! The functions that static constructors call (`__cudaRegister*`): code, kernels and variables of the program.

use crate::abi::arguments::{Dim3, Out, Text};
use crate::runtime::last_error;
use crate::runtime_api;
use crate::session::code::registry::{self, HostVariable, Variable};
use crate::session::code::{Code, Kernel, image};
use crate::session::state::{process, thread};
use balar_host::CudaError;
use std::ffi::{c_char, c_int, c_void};

/// The program's file name, or that of its library that `address` is in.
fn object_name(address: *const c_void) -> String {
    let mut information = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: `dladdr` only compares the address, and fills its argument if it returns a value other than 0.
    let path = unsafe {
        if libc::dladdr(address, information.as_mut_ptr()) == 0 {
            return String::from("the program");
        }
        std::ffi::CStr::from_ptr(information.assume_init().dli_fname).to_string_lossy().into_owned()
    };
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn add_variable(handle: u64, host: *const c_void, name: Text, kind: HostVariable) {
    if let (Ok(code), Ok(name)) = (registry::code(handle), name.get()) {
        registry::add_variable(host as usize, Variable { name: name.into(), code, kind });
    }
}

runtime_api! {
    raw fn __cudaRegisterFatBinary(record: *const c_void) -> *mut *mut c_void {
        let images = image::of_program(record);
        registry::add_code(Code::new(object_name(record), images)) as *mut *mut c_void
    }

    raw fn __cudaRegisterFatBinaryEnd(_handle: u64) -> () {}

    raw fn __cudaUnregisterFatBinary(handle: u64) -> () {
        registry::remove_code(handle);
    }

    raw fn __cudaRegisterFunction(
        handle: u64,
        host_function: *const c_void,
        _device_function: *mut c_char,
        name: Text,
        _thread_limit: c_int,
        _thread: *mut c_void,
        _block: *mut c_void,
        _block_extent: *mut c_void,
        _grid_extent: *mut c_void,
        _warp_size: *mut c_int,
    ) -> () {
        if let (Ok(code), Ok(name)) = (registry::code(handle), name.get()) {
            registry::add_kernel(host_function as usize, Kernel::new(code, name.into(), None));
        }
    }

    raw fn __cudaRegisterVar(
        handle: u64,
        host: *mut c_char,
        _device: *mut c_char,
        name: Text,
        _external: c_int,
        bytes: usize,
        _constant: c_int,
        _global: c_int,
    ) -> () {
        add_variable(handle, host.cast(), name, HostVariable::Memory(bytes));
    }

    raw fn __cudaRegisterManagedVar(
        handle: u64,
        host: *mut *mut c_void,
        _device: *mut c_char,
        name: Text,
        _external: c_int,
        bytes: usize,
        _constant: c_int,
        _global: c_int,
    ) -> () {
        if let (Ok(code), Ok(text)) = (registry::code(handle), name.get()) {
            code.add_managed(host as usize, text.into());
        }
        add_variable(handle, host.cast_const().cast(), name, HostVariable::Memory(bytes));
    }

    raw fn __cudaRegisterTexture(
        handle: u64,
        host: *const c_void,
        _device: *const *const c_void,
        name: Text,
        dimensions: c_int,
        normalized: c_int,
        _external: c_int,
    ) -> () {
        add_variable(handle, host, name, HostVariable::Texture { dimensions, is_normalized: normalized != 0 });
    }

    raw fn __cudaRegisterSurface(
        handle: u64,
        host: *const c_void,
        _device: *const *const c_void,
        name: Text,
        _dimensions: c_int,
        _external: c_int,
    ) -> () {
        add_variable(handle, host, name, HostVariable::Surface);
    }

    /// Called before the host first uses a managed variable: gives the pointers to them their values.
    raw fn __cudaInitModule(handle: u64) -> c_char {
        let loaded = registry::code(handle).and_then(|code| {
            process::usable()?;
            code.on(thread::device())
        });
        if let Err(error) = loaded {
            last_error::record(error);
        }
        c_char::from(loaded.is_ok() as i8)
    }

    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared_bytes: usize, stream: usize) {
        let configuration = thread::PushedConfiguration { grid, block, shared_bytes, stream };
        thread::with(|thread| thread.configurations.borrow_mut().push(configuration));
        Ok(())
    }

    fn __cudaPopCallConfiguration(grid: Out<Dim3>, block: Out<Dim3>, shared_bytes: Out<usize>, stream: Out<usize>) {
        let configuration = thread::with(|thread| thread.configurations.borrow_mut().pop());
        let configuration = configuration.ok_or(CudaError::MissingConfiguration)?;
        grid.set(configuration.grid)?;
        block.set(configuration.block)?;
        shared_bytes.set(configuration.shared_bytes)?;
        stream.set(configuration.stream)
    }

    fn __cudaGetKernel(kernel: Out<u64>, host_function: usize) {
        kernel.set(registry::kernel(host_function)?.handle())
    }
}
