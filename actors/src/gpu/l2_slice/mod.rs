//! An L2 slice: a sectored, write-back cache with its miss handling and atomics unit.
//!
//! Requests wait in order in the input queue and look up tags one after the other. A load that hits answers after
//! [`L2SliceParameters::hit_latency`]; one that misses waits at its line until the fill arrives. Answers leave through the data array in
//! the order in which they are ready (`answers.rs`). Where too many hits wait for it, or too many atomics for their unit, look-ups stand. A
//! store fetches nothing: the line keeps which words have been written (write-validate), and the rest of a sector is fetched when it is
//! read. A Quadro GV100 counts so: sectors that hotspot and backprop store in part are not among the sectors that it reads from DRAM
//! (validation/kernel_counters.csv). Dirty sectors leave when their line is replaced, or when a store makes more lines of a set dirty than
//! [`L2SliceParameters::dirty_ways`]: then the least recently used of them is written to memory, and stays. What is dirty at the end of a
//! run stays so.
//!
//! Where the L2 has two partitions, a slice keeps copies of the lines of one slice of the other partition, too (`far.rs`).
//!
//! **Invariant:** a line with a fill under way is never replaced.

mod answers;
mod counters;
mod far;
mod input;
mod parameters;
mod sets;

pub use counters::L2SliceCounters;
pub use parameters::{Copies, L2SliceParameters};

use crate::catalogue::{
    BuildContext, BuildError, Capability, ParameterProblem, ParameterSet, PeakRate, Peer, PortDefinition, Role,
    UnitDefinition,
};
use crate::engine::{CodeSource, Inbox, NextWake, Outbox, StateError, Unit, Window, restore_state, save_state};
use crate::gpu::CachesBetweenKernels;
use crate::gpu::line_owners::OwnLines;
use crate::interleave::AddressHash;
use crate::slab::chains::Chains;
use answers::{Answers, Source};
use balar_protocol::by_launch::{ByLaunch, LaunchTotals};
use balar_protocol::memory::{
    Credits, LINE_BYTES, MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse, SECTOR_BYTES, Scope, ServedBy,
    full_sectors, sector_count, words_of,
};
use balar_protocol::prefetch::prefetch;
use balar_protocol::residency::Residency;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::translation::Aperture;
use balar_protocol::{Bytes, Clock, Message, Payload, PortId, Protocol, SimTime};
use counters::Stall;
use far::{COPY, Partition};
use input::{Asker, Input, Queued};
use serde::{Deserialize, Serialize};
use sets::{Line, Place, Sets, SetsState};

/// The L2 slice in the catalogue of units.
pub const DEFINITION: UnitDefinition = UnitDefinition {
    name: "L2Slice",
    summary: "sectored write-back slice of the L2 cache",
    parameters: L2SliceParameters::DEFINITIONS,
    check: L2SliceParameters::check,
    ports: &[
        PortDefinition {
            name: "crossbar",
            protocol: Protocol::Memory,
            role: Role::Server,
            indexed: false,
            required: true,
            meaning: "requests for the lines of this slice, and for its copies of others",
        },
        PortDefinition {
            name: "memory",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: false,
            required: true,
            meaning: "device memory",
        },
        PortDefinition {
            name: "far",
            protocol: Protocol::Memory,
            role: Role::Client,
            indexed: false,
            required: false,
            meaning: "where the L2 has two partitions: the slice of the other one whose lines it keeps copies of",
        },
        PortDefinition {
            name: "near",
            protocol: Protocol::Memory,
            role: Role::Server,
            indexed: false,
            required: false,
            meaning: "where the L2 has two partitions: the slice of the other one that keeps copies of its lines",
        },
    ],
    counters: L2SliceCounters::DEFINITIONS,
    provides,
    weight: 4,
    build: |text, context| {
        Ok(Box::new(L2Slice::new(L2SliceParameters::clone(&*context.surroundings.parameters(text)?), context)?))
    },
};

fn provides(text: &str) -> Vec<Capability> {
    let Ok(parameters) = ron::from_str::<L2SliceParameters>(text) else { return Vec::new() };
    let (sets, L2SliceParameters { clock, capacity, set_bits, bytes_per_cycle, .. }) = (parameters.sets(), parameters);
    let per_second = clock.hertz().saturating_mul(u64::from(bytes_per_cycle));
    vec![
        Capability::L2Cache { capacity },
        Capability::Peak { what: PeakRate::L2Bytes, per_second },
        Capability::CacheSets { parameter: "set_bits", bits: set_bits, sets },
        Capability::CountsCredits,
    ]
}

