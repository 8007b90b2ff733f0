//! The kernels that kernels can launch, and the facts about them that the launch of such a kernel carries with it.

use super::stacks::LargerStacks;
use crate::code::tables::{KernelInfo, KernelTable, ProgramTable};
use crate::process::modules::ModuleList;
use balar_host::call::Function;
use balar_protocol::ContextId;
use balar_protocol::cuda::ProgramId;
use balar_protocol::device_launch::DeviceKernel;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The kernels that a kernel can launch, and those that these can, by the code of the first: found again where they are not there.
#[derive(Debug, Default)]
pub(crate) struct DeviceKernels(BTreeMap<ProgramId, Arc<[DeviceKernel]>>);

/// The kernels of a module, and the settings with which they run.
pub(crate) struct ModuleKernels<'a> {
    pub context: ContextId,
    /// Of its GPU.
    pub compute_capability: (u32, u32),
    /// The module.
    pub module: u32,
    pub kernels: &'a KernelTable,
    pub programs: &'a ProgramTable,
    /// The modules of the process.
    pub modules: &'a ModuleList,
    /// The stack of a thread that the program has set.
    pub stack_bytes: u64,
    pub stacks: &'a mut LargerStacks,
}

impl DeviceKernels {
    /// Forgets all, because facts about kernels have changed.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The kernels that a kernel can launch, and those that these can, by address. None where it launches nothing.
    pub fn of(&mut self, kernel: &KernelInfo, mut module: ModuleKernels) -> Arc<[DeviceKernel]> {
        if kernel.launched.is_empty() {
            return Arc::new([]);
        }
        let id = kernel.code.id();
        Arc::clone(self.0.entry(id).or_insert_with(|| module.reached_from(kernel)))
    }
}

impl ModuleKernels<'_> {
    fn reached_from(&mut self, kernel: &KernelInfo) -> Arc<[DeviceKernel]> {
        let mut found: BTreeMap<u64, DeviceKernel> = BTreeMap::new();
        let mut open: VecDeque<(u64, Arc<str>)> = kernel.launched.iter().cloned().collect();
        while let Some((address, name)) = open.pop_front() {
            if found.contains_key(&address) {
                continue;
            }
            let device_kernel = match self.kernels.find(self.context, self.module, &name) {
                Some(Ok(info)) => {
                    open.extend(info.launched.iter().cloned());
                    self.device_kernel(address, &info)
                }
                refused => {
                    let why = refused.and_then(Result::err).unwrap_or_else(|| "it is not loaded".into());
                    DeviceKernel { refusal: Some(why), ..nothing(address, name) }
                }
            };
            found.insert(address, device_kernel);
        }
        found.into_values().collect()
    }

    fn device_kernel(&mut self, address: u64, info: &KernelInfo) -> DeviceKernel {
        let function = Function { module: self.module, name: Arc::clone(&info.name) };
        let dynamic_shared_limit = self.modules.dynamic_shared_limit(&function, info);
        let local_bytes = info.resources.local_bytes;
        let (code, local_bytes) = self.stacks.with_stack(self.stack_bytes, &info.code, local_bytes, self.programs);
        let clusters = info.resources.clusters;
        let in_clusters = clusters.required.is_some() || clusters.is_explicit;
        DeviceKernel {
            refusal: in_clusters.then(|| "clusters of CTAs in launches by kernels are not modelled".into()),
            code,
            parameter_bytes: info.parameter_bytes,
            shared_bytes: info.resources.shared_bytes,
            dynamic_shared_limit,
            preferred_carve_out: self.modules.preferred_carve_out(&function),
            registers_per_thread: info.resources.registers_per_thread,
            local_bytes,
            maximum_threads: info.attributes(self.compute_capability).maximum_threads,
            required_block: info.resources.required_block,
            ..nothing(address, Arc::clone(&info.name))
        }
    }
}

/// A kernel that nothing is known of but its name.
fn nothing(address: u64, name: Arc<str>) -> DeviceKernel {
    DeviceKernel {
        address,
        name,
        code: Default::default(),
        parameter_bytes: 0,
        shared_bytes: 0,
        dynamic_shared_limit: 0,
        preferred_carve_out: None,
        registers_per_thread: 0,
        local_bytes: 0,
        maximum_threads: 0,
        required_block: None,
        refusal: None,
    }
}
