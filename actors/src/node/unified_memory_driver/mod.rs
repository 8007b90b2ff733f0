//! The driver of unified memory: the host's part of a managed page's life.
//!
//! It knows where each page is. It serves the faults of GPUs, in batches as NVIDIA's driver does or one by one as UVMSmart does, brings
//! pages by the rules of a prefetcher, makes room by those of an eviction policy, and does what the program asks: allocations, advice,
//! prefetches, touches of the host, synchronisations.
//!
//! ```text
//!   host CPU ──managed──► driver ──migration──► GMMUs (faults, maps, unmaps, replays)
//!                           └─────migration──► migration links (bytes)
//! ```
//!
//! - `blocks`: allocations, blocks, where pages are
//! - `tasks`: what the driver does, step by step
//! - `service`: faults of GPUs
//! - `room`: frames and evictions
//! - `host`: what the host CPU asks
//! - `parameters`: what can be chosen, and in which ranges
//! - `record`: what is recorded line by line
//! - `timeline`, `spans`: what is told of when it happened
//!
//! What happens to a page is decided when its block's turn comes, and takes effect in steps with their times; a page on its way is where it
//! goes, for everybody who decides later. Copies between the host's and the GPUs' memory of what a program copies itself
//! (`cudaMemcpy`) do not go through here.

mod blocks;
mod counters;
mod host;
mod parameters;
mod record;
mod room;
mod service;
mod spans;
mod tasks;
#[cfg(test)]
mod tests;
mod timeline;

pub use counters::{AllocationCounters, UnifiedMemoryCounters};
pub use host::{HostAccess, InitialResidency};
pub use parameters::UnifiedMemoryDriverParameters;
pub use room::WriteBack;
pub use service::ReplayPolicy;

use crate::catalogue::timeline::Kept;
use crate::catalogue::{BuildContext, BuildError, ParameterSet, PortDefinition, UnitDefinition, nothing};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use crate::unified_memory::eviction::EvictionPolicy;
use crate::unified_memory::prefetch::{Prefetcher, PrefetcherChoice};
use crate::unified_memory::remote_access::AccessCounters;
use crate::unified_memory::residency::Reach;
use crate::unified_memory::{Access, LEAF_PAGES, PAGE_BYTES, Processor};
use balar_protocol::managed::ManagedMessage;
use balar_protocol::migration::MigrationMessage;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Message, Payload, PortId, Protocol, SimTime};
use blocks::{Blocks, leaf_number};
use rand_core::SeedableRng;
use rand_pcg::Pcg32;
use record::{BatchRecord, Records};
use room::{Gpu, SavedGpu};
use serde::{Deserialize, Serialize};
use tasks::{Step, TaskId, Tasks};
use timeline::DriverTimeline;

/// The catalogue's entry.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "UnifiedMemoryDriver",
    summary: "the host's driver of unified memory: far faults, migration, prefetching, eviction, advice",
    parameters: UnifiedMemoryDriverParameters::DEFINITIONS,
    check: UnifiedMemoryDriverParameters::check,
    ports: &[
        PortDefinition::server("host", Protocol::Managed, "the host CPU"),
        PortDefinition::client("gmmu", Protocol::Migration, "the GMMU of each GPU").row(),
        PortDefinition::client("link", Protocol::Migration, "the migration link of each GPU").row(),
    ],
    counters: UnifiedMemoryCounters::DEFINITIONS,
    provides: nothing,
    weight: 2,
    build: |text, context| Ok(Box::new(UnifiedMemoryDriver::new(ron::from_str(text)?, context)?)),
};

