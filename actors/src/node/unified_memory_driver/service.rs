//! Faults of GPUs: batches, and what each block of one needs.

use super::UnifiedMemoryDriver;
use super::blocks::{leaf_number, place_of, processor_at};
use super::record::{BatchRecord, Cause};
use super::spans;
use super::tasks::{FaultedBlock, Flow, Step, TaskId, Transit};
use crate::engine::Outbox;
use crate::unified_memory::batch::{Batch, BatchStage, Fault};
use crate::unified_memory::eviction::ChunkUse;
use crate::unified_memory::prefetch::BlockFaults;
use crate::unified_memory::residency::{PageState, Placement, PlacementRule};
use crate::unified_memory::thrashing::ThrashingHint;
use crate::unified_memory::transfers::transfers;
use crate::unified_memory::{Access, BlockId, LEAF_PAGES, PAGE_BYTES, PageSet, Processor};
use balar_protocol::SimTime;
use balar_protocol::migration::{Faults, MigrationMessage};
use balar_protocol::translation::{Aperture, PageAccess};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tracing::Span;

/// When the GPU tries faulted accesses again (`uvm_perf_fault_replay_policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplayPolicy {
    /// After each block.
    Block,
    /// After each batch.
    Batch,
    /// After each batch; faults that are still in the buffer are dropped first.
    #[default]
    BatchFlush,
    /// When the buffer is empty.
    Once,
}

/// Pages of a block that are brought to a memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Migration {
    pub block: BlockId,
    pub pages: PageSet,
    /// Of these, the ones that were asked for themselves.
    pub asked: PageSet,
    pub to: Processor,
    /// Those that stay where they are, too.
    pub copied: PageSet,
    /// Requests that wait for them go on as soon as they are there.
    pub replay: bool,
    pub cause: Cause,
}

/// What the faults of a block lead to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Pages that come because they were asked for.
    asked: PageSet,
    /// Pages that come besides.
    prefetched: PageSet,
    /// Of all that come: those that stay where they are, too.
    copied: PageSet,
    /// Pages that go to the host's memory, or are made there.
    to_host: PageSet,
    /// Pages that the GPU accesses in the host's memory.
    remote: PageSet,
    /// Pages that are there and of which other copies end.
    claimed: PageSet,
    /// Pages that are on their way already.
    under_way: PageSet,
    /// The first time at which a fault that was put off may be served.
    throttled_until: Option<SimTime>,
}

impl Plan {
    /// All pages that come.
    fn coming(&self) -> PageSet {
        self.asked.union(self.prefetched)
    }
}

impl UnifiedMemoryDriver {
    /// A GPU has faults: they are served when the driver's thread for them is free.
    pub(super) fn pending(&mut self, gpu: u8, now: SimTime) {
        self.worker(gpu).is_pending = true;
        self.begin_batch(gpu, now);
    }

    fn begin_batch(&mut self, gpu: u8, now: SimTime) {
        let worker = self.worker(gpu);
        if worker.is_busy || !std::mem::take(&mut worker.is_pending) {
            return;
        }
        worker.is_busy = true;
        worker.began = now;
        let interrupt = Step::Busy(BatchStage::Interrupt, self.parameters.costs.interrupt);
        self.state.tasks.begin([interrupt, Step::Fetch(gpu)], now);
    }

    /// Asks a GPU for its faults. The task goes on when they come.
    pub(super) fn fetch(&mut self, task: TaskId, gpu: u8, now: SimTime, out: &mut Outbox) {
        let worker = self.worker(gpu);
        worker.is_pending = false;
        worker.fetching = Some(task);
        self.send_to_gmmu(gpu, MigrationMessage::Fetch { limit: self.parameters.batch_entries }, now, out);
    }

