//! The memory pipe of an SM: L1 and shared memory, lines under way, translation, and the traffic with the crossbar.
//!
//! **Invariant:** it knows warps only as the [`Owner`]s of accesses. An access is answered at once, with the cycle in which its data
//! are there, or later, by an [`Event`] under the key of its tracker.

mod below;
pub mod l1_cache;
mod outstanding;
mod ports;
mod slots;
mod tlb;
mod translation;
mod waiting;
mod way_out;

use super::coalescer::{LineAccess, Lines, shared_wavefronts};
use super::counters::SmCounters;
use super::parameters::SmParameters;
use crate::engine::Outbox;
use crate::slab::NONE;
use balar_host::memory::is_pinned;
use balar_isa::execution::{AccessKind, CacheOperator, MemoryAccess, Space};
use balar_protocol::cuda::LaunchId;
use balar_protocol::memory::{
    Credits, MemoryKind, MemoryRequest, MemoryResponse, Scope, ServedBy, full_sectors, sector_count,
};
use balar_protocol::residency::{L2Policy, Residency};
use balar_protocol::statistics::CtaCounters;
use balar_protocol::translation::Aperture;
use below::Below;
use l1_cache::L1Cache;
use outstanding::{Outstanding, Tracker};
pub use outstanding::{Owner, Purpose};
use ports::Moment;
pub use ports::Ports;
use serde::{Deserialize, Serialize};
use slots::Slots;
pub use slots::Taken;
use std::collections::VecDeque;

/// Most lines that one access of a warp touches, a texture's aside.
const MOST_LINES: u32 = 32;

/// Kinds of request numbers, in their low two bits.
const LOAD: u32 = 0;
const WRITE: u32 = 1;
const ATOMIC: u32 = 2;
const CODE: u32 = 3;

/// The topology's parameters of the memory pipe.
#[derive(Clone, Debug)]
pub struct PipeSpecification {
    shared_latency: u64,
    shared_wavefront_cycles: u64,
    shared_access_cycles: u64,
    shared_store_cycles: u64,
    shared_update_interval: u64,
    hit_latency: u64,
    texture_latency: u64,
    miss_latency: u64,
    fill_latency: u64,
    caches_global_loads: bool,
    tags_per_cycle: u64,
    sectors_per_cycle: u64,
    load_tenths: u64,
    texture_lanes_per_cycle: u32,
    mshrs: u32,
    store_queue: u32,
    request_queue: u32,
}

impl PipeSpecification {
    /// Cycles from a look-up of shared memory to its result.
    pub fn shared_latency(&self) -> u64 {
        self.shared_latency
    }

    /// The specification by these parameters.
    pub fn new(parameters: &SmParameters) -> PipeSpecification {
        PipeSpecification {
            shared_latency: u64::from(parameters.shared_latency),
            shared_wavefront_cycles: u64::from(parameters.shared_wavefront_cycles),
            shared_access_cycles: u64::from(parameters.shared_access_cycles),
            shared_store_cycles: u64::from(parameters.shared_store_cycles),
            shared_update_interval: u64::from(parameters.shared_update_interval),
            hit_latency: u64::from(parameters.l1_hit_latency),
            texture_latency: u64::from(parameters.texture_latency),
            miss_latency: u64::from(parameters.l1_miss_latency),
            fill_latency: u64::from(parameters.l1_fill_latency),
            caches_global_loads: parameters.l1_caches_global_loads,
            tags_per_cycle: u64::from(parameters.l1_tags_per_cycle),
            sectors_per_cycle: u64::from(parameters.l1_sectors_per_cycle),
            load_tenths: u64::from(parameters.l1_load_tenths),
            texture_lanes_per_cycle: parameters.texture_lanes_per_cycle,
            mshrs: parameters.l1_mshrs,
            store_queue: parameters.store_queue,
            request_queue: parameters.request_queue,
        }
    }

    /// Cycles that so many wavefronts of an access to shared memory take the pipe.
    fn shared_cycles(&self, kind: AccessKind, wavefronts: u64) -> u64 {
        let cycles = match kind {
            AccessKind::Load => self.shared_wavefront_cycles * wavefronts,
            AccessKind::Store => self.shared_wavefront_cycles * wavefronts + self.shared_store_cycles,
            AccessKind::Atomic | AccessKind::Reduction => self.shared_update_interval * wavefronts,
        };
        cycles.max(self.shared_access_cycles)
    }

