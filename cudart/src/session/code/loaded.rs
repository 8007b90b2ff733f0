//! Device code of the program: images, the modules that devices make of them, kernels and variables.

use crate::abi::function::ClusterSettings;
use crate::session::state::handles::{Handles, Kind};
use crate::session::state::thread;
use crate::session::{accesses, connection};
use balar_host::call::{Function, ModuleFunction, ModuleVariable, VariableKind};
use balar_host::{Bytes, Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// Bytes of an image.
#[derive(Clone, Debug)]
pub enum Image {
    /// In the program's memory, which stays as it is while the code is registered.
    OfProgram {
        /// Address of the first byte.
        address: usize,
        /// Bytes.
        bytes: usize,
    },
    /// A copy.
    Copied(Arc<[u8]>),
}

impl Image {
    /// Is it PTX, and neither a container nor a cubin?
    pub fn is_text(&self) -> bool {
        self.bytes().iter().take(4).all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
    }

    fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: what `__cudaRegisterFatBinary` was given is constant data of an object that has not been unloaded: it
            // calls `__cudaUnregisterFatBinary` before.
            Image::OfProgram { address, bytes } => unsafe { std::slice::from_raw_parts(*address as *const u8, *bytes) },
            Image::Copied(bytes) => bytes,
        }
    }
}

/// Code that any device can load. Each loads it when it first needs it.
#[derive(Debug)]
pub struct Code {
    /// Where it comes from, for messages.
    name: String,
    images: Mutex<Vec<Image>>,
    /// The module of each device, or why there is none.
    modules: Mutex<BTreeMap<u32, Result<Arc<Module>, CudaError>>>,
    /// The program's pointers to managed variables, which get their values when the code is loaded.
    managed: Mutex<Vec<ManagedVariable>>,
}

#[derive(Clone, Debug)]
struct ManagedVariable {
    /// Address of the program's pointer.
    slot: usize,
    name: Arc<str>,
}

/// Code as a device has loaded it.
#[derive(Debug)]
pub struct Module {
    /// The simulator's number.
    pub number: u32,
    /// Kernels by name.
    pub functions: BTreeMap<Arc<str>, ModuleFunction>,
    /// Variables by name.
    pub variables: BTreeMap<Arc<str>, ModuleVariable>,
}

/// All code, to forget its modules when a device is reset.
static ALL: Mutex<Vec<Weak<Code>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Code {
    /// Code of these images; several are linked with each other.
    pub fn new(name: impl Into<String>, images: Vec<Image>) -> Arc<Code> {
        let code = Arc::new(Code {
            name: name.into(),
            images: Mutex::new(images),
            modules: Mutex::default(),
            managed: Mutex::default(),
        });
        let mut all = lock(&ALL);
        all.retain(|code| code.strong_count() > 0);
        all.push(Arc::downgrade(&code));
        code
    }

    /// Sets `slot`, the program's pointer to the managed variable `name`, when the code is loaded.
    pub fn add_managed(&self, slot: usize, name: Arc<str>) {
        lock(&self.managed).push(ManagedVariable { slot, name });
    }

    /// Does it have managed variables?
    pub fn has_managed(&self) -> bool {
        !lock(&self.managed).is_empty()
    }

    /// The module of the device, which loads the code if it has not.
    pub fn on(&self, device: u32) -> Result<Arc<Module>, CudaError> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&device) {
            return module.clone();
        }
        let module = self.load(device).map(Arc::new);
        modules.insert(device, module.clone());
        module
    }

    fn load(&self, device: u32) -> Result<Module, CudaError> {
        let images = lock(&self.images);
        let data: Vec<&[u8]> = images.iter().map(Image::bytes).collect();
        let call = Call::ModuleLoad {
            images: data.iter().map(|image| Bytes::absent(image.len() as u64)).collect(),
            name: self.name.clone(),
        };
        let CallResult::Module { module, functions, variables } =
            connection::call_with(device, &call, &data, &mut |_, _| {})?
        else {
            return Err(CudaError::Unknown);
        };
        accesses::module_loaded(device, module, &variables);
        let module = Module {
            number: module,
            functions: functions.into_iter().map(|function| (function.name.clone(), function)).collect(),
            variables: variables.into_iter().map(|variable| (variable.name.clone(), variable)).collect(),
        };
        for ManagedVariable { slot, name } in lock(&self.managed).iter() {
            if let Some(variable) = module.variables.get(name) {
                // SAFETY: `__cudaRegisterManagedVar` was given the address of a pointer of the program.
                unsafe { (*slot as *mut u64).write(variable.address) };
            }
        }
        Ok(module)
    }

    /// The object with the images is being unloaded: they are not read again.
    pub fn forget_images(&self) {
        lock(&self.images).clear();
    }

    /// Takes the modules, by device, to unload them.
    pub fn take_modules(&self) -> Vec<(u32, Arc<Module>)> {
        let modules = std::mem::take(&mut *lock(&self.modules));
        modules.into_iter().filter_map(|(device, module)| Some((device, module.ok()?))).collect()
    }
}

