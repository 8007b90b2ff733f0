//! The memory of each GPU: frames, and what leaves it.

use super::UnifiedMemoryDriver;
use super::blocks::{Blocks, leaf_number, processor_at};
use super::record::Cause;
use super::tasks::{Step, TaskId, Transit};
use crate::engine::Outbox;
use crate::unified_memory::batch::BatchStage;
use crate::unified_memory::eviction::{EvictionPolicy, Frames, MemoryView, Victim};
use crate::unified_memory::prefetch::Prefetcher;
use crate::unified_memory::remote_access::AccessCounters;
use crate::unified_memory::{BLOCK_LEAVES, BlockId, PAGE_BYTES, PageSet, Processor};
use balar_protocol::SimTime;
use serde::{Deserialize, Serialize};

/// What is written back of evicted pages, and when their frames are free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteBack {
    /// Frames are free when the pages have left.
    #[default]
    Blocking,
    /// Frames are free at once (UVMSmart).
    Overlapping,
}

/// What the driver keeps of a GPU.
#[derive(Debug)]
pub(super) struct Gpu {
    /// Bytes of its memory.
    pub capacity: u64,
    /// Of these, bytes allocated otherwise.
    pub reserved: u64,
    /// Frames that managed pages have.
    pub used: u64,
    pub most_used: u64,
    /// Of these, frames whose pages are being written back.
    pub writing_back: u64,
    /// Its memory has been too small since the last synchronisation that moved pages.
    pub is_oversubscribed: bool,
    pub accesses: AccessCounters,
    pub eviction: Box<dyn EvictionPolicy>,
    pub prefetcher: Box<dyn Prefetcher>,
    pub prefetcher_when_full: Option<Box<dyn Prefetcher>>,
}

/// What of a [`Gpu`] is no policy.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedGpu {
    reserved: u64,
    used: u64,
    most_used: u64,
    writing_back: u64,
    is_oversubscribed: bool,
    registers: Vec<u32>,
    policies: Vec<Vec<u8>>,
}

impl Gpu {
    pub fn save(&self) -> Result<SavedGpu, crate::engine::StateError> {
        let mut policies = vec![self.eviction.save()?, self.prefetcher.save()?];
        if let Some(prefetcher) = &self.prefetcher_when_full {
            policies.push(prefetcher.save()?);
        }
        Ok(SavedGpu {
            reserved: self.reserved,
            used: self.used,
            most_used: self.most_used,
            writing_back: self.writing_back,
            is_oversubscribed: self.is_oversubscribed,
            registers: self.accesses.registers().to_vec(),
            policies,
        })
    }

    pub fn restore(&mut self, saved: SavedGpu) -> Result<(), crate::engine::StateError> {
        let mismatch = || crate::engine::StateError::Mismatch("another number of policies".to_owned());
        self.reserved = saved.reserved;
        self.used = saved.used;
        self.most_used = saved.most_used;
        self.writing_back = saved.writing_back;
        self.is_oversubscribed = saved.is_oversubscribed;
        self.accesses = AccessCounters::from_registers(saved.registers);
        let mut policies = saved.policies.iter();
        self.eviction.restore(policies.next().ok_or_else(mismatch)?)?;
        self.prefetcher.restore(policies.next().ok_or_else(mismatch)?)?;
        if let Some(prefetcher) = &mut self.prefetcher_when_full {
            prefetcher.restore(policies.next().ok_or_else(mismatch)?)?;
        }
        Ok(())
    }

    /// Frames that managed pages can have.
    fn frames(&self) -> u64 {
        self.capacity.saturating_sub(self.reserved) / PAGE_BYTES
    }
}

/// A GPU's memory as eviction policies see it.
struct View<'a> {
    blocks: &'a Blocks,
    gpu: u8,
}

impl MemoryView for View<'_> {
    fn pages(&self, block: BlockId) -> usize {
        self.blocks.get(block).pages
    }

    fn resident(&self, block: BlockId) -> PageSet {
        self.blocks.get(block).share(Processor::Gpu(self.gpu)).resident
    }

    fn evictable(&self, block: BlockId) -> PageSet {
        let block = self.blocks.get(block);
        let share = block.share(Processor::Gpu(self.gpu));
        // Pages of the block are on their way here: whoever waits for them is to find it.
        if share.arriving.is_empty() && block.is_live { share.resident } else { PageSet::EMPTY }
    }
}

impl UnifiedMemoryDriver {
    /// The frames of a GPU, with so many pages that want to come.
    pub(super) fn frames(&self, gpu: &Gpu, coming: u64) -> Frames {
        let total = gpu.frames();
        Frames {
            total,
            free: total.saturating_sub(gpu.used),
            waiting_to_arrive: coming,
            writing_back: gpu.writing_back,
            free_buffer_percent: self.parameters.free_buffer_percent,
        }
    }

    /// Frames that are free now.
    pub(super) fn free_frames(&self, gpu: u8) -> u64 {
        let gpu = &self.state.gpus[usize::from(gpu)];
        gpu.frames().saturating_sub(gpu.used)
    }