/// The driver's thread for the faults of a GPU. Each GPU has one: NVIDIA's driver serves each fault buffer by a bottom half of its own
/// (`isr.bottom_half_q` of a GPU, open-gpu-kernel-modules, `uvm_gpu_isr.c`).
#[derive(Debug, Default, Serialize, Deserialize)]
struct Worker {
    is_busy: bool,
    /// When the present batch began.
    began: SimTime,
    /// The GPU has said that it has faults, and nobody has asked for them.
    is_pending: bool,
    /// The task that has asked the GPU for its faults.
    fetching: Option<TaskId>,
    /// Pages have come, and no replay yet.
    owes_replay: bool,
    /// Pages that came to the GPU, and those that were made there.
    pages_moved: u64,
    /// The present batch; its pages that moved are those before it.
    record: BatchRecord,
}

/// Everything that changes.
#[derive(Debug)]
struct State {
    blocks: Blocks,
    gpus: Vec<Gpu>,
    tasks: Tasks,
    /// By GPU.
    workers: Vec<Worker>,
    /// A batch was served before: what a process needs once is there.
    has_served: bool,
    random: Pcg32,
    counters: UnifiedMemoryCounters,
    records: Records,
}

/// [`State`] as it is written.
#[derive(Serialize, Deserialize)]
struct SavedState {
    blocks: Blocks,
    gpus: Vec<SavedGpu>,
    tasks: Tasks,
    workers: Vec<Worker>,
    has_served: bool,
    random: Pcg32,
    counters: UnifiedMemoryCounters,
    records: Records,
    host_prefetcher: Vec<u8>,
}

/// The ports to a GPU.
#[derive(Clone, Copy, Debug)]
struct GpuPorts {
    gmmu: PortId,
    link: PortId,
}

/// The unit.
#[derive(Debug)]
pub struct UnifiedMemoryDriver {
    parameters: UnifiedMemoryDriverParameters,
    host: PortId,
    ports: Vec<GpuPorts>,
    reach: Reach,
    host_prefetcher: Box<dyn Prefetcher>,
    state: State,
    /// Where to tell of transfers and batches.
    timeline: Option<Kept<DriverTimeline>>,
    /// Of the present batch of each GPU.
    batch_spans: Vec<tracing::Span>,
}

impl UnifiedMemoryDriver {
    /// A driver with the wired ports of `context`.
    ///
    /// # Errors
    ///
    /// Where parameters are out of their ranges, or a GPU has a GMMU without a link.
    pub fn new(
        parameters: UnifiedMemoryDriverParameters,
        context: &BuildContext,
    ) -> Result<UnifiedMemoryDriver, BuildError> {
        let host = context.required_port("host")?;
        let ports = (0..).map_while(|gpu| {
            let (gmmu, link) = (context.ports.at("gmmu", gpu)?, context.ports.at("link", gpu)?);
            Some(GpuPorts { gmmu, link })
        });
        let ports: Vec<_> = ports.collect();
        let mut problems = parameters.problems();
        let wired = ports.len() == context.ports.count("gmmu") && ports.len() == context.ports.count("link");
        problems.check(wired, "", "each GPU needs both ports, gmmu[i] and link[i], from 0 on");
        problems.into_result()?;
        let describe = context.surroundings.gpus.iter().map(|gpu| gpu.memory_bytes);
        let mut memories = describe.chain(std::iter::repeat(0));
        let gpus = ports.iter().map(|_| {
            let capacity = memories.next().unwrap_or(0);
            Gpu {
                capacity: if parameters.gpu_memory.0 > 0 { parameters.gpu_memory.0 } else { capacity },
                reserved: 0,
                used: 0,
                most_used: 0,
                writing_back: 0,
                is_oversubscribed: false,
                accesses: AccessCounters::default(),
                eviction: parameters.eviction.build(parameters.eviction_options),
                prefetcher: parameters.prefetcher.build(),
                prefetcher_when_full: parameters.prefetcher_when_full.as_ref().map(PrefetcherChoice::build),
            }
        });
        let state = State {
            blocks: Blocks::default(),
            gpus: gpus.collect(),
            tasks: Tasks::default(),
            workers: ports.iter().map(|_| Worker::default()).collect(),
            has_served: false,
            random: Pcg32::seed_from_u64(parameters.seed),
            counters: UnifiedMemoryCounters::default(),
            records: Records::default(),
        };
        let reach = Reach::pci_express(ports.len() as u8);
        let host_prefetcher = parameters.prefetcher.build();
        let timeline = DriverTimeline::of(context);
        let batch_spans = vec![tracing::Span::none(); ports.len()];
        Ok(UnifiedMemoryDriver { parameters, host, ports, reach, host_prefetcher, state, timeline, batch_spans })
    }