    /// Cycles from a response's arrival until its data can be used.
    pub fn fill_latency(&self) -> u64 {
        self.fill_latency
    }
}

/// A warp's access to memory.
#[derive(Debug)]
pub struct Access<'a> {
    /// Addresses and kind; those of local memory lie in its window.
    pub access: &'a MemoryAccess,
    /// Accesses of the same instruction beyond it.
    pub further: &'a [MemoryAccess],
    /// Whose it is.
    pub owner: Owner,
    /// The number of the launch.
    pub launch: u32,
    /// For an atomic or reduction: the first cycle in which its values are known.
    pub known: u64,
    /// The counters of the warp's CTA.
    pub counters: &'a mut CtaCounters,
}

/// When the result of an access is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// From that cycle on.
    At(u64),
    /// With the [`Event::Completed`] under that key.
    Pending(u32),
    /// There is none: so many acknowledgements of a store will follow.
    Written(u32),
    /// There is none, or it comes with the [`Event::Completed`] under that key. So many acknowledgements will follow.
    Updated(u32, u32),
}

/// Sectors of a part of an access, as the L2 found them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSectors {
    /// That a load asked for, and that were there or on their way.
    pub hits: u8,
    /// That came from memory because of it.
    pub fetched: u8,
    /// The sectors among these that were not asked for.
    pub promoted: u8,
}

impl FoundSectors {
    fn of(response: &MemoryResponse) -> FoundSectors {
        let count = |sectors| sector_count(sectors) as u8;
        let hits = if response.kind == MemoryKind::Load { count(response.hit_sectors) } else { 0 };
        let promoted = count(response.fetched_sectors & !response.sectors);
        FoundSectors { hits, fetched: count(response.fetched_sectors), promoted }
    }

    /// Is there anything to count?
    fn is_empty(self) -> bool {
        self.hits | self.fetched == 0
    }
}

/// The effect of a message from below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The sectors that the L2 found for a part of an access: (warp, generation, sectors).
    Found(u16, u32, FoundSectors),
    /// All parts of the access under a key have come; the key is free.
    Completed(u32, Owner),
    /// A line has acknowledged a store, reduction or atomic: (warp, generation; the low bits of the generation count).
    Acknowledged(u16, u32),
    /// A line of code has come: its number.
    Code(u32),
    /// There is room again for an access of any size.
    Room,
}

/// The state of the memory pipe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryPipe {
    /// Wavefronts.
    slots: Slots,
    /// Tenths of a cycle that loads have taken and that are not among the wavefronts yet.
    load_tenths: u64,
    l1: L1Cache,
    l1_size: u64,
    outstanding: Outstanding,
    below: Below,
    /// Answers to atomics whose values are not known yet, with the cycle in which they are; all of one value epoch.
    held: VecDeque<(u64, MemoryResponse)>,
    counters: SmCounters,
    /// Scratch.
    #[serde(skip)]
    lines: Lines,
}

impl MemoryPipe {
    /// With nothing cached, and nothing under way, above a crossbar that takes so many requests of the SM; 0 = any number.
    pub fn new(parameters: &SmParameters, crossbar_places: u32) -> MemoryPipe {
        let l1_size = parameters.unified_memory.0;
        MemoryPipe {
            slots: Slots::default(),
            load_tenths: 0,
            l1: L1Cache::new(l1_size, parameters.l1_ways),
            l1_size,
            outstanding: Outstanding::default(),
            below: Below::new(parameters, crossbar_places),
            held: VecDeque::new(),
            counters: SmCounters::default(),
            lines: Lines::default(),
        }
    }

    /// Can a load, which touches at most 32 lines, be taken in?
    #[inline]
    pub fn has_room_for_loads(&self, specification: &PipeSpecification) -> bool {
        self.outstanding.lines() + MOST_LINES <= specification.mshrs && self.has_room_for_requests(specification)
    }

