//! Modules, which belong to a device, and libraries, which any device can use; their kernels and variables.

use super::{context, image, texture_reference};
use crate::abi::arguments::{In, Out, Text};
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::code::{self, Code, Image, Kernel, LoadedKernel};
use crate::session::handles::{Handles, Kind};
use crate::session::{connection, thread};
use balar_host::call::{ModuleVariable, VariableKind};
use balar_host::{Call, CudaError};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

/// Code of one device.
#[derive(Clone)]
struct LoadedModule {
    code: Arc<Code>,
    device: u32,
    /// The library that it is of, which ends it.
    library: Option<u64>,
}

static MODULES: Handles<LoadedModule> = Handles::new(Kind::Module);
static LIBRARIES: Handles<Arc<Code>> = Handles::new(Kind::Library);

/// A kernel that the program asked for by its name: the code, the name, and the device if it is that of a module.
type KernelKey = (usize, Arc<str>, Option<u32>);
/// The same name gives the same handle.
static KERNELS: Mutex<BTreeMap<KernelKey, Arc<Kernel>>> = Mutex::new(BTreeMap::new());

/// Options of compilation (`CUjit_option`) whose values are results.
const WALL_TIME: u32 = 2;
const INFORMATION_LOG: u32 = 3;
const INFORMATION_LOG_BYTES: u32 = 4;
const ERROR_LOG: u32 = 5;
const ERROR_LOG_BYTES: u32 = 6;

/// A buffer of the program for a text.
#[derive(Clone, Copy, Default)]
pub(super) struct Log {
    address: usize,
    bytes: usize,
}

impl Log {
    /// Where the options of a compilation want errors to be told.
    ///
    /// # Safety
    ///
    /// `values` has as many entries as there are options, and the buffers are there when [`Log::write`] is called.
    pub(super) unsafe fn of_errors(options: &[u32], values: *const *mut c_void) -> Log {
        let value = |wanted: u32| {
            let index = options.iter().position(|option| *option == wanted);
            // SAFETY: the caller's.
            index.map_or(0, |index| unsafe { values.add(index).read() as usize })
        };
        Log { address: value(ERROR_LOG), bytes: value(ERROR_LOG_BYTES) }
    }

    /// Writes as much of a text as there is room for, and gives its bytes.
    pub(super) fn write(self, text: &str) -> usize {
        if self.address == 0 || self.bytes == 0 {
            return 0;
        }
        let length = text.len().min(self.bytes - 1);
        let buffer = self.address as *mut u8;
        // SAFETY: the program has given a buffer of so many bytes.
        unsafe {
            buffer.copy_from_nonoverlapping(text.as_ptr(), length);
            buffer.add(length).write(0);
        }
        length
    }
}

/// What a log says of an error.
pub(super) fn error_text(error: CudaError) -> String {
    format!("error   : {}\n", error.description())
}

/// Answers the options of a compilation, whose `outcome` it gives back: its log of errors says what that says, and it takes no time
/// of the host.
pub(super) fn answer_options(
    options: In<u32>,
    values: *mut *mut c_void,
    count: u32,
    outcome: impl FnOnce() -> Outcome,
) -> Outcome {
    let options = options.array(count as usize)?;
    if !options.is_empty() && values.is_null() {
        return Err(CudaError::InvalidValue);
    }
    let outcome = outcome();
    let at = |wanted: u32| options.iter().position(|option| *option == wanted);
    let errors = outcome.err().map_or(String::new(), error_text);
    // SAFETY: `values` has as many entries as there are options. An entry is the value itself, or for a log the address of a buffer
    // whose size another entry has; the sizes become those of the logs.
    unsafe {
        for (log, bytes, text) in
            [(INFORMATION_LOG, INFORMATION_LOG_BYTES, ""), (ERROR_LOG, ERROR_LOG_BYTES, errors.as_str())]
        {
            if let (Some(log), Some(bytes)) = (at(log), at(bytes)) {
                let log = Log { address: values.add(log).read() as usize, bytes: values.add(bytes).read() as usize };
                values.add(bytes).write(log.write(text) as *mut c_void);
            }
        }
        if let Some(time) = at(WALL_TIME) {
            values.add(time).cast::<f32>().write_unaligned(0.0);
        }
    }
    outcome
}

