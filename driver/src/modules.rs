//! Modules that the program loads: where their variables lie, what launches of their kernels may ask for.

use crate::Driver;
use crate::allocator::DeviceAllocator;
use crate::calls::{CallOutcome, NOTHING, Outcome, not_modelled};
use crate::code::ModuleSource;
use crate::code::loader::{self, LoadError, LoadRequest, ModuleMemory, Room};
use crate::code::tables::KernelInfo;
use crate::driver::State;
use crate::launch::{DEFAULT_SHARED_BYTES, maximum_shared_bytes};
use crate::memory::HostWindow;
use crate::wait::{Then, Until, Wait};
use balar_host::CudaError;
use balar_host::call::{AllocationKind, BUILT_IN_MODULE, Function, VariableKind};
use balar_host::{Bytes, Call, CallResult};
use balar_protocol::ContextId;
use balar_protocol::managed::ManagedMessage;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

type Failure = (CudaError, String);

/// Bytes to whose multiples large allocations are aligned.
const LARGE: u64 = 2 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Module {
    context: ContextId,
    /// Dynamic shared memory that launches may ask for, where the program has set it.
    shared_limits: BTreeMap<Arc<str>, u32>,
}

/// All modules that a process has loaded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Modules {
    modules: BTreeMap<u32, Module>,
    last: u32,
    /// Kernels whose refusal the user has been told.
    told: BTreeSet<(u32, Arc<str>)>,
}

impl Modules {
    /// Is the module there, on this device?
    pub fn check(&self, context: ContextId, module: u32) -> Result<(), Failure> {
        let is_there = module == BUILT_IN_MODULE || self.modules.get(&module).is_some_and(|it| it.context == context);
        if is_there {
            return Ok(());
        }
        Err((CudaError::InvalidResourceHandle, format!("there is no module {module} on device {}", context.gpu())))
    }

    /// Dynamic shared memory that launches of a kernel may ask for.
    pub fn dynamic_shared_limit(&self, function: &Function, kernel: &KernelInfo) -> u32 {
        let set = self.modules.get(&function.module).and_then(|module| module.shared_limits.get(&function.name));
        set.copied().unwrap_or(DEFAULT_SHARED_BYTES.saturating_sub(kernel.resources.shared_bytes))
    }

    /// Is it the first time that the user is told why this kernel is refused?
    pub fn is_told_first(&mut self, function: &Function) -> bool {
        self.told.insert((function.module, function.name.clone()))
    }

    /// The modules of a context.
    pub fn of_context(&self, context: ContextId) -> Vec<u32> {
        self.modules.iter().filter(|(_, module)| module.context == context).map(|(number, _)| *number).collect()
    }
}

/// Where modules get memory from.
struct Memory<'a> {
    context: ContextId,
    allocator: &'a mut DeviceAllocator,
    window: &'a mut HostWindow,
    /// What begins and ends of managed memory.
    managed: Vec<ManagedMessage>,
    /// Device memory that nobody has any more.
    unused: Vec<Range<u64>>,
}

impl ModuleMemory for Memory<'_> {
    fn allocate(&mut self, room: Room, bytes: u64, alignment: u64) -> Option<u64> {
        if room == Room::Variable(VariableKind::Managed) {
            // Pages are aligned enough.
            let address = self.window.allocate(AllocationKind::Managed, self.context, bytes).ok()?;
            self.managed.push(ManagedMessage::Allocate { address, bytes });
            return Some(address);
        }
        let address = self.allocator.allocate(self.context.process(), bytes).ok()?;
        if address.is_multiple_of(alignment) {
            return Some(address);
        }
        // Nothing was written there.
        let _unused = self.allocator.free(address);
        self.allocator.allocate(self.context.process(), bytes.max(LARGE)).ok()
    }

    fn free(&mut self, address: u64) {
        match self.allocator.free(address) {
            Some(unused) => self.unused.push(unused),
            None if self.window.free(address) == Some(AllocationKind::Managed) => {
                self.managed.push(ManagedMessage::Free { address });
            }
            None => {}
        }
    }
}