    /// Can a store or an atomic be taken in?
    #[inline]
    pub fn has_room_for_stores(&self, specification: &PipeSpecification) -> bool {
        self.outstanding.writes + MOST_LINES <= specification.store_queue && self.has_room_for_requests(specification)
    }

    /// Can the requests of one more access wait for the crossbar?
    #[inline]
    fn has_room_for_requests(&self, specification: &PipeSpecification) -> bool {
        self.below.requests_waiting() + MOST_LINES <= specification.request_queue
    }

    /// The crossbar has places again: each can be used from its own time on, the first from the cycle of `now` on.
    pub fn places_freed(
        &mut self,
        specification: &PipeSpecification,
        credits: &Credits,
        now: u64,
        (ports, out): (&Ports, &mut Outbox),
        events: &mut Vec<Event>,
    ) {
        let first = ports.clock.time_of(now);
        for time in credits.times(first) {
            let cycle = ports.clock.cycle_at_or_after(time);
            self.below.add_place(&mut Moment { cycle, ports, counters: &mut self.counters, out });
        }
        self.tell_of_room(specification, events);
    }

    fn tell_of_room(&self, specification: &PipeSpecification, events: &mut Vec<Event>) {
        if self.has_room_for_loads(specification) || self.has_room_for_stores(specification) {
            events.push(Event::Room);
        }
    }

    /// Do both lead to crossbars of a kind?
    pub fn fits(&self, other: &MemoryPipe) -> bool {
        self.below.fits(&other.below)
    }

    /// An exchange between lanes goes through the pipe, from `from` on. It is `now` the cycle in which it issues.
    #[inline]
    pub fn exchange(&mut self, now: u64, from: u64, passes: u64) -> Taken {
        self.slots.take(now, from, passes)
    }

    /// The key that the next access will have, if its answer is pending.
    #[inline]
    pub fn next_key(&self) -> u32 {
        self.outstanding.trackers.next_key()
    }

    /// Requests of the launch follow this policy from now on. `is_here`: whether a launch has CTAs on the SM; policies of others are
    /// forgotten.
    pub fn follow_policy(&mut self, launch: LaunchId, policy: L2Policy, is_here: impl FnMut(LaunchId) -> bool) {
        self.below.follow_policy(launch, policy, is_here);
    }

    /// Whose access is under a key.
    pub fn owner(&self, key: u32) -> Option<Owner> {
        self.outstanding.trackers.get(key).map(|tracker| tracker.owner)
    }

    /// The L1 drops all, as between kernels.
    pub fn empty_l1(&mut self) {
        self.l1.invalidate();
    }

    /// The L1 has this size. Where it had another, it is empty.
    pub fn resize_l1(&mut self, bytes: u64) {
        if bytes != self.l1_size {
            self.l1_size = bytes;
            self.l1.resize(bytes);
        }
    }

