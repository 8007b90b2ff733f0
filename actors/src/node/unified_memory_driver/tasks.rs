//! What the driver does, step by step: a task is what one thread of the host does, a batch of faults say, and several run at once.

use super::UnifiedMemoryDriver;
use super::record::{Cause, TransferRecord};
use crate::engine::Outbox;
use crate::unified_memory::batch::BatchStage;
use crate::unified_memory::{Access, BlockId, PageSet, Processor};
use balar_protocol::SimTime;
use balar_protocol::managed::ManagedMessage;
use balar_protocol::migration::{Direction, MigrationMessage};
use balar_protocol::translation::Aperture;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// The number of a task.
pub(super) type TaskId = u32;

/// Pages on their way between two memories.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Transit {
    pub block: BlockId,
    pub pages: Range<usize>,
    pub from: Processor,
    pub to: Processor,
    /// How many of the pages were asked for.
    pub faults: u32,
    /// Requests that wait for them go on as soon as they are there.
    pub replay: bool,
    pub cause: Cause,
}

/// What a link carries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Carried {
    /// Pages.
    Pages(Transit),
    /// Bytes of a synchronisation, whose pages are on the host already.
    Bytes { gpu: u8, bytes: u64, address: u64 },
}

/// What of a batch is of one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultedBlock<'a> {
    /// The GPU that faulted.
    pub gpu: u8,
    pub block: BlockId,
    /// The pages, and what each was to be accessed for.
    pub faults: &'a [(u16, Access)],
    /// Requests that wait for its pages go on as soon as they are there.
    pub replay: bool,
}

/// What a task does next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// The host computes.
    Busy(BatchStage, SimTime),
    /// The program's thread is in a fault of its own.
    HostBusy(SimTime),
    /// Nothing happens before this time.
    Until(SimTime),
    /// Faults of a GPU are fetched, and then served.
    Fetch(u8),
    /// The faults of one block are served.
    Serve { gpu: u8, block: BlockId, faults: Vec<(u16, Access)>, replay: bool },
    /// All transfers that the task has begun are over.
    AwaitTransfers,
    /// All TLBs have dropped what the task has unmapped.
    AwaitUnmapped,
    /// None of these pages is on its way.
    AwaitPages(BlockId, PageSet),
    /// Pages begin to move.
    Start(Transit),
    /// Pages that were made are there.
    Arrive { block: BlockId, pages: PageSet, to: Processor, replay: bool },
    /// So many bytes cross the link from a GPU.
    Carry { gpu: u8, bytes: u64, address: u64 },
    /// Other threads may serve faults of the block.
    Unlock(BlockId),
    /// Pages of a block that were pinned for long enough are let go.
    Unpin(BlockId),
    /// Pages may be accessed by a GPU.
    Map { gpu: u8, block: BlockId, pages: PageSet, aperture: Aperture, replay: bool },
    /// A GPU tries again what has faulted.
    Replay(u8),
    /// A batch is over that began at this time.
    BatchOver { gpu: u8, began: SimTime, is_last: bool },
    /// Pages are brought somewhere because the program asked for it, or has waited for its GPUs.
    Bring { block: BlockId, pages: PageSet, target: Processor, cause: Cause },
    /// The program's thread goes on with the rest of a range.
    Touch { address: u64, end: u64, write: bool },
    /// Frames of a GPU are free again.
    Release { gpu: u8, pages: u64 },
    /// Pages that a synchronisation has brought back are on the host.
    Synchronised { began: SimTime },
    /// The host CPU is told that it is over.
    Tell(u32),
    /// The host CPU is told that a touch is over, and which pages around the address it may access.
    TellTouched { id: u32, address: u64 },
}

/// What one thread of the host does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Task {
    pub steps: VecDeque<Step>,
    /// Its transfers under way.
    pub transfers: u32,
    /// Its orders to unmap that are not yet answered.
    pub unmaps: u32,
    /// Since when it waits for room.
    pub waits_for_room: Option<SimTime>,
}

