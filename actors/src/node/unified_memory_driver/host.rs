//! What the host CPU asks: allocations, advice, prefetches, touches of the program, synchronisations.

use super::UnifiedMemoryDriver;
use super::blocks::{processor, processor_at};
use super::record::Cause;
use super::service::Migration;
use super::tasks::{Flow, Step, TaskId};
use crate::engine::Outbox;
use crate::unified_memory::batch::BatchStage;
use crate::unified_memory::prefetch::BlockFaults;
use crate::unified_memory::residency::{PageState, Placement, PlacementRule};
use crate::unified_memory::synchronisation;
use crate::unified_memory::{Access, BlockId, PAGE_BYTES, PageSet, Processor};
use balar_protocol::managed::{AdviceChange, HostPages, ManagedMessage};
use balar_protocol::migration::MigrationMessage;
use balar_protocol::translation::Aperture;
use balar_protocol::{ProcessId, SimTime};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Where managed memory is before anybody touches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum InitialResidency {
    /// Nowhere: it is made where it is first touched.
    #[default]
    Nowhere,
    /// On the host (UVMSmart).
    Host,
}

/// When pages come back that the host accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostAccess {
    /// When it accesses them.
    #[default]
    Lazy,
    /// All that GPUs have changed, when the program synchronises with the device (UVMSmart). The host keeps its copies of the others.
    Eager,
}

impl UnifiedMemoryDriver {
    /// The host CPU asks.
    pub(super) fn asked(&mut self, message: ManagedMessage, now: SimTime, out: &mut Outbox) {
        match message {
            ManagedMessage::Allocate { address, bytes } => self.allocate(address, bytes, now, out),
            ManagedMessage::Free { address } => self.free(address, now, out),
            ManagedMessage::Advise { address, bytes, advice } => self.advise(address, bytes, advice, now, out),
            ManagedMessage::Prefetch { address, bytes, target, id } => {
                self.prefetch(address..address.saturating_add(bytes), processor(target), id, now);
            }
            ManagedMessage::Touch { address, bytes, write, id } => {
                let touch = Step::Touch { address, end: address.saturating_add(bytes), write };
                let last = address.saturating_add(bytes.saturating_sub(1));
                self.state.tasks.begin([touch, Step::TellTouched { id, address: last }], now);
            }
            ManagedMessage::Synchronise { id, process } => self.synchronise(id, process, now, out),
            ManagedMessage::AssumeHostAccesses { address, process } => self.assume_host_accesses(address, process),
            ManagedMessage::Reserved { gpu, bytes } => {
                if let Some(gpu) = self.state.gpus.get_mut(usize::from(gpu)) {
                    gpu.reserved = bytes;
                }
            }
            ManagedMessage::Done { .. } | ManagedMessage::Touched { .. } => {}
        }
    }

    fn allocate(&mut self, address: u64, bytes: u64, now: SimTime, out: &mut Outbox) {
        let Some(number) = self.state.blocks.allocate(address, bytes, 1 + self.state.gpus.len()) else { return };
        let allocation = &mut self.state.blocks.allocations[number as usize];
        allocation.counters.bytes = bytes;
        let blocks = allocation.blocks.clone();
        let mut rounded = 0;
        for id in blocks.map(BlockId) {
            let block = self.state.blocks.get_mut(id);
            rounded += block.all().len() as u64 * PAGE_BYTES;
            if self.parameters.initial_residency == InitialResidency::Host {
                let all = block.all();
                block.share_mut(Processor::Host).resident = all;
            }
        }
        for gpu in 0..self.state.gpus.len() as u8 {
            self.send_to_gmmu(gpu, MigrationMessage::Manage { address, bytes: rounded, managed: true }, now, out);
        }
    }

    fn free(&mut self, address: u64, now: SimTime, out: &mut Outbox) {
        let Some(number) = self.state.blocks.free(address) else { return };
        let blocks = self.state.blocks.allocations[number as usize].blocks.clone();
        let mut rounded = 0;
        for id in blocks.map(BlockId) {
            let block = self.state.blocks.get_mut(id);
            rounded += block.all().len() as u64 * PAGE_BYTES;
            for gpu in 0..self.state.gpus.len() {
                let share = &mut block.shares[1 + gpu];
                let pages = share.resident;
                share.remote = PageSet::EMPTY;
                let state = &mut self.state.gpus[gpu];
                // Those on their way give their frames back as they arrive.
                state.used = state.used.saturating_sub(pages.len() as u64);
                state.eviction.left(id, pages);
                state.eviction.allocated(id, None);
            }
        }
        for gpu in 0..self.state.gpus.len() as u8 {
            self.send_to_gmmu(gpu, MigrationMessage::Manage { address, bytes: rounded, managed: false }, now, out);
        }
        self.state.tasks.wake_waiting(now);
    }

