//! The state of kernels beside their memory: textures, device heaps, and room for printed text.

use super::WriteLog;
use crate::memory::arena::Arena;
use balar_isa::texture::Image;
use balar_protocol::{ContextId, ProcessId, SimTime};
use serde::{Deserialize, Serialize};

/// A change of a GPU's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum GpuStateChange {
    /// The meaning of a texture or surface handle.
    Image { process: ProcessId, handle: u64, image: Option<Box<Image>> },
    /// A context's device heap.
    Heap { context: ContextId, start: u64, bytes: u64 },
    /// Where launches of a context's kernels wait.
    LaunchPool { context: ContextId, start: u64, bytes: u64 },
    /// A launch waits no more: its buffer is free.
    LaunchBegun { context: ContextId, buffer: u64 },
    /// Room for the printed text of a context's kernels.
    PrintCapacity { context: ContextId, bytes: u64 },
    /// A printed record in the log's text.
    Print { context: ContextId, offset: u32, bytes: u32 },
}

impl WriteLog {
    /// From `time` on, a handle of a process names this texture or surface, or none.
    pub fn set_image(&mut self, time: SimTime, process: ProcessId, handle: u64, image: Option<Image>) {
        self.push(time, GpuStateChange::Image { process, handle, image: image.map(Box::new) });
    }

    /// At `time`, kernels of a context can allocate from this range. All of it is legal to access, live block or not, as on the GPU.
    /// The range before ends; 0 bytes are none.
    pub fn set_heap(&mut self, time: SimTime, context: ContextId, start: u64, bytes: u64) {
        self.push(time, GpuStateChange::Heap { context, start, bytes });
    }

    /// From `time` on, launches of a context's kernels wait in this range, which was empty.
    pub fn set_launch_pool(&mut self, time: SimTime, context: ContextId, start: u64, bytes: u64) {
        self.push(time, GpuStateChange::LaunchPool { context, start, bytes });
    }

    /// A launch has begun whose parameters were in a buffer.
    pub fn launch_begun(&mut self, time: SimTime, context: ContextId, buffer: u64) {
        self.push(time, GpuStateChange::LaunchBegun { context, buffer });
    }

    /// From `time` on, so many bytes of the text of a context's kernels are kept for the host.
    pub fn set_print_capacity(&mut self, time: SimTime, context: ContextId, bytes: u64) {
        self.push(time, GpuStateChange::PrintCapacity { context, bytes });
    }

    /// Logs a record that a kernel prints.
    pub fn print(&mut self, time: SimTime, context: ContextId, record: &[u8]) {
        let offset = self.text.len() as u32;
        self.text.extend_from_slice(record);
        let change = GpuStateChange::Print { context, offset, bytes: record.len() as u32 };
        self.push(time, change);
    }
}

impl GpuStateChange {
    pub fn apply(&self, text: &[u8], arena: &mut Arena) {
        match self {
            GpuStateChange::Image { process, handle, image } => {
                arena.set_image(*process, *handle, image.as_deref().copied())
            }
            GpuStateChange::Heap { context, start, bytes } => arena.set_heap(*context, *start, *bytes),
            GpuStateChange::LaunchPool { context, start, bytes } => arena.set_launch_pool(*context, *start, *bytes),
            GpuStateChange::LaunchBegun { context, buffer } => arena.release_launch(*context, *buffer),
            GpuStateChange::PrintCapacity { context, bytes } => {
                arena.printed(*context).set_capacity(usize::try_from(*bytes).unwrap_or(usize::MAX));
            }
            GpuStateChange::Print { context, offset, bytes } => {
                arena.printed(*context).push(&text[*offset as usize..(offset + bytes) as usize]);
            }
        }
    }
}
