//! Which addresses are legal.

use balar_host::memory::{MAXIMUM_GPUS, Place, place_of};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

/// GPUs, one bit each.
pub type GpuSet = u8;
const _: () = assert!(MAXIMUM_GPUS as usize <= GpuSet::BITS as usize);

/// Most allocations of a chunk.
const CHUNK: usize = 512;
/// Bytes of a page of device memory that holds allocations (CUDA driver API, `cuMemGetAllocationGranularity`: 2 MiB).
const DEVICE_PAGE: u64 = 2 << 20;
/// Bytes of a page of host memory.
const HOST_PAGE: u64 = 4 << 10;

/// Whether a kernel may access bytes beside an allocation in its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bounds {
    /// As on hardware: a GPU's page tables know pages, not allocations.
    #[default]
    Pages,
    /// An access outside all allocations is illegal.
    Allocations,
}

/// An allocation.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    start: u64,
    /// The first address after it.
    end: u64,
    bounds: Bounds,
    /// Whose it is.
    process: ProcessId,
    /// The GPUs that it was opened to, beside those that may access all memory of its own.
    opened_to: GpuSet,
    /// At reserved addresses: the GPU whose memory it is. It was opened to all that may access it.
    owner: Option<u8>,
}

/// The allocations of a node, disjoint. Finding, adding and removing one takes logarithmic time, up to the moves within a chunk.
#[derive(Debug, Default)]
pub(super) struct Allocations {
    /// The start of the first allocation of each chunk; ascending. No lower address will do: bytes there may be in an allocation that
    /// starts in the chunk before.
    firsts: Vec<u64>,
    /// Sorted by start.
    chunks: Vec<Vec<Allocation>>,
    /// The GPUs beside its own on which a context may access the memory of its process, by context.
    peers: BTreeMap<ContextId, GpuSet>,
    /// First addresses of allocations, with processes beside their owner that may access them.
    shared: BTreeSet<(u64, ProcessId)>,
    /// Pages that allocations with [`Bounds::Pages`] begin or end in, by first address: how many do. A page in the middle of an
    /// allocation has nothing beside it.
    edges: BTreeMap<u64, Edges>,
    /// A kernel has accessed memory of another GPU than its own. Nothing that is simulated goes by it: it may be set in any order.
    peer_accessed: AtomicBool,
}

/// The allocations that begin or end in a page. They are of one process: no two have allocations in one page.
#[derive(Clone, Copy, Debug)]
struct Edges {
    count: u32,
    process: ProcessId,
}

/// The page of device or host memory that holds `address`: its first address, and the first after it.
pub(super) fn page_of(address: u64) -> (u64, u64) {
    let bytes = if matches!(place_of(address), Place::HostWindow) { HOST_PAGE } else { DEVICE_PAGE };
    let start = address & !(bytes - 1);
    (start, start + bytes)
}

impl Allocation {
    /// Whose memory it is.
    fn place(&self) -> Place {
        self.owner.map_or_else(|| place_of(self.start), |owner| Place::Device(owner.into()))
    }

    /// The pages that it begins and ends in, where bytes beside it are legal.
    fn edges(self) -> impl Iterator<Item = u64> {
        let (first, last) = (page_of(self.start).0, page_of(self.end.saturating_sub(1)).0);
        let both = [Some(first), (last != first).then_some(last)];
        both.into_iter().flatten().filter(move |_| self.bounds == Bounds::Pages)
    }
}

impl Allocations {
    /// The allocation that holds `address`.
    #[inline]
    fn find(&self, address: u64) -> Option<&Allocation> {
        let chunk = self.firsts.partition_point(|&first| first <= address).checked_sub(1)?;
        let chunk = &self.chunks[chunk];
        let next = chunk.partition_point(|allocation| allocation.start <= address);
        let allocation = &chunk[next.checked_sub(1)?];
        (address < allocation.end).then_some(allocation)
    }

    /// The allocation that holds `address`, as (first address, first address after it).
    #[inline]
    pub fn range_of(&self, address: u64) -> Option<(u64, u64)> {
        self.find(address).map(|allocation| (allocation.start, allocation.end))
    }

    /// A range around an access of `bytes` at `address` that kernels of `context` may access; `None` where they may not access all of
    /// it.
    #[inline]
    pub fn range_for(&self, context: ContextId, address: u64, bytes: u64) -> Option<(u64, u64)> {
        match self.find(address) {
            Some(allocation) if allocation.end - address >= bytes => {
                let process = context.process();
                if allocation.process != process && !self.shared.contains(&(allocation.start, process)) {
                    return None;
                }
                let opened = allocation.opened_to >> context.gpu() & 1 == 1;
                let legal = opened || (allocation.owner.is_none() && self.reaches(context, allocation.start));
                if legal {
                    self.note_access(context, allocation.place());
                }
                legal.then_some((allocation.start, allocation.end))
            }
            _ => {
                let page = self.page_beside(context, address)?;
                self.note_access(context, place_of(page.0));
                Some(page)
            }
        }
    }

