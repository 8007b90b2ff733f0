//! Loading code: the code of a built-in workload before the run, the modules of programs during it.

use super::cache::{CachedModule, CodeCache, ModuleKernel};
use super::choice::CodeChoice;
pub use super::error::LoadError;
use super::module::CodeModule;
use super::source::ModuleSource;
use super::tables::{DriverTables, KernelSource, KernelTable, ProgramTable, Symbol, SymbolTable};
use crate::effect::MemoryChange;
use balar_host::call::{BUILT_IN_MODULE, ModuleFunction, ModuleVariable, VariableKind};
use balar_isa::machine::Placement;
use balar_isa::module;
use balar_protocol::ContextId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Alignment of a variable and of the device heap, as `cudaMalloc` aligns.
const ALIGNMENT: u64 = 256;

/// A part of a module that needs memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A variable: a managed one in the host window, any other in the GPU's memory.
    Variable(VariableKind),
    /// The device heap, in the GPU's memory.
    Heap,
    /// Where launches of kernels wait, in the GPU's memory.
    Launches,
}

/// Where modules get memory from: the allocator of the simulated host's driver.
pub trait ModuleMemory {
    /// The address of `bytes` new bytes, at a multiple of `alignment`, a power of two; `None` where there are none left.
    fn allocate(&mut self, room: Room, bytes: u64, alignment: u64) -> Option<u64>;

    /// Gives back memory of [`Self::allocate`].
    fn free(&mut self, address: u64);
}

/// Which code is to be loaded, and where.
#[derive(Clone, Copy, Debug)]
pub struct LoadRequest<'a> {
    /// The context that it is loaded in.
    pub context: ContextId,
    /// The compute capability of its GPU.
    pub compute_capability: (u32, u32),
    /// The module's number, which no other of the context has.
    pub module: u32,
    /// The code.
    pub source: &'a ModuleSource,
    /// Bytes of the device heap, which is made where kernels of the module allocate; `None` where the context has one.
    pub heap_bytes: Option<u64>,
    /// Bytes for launches that wait, which are set aside where kernels of the module launch kernels; `None` where the context has them.
    pub launch_bytes: Option<u64>,
    /// Which code kernels get in place of the module's, where there is any.
    pub replacements: Option<&'a CodeChoice>,
}

/// A module that was loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadedModule {
    /// Its kernels.
    pub functions: Vec<ModuleFunction>,
    /// Its variables.
    pub variables: Vec<ModuleVariable>,
    /// The device heap that was made for it: first address, bytes.
    pub heap: Option<(u64, u64)>,
    /// Where launches of its kernels wait, if that was set aside for it: first address, bytes.
    pub launches: Option<(u64, u64)>,
    /// A warning for the user.
    pub warning: Option<String>,
}

/// Loads and unloads modules.
#[derive(Clone, Debug)]
pub struct ModuleLoader {
    kernels: Arc<KernelTable>,
    symbols: Arc<SymbolTable>,
    programs: Arc<ProgramTable>,
    code: Arc<CodeCache>,
}

impl ModuleLoader {
    /// Loads into these tables.
    pub fn new(tables: &DriverTables) -> ModuleLoader {
        ModuleLoader {
            kernels: Arc::clone(&tables.kernels),
            symbols: Arc::clone(&tables.symbols),
            programs: Arc::clone(&tables.programs),
            code: Arc::clone(&tables.code),
        }
    }