/// The number of write-backs in the protocol to memory; fills carry the number of their line.
const WRITE_BACK_ID: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Waiter {
    asker: Asker,
    request: MemoryRequest,
    found: Found,
}

/// The result of a request's look-up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Found {
    /// Its sectors that were valid or under way.
    hits: u8,
    /// The sectors of its line that are fetched because of it.
    fetched: u8,
    served_by: ServedBy,
}

/// Everything that changes, beside the sets.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct State {
    input: Input,
    answers: Answers,
    /// First cycle the atomics unit is free, and the line it worked on last with the cycle it may take that again.
    atomic_free: u64,
    last_atomic: (u64, u64),
    /// The latest launch that asked for anything.
    launch: u32,
    waiters: Chains<Waiter>,
    /// Lines with fills under way from memory, and those with fills under way from the other partition: each has MSHRs of its own.
    mshr_used: u32,
    far_mshr_used: u32,
    write_backs: u32,
    counters: L2SliceCounters,
    by_launch: ByLaunch<L2SliceCounters>,
}

/// An L2 slice.
#[derive(Debug)]
pub struct L2Slice {
    clock: Clock,
    parameters: L2SliceParameters,
    crossbar: PortId,
    memory: PortId,
    partition: Partition,
    sets: Sets,
    /// The most lines of a set that may be dirty.
    dirty_ways: u32,
    /// Cycles from whatever happens to the first in which its answer is ready.
    least_latency: u64,
    /// Answers under way are counted.
    counts_answers: bool,
    own_lines: OwnLines,
    path: String,
    state: State,
    /// Credits of this window that are not sent yet, with the time of the first. Between windows there are none.
    credits: Option<(SimTime, Credits)>,
}

impl L2Slice {
    /// A slice with the wired ports of `context`; the slices of its row share the lines.
    pub fn new(parameters: L2SliceParameters, context: &BuildContext) -> Result<L2Slice, BuildError> {
        let mut problems = parameters.range_problems();
        let set_bytes = parameters.set_bytes();
        if parameters.capacity.0 == 0 || !parameters.capacity.0.is_multiple_of(set_bytes) {
            let problem = format!(
                "expected a multiple of {} ways x {LINE_BYTES} B = {}, found {}",
                parameters.ways,
                Bytes(set_bytes),
                parameters.capacity
            );
            problems.push(ParameterProblem::new("capacity", problem));
        }
        if ![32, 64, 128].contains(&parameters.fetch_granularity.0) {
            let problem = format!("expected 32 B, 64 B or 128 B, found {}", parameters.fetch_granularity);
            problems.push(ParameterProblem::new("fetch_granularity", problem));
        }
        let sets = parameters.sets();
        let bits = &parameters.set_bits;
        let counted = 1u32.checked_shl(bits.count()).filter(|counted| sets.is_multiple_of(*counted));
        let function = match counted {
            _ if bits.count() == 0 => Ok(None),
            Some(counted) => bits.function(counted).map(|function| Some((function, counted))),
            None => Err(format!("expected bits that count to a divisor of {sets} sets, found {}", bits.count())),
        };
        if let Err(problem) = &function {
            problems.push(ParameterProblem::new("set_bits", problem.clone()));
        }
        let port = |name| context.ports.get(name).ok_or(ParameterProblem::new(name, "expected a wire to this port"));
        let partition = Partition::of(context, &parameters);
        let (crossbar, memory, partition) = match (port("crossbar"), port("memory"), partition) {
            (Ok(crossbar), Ok(memory), Ok(partition)) if problems.is_empty() => (crossbar, memory, partition),
            (crossbar, memory, partition) => {
                problems.extend([crossbar.err(), memory.err(), partition.err()].into_iter().flatten());
                return Err(problems.into());
            }
        };
        let peer = context.ports.peer(crossbar);
        let lines_of_run = peer.and_then(Peer::address_hash).map_or(1, AddressHash::lines_of_run);
        Ok(L2Slice {
            clock: Clock::new(parameters.clock),
            sets: Sets::new(sets, parameters.ways, (context.row_length.max(1), lines_of_run), function.ok().flatten()),
            least_latency: u64::from(parameters.hit_latency.min(parameters.fill_latency)),
            counts_answers: parameters.answer_queue > 0 || parameters.atomic_queue > 0,
            dirty_ways: if parameters.dirty_ways == 0 { parameters.ways } else { parameters.dirty_ways },
            own_lines: OwnLines::of(context, crossbar),
            path: context.path.to_owned(),
            crossbar,
            memory,
            partition,
            state: State {
                input: Input::default(),
                answers: Answers::new(
                    parameters.bytes_per_cycle,
                    parameters.far_bytes_per_cycle,
                    peer.map_or(0, |peer| peer.queues().1),
                ),
                atomic_free: 0,
                last_atomic: (u64::MAX, 0),
                launch: 0,
                waiters: Chains::default(),
                mshr_used: 0,
                far_mshr_used: 0,
                write_backs: 0,
                counters: L2SliceCounters::default(),
                by_launch: ByLaunch::default(),
            },
            credits: None,
            parameters,
        })
    }

