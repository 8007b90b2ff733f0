//! What one unit writes to device memory in one value epoch.

use super::heap::DeviceHeap;
use super::{Arena, Bounds, GpuSet};
use balar_isa::execution::{AtomicFunction, LaneValues, MemoryAccess};
use balar_isa::program::{LANES, lanes};
use balar_isa::texture::Image;
use balar_protocol::SimTime;
use std::ops::Range;
use std::sync::Arc;

/// Bits of the filter that tells quickly that no own write touches a sector.
const FILTER_BITS: usize = 1024;

/// A unit's writes to device memory within one value epoch, and after it the old values of its atomics.
#[derive(Debug, Default)]
pub struct WriteLog {
    entries: Vec<Entry>,
    runs: Vec<Run>,
    data: Vec<u8>,
    atomic_lanes: Vec<AtomicLane>,
    /// One bit per hash of a 32-byte sector that an entry of this epoch writes.
    filter: Filter,
    /// The epoch has ended, and atomics have their old values.
    applied: bool,
}

#[derive(Debug)]
struct Filter([u64; FILTER_BITS / 64]);

impl Default for Filter {
    fn default() -> Self {
        Filter([0; FILTER_BITS / 64])
    }
}

impl Filter {
    #[inline]
    fn bit(sector: u64) -> (usize, u64) {
        let hash = sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }

    fn insert(&mut self, address: u64, bytes: u64) {
        for sector in address >> 5..=(address + bytes - 1) >> 5 {
            let (word, bit) = Filter::bit(sector);
            self.0[word] |= bit;
        }
    }

    #[inline]
    fn may_contain(&self, sector: u64) -> bool {
        let (word, bit) = Filter::bit(sector);
        self.0[word] & bit != 0
    }
}

#[derive(Debug)]
struct Entry {
    time: SimTime,
    kind: EntryKind,
}

#[derive(Debug)]
enum EntryKind {
    /// Bytes from `data`, in runs of consecutive addresses.
    Store {
        first: u32,
        count: u32,
    },
    /// Read-modify-writes, lane by lane.
    Atomic {
        first: u32,
        count: u32,
        mask: u32,
        token: u32,
        /// Bytes of each lane: a value, or a vector of them.
        bytes: u8,
        function: AtomicFunction,
    },
    /// Allocations from the device heap, lane by lane: the operand is the size, the old value the address.
    Allocate {
        gpu: u8,
        first: u32,
        count: u32,
        mask: u32,
        token: u32,
    },
    /// Ends of blocks of the device heap, lane by lane: the old value is 1 where the address begins a block.
    Release {
        gpu: u8,
        first: u32,
        count: u32,
        mask: u32,
        token: u32,
    },
    /// The meaning of a texture or surface handle.
    Image {
        handle: u64,
        image: Option<Image>,
    },
    /// A GPU's device heap.
    Heap {
        gpu: u8,
        start: u64,
        bytes: u64,
    },
    /// Room for what a GPU's kernels print.
    PrintCapacity {
        gpu: u8,
        bytes: u64,
    },
    /// A printed record in `data`.
    Print {
        gpu: u8,
        offset: u32,
        bytes: u32,
    },
    Write {
        address: u64,
        data: Arc<[u8]>,
        range: Range<usize>,
    },
    Fill {
        address: u64,
        bytes: u64,
        value: u32,
        element_bytes: u8,
    },
    Copy {
        destination: u64,
        source: u64,
        bytes: u64,
    },
    Map {
        address: u64,
        bytes: u64,
        bounds: Bounds,
    },
    /// Memory of a GPU is at reserved addresses, for these GPUs alone.
    MapReserved {
        address: u64,
        bytes: u64,
        owner: u8,
        gpus: GpuSet,
    },
    Unmap {
        address: u64,
    },
    /// Whether a GPU may access another one's memory.
    Peer {
        gpu: u8,
        peer: u8,
        enabled: bool,
    },
    /// Whom an allocation is opened to.
    Open {
        address: u64,
        gpus: GpuSet,
    },
}