    /// The blocks that overlap a range, with their pages there.
    fn blocks_in(&self, range: Range<u64>) -> Vec<(BlockId, PageSet)> {
        let mut found = Vec::new();
        let mut address = range.start;
        while let Some((id, pages)) = self.state.blocks.first_in(address, range.end) {
            let block = self.state.blocks.get(id);
            address = block.address_of(block.pages);
            found.push((id, pages));
        }
        found
    }

    fn advise(&mut self, address: u64, bytes: u64, advice: AdviceChange, now: SimTime, out: &mut Outbox) {
        for (id, pages) in self.blocks_in(address..address.saturating_add(bytes)) {
            let block = self.state.blocks.get_mut(id);
            block.advice.change(pages, advice);
            block.thrashing.forget(pages);
            if advice == AdviceChange::ReadMostly(false) {
                self.end_duplicates(id, pages, now, out);
            }
        }
    }

    /// Pages are mostly read no longer: one copy stays, a GPU's rather than the host's.
    fn end_duplicates(&mut self, id: BlockId, pages: PageSet, now: SimTime, out: &mut Outbox) {
        let task = self.state.tasks.begin([], now);
        for place in (1..self.state.blocks.get(id).shares.len()).rev() {
            let owner = processor_at(place);
            let block = self.state.blocks.get(id);
            let there = block.share(owner).resident.intersection(pages).intersection(block.elsewhere(owner));
            self.end_copies(task, id, owner, there, now, out);
            if let Processor::Gpu(gpu) = owner {
                let map = Step::Map { gpu, block: id, pages: there, aperture: Aperture::Device, replay: false };
                self.do_first(task, vec![map]);
            }
        }
    }

    fn prefetch(&mut self, range: Range<u64>, target: Processor, id: u32, now: SimTime) {
        self.state.counters.user_prefetches += 1;
        let mut steps: Vec<Step> = Vec::new();
        for (block, pages) in self.blocks_in(range) {
            steps.push(Step::Bring { block, pages, target, cause: Cause::Program });
        }
        steps.extend([Step::AwaitTransfers, Step::Tell(id)]);
        self.state.tasks.begin(steps, now);
    }

    /// Pages of a block are brought somewhere because the program asked for it, or has waited for its GPUs.
    pub(super) fn bring(
        &mut self,
        task: TaskId,
        (id, pages): (BlockId, PageSet),
        target: Processor,
        cause: Cause,
        now: SimTime,
        out: &mut Outbox,
    ) -> Flow {
        let block = self.state.blocks.get_mut(id);
        if !block.is_live {
            return Flow::On;
        }
        if !block.under_way().intersection(pages).is_empty() {
            return Flow::Wait;
        }
        block.thrashing.forget(pages);
        let pages = pages.difference(block.share(target).resident);
        let copied = pages.intersection(block.advice.read_mostly);
        if let Processor::Gpu(gpu) = target
            && !self.make_room(task, gpu, pages.len() as u64, now, out)
        {
            // What never fits stays where it is.
            return if self.is_stuck(gpu) { Flow::On } else { Flow::Wait };
        }
        let count = pages.len() as u64;
        match cause {
            Cause::Synchronisation => self.state.counters.pages_synchronised += count,
            _ => self.state.counters.pages_user_prefetched += count,
        }
        let costs = self.parameters.costs;
        let mut steps = vec![Step::Busy(BatchStage::Blocks, costs.block)];
        let asked = PageSet::EMPTY;
        let migration = Migration { block: id, pages, asked, to: target, copied, replay: true, cause };
        self.bring_pages(task, migration, &mut steps, now, out);
        steps.push(Step::Busy(BatchStage::Map, SimTime(costs.map.0 * pages.len() as u64)));
        self.do_first(task, steps);
        Flow::On
    }

