//! The registrations of the program's static constructors: code, kernels, variables, texture and surface references. They run before
//! `main`, in programs that may never call CUDA: nothing here connects to the simulator.

use crate::session::code::loaded::{self, Code, Kernel};
use crate::session::state::handles::{Handles, Kind};
use crate::session::state::thread;
use balar_host::CudaError;
use balar_host::call::{Function, ModuleVariable};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Registered code.
static BINARIES: Handles<Arc<Code>> = Handles::new(Kind::FatBinary);
static REGISTRY: RwLock<Registry> = RwLock::new(Registry { kernels: BTreeMap::new(), variables: BTreeMap::new() });

struct Registry {
    /// Kernels, by the address of the host's function.
    kernels: BTreeMap<usize, Arc<Kernel>>,
    /// Variables, by the address of the host's variable.
    variables: BTreeMap<usize, Variable>,
}

/// A variable of device code that the host knows by an address of its own.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// The code that has it.
    pub code: Arc<Code>,
    /// Its kind on the host.
    pub kind: HostVariable,
}

/// The kind of a registered variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostVariable {
    /// Memory of this many bytes.
    Memory(usize),
    /// A texture reference.
    Texture {
        /// Dimensions.
        dimensions: i32,
        /// Whether it is read as normalised floats.
        is_normalized: bool,
    },
    /// A surface reference.
    Surface,
}

impl Variable {
    /// The variable on the calling thread's device.
    pub fn loaded(&self) -> Result<ModuleVariable, CudaError> {
        let module = self.code.on(thread::device())?;
        module.variables.get(&self.name).cloned().ok_or(CudaError::InvalidSymbol)
    }

    /// The number of the module that has it on the calling thread's device.
    pub fn module(&self) -> Result<u32, CudaError> {
        Ok(self.code.on(thread::device())?.number)
    }
}

fn read() -> RwLockReadGuard<'static, Registry> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Registry> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner)
}

/// Registers code; returns its handle.
pub fn add_code(code: Arc<Code>) -> u64 {
    BINARIES.insert(code)
}

/// The registered code with this handle.
pub fn code(handle: u64) -> Result<Arc<Code>, CudaError> {
    BINARIES.get(handle)
}

/// The registered code that has managed variables.
pub fn code_with_managed() -> Vec<Arc<Code>> {
    let found = std::cell::RefCell::new(Vec::new());
    BINARIES.find(|code| {
        if code.has_managed() {
            found.borrow_mut().push(code.clone());
        }
        false
    });
    found.into_inner()
}

/// Ends the registration of code, and of its kernels and variables.
pub fn remove_code(handle: u64) {
    let Ok(code) = BINARIES.remove(handle) else { return };
    let mut registry = write();
    registry.kernels.retain(|_, kernel| !Arc::ptr_eq(&kernel.code, &code));
    registry.variables.retain(|_, variable| !Arc::ptr_eq(&variable.code, &code));
    loaded::forget_kernels(&code);
    code.forget_images();
}

/// Registers a kernel under the address of its host function.
pub fn add_kernel(host: usize, kernel: Arc<Kernel>) {
    write().kernels.insert(host, kernel);
}

/// Registers a variable under its address in the host.
pub fn add_variable(host: usize, variable: Variable) {
    write().variables.insert(host, variable);
}

/// The kernel that the program names by the address of its host function, or by a handle.
pub fn kernel(name: usize) -> Result<Arc<Kernel>, CudaError> {
    if let Some(kernel) = read().kernels.get(&name) {
        return Ok(kernel.clone());
    }
    Kernel::of_handle(name as u64).map_err(|_| CudaError::InvalidDeviceFunction)
}

/// The address of the kernel's host function, if it has one.
pub fn host_function(kernel: &Arc<Kernel>) -> Option<usize> {
    read().kernels.iter().find(|(_, other)| Arc::ptr_eq(kernel, other)).map(|(host, _)| *host)
}

/// The registered kernel that calls to a device name by this function.
pub fn kernel_of_function(device: u32, function: &Function) -> Option<Arc<Kernel>> {
    let same_name: Vec<Arc<Kernel>> =
        read().kernels.values().filter(|kernel| kernel.name == function.name).cloned().collect();
    let is_it = |kernel: &Arc<Kernel>| kernel.code.on(device).is_ok_and(|module| module.number == function.module);
    same_name.into_iter().find(is_it).or_else(|| loaded::kernel_of_function(device, function))
}

/// The variable that the program names by its address in the host.
pub fn variable(host: usize) -> Result<Variable, CudaError> {
    read().variables.get(&host).cloned().ok_or(CudaError::InvalidSymbol)
}