    /// A kernel of `context` accesses the memory at this place.
    #[inline]
    fn note_access(&self, context: ContextId, place: Place) {
        if matches!(place, Place::Device(owner) if owner as usize != context.gpu()) {
            self.peer_accessed.store(true, Ordering::Relaxed);
        }
    }

    /// Has a kernel accessed memory of another GPU than its own?
    pub fn peer_accessed(&self) -> bool {
        self.peer_accessed.load(Ordering::Relaxed)
    }

    /// May kernels of the context access all memory that their process has where this address is?
    fn reaches(&self, context: ContextId, address: u64) -> bool {
        match place_of(address) {
            Place::HostWindow => true,
            Place::Device(owner) => {
                owner as usize == context.gpu() || self.peers.get(&context).is_some_and(|peers| peers >> owner & 1 == 1)
            }
            Place::Elsewhere => false,
        }
    }

    /// The page of an access outside all allocations, where its context may access it: accesses are aligned, so none leaves its page.
    #[cold]
    fn page_beside(&self, context: ContextId, address: u64) -> Option<(u64, u64)> {
        let page = page_of(address);
        let edges = self.edges.get(&page.0)?;
        (edges.process == context.process() && self.reaches(context, page.0)).then_some(page)
    }

    /// Adds an allocation of a process; one that began at the same address is replaced.
    pub fn insert(&mut self, process: ProcessId, start: u64, bytes: u64, bounds: Bounds) {
        let end = start.saturating_add(bytes);
        self.insert_allocation(Allocation { start, end, bounds, process, opened_to: 0, owner: None });
    }

    /// Adds memory that a process has on the GPU `owner` at reserved addresses, which it may access on these GPUs alone; replaces memory
    /// that began there.
    pub fn insert_reserved(&mut self, process: ProcessId, start: u64, bytes: u64, owner: u8, opened_to: GpuSet) {
        let (end, bounds) = (start.saturating_add(bytes), Bounds::Allocations);
        self.insert_allocation(Allocation { start, end, bounds, process, opened_to, owner: Some(owner) });
    }

    /// Whose memory an address is: as the allocation there says, or as the address alone does.
    pub fn place_of(&self, address: u64) -> Place {
        self.find(address).map_or_else(|| place_of(address), Allocation::place)
    }

    fn insert_allocation(&mut self, allocation: Allocation) {
        if let Some(same) = self.insert_range(allocation) {
            self.end_edges(same);
        }
        for edge in allocation.edges() {
            let edges = self.edges.entry(edge).or_insert(Edges { count: 0, process: allocation.process });
            edges.count += 1;
        }
    }