    /// The same driver with a prefetcher of one's own, whatever its parameters say: `prefetcher` makes one for each GPU and for the host.
    #[must_use]
    pub fn with_prefetcher(mut self, prefetcher: impl Fn() -> Box<dyn Prefetcher>) -> UnifiedMemoryDriver {
        self.host_prefetcher = prefetcher();
        for gpu in &mut self.state.gpus {
            gpu.prefetcher = prefetcher();
            gpu.prefetcher_when_full = None;
        }
        self
    }

    /// The same driver with an eviction policy of one's own, whatever its parameters say: `eviction` makes one for each GPU.
    #[must_use]
    pub fn with_eviction(mut self, eviction: impl Fn() -> Box<dyn EvictionPolicy>) -> UnifiedMemoryDriver {
        for gpu in &mut self.state.gpus {
            gpu.eviction = eviction();
        }
        self
    }

    /// The thread for the faults of a GPU.
    fn worker(&mut self, gpu: u8) -> &mut Worker {
        &mut self.state.workers[usize::from(gpu)]
    }

    fn send_to_gmmu(&self, gpu: u8, message: MigrationMessage, now: SimTime, out: &mut Outbox) {
        out.send(self.ports[usize::from(gpu)].gmmu, now, Payload::Migration(message));
    }

    fn send_to_link(&self, gpu: u8, message: MigrationMessage, now: SimTime, out: &mut Outbox) {
        out.send(self.ports[usize::from(gpu)].link, now, Payload::Migration(message));
    }

    /// Tells the host CPU something.
    fn tell(&self, message: ManagedMessage, now: SimTime, out: &mut Outbox) {
        out.send(self.host, now, Payload::Managed(message));
    }

    fn handle(&mut self, message: Message, out: &mut Outbox) {
        let now = message.time;
        let gpu = self.ports.iter().position(|ports| ports.gmmu == message.port).map(|gpu| gpu as u8);
        match (message.payload, gpu) {
            (Payload::Managed(asked), _) => self.asked(asked, now, out),
            (Payload::Migration(MigrationMessage::Transferred { id, began }), _) => {
                self.transferred(id, began, now, out)
            }
            (Payload::Migration(MigrationMessage::Pending), Some(gpu)) => self.pending(gpu, now),
            (Payload::Migration(MigrationMessage::Faults(faults)), Some(gpu)) => self.faulted(gpu, &faults, now),
            (Payload::Migration(MigrationMessage::Unmapped { id }), _) => {
                self.state.tasks.unmapped(id);
                self.state.tasks.wake_waiting(now);
            }
            (Payload::Migration(MigrationMessage::Used { page, requests, written }), Some(gpu)) => {
                self.used(gpu, page, (requests, written), now);
            }
            (payload, _) => payload.unexpected("host, gmmu or link"),
        }
    }