    /// Sends the answers that leave before those that may still become ready. Up to `now` every message is here.
    fn answer(&mut self, now: u64, out: &mut Outbox) {
        let L2Slice { state: State { answers, counters, .. }, clock, crossbar, partition, least_latency, .. } = self;
        let ports = [*crossbar, partition.near.unwrap_or(*crossbar)];
        let waited = answers.leave(now + *least_latency, |asker, cycle, response| {
            let payload = Payload::Memory(MemoryMessage::Response(*response));
            out.send(ports[asker as usize], clock.time_of(cycle), payload);
        });
        counters.answer_queue_cycles += waited.in_all;
        counters.stall_cycles_crossbar += waited.for_crossbar;
    }

    /// Too many answers of a queue are under way in `cycle`: the head of an input queue waits for one of them to leave.
    #[cold]
    fn await_answer(&mut self, asker: Asker, stall: Stall, source: Source, cycle: u64) {
        let State { answers, input, counters, .. } = &mut self.state;
        // Whatever leaves before that cycle is known to.
        let known_until = cycle + self.least_latency;
        let next = match answers.next_leaving(source) {
            Some(next) => next,
            None if answers.lacks_places() => {
                input.block(asker, stall, cycle);
                return;
            }
            None => known_until,
        };
        *counters.stalled(stall) += next - cycle;
        input.wait_until(asker, next * u64::from(self.parameters.lookups_per_cycle));
    }

    /// Looks up queued requests in cycles before `limit`, up to which every message is here.
    fn serve(&mut self, limit: u64, out: &mut Outbox) {
        let rate = u64::from(self.parameters.lookups_per_cycle);
        while let Some((asker, slot, &Queued { arrived, place, request })) = self.state.input.next(rate) {
            let cycle = slot / rate;
            if cycle >= limit {
                return;
            }
            if request.launch > self.state.launch {
                self.kernel_begins(request.launch);
            }
            let done = if request.is_far && self.partition.is_passed_on(&request) {
                self.forward(cycle, place, &request, out);
                Ok(())
            } else {
                self.look_up(cycle, place, (asker, &request), out)
            };
            if let Err(stall) = done {
                match stall {
                    Stall::Answer => self.await_answer(asker, stall, Source::Hit, cycle),
                    Stall::Atomic => self.await_answer(asker, stall, Source::Atomic, cycle),
                    _ => self.state.input.block(asker, stall, cycle),
                }
                continue;
            }
            self.state.input.pop(asker, slot);
            self.state.counters.queue_cycles += cycle - arrived;
            if asker == Asker::Crossbar {
                self.give_credit(self.clock.time_of(cycle), out);
            }
        }
    }

    /// The first request of a launch has its turn.
    #[cold]
    fn kernel_begins(&mut self, launch: u32) {
        self.state.launch = launch;
        if self.parameters.caches_between_kernels == CachesBetweenKernels::Flushed {
            self.sets.flush();
        }
    }

    /// A queue entry is free at `time`.
    #[inline]
    fn give_credit(&mut self, time: SimTime, out: &mut Outbox) {
        if let Some((first, credits)) = &mut self.credits
            && credits.push(time - *first)
        {
            return;
        }
        self.send_credits(out);
        self.credits = Some((time, Credits::ONE));
    }

