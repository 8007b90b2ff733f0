//! A program of CUDA's driver API, to test `balar-actors run` where there is no CUDA: it loads libcuda.so.1 by its name, as programs do
//! that compile their kernels while they run. It checks its results and prints "passed".

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Write;
use std::process::ExitCode;
use std::ptr::null_mut;

type Failure = String;
type Address = u64;

/// `out[i] = scale * (a * x[i] + y[i])` for i below `count`.
const TEXT: &CStr = c"
.version 6.0
.target sm_60
.address_size 64
.const .align 4 .f32 scale = 0f3F800000;
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u64 out, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .f32 %f<7>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<9>;
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u64 %rd3, [out];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd4, %r5, 4;
    add.u64 %rd5, %rd1, %rd4;
    add.u64 %rd6, %rd2, %rd4;
    add.u64 %rd7, %rd3, %rd4;
    ld.global.f32 %f2, [%rd5];
    ld.global.f32 %f3, [%rd6];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    ld.const.f32 %f5, [scale];
    mul.f32 %f6, %f4, %f5;
    st.global.f32 [%rd7], %f6;
DONE:
    ret;
}
";

/// A texture reference, as programs before CUDA 12 have them.
const TEXTURE: &CStr = c"
.version 6.0
.target sm_60
.address_size 64
.global .texref picture;
";

/// The driver library.
struct Driver(*mut c_void);

impl Driver {
    fn load() -> Result<Driver, Failure> {
        // SAFETY: the library's initialisers are those of the simulator's.
        let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
        if library.is_null() { Err("there is no libcuda.so.1".to_owned()) } else { Ok(Driver(library)) }
    }

    /// Calls a function with up to eleven arguments, each in a register or word of its own, and wants this code.
    fn expect(&self, code: c_int, name: &str, arguments: &[u64]) -> Result<(), Failure> {
        let symbol = CString::new(name).map_err(|error| error.to_string())?;
        let mut a = [0_u64; 11];
        a[..arguments.len()].copy_from_slice(arguments);
        // SAFETY: the functions take integers and addresses alone: further arguments than theirs are ignored.
        let found = unsafe {
            let function = libc::dlsym(self.0, symbol.as_ptr());
            if function.is_null() {
                return Err(format!("{name} is missing"));
            }
            let function: unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> c_int =
                std::mem::transmute(function);
            function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10])
        };
        if found == code { Ok(()) } else { Err(format!("{name} gives {found}, expected {code}")) }
    }

    fn call(&self, name: &str, arguments: &[u64]) -> Result<(), Failure> {
        self.expect(0, name, arguments)
    }

    /// Calls a function that writes its result to its first argument.
    fn get(&self, name: &str, arguments: &[u64]) -> Result<u64, Failure> {
        let mut result = 0_u64;
        let mut all = vec![&raw mut result as u64];
        all.extend(arguments);
        self.call(name, &all)?;
        Ok(result)
    }
}

fn address<T>(value: &T) -> u64 {
    std::ptr::from_ref(value) as u64
}

const INVALID_VALUE: c_int = 1;
const NOT_INITIALIZED: c_int = 3;
const INVALID_CONTEXT: c_int = 201;
const INVALID_HANDLE: c_int = 400;
const NOT_FOUND: c_int = 500;
const NOT_SUPPORTED: c_int = 801;