/// Consecutive bytes of a store.
#[derive(Clone, Copy, Debug)]
struct Run {
    address: u64,
    offset: u32,
    bytes: u32,
}

/// One lane of an atomic; the low and high halves of its values.
#[derive(Clone, Copy, Debug, Default)]
struct AtomicLane {
    address: u64,
    /// The operand, and once the log is applied the old value.
    value: [u64; 2],
    replacement: [u64; 2],
}

/// What a result is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedKind {
    /// An atomic: the old values.
    Atomic,
    /// Allocations from the device heap: the addresses.
    Allocation,
    /// Ends of blocks of the device heap: 1 where the block was live.
    Release,
}

/// The old values an atomic of the last window returned.
pub struct AtomicResult<'a> {
    /// What it is of.
    pub kind: LoggedKind,
    /// What the unit gave when it logged the atomic.
    pub token: u32,
    /// Lanes that took part.
    pub mask: u32,
    lanes: &'a [AtomicLane],
}

impl AtomicResult<'_> {
    /// The first lane whose old value is 0, with the address it named.
    pub fn first_zero(&self) -> Option<(u8, u64)> {
        let lanes = (0..32u8).filter(|lane| self.mask >> lane & 1 == 1);
        lanes.zip(self.lanes).find(|(_, entry)| entry.value[0] == 0).map(|(lane, entry)| (lane, entry.address))
    }

    /// Spreads the old values over their lanes.
    pub fn values(&self) -> LaneValues {
        let mut values = LaneValues::default();
        let lanes = lanes(self.mask);
        for (lane, entry) in lanes.zip(self.lanes) {
            [values.low[lane], values.high[lane]] = entry.value;
        }
        values
    }
}

