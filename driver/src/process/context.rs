//! The state of a process's context on a GPU: its limits, its failure.

use crate::effect::{Effect, Effects, MemoryChange};
use crate::launch::residency::set_aside_parts;
use crate::memory::Memory;
use crate::outcome::{Failure, invalid};
use balar_host::CudaError;
use balar_host::call::Limit;
use balar_protocol::device_launch::{BYTES_A_LAUNCH, DEFAULT_PENDING_LAUNCHES};
use balar_protocol::limits::most_persisting_l2;
use balar_protocol::residency::L2Policy;
use balar_protocol::{ContextId, GpuDescription};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Bytes of a thread's stack by default (CUDA C++ Programming Guide, `cudaLimitStackSize`: 1 KiB).
pub(crate) const DEFAULT_STACK: u64 = 1 << 10;
/// The largest stack of a thread (CUDA C++ Programming Guide, table of technical specifications: 512 KB of local memory).
const MAXIMUM_STACK: u64 = 512 << 10;
/// Printed text that is kept by default (CUDA C++ Programming Guide, "Formatted Output": 1 MB).
const DEFAULT_PRINT_QUEUE: u64 = 1 << 20;
/// The device heap by default (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation": 8 MB).
const DEFAULT_HEAP: u64 = 8 << 20;

/// The largest number that a program can ask for: it limits the memory that is set aside, to 4 GiB.
const MOST_PENDING_LAUNCHES: u64 = 1 << 20;

/// Why a context has failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContextFailure {
    /// The error.
    pub error: CudaError,
    /// The failure, for results.
    pub text: String,
    /// Text for the program's standard error stream, until it is taken.
    words: Option<String>,
}

impl ContextFailure {
    /// An asynchronous failure. Without `words`, the program's standard error stream gets the error's name and the text.
    pub(crate) fn new(error: CudaError, text: String, words: Option<String>) -> ContextFailure {
        let words = words.or_else(|| Some(format!("{}: {text}", error.name())));
        ContextFailure { error, text, words }
    }

    /// Gives the text for the program's standard error stream, once.
    pub(crate) fn take_words(&mut self) -> Option<String> {
        self.words.take()
    }
}

/// The context of a process on a GPU.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Context {
    /// The error that ended the context: every later call returns it.
    pub sticky: Option<ContextFailure>,
    /// Devices whose memory it may access.
    pub peers: BTreeSet<u32>,
    pub stack_bytes: u64,
    print_bytes: u64,
    heap_bytes: u64,
    /// Where the heap of loaded modules lies, once one of them allocates.
    heap: Option<u64>,
    /// Whether a kernel has been launched since the heap was made.
    pub launched: bool,
    /// How many launches of kernels may wait.
    pending_launches: u64,
    /// Where they wait, once a loaded module launches kernels from kernels.
    launch_pool: Option<u64>,
    /// The part of the L2 that is set aside for persisting lines, of [`L2Policy::PARTS`].
    pub set_aside: u8,
}

impl Default for Context {
    fn default() -> Context {
        Context {
            sticky: None,
            peers: BTreeSet::new(),
            stack_bytes: DEFAULT_STACK,
            print_bytes: DEFAULT_PRINT_QUEUE,
            heap_bytes: DEFAULT_HEAP,
            heap: None,
            launched: false,
            pending_launches: DEFAULT_PENDING_LAUNCHES,
            launch_pool: None,
            set_aside: 0,
        }
    }
}

impl Context {
    /// Bytes of the heap that a module's kernels need, where none is there.
    pub fn heap_wanted(&self) -> Option<u64> {
        (self.heap.is_none() && self.heap_bytes > 0).then_some(self.heap_bytes)
    }

    /// Bytes that a module's kernels need for launches that wait, where they are not there.
    pub fn launch_bytes_wanted(&self) -> Option<u64> {
        self.launch_pool.is_none().then(|| self.launch_bytes())
    }

    fn launch_bytes(&self) -> u64 {
        self.pending_launches * BYTES_A_LAUNCH
    }

    /// The heap lies here.
    pub fn heap_made(&mut self, address: u64) {
        self.heap = Some(address);
        self.launched = false;
    }

    /// Launches of a module's kernels wait here.
    pub fn launch_pool_made(&mut self, address: u64) {
        self.launch_pool = Some(address);
    }

