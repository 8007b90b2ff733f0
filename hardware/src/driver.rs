//! The functions of the CUDA driver that workloads need, by the library of this machine.

use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

/// What a function of the driver says where it does not succeed.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// There is no driver.
    #[error("the driver's library libcuda.so.1 cannot be loaded: {0}")]
    NoDriver(#[source] libloading::Error),
    /// The driver is too old for the request.
    #[error("the driver has no function {name}: {source}")]
    NoFunction {
        /// The function.
        name: &'static str,
        /// Why.
        #[source]
        source: libloading::Error,
    },
    /// A call failed.
    #[error("{function}: {name} ({code})")]
    Call {
        /// The function.
        function: &'static str,
        /// The error's name.
        name: String,
        /// Its number.
        code: c_int,
    },
}

/// `CUlaunchConfig`.
#[repr(C)]
struct LaunchConfiguration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_memory_bytes: c_uint,
    stream: *mut c_void,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

/// `CUlaunchAttribute`, as far as its value is a number.
#[repr(C)]
struct LaunchAttribute {
    id: c_uint,
    padding: c_uint,
    value: c_uint,
    rest: [c_uint; 15],
}

const ATTRIBUTE_COOPERATIVE: c_uint = 2;

/// Where a kernel runs, and how large it is.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, bytes.
    pub shared_memory_bytes: u32,
    /// Whether all blocks run at once.
    pub cooperative: bool,
}

/// Declares [`Driver`]: a method for each function, which fails unless it gives 0.
macro_rules! driver {
    ($($method:ident = $symbol:ident($($argument:ident: $kind:ty),*);)*) => {
        /// The driver of this machine, loaded.
        pub struct Driver {
            library: Library,
        }

        impl Driver {
            $(fn $method(&self $(, $argument: $kind)*) -> Result<(), DriverError> {
                let name = concat!(stringify!($symbol), "\0");
                // SAFETY: the types are those of the function in cuda.h.
                let code = unsafe {
                    let function = self.library.get::<unsafe extern "C" fn($($kind),*) -> c_int>(name.as_bytes());
                    let function = function.map_err(|source| DriverError::NoFunction { name: stringify!($symbol), source })?;
                    function($($argument),*)
                };
                self.checked(stringify!($symbol), code)
            })*
        }
    };
}

driver! {
    initialise = cuInit(flags: c_uint);
    driver_version = cuDriverGetVersion(version: *mut c_int);
    device = cuDeviceGet(device: *mut c_int, ordinal: c_int);
    device_name = cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    attribute = cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    retain_context = cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int);
    set_context = cuCtxSetCurrent(context: *mut c_void);
    load_module = cuModuleLoadData(module: *mut *mut c_void, image: *const c_void);
    unload_module = cuModuleUnload(module: *mut c_void);
    get_function = cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char);
    set_function_attribute = cuFuncSetAttribute(function: *mut c_void, attribute: c_int, value: c_int);
    launch_kernel = cuLaunchKernelEx(
        configuration: *const LaunchConfiguration, function: *mut c_void, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    allocate = cuMemAlloc_v2(address: *mut u64, bytes: usize);
    allocate_managed = cuMemAllocManaged(address: *mut u64, bytes: usize, flags: c_uint);
    release = cuMemFree_v2(address: u64);
    copy_in = cuMemcpyHtoD_v2(destination: u64, source: *const c_void, bytes: usize);
    copy_out = cuMemcpyDtoH_v2(destination: *mut c_void, source: u64, bytes: usize);
    copy_within = cuMemcpyDtoDAsync_v2(destination: u64, source: u64, bytes: usize, stream: *mut c_void);
    copy_in_later = cuMemcpyHtoDAsync_v2(destination: u64, source: *const c_void, bytes: usize, stream: *mut c_void);
    copy_out_later = cuMemcpyDtoHAsync_v2(destination: *mut c_void, source: u64, bytes: usize, stream: *mut c_void);
    fill = cuMemsetD8Async(address: u64, value: u8, count: usize, stream: *mut c_void);
    prefetch = cuMemPrefetchAsync(address: u64, bytes: usize, device: c_int, stream: *mut c_void);
    create_stream = cuStreamCreate(stream: *mut *mut c_void, flags: c_uint);
    destroy_stream = cuStreamDestroy_v2(stream: *mut c_void);
    synchronize_stream = cuStreamSynchronize(stream: *mut c_void);
    synchronize_context = cuCtxSynchronize();
    create_event = cuEventCreate(event: *mut *mut c_void, flags: c_uint);
    destroy_event = cuEventDestroy_v2(event: *mut c_void);
    record_event = cuEventRecord(event: *mut c_void, stream: *mut c_void);
    elapsed = cuEventElapsedTime(milliseconds: *mut f32, start: *mut c_void, end: *mut c_void);
}

