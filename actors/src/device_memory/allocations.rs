//! Which addresses are legal.

use super::{GpuSet, MAXIMUM_GPUS};
use balar_host::memory::{Place, place_of};

/// Most allocations of a chunk.
const CHUNK: usize = 512;

/// An allocation.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    start: u64,
    /// The first address after it.
    end: u64,
    /// The GPUs that it was opened to, beside those that may access all memory of its own.
    opened_to: GpuSet,
}

/// The allocations of a node, disjoint. Finding, adding and removing one takes logarithmic time, up to the moves within a chunk.
#[derive(Debug)]
pub(super) struct Allocations {
    /// No start of the chunk is lower; ascending.
    firsts: Vec<u64>,
    /// Sorted by start.
    chunks: Vec<Vec<Allocation>>,
    /// By GPU: those whose memory it may access.
    peers: [GpuSet; MAXIMUM_GPUS],
}

impl Default for Allocations {
    fn default() -> Self {
        Allocations { firsts: Vec::new(), chunks: Vec::new(), peers: std::array::from_fn(|gpu| 1 << gpu) }
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

    /// As [`Self::range_of`]; `None` also where `gpu` may not access it.
    #[inline]
    pub fn range_for(&self, gpu: usize, address: u64) -> Option<(u64, u64)> {
        let allocation = self.find(address)?;
        let legal = match place_of(allocation.start) {
            Place::HostWindow => true,
            Place::Device(owner) => (self.peers[gpu] >> owner | allocation.opened_to >> gpu) & 1 == 1,
            Place::Elsewhere => false,
        };
        legal.then_some((allocation.start, allocation.end))
    }

    /// Adds an allocation; one that began at the same address is replaced.
    pub fn insert(&mut self, start: u64, bytes: u64) {
        let allocation = Allocation { start, end: start.saturating_add(bytes), opened_to: 0 };
        let at = self.firsts.partition_point(|&first| first <= start).saturating_sub(1);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.firsts.push(start);
            self.chunks.push(vec![allocation]);
            return;
        };
        self.firsts[at] = self.firsts[at].min(start);
        let place = chunk.partition_point(|other| other.start < start);
        match chunk.get_mut(place).filter(|other| other.start == start) {
            Some(same) => *same = allocation,
            None => chunk.insert(place, allocation),
        }
        if chunk.len() > CHUNK {
            let upper = chunk.split_off(CHUNK / 2);
            self.firsts.insert(at + 1, upper[0].start);
            self.chunks.insert(at + 1, upper);
        }
    }

    /// Ends the allocation that begins at `start`, if one does.
    pub fn remove(&mut self, start: u64) {
        let Some(at) = self.firsts.partition_point(|&first| first <= start).checked_sub(1) else { return };
        let chunk = &mut self.chunks[at];
        if let Ok(place) = chunk.binary_search_by_key(&start, |allocation| allocation.start) {
            chunk.remove(place);
            if chunk.is_empty() {
                self.chunks.remove(at);
                self.firsts.remove(at);
            }
        }
    }

    /// Whether `gpu` may access all memory of `peer`.
    pub fn set_peer(&mut self, gpu: usize, peer: usize, enabled: bool) {
        let bit = 1 << peer;
        if let Some(peers) = self.peers.get_mut(gpu) {
            *peers = if enabled || gpu == peer { *peers | bit } else { *peers & !bit };
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

    #[test]
    fn many_allocations_are_found_in_any_order() {
        // A full cycle through the places: 7919 and 10000 have no common divisor.
        let places: Vec<u64> = (0..10_000u64).map(|i| BASE + i * 7919 % 10_000 * 512).collect();
        let mut allocations = Allocations::default();
        for &place in &places {
            allocations.insert(place, 500);
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
    fn another_gpus_memory_is_illegal_until_it_is_opened() {
        let mut allocations = Allocations::default();
        let [own, others, window] = [gpu_base(0), gpu_base(1), HOST_BASE];
        for start in [own, others, window] {
            allocations.insert(start, 64);
        }
        let legal = |allocations: &Allocations| {
            [0, 1, 2].map(|gpu| [own, others, window].map(|at| allocations.range_for(gpu, at + 8).is_some()))
        };
        assert_eq!(legal(&allocations), [[true, false, true], [false, true, true], [false, false, true]]);
        allocations.set_peer(0, 1, true);
        assert_eq!(legal(&allocations), [[true, true, true], [false, true, true], [false, false, true]]);
        allocations.set_peer(0, 1, false);
        allocations.set_peer(0, 0, false);
        allocations.open_to(own, 1 << 2);
        assert_eq!(legal(&allocations), [[true, false, true], [false, true, true], [true, false, true]]);
    }
}