fn main() -> ExitCode {
    let (text, code) = match run() {
        Ok(()) => ("passed".to_owned(), ExitCode::SUCCESS),
        Err(failure) => (failure, ExitCode::FAILURE),
    };
    // Nobody minds where nobody reads it.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}

fn run() -> Result<(), Failure> {
    let driver = Driver::load()?;
    let mut place = 0_u64;
    driver.expect(NOT_INITIALIZED, "cuDeviceGetCount", &[&raw mut place as u64])?;
    driver.call("cuInit", &[0])?;
    let device = driver.get("cuDeviceGet", &[0])?;
    driver.expect(INVALID_CONTEXT, "cuMemAlloc_v2", &[&raw mut place as u64, 64])?;
    let context = driver.get("cuCtxCreate_v2", &[0, device])?;
    if driver.get("cuCtxGetCurrent", &[])? != context {
        return Err("the new context is not current".to_owned());
    }

    let module = driver.get("cuModuleLoadData", &[TEXT.as_ptr() as u64])?;
    let function = driver.get("cuModuleGetFunction", &[module, c"saxpy".as_ptr() as u64])?;
    driver.expect(NOT_FOUND, "cuModuleGetFunction", &[&raw mut place as u64, module, c"none".as_ptr() as u64])?;
    saxpy(&driver, module, function)?;
    linked(&driver)?;
    pieces(&driver)?;
    by_name(&driver)?;
    virtual_memory(&driver, function)?;
    texture_reference(&driver)?;

    driver.call("cuModuleUnload", &[module])?;
    driver.expect(INVALID_HANDLE, "cuModuleUnload", &[module])?;
    driver.expect(INVALID_HANDLE, "cuLaunchKernel", &[function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0])?;
    driver.call("cuCtxDestroy_v2", &[context])?;
    if driver.get("cuCtxGetCurrent", &[])? != 0 {
        return Err("the context is current after its end".to_owned());
    }
    Ok(())
}

/// What the static runtime of CUDA 9.1 sets of every texture reference.
fn texture_reference(driver: &Driver) -> Result<(), Failure> {
    let module = driver.get("cuModuleLoadData", &[TEXTURE.as_ptr() as u64])?;
    let texture = driver.get("cuModuleGetTexRef", &[module, c"picture".as_ptr() as u64])?;
    driver.call("cuTexRefSetFilterMode", &[texture, 1])?;
    driver.call("cuTexRefSetMaxAnisotropy", &[texture, 4])?;
    driver.call("cuTexRefSetMipmapFilterMode", &[texture, 1])?;
    driver.expect(INVALID_VALUE, "cuTexRefSetMipmapFilterMode", &[texture, 2])?;
    // Their numbers are in registers of another kind, and nothing uses them.
    driver.call("cuTexRefSetMipmapLevelBias", &[texture])?;
    driver.call("cuTexRefSetMipmapLevelClamp", &[texture])?;
    driver.call("cuModuleUnload", &[module])?;
    driver.expect(INVALID_HANDLE, "cuTexRefSetMipmapLevelClamp", &[texture])
}

/// Both forms of arguments; a copy before and a fill behind on a stream.
fn saxpy(driver: &Driver, module: u64, function: u64) -> Result<(), Failure> {
    const COUNT: u32 = 1000;
    let bytes = u64::from(COUNT) * 4;
    let x: Vec<f32> = (0..COUNT).map(|index| index as f32).collect();
    let y: Vec<f32> = (0..COUNT).map(|index| (2 * index) as f32).collect();
    let [on_x, on_y, out]: [Address; 3] = [
        driver.get("cuMemAlloc_v2", &[bytes])?,
        driver.get("cuMemAlloc_v2", &[bytes])?,
        driver.get("cuMemAlloc_v2", &[bytes])?,
    ];
    driver.call("cuMemcpyHtoD_v2", &[on_x, x.as_ptr() as u64, bytes])?;
    driver.call("cuMemcpyHtoD_v2", &[on_y, y.as_ptr() as u64, bytes])?;
    driver.expect(INVALID_VALUE, "cuMemcpyHtoD_v2", &[0, x.as_ptr() as u64, bytes])?;
    let mut scale_bytes = 0_u64;
    let scale = driver.get("cuModuleGetGlobal_v2", &[&raw mut scale_bytes as u64, module, c"scale".as_ptr() as u64])?;
    if scale_bytes != 4 {
        return Err(format!("the variable has {scale_bytes} bytes, expected 4"));
    }
    driver.call("cuMemcpyHtoD_v2", &[scale, address(&2_f32), 4])?;

    let stream = driver.get("cuStreamCreate", &[1])?;
    let a = 3_f32;
    let arguments = [address(&a), address(&on_x), address(&on_y), address(&out), address(&COUNT)];
    driver.call("cuLaunchKernel", &[function, 8, 1, 1, 128, 1, 1, 0, stream, arguments.as_ptr() as u64, 0])?;
    check(driver, out, stream, |index| 2.0 * (3.0 * index + 2.0 * index))?;

    // The same in one buffer: a, padding, three addresses, the count.
    let buffer = [u64::from(5_f32.to_bits()), on_x, on_y, out, u64::from(COUNT)];
    let size = size_of_val(&buffer);
    let extra = [1, buffer.as_ptr() as u64, 2, address(&size), 0];
    driver.call("cuLaunchKernel", &[function, 8, 1, 1, 128, 1, 1, 0, stream, 0, extra.as_ptr() as u64])?;
    check(driver, out, stream, |index| 2.0 * (5.0 * index + 2.0 * index))?;
    driver.expect(
        INVALID_VALUE,
        "cuLaunchKernel",
        &[function, 0, 1, 1, 1, 1, 1, 0, stream, arguments.as_ptr() as u64, 0],
    )?;

    driver.call("cuMemsetD32Async", &[out, u64::from(7_f32.to_bits()), u64::from(COUNT), stream])?;
    check(driver, out, stream, |_| 7.0)?;
    driver.call("cuStreamDestroy_v2", &[stream])?;
    for memory in [on_x, on_y, out] {
        driver.call("cuMemFree_v2", &[memory])?;
    }
    driver.expect(INVALID_VALUE, "cuMemFree_v2", &[12345])
}

fn check(driver: &Driver, out: Address, stream: u64, expected: impl Fn(f32) -> f32) -> Result<(), Failure> {
    let mut found = vec![0_f32; 1000];
    driver.call("cuMemcpyDtoHAsync_v2", &[found.as_mut_ptr() as u64, out, 4000, stream])?;
    driver.call("cuStreamSynchronize", &[stream])?;
    match found.iter().enumerate().find(|(index, value)| **value != expected(*index as f32)) {
        Some((index, value)) => Err(format!("element {index} is {value}, expected {}", expected(index as f32))),
        None => Ok(()),
    }
}

/// A module of images of a kind (`CUjitInputType`) that are linked while the program runs.
fn link(driver: &Driver, kind: u64, images: &[&[u8]]) -> Result<u64, Failure> {
    let mut linker = 0_u64;
    driver.call("cuLinkCreate_v2", &[0, 0, 0, &raw mut linker as u64])?;
    for image in images {
        let (data, bytes) = (image.as_ptr() as u64, image.len() as u64);
        driver.call("cuLinkAddData_v2", &[linker, kind, data, bytes, c"image".as_ptr() as u64, 0, 0, 0])?;
    }
    let (mut image, mut length) = (null_mut::<c_void>(), 0_usize);
    driver.call("cuLinkComplete", &[linker, &raw mut image as u64, &raw mut length as u64])?;
    let module = driver.get("cuModuleLoadData", &[image as u64])?;
    driver.call("cuLinkDestroy", &[linker])?;
    Ok(module)
}

/// PTX.
fn linked(driver: &Driver) -> Result<(), Failure> {
    const PTX: u64 = 1;
    let module = link(driver, PTX, &[TEXT.to_bytes_with_nul()])?;
    driver.get("cuModuleGetFunction", &[module, c"saxpy".as_ptr() as u64])?;
    driver.call("cuModuleUnload", &[module])
}

/// Relocatable machine code: a kernel of one file calls functions of the other.
fn pieces(driver: &Driver) -> Result<(), Failure> {
    const CUBIN: u64 = 0;
    const KERNELS: &[u8] = include_bytes!("../../isa/tests/machine/pieces_kernels.sm_70.cubin");
    const FUNCTIONS: &[u8] = include_bytes!("../../isa/tests/machine/pieces_functions.sm_70.cubin");
    let module = link(driver, CUBIN, &[KERNELS, FUNCTIONS])?;
    let function = driver.get("cuModuleGetFunction", &[module, c"exchange".as_ptr() as u64])?;
    let out: Address = driver.get("cuMemAlloc_v2", &[128])?;
    let arguments = [address(&out)];
    driver.call("cuLaunchKernel", &[function, 1, 1, 1, 32, 1, 1, 0, 0, arguments.as_ptr() as u64, 0])?;
    let mut found = [0_i32; 32];
    driver.call("cuMemcpyDtoH_v2", &[found.as_mut_ptr() as u64, out, 128])?;
    driver.call("cuMemFree_v2", &[out])?;
    driver.call("cuModuleUnload", &[module])?;
    match (0..).zip(found).find(|(thread, value)| *value != 12 * (31 - thread)) {
        Some((thread, value)) => Err(format!("thread {thread} gives {value}, expected {}", 12 * (31 - thread))),
        None => Ok(()),
    }
}

/// `CUmemAllocationProp`: memory of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Properties {
    pinned: u32,
    handle_types: u32,
    location: [u32; 2],
    metadata: u64,
    /// Compression in the lowest byte.
    flags: u64,
}

