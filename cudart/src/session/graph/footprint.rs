//! Physical memory of graphs on devices, as programs query it: memory of a launch stays mapped until it is trimmed or the executable graph
//! is destroyed. Graphs that a stream runs one after another share memory if they free their allocations.
//!
//! This is only bookkeeping: in the simulator's memory, each allocation has a place of its own.

use crate::abi::arguments::In;
use crate::abi::pool::graph_memory_attribute;
use crate::session::connection::{self, description};
use balar_host::{Call, CudaError};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

static FOOTPRINT: Mutex<Footprint> = Mutex::new(Footprint { blocks: Vec::new(), highest: BTreeMap::new() });

#[derive(Debug)]
struct Footprint {
    blocks: Vec<Block>,
    /// The most that there has been, by device.
    highest: BTreeMap<u32, Usage>,
}

/// Physical memory for one allocation at a time.
#[derive(Debug)]
struct Block {
    device: u32,
    bytes: u64,
    /// The stream that used it last: its device and number.
    stream: (u32, u32),
    /// Numbers of the executable graphs that have it mapped.
    graphs: BTreeSet<u32>,
    /// The allocation in it that has not been freed.
    live: Option<u64>,
}

/// Bytes of graphs' physical memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// Mapped by a graph, or by an allocation that has not been freed.
    used: u64,
    /// Set aside.
    reserved: u64,
}

/// An allocation of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedMemory {
    /// Its address.
    pub address: u64,
    /// The device that has it.
    pub device: u32,
    /// Bytes of it.
    pub bytes: u64,
    /// The launch does not free it.
    pub stays: bool,
}

impl Footprint {
    /// A graph is launched in a stream.
    fn launch(&mut self, graph: u32, stream: (u32, u32), wanted: &[WantedMemory]) {
        let mut taken = BTreeSet::new();
        for &WantedMemory { address, device, bytes, stays } in wanted {
            let is_free = |(index, block): &(usize, &Block)| {
                // Nothing else uses it, or its user has ended when this stream reaches the launch.
                let is_over = block.stream == stream || block.graphs.iter().all(|other| *other == graph);
                let is_empty = block.live.is_none() && !taken.contains(index);
                block.device == device && block.bytes >= bytes && is_empty && is_over
            };
            // Prefer memory that the graph has mapped already, then the smallest that is large enough.
            let best = self.blocks.iter().enumerate().filter(is_free);
            let best =
                best.min_by_key(|(_, block)| (!block.graphs.contains(&graph), block.bytes)).map(|(index, _)| index);
            let index = best.unwrap_or_else(|| {
                self.blocks.push(Block { device, bytes, stream, graphs: BTreeSet::new(), live: None });
                self.blocks.len() - 1
            });
            taken.insert(index);
            let block = &mut self.blocks[index];
            block.stream = stream;
            block.graphs.insert(graph);
            block.live = stays.then_some(address);
            self.note_highest(device);
        }
    }

    fn freed(&mut self, address: u64) {
        for block in self.blocks.iter_mut().filter(|block| block.live == Some(address)) {
            block.live = None;
        }
    }

    fn usage(&self, device: u32) -> Usage {
        let of_device = self.blocks.iter().filter(|block| block.device == device);
        of_device.fold(Usage::default(), |usage, block| {
            let is_mapped = !block.graphs.is_empty() || block.live.is_some();
            Usage { used: usage.used + if is_mapped { block.bytes } else { 0 }, reserved: usage.reserved + block.bytes }
        })
    }

    fn note_highest(&mut self, device: u32) {
        let now = self.usage(device);
        let highest = self.highest.entry(device).or_default();
        highest.used = highest.used.max(now.used);
        highest.reserved = highest.reserved.max(now.reserved);
    }

    /// Releases memory that contains no allocation and that no stream of these uses.
    fn trim(&mut self, device: u32, busy: &BTreeSet<(u32, u32)>) {
        self.blocks.retain(|block| block.device != device || block.live.is_some() || busy.contains(&block.stream));
    }
}

fn footprint() -> MutexGuard<'static, Footprint> {
    FOOTPRINT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A graph has been launched in a stream of a device, with these allocations.
pub fn launched(graph: u32, stream: (u32, u32), wanted: &[WantedMemory]) {
    // Memory that the previous launch has left allocated is freed when it is allocated again.
    wanted.iter().for_each(|wanted| freed(wanted.address));
    footprint().launch(graph, stream, wanted);
}

/// An allocation has been freed.
pub fn freed(address: u64) {
    footprint().freed(address);
}

/// An executable graph has ended.
pub fn ended(graph: u32) {
    for block in &mut footprint().blocks {
        block.graphs.remove(&graph);
    }
}