/// How a task goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// With the next step.
    On,
    /// With the next step, at this time.
    At(SimTime),
    /// With the same step, when something has happened.
    Wait,
    /// With the next step, when an answer comes that wakes it.
    Answered,
}

/// The lock of a block: of the threads that serve faults, one at a time works on it (NVIDIA's driver: `uvm_va_block_t.lock`). What the program
/// asks for does not wait for it.
#[derive(Debug, Serialize, Deserialize)]
struct Lock {
    holder: TaskId,
    /// Tasks that wait for it, in the order in which they came.
    waiting: Vec<TaskId>,
}

/// All tasks and what they wait for.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Tasks {
    tasks: BTreeMap<TaskId, Task>,
    next: TaskId,
    /// Tasks by when they go on.
    due: BTreeSet<(SimTime, u64, TaskId)>,
    order: u64,
    /// Tasks that wait for pages, transfers or room: they look again when something has arrived.
    waiting: BTreeSet<TaskId>,
    /// Blocks on which the task of a batch works.
    locks: BTreeMap<BlockId, Lock>,
    transits: BTreeMap<u32, (TaskId, Carried)>,
    next_transit: u32,
    unmaps: BTreeMap<u32, TaskId>,
    next_unmap: u32,
}

impl Tasks {
    /// A task begins at `now`.
    pub fn begin(&mut self, steps: impl IntoIterator<Item = Step>, now: SimTime) -> TaskId {
        let id = self.next;
        self.next = id.wrapping_add(1);
        let steps = steps.into_iter().collect();
        self.tasks.insert(id, Task { steps, ..Task::default() });
        self.wake_at(id, now);
        id
    }

    /// A task goes on at this time.
    pub fn wake_at(&mut self, id: TaskId, at: SimTime) {
        self.due.insert((at, self.order, id));
        self.order += 1;
    }

    /// When the next task goes on.
    pub fn next_due(&self) -> Option<SimTime> {
        self.due.first().map(|&(at, ..)| at)
    }

    /// The task that goes on first.
    pub fn take_due(&mut self) -> Option<(SimTime, TaskId)> {
        self.due.pop_first().map(|(at, _, id)| (at, id))
    }

    /// Something has arrived: all that wait look again.
    pub fn wake_waiting(&mut self, now: SimTime) {
        for id in std::mem::take(&mut self.waiting) {
            self.wake_at(id, now);
        }
    }

    /// Is a block held by another task than `id`? Then that one goes on when the block is let go.
    pub fn waits_for_lock(&mut self, id: TaskId, block: BlockId) -> bool {
        let Some(lock) = self.locks.get_mut(&block).filter(|lock| lock.holder != id) else { return false };
        lock.waiting.push(id);
        true
    }

    /// A task holds a block from now on, which nobody else does.
    pub fn lock(&mut self, id: TaskId, block: BlockId) {
        self.locks.entry(block).or_insert_with(|| Lock { holder: id, waiting: Vec::new() });
    }

    /// A block is let go: who waits for it looks again.
    fn unlock(&mut self, block: BlockId, now: SimTime) {
        for id in self.locks.remove(&block).into_iter().flat_map(|lock| lock.waiting) {
            self.wake_at(id, now);
        }
    }

    pub fn get_mut(&mut self, id: TaskId) -> Option<&mut Task> {
        self.tasks.get_mut(&id)
    }

    /// An order to unmap gets a number; the task waits for its answer.
    pub fn unmap(&mut self, id: TaskId) -> u32 {
        let number = self.next_unmap;
        self.next_unmap = number.wrapping_add(1);
        self.unmaps.insert(number, id);
        if let Some(task) = self.tasks.get_mut(&id) {
            task.unmaps += 1;
        }
        number
    }

    /// An order to unmap is answered.
    pub fn unmapped(&mut self, number: u32) {
        let task = self.unmaps.remove(&number).and_then(|id| self.tasks.get_mut(&id));
        if let Some(task) = task {
            task.unmaps = task.unmaps.saturating_sub(1);
        }
    }