impl Driver {
    /// A call about modules and their kernels.
    pub(crate) fn module_call(&mut self, context: ContextId, call: Call) -> CallOutcome {
        match call {
            Call::ModuleLoad { images, name } => {
                let loaded = self.load_module(context, &images, &name);
                loaded.map(Outcome::Returns).map_err(|error| {
                    // The words of a mistake are the user's: the program sees a number alone.
                    let text = format!("{error}{}", self.other_nodes_for(context, &error, &images, &name));
                    self.tell(context.process(), &text);
                    (error.cuda_error(), text)
                })
            }
            Call::ModuleUnload { module } => {
                self.own(context).modules.check(context, module)?;
                let until = Until::ContextBefore { context, number: self.state.operations.next() };
                Ok(Outcome::Waits(Wait { until, then: Then::Unload(module) }))
            }
            Call::FunctionAttributes { function } => {
                let kernel = self.find_kernel(context, &function)?;
                let mut attributes = kernel.attributes();
                if function.module != BUILT_IN_MODULE {
                    attributes.maximum_dynamic_shared_bytes =
                        self.own(context).modules.dynamic_shared_limit(&function, &kernel);
                }
                Ok(Outcome::Returns(CallResult::Attributes(attributes)))
            }
            Call::SetDynamicSharedLimit { function, bytes } => {
                let kernel = self.find_kernel(context, &function)?;
                let maximum = maximum_shared_bytes(self.gpus[context.gpu()].compute_capability);
                let all = u64::from(kernel.resources.shared_bytes) + u64::from(bytes);
                if all > maximum {
                    let text = format!("{all} bytes of shared memory, the limit is {maximum}");
                    return Err((CudaError::InvalidValue, text));
                }
                self.device_kernels.clear();
                if let Some(module) = self.own(context).modules.modules.get_mut(&function.module) {
                    module.shared_limits.insert(function.name, bytes);
                }
                NOTHING
            }
            other => Err(not_modelled(&other)),
        }
    }

    /// Which nodes have a GPU that an image has code for, where it has none for that of the context.
    fn other_nodes_for(&self, context: ContextId, error: &LoadError, images: &[Bytes], name: &str) -> String {
        if !error.is_for_other_gpus() || self.other_nodes.is_empty() {
            return String::new();
        }
        let images = contents(images);
        let runs = |capability: (u32, u32)| ModuleSource::of_images(&images, name, capability, &self.code).is_ok();
        let nodes = self.other_nodes.iter().filter(|(_, capability)| runs(*capability)).map(|(node, _)| *node);
        let nodes: Vec<&str> = nodes.collect();
        let (major, minor) = self.gpus[context.gpu()].compute_capability;
        match nodes[..] {
            [] => format!("; the GPU is sm_{major}{minor}, and no node that is built in has one that could run it"),
            _ => format!("; the GPU is sm_{major}{minor}, and it could run on {}", nodes.join(" and ")),
        }
    }

    fn load_module(&mut self, context: ContextId, images: &[Bytes], name: &str) -> Result<CallResult, LoadError> {
        let compute_capability = self.gpus[context.gpu()].compute_capability;
        let images = contents(images);
        let source = ModuleSource::of_images(&images, name, compute_capability, &self.code)?;
        let module = self.own(context).modules.last + 1;
        let heap_bytes = self.context(context).heap_wanted();
        let launch_bytes = self.context(context).launch_bytes_wanted();
        let request = LoadRequest { context, compute_capability, module, source: &source, heap_bytes, launch_bytes };
        let State { memories, window, .. } = &mut self.state;
        let allocator = &mut memories[context.gpu()];
        let mut memory = Memory { context, allocator, window, managed: Vec::new(), unused: Vec::new() };
        let mut changes = Vec::new();
        let loaded = self.loader.load(&request, &mut changes, &mut memory)?;
        let managed = memory.managed;
        changes.into_iter().for_each(|change| self.change(change));
        for message in managed {
            match message {
                ManagedMessage::Allocate { address, bytes } => self.tell_managed(context.process(), address, bytes),
                ended => self.tell_unified_memory(ended),
            }
        }
        if let Some((address, _)) = loaded.heap {
            self.context(context).heap_made(address);
        }
        if let Some((address, _)) = loaded.launches {
            self.context(context).launch_pool = Some(address);
        }
        let reserved = self.state.memories[context.gpu()].reserved();
        self.state.totals.device_memory_maximum = self.state.totals.device_memory_maximum.max(reserved);
        let modules = &mut self.own(context).modules;
        modules.last = module;
        modules.modules.insert(module, Module { context, shared_limits: BTreeMap::new() });
        let loader::LoadedModule { functions, variables, warning, .. } = loaded;
        if let Some(warning) = warning {
            tracing::info!("{warning}");
        }
        Ok(CallResult::Module { module, functions, variables })
    }

    /// Nothing uses the module any more.
    pub(crate) fn unload_module(&mut self, context: ContextId, module: u32) {
        let Some(Module { context, .. }) = self.own(context).modules.modules.remove(&module) else { return };
        let State { memories, window, .. } = &mut self.state;
        let allocator = &mut memories[context.gpu()];
        let mut memory = Memory { context, allocator, window, managed: Vec::new(), unused: Vec::new() };
        let mut changes = Vec::new();
        let _was_loaded = self.loader.unload(context, module, &mut changes, &mut memory);
        let (managed, unused) = (memory.managed, memory.unused);
        changes.into_iter().for_each(|change| self.change(change));
        unused.into_iter().for_each(|range| self.zero(range));
        managed.into_iter().for_each(|message| self.tell_unified_memory(message));
    }
}

/// The bytes of images.
fn contents(images: &[Bytes]) -> Vec<&[u8]> {
    images.iter().map(|image| image.data().map_or(&[][..], |data| &data[..])).collect()
}