/// The device has lost its modules.
pub fn forget_device(device: u32) {
    for code in lock(&ALL).iter().filter_map(Weak::upgrade) {
        lock(&code.modules).remove(&device);
    }
}

/// The managed variable at an address.
pub fn managed_variable(address: u64) -> Option<ModuleVariable> {
    let codes: Vec<Arc<Code>> = lock(&ALL).iter().filter_map(Weak::upgrade).collect();
    codes.iter().find_map(|code| {
        let modules = lock(&code.modules);
        let mut variables = modules.values().flatten().flat_map(|module| module.variables.values());
        variables.find(|variable| variable.kind == VariableKind::Managed && variable.address == address).cloned()
    })
}

/// A kernel of the program.
#[derive(Debug)]
pub struct Kernel {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// The code that has it.
    pub code: Arc<Code>,
    /// The device it belongs to, if it came from a module of one (`cuModuleGetFunction`).
    pub device: Option<u32>,
    /// The preferred share of shared memory, percent (`cudaFuncAttributePreferredSharedMemoryCarveout`); -1 for none. A hint.
    pub carveout: AtomicI32,
    /// What the program has said of its clusters.
    pub clusters: Mutex<ClusterSettings>,
    handle: OnceLock<u64>,
}

/// The kernels that the program has handles of: `cudaKernel_t`, `cudaFunction_t`, `CUkernel` and `CUfunction`.
static KERNELS: Handles<Arc<Kernel>> = Handles::new(Kind::Kernel);

impl Kernel {
    /// A kernel that `code` should have.
    pub fn new(code: Arc<Code>, name: Arc<str>, device: Option<u32>) -> Arc<Kernel> {
        Arc::new(Kernel {
            name,
            code,
            device,
            carveout: AtomicI32::new(-1),
            clusters: Mutex::default(),
            handle: OnceLock::new(),
        })
    }

    /// The kernel's handle.
    pub fn handle(self: &Arc<Self>) -> u64 {
        *self.handle.get_or_init(|| KERNELS.insert(self.clone()))
    }

    /// The kernel with this handle.
    pub fn of_handle(handle: u64) -> Result<Arc<Kernel>, CudaError> {
        KERNELS.get(handle)
    }

    /// The device that runs it for the calling thread.
    pub fn device(&self) -> u32 {
        self.device.unwrap_or_else(thread::device)
    }

    /// The kernel as its device has loaded it.
    pub fn loaded(&self) -> Result<LoadedKernel, CudaError> {
        let device = self.device();
        let module = self.code.on(device)?;
        if !module.functions.contains_key(&self.name) {
            return Err(CudaError::InvalidDeviceFunction);
        }
        let clusters = *lock(&self.clusters);
        Ok(LoadedKernel { device, clusters, module, name: self.name.clone() })
    }
}

/// The kernel with a handle that calls to a device name by this function.
pub fn kernel_of_function(device: u32, function: &Function) -> Option<Arc<Kernel>> {
    let is_it = |kernel: &Arc<Kernel>| {
        kernel.name == function.name
            && matches!(lock(&kernel.code.modules).get(&device), Some(Ok(module)) if module.number == function.module)
    };
    KERNELS.get(KERNELS.find(is_it)?).ok()
}

/// Ends the handles of the kernels of `code`.
pub fn forget_kernels(code: &Arc<Code>) {
    KERNELS.retain(|_, kernel| !Arc::ptr_eq(&kernel.code, code));
}

/// A kernel on a device.
#[derive(Clone, Debug)]
pub struct LoadedKernel {
    /// The device.
    pub device: u32,
    /// What the program has said of its clusters.
    pub clusters: ClusterSettings,
    module: Arc<Module>,
    name: Arc<str>,
}

impl LoadedKernel {
    /// The kernel as calls name it.
    pub fn function(&self) -> Function {
        Function { module: self.module.number, name: self.name.clone() }
    }

    /// The module's description of it.
    pub fn description(&self) -> &ModuleFunction {
        &self.module.functions[&self.name]
    }
}
