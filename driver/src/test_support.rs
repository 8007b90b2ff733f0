//! Code that unit tests share.

use balar_isa::module::PtxModule;
use balar_isa::program::Program;
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::{CarveOuts, ContextId, GpuDescription, SmCapability, SmResources};
use std::sync::Arc;

/// A GPU with 80 SMs of compute capability 7.0 and little memory.
pub(crate) fn gpu_description() -> GpuDescription {
    let clock = "1 GHz".parse().expect("a frequency");
    GpuDescription {
        part: "gpu".to_owned(),
        compute_capability: (7, 0),
        sms: vec![
            SmCapability { resources: SmResources::VOLTA, cta_slots: 32, carve_outs: CarveOuts::NONE, clock };
            80
        ],
        memory_bytes: 64 << 20,
        memory_clock: None,
        memory_bus_bits: 0,
        cluster_groups: None,
        l2_bytes: 0,
    }
}

/// A kernel that does nothing.
pub(crate) fn program() -> Arc<Program> {
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { exit; }";
    let module = PtxModule::parse("k.ptx", text).expect("the text is PTX");
    Arc::new(module.program("k", &[]).expect("the kernel decodes"))
}

/// A launch of kernel `k`.
pub(crate) fn kernel_launch() -> KernelLaunch {
    KernelLaunch {
        context: ContextId::first(0),
        id: LaunchId(1),
        code: Default::default(),
        name: "k".into(),
        grid: [1; 3],
        cluster: None,
        block: [32, 1, 1],
        dynamic_shared_bytes: 0,
        shared_bytes: 0,
        preferred_carve_out: None,
        registers_per_thread: 16,
        local_bytes: 0,
        parameters: Arc::new([]),
        stream: 0,
        queue: 0,
        priority: 0,
        grid_workspace: 0,
        l2_policy: None,
        detail: Default::default(),
        is_profiled: false,
        range: None,
        origin: None,
        device_kernels: Arc::new([]),
    }
}
