//! A program that names its phases by NVTX, to test `balar-actors run --detail nvtx=NAME` where there is no CUDA. It loads the library that
//! hears of ranges as the header of NVTX does, and launches kernels of CUDA's driver API within ranges of every kind.
//!
//! The names of kernels say where they are launched. It prints "ranges" where a library hears of them, and "no ranges" otherwise.

use balar_cudart::abi::nvtx::{CALLBACKS, Callbacks, EventAttributes, GetExportTable, Places, core, domains, message};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::process::ExitCode;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

type Failure = String;

const KERNELS: [&str; 9] =
    ["before", "pushed", "inner", "popped", "started", "other", "wide", "registered", "of_thread"];

/// As many places as NVTX has in either module, and one more.
const PLACES: usize = 17;

static FUNCTIONS: [[AtomicPtr<c_void>; PLACES]; 2] = [
    const { [const { AtomicPtr::new(null_mut()) }; PLACES] },
    const { [const { AtomicPtr::new(null_mut()) }; PLACES] },
];
static CORE: [AtomicPtr<AtomicPtr<c_void>>; PLACES] = [const { AtomicPtr::new(null_mut()) }; PLACES];
static DOMAINS: [AtomicPtr<AtomicPtr<c_void>>; PLACES] = [const { AtomicPtr::new(null_mut()) }; PLACES];
static TABLE: Callbacks = Callbacks { size: size_of::<Callbacks>(), places: Some(places) };

unsafe extern "C" fn tables(number: u32) -> *const c_void {
    if number == CALLBACKS { (&raw const TABLE).cast() } else { null() }
}

unsafe extern "C" fn places(module: c_int, into: *mut Places, count: *mut c_uint) -> c_int {
    let (table, functions) = match module {
        core::MODULE => (&CORE, &FUNCTIONS[0]),
        domains::MODULE => (&DOMAINS, &FUNCTIONS[1]),
        _ => return 0,
    };
    // Place 0 is none, as in NVTX.
    for (place, function) in table.iter().zip(functions).skip(1) {
        place.store(std::ptr::from_ref(function).cast_mut(), Ordering::SeqCst);
    }
    // SAFETY: the caller's addresses are valid.
    unsafe {
        into.write(table.as_ptr().cast_mut().cast());
        count.write(PLACES as c_uint);
    }
    1
}

/// Calls a function of NVTX with up to two arguments. Nothing happens where nobody hears it, as in the header.
fn nvtx(module: usize, number: usize, arguments: [u64; 2]) -> u64 {
    let function = FUNCTIONS[module][number].load(Ordering::SeqCst);
    if function.is_null() {
        return 0;
    }
    // SAFETY: the functions take up to two integers or addresses, and return one or nothing.
    unsafe {
        let function: unsafe extern "C" fn(u64, u64) -> u64 = std::mem::transmute(function);
        function(arguments[0], arguments[1])
    }
}

fn load() -> Result<bool, Failure> {
    let Some(path) = std::env::var_os("NVTX_INJECTION64_PATH") else { return Ok(false) };
    let path = CString::new(path.into_encoded_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the library's initialisers are those of the simulator's; the function is NVTX's.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY);
        let begin =
            if library.is_null() { null_mut() } else { libc::dlsym(library, c"InitializeInjectionNvtx2".as_ptr()) };
        if begin.is_null() {
            return Err(format!("{} does not take ranges", path.to_string_lossy()));
        }
        let begin: unsafe extern "C" fn(Option<GetExportTable>) -> c_int = std::mem::transmute(begin);
        Ok(begin(Some(tables)) == 1)
    }
}

/// Calls a function of the driver with up to eleven integers or addresses.
fn driver(name: &str, arguments: &[u64]) -> Result<(), Failure> {
    let symbol = CString::new(name).map_err(|error| error.to_string())?;
    let mut a = [0_u64; 11];
    a[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: the functions take integers and addresses alone: further arguments than theirs are ignored.
    let code = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        let function = if library.is_null() { null_mut() } else { libc::dlsym(library, symbol.as_ptr()) };
        if function.is_null() {
            return Err(format!("{name} is missing"));
        }
        let function: unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> c_int =
            std::mem::transmute(function);
        function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10])
    };
    if code == 0 { Ok(()) } else { Err(format!("{name} gives {code}")) }
}

/// A module, by whose number its kernels are launched.
#[derive(Clone, Copy)]
struct Module(u64);

impl Module {
    fn launch(self, kernel: &str) -> Result<(), Failure> {
        let name = CString::new(kernel).map_err(|error| error.to_string())?;
        let mut function = 0_u64;
        driver("cuModuleGetFunction", &[&raw mut function as u64, self.0, name.as_ptr() as u64])?;
        driver("cuLaunchKernel", &[function, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0])
    }
}