    /// A transfer gets a number.
    fn transfer(&mut self, id: TaskId, transit: Carried) -> u32 {
        let number = self.next_transit;
        self.next_transit = number.wrapping_add(1);
        self.transits.insert(number, (id, transit));
        number
    }

    /// A transfer is over.
    pub fn transferred(&mut self, number: u32) -> Option<(TaskId, Carried)> {
        self.transits.remove(&number)
    }

    /// What is not done, in words.
    pub fn outstanding(&self) -> Option<String> {
        let (id, task) = self.tasks.first_key_value()?;
        let step = task.steps.front().map_or_else(|| "its end".to_owned(), |step| format!("{step:?}"));
        Some(format!("{} tasks of the driver; the oldest, {id}, is before {step}", self.tasks.len()))
    }
}

impl UnifiedMemoryDriver {
    /// A task goes on at `now`, as far as it can.
    pub(super) fn run_task(&mut self, id: TaskId, now: SimTime, out: &mut Outbox) {
        loop {
            let Some(task) = self.state.tasks.tasks.get_mut(&id) else { return };
            let Some(step) = task.steps.pop_front() else {
                if task.transfers == 0 && task.unmaps == 0 {
                    self.state.tasks.tasks.remove(&id);
                } else {
                    self.state.tasks.waiting.insert(id);
                }
                return;
            };
            match self.take_step(id, &step, now, out) {
                Flow::On => {}
                Flow::At(at) => return self.state.tasks.wake_at(id, at),
                Flow::Wait => {
                    if let Some(task) = self.state.tasks.tasks.get_mut(&id) {
                        task.steps.push_front(step);
                    }
                    self.state.tasks.waiting.insert(id);
                    return;
                }
                Flow::Answered => return,
            }
        }
    }

    fn take_step(&mut self, id: TaskId, step: &Step, now: SimTime, out: &mut Outbox) -> Flow {
        match step {
            Step::Busy(stage, time) => {
                self.state.counters.count_stage(*stage, *time);
                if *time == SimTime::ZERO { Flow::On } else { Flow::At(now + *time) }
            }
            Step::HostBusy(time) => {
                self.state.counters.host_fault_time += time.0;
                if *time == SimTime::ZERO { Flow::On } else { Flow::At(now + *time) }
            }
            Step::Until(time) => {
                if *time <= now {
                    Flow::On
                } else {
                    Flow::At(*time)
                }
            }
            Step::Fetch(gpu) => {
                self.fetch(id, *gpu, now, out);
                Flow::Answered
            }
            Step::Serve { gpu, block, faults, replay } => {
                let faulted_block = FaultedBlock { gpu: *gpu, block: *block, faults, replay: *replay };
                self.serve(id, faulted_block, now, out)
            }
            Step::AwaitTransfers => self.wait_unless(id, |task| task.transfers == 0),
            Step::AwaitUnmapped => self.wait_unless(id, |task| task.unmaps == 0),
            Step::AwaitPages(block, pages) => {
                let under_way = self.state.blocks.get(*block).under_way();
                if under_way.intersection(*pages).is_empty() { Flow::On } else { Flow::Wait }
            }
            Step::Start(transit) => {
                self.start(id, transit.clone(), now, out);
                Flow::On
            }
            Step::Arrive { block, pages, to, replay } => {
                self.arrive(*block, *pages, *to, *replay, now, out);
                self.state.tasks.wake_waiting(now);
                Flow::On
            }
            Step::Carry { gpu, bytes, address } => {
                if let Some(task) = self.state.tasks.get_mut(id) {
                    task.transfers += 1;
                }
                let number =
                    self.state.tasks.transfer(id, Carried::Bytes { gpu: *gpu, bytes: *bytes, address: *address });
                let (bytes, direction) = (*bytes, Direction::ToHost);
                let message = MigrationMessage::Transfer { id: number, bytes, direction, faults: 0 };
                self.send_to_link(*gpu, message, now, out);
                Flow::On
            }
            Step::Unlock(block) => {
                self.state.tasks.unlock(*block, now);
                Flow::On
            }
            Step::Unpin(block) => {
                let pages = self.state.blocks.get_mut(*block).thrashing.unpin(now);
                self.end_remote(id, *block, pages, now, out);
                Flow::On
            }
            Step::Map { gpu, block, pages, aperture, replay } => {
                self.map(*gpu, *block, *pages, (*aperture, *replay), now, out);
                Flow::On
            }
            Step::Replay(gpu) => {
                self.replay(*gpu, now, out);
                Flow::On
            }
            Step::BatchOver { gpu, began, is_last } => {
                self.batch_over(id, *gpu, (*began, *is_last), now);
                Flow::On
            }
            Step::Bring { block, pages, target, cause } => self.bring(id, (*block, *pages), *target, *cause, now, out),
            Step::Touch { address, end, write } => self.touch(id, *address..*end, *write, now, out),
            Step::Release { gpu, pages } => {
                let gpu = &mut self.state.gpus[usize::from(*gpu)];
                gpu.used = gpu.used.saturating_sub(*pages);
                gpu.writing_back = gpu.writing_back.saturating_sub(*pages);
                self.state.tasks.wake_waiting(now);
                Flow::On
            }
            Step::Synchronised { began } => {
                self.state.counters.synchronisation_time += now.0 - began.0;
                Flow::On
            }
            Step::Tell(number) => {
                self.tell(ManagedMessage::Done { id: *number }, now, out);
                Flow::On
            }
            Step::TellTouched { id, address } => {
                self.tell(ManagedMessage::Touched { id: *id, pages: self.host_pages(*address) }, now, out);
                Flow::On
            }
        }
    }