/// Loads images on the current device.
fn load(place: Out<u64>, name: &str, images: Vec<Image>) -> Outcome {
    place.check()?;
    let (_, device) = context::current()?;
    let code = Code::new(name, images);
    code.on(device)?;
    place.set(MODULES.insert(LoadedModule { code, device, library: None }))
}

/// Ends code: its modules, and the handles of its kernels.
fn unload(code: &Arc<Code>) -> Outcome {
    kernels().retain(|_, kernel| !Arc::ptr_eq(&kernel.code, code));
    code::forget_kernels(code);
    let mut outcome = Ok(());
    for (device, module) in code.take_modules() {
        texture_reference::forget(module.number);
        outcome = outcome.and(connection::call_on(device, &Call::ModuleUnload { module: module.number }).map(|_| ()));
    }
    outcome
}

fn kernels() -> std::sync::MutexGuard<'static, BTreeMap<KernelKey, Arc<Kernel>>> {
    KERNELS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel of this name, which the code must have.
fn kernel(code: &Arc<Code>, name: &str, device: Option<u32>) -> Result<u64, CudaError> {
    let loaded = code.on(device.unwrap_or_else(thread::device))?;
    let (name, _) = loaded.functions.get_key_value(name).ok_or(CudaError::SymbolNotFound)?;
    let key = (Arc::as_ptr(code) as usize, name.clone(), device);
    let kernel = kernels().entry(key).or_insert_with(|| Kernel::new(code.clone(), name.clone(), device)).clone();
    Ok(kernel.handle())
}

/// The variable of this name.
fn variable(code: &Arc<Code>, name: &str, device: u32) -> Result<ModuleVariable, CudaError> {
    let loaded = code.on(device)?;
    let variable = loaded.variables.get(name).cloned().ok_or(CudaError::SymbolNotFound)?;
    match variable.kind {
        VariableKind::Global | VariableKind::Constant | VariableKind::Managed => Ok(variable),
        VariableKind::Texture | VariableKind::Surface => Err(CudaError::SymbolNotFound),
    }
}

/// The texture or surface reference of this name: the simulator's module, the device, and the name as it knows it.
pub(super) fn reference(module: u64, name: &str, kind: VariableKind) -> Result<(u32, u32, Arc<str>), CudaError> {
    let LoadedModule { code, device, .. } = MODULES.get(module)?;
    let loaded = code.on(device)?;
    match loaded.variables.get(name) {
        Some(variable) if variable.kind == kind => Ok((loaded.number, device, variable.name.clone())),
        _ => Err(CudaError::SymbolNotFound),
    }
}

fn write_variable(address: Out<u64>, bytes: Out<usize>, variable: &ModuleVariable) -> Outcome {
    address.set_if_wanted(variable.address);
    bytes.set_if_wanted(variable.bytes as usize);
    Ok(())
}

fn write_handles(place: *mut u64, room: u32, handles: impl Iterator<Item = Result<u64, CudaError>>) -> Outcome {
    if place.is_null() {
        return Err(CudaError::InvalidValue);
    }
    for (index, handle) in handles.take(room as usize).enumerate() {
        // SAFETY: the caller has room for `room` handles.
        unsafe { place.add(index).write_unaligned(handle?) };
    }
    Ok(())
}

/// The name of a kernel as C has it, for as long as the process lives.
fn name_for_c(kernel: &Kernel) -> *const c_char {
    static NAMES: Mutex<BTreeMap<Arc<str>, CString>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    // An entry's text stays where it is: it is on the heap, and no entry is ever removed.
    let name = names.entry(kernel.name.clone());
    name.or_insert_with(|| CString::new(&*kernel.name).unwrap_or_default()).as_ptr()
}