    /// Faults have come: those that were fetched, or where a GPU tells them by itself, those of one cycle.
    pub(super) fn faulted(&mut self, gpu: u8, faults: &Faults, now: SimTime) {
        let counters = &mut self.state.counters;
        counters.fault_overflows += u64::from(faults.overflows);
        counters.fault_entries += faults.entries.len() as u64;
        let fetched = self.worker(gpu).fetching.take();
        let mut buffer: VecDeque<Fault> = faults.entries.iter().map(|entry| fault_of(gpu, entry)).collect();
        let entries = buffer.len();
        let batch = Batch::fetch(&mut buffer, entries);
        self.state.counters.duplicate_faults += batch.duplicates() as u64;
        let Some(task) = fetched else {
            let steps = self.serve_blocks(&batch, gpu, true);
            self.state.tasks.begin(steps, now);
            return;
        };
        let steps = self.batch_steps(&batch, gpu);
        self.do_first(task, steps);
        self.state.tasks.wake_at(task, now);
    }

    /// What a batch does after its faults were fetched.
    fn batch_steps(&mut self, batch: &Batch, gpu: u8) -> Vec<Step> {
        let policy = self.parameters.replay;
        let began = self.worker(gpu).began;
        let replay =
            [Step::AwaitTransfers, Step::Busy(BatchStage::Replay, self.parameters.costs.replay), Step::Replay(gpu)];
        if batch.entries == 0 {
            let owes_replay = policy == ReplayPolicy::Once && std::mem::take(&mut self.worker(gpu).owes_replay);
            let over = Step::BatchOver { gpu, began, is_last: true };
            return if owes_replay { replay.into_iter().chain([over]).collect() } else { vec![over] };
        }
        let costs = &self.parameters.costs;
        let mut steps = Vec::new();
        if !std::mem::replace(&mut self.state.has_served, true) {
            steps.push(Step::Busy(BatchStage::Process, costs.process));
        }
        steps.push(Step::Busy(BatchStage::Fetch, SimTime(costs.entry.0 * batch.entries as u64)));
        self.state.counters.batches += 1;
        let worker = self.worker(gpu);
        worker.record = BatchRecord {
            entries: batch.entries as u32,
            pages: batch.faults.len() as u32,
            pages_moved: worker.pages_moved,
            ..BatchRecord::default()
        };
        let span = spans::batch_begins(gpu, began.0, &worker.record);
        self.batch_spans[usize::from(gpu)] = span;
        for block in self.serve_blocks(batch, gpu, false) {
            self.worker(gpu).record.blocks += 1;
            steps.push(block);
            if policy == ReplayPolicy::Block {
                steps.extend(replay.clone());
            }
        }
        match policy {
            ReplayPolicy::Block => {}
            ReplayPolicy::Batch | ReplayPolicy::BatchFlush => steps.extend(replay),
            ReplayPolicy::Once => {
                steps.push(Step::AwaitTransfers);
                self.worker(gpu).owes_replay = true;
            }
        }
        steps.push(Step::BatchOver { gpu, began, is_last: policy == ReplayPolicy::BatchFlush });
        steps
    }

