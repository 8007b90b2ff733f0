//! Modules, which belong to a device, and libraries, which any device can use; their kernels and variables.

use crate::session::code::loaded::{self, Code, Image, Kernel};
use crate::session::code::reference_table;
use crate::session::connection;
use crate::session::contexts::context;
use crate::session::state::handles::{Handles, Kind};
use crate::session::state::thread;
use balar_host::call::{ModuleVariable, VariableKind};
use balar_host::{Call, CudaError};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString, c_char};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

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

/// A kernel that the program asked for by its name: the code, the name, and, for a kernel of a module, the device.
type KernelKey = (usize, Arc<str>, Option<u32>);
/// The same name gives the same handle.
static KERNELS: Mutex<BTreeMap<KernelKey, Arc<Kernel>>> = Mutex::new(BTreeMap::new());

/// When code is loaded (`CUmoduleLoadingMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum LoadingMode {
    /// With its library.
    Eager = 1,
    /// When it is first needed.
    Lazy = 2,
}

impl LoadingMode {
    /// The value of `CUDA_MODULE_LOADING`: lazy, unless it is `EAGER`. So it is in CUDA from 12.2 on.
    pub fn of_process() -> LoadingMode {
        static MODE: LazyLock<LoadingMode> = LazyLock::new(|| LoadingMode::of(std::env::var_os("CUDA_MODULE_LOADING")));
        *MODE
    }

    fn of(variable: Option<OsString>) -> LoadingMode {
        if variable.is_some_and(|mode| mode.eq_ignore_ascii_case("eager")) {
            LoadingMode::Eager
        } else {
            LoadingMode::Lazy
        }
    }
}

/// Loads images on the current device when something of them is needed. Where they have no code for it, a launch says so.
pub fn load_when_needed(name: &str, images: Vec<Image>) -> Result<u64, CudaError> {
    let (_, device) = context::current()?;
    Ok(MODULES.insert(LoadedModule { code: Code::new(name, images), device, library: None }))
}

/// Loads images on the current device.
pub fn load(name: &str, images: Vec<Image>) -> Result<u64, CudaError> {
    let (_, device) = context::current()?;
    let code = Code::new(name, images);
    code.on(device)?;
    Ok(MODULES.insert(LoadedModule { code, device, library: None }))
}

/// Ends a module.
pub fn unload(module: u64) -> Result<(), CudaError> {
    if MODULES.get(module)?.library.is_some() {
        return Err(CudaError::NotPermitted);
    }
    end(&MODULES.remove(module)?.code)
}

