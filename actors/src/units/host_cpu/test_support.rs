//! What tests of the host's parts share.

use balar_protocol::cuda::{KernelLaunch, LaunchId};
use std::sync::Arc;

/// A launch of kernel `k`.
pub(super) fn kernel_launch() -> KernelLaunch {
    KernelLaunch {
        id: LaunchId(1),
        program: Default::default(),
        name: "k".into(),
        grid: [1; 3],
        block: [32, 1, 1],
        dynamic_shared_bytes: 0,
        shared_bytes: 0,
        registers_per_thread: 16,
        local_bytes: 0,
        parameters: Arc::new([]),
        stream: 0,
        queue: 0,
        priority: 0,
        grid_workspace: 0,
    }
}