    /// Takes in an access to global, local or shared memory of at least one lane, which issues `now` and has its addresses `from` a cycle
    /// on. Gives the wavefronts that it got, too.
    #[inline(always)]
    pub fn accept(
        &mut self,
        specification: &PipeSpecification,
        access: Access,
        (now, from): (u64, u64),
        ports: &Ports,
        out: &mut Outbox,
    ) -> (Answer, Taken) {
        if access.access.space == Space::Shared {
            return self.share(specification, access, (now, from));
        }
        let mut lines = std::mem::take(&mut self.lines);
        lines.gather(access.access);
        for further in access.further {
            lines.add(further);
        }
        let sectors = u64::from(lines.sectors());
        let tags = (lines.as_slice().len() as u64).div_ceil(specification.tags_per_cycle);
        let data = sectors.div_ceil(specification.sectors_per_cycle);
        let is_texture = access.access.cache == CacheOperator::Texture;
        let mut wavefronts = tags.max(data);
        if is_texture {
            let lanes = access.access.mask.count_ones();
            wavefronts = wavefronts.max(u64::from(lanes.div_ceil(specification.texture_lanes_per_cycle)));
        } else if access.access.kind == AccessKind::Load {
            // A line that is not read whole comes from the banks as fast as from shared memory.
            if lines.as_slice().len() as u64 > data {
                wavefronts = wavefronts.max(u64::from(shared_wavefronts(access.access).0));
            }
            self.load_tenths += specification.load_tenths.saturating_sub(10 * wavefronts);
        }
        let taken = self.slots.take(now, from, wavefronts);
        if self.load_tenths >= 10 {
            self.slots.take(now, taken.last + 1, self.load_tenths / 10);
            self.load_tenths %= 10;
        }
        let bytes_of = |access: &MemoryAccess| u64::from(access.mask.count_ones()) * u64::from(access.bytes);
        let bytes = bytes_of(access.access) + access.further.iter().map(bytes_of).sum::<u64>();
        match access.access.kind {
            AccessKind::Load => {
                access.counters.l1_sectors_load += sectors;
                access.counters.l1_bytes_load += bytes;
            }
            AccessKind::Store => {
                access.counters.l1_sectors_store += sectors;
                access.counters.l1_bytes_store += bytes;
            }
            AccessKind::Atomic | AccessKind::Reduction => {}
        }
        let answer = if access.access.kind == AccessKind::Load {
            let latency = if is_texture { specification.texture_latency } else { specification.hit_latency };
            let looked_up = taken.first + latency.saturating_sub(specification.hit_latency);
            let missed = self.load(specification, access, lines.as_slice(), looked_up, (ports, out));
            missed.map_or(Answer::At(taken.last + latency), Answer::Pending)
        } else {
            self.write(specification, access, lines.as_slice(), taken.first, (ports, out))
        };
        self.lines = lines;
        (answer, taken)
    }

    /// Takes in an access that no lane makes: it goes through the pipe as one of a wavefront would. Gives the cycle in which it is done, too.
    #[inline]
    pub fn accept_empty(
        &mut self,
        specification: &PipeSpecification,
        access: &MemoryAccess,
        (now, from): (u64, u64),
    ) -> (u64, Taken) {
        let (cycles, latency) = match access.space {
            Space::Shared => (specification.shared_cycles(access.kind, 1), specification.shared_latency),
            _ => (1, 1),
        };
        let taken = self.slots.take(now, from, cycles);
        (taken.last + latency, taken)
    }

    #[inline(always)]
    fn share(&mut self, specification: &PipeSpecification, access: Access, (now, from): (u64, u64)) -> (Answer, Taken) {
        let (wavefronts, least) = shared_wavefronts(access.access);
        let cycles = specification.shared_cycles(access.access.kind, u64::from(wavefronts));
        let taken = self.slots.take(now, from, cycles);
        let counters = access.counters;
        counters.shared_memory_bank_conflicts += u64::from(wavefronts - least);
        if access.access.kind == AccessKind::Load {
            counters.shared_wavefronts_load += u64::from(wavefronts);
            counters.shared_memory_bank_conflicts_load += u64::from(wavefronts - least);
        } else {
            counters.shared_wavefronts_store += u64::from(wavefronts);
        }
        (Answer::At(taken.last + specification.shared_latency), taken)
    }

    /// Gives the key of the access where sectors are missing.
    #[inline(always)]
    fn load(
        &mut self,
        specification: &PipeSpecification,
        access: Access,
        lines: &[LineAccess],
        start: u64,
        (ports, out): (&Ports, &mut Outbox),
    ) -> Option<u32> {
        let Access { access, owner, launch, counters, .. } = access;
        let cached = match access.cache {
            CacheOperator::All | CacheOperator::Streaming => {
                access.space == Space::Local || specification.caches_global_loads
            }
            CacheOperator::Texture => true,
            CacheOperator::L2Only | CacheOperator::Volatile => false,
        };
        let scope = scope_of(access);
        let mut tracker = NONE;
        let mut remaining = 0;
        let (mut hits, mut requested) = (0, 0);
        for (at, line) in lines.iter().enumerate() {
            // The L1 does not hold memory that the host may write.
            let cached = cached && !is_pinned(line.line);
            let hit = if cached { self.l1.lookup(line.line, line.sectors) } else { 0 };
            hits += sector_count(hit);
            let mut missing = line.sectors & !hit;
            if missing == 0 {
                continue;
            }
            if tracker == NONE {
                tracker = self.outstanding.trackers.insert(Tracker { owner, remaining: 0, known: 0 });
            }
            if cached {
                let before = sector_count(missing);
                let (rest, joined) = self.outstanding.join(line.line, missing, tracker);
                remaining += joined;
                missing = rest;
                // Hardware counts a sector that is on its way as a hit.
                let on_their_way = before - sector_count(missing);
                hits += on_their_way;
                self.counters.l1_mshr_merges += u64::from(on_their_way);
            }
            if missing != 0 {
                remaining += 1;
                requested += sector_count(missing);
                self.counters.l1_requests_load += 1;
                let cycle = start + at as u64 / specification.tags_per_cycle + specification.miss_latency;
                let mshr = self.outstanding.add_line(line.line, missing, cached, tracker, cycle);
                let request = load_request(line.line, mshr << 2 | LOAD, launch, missing);
                let request = MemoryRequest { scope, ..request };
                self.below.send(request, &mut Moment { cycle, ports, counters: &mut self.counters, out });
            }
        }
        counters.l1_sector_hits_load += u64::from(hits);
        counters.l2_sectors_load += u64::from(requested);
        if tracker == NONE {
            return None;
        }
        self.outstanding.trackers[tracker].remaining = remaining;
        Some(tracker)
    }

