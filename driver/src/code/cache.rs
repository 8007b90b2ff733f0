//! Code that was loaded, kept for programs that load it again.

use balar_isa::module::PtxModule;
use balar_isa::program::{KernelName, Program};
use balar_isa::ptx::{self, PtxErrors};
use balar_protocol::ContextId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Linked texts that are kept, for programs that load the same code again or on another GPU.
const CACHED_MODULES: usize = 32;
/// Decoded forms of each that are kept: they differ in the addresses of variables.
const CACHED_FORMS: usize = 8;

/// A PTX text and the name that messages give it.
pub type NamedText = (String, Arc<str>);

/// A decoded kernel, or why it cannot run.
pub type DecodedKernel = Result<Arc<Program>, Arc<str>>;

/// Linked texts, and their kernels for the addresses that variables had.
#[derive(Debug)]
pub(crate) struct CachedModule {
    texts: Vec<NamedText>,
    pub module: PtxModule,
    forms: Mutex<VecDeque<Arc<DecodedKernels>>>,
}

impl CachedModule {
    fn new(texts: &[NamedText]) -> Result<CachedModule, Box<PtxErrors>> {
        let mut trees = Vec::with_capacity(texts.len());
        for (file, text) in texts {
            trees.push(ptx::parse(file, text)?);
        }
        Ok(CachedModule { texts: texts.to_vec(), module: PtxModule::link(trees)?, forms: Mutex::default() })
    }

    /// Its kernels for variables at these addresses. None is decoded yet that nobody has asked for.
    pub fn kernels(&self, addresses: &[u64]) -> Arc<DecodedKernels> {
        let mut forms = self.forms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(form) = forms.iter().find(|form| form.addresses == addresses) {
            return Arc::clone(form);
        }
        let kernels = self.module.kernels().map(|_| OnceLock::new()).collect();
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
    /// Its program, or why it cannot run.
    pub fn program(&self) -> DecodedKernel {
        let decode = || {
            let program = self.module.module.program(&self.name, &self.decoded.addresses);
            program.map(Arc::new).map_err(|errors| refusal(&errors))
        };
        self.decoded.kernels[self.number].get_or_init(decode).clone()
    }
}

/// Why a kernel cannot be launched, in words.
fn refusal(errors: &PtxErrors) -> Arc<str> {
    let lines = errors.errors.iter().map(|error| format!("{error}, in `{}`", error.line_text.trim()));
    lines.collect::<Vec<_>>().join("\n").into()
}

/// Code that was loaded, and what the modules that are loaded hold.
#[derive(Debug, Default)]
pub struct CodeCache {
    /// The most recently used last.
    modules: Mutex<VecDeque<Arc<CachedModule>>>,
    /// What was allocated for the variables of each module, by GPU and number.
    allocated: Mutex<BTreeMap<(ContextId, u32), Vec<u64>>>,
}

impl CodeCache {
    /// The texts read and linked, from the cache where they are there.
    pub(crate) fn linked(&self, texts: &[NamedText]) -> Result<Arc<CachedModule>, Box<PtxErrors>> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let found = modules.iter().position(|cached| cached.texts == texts).and_then(|at| modules.remove(at));
        let module = match found {
            Some(module) => module,
            None => Arc::new(CachedModule::new(texts)?),
        };
        if modules.len() == CACHED_MODULES {
            modules.pop_front();
        }
        modules.push_back(Arc::clone(&module));
        Ok(module)
    }

    /// Linked texts that are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Notes what was allocated for the variables of a GPU's module.
    pub(crate) fn note_allocated(&self, context: ContextId, module: u32, addresses: Vec<u64>) {
        self.allocated.lock().unwrap_or_else(PoisonError::into_inner).insert((context, module), addresses);
    }

    /// Forgets what was allocated for a module, and gives it; `None` where the module is not loaded.
    pub(crate) fn take_allocated(&self, context: ContextId, module: u32) -> Option<Vec<u64>> {
        self.allocated.lock().unwrap_or_else(PoisonError::into_inner).remove(&(context, module))
    }
}