    fn send_credits(&mut self, out: &mut Outbox) {
        if let Some((first, credits)) = self.credits.take() {
            out.send(self.crossbar, first, Payload::Memory(MemoryMessage::Credit(credits)));
        }
    }

    /// Serves one request, or changes nothing and says which resource it lacks.
    fn look_up(
        &mut self,
        cycle: u64,
        place: Place,
        (asker, request): (Asker, &MemoryRequest),
        out: &mut Outbox,
    ) -> Result<(), Stall> {
        let wanted = request.sectors;
        if !request.residency.is_silent() {
            self.sets.follow_resets(request.launch, request.residency);
        }
        let found = self.sets.find(place, request.line);
        let (valid, pending, waiting) = match found {
            Some(index) => {
                let line = self.sets.line(index);
                (line.valid, line.pending, line.waiting)
            }
            None => (0, 0, 0),
        };
        // Sectors that must be valid before the request is done.
        let needed = if request.kind == MemoryKind::Store { 0 } else { wanted & !valid };
        let fetch = match request.kind {
            MemoryKind::Load => self.widen(needed & !pending) & !valid & !pending,
            _ => needed & !pending,
        };
        if fetch != 0 && pending == 0 && *self.mshrs_in_use(request.is_far) == self.parameters.mshr_entries {
            return Err(Stall::Mshr);
        }
        let waits = needed != 0;
        if !waits {
            self.has_room_for_answer(cycle, request.kind, out)?;
        }
        if waits && u32::from(waiting) >= self.parameters.mshr_merges {
            return Err(Stall::Merge);
        }
        let index = match found {
            Some(index) => index,
            None => self.allocate(cycle, request, place, out)?,
        };
        self.count(asker, request, valid | pending);
        self.sets.touch(index, place);
        if !request.residency.is_silent() {
            self.sets.keep(index, place, request.residency);
        }
        self.follow_copies(cycle, index, (asker, request), out);
        let line = self.sets.line_mut(index);
        if request.kind == MemoryKind::Store {
            line.words |= request.written_words;
            line.valid |= full_sectors(line.words);
        }
        if request.kind != MemoryKind::Load {
            self.sets.make_dirty(index, place, wanted);
            self.clean(cycle, place, request.launch, out);
        }
        let line = self.sets.line_mut(index);
        if fetch != 0 {
            // Of a line just allocated, no sector is pending.
            line.pending = pending | fetch;
            *self.mshrs_in_use(request.is_far) += u32::from(pending == 0);
            let State { counters, mshr_used, far_mshr_used, .. } = &mut self.state;
            counters.mshr_maximum = counters.mshr_maximum.max(u64::from(*mshr_used + *far_mshr_used));
            let port = if request.is_far {
                counters.far_fills += 1;
                self.partition.far.unwrap_or(self.memory)
            } else {
                counters.fills += 1;
                counters.sectors_filled += u64::from(sector_count(fetch));
                self.memory
            };
            let fill = MemoryRequest {
                line: request.line,
                id: index,
                launch: request.launch,
                return_port: COPY,
                data_bytes: 0,
                written_words: 0,
                sectors: fetch,
                operations: 0,
                update_sectors: 0,
                kind: MemoryKind::Load,
                scope: Scope::Weak,
                aperture: Aperture::Device,
                is_far: false,
                residency: request.residency,
            };
            let depart = self.clock.time_of(cycle + u64::from(self.parameters.miss_latency));
            out.send(port, depart, Payload::Memory(MemoryMessage::Request(fill)));
        }
        if waits {
            self.state.counters.mshr_merges += u64::from(fetch == 0);
            let found = Found { hits: wanted & (valid | pending), fetched: fetch, served_by: ServedBy::DeviceMemory };
            self.wait(index, Waiter { asker, request: *request, found });
        } else {
            let found = Found { hits: wanted, fetched: 0, served_by: ServedBy::L2 };
            self.finish((Source::Hit, cycle + u64::from(self.parameters.hit_latency)), (asker, request), found);
        }
        Ok(())
    }