/// Gives back physical memory that nothing uses.
pub fn trim(device: c_int) -> Result<(), CudaError> {
    description::device_of(device)?;
    let device = device as u32;
    let streams: BTreeSet<(u32, u32)> = {
        let footprint = footprint();
        footprint.blocks.iter().filter(|block| block.device == device).map(|block| block.stream).collect()
    };
    let mut busy = BTreeSet::new();
    for (of_device, stream) in streams {
        match connection::call_on(of_device, &Call::StreamQuery { stream }) {
            Err(CudaError::NotReady) => {
                busy.insert((of_device, stream));
            }
            // A stream that has been destroyed runs nothing new.
            Ok(_) | Err(CudaError::InvalidResourceHandle) => {}
            Err(error) => return Err(error),
        }
    }
    footprint().trim(device, &busy);
    Ok(())
}

/// The memory of a device that graphs have now.
fn usage(device: u32) -> Usage {
    footprint().usage(device)
}

/// The most that graphs have had of a device's memory.
fn highest(device: u32) -> Usage {
    footprint().highest.get(&device).copied().unwrap_or_default()
}

/// Resets the maximum of used or of reserved memory.
fn reset_highest(device: u32, of_used: bool) {
    let mut footprint = footprint();
    let now = footprint.usage(device);
    let highest = footprint.highest.entry(device).or_default();
    if of_used {
        highest.used = now.used;
    } else {
        highest.reserved = now.reserved;
    }
}

/// An attribute of the memory that graphs have of a device (`cudaGraphMemAttributeType`).
pub fn attribute(device: c_int, attribute: u32) -> Result<u64, CudaError> {
    description::device_of(device)?;
    let device = device as u32;
    match attribute {
        graph_memory_attribute::USED_CURRENT => Ok(usage(device).used),
        graph_memory_attribute::USED_HIGH => Ok(highest(device).used),
        graph_memory_attribute::RESERVED_CURRENT => Ok(usage(device).reserved),
        graph_memory_attribute::RESERVED_HIGH => Ok(highest(device).reserved),
        _ => Err(CudaError::InvalidValue),
    }
}

/// Sets an attribute: maxima can only be reset to zero.
pub fn set_attribute(device: c_int, attribute: u32, value: In<u64>) -> Result<(), CudaError> {
    description::device_of(device)?;
    let of_used = match attribute {
        graph_memory_attribute::USED_HIGH => true,
        graph_memory_attribute::RESERVED_HIGH => false,
        _ => return Err(CudaError::InvalidValue),
    };
    if value.get()? != 0 {
        return Err(CudaError::InvalidValue);
    }
    reset_highest(device as u32, of_used);
    Ok(())
}

/// Forgets the memory of a device that has been reset.
pub fn forget_device(device: u32) {
    let mut footprint = footprint();
    footprint.blocks.retain(|block| block.device != device);
    footprint.highest.remove(&device);
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: (u32, u32) = (0, 1);
    const OTHER: (u32, u32) = (0, 2);

    fn wanted(address: u64, bytes: u64, stays: bool) -> WantedMemory {
        WantedMemory { address, device: 0, bytes, stays }
    }

    fn none() -> Footprint {
        Footprint { blocks: Vec::new(), highest: BTreeMap::new() }
    }

    fn bytes(footprint: &Footprint) -> (u64, u64) {
        let Usage { used, reserved } = footprint.usage(0);
        (used, reserved)
    }

    #[test]
    fn graphs_of_one_stream_share_what_they_free() {
        let mut footprint = none();
        for graph in 1..=3 {
            footprint.launch(graph, STREAM, &[wanted(graph.into(), 64, false)]);
            assert_eq!(bytes(&footprint), (64, 64));
        }
        footprint.launch(2, STREAM, &[wanted(2, 64, false), wanted(9, 32, false)]);
        assert_eq!(bytes(&footprint), (96, 96), "both at the same time");
        footprint.launch(4, OTHER, &[wanted(4, 64, false)]);
        assert_eq!(bytes(&footprint), (160, 160), "streams run at the same time");
        assert_eq!(footprint.usage(1), Usage::default());
    }

    #[test]
    fn what_is_not_freed_keeps_its_memory() {
        let mut footprint = none();
        for graph in 1..=2 {
            footprint.launch(graph, STREAM, &[wanted(graph.into(), 64, true)]);
        }
        footprint.trim(0, &BTreeSet::new());
        assert_eq!(bytes(&footprint), (128, 128));
        footprint.freed(1);
        assert_eq!(bytes(&footprint), (128, 128), "the graph has it mapped");
        footprint.trim(0, &BTreeSet::new());
        assert_eq!(bytes(&footprint), (64, 64));
        assert_eq!(footprint.highest[&0], Usage { used: 128, reserved: 128 });
    }

    #[test]
    fn memory_of_no_graph_is_set_aside_until_it_is_trimmed() {
        let mut footprint = none();
        footprint.launch(1, STREAM, &[wanted(1, 64, false)]);
        footprint.launch(2, OTHER, &[wanted(2, 32, false)]);
        for block in &mut footprint.blocks {
            block.graphs.remove(&1);
        }
        assert_eq!(bytes(&footprint), (32, 96));
        footprint.trim(0, &BTreeSet::from([STREAM, OTHER]));
        assert_eq!(bytes(&footprint), (32, 96), "their streams are busy");
        footprint.trim(0, &BTreeSet::from([OTHER]));
        assert_eq!(bytes(&footprint), (32, 32));
    }
}