    /// A thread of the program reads or writes a range, page after page; it faults where a page is not on the host.
    pub(super) fn touch(
        &mut self,
        task: TaskId,
        range: Range<u64>,
        write: bool,
        now: SimTime,
        out: &mut Outbox,
    ) -> Flow {
        let Some((id, pages)) = self.state.blocks.first_in(range.start, range.end) else { return Flow::On };
        let block = self.state.blocks.get(id);
        let next = block.address_of(block.pages);
        let rest = Step::Touch { address: next, end: range.end, write };
        let host = block.share(Processor::Host);
        let mut missing = pages.difference(host.resident);
        if write && !self.parameters.keeps_host_copies() {
            missing = missing.union(pages.intersection(block.elsewhere(Processor::Host)));
        }
        if self.parameters.keeps_host_copies() {
            if write {
                // Whoever is eager assumes that a program writes before its kernels, or after they are done.
                let ended = pages.intersection(block.elsewhere(Processor::Host));
                for gpu in 0..self.state.gpus.len() as u8 {
                    let there = ended.intersection(self.state.blocks.get(id).share(Processor::Gpu(gpu)).resident);
                    self.forget_on_gpu(task, gpu, id, there, now, out);
                }
            }
            let host = self.state.blocks.get_mut(id).share_mut(Processor::Host);
            host.resident = host.resident.union(pages);
            self.do_first(task, vec![Step::AwaitUnmapped, rest]);
            return Flow::On;
        }
        let Some(first) = missing.first_from(0) else {
            self.do_first(task, vec![rest]);
            return Flow::On;
        };
        if block.under_way().contains(first) {
            return Flow::Wait;
        }
        let again = Step::Touch { address: block.address_of(first), end: range.end, write };
        let steps = if block.populated().contains(first) {
            self.host_fault(task, id, first, write, now, out)
        } else {
            // The first touch of all pages of the range that follow and are nowhere.
            let new = missing.difference(block.populated());
            let until = PageSet::FULL.difference(new).first_from(first).unwrap_or(block.pages);
            let new = new.intersection(PageSet::range(first..until));
            let share = self.state.blocks.get_mut(id).share_mut(Processor::Host);
            share.resident = share.resident.union(new);
            self.state.counters.pages_populated += new.len() as u64;
            vec![Step::HostBusy(SimTime(self.parameters.host_populate_time.0 * new.len() as u64))]
        };
        self.do_first(task, steps.into_iter().chain([again]).collect());
        Flow::On
    }

    /// The host faults on a page that is on a GPU, or of which others have copies: it comes, with what the prefetcher brings besides.
    fn host_fault(
        &mut self,
        task: TaskId,
        id: BlockId,
        page: usize,
        write: bool,
        now: SimTime,
        out: &mut Outbox,
    ) -> Vec<Step> {
        self.state.counters.host_faults += 1;
        let access = if write { Access::Write } else { Access::Read };
        let block = self.state.blocks.get_mut(id);
        let advice = block.advice.of(page);
        let state = block.state_of(page);
        let placement = Placement::of(state, &advice, None, access, Processor::Host, &self.reach);
        let asked: PageSet = std::iter::once(page).collect();
        let host = block.share_mut(Processor::Host);
        host.faults += 1;
        let (resident, faults) = (host.resident, host.faults);
        block.shares.iter_mut().skip(1).for_each(|share| share.faults = 0);
        let allocation = block.allocation as usize;
        let block = self.state.blocks.get(id);
        let on_gpus = block.elsewhere(Processor::Host);
        let mut at_preferred = PageSet::EMPTY;
        for (place, share) in block.shares.iter().enumerate().skip(1) {
            at_preferred =
                at_preferred.union(share.resident.intersection(block.advice.preferred_at(processor_at(place))));
        }
        let question = BlockFaults {
            block: 0..block.pages,
            resident,
            faulted: asked,
            thrashing: block.thrashing.thrashing_pages(),
            mapped_on_host: resident,
            at_preferred_location: at_preferred,
            first_touch_at_preferred_location: false,
            fault_count: faults,
        };
        let (under_way, read_mostly) = (block.under_way(), block.advice.read_mostly);
        let prefetched = self.host_prefetcher.prefetch(&question, &mut self.state.random);
        // What is nowhere is not made by a prefetch of the host.
        let prefetched = prefetched.intersection(on_gpus).difference(under_way);
        self.state.blocks.allocations[allocation].counters.host_faults += 1;
        let fault = Step::HostBusy(self.parameters.host_fault_time);
        let mut steps = vec![fault];
        let copied = match placement.rule {
            PlacementRule::ReadMostly => asked.union(prefetched.intersection(read_mostly)),
            _ => prefetched.intersection(read_mostly),
        };
        if matches!(state, PageState::Duplicated(_)) && resident.contains(page) {
            // The host has a copy, and writes to it.
            self.end_copies(task, id, Processor::Host, asked, now, out);
            steps.push(Step::AwaitUnmapped);
            return steps;
        }
        let pages = asked.union(prefetched);
        let mut moves = Vec::new();
        let (to, cause) = (Processor::Host, Cause::HostFault);
        let migration = Migration { block: id, pages, asked, to, copied, replay: false, cause };
        self.bring_pages(task, migration, &mut moves, now, out);
        self.state.records.pages(id, asked, |record| record.host_faults += 1);
        // What a fault of the host costs was measured as a whole.
        steps.extend(moves.into_iter().filter(|step| !matches!(step, Step::Busy(..))));
        steps.push(Step::AwaitTransfers);
        self.note_thrashing(id, Processor::Host, pages, now);
        steps
    }