fn attributes(message_type: i32, message: u64) -> EventAttributes {
    EventAttributes {
        version: 3,
        size: size_of::<EventAttributes>() as u16,
        category: 0,
        color_type: 0,
        color: 0,
        payload_type: 0,
        reserved: 0,
        payload: 0,
        message_type,
        message: message as *const c_void,
    }
}

fn address<T>(value: &T) -> u64 {
    std::ptr::from_ref(value) as u64
}

fn main() -> ExitCode {
    let (text, code) = match run() {
        Ok(true) => ("ranges".to_owned(), ExitCode::SUCCESS),
        Ok(false) => ("no ranges".to_owned(), ExitCode::SUCCESS),
        Err(failure) => (failure, ExitCode::FAILURE),
    };
    // Nobody minds where nobody reads it.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}

fn run() -> Result<bool, Failure> {
    let solve = c"solve".as_ptr() as u64;
    let heard = load()?;
    // Before CUDA is used: a range that ends, one that is still open when the first kernel runs, and one without a name.
    nvtx(0, core::RANGE_PUSH_A, [c"early".as_ptr() as u64, 0]);
    nvtx(0, core::RANGE_PUSH_A, [solve, 0]);
    nvtx(0, core::RANGE_POP, [0; 2]);
    nvtx(0, core::RANGE_PUSH_A, [0; 2]);

    let text: String = KERNELS.iter().map(|name| format!(".visible .entry {name}() {{ ret; }}\n")).collect();
    let text = CString::new(format!(".version 6.0\n.target sm_60\n.address_size 64\n{text}"));
    let text = text.map_err(|error| error.to_string())?;
    let (mut context, mut module) = (0_u64, 0_u64);
    driver("cuInit", &[0])?;
    driver("cuCtxCreate_v2", &[&raw mut context as u64, 0, 0])?;
    driver("cuModuleLoadData", &[&raw mut module as u64, text.as_ptr() as u64])?;
    let module = Module(module);
    module.launch("before")?;
    nvtx(0, core::RANGE_POP, [0; 2]);
    nvtx(0, core::RANGE_POP, [0; 2]);

    // Ranges of a thread nest.
    nvtx(0, core::RANGE_PUSH_A, [solve, 0]);
    module.launch("pushed")?;
    nvtx(0, core::RANGE_PUSH_A, [c"inner".as_ptr() as u64, 0]);
    module.launch("inner")?;
    nvtx(0, core::RANGE_POP, [0; 2]);
    nvtx(0, core::RANGE_POP, [0; 2]);
    module.launch("popped")?;

    // A range with a number is open until any thread ends it.
    let range = nvtx(0, core::RANGE_START_A, [solve, 0]);
    module.launch("started")?;
    std::thread::spawn(move || nvtx(0, core::RANGE_END, [range, 0])).join().map_err(|_| "a thread panicked")?;
    nvtx(0, core::RANGE_PUSH_A, [c"solver".as_ptr() as u64, 0]);
    module.launch("other")?;
    nvtx(0, core::RANGE_POP, [0; 2]);

    // Wide text, and registered text in a domain, whose ranges are apart from the others.
    let wide = "solve\0".chars().map(u32::from).collect::<Vec<u32>>();
    nvtx(0, core::RANGE_PUSH_EX, [address(&attributes(message::WIDE, wide.as_ptr() as u64)), 0]);
    module.launch("wide")?;
    let domain = nvtx(1, domains::CREATE_A, [c"of the test".as_ptr() as u64, 0]);
    let registered = nvtx(1, domains::REGISTER_STRING_A, [domain, solve]);
    nvtx(1, domains::RANGE_PUSH_EX, [domain, address(&attributes(message::REGISTERED, registered))]);
    nvtx(0, core::RANGE_POP, [0; 2]);
    module.launch("registered")?;
    nvtx(1, domains::RANGE_POP, [domain, 0]);

    // A range is the process's, whichever thread has it open.
    let (opened, is_open) = std::sync::mpsc::channel();
    let (close, is_to_close) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        nvtx(0, core::RANGE_PUSH_A, [c"of a thread".as_ptr() as u64, 0]);
        let _ = opened.send(());
        let _ = is_to_close.recv();
        nvtx(0, core::RANGE_POP, [0; 2]);
    });
    is_open.recv().map_err(|error| error.to_string())?;
    module.launch("of_thread")?;
    drop(close);
    thread.join().map_err(|_| "a thread panicked")?;
    driver("cuCtxSynchronize", &[])?;
    Ok(heard)
}

// The header's texts are of `char`.
const _: () = assert!(size_of::<c_char>() == 1);
