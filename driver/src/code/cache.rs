//! Code that was loaded, kept for programs that load it again.

use super::error::LoadError;
use super::module::CodeModule;
use super::source::ModuleSource;
use balar_isa::program::{KernelName, Program};
use balar_protocol::ContextId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Linked code that is kept, for programs that load the same code again or on another GPU.
const CACHED_MODULES: usize = 32;
/// Decoded forms of each that are kept: they differ in the addresses of variables.
const CACHED_FORMS: usize = 8;

/// A decoded kernel, or why it cannot run.
pub type DecodedKernel = Result<Arc<Program>, Arc<str>>;

/// Linked code, and its kernels for the addresses that variables had.
#[derive(Debug)]
pub(crate) struct CachedModule {
    pub source: ModuleSource,
    pub module: CodeModule,
    forms: Mutex<VecDeque<Arc<DecodedKernels>>>,
}

impl CachedModule {
    fn new(source: &ModuleSource) -> Result<CachedModule, LoadError> {
        Ok(CachedModule { source: source.clone(), module: CodeModule::read(source)?, forms: Mutex::default() })
    }

    /// Its kernels for variables at these addresses. None is decoded yet that nobody has asked for.
    pub fn kernels(&self, addresses: &[u64]) -> Arc<DecodedKernels> {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(form) = forms.iter().find(|form| form.addresses == addresses) {
            return Arc::clone(form);
        }
        let kernels = self.module.kernels().iter().map(|_| OnceLock::new()).collect();
        let form = Arc::new(DecodedKernels { addresses: addresses.to_vec(), kernels });
        if forms.len() == CACHED_FORMS {
            forms.pop_front();
        }
        forms.push_back(Arc::clone(&form));
        form
    }
}

/// The kernels of a module for the addresses of its variables, each decoded when it is first asked for: programs bring libraries
/// with hundreds of kernels, and launch a few.
#[derive(Debug)]
pub(crate) struct DecodedKernels {
    addresses: Vec<u64>,
    kernels: Vec<OnceLock<DecodedKernel>>,
}

/// One kernel of a loaded module.
#[derive(Clone, Debug)]
pub(crate) struct ModuleKernel {
    pub module: Arc<CachedModule>,
    pub decoded: Arc<DecodedKernels>,
    /// Its name.
    pub name: KernelName,
    /// Its number among the module's.
    pub number: usize,
}

impl ModuleKernel {
    /// The kernels that it can launch.
    pub fn launched(&self) -> Vec<(u64, KernelName)> {
        let module = &self.module.module;
        if module.launches() { module.launched_by(&self.name) } else { Vec::new() }
    }

    /// Its program, or why it cannot run.
    pub fn program(&self) -> DecodedKernel {
        let decode = || self.module.module.program(&self.name, &self.decoded.addresses).map(Arc::new);
        self.decoded.kernels[self.number].get_or_init(decode).clone()
    }
}

/// Code that was loaded, and the memory that the loaded modules hold.
#[derive(Debug, Default)]
pub struct CodeCache {
    /// The most recently used last.
    modules: Mutex<VecDeque<Arc<CachedModule>>>,
    /// The memory for the variables of each module, by GPU and number.
    allocated: Mutex<BTreeMap<(ContextId, u32), Vec<u64>>>,
    /// Whether PTX was loaded, and machine code.
    has_loaded: [AtomicBool; 2],
    /// The assembler that made machine code of PTX, where there was one.
    assembler: OnceLock<Arc<str>>,
}

impl CodeCache {
    /// Code read and linked, from the cache where it is there.
    pub(crate) fn linked(&self, source: &ModuleSource) -> Result<Arc<CachedModule>, LoadError> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let found = modules.iter().position(|cached| cached.source == *source).and_then(|at| modules.remove(at));
        let module = match found {
            Some(module) => module,
            None => Arc::new(CachedModule::new(source)?),
        };
        if modules.len() == CACHED_MODULES {
            modules.pop_front();
        }
        modules.push_back(Arc::clone(&module));
        Ok(module)
    }

    /// Notes that a module was loaded.
    pub(crate) fn note_loaded(&self, source: &ModuleSource) {
        let is_machine = matches!(source, ModuleSource::Machine { .. });
        self.has_loaded[usize::from(is_machine)].store(true, Ordering::Relaxed);
        if let ModuleSource::Machine { origin: Some(origin), .. } = source {
            self.assembler.get_or_init(|| Arc::clone(&origin.assembler));
        }
    }

    /// The kind of code that was loaded since the beginning: "ptx", also where there was none, "sass", or "mixed". The assembler that made
    /// machine code of PTX is named behind it: "sass, assembled by ptxas 12.9".
    pub fn isa(&self) -> String {
        let isa = match self.has_loaded.each_ref().map(|loaded| loaded.load(Ordering::Relaxed)) {
            [_, false] => "ptx",
            [false, true] => "sass",
            [true, true] => "mixed",
        };
        self.assembler.get().map_or_else(|| isa.to_owned(), |assembler| format!("{isa}, assembled by {assembler}"))
    }

    /// Modules that are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Notes the memory for the variables of a GPU's module.
    pub(crate) fn note_allocated(&self, context: ContextId, module: u32, addresses: Vec<u64>) {
        self.allocated.lock().unwrap_or_else(PoisonError::into_inner).insert((context, module), addresses);
    }

    /// Forgets the memory of a module, and gives it; `None` where the module is not loaded.
    pub(crate) fn take_allocated(&self, context: ContextId, module: u32) -> Option<Vec<u64>> {
        self.allocated.lock().unwrap_or_else(PoisonError::into_inner).remove(&(context, module))
    }
}
