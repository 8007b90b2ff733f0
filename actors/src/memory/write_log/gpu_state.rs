//! What kernels find beside their memory: textures, device heaps, and room for printed text.

use super::{EntryKind, WriteLog};
use crate::memory::Arena;
use balar_isa::texture::Image;
use balar_protocol::SimTime;
use serde::{Deserialize, Serialize};

/// A change of a GPU's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum GpuStateChange {
    /// The meaning of a texture or surface handle.
    Image { handle: u64, image: Option<Box<Image>> },
    /// A GPU's device heap.
    Heap { gpu: u8, start: u64, bytes: u64 },
    /// Room for what a GPU's kernels print.
    PrintCapacity { gpu: u8, bytes: u64 },
    /// A printed record in the log's text.
    Print { gpu: u8, offset: u32, bytes: u32 },
}

impl WriteLog {
    /// From `time` on, a handle names this texture or surface, or none.
    pub fn set_image(&mut self, time: SimTime, handle: u64, image: Option<Image>) {
        self.push(time, EntryKind::GpuState(GpuStateChange::Image { handle, image: image.map(Box::new) }));
    }

    /// At `time`, kernels of a GPU can allocate from this range. All of it is legal to access, live block or not, as on the GPU.
    /// The range before ends; 0 bytes are none.
    pub fn set_heap(&mut self, time: SimTime, gpu: usize, start: u64, bytes: u64) {
        self.push(time, EntryKind::GpuState(GpuStateChange::Heap { gpu: gpu as u8, start, bytes }));
    }

    /// From `time` on, so many bytes of what a GPU's kernels print are kept for the host.
    pub fn set_print_capacity(&mut self, time: SimTime, gpu: usize, bytes: u64) {
        self.push(time, EntryKind::GpuState(GpuStateChange::PrintCapacity { gpu: gpu as u8, bytes }));
    }

    /// Logs a record that a kernel prints.
    pub fn print(&mut self, time: SimTime, gpu: usize, record: &[u8]) {
        let offset = self.text.len() as u32;
        self.text.extend_from_slice(record);
        let change = GpuStateChange::Print { gpu: gpu as u8, offset, bytes: record.len() as u32 };
        self.push(time, EntryKind::GpuState(change));
    }
}

impl GpuStateChange {
    pub fn apply(&self, text: &[u8], arena: &mut Arena) {
        match self {
            GpuStateChange::Image { handle, image } => arena.set_image(*handle, image.as_deref().copied()),
            GpuStateChange::Heap { gpu, start, bytes } => arena.set_heap(usize::from(*gpu), *start, *bytes),
            GpuStateChange::PrintCapacity { gpu, bytes } => {
                arena.printed(usize::from(*gpu)).set_capacity(usize::try_from(*bytes).unwrap_or(usize::MAX));
            }
            GpuStateChange::Print { gpu, offset, bytes } => {
                arena.printed(usize::from(*gpu)).push(&text[*offset as usize..(offset + bytes) as usize]);
            }
        }
    }
}