/// A handle of the driver's: a stream, a kernel, an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(*mut c_void);

impl Handle {
    /// The legacy default stream.
    pub const DEFAULT_STREAM: Handle = Handle(null_mut());
}

/// The name and version of what runs the workloads.
#[derive(Clone, Debug)]
pub struct Device {
    /// The GPU's name.
    pub name: String,
    /// Its compute capability, ten times the major number plus the minor.
    pub compute_capability: u32,
    /// The newest version of CUDA that the driver knows: 12090 for 12.9.
    pub cuda_version: u32,
}

/// What a function writes through its first argument.
fn made<T>(initial: T, call: impl FnOnce(*mut T) -> Result<(), DriverError>) -> Result<T, DriverError> {
    let mut value = initial;
    call(&raw mut value)?;
    Ok(value)
}

fn handle(call: impl FnOnce(*mut *mut c_void) -> Result<(), DriverError>) -> Result<Handle, DriverError> {
    made(null_mut(), call).map(Handle)
}

impl Driver {
    /// Loads the driver and makes the primary context of its first GPU current.
    pub fn open() -> Result<(Driver, Device), DriverError> {
        // SAFETY: the library is the driver, whose initialisation has no conditions.
        let library = unsafe { Library::new("libcuda.so.1") }.map_err(DriverError::NoDriver)?;
        let driver = Driver { library };
        driver.initialise(0)?;
        let device = made(0, |device| driver.device(device, 0))?;
        let context = made(null_mut(), |context| driver.retain_context(context, device))?;
        driver.set_context(context)?;
        let mut name: [c_char; 128] = [0; 128];
        driver.device_name(name.as_mut_ptr(), name.len() as c_int, device)?;
        // SAFETY: the driver has ended the name with a zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        // Numbers of CUdevice_attribute.
        const CAPABILITY_MAJOR: c_int = 75;
        const CAPABILITY_MINOR: c_int = 76;
        let attribute = |which| made(0, |value| driver.attribute(value, which, device));
        let facts = Device {
            name,
            compute_capability: (attribute(CAPABILITY_MAJOR)? * 10 + attribute(CAPABILITY_MINOR)?) as u32,
            cuda_version: made(0, |version| driver.driver_version(version))? as u32,
        };
        Ok((driver, facts))
    }

    fn checked(&self, function: &'static str, code: c_int) -> Result<(), DriverError> {
        if code == 0 {
            return Ok(());
        }
        let mut name = null();
        // SAFETY: the type is that of the function in cuda.h, and names last as long as the driver.
        let name = unsafe {
            let text =
                self.library.get::<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>(b"cuGetErrorName\0");
            match text {
                Ok(text) if text(code, &raw mut name) == 0 => CStr::from_ptr(name).to_string_lossy().into_owned(),
                _ => "an error without a name".to_owned(),
            }
        };
        Err(DriverError::Call { function, name, code })
    }

    /// Loads PTX or a cubin.
    pub fn load(&self, image: &[u8]) -> Result<Handle, DriverError> {
        let ended: Vec<u8> = image.iter().copied().chain([0]).collect();
        handle(|module| self.load_module(module, ended.as_ptr().cast()))
    }

    /// Unloads a module.
    pub fn unload(&self, module: Handle) -> Result<(), DriverError> {
        self.unload_module(module.0)
    }

    /// A kernel of a module, which may use `shared_memory_bytes` of dynamic shared memory.
    pub fn kernel(&self, module: Handle, name: &str, shared_memory_bytes: u32) -> Result<Handle, DriverError> {
        const MAXIMUM_DYNAMIC_SHARED_BYTES: c_int = 8;
        let name = CString::new(name).unwrap_or_default();
        let function = handle(|function| self.get_function(function, module.0, name.as_ptr()))?;
        if shared_memory_bytes > 48 * 1024 {
            self.set_function_attribute(function.0, MAXIMUM_DYNAMIC_SHARED_BYTES, shared_memory_bytes as c_int)?;
        }
        Ok(function)
    }

