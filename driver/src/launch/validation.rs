//! The checks of a launch before the GPU sees it.

use super::clusters::named_cluster;
use crate::code::tables::KernelInfo;
use crate::outcome::Failure;
use balar_host::CudaError;
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::limits::{
    MAXIMUM_BLOCK, MAXIMUM_BLOCK_REGISTERS, MAXIMUM_BLOCK_THREADS, MAXIMUM_GRID, block_registers, register_files,
};
use balar_protocol::{ContextId, CtaNeeds, Detail, GpuDescription};
use std::sync::Arc;

/// A launch as the program asked for it.
pub(crate) struct LaunchRequest {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared_bytes: u32,
    pub stream: u32,
    pub parameters: Vec<u8>,
    pub cooperative: bool,
    pub cluster: Option<[u32; 3]>,
    /// Clusters may have more CTAs than the portable number.
    pub non_portable_cluster: bool,
}

/// Shared memory that a block can have, bytes (CUDA C++ Programming Guide, table of technical specifications).
pub(crate) const fn maximum_shared_bytes(compute_capability: (u32, u32)) -> u64 {
    let kibibytes = match compute_capability {
        (..=6, _) => 48,
        (7, ..=4) => 96,
        (7, _) => 64,
        (8, 0 | 7) => 163,
        (8, _) => 99,
        _ => 227,
    };
    kibibytes << 10
}

/// The launch, or the CUDA error with its cause in words.
pub(crate) fn validate(
    kernel: &KernelInfo,
    request: LaunchRequest,
    id: LaunchId,
    compute_capability: (u32, u32),
) -> Result<KernelLaunch, Failure> {
    let name = &kernel.name;
    let resources = &kernel.resources;
    let cluster = named_cluster(kernel, request.grid, request.cluster)?;
    let LaunchRequest { grid, block, dynamic_shared_bytes, stream, parameters, .. } = request;
    let configuration = |text: String| Err((CudaError::InvalidConfiguration, format!("kernel {name}: {text}")));
    let out_of_resources = |text: String| {
        Err((CudaError::LaunchOutOfResources, format!("kernel {name}: a launch too large for the SM: {text}")))
    };
    for (what, extent, maximum) in [("grid", grid, MAXIMUM_GRID), ("block", block, MAXIMUM_BLOCK)] {
        for ((axis, extent), maximum) in ["x", "y", "z"].iter().zip(extent).zip(maximum) {
            if extent == 0 || extent > maximum {
                return configuration(format!("{what}.{axis} is {extent}, expected 1 to {maximum}"));
            }
        }
    }
    let threads: u64 = block.iter().map(|&extent| u64::from(extent)).product();
    if threads > MAXIMUM_BLOCK_THREADS {
        return configuration(format!("a block of {threads} threads, the limit is {MAXIMUM_BLOCK_THREADS}"));
    }
    if let Some(maximum) = resources.maximum_threads.filter(|&maximum| threads > u64::from(maximum)) {
        return configuration(format!("a block of {threads} threads, the kernel is compiled for at most {maximum}"));
    }
    if let Some(required) = resources.required_block.filter(|&required| required != block) {
        return configuration(format!("a block of {block:?}, the kernel is compiled for {required:?}"));
    }
    if parameters.len() != kernel.parameter_bytes as usize {
        let (given, wanted) = (parameters.len(), kernel.parameter_bytes);
        return Err((
            CudaError::InvalidValue,
            format!("kernel {name}: {given} bytes of parameters, expected {wanted}"),
        ));
    }
    let shared_bytes = u64::from(resources.shared_bytes) + u64::from(dynamic_shared_bytes);
    let maximum = maximum_shared_bytes(compute_capability);
    if shared_bytes > maximum {
        let text = format!(
            "{shared_bytes} bytes of shared memory ({} static, {dynamic_shared_bytes} dynamic), the limit is {maximum}",
            resources.shared_bytes
        );
        return out_of_resources(text);
    }
    // As `KernelInfo::attributes` tells programs.
    let files = register_files(compute_capability);
    let registers = block_registers(resources.registers_per_thread, threads as u32, files);
    if registers > MAXIMUM_BLOCK_REGISTERS {
        return out_of_resources(format!(
            "{threads} threads of {} registers take {registers}, the limit is {MAXIMUM_BLOCK_REGISTERS}",
            resources.registers_per_thread
        ));
    }
    Ok(KernelLaunch {
        id,
        context: ContextId::default(),
        code: kernel.code.clone(),
        name: Arc::clone(name),
        grid,
        cluster,
        block,
        dynamic_shared_bytes,
        shared_bytes: shared_bytes as u32,
        preferred_carve_out: None,
        registers_per_thread: resources.registers_per_thread,
        local_bytes: resources.local_bytes,
        parameters: parameters.into(),
        stream,
        queue: stream,
        priority: 0,
        grid_workspace: 0,
        l2_policy: None,
        detail: Detail::default(),
        is_profiled: false,
        range: None,
        origin: None,
        device_kernels: Arc::new([]),
    })
}

