//! Nodes that launch kernels.

use crate::abi::graph::KernelNodeParams;
use crate::abi::launch::attribute::{ACCESS_POLICY_WINDOW, CLUSTER, COOPERATIVE};
use crate::session::code::{self, launch_parameters, registry};
use crate::session::graph::node::{KernelWork, Work};
use crate::session::graph::store::with_node;
use crate::session::order::access_policy;
use balar_host::CudaError;
use balar_host::call::Launch;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

/// A launch as the program says it.
///
/// # Safety
///
/// The parameters' pointers are as the kernel's parameters want them.
pub unsafe fn work_of(parameters: &KernelNodeParams) -> Result<Work, CudaError> {
    let kernel = registry::kernel(parameters.function as usize)?.loaded()?;
    let (arguments, extra) = (parameters.parameters as *const *const c_void, parameters.extra as *const *const c_void);
    // SAFETY: the caller's promise.
    let block = unsafe { launch_parameters::parameters(&kernel, arguments, extra)? };
    let extents = [parameters.grid, parameters.block];
    if extents.iter().flatten().any(|extent| *extent == 0) {
        return Err(CudaError::InvalidValue);
    }
    Ok(Work::Kernel(Box::new(KernelWork {
        name: Some(parameters.function),
        device: kernel.device,
        launch: Launch {
            function: kernel.function(),
            grid: parameters.grid,
            block: parameters.block,
            shared_memory_bytes: parameters.shared_bytes,
            stream: 0,
            parameters: block,
            cooperative: false,
            cluster: kernel.clusters.of_launch(None),
            non_portable_cluster: kernel.clusters.non_portable,
            access_policy: None,
        },
        attributes: BTreeMap::new(),
        shown: Vec::new(),
    })))
}

/// The kernel of a launch.
fn kernel_of(work: &KernelWork) -> Result<Arc<code::Kernel>, CudaError> {
    match work.name {
        Some(name) => registry::kernel(name as usize),
        None => {
            registry::kernel_of_function(work.device, &work.launch.function).ok_or(CudaError::InvalidDeviceFunction)
        }
    }
}

/// A launch as programs ask for it.
pub fn parameters_of(work: &mut KernelWork) -> Result<KernelNodeParams, CudaError> {
    let kernel = kernel_of(work)?;
    let name = match work.name {
        Some(name) => name,
        None => registry::host_function(&kernel).map_or_else(|| kernel.handle(), |address| address as u64),
    };
    let loaded = kernel.loaded()?;
    let addresses = work.show_parameters(&loaded.description().parameters);
    Ok(KernelNodeParams {
        function: name,
        grid: work.launch.grid,
        block: work.launch.block,
        shared_bytes: work.launch.shared_memory_bytes,
        parameters: addresses,
        ..KernelNodeParams::default()
    })
}

/// Gives a launch the attributes of another one, and what they mean for it.
fn take_attributes(to: &mut KernelWork, from: &KernelWork) {
    to.attributes.clone_from(&from.attributes);
    to.launch.cooperative = from.launch.cooperative;
    to.launch.cluster = from.launch.cluster;
    to.launch.access_policy = from.launch.access_policy;
}

/// A new launch for a node, which keeps the attributes.
pub fn replace(old: &Work, new: Work) -> Result<Work, CudaError> {
    match (old, new) {
        (Work::Kernel(old), Work::Kernel(mut new)) => {
            take_attributes(&mut new, old);
            Ok(Work::Kernel(new))
        }
        _ => Err(CudaError::InvalidValue),
    }
}

/// The launch of a node as programs ask for it.
pub fn get(node: u64) -> Result<KernelNodeParams, CudaError> {
    with_node(node, |node| match &mut node.work {
        Work::Kernel(kernel) => parameters_of(kernel),
        _ => Err(CudaError::InvalidValue),
    })
}

/// Replaces the launch of a kernel node, which keeps its attributes.
pub fn set(node: u64, new: Work) -> Result<(), CudaError> {
    with_node(node, |node| {
        node.work = replace(&node.work, new)?;
        Ok(())
    })
}

/// An attribute of a kernel node (`cudaKernelNodeAttrID`).
pub fn attribute(node: u64, attribute: u32) -> Result<[u64; 8], CudaError> {
    const LAST: u32 = 18;
    with_node(node, |node| match &node.work {
        Work::Kernel(_) if !(1..=LAST).contains(&attribute) => Err(CudaError::InvalidValue),
        Work::Kernel(kernel) if attribute == COOPERATIVE => {
            Ok([u64::from(kernel.launch.cooperative), 0, 0, 0, 0, 0, 0, 0])
        }
        Work::Kernel(kernel) if attribute == ACCESS_POLICY_WINDOW => {
            Ok(access_policy::value_of(kernel.launch.access_policy))
        }
        Work::Kernel(kernel) => Ok(kernel.attributes.get(&attribute).copied().unwrap_or_default()),
        _ => Err(CudaError::InvalidValue),
    })
}

/// Sets an attribute of a kernel node.
pub fn set_attribute(node: u64, attribute: u32, value: [u64; 8]) -> Result<(), CudaError> {
    self::attribute(node, attribute)?;
    with_node(node, |node| {
        let Work::Kernel(kernel) = &mut node.work else { return Err(CudaError::InvalidValue) };
        if attribute == COOPERATIVE {
            kernel.launch.cooperative = value[0] as u32 != 0;
        }
        if attribute == ACCESS_POLICY_WINDOW {
            kernel.launch.access_policy = access_policy::window_of(&value, kernel.device)?;
        }
        if attribute == CLUSTER {
            let [first, second, ..] = value;
            kernel.launch.cluster = Some([first as u32, (first >> 32) as u32, second as u32]);
        }
        kernel.attributes.insert(attribute, value);
        Ok(())
    })
}

/// Gives a kernel node the attributes of another one.
pub fn copy_attributes(destination: u64, source: u64) -> Result<(), CudaError> {
    let source = with_node(source, |node| match &node.work {
        Work::Kernel(kernel) => Ok(kernel.clone()),
        _ => Err(CudaError::InvalidValue),
    })?;
    with_node(destination, |node| {
        let Work::Kernel(kernel) = &mut node.work else { return Err(CudaError::InvalidValue) };
        take_attributes(kernel, &source);
        Ok(())
    })
}