    /// The program has waited for its GPUs. Where pages come back then, what GPUs have changed comes in transfers of the sizes that
    /// UVMSmart assumes, one after the other.
    fn synchronise(&mut self, id: u32, process: ProcessId, now: SimTime, out: &mut Outbox) {
        let mut steps = Vec::new();
        if self.parameters.host_access == HostAccess::Eager {
            for gpu in 0..self.state.gpus.len() as u8 {
                steps.extend(self.bring_back(gpu, now, out));
            }
            steps.push(Step::Synchronised { began: now });
        }
        steps.extend(self.bring_back_assumed(process));
        steps.push(Step::Tell(id));
        self.state.tasks.begin(steps, now);
    }

    /// Nobody tells what the host accesses of an allocation: what is nowhere is made on the host, as by a program that writes all of it.
    fn assume_host_accesses(&mut self, address: u64, process: ProcessId) {
        let Some(id) = self.state.blocks.at(address) else { return };
        let number = self.state.blocks.get(id).allocation as usize;
        let allocation = &mut self.state.blocks.allocations[number];
        allocation.assumed_by = Some(process);
        for id in allocation.blocks.clone().map(BlockId) {
            let block = self.state.blocks.get_mut(id);
            let new = block.all().difference(block.populated());
            let share = block.share_mut(Processor::Host);
            share.resident = share.resident.union(new);
            self.state.counters.pages_populated += new.len() as u64;
        }
    }

    /// Steps after which the host has all that it is assumed to access for a process, and GPUs have no copies of it.
    fn bring_back_assumed(&self, process: ProcessId) -> Vec<Step> {
        let mut steps = Vec::new();
        let allocations = self.state.blocks.allocations.iter();
        for allocation in allocations.filter(|allocation| allocation.is_live && allocation.assumed_by == Some(process))
        {
            for id in allocation.blocks.clone().map(BlockId) {
                let block = self.state.blocks.get(id);
                let away = block.all().difference(block.share(Processor::Host).resident);
                if !away.is_empty() {
                    let (target, cause) = (Processor::Host, Cause::Synchronisation);
                    steps.push(Step::Bring { block: id, pages: away, target, cause });
                }
            }
            if self.parameters.keeps_host_copies() {
                steps.push(Step::AwaitTransfers);
                let (address, end) = (allocation.address, allocation.address + allocation.bytes);
                steps.push(Step::Touch { address, end, write: true });
            }
        }
        steps.push(Step::AwaitTransfers);
        steps
    }

    /// The pages around an address that the host may access now: those of its block that are there, with copies elsewhere or without as
    /// the one that holds the address.
    pub(super) fn host_pages(&self, address: u64) -> Option<HostPages> {
        let block = self.state.blocks.get(self.state.blocks.at(address)?);
        let page = ((address - block.address) / PAGE_BYTES) as usize;
        let (resident, elsewhere) = (block.share(Processor::Host).resident, block.elsewhere(Processor::Host));
        let writable = !elsewhere.contains(page);
        let alike = if writable { resident.difference(elsewhere) } else { resident.intersection(elsewhere) };
        let run = alike.runs().find(|run| run.contains(&page))?;
        let (address, bytes) = block.range_of(&run);
        Some(HostPages { address, bytes, writable })
    }

    /// Steps that bring back all that a GPU has changed.
    fn bring_back(&mut self, gpu: u8, now: SimTime, out: &mut Outbox) -> Vec<Step> {
        let me = Processor::Gpu(gpu);
        let unmapping = self.state.tasks.begin([], now);
        let live: Vec<BlockId> = self.state.blocks.live().collect();
        let (mut pages, mut first) = (0, 0);
        for id in live {
            let share = self.state.blocks.get(id).share(me);
            let dirty = share.dirty.intersection(share.resident);
            if dirty.is_empty() {
                continue;
            }
            self.forget_on_gpu(unmapping, gpu, id, dirty, now, out);
            let host = self.state.blocks.get_mut(id).share_mut(Processor::Host);
            host.resident = host.resident.union(dirty);
            if pages == 0 {
                first = self.state.blocks.get(id).address_of(dirty.first_from(0).unwrap_or(0));
            }
            pages += dirty.len() as u64;
            self.state.records.pages(id, dirty, |record| record.to_host += 1);
        }
        let state = &mut self.state.gpus[usize::from(gpu)];
        state.is_oversubscribed = false;
        state.accesses.reset();
        if pages == 0 {
            return Vec::new();
        }
        self.state.counters.synchronisations += 1;
        self.state.counters.pages_synchronised += pages;
        self.state.counters.pages_to_host += pages;
        let mut steps = Vec::new();
        let mut address = first;
        for bytes in synchronisation::transfers(pages * PAGE_BYTES) {
            steps.push(Step::Carry { gpu, bytes, address });
            address += bytes;
            steps.push(Step::AwaitTransfers);
        }
        steps
    }
}
