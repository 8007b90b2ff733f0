//! The tables of the host's driver: loaded kernels, the variables of modules, decoded programs.

use super::cache::{CodeCache, ModuleKernel};
use balar_host::call::{FunctionAttributes, VariableKind};
use balar_isa::program::{Program, Resources};
use balar_protocol::ContextId;
use balar_protocol::cuda::{Code, ProgramId};
use balar_protocol::limits::{block_threads, register_files};
use dashmap::DashMap;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The decoded kernels of the node, by number. A launch carries its code; a saved state names it by its number alone. Threads meet here: that
/// of the host's driver adds kernels while those of other shards look up what the states of their units name.
#[derive(Debug, Default)]
pub struct ProgramTable {
    codes: DashMap<ProgramId, Code>,
    /// The number given last.
    last: AtomicU32,
}

impl ProgramTable {
    /// Gives a program a number.
    pub fn add(&self, program: Arc<Program>) -> Code {
        self.add_as(self.reserve(), program)
    }

    /// A number for a program that is still to be decoded. The number says where the code lies, which must not depend on the order in
    /// which a program comes to its kernels.
    pub(crate) fn reserve(&self) -> ProgramId {
        ProgramId(self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Adds the program for which a number was reserved.
    pub(crate) fn add_as(&self, id: ProgramId, program: Arc<Program>) -> Code {
        let code = Code::new(id, program);
        self.codes.insert(id, code.clone());
        code
    }

    /// Ends a program; launches of it keep it.
    pub fn remove(&self, id: ProgramId) {
        self.codes.remove(&id);
    }

    /// The code with number `id`.
    pub fn get(&self, id: ProgramId) -> Option<Code> {
        self.codes.get(&id).map(|code| code.clone())
    }
}

/// The facts about a loaded kernel that a launch needs.
#[derive(Clone, Debug, Default)]
pub struct KernelInfo {
    /// Its name in the PTX.
    pub name: Arc<str>,
    /// Its code.
    pub code: Code,
    /// Its demands on an SM.
    pub resources: Resources,
    /// Size of its parameter block, bytes.
    pub parameter_bytes: u32,
    /// Offset and size of each parameter, bytes.
    pub parameters: Vec<(u32, u32)>,
    /// Constant variables of its module, bytes.
    pub constant_bytes: u32,
    /// The architecture that its PTX is for: 70.
    pub ptx_version: u32,
    /// The architecture that it runs on: 70.
    pub binary_version: u32,
    /// The kernels that it can launch: the addresses by which it names them, and their names.
    pub launched: Vec<(u64, Arc<str>)>,
}

/// Threads of a block (CUDA C++ Programming Guide, all compute capabilities).
const MAXIMUM_BLOCK_THREADS: u32 = 1024;
/// Shared memory of a block that no launch needs to ask for, bytes (CUDA C++ Programming Guide).
pub const DEFAULT_SHARED_BYTES: u32 = 48 << 10;

impl KernelInfo {
    /// The attributes that `cudaFuncGetAttributes` tells on a GPU of this compute capability before a program sets any.
    pub fn attributes(&self, compute_capability: (u32, u32)) -> FunctionAttributes {
        let Resources { registers_per_thread, shared_bytes, local_bytes, .. } = self.resources;
        let compiled_for =
            self.resources.maximum_threads.or(self.resources.required_block.map(|block| block.iter().product()));
        let by_registers = block_threads(registers_per_thread, register_files(compute_capability));
        FunctionAttributes {
            shared_bytes,
            constant_bytes: self.constant_bytes,
            local_bytes,
            maximum_threads: compiled_for.unwrap_or(MAXIMUM_BLOCK_THREADS).min(MAXIMUM_BLOCK_THREADS).min(by_registers),
            registers: registers_per_thread,
            ptx_version: self.ptx_version,
            binary_version: self.binary_version,
            maximum_dynamic_shared_bytes: DEFAULT_SHARED_BYTES.saturating_sub(shared_bytes),
            cluster: self.resources.clusters.required,
            cluster_must_be_set: self.resources.clusters.is_explicit && self.resources.clusters.required.is_none(),
        }
    }
}

/// A kernel that can be launched, or why it cannot: the mistakes in its code, as the user is to read them.
pub type LoadedKernel = Result<Arc<KernelInfo>, Arc<str>>;

/// A kernel of a module, with the facts that depend on the place where it is loaded.
#[derive(Debug)]
pub(crate) struct KernelSource {
    pub kernel: ModuleKernel,
    /// Where its program is kept, and the number reserved for it.
    pub programs: Arc<ProgramTable>,
    pub id: ProgramId,
    /// As in [`KernelInfo`].
    pub constant_bytes: u32,
    pub ptx_version: u32,
    pub binary_version: u32,
}

impl KernelSource {
    /// Decodes the kernel.
    fn load(&self) -> LoadedKernel {
        let program = self.kernel.program()?;
        Ok(Arc::new(KernelInfo {
            name: Arc::clone(&self.kernel.name),
            resources: program.resources().clone(),
            parameter_bytes: program.parameter_bytes(),
            parameters: program.parameters().iter().map(|slot| (slot.offset, slot.bytes)).collect(),
            constant_bytes: self.constant_bytes,
            ptx_version: self.ptx_version,
            binary_version: self.binary_version,
            launched: self.kernel.launched(),
            code: self.programs.add_as(self.id, program),
        }))
    }
}

/// An entry of the table of kernels.
#[derive(Clone, Debug)]
enum Entry {
    /// It is decoded when it is first looked up.
    Source(Arc<(KernelSource, OnceLock<LoadedKernel>)>),
    Loaded(Arc<KernelInfo>),
}

/// What is loaded, by context, module and name. One thread at a time has to do with it: the one that loads code before the run, then that of
/// the host's driver.
type ByModule<N, T> = Mutex<BTreeMap<(ContextId, u32), BTreeMap<N, T>>>;

fn locked<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernels that are loaded, by context, module and name. The driver of the simulated host looks them up at each launch.
#[derive(Debug, Default)]
pub struct KernelTable {
    kernels: ByModule<Arc<str>, Entry>,
}

impl KernelTable {
    /// Adds `kernel` to the kernels of a context's module, and replaces one of the same name.
    pub fn insert(&self, context: ContextId, module: u32, kernel: KernelInfo) {
        self.add(context, module, kernel.name.clone(), Entry::Loaded(Arc::new(kernel)));
    }

    /// Adds a kernel that is decoded when it is first looked up.
    pub(crate) fn insert_source(&self, context: ContextId, module: u32, source: KernelSource) {
        let name = Arc::clone(&source.kernel.name);
        self.add(context, module, name, Entry::Source(Arc::new((source, OnceLock::new()))));
    }

    fn add(&self, context: ContextId, module: u32, name: Arc<str>, entry: Entry) {
        locked(&self.kernels).entry((context, module)).or_default().insert(name, entry);
    }

    /// The kernel `name` of a context's module.
    pub fn find(&self, context: ContextId, module: u32, name: &str) -> Option<LoadedKernel> {
        // Nothing is decoded while the table is locked.
        let entry = locked(&self.kernels).get(&(context, module))?.get(name).cloned()?;
        Some(match entry {
            Entry::Loaded(kernel) => Ok(kernel),
            Entry::Source(source) => source.1.get_or_init(|| source.0.load()).clone(),
        })
    }

    /// Forgets the kernels of a module; gives their programs.
    pub fn remove(&self, context: ContextId, module: u32) -> Vec<ProgramId> {
        let removed = locked(&self.kernels).remove(&(context, module));
        let program = |entry| match entry {
            Entry::Loaded(kernel) => Some(kernel.code.id()),
            Entry::Source(source) => Some(source.1.get()?.as_ref().ok()?.code.id()),
        };
        removed.into_iter().flat_map(BTreeMap::into_values).filter_map(program).collect()
    }
}

/// A variable of a loaded module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its kind.
    pub kind: VariableKind,
}

/// The first number that a reference of machine code gets. The handles of texture and surface objects count up from 1.
const FIRST_REFERENCE: u32 = 1 << 31;

/// Where the variables of loaded modules lie, by context, module and name.
#[derive(Debug, Default)]
pub struct SymbolTable {
    symbols: ByModule<Box<str>, Symbol>,
    /// References of machine code that have got a number.
    references: AtomicU32,
}

impl SymbolTable {
    /// A number for a texture or surface reference of machine code: its handle, which no other image has.
    pub(crate) fn number_reference(&self) -> u64 {
        u64::from(FIRST_REFERENCE | self.references.fetch_add(1, Ordering::Relaxed))
    }

