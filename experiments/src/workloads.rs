//! The built-in workloads: which one a request means, and its code for each GPU.

use crate::{RequestError, SimulationRequest};
use balar_actors::simulation::{CodeChoice, DeviceCode, InitialCode, IsaChoice};
use balar_actors::topology::{Topology, WorkloadCatalogue};
use balar_workloads::{Descriptor, MEMORY, Parameters};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The built-in workloads, for the topology loader.
pub struct BuiltInWorkloads;

impl WorkloadCatalogue for BuiltInWorkloads {
    fn names(&self) -> Vec<String> {
        balar_workloads::workloads().iter().map(|workload| workload.name.to_owned()).collect()
    }

    fn parameters(&self, workload: &str) -> Vec<String> {
        let descriptor = balar_workloads::find(workload);
        let own = descriptor.map_or(&[][..], |found| found.parameters);
        own.iter().chain([&MEMORY]).map(|key| key.name.to_owned()).collect()
    }

    fn check(&self, workload: &str, parameter: &str, value: &str) -> Result<(), String> {
        let descriptor = balar_workloads::find(workload).map_err(|error| error.to_string())?;
        descriptor.parameters_from([(parameter, value)]).map(drop).map_err(|error| error.to_string())
    }
}

/// A built-in workload that is about to run.
#[derive(Debug)]
pub struct BuiltInProgram {
    /// The workload's name.
    pub name: &'static str,
    /// Its parameters, defaults included.
    pub parameters: Vec<(String, String)>,
    /// Its code as PTX and as machine code, whichever runs.
    pub code: InitialCode,
    /// The file that the host window is backed by ([`DeviceMemory::shared_file`](balar_actors::memory::DeviceMemory::shared_file)).
    pub shared_memory: Option<Arc<OwnedFd>>,
}

/// The workload that a request means, and its parameters.
pub(crate) fn workload(request: &SimulationRequest) -> Result<(&'static Descriptor, Parameters), RequestError> {
    let (name, given) = match (&request.workload, &request.topology.workload) {
        (Some((name, given)), _) => (name, given),
        (None, Some(own)) => (&own.name, &own.parameters),
        (None, None) => return Err(RequestError::NoWorkload(request.topology.name.clone())),
    };
    let descriptor = balar_workloads::find(name)?;
    let parameters = descriptor.parameters_from(given.iter().map(|(key, value)| (key.as_str(), value.as_str())))?;
    Ok((descriptor, parameters))
}

/// The code of a workload for each GPU: `ptx`, or the workload's code for its compute capability.
pub(crate) fn device_code(
    topology: &Topology,
    descriptor: &'static Descriptor,
    ptx: Vec<(String, String)>,
    choice: CodeChoice,
) -> Result<DeviceCode, RequestError> {
    let gpus = topology.gpus();
    if !ptx.is_empty() {
        let files: Vec<_> = ptx.into_iter().map(|(name, text)| (name, text.into_bytes().into())).collect();
        return Ok(DeviceCode { initial: vec![files; gpus.len()], choice });
    }
    let mut code = DeviceCode { choice, ..DeviceCode::default() };
    for gpu in gpus {
        let (major, minor) = gpu.compute_capability;
        let capability = major * 10 + minor;
        let cubin = descriptor.cubin_for(capability);
        let is_assembled = code.choice.assembler_for(gpu.compute_capability).is_some();
        if code.choice.isa == IsaChoice::Sass && cubin.is_none() && !is_assembled {
            return Err(RequestError::NoMachineCode { workload: descriptor.name, gpu: gpu.part, major, minor });
        }
        let text = descriptor.ptx_for(capability);
        let text = text.ok_or(RequestError::NoCode { workload: descriptor.name, gpu: gpu.part, major, minor })?;
        let mut files = vec![(format!("{}.ptx", descriptor.name), text.as_bytes().into())];
        files.extend(cubin.map(|cubin| (cubin.file.to_owned(), cubin.bytes.into())));
        code.initial.push(files);
    }
    Ok(code)
}