    fn write(
        &mut self,
        specification: &PipeSpecification,
        access: Access,
        lines: &[LineAccess],
        start: u64,
        (ports, out): (&Ports, &mut Outbox),
    ) -> Answer {
        let Access { access, owner, launch, known, .. } = access;
        let count = lines.len() as u32;
        let (kind, id, answer) = match access.kind {
            AccessKind::Load | AccessKind::Store => {
                let id = write_id(owner.warp, owner.generation);
                (MemoryKind::Store, id, Answer::Written(count))
            }
            update => {
                let key = self.outstanding.trackers.insert(Tracker { owner, remaining: count, known });
                let kind = if update == AccessKind::Atomic { MemoryKind::Atomic } else { MemoryKind::Reduction };
                (kind, key << 2 | ATOMIC, Answer::Updated(key, count))
            }
        };
        self.outstanding.writes += count;
        self.counters.l1_requests_store += u64::from(count);
        let is_store = kind == MemoryKind::Store;
        if is_store && access.space == Space::Local {
            // Stores of threads to their own memory stay in the L1 for them (CUDA C++ Programming Guide, local memory).
            for (line, full) in lines.iter().map(|line| (line, full_sectors(line.words))).filter(|&(_, full)| full != 0)
            {
                self.counters.l1_evictions += u64::from(self.l1.fill(line.line, full));
            }
        }
        if !is_store {
            // The new value is made in L2, and the thread's next load must find it.
            for line in lines {
                self.l1.forget(line.line, line.sectors);
            }
        }
        let scope = scope_of(access);
        for (at, line) in lines.iter().enumerate() {
            let request = MemoryRequest { scope, ..write_request(line, (id, launch), kind) };
            let cycle = start + at as u64 / specification.tags_per_cycle + specification.miss_latency;
            self.below.send(request, &mut Moment { cycle, ports, counters: &mut self.counters, out });
        }
        answer
    }

    /// Begins a copy of many bytes: the key under which its end will be told.
    pub fn open_bulk(&mut self, owner: Owner, known: u64) -> u32 {
        // That it may make further accesses is a part that has not come.
        self.outstanding.trackers.insert(Tracker { owner, remaining: 1, known })
    }

    /// Such a copy makes no further accesses.
    pub fn close_bulk(&mut self, key: u32, events: &mut Vec<Event>) {
        self.part_arrived(key, events);
    }