    /// May one more answer to a hit be under way from `cycle` on?
    #[inline]
    fn has_room_for_answer(&mut self, cycle: u64, kind: MemoryKind, out: &mut Outbox) -> Result<(), Stall> {
        let L2SliceParameters { answer_queue, atomic_queue, .. } = self.parameters;
        let (source, limit, stall) = if kind.updates() {
            (Source::Atomic, atomic_queue, Stall::Atomic)
        } else {
            (Source::Hit, answer_queue, Stall::Answer)
        };
        if limit == 0 || self.state.answers.at_most(source) < limit as usize {
            return Ok(());
        }
        self.answer(cycle, out);
        if self.state.answers.under_way(source, cycle) < limit as usize { Ok(()) } else { Err(stall) }
    }

    /// `sectors` and their neighbours within the fetch granularity.
    fn widen(&self, sectors: u8) -> u8 {
        match self.parameters.fetch_granularity.0 {
            128 if sectors != 0 => 0b1111,
            64 => {
                let pairs = (sectors | sectors >> 1) & 0b0101;
                pairs | pairs << 1
            }
            _ => sectors,
        }
    }

    /// Makes room for the line of a request.
    fn allocate(&mut self, cycle: u64, request: &MemoryRequest, place: Place, out: &mut Outbox) -> Result<u32, Stall> {
        let victim = self.sets.victim(place, request.is_far, request.residency).ok_or(Stall::Set)?;
        let line = *self.sets.line(victim);
        if line.dirty != 0 {
            if self.state.write_backs >= self.parameters.write_back_entries {
                return Err(Stall::WriteBack);
            }
            self.write_back(cycle, &line, request.launch, out);
            self.sets.clean(victim, place);
        }
        self.state.counters.evictions += u64::from(line.valid | line.dirty != 0);
        self.forget_copies(cycle, &line, line.copied, out);
        self.sets.install(victim, place, (request.line, request.is_far));
        Ok(victim)
    }

    /// Writes lines of a set to memory where too many are dirty. Nothing waits for that: where no more write-backs can be under way, the
    /// next store to the set makes up for it.
    #[inline]
    fn clean(&mut self, cycle: u64, place: Place, launch: u32, out: &mut Outbox) {
        while self.state.write_backs < self.parameters.write_back_entries
            && let Some(index) = self.sets.too_dirty(place, self.dirty_ways)
        {
            let line = *self.sets.line(index);
            self.write_back(cycle, &line, launch, out);
            self.sets.clean(index, place);
        }
    }

    /// Sends the dirty sectors of a line to memory, on behalf of the launch whose request is the cause.
    fn write_back(&mut self, cycle: u64, line: &Line, launch: u32, out: &mut Outbox) {
        let sectors = line.dirty;
        let written_words = words_of(sectors) & (words_of(line.valid) | line.words);
        self.state.write_backs += 1;
        self.state.counters.write_backs += 1;
        self.state.counters.sectors_written_back += u64::from(sector_count(sectors));
        self.state.by_launch.of(launch).sectors_written_back += u64::from(sector_count(sectors));
        let request = MemoryRequest {
            line: line.address,
            id: WRITE_BACK_ID,
            launch,
            return_port: 0,
            data_bytes: (sector_count(sectors) * SECTOR_BYTES as u32) as u16,
            written_words,
            sectors,
            operations: 0,
            update_sectors: 0,
            kind: MemoryKind::Store,
            scope: Scope::Weak,
            aperture: Aperture::Device,
            is_far: false,
            residency: Residency::default(),
        };
        let depart = self.clock.time_of(cycle + u64::from(self.parameters.miss_latency));
        out.send(self.memory, depart, Payload::Memory(MemoryMessage::Request(request)));
    }

    fn wait(&mut self, index: u32, waiter: Waiter) {
        let line = self.sets.line_mut(index);
        line.waiting += 1;
        self.state.waiters.push(&mut line.waiters, waiter);
    }