/// Has any SM of the GPU room for a CTA of the launch?
pub(crate) fn check_fits(launch: &KernelLaunch, gpu: &GpuDescription) -> Result<(), Failure> {
    let wanted = CtaNeeds::of_cta(launch);
    let room = gpu.sms.iter().map(|sm| sm.resources);
    if room.clone().any(|resources| resources.holds(&wanted)) {
        return Ok(());
    }
    let words = |threads: u32, warps: u32, registers: u64, shared_bytes: u32| {
        format!("{threads} threads, {warps} warps, {registers} registers and {shared_bytes} bytes of shared memory")
    };
    let largest = room.max_by_key(|resources| (resources.warps, resources.registers, resources.shared_bytes));
    let has = largest.map_or_else(
        || "there is none".to_owned(),
        |sm| format!("one has {}", words(sm.threads, sm.warps, sm.registers.into(), sm.shared_bytes)),
    );
    let sm = largest.unwrap_or_default();
    let text = format!(
        "kernel {}: a launch too large for every SM of {}: a block takes {}; {has}",
        launch.name,
        gpu.part,
        words(wanted.threads, wanted.warps, wanted.registers(sm.register_files), sm.allocated_shared(&wanted))
    );
    Err((CudaError::LaunchOutOfResources, text))
}

/// Can all CTAs of the launch run at once?
pub(crate) fn check_cooperative(launch: &KernelLaunch, gpu: &GpuDescription) -> Result<(), Failure> {
    // A program multiplies what one SM runs by the number of SMs: where they differ, the smallest counts.
    let sm_count = gpu.sm_count();
    let per_sm = gpu.smallest_sm().map_or(0, |sm| sm.room_for(&CtaNeeds::of_cta(launch)));
    let room = u64::from(per_sm) * u64::from(sm_count);
    let blocks = launch.cta_count();
    if blocks <= room {
        return Ok(());
    }
    let text = format!(
        "kernel {}: a cooperative launch of {blocks} blocks, {sm_count} SMs run {per_sm} each at once: {room}",
        launch.name
    );
    Err((CudaError::CooperativeLaunchTooLarge, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_isa::program::Resources;

    fn outcome(change: impl Fn(&mut Resources, &mut LaunchRequest)) -> Result<u32, (CudaError, String)> {
        let mut resources =
            Resources { registers_per_thread: 32, shared_bytes: 1024, local_bytes: 8, ..Resources::default() };
        let mut request = LaunchRequest {
            grid: [10, 1, 1],
            block: [256, 1, 1],
            dynamic_shared_bytes: 0,
            stream: 0,
            parameters: vec![0; 28],
            cooperative: false,
            cluster: None,
            non_portable_cluster: false,
        };
        change(&mut resources, &mut request);
        let kernel = KernelInfo { name: "k".into(), resources, parameter_bytes: 28, ..KernelInfo::default() };
        validate(&kernel, request, LaunchId(1), (7, 0)).map(|launch| launch.shared_bytes)
    }

    #[test]
    fn a_launch_within_the_limits_passes() {
        assert_eq!(outcome(|_, request| request.dynamic_shared_bytes = 95 << 10), Ok(96 << 10));
        assert_eq!(outcome(|_, request| request.grid = MAXIMUM_GRID), Ok(1024));
    }

    #[test]
    fn each_limit_has_its_error() {
        type Change = fn(&mut Resources, &mut LaunchRequest);
        let cases: [(Change, CudaError, &str); 12] = [
            (|_, r| r.grid[1] = 0, CudaError::InvalidConfiguration, "grid.y is 0, expected 1 to 65535"),
            (|_, r| r.grid[2] = 65_536, CudaError::InvalidConfiguration, "grid.z is 65536"),
            (|_, r| r.block = [32, 32, 2], CudaError::InvalidConfiguration, "a block of 2048 threads"),
            (|_, r| r.block = [1, 1, 65], CudaError::InvalidConfiguration, "block.z is 65, expected 1 to 64"),
            (|_, r| r.block = [u32::MAX; 3], CudaError::InvalidConfiguration, "block.x is 4294967295"),
            (|k, _| k.maximum_threads = Some(128), CudaError::InvalidConfiguration, "compiled for at most 128"),
            (|k, _| k.required_block = Some([8, 8, 1]), CudaError::InvalidConfiguration, "compiled for [8, 8, 1]"),
            (|_, r| r.parameters.clear(), CudaError::InvalidValue, "0 bytes of parameters, expected 28"),
            (|_, r| r.dynamic_shared_bytes = 96 << 10, CudaError::LaunchOutOfResources, "99328 bytes of shared memory"),
            (|k, _| k.shared_bytes = 97 << 10, CudaError::LaunchOutOfResources, "a launch too large for the SM: 99328"),
            (|k, r| (k.registers_per_thread, r.block[0]) = (128, 1024), CudaError::LaunchOutOfResources, "take 131072"),
            // 88 registers of each of 21 warps: 24 warps' worth, 256 at a time.
            (|k, r| (k.registers_per_thread, r.block[0]) = (82, 672), CudaError::LaunchOutOfResources, "take 67584"),
        ];
        for (change, error, text) in cases {
            let (found, message) = outcome(change).expect_err(text);
            assert_eq!(found, error, "{message}");
            assert!(message.contains(text), "{message}");
        }
    }
}