    fn wait_unless(&self, id: TaskId, ready: impl Fn(&Task) -> bool) -> Flow {
        match self.state.tasks.tasks.get(&id) {
            Some(task) if !ready(task) => Flow::Wait,
            _ => Flow::On,
        }
    }

    /// Steps that come before all that a task has left.
    pub(super) fn do_first(&mut self, id: TaskId, steps: Vec<Step>) {
        if let Some(task) = self.state.tasks.get_mut(id) {
            for step in steps.into_iter().rev() {
                task.steps.push_front(step);
            }
        }
    }

    /// Pages begin to move: their frames are taken, and they are on their way.
    fn start(&mut self, id: TaskId, transit: Transit, now: SimTime, out: &mut Outbox) {
        if let Some(task) = self.state.tasks.get_mut(id) {
            task.transfers += 1;
        }
        self.carry(id, transit, now, out);
    }

    /// The next hop of pages: from one GPU to another they go through the host's memory.
    fn carry(&mut self, id: TaskId, transit: Transit, now: SimTime, out: &mut Outbox) {
        let (gpu, direction) = match (transit.from, transit.to) {
            (Processor::Gpu(from), _) => (from, Direction::ToHost),
            (Processor::Host, Processor::Gpu(to)) => (to, Direction::ToDevice),
            (Processor::Host, Processor::Host) => return,
        };
        let (_, bytes) = self.state.blocks.get(transit.block).range_of(&transit.pages);
        let faults = if direction == Direction::ToDevice { transit.faults } else { 0 };
        let number = self.state.tasks.transfer(id, Carried::Pages(transit));
        let message = MigrationMessage::Transfer { id: number, bytes, direction, faults };
        self.send_to_link(gpu, message, now, out);
    }

    /// A link has carried pages.
    pub(super) fn transferred(&mut self, number: u32, began: SimTime, now: SimTime, out: &mut Outbox) {
        let Some((id, carried)) = self.state.tasks.transferred(number) else { return };
        self.record_transfer(&carried, began, now);
        if let Carried::Pages(transit) = carried {
            if let (Processor::Gpu(_), Processor::Gpu(_)) = (transit.from, transit.to) {
                return self.carry(id, Transit { from: Processor::Host, ..transit }, now, out);
            }
            let pages = PageSet::range(transit.pages.clone());
            self.arrive(transit.block, pages, transit.to, transit.replay, now, out);
        }
        if let Some(task) = self.state.tasks.get_mut(id) {
            task.transfers = task.transfers.saturating_sub(1);
        }
        self.state.tasks.wake_waiting(now);
    }

