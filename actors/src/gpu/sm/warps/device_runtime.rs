//! The device runtime's knowledge of a CTA: the last errors of its threads, and the operations that these have put into streams of their
//! grid.

use balar_protocol::device_launch::{DeviceOperation, DeviceStream};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The first handle of a stream or event that kernels make: lower numbers are streams that every grid has.
pub const FIRST_HANDLE: u64 = 0x1000;
/// Handles that a CTA can give before they are those of the next.
const HANDLES_A_CTA: u64 = 1 << 20;

/// The device runtime in a CTA.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DeviceRuntime {
    /// The error that a thread got last and has not cleared, by thread.
    errors: BTreeMap<u32, u32>,
    /// Handles that it has given.
    handles: u64,
    /// Operations that threads have put into streams, and that have not been sent.
    pub posted: Vec<(DeviceStream, DeviceOperation)>,
}

impl DeviceRuntime {
    /// Another CTA begins.
    pub fn begin(&mut self) {
        if !self.errors.is_empty() || self.handles != 0 || !self.posted.is_empty() {
            *self = DeviceRuntime::default();
        }
    }

    /// The last error of a thread (`cudaError`).
    pub fn last_error(&self, thread: u32) -> u32 {
        self.errors.get(&thread).copied().unwrap_or(0)
    }

    /// The last error of a thread is this one, or none (0).
    pub fn set_last_error(&mut self, thread: u32, error: u32) {
        if error == 0 {
            self.errors.remove(&thread);
        } else {
            self.errors.insert(thread, error);
        }
    }

    /// A handle that no other stream or event of the grid has, for the CTA with this number in it.
    pub fn new_handle(&mut self, cta: u64) -> u64 {
        let handle = FIRST_HANDLE + cta * HANDLES_A_CTA + self.handles;
        self.handles += 1;
        handle
    }
}
