//! The kernels that kernels can launch: what a launch of one of these carries with it.

use crate::Driver;
use crate::code::tables::KernelInfo;
use balar_host::call::Function;
use balar_protocol::ContextId;
use balar_protocol::device_launch::DeviceKernel;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

impl Driver {
    /// The kernels that a kernel can launch, and those that these can, by address. None where it launches nothing.
    pub(crate) fn device_kernels(
        &mut self,
        context: ContextId,
        module: u32,
        kernel: &KernelInfo,
    ) -> Arc<[DeviceKernel]> {
        if kernel.launched.is_empty() {
            return Arc::new([]);
        }
        if let Some(known) = self.device_kernels.get(&kernel.code.id()) {
            return Arc::clone(known);
        }
        let mut found: BTreeMap<u64, DeviceKernel> = BTreeMap::new();
        let mut open: VecDeque<(u64, Arc<str>)> = kernel.launched.iter().cloned().collect();
        while let Some((address, name)) = open.pop_front() {
            if found.contains_key(&address) {
                continue;
            }
            let loaded = self.kernels.find(context, module, &name);
            let device_kernel = match loaded {
                Some(Ok(info)) => {
                    open.extend(info.launched.iter().cloned());
                    self.device_kernel(context, module, address, &info)
                }
                refused => {
                    let why = refused.and_then(Result::err).unwrap_or_else(|| "it is not loaded".into());
                    DeviceKernel { refusal: Some(why), ..nothing(address, name) }
                }
            };
            found.insert(address, device_kernel);
        }
        let all: Arc<[DeviceKernel]> = found.into_values().collect();
        self.device_kernels.insert(kernel.code.id(), Arc::clone(&all));
        all
    }

    fn device_kernel(&mut self, context: ContextId, module: u32, address: u64, info: &KernelInfo) -> DeviceKernel {
        let function = Function { module, name: Arc::clone(&info.name) };
        let dynamic_shared_limit = self.own(context).modules.dynamic_shared_limit(&function, info);
        let (code, local_bytes) = self.with_stack(context, &info.code, info.resources.local_bytes);
        DeviceKernel {
            code,
            parameter_bytes: info.parameter_bytes,
            shared_bytes: info.resources.shared_bytes,
            dynamic_shared_limit,
            registers_per_thread: info.resources.registers_per_thread,
            local_bytes,
            maximum_threads: info.attributes().maximum_threads,
            required_block: info.resources.required_block,
            ..nothing(address, Arc::clone(&info.name))
        }
    }
}

/// A kernel of which nothing but its name is known.
fn nothing(address: u64, name: Arc<str>) -> DeviceKernel {
    DeviceKernel {
        address,
        name,
        code: Default::default(),
        parameter_bytes: 0,
        shared_bytes: 0,
        dynamic_shared_limit: 0,
        registers_per_thread: 0,
        local_bytes: 0,
        maximum_threads: 0,
        required_block: None,
        refusal: None,
    }
}