    /// A step for each block of a batch.
    fn serve_blocks(&self, batch: &Batch, gpu: u8, replay: bool) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for fault in &batch.faults {
            let address = fault.page * PAGE_BYTES;
            let Some(id) = self.state.blocks.at(address) else { continue };
            let page = ((address - self.state.blocks.get(id).address) / PAGE_BYTES) as u16;
            match steps.last_mut() {
                Some(Step::Serve { block, faults, .. }) if *block == id => faults.push((page, fault.access)),
                _ => steps.push(Step::Serve { gpu, block: id, faults: vec![(page, fault.access)], replay }),
            }
        }
        steps
    }

    /// A batch is over. Where the buffer was not flushed, there may be more in it.
    pub(super) fn batch_over(&mut self, task: TaskId, gpu: u8, (began, is_last): (SimTime, bool), now: SimTime) {
        let time = now.0 - began.0;
        self.state.counters.batch_time += time;
        self.state.counters.longest_batch = self.state.counters.longest_batch.max(time);
        let worker = self.worker(gpu);
        worker.began = now;
        if worker.record.entries > 0 {
            let record = std::mem::take(&mut worker.record);
            let pages_moved = worker.pages_moved - record.pages_moved;
            let record = BatchRecord { began, ended: now, gpu, pages_moved, ..record };
            if let Some(timeline) = &self.timeline {
                timeline.lock().batch(&record);
            }
            let span = std::mem::replace(&mut self.batch_spans[usize::from(gpu)], Span::none());
            spans::batch_ends(&span, &record);
            self.state.records.batches.push(record);
        }
        if is_last {
            self.worker(gpu).is_busy = false;
            self.begin_batch(gpu, now);
        } else {
            self.do_first(task, vec![Step::Fetch(gpu)]);
        }
    }

    /// A GPU tries again what has faulted.
    pub(super) fn replay(&mut self, gpu: u8, now: SimTime, out: &mut Outbox) {
        let flush = self.parameters.replay == ReplayPolicy::BatchFlush;
        if flush {
            self.worker(gpu).is_pending = false;
        }
        self.send_to_gmmu(gpu, MigrationMessage::Replay { flush }, now, out);
    }

    /// The faults of one block are served, as soon as what they need is not on its way elsewhere and there is room.
    pub(super) fn serve(
        &mut self,
        task: TaskId,
        faulted_block: FaultedBlock<'_>,
        now: SimTime,
        out: &mut Outbox,
    ) -> Flow {
        let FaultedBlock { gpu, block: id, faults, replay } = faulted_block;
        if !self.state.blocks.get(id).is_live {
            return Flow::On;
        }
        if !replay && self.state.tasks.waits_for_lock(task, id) {
            let again = Step::Serve { gpu, block: id, faults: faults.to_vec(), replay };
            self.do_first(task, vec![again]);
            return Flow::Answered;
        }
        let faulted: PageSet = faults.iter().map(|&(page, _)| usize::from(page)).collect();
        if !self.leaving(id, gpu).intersection(faulted).is_empty() {
            return Flow::Wait;
        }
        let mut plan = self.plan(gpu, id, faults, now);
        if !self.make_room(task, gpu, plan.coming().len() as u64, now, out) {
            if !plan.prefetched.is_empty() && self.is_stuck(gpu) {
                plan.prefetched = PageSet::EMPTY;
            }
            if !self.make_room(task, gpu, plan.coming().len() as u64, now, out) {
                if !self.is_stuck(gpu) {
                    return Flow::Wait;
                }
                self.shrink(gpu, id, &mut plan);
            }
        }
        self.carry_out(task, faulted_block, &plan, now, out);
        Flow::On
    }

    /// Pages on their way to other memories than a GPU's. Where write-backs overlap with what follows, the host's count as there.
    fn leaving(&self, id: BlockId, gpu: u8) -> PageSet {
        let block = self.state.blocks.get(id);
        let shares = block.shares.iter().enumerate();
        let others = shares.filter(|(place, _)| {
            *place != place_of(Processor::Gpu(gpu)) && (*place != 0 || !self.parameters.write_back_overlaps())
        });
        others.fold(PageSet::EMPTY, |all, (_, share)| all.union(share.arriving))
    }

    /// There will be no room: what fits comes, and the rest is accessed in the host's memory where it is there.
    fn shrink(&self, gpu: u8, id: BlockId, plan: &mut Plan) {
        let free = self.free_frames(gpu) as usize;
        let (fits, rest) = split_at(plan.asked, free);
        let host = self.state.blocks.get(id).share(Processor::Host).resident;
        plan.asked = fits;
        plan.remote = plan.remote.union(rest.intersection(host));
    }

    /// What faults of a block lead to.
    fn plan(&mut self, gpu: u8, id: BlockId, faults: &[(u16, Access)], now: SimTime) -> Plan {
        let me = Processor::Gpu(gpu);
        let mut plan = Plan::default();
        for &(page, access) in faults {
            self.place(&mut plan, me, id, (usize::from(page), access), now);
        }
        let leaving = self.leaving(id, gpu);
        let block = self.state.blocks.get(id);
        let share = block.share(me);
        let mut at_preferred = PageSet::EMPTY;
        for (place, other) in block.shares.iter().enumerate() {
            let there = processor_at(place);
            if there != me {
                at_preferred = at_preferred.union(other.resident.intersection(block.advice.preferred_at(there)));
            }
        }
        let question = BlockFaults {
            block: 0..block.pages,
            resident: share.resident.union(share.arriving),
            faulted: plan.asked,
            thrashing: block.thrashing.thrashing_pages(),
            mapped_on_host: PageSet::EMPTY,
            at_preferred_location: at_preferred,
            first_touch_at_preferred_location: block.populated().is_empty()
                && block.advice.preferred_at(me).contains_all(plan.asked),
            fault_count: share.faults + faults.len() as u64,
        };
        let absent_elsewhere = leaving.union(share.remote).union(plan.remote).union(plan.to_host);
        let read_mostly = block.advice.read_mostly;
        if !plan.asked.is_empty() {
            let gpu = &mut self.state.gpus[usize::from(gpu)];
            let prefetcher = match &mut gpu.prefetcher_when_full {
                Some(prefetcher) if gpu.is_oversubscribed => prefetcher,
                _ => &mut gpu.prefetcher,
            };
            plan.prefetched = prefetcher.prefetch(&question, &mut self.state.random).difference(absent_elsewhere);
            plan.copied = plan.copied.union(plan.prefetched.intersection(read_mostly));
        }
        plan
    }

    /// Where one page that faulted is to be from now on.
    fn place(&mut self, plan: &mut Plan, me: Processor, id: BlockId, (page, access): (usize, Access), now: SimTime) {
        let block = self.state.blocks.get_mut(id);
        if block.share(me).arriving.contains(page) {
            plan.under_way.insert(page);
            return;
        }
        let state = block.state_of(page);
        let advice = block.advice.of(page);
        let hint = match &self.parameters.thrashing {
            Some(rules) => block.thrashing.hint(rules, page, me, advice.preferred_location, &self.reach, now),
            None => ThrashingHint::None,
        };
        let pin = match hint {
            ThrashingHint::Throttle(until) => {
                let first = plan.throttled_until.map_or(until, |first| first.min(until));
                plan.throttled_until = Some(first);
                self.state.counters.faults_throttled += 1;
                return;
            }
            ThrashingHint::Pin(location) => {
                self.state.counters.pages_pinned += 1;
                if let Some(end) = block.thrashing.next_unpinning() {
                    self.state.tasks.begin([Step::Until(end), Step::Unpin(id)], now);
                }
                Some(location)
            }
            ThrashingHint::None => None,
        };
        let placement = Placement::of(state, &advice, pin, access, me, &self.reach);
        let stays = placement.location == me && self.stays_remote(me, id, page, access, state);
        if placement.location == Processor::Host || stays {
            if !state.holders().contains(Processor::Host) {
                plan.to_host.insert(page);
            }
            plan.remote.insert(page);
        } else if state.holders().contains(me) {
            if access.writes() {
                plan.claimed.insert(page);
            }
        } else {
            plan.asked.insert(page);
            if placement.rule == PlacementRule::ReadMostly {
                plan.copied.insert(page);
            }
        }
    }

    /// Does a page stay in the host's memory, to be accessed from afar?
    fn stays_remote(&self, me: Processor, id: BlockId, page: usize, access: Access, state: PageState) -> bool {
        let Processor::Gpu(gpu) = me else { return false };
        if state != PageState::At(Processor::Host) {
            return false;
        }
        let gpu = &self.state.gpus[usize::from(gpu)];
        let leaf = leaf_number(id, page / LEAF_PAGES);
        let (accesses, trips) = (gpu.accesses.accesses(leaf), gpu.accesses.round_trips(leaf));
        let rule = &self.parameters.remote_access;
        !rule.migrates(access, accesses, trips, gpu.is_oversubscribed, &self.frames(gpu, 0))
    }

    /// Does what was planned for a block.
    fn carry_out(
        &mut self,
        task: TaskId,
        faulted_block: FaultedBlock<'_>,
        plan: &Plan,
        now: SimTime,
        out: &mut Outbox,
    ) {
        let FaultedBlock { gpu, block: id, faults, replay } = faulted_block;
        let me = Processor::Gpu(gpu);
        // The others are made where they are.
        let fetched = plan.prefetched.intersection(self.state.blocks.get(id).populated());
        self.count_prefetches((gpu, id), plan.prefetched, fetched);
        let is_new = self.count_faults(gpu, id, faults, plan);
        let costs = self.parameters.costs;
        let block_time = if is_new { costs.block + costs.new_block } else { costs.block };
        // Traces show that nothing of what the host does for a block overlaps the copies: these begin when it is done.
        let mapped = plan.coming().union(plan.remote).union(plan.claimed).len() as u64;
        let map_time = SimTime(costs.map.0 * mapped);
        let mut steps = vec![Step::Busy(BatchStage::Blocks, block_time), Step::Busy(BatchStage::Map, map_time)];
        let written: PageSet =
            faults.iter().filter(|(_, access)| access.writes()).map(|&(page, _)| usize::from(page)).collect();
        self.end_copies(task, id, me, plan.claimed, now, out);
        if !plan.to_host.is_empty() {
            let to_host = Migration {
                block: id,
                pages: plan.to_host,
                asked: PageSet::EMPTY,
                to: Processor::Host,
                copied: PageSet::EMPTY,
                replay: false,
                cause: Cause::Fault,
            };
            self.bring_pages(task, to_host, &mut steps, now, out);
        }
        let to_gpu = Migration {
            block: id,
            pages: plan.coming(),
            asked: plan.asked,
            to: me,
            copied: plan.copied,
            replay,
            cause: Cause::Fault,
        };
        self.bring_pages(task, to_gpu, &mut steps, now, out);
        let share = self.state.blocks.get_mut(id).share_mut(me);
        share.dirty = share.dirty.union(written.intersection(share.resident.union(share.arriving)));
        share.remote = share.remote.union(plan.remote);
        share.unused = share.unused.union(fetched).difference(plan.asked);
        if !plan.claimed.is_empty() {
            steps.push(Step::AwaitUnmapped);
            steps.push(Step::Map { gpu, block: id, pages: plan.claimed, aperture: Aperture::Device, replay });
        }
        if !plan.remote.is_empty() {
            self.state.counters.pages_mapped_remotely += plan.remote.len() as u64;
            if !plan.to_host.is_empty() {
                steps.push(Step::AwaitTransfers);
            }
            steps.push(Step::Map { gpu, block: id, pages: plan.remote, aperture: Aperture::Host, replay });
        }
        if !replay {
            // The block is held while the host works on it, and not until its pages have come.
            self.state.tasks.lock(task, id);
            steps.push(Step::Unlock(id));
        }
        if !plan.under_way.is_empty() && !replay {
            steps.push(Step::AwaitPages(id, plan.under_way));
        }
        if plan.coming().is_empty()
            && plan.remote.is_empty()
            && let Some(until) = plan.throttled_until
        {
            steps.push(Step::Until(until));
        }
        self.do_first(task, steps);
        self.note_thrashing(id, me, plan.asked.union(plan.prefetched), now);
    }

    /// Counts pages that the prefetcher chose; those that are `fetched` move, and no others.
    fn count_prefetches(&mut self, (gpu, id): (u8, BlockId), chosen: PageSet, fetched: PageSet) {
        let moved = fetched.len() as u64;
        self.state.counters.pages_prefetched += moved;
        self.worker(gpu).record.pages_prefetched += chosen.len() as u64;
        let allocation = self.state.blocks.get(id).allocation as usize;
        self.state.blocks.allocations[allocation].counters.pages_prefetched += moved;
    }

    /// Counts faults; true where the GPU had not faulted on the block before.
    fn count_faults(&mut self, gpu: u8, id: BlockId, faults: &[(u16, Access)], plan: &Plan) -> bool {
        let me = Processor::Gpu(gpu);
        let counters = &mut self.state.counters;
        counters.blocks_served += 1;
        counters.faults_on_pages_under_way += plan.under_way.len() as u64;
        let block = self.state.blocks.get_mut(id);
        let wanted = plan.asked.union(plan.remote).union(plan.claimed);
        for &(page, access) in faults {
            let page = usize::from(page);
            if wanted.contains(page) {
                counters.far_faults += 1;
                *match access {
                    Access::Prefetch | Access::Read => &mut counters.far_faults_read,
                    Access::Write => &mut counters.far_faults_write,
                    Access::Atomic => &mut counters.far_faults_atomic,
                } += 1;
            } else if block.share(me).resident.contains(page) {
                counters.faults_on_resident_pages += 1;
            }
        }
        let state = &mut self.state.gpus[usize::from(gpu)];
        for &(page, access) in faults {
            let page = usize::from(page);
            state.accesses.count_access(leaf_number(id, page / LEAF_PAGES));
            if block.share(me).resident.contains(page) {
                state.eviction.accessed(id, page, access);
            }
        }
        for (place, share) in block.shares.iter_mut().enumerate() {
            share.faults = if processor_at(place) == me { share.faults + faults.len() as u64 } else { 0 };
        }
        let allocation = block.allocation as usize;
        let allocation = &mut self.state.blocks.allocations[allocation].counters;
        allocation.far_faults += wanted.len() as u64;
        self.state.records.pages(id, wanted, |record| record.faults += 1);
        !std::mem::replace(&mut self.state.blocks.get_mut(id).share_mut(me).known, true)
    }

    /// The driver looks for pages over which processors fight.
    pub(super) fn note_thrashing(&mut self, id: BlockId, to: Processor, pages: PageSet, now: SimTime) {
        if let Some(rules) = &self.parameters.thrashing
            && !pages.is_empty()
        {
            self.state.blocks.get_mut(id).thrashing.migrated(rules, pages, to, now);
        }
    }

    /// Moves pages of a block to a memory: takes their frames, ends their mappings elsewhere but for `copied`, and adds the steps of
    /// the transfers to `steps`. What was nowhere is made there.
    pub(super) fn bring_pages(
        &mut self,
        task: TaskId,
        migration: Migration,
        steps: &mut Vec<Step>,
        now: SimTime,
        out: &mut Outbox,
    ) {
        let Migration { block: id, pages, asked, to, replay, cause, .. } = migration;
        if pages.is_empty() {
            return;
        }
        let costs = self.parameters.costs;
        let split = self.parameters.split;
        let new = pages.difference(self.state.blocks.get(id).populated());
        let sources = self.take_from_sources(task, Migration { pages: pages.difference(new), ..migration }, now, out);
        self.take_frames(id, pages, to);
        let unmapped: usize =
            sources.iter().filter(|source| source.0 == Processor::Host).map(|source| source.1.len()).sum();
        steps.push(Step::Busy(BatchStage::Allocate, SimTime(costs.allocate.0 * pages.len() as u64)));
        steps.push(Step::Busy(BatchStage::Unmap, SimTime(costs.unmap.0 * unmapped as u64)));
        steps.push(Step::AwaitUnmapped);
        steps.push(Step::Busy(BatchStage::Invalidate, costs.invalidate));
        self.state.counters.pages_populated += new.len() as u64;
        if let Processor::Gpu(gpu) = to {
            self.worker(gpu).pages_moved += pages.len() as u64;
        }
        let mut all: Vec<Transit> = Vec::new();
        for (from, from_there) in sources {
            let faulted = asked.intersection(from_there);
            all.extend(transfers(from_there, faulted, split).map(|transfer| Transit {
                block: id,
                pages: transfer.pages,
                from,
                to,
                faults: transfer.faulted as u32,
                replay,
                cause: if cause == Cause::Fault && transfer.faulted == 0 { Cause::Prefetch } else { cause },
            }));
        }
        all.sort_by_key(|transit| transit.pages.start);
        let one_by_one = self.parameters.prefetches_one_by_one && asked.is_empty();
        // All of them are given to the copy engine at once.
        steps.push(Step::Busy(BatchStage::Transfers, SimTime(costs.transfer.0 * all.len() as u64)));
        for transit in all {
            steps.push(Step::Start(transit));
            if one_by_one {
                steps.push(Step::AwaitTransfers);
            }
        }
        if !new.is_empty() {
            steps.push(Step::Arrive { block: id, pages: new, to, replay });
        }
    }

    /// Takes pages from where they are: the memories with the pages that each gives.
    fn take_from_sources(
        &mut self,
        task: TaskId,
        migration: Migration,
        now: SimTime,
        out: &mut Outbox,
    ) -> Vec<(Processor, PageSet)> {
        let Migration { block: id, pages, to, copied, .. } = migration;
        let mut left = pages;
        let mut sources = Vec::new();
        let places = self.state.blocks.get(id).shares.len();
        for place in 0..places {
            let from = processor_at(place);
            if from == to {
                continue;
            }
            let there = self.state.blocks.get(id).held_by(from);
            let given = left.intersection(there);
            left = left.difference(given);
            if !given.is_empty() {
                sources.push((from, given));
            }
            let ended = pages.intersection(there).difference(copied);
            match from {
                Processor::Host if self.parameters.keeps_host_copies() => {}
                Processor::Host => self.forget_on_host(task, id, ended, now, out),
                Processor::Gpu(gpu) => self.forget_on_gpu(task, gpu, id, ended, now, out),
            }
        }
        let both = pages.intersection(copied);
        self.state.counters.pages_duplicated += both.len() as u64;
        if !both.is_empty() {
            self.make_read_only(task, id, both, now, out);
        }
        let moved = pages.len() as u64;
        let block = self.state.blocks.get(id);
        let (allocation, evicted) = (block.allocation as usize, block.share(to).evicted);
        let allocation = &mut self.state.blocks.allocations[allocation].counters;
        match to {
            Processor::Host => {
                self.state.records.pages(id, pages, |record| record.to_host += 1);
                allocation.pages_to_host += moved;
                self.state.counters.pages_to_host += moved;
            }
            Processor::Gpu(_) => {
                let back = evicted.intersection(pages).len() as u64;
                self.state.records.pages(id, pages, |record| record.to_device += 1);
                allocation.pages_to_device += moved;
                allocation.pages_thrashed += back;
                self.state.counters.pages_to_device += moved;
                self.state.counters.pages_thrashed += back;
            }
        }
        sources
    }

    /// Pages leave the host's memory: GPUs that access them there no longer do.
    fn forget_on_host(&mut self, task: TaskId, id: BlockId, pages: PageSet, now: SimTime, out: &mut Outbox) {
        let block = self.state.blocks.get_mut(id);
        let host = block.share_mut(Processor::Host);
        host.resident = host.resident.difference(pages);
        host.arriving = host.arriving.difference(pages);
        self.end_remote(task, id, pages, now, out);
    }

    /// No GPU accesses these pages in the host's memory any more.
    pub(super) fn end_remote(&mut self, task: TaskId, id: BlockId, pages: PageSet, now: SimTime, out: &mut Outbox) {
        for gpu in 0..self.state.gpus.len() as u8 {
            let share = self.state.blocks.get_mut(id).share_mut(Processor::Gpu(gpu));
            let remote = share.remote.intersection(pages);
            share.remote = share.remote.difference(pages);
            self.unmap(task, gpu, id, remote, now, out);
        }
    }

    /// Pages leave a GPU's memory without being written back: they were given to somebody, or others have them.
    pub(super) fn forget_on_gpu(
        &mut self,
        task: TaskId,
        gpu: u8,
        id: BlockId,
        pages: PageSet,
        now: SimTime,
        out: &mut Outbox,
    ) {
        if pages.is_empty() {
            return;
        }
        let share = self.state.blocks.get_mut(id).share_mut(Processor::Gpu(gpu));
        share.resident = share.resident.difference(pages);
        share.dirty = share.dirty.difference(pages);
        self.state.counters.pages_prefetched_unused += share.unused.intersection(pages).len() as u64;
        share.unused = share.unused.difference(pages);
        let is_empty = share.resident.union(share.arriving).is_empty();
        let state = &mut self.state.gpus[usize::from(gpu)];
        state.used = state.used.saturating_sub(pages.len() as u64);
        state.eviction.left(id, pages);
        if is_empty {
            state.eviction.allocated(id, None);
        }
        self.unmap(task, gpu, id, pages, now, out);
    }

    /// Pages of which there are several copies are only read: whoever may write to one loses that mapping, and maps it again.
    fn make_read_only(&mut self, task: TaskId, id: BlockId, pages: PageSet, now: SimTime, out: &mut Outbox) {
        for gpu in 0..self.state.gpus.len() as u8 {
            let there = self.state.blocks.get(id).share(Processor::Gpu(gpu)).resident.intersection(pages);
            if !there.is_empty() {
                self.unmap(task, gpu, id, there, now, out);
                let map = Step::Map { gpu, block: id, pages: there, aperture: Aperture::Device, replay: false };
                self.state.tasks.begin([map], now);
            }
        }
    }

    /// Other copies of pages end because a processor writes to its own.
    pub(super) fn end_copies(
        &mut self,
        task: TaskId,
        id: BlockId,
        owner: Processor,
        pages: PageSet,
        now: SimTime,
        out: &mut Outbox,
    ) {
        if pages.is_empty() {
            return;
        }
        for place in 0..self.state.blocks.get(id).shares.len() {
            let other = processor_at(place);
            let ended = self.state.blocks.get(id).held_by(other).intersection(pages);
            if other == owner || ended.is_empty() {
                continue;
            }
            self.state.counters.duplicates_ended += ended.len() as u64;
            match other {
                Processor::Host => self.forget_on_host(task, id, ended, now, out),
                Processor::Gpu(gpu) => self.forget_on_gpu(task, gpu, id, ended, now, out),
            }
        }
    }

    /// Pages get frames where they go, and are on their way.
    fn take_frames(&mut self, id: BlockId, pages: PageSet, to: Processor) {
        if pages.is_empty() {
            return;
        }
        let share = self.state.blocks.get_mut(id).share_mut(to);
        share.arriving = share.arriving.union(pages);
        if let Processor::Gpu(gpu) = to {
            let gpu = &mut self.state.gpus[usize::from(gpu)];
            gpu.used += pages.len() as u64;
            gpu.most_used = gpu.most_used.max(gpu.used);
            gpu.eviction.allocated(id, Some(ChunkUse::Used));
        }
    }
}

/// The first `count` pages of a set, and the others.
fn split_at(pages: PageSet, count: usize) -> (PageSet, PageSet) {
    let first: PageSet = pages.iter().take(count).collect();
    (first, pages.difference(first))
}

/// An entry of a fault buffer as the policies see it.
fn fault_of(gpu: u8, entry: &balar_protocol::migration::FaultEntry) -> Fault {
    let access = match entry.access {
        PageAccess::Read => Access::Read,
        PageAccess::Write => Access::Write,
        PageAccess::Atomic => Access::Atomic,
    };
    Fault { space: 0, gpu, page: entry.page / PAGE_BYTES, access }
}
