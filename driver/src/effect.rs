//! What the driver wants done: by GPUs, by memory, by the program.

use balar_isa::texture::Image;
use balar_protocol::copy::{CopyId, CopyOperation};
use balar_protocol::cuda::KernelLaunch;
use std::sync::Arc;

/// Something that the driver wants done, at once and in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Memory changes, but for what operations write.
    Memory(MemoryChange),
    /// A kernel goes to a GPU's CTA scheduler.
    Launch {
        /// The GPU.
        gpu: usize,
        /// The kernel.
        launch: Arc<KernelLaunch>,
    },
    /// A copy or fill goes to a copy engine.
    Copy {
        /// The GPU whose engine does it.
        gpu: usize,
        /// Its number.
        id: CopyId,
        /// What it moves.
        operation: CopyOperation,
    },
    /// A GPU forgets that its context has failed.
    Reset {
        /// The GPU.
        gpu: usize,
    },
    /// A stream has come to a host function: the program runs it.
    CallBack {
        /// The program's number of it.
        function: u64,
    },
    /// Words for the program's standard error stream.
    Tell(String),
}

/// How memory changes. Kernels that are launched afterwards find it so.
#[derive(Clone, Debug)]
pub enum MemoryChange {
    /// An allocation begins.
    Map {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A mapping at reserved addresses may be accessed by these GPUs from now on.
    Open {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// The GPU whose memory it is.
        owner: usize,
        /// A bit for each GPU.
        gpus: u8,
    },
    /// The allocation or mapping that begins at the address ends.
    Unmap {
        /// First address.
        address: u64,
    },
    /// Bytes are written.
    Write {
        /// First address.
        address: u64,
        /// The bytes.
        bytes: Arc<[u8]>,
    },
    /// Bytes are where they were, and elsewhere.
    Copy {
        /// First address written.
        destination: u64,
        /// First address read.
        source: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A GPU may access a peer's memory, or no longer.
    Peer {
        /// The GPU.
        gpu: usize,
        /// The other one.
        peer: usize,
        /// From now on, or no longer.
        enabled: bool,
    },
    /// The device heap of a GPU lies here, empty.
    Heap {
        /// The GPU.
        gpu: usize,
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A GPU's kernels may print so much before somebody takes it.
    PrintCapacity {
        /// The GPU.
        gpu: usize,
        /// Bytes.
        bytes: u64,
    },
    /// What a texture or surface handle means; `None` for nothing.
    Image {
        /// The handle.
        handle: u64,
        /// The image.
        image: Option<Image>,
    },
}
