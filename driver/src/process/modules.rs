//! Modules that a process has loaded, and the limits and preferences of their kernels' launches.

use crate::code::tables::{DEFAULT_SHARED_BYTES, KernelInfo};
use crate::outcome::Failure;
use balar_host::CudaError;
use balar_host::call::{BUILT_IN_MODULE, Function};
use balar_protocol::ContextId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug, Serialize, Deserialize)]
struct Module {
    context: ContextId,
    /// Dynamic shared memory that launches may ask for, where the program has set it.
    shared_limits: BTreeMap<Arc<str>, u32>,
    /// The share of shared memory that launches prefer, percent, where the program has said so.
    preferred_carve_outs: BTreeMap<Arc<str>, u8>,
}

/// All modules that a process has loaded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ModuleList {
    modules: BTreeMap<u32, Module>,
    last: u32,
    /// Kernels whose refusal the user has been told.
    told: BTreeSet<(u32, Arc<str>)>,
}

impl ModuleList {
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

    /// The share of shared memory that launches of a kernel prefer, percent.
    pub fn preferred_carve_out(&self, function: &Function) -> Option<u8> {
        self.modules.get(&function.module)?.preferred_carve_outs.get(&function.name).copied()
    }

    /// Is it the first time that the user is told why this kernel is refused?
    pub fn is_told_first(&mut self, function: &Function) -> bool {
        self.told.insert((function.module, function.name.clone()))
    }

    /// The modules of a context.
    pub fn of_context(&self, context: ContextId) -> Vec<u32> {
        self.modules.iter().filter(|(_, module)| module.context == context).map(|(number, _)| *number).collect()
    }

    /// The number that the next module gets.
    pub fn next(&self) -> u32 {
        self.last + 1
    }

    /// The next module was loaded in this context.
    pub fn add(&mut self, context: ContextId) {
        self.last += 1;
        self.modules.insert(
            self.last,
            Module { context, shared_limits: BTreeMap::new(), preferred_carve_outs: BTreeMap::new() },
        );
    }

    /// A module ends. Gives its context.
    pub fn remove(&mut self, module: u32) -> Option<ContextId> {
        self.modules.remove(&module).map(|module| module.context)
    }

    /// Launches of a kernel may ask for so much dynamic shared memory.
    pub fn set_shared_limit(&mut self, function: Function, bytes: u32) {
        if let Some(module) = self.modules.get_mut(&function.module) {
            module.shared_limits.insert(function.name, bytes);
        }
    }

    /// Launches of a kernel prefer such a share of shared memory, or none.
    pub fn set_preferred_carve_out(&mut self, function: Function, percent: Option<u8>) {
        let Some(module) = self.modules.get_mut(&function.module) else { return };
        match percent {
            Some(percent) => module.preferred_carve_outs.insert(function.name, percent),
            None => module.preferred_carve_outs.remove(&function.name),
        };
    }
}