    /// Loads a module: places its variables and, where its kernels allocate, the device heap; leaves the changes of memory in `changes`,
    /// initial values included; and adds kernels and variables to the tables.
    ///
    /// # Errors
    ///
    /// Mistakes in the code, or too little memory; nothing is loaded then, and nothing stays allocated. A kernel that cannot run
    /// is no error but one of its launches.
    pub fn load(
        &self,
        request: &LoadRequest,
        changes: &mut Vec<MemoryChange>,
        memory: &mut dyn ModuleMemory,
    ) -> Result<LoadedModule, LoadError> {
        let cached = self.code.linked(request.source)?;
        let module = &cached.module;
        module.check_target(request.compute_capability)?;
        let placements = module.placements();
        let (addresses, mut allocated) = self.places(module, &placements, request, memory)?;
        let mut replaced = match self.replaced(request, module, &addresses) {
            Ok(replaced) => replaced,
            Err(error) => return Err(give_back(allocated, memory, error)),
        };
        let any = |is: fn(&CodeModule) -> bool| is(module) || replaced.values().any(|kernel| is(&kernel.module.module));
        let (allocates, launches) = (any(CodeModule::allocates), any(CodeModule::launches));
        let heap_bytes = request.heap_bytes.filter(|_| allocates);
        let heap = match set_aside(heap_bytes, (Room::Heap, "the device heap"), request, memory) {
            Ok(heap) => heap,
            Err(error) => return Err(give_back(allocated, memory, error)),
        };
        let launch_bytes = request.launch_bytes.filter(|_| launches);
        let launches = match set_aside(launch_bytes, (Room::Launches, "launches of its kernels"), request, memory) {
            Ok(launches) => launches,
            Err(error) => {
                allocated.extend(heap.map(|(address, _)| address));
                return Err(give_back(allocated, memory, error));
            }
        };
        let mut loaded = LoadedModule { heap, launches, ..LoadedModule::default() };
        for (index, (placement, &address)) in placements.iter().zip(&addresses).enumerate() {
            if module.is_number(placement) {
                continue;
            }
            let bytes = placement.bytes.max(1);
            changes.push(MemoryChange::Map { process: request.context.process(), address, bytes });
            let value = module.initial_value(index, &addresses).unwrap_or_default();
            if (value.len() as u64) < bytes {
                // Other allocations may have used the memory before.
                changes.push(MemoryChange::Zero { address, bytes });
            }
            if !value.is_empty() {
                changes.push(MemoryChange::Write { address, bytes: value.into() });
            }
        }
        let mut constant_bytes = 0;
        for variable in module.variables() {
            let kind = kind_of(variable.kind);
            if kind == VariableKind::Constant {
                constant_bytes += variable.bytes;
            }
            let address = addresses[variable.placement] + variable.offset;
            let symbol = Symbol { address, bytes: variable.bytes, kind };
            self.symbols.insert(request.context, request.module, &variable.name, symbol);
            loaded.variables.push(ModuleVariable { name: variable.name.into(), address, bytes: variable.bytes, kind });
        }
        if let Some((address, bytes)) = heap {
            changes.push(MemoryChange::Heap { context: request.context, address, bytes });
        }
        if let Some((address, bytes)) = launches {
            changes.push(MemoryChange::LaunchPool { context: request.context, address, bytes });
        }
        if let Some(architecture) = module.later_architecture(request.compute_capability) {
            let (major, minor) = request.compute_capability;
            loaded.warning = Some(format!(
                "{}: PTX for compute_{architecture} on a GPU of compute capability {major}.{minor}",
                request.source.names()
            ));
        }
        let decoded = cached.kernels(&addresses);
        let constant_bytes = u32::try_from(constant_bytes).unwrap_or(u32::MAX);
        for (number, (name, slots)) in module.kernels().into_iter().enumerate() {
            let kernel = replaced.remove(&number).unwrap_or_else(|| ModuleKernel {
                module: Arc::clone(&cached),
                decoded: Arc::clone(&decoded),
                name: Arc::clone(&name),
                number,
            });
            let CachedModule { module, source, .. } = &*kernel.module;
            let (ptx_version, binary_version) = module.versions(&name, request.compute_capability);
            let ptx_version = source.target().unwrap_or(ptx_version);
            let kernel = KernelSource {
                kernel,
                programs: Arc::clone(&self.programs),
                id: self.programs.reserve(),
                constant_bytes,
                ptx_version,
                binary_version,
            };
            self.kernels.insert_source(request.context, request.module, kernel);
            let parameters = slots.iter().map(|slot| (slot.offset, slot.bytes)).collect();
            loaded.functions.push(ModuleFunction { name, parameters });
        }
        self.code.note_allocated(request.context, request.module, allocated);
        self.code.note_loaded(request.source);
        Ok(loaded)
    }

    /// The address or number of each placement, and the addresses that were allocated for them.
    fn places(
        &self,
        module: &CodeModule,
        placements: &[Placement],
        request: &LoadRequest,
        memory: &mut dyn ModuleMemory,
    ) -> Result<(Vec<u64>, Vec<u64>), LoadError> {
        let mut addresses = Vec::with_capacity(placements.len());
        let mut allocated = Vec::new();
        for placement in placements {
            if module.is_number(placement) {
                addresses.push(self.symbols.number_reference());
                continue;
            }
            match place(placement, request, memory) {
                Ok(address) => {
                    addresses.push(address);
                    allocated.push(address);
                }
                Err(error) => return Err(give_back(allocated, memory, error)),
            }
        }
        Ok((addresses, allocated))
    }