    /// Answers `request`, whose sectors are all there, with the data ready in cycle `ready`.
    fn finish(
        &mut self,
        (mut source, mut ready): (Source, u64),
        (asker, request): (Asker, &MemoryRequest),
        found: Found,
    ) {
        let L2SliceParameters { atomic_operations_per_cycle, same_line_atomic_interval, atomic_latency, .. } =
            self.parameters;
        let State { answers, atomic_free, last_atomic, counters, by_launch, .. } = &mut self.state;
        let mut data = u64::from(sector_count(request.sectors)) * SECTOR_BYTES;
        if request.kind == MemoryKind::Store {
            data = self.parameters.data_of_store(request);
        }
        if request.kind.updates() {
            let mut start = ready.max(*atomic_free);
            if last_atomic.0 == request.line {
                start = start.max(last_atomic.1);
            }
            let cycles = u64::from(u32::from(request.operations).div_ceil(atomic_operations_per_cycle));
            *atomic_free = start + cycles.max(1);
            *last_atomic = (request.line, start + u64::from(same_line_atomic_interval));
            (source, ready) = (Source::Atomic, *atomic_free - 1 + u64::from(atomic_latency));
            // What the unit of atomics reads and writes is in its own rate.
            if !request.kind.returns_data() {
                data = SECTOR_BYTES;
            }
        }
        let busy = data.div_ceil(u64::from(self.parameters.bytes_per_cycle));
        counters.data_busy_cycles += busy;
        by_launch.of(request.launch).data_busy_cycles += busy;
        let Found { hits, fetched, served_by } = found;
        let response = MemoryResponse { fetched_sectors: fetched, ..request.response(hits, served_by) };
        answers.push(source, ready, data.max(SECTOR_BYTES), (asker, response));
    }

    /// A fill or the acknowledgement of a write-back arrives.
    fn receive(&mut self, cycle: u64, response: &MemoryResponse) {
        if response.id == WRITE_BACK_ID {
            self.state.write_backs = self.state.write_backs.saturating_sub(1);
        } else if (response.id as usize) < self.sets.len() {
            self.state.mshr_used -= u32::from(self.fill(cycle, response, None));
        }
        self.unblock(cycle, |_| true);
    }

    /// What such heads of the input queues wait for may be there in `cycle`.
    fn unblock(&mut self, cycle: u64, is_such: impl Fn(Stall) -> bool) {
        let State { input, counters, .. } = &mut self.state;
        let slot = cycle * u64::from(self.parameters.lookups_per_cycle);
        input.unblock(slot, is_such, |stall, since| *counters.stalled(stall) += cycle.saturating_sub(since));
    }

    /// The crossbar has places again.
    fn places_freed(&mut self, credits: &Credits, time: SimTime) {
        for time in credits.times(time) {
            self.state.answers.add_place(self.clock.cycle_at_or_after(time));
        }
        self.unblock(self.clock.cycle_at_or_after(time), |stall| matches!(stall, Stall::Answer | Stall::Atomic));
    }

    /// Sectors of a line arrive, from memory or from another unit. Gives whether they are the last that were under way.
    fn fill(&mut self, cycle: u64, response: &MemoryResponse, from: Option<ServedBy>) -> bool {
        let (index, sectors) = (response.id, response.sectors);
        let line = self.sets.line_mut(index);
        let before = line.pending;
        let pending = before & !sectors;
        line.pending = pending;
        line.valid |= sectors;
        let mut waiters = std::mem::take(&mut line.waiters);
        line.waiting = 0;
        while let Some(mut waiter) = self.state.waiters.pop(&mut waiters) {
            if let Some(served_by) = from {
                waiter.found.served_by = served_by;
                waiter.found.fetched &= !sectors | response.fetched_sectors;
            }
            let Waiter { asker, request, found } = waiter;
            if request.sectors & pending == 0 {
                let ready = cycle + u64::from(self.parameters.fill_latency);
                self.finish((Source::Fill, ready), (asker, &request), found);
            } else {
                self.wait(index, waiter);
            }
        }
        before != 0 && pending == 0
    }

    /// Prefetches into the host's cache the lines that come in this window, and then the requests that wait for them.
    fn prefetch(&self, inbox: &Inbox) {
        let fills = || {
            inbox.all().filter_map(|message| match &message.payload {
                Payload::Memory(MemoryMessage::Response(response)) if (response.id as usize) < self.sets.len() => {
                    Some(self.sets.line(response.id))
                }
                _ => None,
            })
        };
        fills().for_each(prefetch);
        fills().for_each(|line| self.state.waiters.prefetch(&line.waiters));
    }

    /// A request comes from a unit that is not known to be the crossbar.
    #[cold]
    fn check_owner(&mut self, line: u64, message: &Message, out: &mut Outbox) {
        if let Some(mistake) = self.own_lines.mistake(line, &self.path) {
            out.break_rule_of_sender(message.source, message.time, mistake);
        }
    }

