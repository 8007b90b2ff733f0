//! The state of one GPU's context: its memory, its failure, its limits.

use crate::Driver;
use crate::allocator::DeviceAllocator;
use crate::effect::{Effect, MemoryChange};
use balar_host::CallResult;
use balar_host::CudaError;
use balar_host::call::Limit;
use balar_host::memory::gpu_base;
use balar_protocol::GpuDescription;
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

/// The context of a GPU.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Context {
    pub compute_capability: (u32, u32),
    /// Bytes that programs can allocate.
    pub memory_bytes: u64,
    pub allocator: DeviceAllocator,
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
}

impl Context {
    pub fn new(index: usize, description: &GpuDescription) -> Context {
        let memory_bytes = description.memory_bytes;
        Context {
            compute_capability: description.compute_capability,
            memory_bytes,
            allocator: DeviceAllocator::new(gpu_base(index), memory_bytes),
            ending: BTreeSet::new(),
            sticky: None,
            peers: BTreeSet::new(),
            stack_bytes: DEFAULT_STACK,
            print_bytes: DEFAULT_PRINT_QUEUE,
            heap_bytes: DEFAULT_HEAP,
            heap: None,
            launched: false,
        }
    }

    /// Bytes of the heap that a module's kernels need, where none is there.
    pub fn heap_wanted(&self) -> Option<u64> {
        (self.heap.is_none() && self.heap_bytes > 0).then_some(self.heap_bytes)
    }

    /// The heap lies here.
    pub fn heap_made(&mut self, address: u64) {
        self.heap = Some(address);
        self.launched = false;
    }
}

impl Driver {
    /// Asynchronous work failed: from now on every call of the context returns the error. The first one stays.
    pub(crate) fn fail_context(&mut self, device: usize, error: CudaError, text: String, words: Option<String>) {
        let context = &mut self.state.contexts[device];
        if context.sticky.is_some() {
            return;
        }
        let words = words.or_else(|| Some(format!("{}: {text}", error.name())));
        context.sticky = Some(ContextFailure { error, text, words });
        for address in self.state.operations.drop_waiting(device) {
            self.state.contexts[device].ending.remove(&address);
        }
    }

    /// The error of the failed context, as a call's result. The program's standard error stream has its words the first time.
    pub(crate) fn sticky_error(&mut self, device: usize) -> CallResult {
        let Some(failure) = &mut self.state.contexts[device].sticky else { return CallResult::None };
        let (error, words) = (failure.error, failure.words.take());
        self.state.last_error = Some((error, failure.text.clone()));
        if let Some(words) = words {
            self.tell(&words);
        }
        CallResult::Error(error)
    }

    pub(crate) fn set_limit(&mut self, device: usize, limit: Limit, bytes: u64) -> Result<(), (CudaError, String)> {
        match limit {
            Limit::Stack if bytes > MAXIMUM_STACK => {
                let text = format!("a stack of {bytes} bytes, the limit is {MAXIMUM_STACK}");
                return Err((CudaError::InvalidValue, text));
            }
            Limit::Stack => self.state.contexts[device].stack_bytes = bytes.next_multiple_of(16),
            Limit::PrintQueue => {
                self.state.contexts[device].print_bytes = bytes;
                self.change(MemoryChange::PrintCapacity { gpu: device, bytes });
            }
            Limit::Heap => {
                let context = &mut self.state.contexts[device];
                if context.heap.is_some() && context.launched {
                    let text = "the heap's size cannot change after kernels have run that use it".to_owned();
                    return Err((CudaError::InvalidValue, text));
                }
                context.heap_bytes = bytes;
                if let Some(heap) = context.heap.take() {
                    self.end_allocation(heap);
                    let context = &mut self.state.contexts[device];
                    let address = context.allocator.allocate(bytes);
                    let address = address.map_err(|error| (CudaError::MemoryAllocation, error.to_string()))?;
                    context.heap_made(address);
                    self.change(MemoryChange::Heap { gpu: device, address, bytes });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn limit(&self, device: usize, limit: Limit) -> u64 {
        let context = &self.state.contexts[device];
        match limit {
            Limit::Stack => context.stack_bytes,
            Limit::PrintQueue => context.print_bytes,
            Limit::Heap => context.heap_bytes,
        }
    }

    pub(crate) fn peer_access(&mut self, device: usize, peer: u32, enabled: bool) -> Result<(), (CudaError, String)> {
        if peer as usize >= self.state.contexts.len() || peer as usize == device {
            return Err((CudaError::InvalidDevice, format!("device {peer} is no peer of device {device}")));
        }
        let peers = &mut self.state.contexts[device].peers;
        if enabled && !peers.insert(peer) {
            return Err((CudaError::PeerAccessAlreadyEnabled, format!("to device {peer}")));
        }
        if !enabled && !peers.remove(&peer) {
            return Err((CudaError::PeerAccessNotEnabled, format!("to device {peer}")));
        }
        self.change(MemoryChange::Peer { gpu: device, peer: peer as usize, enabled });
        Ok(())
    }

    /// Everything of the program on a device ends; nothing of it is under way. A failed context works again.
    pub(crate) fn reset_device(&mut self, device: usize) {
        for module in self.state.modules.of_device(device) {
            self.unload_module(module);
        }
        self.end_virtual_memory(device);
        let starts: Vec<u64> = self.state.contexts[device].allocator.starts().collect();
        for address in starts {
            self.end_allocation(address);
        }
        let managed = self.state.window.managed_of(device);
        for address in managed {
            self.end_allocation(address);
        }
        self.state.streams.destroy_all(device);
        self.state.events.destroy_all(device);
        for handle in self.state.images.destroy_all(device) {
            self.change(MemoryChange::Image { handle, image: None });
        }
        for peer in std::mem::take(&mut self.state.contexts[device].peers) {
            self.change(MemoryChange::Peer { gpu: device, peer: peer as usize, enabled: false });
        }
        if self.state.contexts[device].sticky.take().is_some() {
            self.want(Effect::Reset { gpu: device });
        }
        if self.state.contexts[device].print_bytes != DEFAULT_PRINT_QUEUE {
            self.change(MemoryChange::PrintCapacity { gpu: device, bytes: DEFAULT_PRINT_QUEUE });
        }
        let context = &mut self.state.contexts[device];
        context.heap = None;
        context.launched = false;
        (context.stack_bytes, context.print_bytes, context.heap_bytes) =
            (DEFAULT_STACK, DEFAULT_PRINT_QUEUE, DEFAULT_HEAP);
    }
}