/// Memory of every device in turn, page by page, at one range of addresses, and two vectors in it.
fn virtual_memory(driver: &Driver, function: u64) -> Result<(), Failure> {
    const PAGES: u64 = 4;
    let devices = driver.get("cuDeviceGetCount", &[])? as u32;
    if driver.get("cuDeviceGetAttribute", &[102, 0])? as u32 != 1 {
        return Err("the device has no virtual memory management".to_owned());
    }
    let of = |device| Properties { pinned: 1, location: [1, device], ..Properties::default() };
    let page = driver.get("cuMemGetAllocationGranularity", &[address(&of(0)), 0])?;
    let start = driver.get("cuMemAddressReserve", &[PAGES * page, 0, 0, 0])?;
    for index in 0..PAGES {
        let own = of(index as u32 % devices);
        // Compression is a wish.
        let handle = driver.get("cuMemCreate", &[page, address(&Properties { flags: 1, ..own }), 0])?;
        let mut found = Properties::default();
        driver.call("cuMemGetAllocationPropertiesFromHandle", &[&raw mut found as u64, handle])?;
        if found != own {
            return Err(format!("memory is {found:?}, expected {own:?}"));
        }
        driver.expect(INVALID_VALUE, "cuMemMap", &[start + index * page, page, page, handle, 0])?;
        driver.call("cuMemMap", &[start + index * page, page, 0, handle, 0])?;
        if driver.get("cuMemRetainAllocationHandle", &[start + index * page + 9])? != handle {
            return Err("the memory has another handle than it was mapped by".to_owned());
        }
        driver.expect(NOT_SUPPORTED, "cuMemExportToShareableHandle", &[0, handle, 1, 0])?;
        driver.call("cuMemRelease", &[handle])?;
        driver.call("cuMemRelease", &[handle])?;
        driver.expect(INVALID_VALUE, "cuMemRelease", &[handle])?;
    }
    let y = start + 2 * page;
    let count = (2 * page / 4) as u32;
    let values: Vec<f32> = (0..count).map(|index| (index % 1000) as f32).collect();
    driver.expect(INVALID_VALUE, "cuMemcpyHtoD_v2", &[y, values.as_ptr() as u64, 2 * page])?;
    // To device 0: reading and writing.
    let access = [1_u32, 0, 3];
    driver.call("cuMemSetAccess", &[start, PAGES * page, address(&access), 1])?;
    if driver.get("cuMemGetAccess", &[address(&[1_u32, 0]), y])? != 3 {
        return Err("the device may not access what was opened to it".to_owned());
    }
    driver.call("cuMemcpyHtoD_v2", &[start, values.as_ptr() as u64, 2 * page])?;
    driver.call("cuMemcpyDtoD_v2", &[y, start, 2 * page])?;
    let a = 3_f32;
    // Values on both sides of the border of two pages.
    let (at, into) = (start + page - 2000, y + page - 2000);
    let few = 1000_u32;
    let arguments = [address(&a), address(&at), address(&into), address(&into), address(&few)];
    driver.call("cuLaunchKernel", &[function, 8, 1, 1, 128, 1, 1, 0, 0, arguments.as_ptr() as u64, 0])?;
    let mut found = vec![0_f32; few as usize];
    driver.call("cuMemcpyDtoH_v2", &[found.as_mut_ptr() as u64, into, u64::from(few) * 4])?;
    let first = (page - 2000) / 4;
    // The scale is 2 since the first kernel.
    let expected = |index: usize| 2.0 * 4.0 * values[first as usize + index];
    if let Some((index, value)) = found.iter().enumerate().find(|(index, value)| **value != expected(*index)) {
        return Err(format!("mapped element {index} is {value}, expected {}", expected(index)));
    }
    let device = driver.get("cuPointerGetAttribute", &[9, y + page])? as u32;
    if device != 3 % devices {
        return Err(format!("the last page is of device {device}"));
    }
    driver.expect(INVALID_VALUE, "cuMemAddressFree", &[start, PAGES * page])?;
    driver.expect(INVALID_VALUE, "cuMemUnmap", &[start, page / 2])?;
    driver.call("cuMemUnmap", &[start, PAGES * page])?;
    driver.call("cuMemAddressFree", &[start, PAGES * page])
}