    /// Adds a variable to the variables of a context's module, and replaces one of the same name.
    pub fn insert(&self, context: ContextId, module: u32, name: &str, symbol: Symbol) {
        locked(&self.symbols).entry((context, module)).or_default().insert(name.into(), symbol);
    }

    /// The variable `name` of a context's module.
    pub fn find(&self, context: ContextId, module: u32, name: &str) -> Option<Symbol> {
        locked(&self.symbols).get(&(context, module))?.get(name).copied()
    }

    /// Are all of these addresses in one variable of a context's module?
    pub fn holds(&self, context: ContextId, module: u32, address: u64, bytes: u64) -> bool {
        let holds = |symbol: &Symbol| {
            let offset = address.checked_sub(symbol.address);
            offset.and_then(|offset| symbol.bytes.checked_sub(offset)).is_some_and(|room| room >= bytes)
        };
        locked(&self.symbols).get(&(context, module)).is_some_and(|symbols| symbols.values().any(holds))
    }

    /// Forgets the variables of a module.
    pub fn remove(&self, context: ContextId, module: u32) {
        locked(&self.symbols).remove(&(context, module));
    }
}

/// The tables of the host's driver: loaded modules and their code.
#[derive(Clone, Debug, Default)]
pub struct DriverTables {
    /// The kernels loaded for each GPU.
    pub kernels: Arc<KernelTable>,
    /// Where their variables lie.
    pub symbols: Arc<SymbolTable>,
    /// The decoded kernels.
    pub programs: Arc<ProgramTable>,
    /// Code that was loaded, kept for when it is loaded again.
    pub code: Arc<CodeCache>,
}