    /// Takes in an access of such a copy, past the L1. It is one of a launch, and counted.
    pub fn bulk_access(
        &mut self,
        specification: &PipeSpecification,
        access: &MemoryAccess,
        lines: &[LineAccess],
        (key, launch, counters): (u32, u32, &mut CtaCounters),
        now: u64,
        (ports, out): (&Ports, &mut Outbox),
    ) {
        self.outstanding.trackers[key].remaining += lines.len() as u32;
        for (cycle, line) in (now..).zip(lines) {
            let request = if access.kind == AccessKind::Load {
                counters.l2_sectors_load += u64::from(sector_count(line.sectors));
                self.counters.l1_requests_load += 1;
                let mshr = self.outstanding.add_line(line.line, line.sectors, false, key, cycle);
                load_request(line.line, mshr << 2 | LOAD, launch, line.sectors)
            } else {
                self.outstanding.writes += 1;
                self.counters.l1_requests_store += 1;
                // What the L1 holds of the line is old.
                self.l1.forget(line.line, line.sectors);
                let is_store = access.kind == AccessKind::Store;
                let kind = if is_store { MemoryKind::Store } else { MemoryKind::Reduction };
                // A lane has several elements; the L2 adds words, or pairs of halves.
                let operations = if is_store { 0 } else { line.lanes * access.bytes.div_ceil(4) };
                MemoryRequest { operations, ..write_request(line, (key << 2 | ATOMIC, launch), kind) }
            };
            let request = MemoryRequest { scope: scope_of(access), ..request };
            let cycle = cycle + specification.miss_latency;
            self.below.send(request, &mut Moment { cycle, ports, counters: &mut self.counters, out });
        }
    }

    /// Requests a line of code, for a kernel that runs.
    pub fn request_code(
        &mut self,
        (number, line): (u32, u64),
        launch: LaunchId,
        cycle: u64,
        ports: &Ports,
        out: &mut Outbox,
    ) {
        let request = load_request(line, number << 2 | CODE, launch.0, 0b1111);
        self.below.send(request, &mut Moment { cycle, ports, counters: &mut self.counters, out });
    }

    /// Prefetches into the host's cache the data that the answers of a window will need. Calls `of_warp` with the warps that are told of
    /// them.
    pub fn prefetch<'a>(
        &self,
        responses: impl Iterator<Item = &'a MemoryResponse> + Clone,
        mut of_warp: impl FnMut(usize),
    ) {
        let loads = || responses.clone().filter(|response| response.id & 3 == LOAD);
        for response in loads() {
            self.outstanding.prefetch_line(response.id >> 2);
            self.l1.prefetch(response.line);
        }
        loads().for_each(|response| self.outstanding.prefetch_tracker(response.id >> 2));
        for response in responses {
            match response.id & 3 {
                LOAD => {
                    if let Some(owner) = self.outstanding.requester(response.id >> 2) {
                        of_warp(usize::from(owner.warp));
                    }
                }
                WRITE => of_warp(usize::from(writer_of(response.id).0)),
                _ => {}
            }
        }
    }

    /// A response of the memory system has arrived: its effects, in order. The answer to an atomic whose values are not known yet is held
    /// back until [`Self::next_due`].
    pub fn receive(
        &mut self,
        specification: &PipeSpecification,
        response: MemoryResponse,
        cycle: u64,
        events: &mut Vec<Event>,
    ) {
        let key = response.id >> 2;
        match response.id & 3 {
            LOAD => {
                let mut mshr = self.outstanding.remove_line(key);
                self.counters.l2_round_trip_cycles += cycle.saturating_sub(mshr.requested_cycle);
                // The L1 does not hold memory that the host may write.
                let cached = mshr.cached && response.served_by != ServedBy::HostMemory;
                if cached && self.l1.fill(mshr.line, mshr.sectors) {
                    self.counters.l1_evictions += 1;
                }
                while let Some((tracker, is_requester)) = self.outstanding.next_waiter(&mut mshr) {
                    if is_requester {
                        let owner = self.outstanding.trackers[tracker].owner;
                        count_found(&response, (owner.warp, owner.generation), events);
                    }
                    self.part_arrived(tracker, events);
                }
            }
            WRITE => {
                self.outstanding.writes -= 1;
                let (warp, generation) = writer_of(response.id);
                count_found(&response, (warp, generation), events);
                events.push(Event::Acknowledged(warp, generation));
            }
            CODE => events.push(Event::Code(key)),
            _ => {
                let Tracker { owner, known, .. } = self.outstanding.trackers[key];
                if known > cycle {
                    self.held.push_back((known, response));
                    return;
                }
                count_found(&response, (owner.warp, owner.generation), events);
                self.part_arrived(key, events);
                self.outstanding.writes -= 1;
                events.push(Event::Acknowledged(owner.warp, owner.generation));
            }
        }
        self.tell_of_room(specification, events);
    }

    fn part_arrived(&mut self, key: u32, events: &mut Vec<Event>) {
        let tracker = &mut self.outstanding.trackers[key];
        tracker.remaining -= 1;
        let Tracker { owner, remaining, .. } = *tracker;
        if remaining == 0 {
            self.outstanding.trackers.remove(key);
            events.push(Event::Completed(key, owner));
        }
    }

    /// The cycle in which answers that are held back are due; `u64::MAX` where none are.
    #[inline]
    pub fn next_due(&self) -> u64 {
        self.held.front().map_or(u64::MAX, |&(known, _)| known)
    }

    /// Takes the answers that are due by `cycle`.
    pub fn release_due(&mut self, specification: &PipeSpecification, cycle: u64, events: &mut Vec<Event>) {
        while self.next_due() <= cycle
            && let Some((_, response)) = self.held.pop_front()
        {
            self.receive(specification, response, cycle, events);
        }
    }

    /// The last cycle in which a request that has been made leaves the SM.
    #[inline]
    pub fn last_request(&self) -> u64 {
        self.below.last_request()
    }

    /// A warp begins to wait for its stores.
    pub fn drain(&mut self, cycle: u64, ports: &Ports, out: &mut Outbox) {
        self.below.drain(&mut Moment { cycle, ports, counters: &mut self.counters, out });
    }

    /// Lines under way for loads.
    pub fn lines_under_way(&self) -> u32 {
        self.outstanding.lines()
    }

    /// Stores, reductions and atomics without an answer.
    pub fn writes_under_way(&self) -> u32 {
        self.outstanding.writes
    }

    /// Its counters.
    pub fn counters(&self) -> &SmCounters {
        &self.counters
    }
}