impl WriteLog {
    /// Is there nothing to apply?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn time(&self, entry: usize) -> SimTime {
        self.entries[entry].time
    }

    /// Forgets everything; a unit calls it at the start of its next window, after reading [`Self::atomic_results`].
    pub fn clear(&mut self) {
        if !self.entries.is_empty() {
            self.entries.clear();
            self.runs.clear();
            self.data.clear();
            self.atomic_lanes.clear();
            self.filter = Filter::default();
            self.applied = false;
        }
    }

    /// Has the epoch ended in which it was written?
    pub(super) fn is_applied(&self) -> bool {
        self.applied
    }

    pub(super) fn set_applied(&mut self) {
        self.applied = true;
    }

    /// Logs a warp's store.
    pub fn store(&mut self, time: SimTime, access: &MemoryAccess, values: &LaneValues) {
        let first = self.runs.len() as u32;
        let bytes = u32::from(access.bytes);
        let mut lanes = access.mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            let address = access.addresses[lane];
            let offset = self.data.len() as u32;
            self.data.extend_from_slice(&values.low[lane].to_le_bytes()[..access.bytes.min(8) as usize]);
            if bytes > 8 {
                self.data.extend_from_slice(&values.high[lane].to_le_bytes()[..bytes as usize - 8]);
            }
            match self.runs[first as usize..].last_mut() {
                Some(run) if run.address + u64::from(run.bytes) == address => run.bytes += bytes,
                _ => self.runs.push(Run { address, offset, bytes }),
            }
        }
        for run in &self.runs[first as usize..] {
            self.filter.insert(run.address, u64::from(run.bytes));
        }
        let count = self.runs.len() as u32 - first;
        self.entries.push(Entry { time, kind: EntryKind::Store { first, count } });
    }

    /// Logs a warp's atomic; after the window its old values come back under `token`.
    pub fn atomic(
        &mut self,
        time: SimTime,
        access: &MemoryAccess,
        function: AtomicFunction,
        operands: &LaneValues,
        replacements: &LaneValues,
        token: u32,
    ) {
        let first = self.atomic_lanes.len() as u32;
        for lane in lanes(access.mask) {
            let address = access.addresses[lane];
            let [value, replacement] = [operands, replacements].map(|values| [values.low[lane], values.high[lane]]);
            self.atomic_lanes.push(AtomicLane { address, value, replacement });
            self.filter.insert(address, u64::from(access.bytes));
        }
        let count = self.atomic_lanes.len() as u32 - first;
        let kind = EntryKind::Atomic { first, count, mask: access.mask, token, bytes: access.bytes, function };
        self.entries.push(Entry { time, kind });
    }

    /// Logs allocations from a GPU's device heap, one for each lane; after the window their addresses come back under `token`.
    pub fn allocate(&mut self, time: SimTime, gpu: usize, mask: u32, sizes: &[u64; LANES], token: u32) {
        let (first, count) =
            self.heap_lanes(mask, |lane| AtomicLane { value: [sizes[lane], 0], ..AtomicLane::default() });
        self.entries.push(Entry { time, kind: EntryKind::Allocate { gpu: gpu as u8, first, count, mask, token } });
    }

    /// Logs the ends of blocks of a GPU's device heap, one for each lane.
    pub fn release(&mut self, time: SimTime, gpu: usize, mask: u32, addresses: &[u64; LANES], token: u32) {
        let (first, count) =
            self.heap_lanes(mask, |lane| AtomicLane { address: addresses[lane], ..AtomicLane::default() });
        self.entries.push(Entry { time, kind: EntryKind::Release { gpu: gpu as u8, first, count, mask, token } });
    }

    fn heap_lanes(&mut self, mask: u32, entry: impl Fn(usize) -> AtomicLane) -> (u32, u32) {
        let first = self.atomic_lanes.len() as u32;
        self.atomic_lanes.extend(lanes(mask).map(entry));
        (first, mask.count_ones())
    }

    /// From `time` on, a handle names this texture or surface, or none.
    pub fn set_image(&mut self, time: SimTime, handle: u64, image: Option<Image>) {
        self.entries.push(Entry { time, kind: EntryKind::Image { handle, image } });
    }

    /// At `time`, kernels of a GPU can allocate from this range. All of it is legal to access, live block or not, as on the GPU.
    /// The range before ends; 0 bytes are none.
    pub fn set_heap(&mut self, time: SimTime, gpu: usize, start: u64, bytes: u64) {
        self.entries.push(Entry { time, kind: EntryKind::Heap { gpu: gpu as u8, start, bytes } });
    }

    /// From `time` on, so many bytes of what a GPU's kernels print are kept for the host.
    pub fn set_print_capacity(&mut self, time: SimTime, gpu: usize, bytes: u64) {
        self.entries.push(Entry { time, kind: EntryKind::PrintCapacity { gpu: gpu as u8, bytes } });
    }

    /// Logs a record that a kernel prints.
    pub fn print(&mut self, time: SimTime, gpu: usize, record: &[u8]) {
        let offset = self.data.len() as u32;
        self.data.extend_from_slice(record);
        let kind = EntryKind::Print { gpu: gpu as u8, offset, bytes: record.len() as u32 };
        self.entries.push(Entry { time, kind });
    }

    /// At `time`, the elements of 1, 2 or 4 bytes from `address` on become `value`, as far as `bytes` go.
    pub fn fill(&mut self, time: SimTime, address: u64, bytes: u64, value: u32, element_bytes: u8) {
        self.entries.push(Entry { time, kind: EntryKind::Fill { address, bytes, value, element_bytes } });
    }

    /// At `time`, `data[range]` is written from device address `address` on.
    pub fn write(&mut self, time: SimTime, address: u64, data: &Arc<[u8]>, range: Range<usize>) {
        self.entries.push(Entry { time, kind: EntryKind::Write { address, data: Arc::clone(data), range } });
    }

    /// At `time`, `bytes` from `source` are copied to `destination`, as they are then.
    pub fn copy(&mut self, time: SimTime, destination: u64, source: u64, bytes: u64) {
        self.entries.push(Entry { time, kind: EntryKind::Copy { destination, source, bytes } });
    }

    /// At `time`, the range becomes an allocation: accesses to it, and within `bounds`, are legal from the next window on.
    pub fn map(&mut self, time: SimTime, address: u64, bytes: u64, bounds: Bounds) {
        self.entries.push(Entry { time, kind: EntryKind::Map { address, bytes, bounds } });
    }

    /// At `time`, memory of the GPU `owner` is at reserved addresses: these GPUs alone may access it. Replaces what was said before
    /// of a range that begins there.
    pub fn map_reserved(&mut self, time: SimTime, address: u64, bytes: u64, owner: usize, gpus: GpuSet) {
        let kind = EntryKind::MapReserved { address, bytes, owner: owner as u8, gpus };
        self.entries.push(Entry { time, kind });
    }

    /// At `time`, the allocation at `address` ends.
    pub fn unmap(&mut self, time: SimTime, address: u64) {
        self.entries.push(Entry { time, kind: EntryKind::Unmap { address } });
    }

    /// From `time` on, a GPU may access all memory of another one, or no longer.
    pub fn set_peer(&mut self, time: SimTime, gpu: usize, peer: usize, enabled: bool) {
        self.entries.push(Entry { time, kind: EntryKind::Peer { gpu: gpu as u8, peer: peer as u8, enabled } });
    }

    /// From `time` on, these GPUs may access the allocation at `address`, beside those that may access all memory of its own.
    pub fn open_to(&mut self, time: SimTime, address: u64, gpus: GpuSet) {
        self.entries.push(Entry { time, kind: EntryKind::Open { address, gpus } });
    }

    /// The old values of the atomics logged in the window before.
    pub fn atomic_results(&self) -> impl Iterator<Item = AtomicResult<'_>> {
        self.entries.iter().filter_map(|entry| {
            let (kind, first, count, mask, token) = match entry.kind {
                EntryKind::Atomic { first, count, mask, token, .. } => (LoggedKind::Atomic, first, count, mask, token),
                EntryKind::Allocate { first, count, mask, token, .. } => {
                    (LoggedKind::Allocation, first, count, mask, token)
                }
                EntryKind::Release { first, count, mask, token, .. } => {
                    (LoggedKind::Release, first, count, mask, token)
                }
                _ => return None,
            };
            let lanes = &self.atomic_lanes[first as usize..(first + count) as usize];
            Some(AtomicResult { kind, token, mask, lanes })
        })
    }

    /// May a write of this window touch the access? False is certain.
    #[inline]
    pub fn may_touch(&self, access: &MemoryAccess) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let mut lanes = access.mask;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize;
            lanes &= lanes - 1;
            if self.filter.may_contain(access.addresses[lane] >> 5) {
                return true;
            }
        }
        false
    }

    /// Lays this window's own stores over what `values` holds from the arena.
    /// False where an own atomic of the window touches the access: the value is not known yet.
    #[must_use]
    pub fn overlay(&self, access: &MemoryAccess, values: &mut LaneValues) -> bool {
        let bytes = u64::from(access.bytes);
        for lane in lanes(access.mask) {
            let start = access.addresses[lane];
            let overlaps = |address: u64, length: u64| address < start + bytes && start < address + length;
            let mut value = values.get(lane);
            for entry in &self.entries {
                match entry.kind {
                    EntryKind::Store { first, count } => {
                        let runs = &self.runs[first as usize..(first + count) as usize];
                        for run in runs.iter().filter(|run| overlaps(run.address, u64::from(run.bytes))) {
                            let from = start.max(run.address);
                            let to = (start + bytes).min(run.address + u64::from(run.bytes));
                            for address in from..to {
                                let byte = self.data[run.offset as usize + (address - run.address) as usize];
                                let shift = (address - start) * 8;
                                value = value & !(0xff << shift) | u128::from(byte) << shift;
                            }
                        }
                    }
                    EntryKind::Atomic { first, count, bytes, .. } => {
                        let lanes = &self.atomic_lanes[first as usize..(first + count) as usize];
                        if lanes.iter().any(|lane| overlaps(lane.address, u64::from(bytes))) {
                            return false;
                        }
                    }
                    _ => {}
                }
            }
            values.low[lane] = value as u64;
            values.high[lane] = (value >> 64) as u64;
        }
        true
    }

    pub(super) fn apply(&mut self, entry: usize, arena: &mut Arena) {
        match &mut self.entries[entry].kind {
            EntryKind::Store { first, count } => {
                for run in &self.runs[*first as usize..(*first + *count) as usize] {
                    let data = &self.data[run.offset as usize..(run.offset + run.bytes) as usize];
                    if let Some(bytes) = arena.mapping.bytes_mut(run.address, data.len()) {
                        bytes.copy_from_slice(data);
                    }
                }
            }
            EntryKind::Atomic { first, count, bytes, function, .. } => {
                let whole = |[low, high]: [u64; 2]| u128::from(low) | u128::from(high) << 64;
                for lane in &mut self.atomic_lanes[*first as usize..(*first + *count) as usize] {
                    let Some(memory) = arena.mapping.bytes_mut(lane.address, usize::from(*bytes)) else { continue };
                    let old = function.update(memory, whole(lane.value), whole(lane.replacement));
                    lane.value = [old as u64, (old >> 64) as u64];
                }
            }
            EntryKind::Allocate { gpu, first, count, .. } => {
                for lane in &mut self.atomic_lanes[*first as usize..(*first + *count) as usize] {
                    lane.value[0] = arena.allocate(usize::from(*gpu), lane.value[0]);
                }
            }
            EntryKind::Release { gpu, first, count, .. } => {
                for lane in &mut self.atomic_lanes[*first as usize..(*first + *count) as usize] {
                    lane.value[0] = u64::from(arena.release(usize::from(*gpu), lane.address));
                }
            }
            EntryKind::Image { handle, image } => arena.set_image(*handle, *image),
            EntryKind::Heap { gpu, start, bytes } => {
                let heap = (*bytes > 0).then(|| DeviceHeap::new(*start, *bytes));
                if let Some(old) = std::mem::replace(&mut arena.gpus[usize::from(*gpu)].heap, heap) {
                    arena.allocations.remove(old.start());
                }
                if *bytes > 0 {
                    arena.map(*start, *bytes, Bounds::Allocations);
                }
            }
            EntryKind::PrintCapacity { gpu, bytes } => {
                arena.printed(usize::from(*gpu)).set_capacity(usize::try_from(*bytes).unwrap_or(usize::MAX));
            }
            EntryKind::Print { gpu, offset, bytes } => {
                let record = &self.data[*offset as usize..(*offset + *bytes) as usize];
                arena.printed(usize::from(*gpu)).push(record);
            }
            EntryKind::Write { address, data, range } => {
                if let Some(bytes) = arena.mapping.bytes_mut(*address, range.len()) {
                    bytes.copy_from_slice(&data[range.clone()]);
                }
                // A large copy's bytes are not kept until the unit runs again.
                *data = Arc::default();
            }
            EntryKind::Fill { address, bytes, value, element_bytes } => {
                if let Some(bytes) = arena.mapping.bytes_mut(*address, *bytes as usize) {
                    let value = value.to_le_bytes();
                    match element_bytes {
                        1 => bytes.fill(value[0]),
                        width => {
                            let element = &value[..usize::from(*width).min(4)];
                            bytes
                                .chunks_mut(element.len().max(1))
                                .for_each(|to| to.copy_from_slice(&element[..to.len()]));
                        }
                    }
                }
            }
            EntryKind::Copy { destination, source, bytes } => arena.mapping.copy(*destination, *source, *bytes),
            EntryKind::Map { address, bytes, bounds } => arena.map(*address, *bytes, *bounds),
            EntryKind::MapReserved { address, bytes, owner, gpus } => {
                arena.map_reserved(*address, *bytes, *owner, *gpus);
            }
            EntryKind::Unmap { address } => arena.allocations.remove(*address),
            EntryKind::Peer { gpu, peer, enabled } => {
                arena.allocations.set_peer(usize::from(*gpu), usize::from(*peer), *enabled);
            }
            EntryKind::Open { address, gpus } => arena.allocations.open_to(*address, *gpus),
        }
    }
}
