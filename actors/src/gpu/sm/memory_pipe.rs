//! The memory pipe: L1, its outstanding lines, and what goes to the crossbar and comes back.

use super::Sm;
use super::coalescer::{LineAccess, Lines, shared_wavefronts};
use super::counters::Stall;
use super::issue::{Step, count_access};
use super::warp_slot::{Ready, Status};
use crate::engine::Outbox;
use balar_host::memory::is_pinned;
use balar_isa::execution::{AccessKind, CacheOperator, Space};
use balar_isa::program::{Timing, lanes};
use balar_protocol::memory::{MemoryKind, MemoryMessage, MemoryRequest, MemoryResponse, Scope};
use balar_protocol::translation::TranslationMessage;
use balar_protocol::{Payload, SimTime};

/// What waits for a load.
#[derive(Clone, Copy)]
pub(super) enum Consumer<'a> {
    /// The registers that the instruction writes.
    Registers(&'a Timing),
    /// The batch of copies that the warp is making.
    Copies,
}

/// Local memory of all warps lies here, above every device address, interleaved word by word over the lanes.
const LOCAL_WINDOW: u64 = 0x7f00_0000_0000;
/// No index.
const NONE: u32 = u32::MAX;
/// Hash chains of outstanding lines.
const BUCKETS: usize = 256;

/// A load or atomic with parts under way.
#[derive(Clone, Copy, Debug)]
struct Tracker {
    warp: u16,
    generation: u32,
    pc: u32,
    remaining: u32,
    /// Of a copy to shared memory: the batch it belongs to. Of others: [`NONE`].
    batch: u32,
    next_free: u32,
}

/// A line under way from below the L1.
#[derive(Clone, Copy, Debug)]
struct Mshr {
    line: u64,
    requested_cycle: u64,
    sectors: u8,
    /// Will the line go into L1?
    cached: bool,
    /// Trackers that wait for it, as a chain of waiters.
    waiters: u32,
    next_in_bucket: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    tracker: u32,
    next: u32,
}

/// What is under way below the L1 of an SM.
#[derive(Debug)]
pub struct Outstanding {
    trackers: Vec<Tracker>,
    free_tracker: u32,
    mshrs: Vec<Mshr>,
    free_mshr: u32,
    used_mshrs: u32,
    waiters: Vec<Waiter>,
    free_waiter: u32,
    buckets: [u32; BUCKETS],
    /// Stores, reductions and atomics without an answer.
    pub writes: u32,
    /// Requests that wait for the GMMU: (translation number, request, cycle at which they were ready).
    translating: Vec<(u32, MemoryRequest)>,
    next_translation: u32,
}

impl Default for Outstanding {
    fn default() -> Self {
        Outstanding {
            trackers: Vec::new(),
            free_tracker: NONE,
            mshrs: Vec::new(),
            free_mshr: NONE,
            used_mshrs: 0,
            waiters: Vec::new(),
            free_waiter: NONE,
            buckets: [NONE; BUCKETS],
            writes: 0,
            translating: Vec::new(),
            next_translation: 0,
        }
    }
}

/// Kinds of request numbers, in their low two bits.
const LOAD: u32 = 0;
const WRITE: u32 = 1;
const ATOMIC: u32 = 2;
const CODE: u32 = 3;