/// Makes code that any device loads when it needs it.
pub fn load_library(name: &str, images: Vec<Image>) -> Result<u64, CudaError> {
    // PTX is compiled at once, if it is known for which device: its errors are those of this call.
    let is_eager = LoadingMode::of_process() == LoadingMode::Eager || images.iter().any(Image::is_text);
    let code = Code::new(name, images);
    if let (true, Ok((_, device))) = (is_eager, context::current()) {
        match code.on(device) {
            // Another device may have some; on this one a launch will say so.
            Ok(_) | Err(CudaError::NoKernelImageForDevice) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(LIBRARIES.insert(code))
}

/// Ends a library, and the modules of it.
pub fn unload_library(library: u64) -> Result<(), CudaError> {
    let code = LIBRARIES.remove(library)?;
    MODULES.retain(|_, module| module.library != Some(library));
    end(&code)
}

/// The module of a library for the current context.
pub fn of_library(library: u64) -> Result<u64, CudaError> {
    let code = LIBRARIES.get(library)?;
    let (_, device) = context::current()?;
    code.on(device)?;
    let known = MODULES.find(|module| module.library == Some(library) && module.device == device);
    Ok(known.unwrap_or_else(|| MODULES.insert(LoadedModule { code, device, library: Some(library) })))
}

/// The module that a kernel is of.
pub fn of_kernel(kernel: &Kernel) -> Result<u64, CudaError> {
    let device = kernel.device();
    let known = MODULES.find(|module| Arc::ptr_eq(&module.code, &kernel.code) && module.device == device);
    known.ok_or(CudaError::InvalidResourceHandle)
}

/// The library that a kernel is of.
pub fn library_of_kernel(kernel: &Kernel) -> Result<u64, CudaError> {
    LIBRARIES.find(|code| Arc::ptr_eq(code, &kernel.code)).ok_or(CudaError::InvalidResourceHandle)
}

/// The function of this name in a module.
pub fn function(module: u64, name: &str) -> Result<u64, CudaError> {
    let LoadedModule { code, device, .. } = MODULES.get(module)?;
    kernel(&code, name, Some(device))
}

/// The functions of a module.
pub fn functions(module: u64) -> Result<Vec<u64>, CudaError> {
    let LoadedModule { code, device, .. } = MODULES.get(module)?;
    let loaded = code.on(device)?;
    loaded.functions.keys().map(|name| kernel(&code, name, Some(device))).collect()
}

/// How many functions a module has.
pub fn function_count(module: u64) -> Result<usize, CudaError> {
    let LoadedModule { code, device, .. } = MODULES.get(module)?;
    Ok(code.on(device)?.functions.len())
}

/// The variable of this name in a module.
pub fn global(module: u64, name: &str) -> Result<ModuleVariable, CudaError> {
    let LoadedModule { code, device, .. } = MODULES.get(module)?;
    variable(&code, name, device)
}

/// The kernel of this name in a library.
pub fn library_kernel(library: u64, name: &str) -> Result<u64, CudaError> {
    kernel(&LIBRARIES.get(library)?, name, None)
}

/// The kernels of a library.
pub fn library_kernels(library: u64) -> Result<Vec<u64>, CudaError> {
    let code = LIBRARIES.get(library)?;
    let loaded = code.on(thread::device())?;
    loaded.functions.keys().map(|name| kernel(&code, name, None)).collect()
}

/// How many kernels a library has.
pub fn library_kernel_count(library: u64) -> Result<usize, CudaError> {
    Ok(LIBRARIES.get(library)?.on(thread::device())?.functions.len())
}

/// The variable of this name in a library, on the current device.
pub fn library_global(library: u64, name: &str) -> Result<ModuleVariable, CudaError> {
    variable(&LIBRARIES.get(library)?, name, thread::device())
}

/// The managed variable of this name in a library.
pub fn library_managed(library: u64, name: &str) -> Result<ModuleVariable, CudaError> {
    let variable = library_global(library, name)?;
    if variable.kind == VariableKind::Managed { Ok(variable) } else { Err(CudaError::SymbolNotFound) }
}

/// Ends code: its modules, and the handles of its kernels.
fn end(code: &Arc<Code>) -> Result<(), CudaError> {
    kernels().retain(|_, kernel| !Arc::ptr_eq(&kernel.code, code));
    loaded::forget_kernels(code);
    let mut outcome = Ok(());
    for (device, module) in code.take_modules() {
        reference_table::forget(device, module.number);
        outcome = outcome.and(connection::call_on(device, &Call::ModuleUnload { module: module.number }).map(|_| ()));
    }
    outcome
}

fn kernels() -> std::sync::MutexGuard<'static, BTreeMap<KernelKey, Arc<Kernel>>> {
    KERNELS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel of this name, which the code must have, unless it is for other devices: then launches fail.
fn kernel(code: &Arc<Code>, name: &str, device: Option<u32>) -> Result<u64, CudaError> {
    let name = match code.on(device.unwrap_or_else(thread::device)) {
        Ok(loaded) => loaded.functions.get_key_value(name).ok_or(CudaError::SymbolNotFound)?.0.clone(),
        Err(CudaError::NoKernelImageForDevice) => name.into(),
        Err(error) => return Err(error),
    };
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
pub fn reference(module: u64, name: &str, kind: VariableKind) -> Result<(u32, u32, Arc<str>), CudaError> {
    let LoadedModule { code, device, .. } = MODULES.get(module)?;
    let loaded = code.on(device)?;
    match loaded.variables.get(name) {
        Some(variable) if variable.kind == kind => Ok((loaded.number, device, variable.name.clone())),
        _ => Err(CudaError::SymbolNotFound),
    }
}

/// The name of a kernel as C has it, for as long as the process lives.
pub fn name_for_c(kernel: &Kernel) -> *const c_char {
    static NAMES: Mutex<BTreeMap<Arc<str>, CString>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    // An entry's text stays where it is: it is on the heap, and no entry is ever removed.
    let name = names.entry(kernel.name.clone());
    name.or_insert_with(|| CString::new(&*kernel.name).unwrap_or_default()).as_ptr()
}

/// The offset and the bytes of a kernel's parameter.
pub fn parameter(kernel: &Kernel, index: usize) -> Result<(usize, usize), CudaError> {
    let loaded = kernel.loaded()?;
    let &(offset, bytes) = loaded.description().parameters.get(index).ok_or(CudaError::InvalidValue)?;
    Ok((offset as usize, bytes as usize))
}

/// How many parameters a kernel has.
pub fn parameter_count(kernel: &Kernel) -> Result<usize, CudaError> {
    Ok(kernel.loaded()?.description().parameters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_is_lazy_unless_the_variable_says_otherwise() {
        let of = |text: &str| LoadingMode::of(Some(text.into()));
        assert_eq!([of("EAGER"), of("eager"), of("LAZY"), of("nonsense")].map(|mode| mode as i32), [1, 1, 2, 2]);
        assert_eq!(LoadingMode::of(None), LoadingMode::Lazy);
    }

    #[test]
    fn ptx_is_told_from_other_images() {
        let text = |bytes: &[u8]| Image::Copied(bytes.into()).is_text();
        assert!(text(b".version 7.0\0") && text(b"\n// PTX\0"));
        assert!(!text(b"\x7fELF") && !text(&0xba55_ed50_u32.to_le_bytes()));
    }
}
