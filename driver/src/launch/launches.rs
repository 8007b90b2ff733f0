//! Launches: the request of a program becomes a kernel for the CTA scheduler.

use super::clusters::check_clusters;
use super::loaded_code::LoadedCode;
use super::residency::L2Residency;
use super::stacks::LargerStacks;
use super::validation::{LaunchRequest, check_cooperative, check_fits, validate};
use crate::code::tables::KernelInfo;
use crate::effect::Effects;
use crate::memory::Memory;
use crate::order::work::Work;
use crate::outcome::{Failure, invalid};
use crate::process::Process;
use balar_host::call::{BUILT_IN_MODULE, Function};
use balar_protocol::cuda::LaunchId;
use balar_protocol::residency::AccessPolicyWindow;
use balar_protocol::{ContextId, DetailChoice, GpuDescription};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The grid workspace that the kernels of a cooperative launch find: its size, and the word of the grid's barrier, zero
/// (`cooperative_groups/details/driver_abi.h` of CUDA 11 and later: two 32-bit words).
const GRID_WORKSPACE: [u8; 8] = [8, 0, 0, 0, 0, 0, 0, 0];

/// The launches of the node: the number of the next one, and the code that was made for them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Launches {
    next: u32,
    pub larger_stacks: LargerStacks,
    /// What their programs have said about the L2s.
    pub residency: L2Residency,
}

/// A launch that a program asks for in a context.
pub(crate) struct AskedLaunch<'a> {
    pub context: ContextId,
    pub function: &'a Function,
    pub request: LaunchRequest,
    /// The priority of its stream.
    pub priority: i32,
    /// Its window of memory whose accesses have a property.
    pub window: Option<AccessPolicyWindow>,
}

/// The parts of the driver that launches need beside their own state.
pub(crate) struct LaunchNeeds<'a> {
    pub code: &'a mut LoadedCode,
    /// The process that asks.
    pub own: &'a mut Process,
    pub memory: &'a mut Memory,
    /// The GPU of the launch's context.
    pub gpu: &'a GpuDescription,
    /// Which launches are timed.
    pub detail: &'a DetailChoice,
    pub effects: &'a mut Effects,
}

impl Default for Launches {
    fn default() -> Launches {
        Launches { next: 1, larger_stacks: LargerStacks::default(), residency: L2Residency::default() }
    }
}

impl Launches {
    /// The number of the next one.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// A checked launch.
    pub fn launch(&mut self, asked: AskedLaunch, needs: LaunchNeeds) -> Result<Work, Failure> {
        let AskedLaunch { context, function, request, priority, window } = asked;
        let LaunchNeeds { code, own, memory, gpu, detail, effects } = needs;
        let (cooperative, non_portable_cluster) = (request.cooperative, request.non_portable_cluster);
        let kernel = code.find_kernel(context, function, own, effects)?;
        check_dynamic_shared(function, &kernel, request.dynamic_shared_bytes, own)?;
        let mut launch = validate(&kernel, request, LaunchId(self.next), gpu.compute_capability)?;
        launch.context = context;
        launch.preferred_carve_out = own.modules.preferred_carve_out(function);
        launch.priority = priority;
        launch.detail = detail.of_launch(&launch.name, self.next - 1, &own.ranges);
        launch.is_profiled = own.ranges.is_profiling;
        check_fits(&launch, gpu)?;
        check_clusters(&launch, &kernel.resources.clusters, gpu, non_portable_cluster)?;
        let stack_bytes = own.context(context).stack_bytes;
        (launch.code, launch.local_bytes) =
            self.larger_stacks.with_stack(stack_bytes, &launch.code, launch.local_bytes, &code.programs);
        let module = (context, function.module);
        launch.device_kernels = code.device_kernels(module, &kernel, own, &mut self.larger_stacks);
        if cooperative {
            check_cooperative(&launch, gpu)?;
            launch.grid_workspace = memory.allocate_with(context, &GRID_WORKSPACE, effects)?;
        }
        launch.l2_policy = self.residency.of_launch(context.gpu(), window, own.context(context).set_aside);
        self.next += 1;
        own.context(context).launched = true;
        Ok(Work::Kernel(Arc::new(launch)))
    }
}

/// Dynamic shared memory beyond the default must have been asked for.
fn check_dynamic_shared(function: &Function, kernel: &KernelInfo, bytes: u32, own: &Process) -> Result<(), Failure> {
    if function.module == BUILT_IN_MODULE {
        return Ok(());
    }
    let limit = own.modules.dynamic_shared_limit(function, kernel);
    if bytes <= limit {
        return Ok(());
    }
    let text = format!("kernel {}: {bytes} bytes of dynamic shared memory, its limit is {limit}", kernel.name);
    Err(invalid(text))
}