fn bucket(line: u64) -> usize {
    ((line >> 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}

impl Outstanding {
    /// Lines under way for loads.
    pub fn lines(&self) -> u32 {
        self.used_mshrs
    }

    fn add_tracker(&mut self, tracker: Tracker) -> u32 {
        if self.free_tracker == NONE {
            self.trackers.push(tracker);
            return self.trackers.len() as u32 - 1;
        }
        let at = self.free_tracker;
        self.free_tracker = self.trackers[at as usize].next_free;
        self.trackers[at as usize] = tracker;
        at
    }

    fn free_tracker(&mut self, at: u32) {
        self.trackers[at as usize].next_free = self.free_tracker;
        self.free_tracker = at;
    }

    fn add_waiter(&mut self, tracker: u32, next: u32) -> u32 {
        if self.free_waiter == NONE {
            self.waiters.push(Waiter { tracker, next });
            return self.waiters.len() as u32 - 1;
        }
        let at = self.free_waiter;
        self.free_waiter = self.waiters[at as usize].next;
        self.waiters[at as usize] = Waiter { tracker, next };
        at
    }

    fn add_mshr(&mut self, line: u64, sectors: u8, cached: bool, tracker: u32, cycle: u64) -> u32 {
        let waiters = self.add_waiter(tracker, NONE);
        let bucket = bucket(line);
        let next_in_bucket = self.buckets[bucket];
        let mshr = Mshr { line, requested_cycle: cycle, sectors, cached, waiters, next_in_bucket };
        let at = if self.free_mshr == NONE {
            self.mshrs.push(mshr);
            self.mshrs.len() as u32 - 1
        } else {
            let at = self.free_mshr;
            self.free_mshr = self.mshrs[at as usize].next_in_bucket;
            self.mshrs[at as usize] = mshr;
            at
        };
        self.buckets[bucket] = at;
        self.used_mshrs += 1;
        at
    }

    fn remove_mshr(&mut self, at: u32) -> Mshr {
        let mshr = self.mshrs[at as usize];
        let bucket = bucket(mshr.line);
        if self.buckets[bucket] == at {
            self.buckets[bucket] = mshr.next_in_bucket;
        } else {
            let mut before = self.buckets[bucket];
            while self.mshrs[before as usize].next_in_bucket != at {
                before = self.mshrs[before as usize].next_in_bucket;
            }
            self.mshrs[before as usize].next_in_bucket = mshr.next_in_bucket;
        }
        self.mshrs[at as usize].next_in_bucket = self.free_mshr;
        self.free_mshr = at;
        self.used_mshrs -= 1;
        mshr
    }

    /// Joins lines under way that bring some of `sectors`; returns the sectors that none brings, and how often it joined.
    fn join(&mut self, line: u64, mut sectors: u8, tracker: u32) -> (u8, u32) {
        let mut joined = 0;
        let mut at = self.buckets[bucket(line)];
        while at != NONE && sectors != 0 {
            let mshr = self.mshrs[at as usize];
            if mshr.line == line && mshr.cached && mshr.sectors & sectors != 0 {
                sectors &= !mshr.sectors;
                let waiter = self.add_waiter(tracker, mshr.waiters);
                self.mshrs[at as usize].waiters = waiter;
                joined += 1;
            }
            at = mshr.next_in_bucket;
        }
        (sectors, joined)
    }
}

impl Sm {
    /// Can a warp's access, which touches at most 32 lines, be taken in?
    #[inline]
    pub(super) fn room_below_l1(&self) -> bool {
        self.outstanding.used_mshrs + 32 <= self.l1_mshrs && self.outstanding.writes + 32 <= self.store_queue
    }

    /// Times the access that the last step made.
    pub(super) fn access(
        &mut self,
        warp: usize,
        pc: u32,
        timing: &Timing,
        deferred: bool,
        cycle: u64,
        step: &mut Step,
    ) {
        let (space, kind) = (self.access.space, self.access.kind);
        let cta = usize::from(self.warps[warp].cta);
        count_access(&mut self.ctas[cta].counters, space, kind);
        if self.access.mask == 0 {
            self.warps[warp].set_ready(timing, Ready::at(cycle + 1, Stall::Wait));
            return;
        }
        match space {
            Space::Shared => self.shared_access(warp, timing, cycle),
            Space::Constant | Space::Parameter => {
                let latency = u64::from(self.latencies[balar_isa::program::LatencyClass::Constant as usize]);
                self.warps[warp].set_ready(timing, Ready::at(cycle + latency, Stall::ShortScoreboard));
            }
            Space::Global | Space::Local => {
                if space == Space::Local {
                    self.interleave_local(warp);
                }
                let (lines, start, busy) = self.enter_pipe(cycle);
                match kind {
                    AccessKind::Load => {
                        self.load(warp, pc, Consumer::Registers(timing), lines.as_slice(), start, busy, step.out);
                    }
                    _ => self.write(warp, pc, timing, deferred, lines.as_slice(), start, step.out),
                }
                self.lines = lines;
            }
        }
    }

    /// The lines of the last access, and when and for how long the pipe takes it.
    pub(super) fn enter_pipe(&mut self, cycle: u64) -> (Lines, u64, u64) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.gather(&self.access);
        for access in self.further.drain(..) {
            lines.add(&access);
        }
        let tags = (lines.as_slice().len() as u64).div_ceil(self.l1_tags_per_cycle);
        let data = u64::from(lines.sectors()).div_ceil(self.l1_sectors_per_cycle);
        let start = self.memory_pipe_free.max(cycle);
        let busy = tags.max(data);
        self.memory_pipe_free = start + busy;
        (lines, start, busy)
    }

    fn shared_access(&mut self, warp: usize, timing: &Timing, cycle: u64) {
        let (wavefronts, least) = shared_wavefronts(&self.access);
        let start = self.memory_pipe_free.max(cycle);
        self.memory_pipe_free = start + u64::from(wavefronts);
        let slot = &mut self.warps[warp];
        let counters = &mut self.ctas[usize::from(slot.cta)].counters;
        counters.shared_memory_bank_conflicts += u64::from(wavefronts - least);
        if self.access.kind == AccessKind::Load {
            counters.shared_wavefronts_load += u64::from(wavefronts);
        } else {
            counters.shared_wavefronts_store += u64::from(wavefronts);
        }
        let ready = start + self.shared_latency + u64::from(wavefronts) - 1;
        slot.set_ready(timing, Ready::at(ready, Stall::ShortScoreboard));
    }

    /// A thread's local addresses become addresses of the window in which the warp's lanes lie side by side.
    fn interleave_local(&mut self, warp: usize) {
        let bytes = u64::from(self.access.bytes);
        let program = self.warps[warp].program.as_ref();
        let lane_bytes = program.map_or(0, |program| u64::from(program.resources().local_bytes)).next_multiple_of(16);
        let warp_number = u64::from(self.index) * self.warps.len() as u64 + warp as u64;
        let base = LOCAL_WINDOW + warp_number * 32 * lane_bytes.next_multiple_of(128);
        // Lanes that take no part have anything for an address.
        for lane in lanes(self.access.mask) {
            let address = &mut self.access.addresses[lane];
            *address = base + *address * 32 + lane as u64 * bytes;
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the arguments are one access")]
    pub(super) fn load(
        &mut self,
        warp: usize,
        pc: u32,
        consumer: Consumer,
        lines: &[LineAccess],
        start: u64,
        busy: u64,
        out: &mut Outbox,
    ) {
        let local = self.access.space == Space::Local;
        let cached = match self.access.cache {
            CacheOperator::All | CacheOperator::Streaming => local || self.l1_caches_global_loads,
            CacheOperator::Texture => true,
            CacheOperator::L2Only | CacheOperator::Volatile => false,
        };
        let generation = self.warps[warp].generation;
        let batch = match consumer {
            Consumer::Registers(_) => NONE,
            Consumer::Copies => self.warps[warp].copies.number(),
        };
        let cta = usize::from(self.warps[warp].cta);
        let launch = self.ctas[cta].launch.as_ref().map_or(0, |launch| launch.id.0);
        let mut tracker = NONE;
        let mut remaining = 0;
        let (mut asked, mut hits, mut requested) = (0, 0, 0);
        for (at, line) in lines.iter().enumerate() {
            // The L1 does not hold what the host may write.
            let cached = cached && !is_pinned(line.line);
            let hit = if cached { self.l1.lookup(line.line, line.sectors) } else { 0 };
            asked += line.sectors.count_ones();
            hits += hit.count_ones();
            let mut missing = line.sectors & !hit;
            if missing == 0 {
                continue;
            }
            if tracker == NONE {
                tracker = self.outstanding.add_tracker(Tracker {
                    warp: warp as u16,
                    generation,
                    pc,
                    remaining: 0,
                    batch,
                    next_free: NONE,
                });
            }
            if cached {
                let before = missing.count_ones();
                let (rest, joined) = self.outstanding.join(line.line, missing, tracker);
                remaining += joined;
                missing = rest;
                self.counters.l1_mshr_merges += u64::from(before - missing.count_ones());
            }
            if missing != 0 {
                remaining += 1;
                requested += missing.count_ones();
                self.counters.l1_requests_load += 1;
                let cycle = start + at as u64 / self.l1_tags_per_cycle + self.l1_miss_latency;
                let mshr = self.outstanding.add_mshr(line.line, missing, cached, tracker, cycle);
                let request = MemoryRequest {
                    line: line.line,
                    id: mshr << 2 | LOAD,
                    launch,
                    return_port: 0,
                    data_bytes: 0,
                    sectors: missing,
                    full_sectors: 0,
                    operations: 0,
                    kind: MemoryKind::Load,
                    scope: Scope::Weak,
                };
                self.send_translated(request, cycle, out);
            }
        }
        let counters = &mut self.ctas[cta].counters;
        counters.l1_sectors_load += u64::from(asked);
        counters.l1_sector_hits_load += u64::from(hits);
        counters.l2_sectors_load += u64::from(requested);
        let slot = &mut self.warps[warp];
        if tracker != NONE {
            self.outstanding.trackers[tracker as usize].remaining = remaining;
        }
        let ready = start + self.l1_hit_latency + busy - 1;
        match consumer {
            Consumer::Registers(timing) if tracker == NONE => {
                slot.set_ready(timing, Ready::at(ready, Stall::LongScoreboard));
            }
            Consumer::Registers(timing) => slot.set_ready(timing, Ready::PENDING),
            Consumer::Copies if tracker == NONE => slot.copies.ready_at(ready),
            Consumer::Copies => slot.copies.begin(),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one call site; the arguments are one access")]
    fn write(
        &mut self,
        warp: usize,
        pc: u32,
        timing: &Timing,
        deferred: bool,
        lines: &[LineAccess],
        start: u64,
        out: &mut Outbox,
    ) {
        let (kind, number) = match self.access.kind {
            AccessKind::Atomic => (MemoryKind::Atomic, ATOMIC),
            AccessKind::Reduction => (MemoryKind::Reduction, WRITE),
            AccessKind::Load | AccessKind::Store => (MemoryKind::Store, WRITE),
        };
        let generation = self.warps[warp].generation;
        let cta = usize::from(self.warps[warp].cta);
        let launch = self.ctas[cta].launch.as_ref().map_or(0, |launch| launch.id.0);
        let mut id = (generation & 0x7f_ffff) << 9 | (warp as u32) << 2 | WRITE;
        let count = lines.len() as u32;
        if number == ATOMIC {
            let tracker = Tracker { warp: warp as u16, generation, pc, remaining: count, batch: NONE, next_free: NONE };
            id = self.outstanding.add_tracker(tracker) << 2 | ATOMIC;
            self.warps[warp].set_ready(timing, Ready::PENDING);
        }
        // Also a reduction's lanes come back from the log, as old values that nobody reads.
        if deferred || self.access.kind == AccessKind::Reduction {
            self.deferred.push((warp as u16, generation, deferred.then_some(pc)));
        }
        self.warps[warp].outstanding += count;
        self.outstanding.writes += count;
        let counters = &mut self.ctas[cta].counters;
        for (at, line) in lines.iter().enumerate() {
            if kind == MemoryKind::Store {
                counters.l1_sectors_store += u64::from(line.sectors.count_ones());
            }
            self.counters.l1_requests_store += 1;
            let request = MemoryRequest {
                line: line.line,
                id,
                launch,
                return_port: 0,
                data_bytes: line.bytes,
                sectors: line.sectors,
                full_sectors: if kind == MemoryKind::Store { line.full_sectors } else { 0 },
                operations: if kind == MemoryKind::Store { 0 } else { line.lanes },
                kind,
                scope: Scope::Weak,
            };
            let cycle = start + at as u64 / self.l1_tags_per_cycle + self.l1_miss_latency;
            Sm::send_request(
                request,
                cycle,
                &mut self.tlbs,
                &mut self.counters,
                &mut self.outstanding,
                self.clock,
                (self.memory_port, self.translation_port),
                &mut self.inject_free,
                out,
            );
        }
    }

    /// Requests a line of code.
    pub(super) fn request_code(&mut self, number: u32, line: u64, cycle: u64, out: &mut Outbox) {
        let request = MemoryRequest {
            line,
            id: number << 2 | CODE,
            launch: 0,
            return_port: 0,
            data_bytes: 0,
            sectors: 0b1111,
            full_sectors: 0,
            operations: 0,
            kind: MemoryKind::Load,
            scope: Scope::Weak,
        };
        self.send_translated(request, cycle, out);
    }

    fn send_translated(&mut self, request: MemoryRequest, cycle: u64, out: &mut Outbox) {
        Sm::send_request(
            request,
            cycle,
            &mut self.tlbs,
            &mut self.counters,
            &mut self.outstanding,
            self.clock,
            (self.memory_port, self.translation_port),
            &mut self.inject_free,
            out,
        );
    }

    /// A response of the memory system has arrived.
    pub(super) fn response(&mut self, response: &MemoryResponse, cycle: u64, step: &mut Step) {
        match response.id & 3 {
            LOAD => {
                let mshr = self.outstanding.remove_mshr(response.id >> 2);
                self.counters.l2_round_trip_cycles += cycle.saturating_sub(mshr.requested_cycle);
                if mshr.cached && self.l1.fill(mshr.line, mshr.sectors) {
                    self.counters.l1_evictions += 1;
                }
                let hit_sectors = u64::from(response.hit_sectors.count_ones());
                let mut waiter = mshr.waiters;
                while waiter != NONE {
                    let Waiter { tracker, next } = self.outstanding.waiters[waiter as usize];
                    self.outstanding.waiters[waiter as usize].next = self.outstanding.free_waiter;
                    self.outstanding.free_waiter = waiter;
                    // The chain ends with the access that sent the request: what hit in L2 is counted for it.
                    let l2_hits = if next == NONE { hit_sectors } else { 0 };
                    self.part_arrived(tracker, l2_hits, cycle, step);
                    waiter = next;
                }
            }
            WRITE => {
                let warp = (response.id >> 2 & 0x7f) as usize;
                let generation = response.id >> 9;
                self.write_acknowledged(warp, generation, cycle, step);
            }
            CODE => self.code_arrived(response.id >> 2, cycle, step),
            _ => {
                let tracker = response.id >> 2;
                let Tracker { warp, generation, .. } = self.outstanding.trackers[tracker as usize];
                self.part_arrived(tracker, 0, cycle, step);
                self.write_acknowledged(usize::from(warp), generation & 0x7f_ffff, cycle, step);
            }
        }
        if !self.throttled.is_empty() && self.room_below_l1() {
            let mut throttled = std::mem::take(&mut self.throttled);
            for warp in throttled.drain(..) {
                let warp = usize::from(warp);
                if self.warps[warp].status == Status::Throttled {
                    self.warps[warp].charge_until(cycle, &mut self.counters);
                    self.schedule(warp, cycle, step);
                }
            }
            self.throttled = throttled;
        }
    }

    fn part_arrived(&mut self, at: u32, l2_hits: u64, cycle: u64, step: &mut Step) {
        let tracker = &mut self.outstanding.trackers[at as usize];
        tracker.remaining -= 1;
        let Tracker { warp, generation, pc, remaining, batch, .. } = *tracker;
        if remaining == 0 {
            self.outstanding.free_tracker(at);
        }
        let warp = usize::from(warp);
        let slot = &mut self.warps[warp];
        if slot.generation != generation {
            return;
        }
        self.ctas[usize::from(slot.cta)].counters.l2_sector_hits_load += l2_hits;
        if remaining > 0 {
            return;
        }
        if batch != NONE {
            self.copy_arrived(warp, batch, cycle, step);
            return;
        }
        let Some(program) = &slot.program else { return };
        let timing = *program.timing(pc);
        slot.set_ready(&timing, Ready::at(cycle + self.l1_fill_latency, Stall::LongScoreboard));
        if slot.status == Status::Memory {
            slot.charge_until(cycle, &mut self.counters);
            self.schedule(warp, cycle, step);
        }
    }

    fn write_acknowledged(&mut self, warp: usize, generation: u32, cycle: u64, step: &mut Step) {
        self.outstanding.writes -= 1;
        let slot = &mut self.warps[warp];
        if slot.generation & 0x7f_ffff != generation || slot.status == Status::Empty {
            return;
        }
        slot.outstanding -= 1;
        if slot.outstanding > 0 {
            return;
        }
        match slot.status {
            Status::Fence => {
                slot.charge_until(cycle, &mut self.counters);
                self.schedule(warp, cycle, step);
            }
            Status::Draining if slot.copies.is_idle() => self.retire(warp, cycle, step.out),
            _ => {}
        }
    }

    /// The GMMU has answered: requests of that page go on.
    pub(super) fn translated(&mut self, message: &TranslationMessage, cycle: u64, out: &mut Outbox) {
        match *message {
            TranslationMessage::Response { id, page, .. } => {
                self.tlbs.insert(page);
                let time = self.clock.time_of(cycle);
                let mut translating = std::mem::take(&mut self.outstanding.translating);
                translating.retain(|&(number, request)| {
                    if number == id {
                        self.inject(request, time, out);
                    }
                    number != id
                });
                self.outstanding.translating = translating;
            }
            TranslationMessage::Invalidate { address, bytes, id } => {
                self.tlbs.invalidate(address, bytes);
                if let Some(port) = self.translation_port {
                    let at = self.clock.time_of(cycle);
                    out.send(port, at, Payload::Translation(TranslationMessage::Invalidated { id }));
                }
            }
            TranslationMessage::Request { .. }
            | TranslationMessage::Fault { .. }
            | TranslationMessage::Invalidated { .. } => {}
        }
    }

    fn inject(&self, request: MemoryRequest, at: SimTime, out: &mut Outbox) {
        out.send(self.memory_port, at, Payload::Memory(MemoryMessage::Request(request)));
    }

    #[expect(clippy::too_many_arguments, reason = "called with parts of the SM while others are borrowed")]
    fn send_request(
        request: MemoryRequest,
        cycle: u64,
        tlbs: &mut super::Tlbs,
        counters: &mut super::counters::SmCounters,
        outstanding: &mut Outstanding,
        clock: balar_protocol::Clock,
        ports: (balar_protocol::PortId, Option<balar_protocol::PortId>),
        inject_free: &mut u64,
        out: &mut Outbox,
    ) {
        // One request leaves the SM in a cycle.
        let cycle = cycle.max(*inject_free);
        *inject_free = cycle + 1;
        counters.tlb_lookups += 1;
        let mut delay = 0;
        if !tlbs.first.lookup(request.line) {
            counters.tlb_misses += 1;
            if tlbs.second.lookup(request.line) {
                tlbs.first.insert(request.line);
                delay = tlbs.second_level_latency;
            } else {
                counters.tlb_second_level_misses += 1;
                if let Some(port) = ports.1 {
                    let page = request.line & !(tlbs.page_bytes - 1);
                    let under_way =
                        outstanding.translating.iter().find(|(_, other)| other.line & !(tlbs.page_bytes - 1) == page);
                    let number = match under_way {
                        Some(&(number, _)) => number,
                        None => {
                            let id = outstanding.next_translation;
                            outstanding.next_translation = id.wrapping_add(1);
                            let write = request.kind != MemoryKind::Load;
                            let ask = TranslationMessage::Request { address: page, id, write };
                            out.send(port, clock.time_of(cycle), Payload::Translation(ask));
                            id
                        }
                    };
                    outstanding.translating.push((number, request));
                    return;
                }
                tlbs.insert(request.line);
                delay = tlbs.second_level_latency;
            }
        }
        let at = clock.time_of(cycle + delay);
        out.send(ports.0, at, Payload::Memory(MemoryMessage::Request(request)));
    }
}