    /// Evicts what has to go for `coming` pages; true where there is room for them now.
    pub(super) fn make_room(&mut self, task: TaskId, gpu: u8, coming: u64, now: SimTime, out: &mut Outbox) -> bool {
        let place = usize::from(gpu);
        let state = &self.state.gpus[place];
        if state.frames() == 0 && coming > 0 {
            return false;
        }
        if self.frames(state, 0).is_oversubscribed_by(coming) {
            self.state.gpus[place].is_oversubscribed = true;
        }
        while self.frames(&self.state.gpus[place], coming).eviction_is_due() {
            if !self.evict(gpu, now, out) {
                break;
            }
        }
        let has_room = coming <= self.free_frames(gpu);
        if let Some(task) = self.state.tasks.get_mut(task) {
            match (has_room, task.waits_for_room) {
                (false, None) => task.waits_for_room = Some(now),
                (true, Some(since)) => {
                    task.waits_for_room = None;
                    self.state.counters.room_time += now.0 - since.0;
                }
                _ => {}
            }
        }
        has_room
    }

    /// Will no frame of a GPU become free by itself?
    pub(super) fn is_stuck(&self, gpu: u8) -> bool {
        let is_coming = |id: BlockId| !self.state.blocks.get(id).share(Processor::Gpu(gpu)).arriving.is_empty();
        self.state.gpus[usize::from(gpu)].writing_back == 0 && !self.state.blocks.live().any(is_coming)
    }

    /// One decision of the eviction policy; false where nothing may go.
    fn evict(&mut self, gpu: u8, now: SimTime, out: &mut Outbox) -> bool {
        let view = View { blocks: &self.state.blocks, gpu };
        let victim = self.state.gpus[usize::from(gpu)].eviction.victim(&view, &mut self.state.random);
        // A victim without pages frees nothing: the policy has nothing that may go.
        let Some(Victim { block, pages }) = victim.filter(|victim| !victim.pages.is_empty()) else { return false };
        self.state.counters.evictions += 1;
        self.write_back(gpu, block, pages, now, out);
        true
    }

    /// Pages leave a GPU's memory; what others do not have goes to the host.
    fn write_back(&mut self, gpu: u8, id: BlockId, pages: PageSet, now: SimTime, out: &mut Outbox) {
        let me = Processor::Gpu(gpu);
        let block = self.state.blocks.get(id);
        let dirty = block.share(me).dirty;
        let mut spare = PageSet::EMPTY;
        if self.parameters.keeps_host_copies() {
            if self.parameters.drops_clean_pages {
                spare = pages.difference(dirty);
            }
        } else {
            spare = pages.intersection(block.elsewhere(me));
        }
        let written = pages.difference(spare);
        let overlaps = self.parameters.write_back_overlaps();
        let count = pages.len() as u64;
        self.state.counters.pages_evicted += count;
        self.state.counters.pages_dropped += spare.len() as u64;
        self.state.counters.pages_to_host += written.len() as u64;
        let allocation = self.state.blocks.get(id).allocation as usize;
        let allocation = &mut self.state.blocks.allocations[allocation].counters;
        allocation.pages_evicted += count;
        allocation.pages_to_host += written.len() as u64;
        let task = self.state.tasks.begin([], now);
        self.forget_on_gpu(task, gpu, id, pages, now, out);
        let share = self.state.blocks.get_mut(id).share_mut(me);
        share.evicted = share.evicted.union(pages);
        self.state.records.pages(id, written, |record| record.to_host += 1);
        for leaf in 0..BLOCK_LEAVES {
            if pages.count_in_leaf(leaf) > 0 {
                self.state.gpus[usize::from(gpu)].accesses.count_round_trip(leaf_number(id, leaf));
            }
        }
        let host = self.state.blocks.get_mut(id).share_mut(Processor::Host);
        host.resident = host.resident.difference(written);
        host.arriving = host.arriving.union(written);
        let mut steps = vec![Step::Busy(BatchStage::Evict, self.parameters.costs.evict), Step::AwaitUnmapped];
        for run in written.runs() {
            steps.push(Step::Busy(BatchStage::Transfers, self.parameters.costs.transfer));
            let (from, to) = (me, Processor::Host);
            steps.push(Step::Start(Transit {
                block: id,
                pages: run,
                from,
                to,
                faults: 0,
                replay: false,
                cause: Cause::Eviction,
            }));
        }
        steps.push(Step::AwaitTransfers);
        if !overlaps {
            let state = &mut self.state.gpus[usize::from(gpu)];
            state.used += count;
            state.writing_back += count;
            steps.push(Step::Release { gpu, pages: count });
        }
        self.do_first(task, steps);
    }

    /// How many pages lie where.
    pub(super) fn residents(&self) -> Vec<u64> {
        let mut pages = vec![0; 1 + self.state.gpus.len()];
        for id in self.state.blocks.live() {
            for (place, share) in self.state.blocks.get(id).shares.iter().enumerate() {
                debug_assert!(place == 0 || matches!(processor_at(place), Processor::Gpu(_)));
                pages[place] += share.resident.len() as u64;
            }
        }
        pages
    }
}
