//! The state of a process's context on a GPU: its limits, its failure.

use crate::Driver;
use crate::effect::{Effect, MemoryChange};
use balar_host::CallResult;
use balar_host::CudaError;
use balar_host::call::Limit;
use balar_protocol::ContextId;
use balar_protocol::device_launch::{BYTES_A_LAUNCH, DEFAULT_PENDING_LAUNCHES};
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
    /// What happened, for results.
    pub text: String,
    /// What goes to the program's standard error stream, until it is there.
    words: Option<String>,
}

/// The context of a process on a GPU.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Context {
    /// Allocations that streams are to free.
    pub ending: BTreeSet<u64>,
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
    pub launch_pool: Option<u64>,
}

impl Default for Context {
    fn default() -> Context {
        Context {
            ending: BTreeSet::new(),
            sticky: None,
            peers: BTreeSet::new(),
            stack_bytes: DEFAULT_STACK,
            print_bytes: DEFAULT_PRINT_QUEUE,
            heap_bytes: DEFAULT_HEAP,
            heap: None,
            launched: false,
            pending_launches: DEFAULT_PENDING_LAUNCHES,
            launch_pool: None,
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
}

impl Driver {
    /// Asynchronous work failed: from now on every call of the context returns the error. The first one stays.
    pub(crate) fn fail_context(&mut self, context: ContextId, error: CudaError, text: String, words: Option<String>) {
        if self.own(context).ended || self.context(context).sticky.is_some() {
            return;
        }
        let words = words.or_else(|| Some(format!("{}: {text}", error.name())));
        self.context(context).sticky = Some(ContextFailure { error, text, words });
        for address in self.state.operations.drop_waiting(context) {
            self.context(context).ending.remove(&address);
        }
    }

    /// The error of the failed context, as a call's result. The program's standard error stream has its words the first time.
    pub(crate) fn sticky_error(&mut self, context: ContextId) -> CallResult {
        let Some(failure) = &mut self.context(context).sticky else { return CallResult::None };
        let (error, words, text) = (failure.error, failure.words.take(), failure.text.clone());
        self.own(context).last_error = Some((error, text));
        if let Some(words) = words {
            self.tell(context.process(), &words);
        }
        CallResult::Error(error)
    }

    pub(crate) fn set_limit(
        &mut self,
        context: ContextId,
        limit: Limit,
        bytes: u64,
    ) -> Result<(), (CudaError, String)> {
        self.device_kernels.clear();
        match limit {
            Limit::Stack if bytes > MAXIMUM_STACK => {
                let text = format!("a stack of {bytes} bytes, the limit is {MAXIMUM_STACK}");
                return Err((CudaError::InvalidValue, text));
            }
            Limit::Stack => self.context(context).stack_bytes = bytes.next_multiple_of(16),
            Limit::PrintQueue => {
                self.context(context).print_bytes = bytes;
                self.change(MemoryChange::PrintCapacity { context, bytes });
            }
            Limit::PendingLaunches if bytes > MOST_PENDING_LAUNCHES => {
                let text = format!("{bytes} launches of kernels that wait, the limit is {MOST_PENDING_LAUNCHES}");
                return Err((CudaError::InvalidValue, text));
            }
            Limit::PendingLaunches => {
                let own = self.context(context);
                own.pending_launches = bytes.max(1);
                let bytes = own.launch_bytes();
                // Where kernels have run, launches of theirs may wait: they keep what they have.
                if let Some(pool) = own.launch_pool.take_if(|_| !own.launched) {
                    let address = self.replace_allocation(context, pool, bytes)?;
                    self.context(context).launch_pool = Some(address);
                    self.change(MemoryChange::LaunchPool { context, address, bytes });
                }
            }
            Limit::Heap => {
                let own = self.context(context);
                if own.heap.is_some() && own.launched {
                    let text = "the heap's size cannot change after kernels have run that use it".to_owned();
                    return Err((CudaError::InvalidValue, text));
                }
                own.heap_bytes = bytes;
                if let Some(heap) = own.heap.take() {
                    let address = self.replace_allocation(context, heap, bytes)?;
                    self.context(context).heap_made(address);
                    self.change(MemoryChange::Heap { context, address, bytes });
                }
            }
        }
        Ok(())
    }

    /// An allocation of a context ends, and another of so many bytes takes its place. Gives its address.
    fn replace_allocation(&mut self, context: ContextId, address: u64, bytes: u64) -> Result<u64, (CudaError, String)> {
        self.end_allocation(address);
        let allocated = self.state.memories[context.gpu()].allocate(context.process(), bytes);
        allocated.map_err(|error| (CudaError::MemoryAllocation, error.to_string()))
    }

    pub(crate) fn limit(&mut self, context: ContextId, limit: Limit) -> u64 {
        let own = self.context(context);
        match limit {
            Limit::Stack => own.stack_bytes,
            Limit::PrintQueue => own.print_bytes,
            Limit::Heap => own.heap_bytes,
            Limit::PendingLaunches => own.pending_launches,
        }
    }

    pub(crate) fn peer_access(
        &mut self,
        context: ContextId,
        peer: u32,
        enabled: bool,
    ) -> Result<(), (CudaError, String)> {
        if peer as usize >= self.gpus.len() || peer as usize == context.gpu() {
            return Err((CudaError::InvalidDevice, format!("device {peer} is no peer of device {}", context.gpu())));
        }
        let peers = &mut self.context(context).peers;
        if enabled && !peers.insert(peer) {
            return Err((CudaError::PeerAccessAlreadyEnabled, format!("to device {peer}")));
        }
        if !enabled && !peers.remove(&peer) {
            return Err((CudaError::PeerAccessNotEnabled, format!("to device {peer}")));
        }
        self.change(MemoryChange::Peer { context, peer: peer as usize, enabled });
        Ok(())
    }

    /// Everything of a process on a device ends; nothing of it is under way. A failed context works again.
    pub(crate) fn reset_context(&mut self, context: ContextId) {
        for module in self.own(context).modules.of_context(context) {
            self.unload_module(context, module);
        }
        self.end_virtual_memory(context);
        let starts: Vec<u64> = self.state.memories[context.gpu()].starts(context.process()).collect();
        for address in starts {
            self.end_allocation(address);
        }
        for address in self.state.window.managed_of(context) {
            self.end_allocation(address);
        }
        let own = self.own(context);
        own.streams.destroy_all(context);
        let (handles, events) = (own.images.destroy_all(context), own.events.destroy_all(context));
        self.release_events(events);
        for handle in handles {
            self.change(MemoryChange::Image { process: context.process(), handle, image: None });
        }
        let before = std::mem::take(self.context(context));
        for peer in before.peers {
            self.change(MemoryChange::Peer { context, peer: peer as usize, enabled: false });
        }
        if before.sticky.is_some() {
            self.want(Effect::Reset(context));
        }
        if before.print_bytes != DEFAULT_PRINT_QUEUE {
            self.change(MemoryChange::PrintCapacity { context, bytes: DEFAULT_PRINT_QUEUE });
        }
    }
}