fn parameter(kernel: &LoadedKernel, index: usize, offset: Out<usize>, bytes: Out<usize>) -> Outcome {
    let &(at, size) = kernel.description().parameters.get(index).ok_or(CudaError::InvalidValue)?;
    offset.set(at as usize)?;
    bytes.set_if_wanted(size as usize);
    Ok(())
}

driver_api! {
    context fn cuModuleLoad(place: Out<u64>, path: Text) {
        let name = path.get()?;
        load(place, &name, image::in_file(path)?)
    }

    context fn cuModuleLoadData(place: Out<u64>, address: *const c_void) {
        // SAFETY: the caller passes an image.
        load(place, "cuModuleLoadData", unsafe { image::at(address) }?)
    }

    context fn cuModuleLoadDataEx(
        place: Out<u64>, address: *const c_void, count: u32, options: In<u32>, values: *mut *mut c_void,
    ) {
        // SAFETY: the caller passes an image.
        let images = unsafe { image::at(address) }?;
        answer_options(options, values, count, || load(place, "cuModuleLoadDataEx", images))
    }

    context fn cuModuleLoadFatBinary(place: Out<u64>, address: *const c_void) {
        // SAFETY: the caller passes an image.
        load(place, "cuModuleLoadFatBinary", unsafe { image::at(address) }?)
    }

    context fn cuModuleUnload(module: u64) {
        if MODULES.get(module)?.library.is_some() {
            return Err(CudaError::NotPermitted);
        }
        unload(&MODULES.remove(module)?.code)
    }

    fn cuModuleGetLoadingMode(place: Out<c_int>) {
        const EAGER: c_int = 1;
        place.set(EAGER)
    }

    context fn cuModuleGetFunction(place: Out<u64>, module: u64, name: Text) {
        place.check()?;
        let LoadedModule { code, device, .. } = MODULES.get(module)?;
        place.set(kernel(&code, &name.get()?, Some(device))?)
    }

    context fn cuModuleGetFunctionCount(place: Out<u32>, module: u64) {
        let LoadedModule { code, device, .. } = MODULES.get(module)?;
        place.set(code.on(device)?.functions.len() as u32)
    }

    context fn cuModuleEnumerateFunctions(place: *mut u64, room: u32, module: u64) {
        let LoadedModule { code, device, .. } = MODULES.get(module)?;
        let loaded = code.on(device)?;
        write_handles(place, room, loaded.functions.keys().map(|name| kernel(&code, name, Some(device))))
    }

    context fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, module: u64, name: Text) {
        let LoadedModule { code, device, .. } = MODULES.get(module)?;
        write_variable(address, bytes, &variable(&code, &name.get()?, device)?)
    }

    fn cuLibraryLoadData(
        place: Out<u64>, address: *const c_void, options: In<u32>, values: *mut *mut c_void, count: u32,
        _library_options: *const c_void, _library_values: *const c_void, _library_count: u32,
    ) {
        // SAFETY: the caller passes an image.
        let images = unsafe { image::at(address) }?;
        answer_options(options, values, count, || load_library(place, "cuLibraryLoadData", images))
    }

    fn cuLibraryLoadFromFile(
        place: Out<u64>, path: Text, options: In<u32>, values: *mut *mut c_void, count: u32,
        _library_options: *const c_void, _library_values: *const c_void, _library_count: u32,
    ) {
        let (name, images) = (path.get()?, image::in_file(path)?);
        answer_options(options, values, count, || load_library(place, &name, images))
    }

    fn cuLibraryUnload(library: u64) {
        let code = LIBRARIES.remove(library)?;
        MODULES.retain(|_, module| module.library != Some(library));
        unload(&code)
    }

    fn cuLibraryGetKernel(place: Out<u64>, library: u64, name: Text) {
        place.check()?;
        place.set(kernel(&LIBRARIES.get(library)?, &name.get()?, None)?)
    }

    fn cuLibraryGetKernelCount(place: Out<u32>, library: u64) {
        place.set(LIBRARIES.get(library)?.on(thread::device())?.functions.len() as u32)
    }

    fn cuLibraryEnumerateKernels(place: *mut u64, room: u32, library: u64) {
        let code = LIBRARIES.get(library)?;
        let loaded = code.on(thread::device())?;
        write_handles(place, room, loaded.functions.keys().map(|name| kernel(&code, name, None)))
    }

    context fn cuLibraryGetModule(place: Out<u64>, library: u64) {
        let code = LIBRARIES.get(library)?;
        let (_, device) = context::current()?;
        code.on(device)?;
        let known = MODULES.find(|module| module.library == Some(library) && module.device == device);
        place.set(known.unwrap_or_else(|| MODULES.insert(LoadedModule { code, device, library: Some(library) })))
    }

    context fn cuLibraryGetGlobal(address: Out<u64>, bytes: Out<usize>, library: u64, name: Text) {
        write_variable(address, bytes, &variable(&LIBRARIES.get(library)?, &name.get()?, thread::device())?)
    }

    fn cuLibraryGetManaged(address: Out<u64>, bytes: Out<usize>, library: u64, name: Text) {
        let variable = variable(&LIBRARIES.get(library)?, &name.get()?, thread::device())?;
        if variable.kind != VariableKind::Managed {
            return Err(CudaError::SymbolNotFound);
        }
        write_variable(address, bytes, &variable)
    }

    context fn cuKernelGetFunction(place: Out<u64>, kernel: u64) {
        Kernel::of_handle(kernel)?;
        // A kernel of a library is also the function of the current context.
        place.set(kernel)
    }

    fn cuKernelGetLibrary(place: Out<u64>, kernel: u64) {
        let kernel = Kernel::of_handle(kernel)?;
        let library = LIBRARIES.find(|code| Arc::ptr_eq(code, &kernel.code));
        place.set(library.ok_or(CudaError::InvalidResourceHandle)?)
    }

    fn cuKernelGetName(place: Out<*const c_char>, kernel: u64) {
        place.set(name_for_c(&*Kernel::of_handle(kernel)?))
    }

    fn cuFuncGetName(place: Out<*const c_char>, function: u64) {
        place.set(name_for_c(&*Kernel::of_handle(function)?))
    }

    fn cuKernelGetParamInfo(kernel: u64, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        parameter(&Kernel::of_handle(kernel)?.loaded()?, index, offset, bytes)
    }

    fn cuFuncGetParamInfo(function: u64, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        parameter(&Kernel::of_handle(function)?.loaded()?, index, offset, bytes)
    }

    fn cuFuncGetParamCount(function: u64, count: Out<usize>) {
        count.set(Kernel::of_handle(function)?.loaded()?.description().parameters.len())
    }

    fn cuKernelGetParamCount(kernel: u64, count: Out<usize>) {
        count.set(Kernel::of_handle(kernel)?.loaded()?.description().parameters.len())
    }

    context fn cuFuncGetModule(place: Out<u64>, function: u64) {
        let kernel = Kernel::of_handle(function)?;
        let device = kernel.device();
        let known = MODULES.find(|module| Arc::ptr_eq(&module.code, &kernel.code) && module.device == device);
        place.set(known.ok_or(CudaError::InvalidResourceHandle)?)
    }

    fn cuFuncIsLoaded(place: Out<c_int>, function: u64) {
        const LOADED: c_int = 1;
        Kernel::of_handle(function)?;
        place.set(LOADED)
    }

    fn cuFuncLoad(function: u64) {
        Kernel::of_handle(function)?.loaded().map(|_| ())
    }

    fn cuKernelSetCacheConfig(kernel: u64, _preference: c_int, device: c_int) {
        // The L1 cache and shared memory share what they share; the preference is a hint.
        super::device::check(device)?;
        Kernel::of_handle(kernel).map(|_| ())
    }
}

fn load_library(place: Out<u64>, name: &str, images: Vec<Image>) -> Outcome {
    place.check()?;
    let code = Code::new(name, images);
    // Errors of the code are those of this call, where it is known which device it is for.
    if let Ok((_, device)) = context::current() {
        code.on(device)?;
    }
    place.set(LIBRARIES.insert(code))
}