    /// A GPU has used a page.
    fn used(&mut self, gpu: u8, address: u64, (requests, written): (u32, bool), now: SimTime) {
        let Some(id) = self.state.blocks.at(address) else { return };
        let block = self.state.blocks.get_mut(id);
        let page = ((address - block.address) / PAGE_BYTES) as usize;
        let share = block.share_mut(Processor::Gpu(gpu));
        let (is_here, is_remote) = (share.resident.contains(page), share.remote.contains(page));
        share.unused.remove(page);
        let access = if written { Access::Write } else { Access::Read };
        self.state.records.pages(id, std::iter::once(page).collect(), |record| record.uses += requests);
        let state = &mut self.state.gpus[usize::from(gpu)];
        let leaf = leaf_number(id, page / LEAF_PAGES);
        state.accesses.count_accesses(leaf, requests);
        if is_here {
            if written {
                share.dirty.insert(page);
            }
            state.eviction.accessed(id, page, access);
        } else if is_remote {
            // Often enough, it comes nearer.
            let serve = Step::Serve { gpu, block: id, faults: vec![(page as u16, access)], replay: true };
            let (accesses, trips) = (state.accesses.accesses(leaf), state.accesses.round_trips(leaf));
            let state = &self.state.gpus[usize::from(gpu)];
            let frames = self.frames(state, 0);
            let rule = &self.parameters.remote_access;
            if rule.counts_accesses() && rule.migrates(access, accesses, trips, state.is_oversubscribed, &frames) {
                self.state.tasks.begin([serve], now);
            }
        }
    }

    fn run(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        loop {
            match (self.state.tasks.next_due(), inbox.next_time()) {
                (own, Some(time)) if own.is_none_or(|own| time <= own) => {
                    if let Some(message) = inbox.take() {
                        self.handle(message, out);
                    }
                }
                (Some(time), _) if time >= window.until => return NextWake::At(time),
                (Some(_), _) => {
                    if let Some((time, task)) = self.state.tasks.take_due() {
                        self.run_task(task, time, out);
                    }
                }
                (None, _) => return NextWake::OnMessage,
            }
        }
    }
}

impl Unit for UnifiedMemoryDriver {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        self.run(window, inbox, out)
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.state.counters.write(sink);
        let residents = self.residents();
        for (gpu, state) in self.state.gpus.iter().enumerate() {
            let memory = counters::GpuMemoryCounters {
                pages_resident: residents[1 + gpu],
                most_pages_resident: state.most_used,
            };
            memory.write_of(format_args!("gpu[{gpu}]"), sink);
        }
    }

    fn records(&self, sink: &mut StatisticSink) {
        for (number, allocation) in self.state.blocks.allocations.iter().enumerate() {
            allocation.counters.write_of(format_args!("allocation[{number}]"), sink);
        }
        self.write_records(sink);
    }

    fn outstanding(&self) -> Option<String> {
        self.state.tasks.outstanding()
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        #[derive(Serialize)]
        struct Saved<'a> {
            blocks: &'a Blocks,
            gpus: Vec<SavedGpu>,
            tasks: &'a Tasks,
            workers: &'a [Worker],
            has_served: bool,
            random: &'a Pcg32,
            counters: &'a UnifiedMemoryCounters,
            records: &'a Records,
            host_prefetcher: Vec<u8>,
        }
        let gpus = self.state.gpus.iter().map(Gpu::save).collect::<Result<_, _>>()?;
        save_state(&Saved {
            blocks: &self.state.blocks,
            gpus,
            tasks: &self.state.tasks,
            workers: &self.state.workers,
            has_served: self.state.has_served,
            random: &self.state.random,
            counters: &self.state.counters,
            records: &self.state.records,
            host_prefetcher: self.host_prefetcher.save()?,
        })
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        let saved: SavedState = restore_state(state)?;
        if saved.gpus.len() != self.state.gpus.len() || saved.workers.len() != self.state.workers.len() {
            return Err(StateError::Mismatch("another number of GPUs".to_owned()));
        }
        for (gpu, saved) in self.state.gpus.iter_mut().zip(saved.gpus) {
            gpu.restore(saved)?;
        }
        self.host_prefetcher.restore(&saved.host_prefetcher)?;
        let SavedState { blocks, tasks, workers, has_served, random, counters, records, .. } = saved;
        self.state.blocks = blocks;
        self.state.tasks = tasks;
        self.state.workers = workers;
        self.state.has_served = has_served;
        self.state.random = random;
        self.state.counters = counters;
        self.state.records = records;
        Ok(())
    }
}