/// The number of the stores of the warp of a generation; the low bits of the generation fit.
fn write_id(warp: u16, generation: u32) -> u32 {
    generation << 9 | u32::from(warp) << 2 | WRITE
}

/// The warp and the generation that [`write_id`] was made of.
fn writer_of(id: u32) -> (u16, u32) {
    ((id >> 2 & 0x7f) as u16, id >> 9)
}

/// Notes the sectors that the L2 found for a request of a warp.
#[inline]
fn count_found(response: &MemoryResponse, (warp, generation): (u16, u32), events: &mut Vec<Event>) {
    let found = FoundSectors::of(response);
    if !found.is_empty() {
        events.push(Event::Found(warp, generation, found));
    }
}

fn load_request(line: u64, id: u32, launch: u32, sectors: u8) -> MemoryRequest {
    MemoryRequest {
        line,
        id,
        launch,
        return_port: 0,
        data_bytes: 0,
        written_words: 0,
        sectors,
        operations: 0,
        update_sectors: 0,
        kind: MemoryKind::Load,
        scope: Scope::Weak,
        aperture: Aperture::Device,
        is_far: false,
        residency: Residency::default(),
    }
}

/// A store, atomic or reduction of a line, under a number and of a launch.
fn write_request(line: &LineAccess, (id, launch): (u32, u32), kind: MemoryKind) -> MemoryRequest {
    let is_store = kind == MemoryKind::Store;
    MemoryRequest {
        line: line.line,
        id,
        launch,
        return_port: 0,
        data_bytes: line.bytes,
        written_words: if is_store { line.words } else { 0 },
        sectors: line.sectors,
        operations: if is_store { 0 } else { line.lanes },
        update_sectors: line.update_sectors,
        kind,
        scope: Scope::Weak,
        aperture: Aperture::Device,
        is_far: false,
        residency: Residency::default(),
    }
}

/// Who must see an access: a volatile one is relaxed with the scope of the system (PTX ISA, memory consistency model), an atomic
/// that does not say otherwise has the GPU's.
fn scope_of(access: &MemoryAccess) -> Scope {
    match (access.cache, access.kind) {
        (CacheOperator::Volatile, _) => Scope::System,
        (_, AccessKind::Atomic | AccessKind::Reduction) => Scope::Device,
        _ => Scope::Weak,
    }
}

#[cfg(test)]
mod tests;