    /// Starts a kernel; `parameters` is its block of parameters.
    pub fn launch(&self, kernel: Handle, shape: Shape, stream: Handle, parameters: &[u8]) -> Result<(), DriverError> {
        let cooperative = LaunchAttribute { id: ATTRIBUTE_COOPERATIVE, padding: 0, value: 1, rest: [0; 15] };
        let configuration = LaunchConfiguration {
            grid: shape.grid,
            block: shape.block,
            shared_memory_bytes: shape.shared_memory_bytes,
            stream: stream.0,
            attributes: &raw const cooperative,
            attribute_count: c_uint::from(shape.cooperative),
        };
        let mut size = parameters.len();
        // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
        let mut extra = [
            without_provenance_mut(1),
            parameters.as_ptr().cast_mut().cast(),
            without_provenance_mut(2),
            (&raw mut size).cast(),
            null_mut(),
        ];
        self.launch_kernel(&raw const configuration, kernel.0, null_mut(), extra.as_mut_ptr())
    }

    /// Memory of the GPU, or managed memory.
    pub fn memory(&self, bytes: u64, managed: bool) -> Result<u64, DriverError> {
        const ATTACH_GLOBAL: c_uint = 1;
        match managed {
            true => made(0, |address| self.allocate_managed(address, bytes as usize, ATTACH_GLOBAL)),
            false => made(0, |address| self.allocate(address, bytes as usize)),
        }
    }

    /// Ends memory.
    pub fn free(&self, address: u64) -> Result<(), DriverError> {
        self.release(address)
    }

    /// Copies to the GPU; an asynchronous one, which `stream` names, reads `data` until the stream has done it.
    pub fn copy_to(&self, address: u64, data: &[u8], stream: Option<Handle>) -> Result<(), DriverError> {
        match stream {
            Some(stream) => self.copy_in_later(address, data.as_ptr().cast(), data.len(), stream.0),
            None => self.copy_in(address, data.as_ptr().cast(), data.len()),
        }
    }

    /// Copies from the GPU; an asynchronous one, which `stream` names, writes `data` until the stream has done it.
    pub fn copy_from(&self, data: &mut [u8], address: u64, stream: Option<Handle>) -> Result<(), DriverError> {
        match stream {
            Some(stream) => self.copy_out_later(data.as_mut_ptr().cast(), address, data.len(), stream.0),
            None => self.copy_out(data.as_mut_ptr().cast(), address, data.len()),
        }
    }

    /// Copies within the GPU.
    pub fn copy(&self, destination: u64, source: u64, bytes: u64, stream: Handle) -> Result<(), DriverError> {
        self.copy_within(destination, source, bytes as usize, stream.0)
    }

    /// Sets bytes.
    pub fn set(&self, address: u64, value: u8, bytes: u64, stream: Handle) -> Result<(), DriverError> {
        self.fill(address, value, bytes as usize, stream.0)
    }

    /// Brings managed memory to the GPU, or to the host.
    pub fn bring(&self, address: u64, bytes: u64, to_host: bool, stream: Handle) -> Result<(), DriverError> {
        self.prefetch(address, bytes as usize, if to_host { -1 } else { 0 }, stream.0)
    }

    /// A new stream.
    pub fn stream(&self) -> Result<Handle, DriverError> {
        handle(|stream| self.create_stream(stream, 0))
    }

    /// Ends a stream.
    pub fn end_stream(&self, stream: Handle) -> Result<(), DriverError> {
        self.destroy_stream(stream.0)
    }

    /// Waits for a stream, or for everything.
    pub fn wait(&self, stream: Option<Handle>) -> Result<(), DriverError> {
        match stream {
            Some(stream) => self.synchronize_stream(stream.0),
            None => self.synchronize_context(),
        }
    }

    /// An event that keeps the time at which `stream` comes to it.
    pub fn mark(&self, stream: Handle) -> Result<Handle, DriverError> {
        let event = handle(|event| self.create_event(event, 0))?;
        self.record_event(event.0, stream.0)?;
        Ok(event)
    }

    /// Microseconds between two marks that have been passed; ends them.
    pub fn between(&self, start: Handle, end: Handle) -> Result<f64, DriverError> {
        let milliseconds = made(0.0, |time| self.elapsed(time, start.0, end.0))?;
        self.destroy_event(start.0)?;
        self.destroy_event(end.0)?;
        Ok(f64::from(milliseconds) * 1000.0)
    }
}