    fn handle(&mut self, message: &Message, cycle: u64, out: &mut Outbox) {
        match &message.payload {
            Payload::Memory(MemoryMessage::Request(request)) if message.port == self.crossbar => {
                if !self.own_lines.is_any() {
                    self.check_owner(request.line, message, out);
                }
                self.enqueue(Asker::Crossbar, cycle, request);
            }
            // It holds no store back.
            Payload::Memory(MemoryMessage::Drain) if message.port == self.crossbar => {}
            Payload::Memory(MemoryMessage::ResponseCredit(credits)) if message.port == self.crossbar => {
                self.places_freed(credits, message.time);
            }
            Payload::Memory(MemoryMessage::Response(response)) if message.port == self.memory => {
                self.receive(cycle, response);
            }
            payload if message.port == self.crossbar => payload.unexpected("crossbar"),
            payload if message.port == self.memory => payload.unexpected("memory"),
            payload => self.handle_partition(message.port, payload, cycle),
        }
    }

    /// A request arrives.
    #[inline]
    fn enqueue(&mut self, asker: Asker, cycle: u64, request: &MemoryRequest) {
        let place = self.sets.place(request.line);
        self.sets.prefetch(place);
        let State { input, counters, .. } = &mut self.state;
        // Where no wire leads to another partition, all lines are those of this slice.
        let is_far = request.is_far && self.partition.far.is_some();
        input.push(asker, Queued { arrived: cycle, place, request: MemoryRequest { is_far, ..*request } });
        counters.queue_maximum = counters.queue_maximum.max(input.len() as u64);
    }
}

impl Unit for L2Slice {
    fn advance(&mut self, window: Window, inbox: &mut Inbox, out: &mut Outbox) -> NextWake {
        self.prefetch(inbox);
        while let Some(message) = inbox.look() {
            let cycle = self.clock.cycle_at_or_after(message.time);
            self.serve(cycle, out);
            self.handle(message, cycle, out);
        }
        let end = self.clock.cycle_at_or_after(window.until);
        self.serve(end, out);
        self.answer(end, out);
        self.send_credits(out);
        if !self.counts_answers {
            self.state.answers.forget_left();
        }
        let rate = u64::from(self.parameters.lookups_per_cycle);
        let look_up = self.state.input.next(rate).map_or(u64::MAX, |(_, slot, _)| slot / rate);
        let answer = self.state.answers.next().map_or(u64::MAX, |cycle| cycle.saturating_sub(self.least_latency));
        match look_up.min(answer) {
            u64::MAX => NextWake::OnMessage,
            cycle => NextWake::At(self.clock.time_of(cycle)),
        }
    }

    fn statistics(&self, sink: &mut StatisticSink) {
        self.state.counters.write(sink);
    }

    fn shares(&mut self, totals: &mut LaunchTotals) {
        self.state.by_launch.give(totals);
    }

    fn outstanding(&self) -> Option<String> {
        let State { input, answers, mshr_used, far_mshr_used, .. } = &self.state;
        let (queued, fills, answers) = (input.len(), mshr_used + far_mshr_used, answers.waiting());
        (queued > 0 || fills > 0 || answers > 0).then(|| {
            let blocked: String = input.stalls().map(|stall| format!(", blocked for want of: {stall:?}")).collect();
            format!(
                "{queued} requests queued, {fills} lines with fills under way, {answers} answers that have not left{blocked}"
            )
        })
    }

    fn save(&self) -> Result<Vec<u8>, StateError> {
        save_state(&(&self.state, &self.sets.state))
    }

    fn restore(&mut self, state: &[u8], _codes: &dyn CodeSource) -> Result<(), StateError> {
        let (state, sets): (State, SetsState) = restore_state(state)?;
        if !self.sets.fits(&sets) {
            return Err(StateError::Mismatch("another number of sets or ways".to_owned()));
        }
        if !self.state.answers.fits(&state.answers) {
            return Err(StateError::Mismatch("another data array or another queue of responses".to_owned()));
        }
        (self.state, self.sets.state) = (state, sets);
        for queued in self.state.input.iter_mut() {
            queued.place = self.sets.place(queued.request.line);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