    fn record_transfer(&mut self, carried: &Carried, began: SimTime, ended: SimTime) {
        let record = match *carried {
            Carried::Bytes { gpu, bytes, address } => {
                let cause = Cause::Synchronisation;
                TransferRecord { began, ended, gpu, to_device: false, address, bytes, faults: 0, cause }
            }
            Carried::Pages(ref transit) => {
                let (gpu, to_device) = match (transit.from, transit.to) {
                    (Processor::Host, Processor::Gpu(gpu)) => (gpu, true),
                    (Processor::Gpu(gpu), _) => (gpu, false),
                    (Processor::Host, Processor::Host) => return,
                };
                let (address, bytes) = self.state.blocks.get(transit.block).range_of(&transit.pages);
                let (faults, cause) = (transit.faults, transit.cause);
                TransferRecord { began, ended, gpu, to_device, address, bytes, faults, cause }
            }
        };
        if let Some(timeline) = &self.timeline {
            timeline.lock().transfer(&record);
        }
        self.state.records.transfers.push(record);
    }

    /// Pages are in a memory.
    pub(super) fn arrive(
        &mut self,
        id: BlockId,
        pages: PageSet,
        to: Processor,
        replay: bool,
        now: SimTime,
        out: &mut Outbox,
    ) {
        let block = self.state.blocks.get_mut(id);
        let is_live = block.is_live;
        let share = block.share_mut(to);
        // Some may have been taken back meanwhile.
        let pages = pages.intersection(share.arriving);
        share.arriving = share.arriving.difference(pages);
        if !is_live {
            if let Processor::Gpu(gpu) = to {
                let gpu = &mut self.state.gpus[usize::from(gpu)];
                gpu.used = gpu.used.saturating_sub(pages.len() as u64);
            }
            return;
        }
        share.resident = share.resident.union(pages);
        if let Processor::Gpu(gpu) = to {
            self.state.gpus[usize::from(gpu)].eviction.arrived(id, pages);
            self.map(gpu, id, pages, (Aperture::Device, replay), now, out);
        }
    }

    /// Pages of a block may be accessed by a GPU: where there are copies of them elsewhere, only read.
    fn map(
        &mut self,
        gpu: u8,
        id: BlockId,
        pages: PageSet,
        (aperture, replay): (Aperture, bool),
        now: SimTime,
        out: &mut Outbox,
    ) {
        let block = self.state.blocks.get(id);
        if !block.is_live {
            return;
        }
        let memory = match aperture {
            Aperture::Device => Processor::Gpu(gpu),
            Aperture::Host => Processor::Host,
        };
        let keeps_host_copies = self.parameters.keeps_host_copies();
        let copies = block.pages_of(|other| other != memory && !(other == Processor::Host && keeps_host_copies));
        for (set, writable) in [(pages.difference(copies), true), (pages.intersection(copies), false)] {
            for run in set.runs() {
                let (address, bytes) = block.range_of(&run);
                let message = MigrationMessage::Map { address, bytes, aperture, writable, replay };
                self.send_to_gmmu(gpu, message, now, out);
            }
        }
    }

    /// Pages of a block may no longer be accessed by a GPU. The task is told when no TLB has them.
    pub(super) fn unmap(&mut self, task: TaskId, gpu: u8, id: BlockId, pages: PageSet, now: SimTime, out: &mut Outbox) {
        for run in pages.runs() {
            let (address, bytes) = self.state.blocks.get(id).range_of(&run);
            let number = self.state.tasks.unmap(task);
            self.send_to_gmmu(gpu, MigrationMessage::Unmap { address, bytes, id: number }, now, out);
        }
    }
}
