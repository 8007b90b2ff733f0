//! The code that is loaded: kernels that programs name, modules that they load and unload.

use super::device_kernels::{DeviceKernels, ModuleKernels};
use super::stacks::LargerStacks;
use super::validation::maximum_shared_bytes;
use crate::code::CodeChoice;
use crate::code::loader::{LoadError, LoadRequest, LoadedModule, ModuleLoader};
use crate::code::tables::{DriverTables, KernelInfo, KernelTable, ProgramTable, SymbolTable};
use crate::effect::Effects;
use crate::memory::Memory;
use crate::outcome::{Failure, invalid};
use crate::process::Process;
use balar_host::call::{BUILT_IN_MODULE, Function, FunctionAttributes};
use balar_host::{Bytes, CallResult, CudaError};
use balar_protocol::ContextId;
use balar_protocol::cuda::{Code, ProgramId};
use balar_protocol::device_launch::DeviceKernel;
use std::sync::Arc;

/// A node by its name, and the compute capability of its GPUs.
pub type OtherNode = (&'static str, (u32, u32));

/// The code of the node.
#[derive(Debug)]
pub(crate) struct LoadedCode {
    kernels: Arc<KernelTable>,
    pub symbols: Arc<SymbolTable>,
    pub programs: Arc<ProgramTable>,
    loader: ModuleLoader,
    choice: CodeChoice,
    /// By GPU.
    compute_capabilities: Vec<(u32, u32)>,
    /// Nodes that a program could run on instead.
    other_nodes: &'static [OtherNode],
    device_kernels: DeviceKernels,
}

impl LoadedCode {
    /// The loaded code of `tables` alone.
    pub fn new(
        tables: &DriverTables,
        choice: CodeChoice,
        compute_capabilities: Vec<(u32, u32)>,
        other_nodes: &'static [OtherNode],
    ) -> LoadedCode {
        LoadedCode {
            kernels: Arc::clone(&tables.kernels),
            symbols: Arc::clone(&tables.symbols),
            programs: Arc::clone(&tables.programs),
            loader: ModuleLoader::new(tables),
            choice,
            compute_capabilities,
            other_nodes,
            device_kernels: DeviceKernels::default(),
        }
    }

    /// The code that a saved state names by its number.
    ///
    /// # Errors
    ///
    /// It is not loaded.
    pub fn complete(&self, code: &mut Code) -> Result<(), ProgramId> {
        *code = self.programs.get(code.id()).ok_or(code.id())?;
        Ok(())
    }

    /// Notes that limits of kernels' launches have changed.
    pub fn limits_change(&mut self) {
        self.device_kernels.clear();
    }

    /// The kernel that a program names.
    pub fn find_kernel(
        &self,
        context: ContextId,
        function: &Function,
        own: &mut Process,
        effects: &mut Effects,
    ) -> Result<Arc<KernelInfo>, Failure> {
        let name = &function.name;
        own.modules.check(context, function.module)?;
        let Some(kernel) = self.kernels.find(context, function.module, name) else {
            return Err((CudaError::InvalidDeviceFunction, format!("no kernel named {name} is loaded")));
        };
        kernel.map_err(|why| {
            if own.modules.is_told_first(function) {
                effects.tell(context.process(), &format!("kernel {name} cannot run: {why}"));
            }
            (CudaError::NotSupported, why.to_string())
        })
    }

    /// The attributes of a kernel that programs can ask for.
    pub fn attributes(
        &self,
        context: ContextId,
        function: &Function,
        own: &mut Process,
        effects: &mut Effects,
    ) -> Result<FunctionAttributes, Failure> {
        let kernel = self.find_kernel(context, function, own, effects)?;
        let mut attributes = kernel.attributes(self.compute_capabilities[context.gpu()]);
        if function.module != BUILT_IN_MODULE {
            attributes.maximum_dynamic_shared_bytes = own.modules.dynamic_shared_limit(function, &kernel);
        }
        Ok(attributes)
    }

    /// Launches of a kernel may ask for so much dynamic shared memory.
    pub fn set_dynamic_shared_limit(
        &mut self,
        context: ContextId,
        function: Function,
        bytes: u32,
        own: &mut Process,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        let kernel = self.find_kernel(context, &function, own, effects)?;
        let maximum = maximum_shared_bytes(self.compute_capabilities[context.gpu()]);
        let all = u64::from(kernel.resources.shared_bytes) + u64::from(bytes);
        if all > maximum {
            return Err(invalid(format!("{all} bytes of shared memory, the limit is {maximum}")));
        }
        self.limits_change();
        own.modules.set_shared_limit(function, bytes);
        Ok(())
    }

    /// Launches of a kernel would have such a share of the largest shared memory of an SM.
    pub fn set_preferred_carve_out(
        &mut self,
        context: ContextId,
        function: Function,
        percent: Option<u8>,
        own: &mut Process,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        self.find_kernel(context, &function, own, effects)?;
        if let Some(percent) = percent.filter(|&percent| percent > 100) {
            return Err(invalid(format!("a carve-out of {percent} % of shared memory, expected 0 to 100")));
        }
        self.limits_change();
        own.modules.set_preferred_carve_out(function, percent);
        Ok(())
    }

    /// The kernels that a kernel of a module can launch, and those that these can, by address.
    pub fn device_kernels(
        &mut self,
        (context, module): (ContextId, u32),
        kernel: &KernelInfo,
        own: &mut Process,
        stacks: &mut LargerStacks,
    ) -> Arc<[DeviceKernel]> {
        let compute_capability = self.compute_capabilities[context.gpu()];
        let LoadedCode { kernels, programs, device_kernels, .. } = self;
        let stack_bytes = own.context(context).stack_bytes;
        let modules = &own.modules;
        let module =
            ModuleKernels { context, compute_capability, module, kernels, programs, modules, stack_bytes, stacks };
        device_kernels.of(kernel, module)
    }

    /// A program loads images. Where they cannot be loaded, it is told why.
    pub fn load(
        &mut self,
        context: ContextId,
        (images, name): (&[Bytes], &str),
        own: &mut Process,
        memory: &mut Memory,
        effects: &mut Effects,
    ) -> Result<CallResult, Failure> {
        let images: Vec<&[u8]> = images.iter().map(|image| image.data().map_or(&[][..], |data| &data[..])).collect();
        let loaded = self.load_images(context, (&images, name), own, memory, effects);
        loaded.map_err(|error| {
            let text = format!("{error}{}", self.other_nodes_for(context, &error, &images, name));
            effects.tell(context.process(), &text);
            (error.cuda_error(), text)
        })
    }

    fn load_images(
        &mut self,
        context: ContextId,
        (images, name): (&[&[u8]], &str),
        own: &mut Process,
        memory: &mut Memory,
        effects: &mut Effects,
    ) -> Result<CallResult, LoadError> {
        let compute_capability = self.compute_capabilities[context.gpu()];
        let source = self.choice.of_images(images, name, compute_capability)?;
        let module = own.modules.next();
        let heap_bytes = own.context(context).heap_wanted();
        let launch_bytes = own.context(context).launch_bytes_wanted();
        let request = LoadRequest {
            context,
            compute_capability,
            module,
            source: &source,
            heap_bytes,
            launch_bytes,
            replacements: Some(&self.choice),
        };
        let mut room = memory.for_modules(context);
        let mut changes = Vec::new();
        let loaded = self.loader.load(&request, &mut changes, &mut room)?;
        changes.into_iter().for_each(|change| effects.change(change));
        room.tell(effects);
        let LoadedModule { functions, variables, heap, launches, warning } = loaded;
        if let Some((address, _)) = heap {
            own.context(context).heap_made(address);
        }
        if let Some((address, _)) = launches {
            own.context(context).launch_pool_made(address);
        }
        memory.module_loaded(context);
        own.modules.add(context);
        if let Some(warning) = warning {
            tracing::info!("{warning}");
        }
        Ok(CallResult::Module { module, functions, variables })
    }

    /// Which nodes have a GPU that an image has code for, where it has none for that of the context.
    fn other_nodes_for(&self, context: ContextId, error: &LoadError, images: &[&[u8]], name: &str) -> String {
        if !error.is_for_other_gpus() || self.other_nodes.is_empty() {
            return String::new();
        }
        let runs = |capability: (u32, u32)| self.choice.of_images(images, name, capability).is_ok();
        let nodes = self.other_nodes.iter().filter(|(_, capability)| runs(*capability)).map(|(node, _)| *node);
        let nodes: Vec<&str> = nodes.collect();
        let (major, minor) = self.compute_capabilities[context.gpu()];
        match nodes[..] {
            [] => format!("; the GPU is sm_{major}{minor}, and no node that is built in has one that could run it"),
            _ => format!("; the GPU is sm_{major}{minor}, and it could run on {}", nodes.join(" and ")),
        }
    }

    /// Nothing uses the module any more.
    pub fn unload(&self, module: u32, own: &mut Process, memory: &mut Memory, effects: &mut Effects) {
        let Some(context) = own.modules.remove(module) else { return };
        let mut room = memory.for_modules(context);
        let mut changes = Vec::new();
        let _was_loaded = self.loader.unload(context, module, &mut changes, &mut room);
        changes.into_iter().for_each(|change| effects.change(change));
        room.tell(effects);
    }
}