/// A function that is asked for by its name is the one of that version.
fn by_name(driver: &Driver) -> Result<(), Failure> {
    let (mut function, mut status) = (null_mut::<c_void>(), -1);
    let arguments = [c"cuMemGetInfo".as_ptr() as u64, &raw mut function as u64, 12000, 0, &raw mut status as u64];
    driver.call("cuGetProcAddress_v2", &arguments)?;
    if function.is_null() || status != 0 {
        return Err(format!("cuMemGetInfo is not found by its name: status {status}"));
    }
    let (mut free, mut total) = (0_usize, 0_usize);
    // SAFETY: the type of cuMemGetInfo since CUDA 3.2.
    let code = unsafe {
        let function: unsafe extern "C" fn(*mut usize, *mut usize) -> c_int = std::mem::transmute(function);
        function(&raw mut free, &raw mut total)
    };
    if code != 0 || free == 0 || free > total {
        return Err(format!("cuMemGetInfo gives {code}, {free} of {total} bytes"));
    }
    let mut text = std::ptr::null::<c_char>();
    driver.call("cuGetErrorName", &[700, &raw mut text as u64])?;
    // SAFETY: the function has given a text.
    let name = unsafe { CStr::from_ptr(text) };
    if name == c"CUDA_ERROR_ILLEGAL_ADDRESS" { Ok(()) } else { Err(format!("error 700 is {name:?}")) }
}
