//! The effects that the driver wants: by GPUs, by memory, by the program.

use crate::keys::OperationNumber;
use balar_isa::texture::Image;
use balar_protocol::copy::{CopyId, CopyOperation};
use balar_protocol::cuda::KernelLaunch;
use balar_protocol::managed::ManagedMessage;
use balar_protocol::{ContextId, Detail, ProcessId};
use std::ops::Range;
use std::sync::Arc;

/// Something that the driver wants done, at once and in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Memory changes. Writes of operations are not among these.
    Memory(MemoryChange),
    /// A kernel goes to the CTA scheduler of its context's GPU.
    Launch(Arc<KernelLaunch>),
    /// A copy or fill is done: by a copy engine, where it is timed.
    Copy {
        /// The GPU whose engine does it.
        gpu: usize,
        /// Its number.
        id: CopyId,
        /// The bytes to move.
        operation: CopyOperation,
        /// Whether that takes time; where it does not, it is done for its values alone.
        detail: Detail,
    },
    /// A message or a question to the driver of unified memory; only where there is one. Its answer goes to
    /// [`Driver::managed_done`](crate::Driver::managed_done).
    Managed(ManagedMessage),
    /// A GPU forgets that this context has failed.
    Reset(ContextId),
    /// A GPU ends all kernels of this context, for its process has been killed.
    Abort(ContextId),
    /// A stream has come to a host function: the program runs it.
    CallBack {
        /// The process.
        process: ProcessId,
        /// Its number of the function.
        function: u64,
    },
    /// A graph has come to a conditional node: the word at the address is read, and
    /// [`Driver::condition_read`](crate::Driver::condition_read) gets it.
    ReadCondition {
        /// The node.
        operation: OperationNumber,
        /// The address of the word.
        address: u64,
    },
    /// Words for a process's standard error stream.
    Tell(ProcessId, String),
}

/// How memory changes. Kernels that are launched afterwards find it so.
#[derive(Clone, Debug)]
pub enum MemoryChange {
    /// An allocation begins.
    Map {
        /// Whose it is.
        process: ProcessId,
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A mapping at reserved addresses may be accessed by its process on these GPUs from now on.
    Open {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
        /// The context that owns the memory, and its GPU.
        owner: ContextId,
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
    /// All of these bytes are zero.
    Zero {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
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
    /// Another process may access the allocation that begins at the address, or no longer.
    Share {
        /// First address.
        address: u64,
        /// The other process.
        process: ProcessId,
        /// From now on, or no longer.
        enabled: bool,
    },
    /// A context may access the memory that its process has on another GPU, or no longer.
    Peer {
        /// The context.
        context: ContextId,
        /// The other GPU.
        peer: usize,
        /// From now on, or no longer.
        enabled: bool,
    },
    /// The device heap of a context lies here, empty.
    Heap {
        /// The context.
        context: ContextId,
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// Launches of a context's kernels wait here; nothing does yet.
    LaunchPool {
        /// The context.
        context: ContextId,
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A context's kernels may print so much before the text is taken.
    PrintCapacity {
        /// The context.
        context: ContextId,
        /// Bytes.
        bytes: u64,
    },
    /// The meaning of a texture or surface handle; `None` for nothing.
    Image {
        /// Whose handle it is.
        process: ProcessId,
        /// The handle.
        handle: u64,
        /// The image.
        image: Option<Image>,
    },
}

/// The effects that have not been taken, in order.
#[derive(Debug, Default)]
pub(crate) struct Effects(Vec<Effect>);

impl Effects {
    /// Something is to be done.
    pub fn want(&mut self, effect: Effect) {
        self.0.push(effect);
    }

    /// Memory changes.
    pub fn change(&mut self, change: MemoryChange) {
        self.want(Effect::Memory(change));
    }

    /// Bytes that nobody uses any more become zero.
    pub fn zero(&mut self, unused: Range<u64>) {
        if !unused.is_empty() {
            self.change(MemoryChange::Zero { address: unused.start, bytes: unused.end - unused.start });
        }
    }

    /// Words for a process's standard error stream.
    pub fn tell(&mut self, process: ProcessId, words: &str) {
        self.want(Effect::Tell(process, words.to_owned()));
    }

    /// Moves the effects behind the ones in `into`.
    pub fn take(&mut self, into: &mut Vec<Effect>) {
        into.append(&mut self.0);
    }
}