    /// A program sets a limit of the context that is this one, on this GPU.
    pub fn set_limit(
        &mut self,
        (context, gpu): (ContextId, &GpuDescription),
        limit: Limit,
        bytes: u64,
        memory: &mut Memory,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        match limit {
            Limit::Stack if bytes > MAXIMUM_STACK => {
                return Err(invalid(format!("a stack of {bytes} bytes, the limit is {MAXIMUM_STACK}")));
            }
            Limit::Stack => self.stack_bytes = bytes.next_multiple_of(16),
            Limit::PrintQueue => {
                self.print_bytes = bytes;
                effects.change(MemoryChange::PrintCapacity { context, bytes });
            }
            Limit::PendingLaunches if bytes > MOST_PENDING_LAUNCHES => {
                let text = format!("{bytes} launches of kernels that wait, the limit is {MOST_PENDING_LAUNCHES}");
                return Err(invalid(text));
            }
            Limit::PendingLaunches => {
                self.pending_launches = bytes.max(1);
                let bytes = self.launch_bytes();
                // Where kernels have run, launches of theirs may wait: they keep what they have.
                if let Some(pool) = self.launch_pool.take_if(|_| !self.launched) {
                    let address = memory.replace(context, pool, bytes, effects)?;
                    self.launch_pool = Some(address);
                    effects.change(MemoryChange::LaunchPool { context, address, bytes });
                }
            }
            Limit::Heap => {
                if self.heap.is_some() && self.launched {
                    return Err(invalid("the heap's size cannot change after kernels have run that use it".to_owned()));
                }
                self.heap_bytes = bytes;
                if let Some(heap) = self.heap.take() {
                    let address = memory.replace(context, heap, bytes, effects)?;
                    self.heap_made(address);
                    effects.change(MemoryChange::Heap { context, address, bytes });
                }
            }
            Limit::PersistingL2 if most_persisting_l2(gpu.compute_capability, gpu.l2_bytes) == 0 => {
                let text = "the GPU's L2 has no part to set aside: GPUs of compute capability 8.0 and later have one";
                return Err((CudaError::UnsupportedLimit, text.to_owned()));
            }
            Limit::PersistingL2 => self.set_aside = set_aside_parts(bytes, gpu),
        }
        Ok(())
    }

    /// A limit, as programs ask for it.
    pub fn limit(&self, limit: Limit, gpu: &GpuDescription) -> u64 {
        match limit {
            Limit::Stack => self.stack_bytes,
            Limit::PrintQueue => self.print_bytes,
            Limit::Heap => self.heap_bytes,
            Limit::PendingLaunches => self.pending_launches,
            Limit::PersistingL2 => gpu.l2_bytes / u64::from(L2Policy::PARTS) * u64::from(self.set_aside),
        }
    }

    /// From now on the context may access the memory of a GPU, or no longer. `gpus`: how many there are.
    pub fn peer_access(
        &mut self,
        context: ContextId,
        peer: u32,
        enabled: bool,
        gpus: usize,
        effects: &mut Effects,
    ) -> Result<(), Failure> {
        if peer as usize >= gpus || peer as usize == context.gpu() {
            return Err((CudaError::InvalidDevice, format!("device {peer} is no peer of device {}", context.gpu())));
        }
        if enabled && !self.peers.insert(peer) {
            return Err((CudaError::PeerAccessAlreadyEnabled, format!("to device {peer}")));
        }
        if !enabled && !self.peers.remove(&peer) {
            return Err((CudaError::PeerAccessNotEnabled, format!("to device {peer}")));
        }
        effects.change(MemoryChange::Peer { context, peer: peer as usize, enabled });
        Ok(())
    }

    /// The context that is this one begins anew: a failed one works again.
    pub fn reset(&mut self, context: ContextId, effects: &mut Effects) {
        let before = std::mem::take(self);
        for peer in before.peers {
            effects.change(MemoryChange::Peer { context, peer: peer as usize, enabled: false });
        }
        if before.sticky.is_some() {
            effects.want(Effect::Reset(context));
        }
        if before.print_bytes != DEFAULT_PRINT_QUEUE {
            effects.change(MemoryChange::PrintCapacity { context, bytes: DEFAULT_PRINT_QUEUE });
        }
    }
}