    /// The kernels of a module that run other code than its own, by their numbers. The other code uses the module's variables, which have
    /// their places.
    fn replaced(
        &self,
        request: &LoadRequest,
        module: &CodeModule,
        addresses: &[u64],
    ) -> Result<BTreeMap<usize, ModuleKernel>, LoadError> {
        let mut replaced = BTreeMap::new();
        let Some(choice) = request.replacements.filter(|choice| !choice.replacements.is_empty()) else {
            return Ok(replaced);
        };
        for (number, (name, slots)) in module.kernels().into_iter().enumerate() {
            let Some(replacement) = choice.replacements.iter().rev().find(|it| it.is_for(&name)) else { continue };
            let source = choice.of_images(&[&replacement.code], &replacement.file, request.compute_capability)?;
            let other = self.code.linked(&source)?;
            other.module.check_target(request.compute_capability)?;
            let refused =
                |why: String| LoadError::Replacement { kernel: Arc::clone(&name), file: replacement.file.clone(), why };
            let kernels = other.module.kernels();
            let Some(own_number) = kernels.iter().position(|(other, _)| *other == name) else {
                let names: Vec<&str> = kernels.iter().map(|(name, _)| &**name).collect();
                return Err(refused(format!("it has no kernel of this name; it has: {}", names.join(", "))));
            };
            if kernels[own_number].1 != slots {
                return Err(refused("its kernel has other parameters".to_owned()));
            }
            let shared = shared_addresses(&other.module, module, addresses).map_err(refused)?;
            let decoded = other.kernels(&shared);
            self.code.note_loaded(&source);
            replaced.insert(number, ModuleKernel { module: other, decoded, name, number: own_number });
        }
        Ok(replaced)
    }

    /// Ends a module: nothing of its code runs any more. Its variables end. Of the built-in module 0 or one that is not
    /// loaded, false.
    pub fn unload(
        &self,
        context: ContextId,
        module: u32,
        changes: &mut Vec<MemoryChange>,
        memory: &mut dyn ModuleMemory,
    ) -> bool {
        let removed = if module == BUILT_IN_MODULE { None } else { self.code.take_allocated(context, module) };
        let Some(addresses) = removed else { return false };
        for address in addresses {
            changes.push(MemoryChange::Unmap { address });
            memory.free(address);
        }
        self.symbols.remove(context, module);
        for program in self.kernels.remove(context, module) {
            self.programs.remove(program);
        }
        true
    }
}

/// The addresses of what `other` needs, which are those of variables of a module that is loaded; or why it cannot have them, in words.
fn shared_addresses(other: &CodeModule, module: &CodeModule, addresses: &[u64]) -> Result<Vec<u64>, String> {
    let variables = module.variables();
    let address_of = |placement: &Placement| {
        if matches!(other, CodeModule::Machine(_)) {
            return Err("it is machine code with variables, whose places differ from those of the program's".to_owned());
        }
        let found = variables.iter().find(|it| it.name == placement.name && it.bytes >= placement.bytes);
        let address = found.map(|it| addresses[it.placement] + it.offset);
        address.ok_or_else(|| format!("it has a variable `{}`, which the program's code has not", placement.name))
    };
    other.placements().iter().map(address_of).collect()
}

/// The address of what needs a place.
fn place(placement: &Placement, request: &LoadRequest, memory: &mut dyn ModuleMemory) -> Result<u64, LoadError> {
    let room = Room::Variable(kind_of(placement.kind));
    let alignment = placement.alignment.max(ALIGNMENT).next_power_of_two();
    let address = memory.allocate(room, placement.bytes.max(1), alignment);
    address.ok_or_else(|| no_room(request, format!("its variable {}", placement.name), placement.bytes))
}

/// Memory that the context is to have from now on, of so many bytes: first address, bytes. `None` where none is wanted.
fn set_aside(
    bytes: Option<u64>,
    (room, what): (Room, &str),
    request: &LoadRequest,
    memory: &mut dyn ModuleMemory,
) -> Result<Option<(u64, u64)>, LoadError> {
    let Some(bytes) = bytes else { return Ok(None) };
    let start = memory.allocate(room, bytes, ALIGNMENT);
    Ok(Some((start.ok_or_else(|| no_room(request, what.to_owned(), bytes))?, bytes)))
}

fn no_room(request: &LoadRequest, what: String, bytes: u64) -> LoadError {
    LoadError::Memory { name: request.source.names(), what, bytes }
}

/// Frees the memory that was allocated before a failure.
fn give_back(allocated: Vec<u64>, memory: &mut dyn ModuleMemory, error: LoadError) -> LoadError {
    allocated.into_iter().for_each(|address| memory.free(address));
    error
}

fn kind_of(kind: module::VariableKind) -> VariableKind {
    match kind {
        module::VariableKind::Global => VariableKind::Global,
        module::VariableKind::Constant => VariableKind::Constant,
        module::VariableKind::Managed => VariableKind::Managed,
        module::VariableKind::Texture | module::VariableKind::Sampler => VariableKind::Texture,
        module::VariableKind::Surface => VariableKind::Surface,
    }
}

#[cfg(test)]
mod tests;