    /// Returns the allocation that it replaces.
    fn insert_range(&mut self, allocation: Allocation) -> Option<Allocation> {
        let start = allocation.start;
        let at = self.firsts.partition_point(|&first| first <= start).saturating_sub(1);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.firsts.push(start);
            self.chunks.push(vec![allocation]);
            return None;
        };
        self.firsts[at] = self.firsts[at].min(start);
        let place = chunk.partition_point(|other| other.start < start);
        if let Some(same) = chunk.get_mut(place).filter(|other| other.start == start) {
            return Some(std::mem::replace(same, allocation));
        }
        chunk.insert(place, allocation);
        if chunk.len() > CHUNK {
            let upper = chunk.split_off(CHUNK / 2);
            self.firsts.insert(at + 1, upper[0].start);
            self.chunks.insert(at + 1, upper);
        }
        None
    }

    fn end_edges(&mut self, allocation: Allocation) {
        for edge in allocation.edges() {
            if let Some(edges) = self.edges.get_mut(&edge) {
                edges.count -= 1;
                if edges.count == 0 {
                    self.edges.remove(&edge);
                }
            }
        }
    }

    /// Ends the allocation that begins at `start`, if one does.
    pub fn remove(&mut self, start: u64) {
        let Some(at) = self.firsts.partition_point(|&first| first <= start).checked_sub(1) else { return };
        let chunk = &mut self.chunks[at];
        if let Ok(place) = chunk.binary_search_by_key(&start, |allocation| allocation.start) {
            let allocation = chunk.remove(place);
            match chunk.first() {
                Some(first) => self.firsts[at] = first.start,
                None => {
                    self.chunks.remove(at);
                    self.firsts.remove(at);
                }
            }
            self.end_edges(allocation);
            let sharers = (start, ProcessId(0))..=(start, ProcessId(u32::MAX));
            let sharers: Vec<_> = self.shared.range(sharers).copied().collect();
            for sharer in sharers {
                self.shared.remove(&sharer);
            }
        }
    }

    /// Whether kernels of `context` may access all memory that their process has on the GPU `peer`.
    pub fn set_peer(&mut self, context: ContextId, peer: usize, enabled: bool) {
        let peers = self.peers.entry(context).or_default();
        let bit = 1 << peer;
        *peers = if enabled { *peers | bit } else { *peers & !bit };
        if *peers == 0 {
            self.peers.remove(&context);
        }
    }

    /// Whether `process` may access the allocation that begins at `start` as its owner may.
    pub fn share(&mut self, start: u64, process: ProcessId, enabled: bool) {
        if enabled {
            self.shared.insert((start, process));
        } else {
            self.shared.remove(&(start, process));
        }
    }

    /// Opens the allocation that begins at `start` to these GPUs, beside those that may access all memory of its own.
    pub fn open_to(&mut self, start: u64, gpus: GpuSet) {
        let Some(at) = self.firsts.partition_point(|&first| first <= start).checked_sub(1) else { return };
        let chunk = &mut self.chunks[at];
        if let Ok(place) = chunk.binary_search_by_key(&start, |allocation| allocation.start) {
            chunk[place].opened_to = gpus;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_host::memory::{BASE, HOST_BASE, gpu_base};

    const P: ProcessId = ProcessId::FIRST;

    #[test]
    fn many_allocations_are_found_in_any_order() {
        // A full cycle through the places: 7919 and 10000 have no common divisor.
        let places: Vec<u64> = (0..10_000u64).map(|i| BASE + i * 7919 % 10_000 * 512).collect();
        let mut allocations = Allocations::default();
        for &place in &places {
            allocations.insert(P, place, 500, Bounds::Allocations);
        }
        assert!(allocations.chunks.iter().all(|chunk| chunk.len() <= CHUNK));
        for &place in &places {
            assert_eq!(allocations.range_of(place + 499), Some((place, place + 500)));
            assert_eq!(allocations.range_of(place + 500), None);
        }
        assert_eq!(allocations.range_of(BASE - 1), None);
        for &place in &places[..5_000] {
            allocations.remove(place);
            allocations.remove(place + 1);
        }
        for (at, &place) in places.iter().enumerate() {
            assert_eq!(allocations.range_of(place).is_some(), at >= 5_000);
        }
        for &place in &places[5_000..] {
            allocations.remove(place);
        }
        assert!(allocations.chunks.is_empty() && allocations.firsts.is_empty());
    }

    #[test]
    fn an_allocation_is_found_that_reaches_over_where_a_chunk_had_begun() {
        let mut allocations = Allocations::default();
        for place in 0..=CHUNK as u64 {
            allocations.insert(P, BASE + place * 512, 500, Bounds::Allocations);
        }
        // The first of the second chunk ends, with its neighbours, and one allocation takes the place of all.
        let border = allocations.firsts[1];
        for place in [border - 512, border, border + 512] {
            allocations.remove(place);
        }
        allocations.insert(P, border - 512, 3 * 512, Bounds::Allocations);
        for address in [border - 512, border - 1, border, border + 1023] {
            assert_eq!(allocations.range_of(address), Some((border - 512, border + 1024)), "{address:#x}");
        }
        assert_eq!(allocations.range_of(border + 1024), Some((border + 1024, border + 1524)));
    }

    #[test]
    fn another_gpus_memory_is_illegal_until_it_is_opened() {
        let mut allocations = Allocations::default();
        let [own, others, window] = [gpu_base(0), gpu_base(1), HOST_BASE];
        for start in [own, others, window] {
            allocations.insert(P, start, 64, Bounds::Allocations);
        }
        let legal = |allocations: &Allocations| {
            [0, 1, 2].map(|gpu| {
                [own, others, window].map(|at| allocations.range_for(ContextId::first(gpu), at + 8, 8).is_some())
            })
        };
        assert_eq!(legal(&allocations), [[true, false, true], [false, true, true], [false, false, true]]);
        assert!(!allocations.peer_accessed(), "what is refused is no access");
        allocations.set_peer(ContextId::first(0), 1, true);
        assert_eq!(legal(&allocations), [[true, true, true], [false, true, true], [false, false, true]]);
        assert!(allocations.peer_accessed());
        allocations.set_peer(ContextId::first(0), 1, false);
        allocations.set_peer(ContextId::first(0), 0, false);
        allocations.open_to(own, 1 << 2);
        assert_eq!(legal(&allocations), [[true, false, true], [false, true, true], [true, false, true]]);
    }

    #[test]
    fn memory_of_one_process_is_illegal_for_others_unless_it_is_shared() {
        let mut allocations = Allocations::default();
        let [own, beside, window] = [gpu_base(0), gpu_base(0) + (2 << 20), HOST_BASE];
        for (process, start) in [(1, own), (2, beside), (1, window)] {
            allocations.insert(ProcessId(process), start, 64, Bounds::Pages);
        }
        let legal = |allocations: &Allocations, process| {
            let context = ContextId::new(ProcessId(process), 0);
            [own, own + 256, beside, window].map(|at| allocations.range_for(context, at, 8).is_some())
        };
        assert_eq!(legal(&allocations, 1), [true, true, false, true]);
        assert_eq!(legal(&allocations, 2), [false, false, true, false]);
        allocations.share(own, ProcessId(2), true);
        assert_eq!(legal(&allocations, 2), [true, false, true, false]);
        assert_eq!(legal(&allocations, 0), [false; 4]);
        allocations.share(own, ProcessId(2), false);
        assert_eq!(legal(&allocations, 2), [false, false, true, false]);
        allocations.share(own, ProcessId(2), true);
        allocations.remove(own);
        allocations.insert(ProcessId(1), own, 64, Bounds::Pages);
        assert_eq!(legal(&allocations, 2), [false, false, true, false], "what is shared ends with the allocation");
    }

    #[test]
    fn memory_at_reserved_addresses_is_legal_for_whom_it_was_opened_to_alone() {
        let mut allocations = Allocations::default();
        let start = gpu_base(0) + (1 << 30);
        let legal = |allocations: &Allocations| {
            [0, 1, 2].map(|gpu| allocations.range_for(ContextId::first(gpu), start + 8, 8).is_some())
        };
        allocations.insert_reserved(P, start, 64, 1, 1 << 2);
        assert_eq!(legal(&allocations), [false, false, true], "not even the GPUs of the memory and of the address");
        allocations.set_peer(ContextId::first(0), 1, true);
        assert_eq!(legal(&allocations), [false, false, true]);
        let mut own = Allocations::default();
        own.insert_reserved(P, start, 64, 1, 1 << 1);
        assert_eq!(
            (legal(&own), own.peer_accessed()),
            ([false, true, false], false),
            "whose memory it is, not whose address"
        );
        allocations.insert_reserved(P, start, 64, 1, 0b11);
        assert_eq!((legal(&allocations), allocations.peer_accessed()), ([true, true, false], true));
        assert_eq!([start - 1, start, start + 64].map(|at| allocations.place_of(at)), [0, 1, 0].map(Place::Device));
        allocations.remove(start);
        assert_eq!(legal(&allocations), [false; 3]);
    }

    #[test]
    fn what_lies_beside_an_allocation_in_its_pages_is_legal_while_there_is_one() {
        let mut allocations = Allocations::default();
        let [small, large] = [BASE, BASE + (16 << 20)];
        allocations.insert(P, small + 256, 100, Bounds::Pages);
        allocations.insert(P, small + 1024, 100, Bounds::Pages);
        allocations.insert(P, large, (5 << 20) + 4, Bounds::Pages);
        allocations.insert(P, HOST_BASE, 8, Bounds::Pages);
        let legal =
            |allocations: &Allocations, address| allocations.range_for(ContextId::first(0), address, 4).is_some();
        for inside in [small, small + 356, small + (2 << 20) - 4, large + (5 << 20) + 4, HOST_BASE + 4092] {
            assert!(legal(&allocations, inside), "{inside:#x}");
            assert_eq!(allocations.range_of(inside), None, "{inside:#x} is in no allocation");
        }
        for outside in [small - 4, small + (2 << 20), large - 4, large + (6 << 20), HOST_BASE + 4096] {
            assert!(!legal(&allocations, outside), "{outside:#x}");
        }
        assert_eq!(allocations.range_for(ContextId::first(1), small, 4), None, "the memory of another GPU");
        // The last bytes of an allocation and what follows them.
        assert_eq!(allocations.range_for(ContextId::first(0), small + 352, 16), Some((small, small + (2 << 20))));
        allocations.insert(P, small + 256, 4, Bounds::Pages);
        allocations.remove(small + 256);
        assert!(legal(&allocations, small), "the other one is there");
        allocations.remove(small + 1024);
        assert!(!legal(&allocations, small));
        allocations.remove(large);
        allocations.remove(HOST_BASE);
        assert!(allocations.edges.is_empty());
    }
}
