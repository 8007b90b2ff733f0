//! A channel by its bank timing: first-ready, first-come-first-served, with write draining.
//!
//! Row commands (activate, precharge) and column commands (read, write) have a command bus each, as in HBM. A request's sectors go
//! to one row: its column commands are `t_ccd_l` apart, and those of another bank group fall in between. So a request of n sectors
//! charges the data bus n x `t_ccd_s` and its bank group n x `t_ccd_l`. A channel works from command to command, never through idle cycles.
//!
//! Where its DRAM cannot mask what it writes, a write of parts of sectors is a read of these sectors first, and then a write that takes the
//! place of that read.
//!
//! The next command of each bus is kept, and sought again only after a command or a refresh that may have changed it.
//!
//! **Invariant:** a channel's commands depend on the cycles of arrivals alone, never on where its windows end.

use super::bursts::Requester;
use super::counters::ChannelCounters;
use super::timing::{DramTiming, Refresh};
use crate::interleave::{BitFunction, fold};
use crate::slab::Slab;
use balar_protocol::by_launch::{ByLaunch, LaunchTotals};
use balar_protocol::memory::{LINE_BYTES, MemoryKind, MemoryRequest, sector_count};
use balar_protocol::prefetch::prefetch;
use balar_protocol::{Clock, SimTime};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A row number no request has: nothing open.
const CLOSED: u32 = u32::MAX;
/// No entry of the bank's queue hits the open row.
const NO_HIT: u32 = u32::MAX;

/// A request that has arrived, and whom its end is told to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Accepted {
    request: MemoryRequest,
    requester: Requester,
    arrived: SimTime,
}

/// The scheduler's knowledge of a request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    age: u64,
    row: u32,
    /// Its number among those accepted.
    number: u32,
}

/// A request that the scheduler does not see before its cycle.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Arrival {
    cycle: u64,
    entry: Entry,
    bank: u8,
    /// 1 where it writes.
    direction: u8,
}

/// The waiting reads or writes of one bank.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Queue {
    entries: VecDeque<Entry>,
    /// Position of the oldest entry that hits the open row, and its age.
    hit: u32,
    hit_age: u64,
    /// Age of the oldest entry.
    first_age: u64,
}

impl Queue {
    /// Finds the oldest entry for `row`; there is none before position `from`.
    #[inline]
    fn seek_hit(&mut self, row: u32, from: usize) {
        match self.entries.range(from..).position(|entry| entry.row == row) {
            Some(position) => {
                self.hit = (from + position) as u32;
                self.hit_age = self.entries[from + position].age;
            }
            None => self.hit = NO_HIT,
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Bank {
    open: u32,
    /// First cycles in which the bank may take each command.
    activate: u64,
    column: u64,
    precharge: u64,
    /// Hits of the open row that passed an older request.
    passed: u32,
    /// Opened for the next request: after closing another row (`Some(true)`) or not.
    opened: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidate {
    cycle: u64,
    age: u64,
    bank: u32,
}

impl Candidate {
    const NEVER: Candidate = Candidate { cycle: u64::MAX, age: u64::MAX, bank: 0 };

    #[inline]
    fn before(&self, other: &Candidate) -> bool {
        (self.cycle, self.age) < (other.cycle, other.age)
    }
}

/// The most banks of a channel: sets of banks are words.
const MOST_BANKS: usize = u64::BITS as usize;

/// The earliest next commands of the banks with requests of the present direction, as far as the banks limit them; they follow from the
/// state.
#[derive(Debug)]
struct NextCommands {
    /// Banks whose next command is a column command, an activate, a precharge.
    columns: u64,
    activates: u64,
    precharges: u64,
    /// The first cycle in which each bank may take its command, and the age of the request that wants it.
    commands: Box<[(u64, u64); MOST_BANKS]>,
}

impl Default for NextCommands {
    fn default() -> NextCommands {
        NextCommands { columns: 0, activates: 0, precharges: 0, commands: Box::new([(0, 0); MOST_BANKS]) }
    }
}

impl NextCommands {
    /// The first command of a set of banks, where a bank's own is not before the cycle that `bus` allows.
    #[inline]
    fn first(&self, mut banks: u64, first: Candidate, bus: impl Fn(usize) -> u64) -> Candidate {
        // Numbers are compared and chosen without a branch: the processor could not predict one here.
        let key = |cycle: u64, age: u64| u128::from(cycle) << 64 | u128::from(age);
        let (mut best, mut best_bank) = (key(first.cycle, first.age), first.bank);
        while banks != 0 {
            let bank = banks.trailing_zeros();
            banks &= banks - 1;
            let (ready, age) = self.commands[bank as usize % MOST_BANKS];
            let candidate = key(ready.max(bus(bank as usize)), age);
            best_bank = if candidate < best { bank } else { best_bank };
            best = candidate.min(best);
        }
        Candidate { cycle: (best >> 64) as u64, age: best as u64, bank: best_bank }
    }
}

/// The way to the request of the next command.
#[derive(Clone, Copy, Debug)]
pub(super) enum PrefetchStep {
    Queue,
    Entry,
    Request,
}

/// Everything that changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ChannelState {
    now: u64,
    ages: u64,
    /// Requests that are under way here; queues are small, and walked through over and over.
    accepted: Slab<Accepted>,
    arrivals: VecDeque<Arrival>,
    /// Reads and writes of each bank.
    queues: [Vec<Queue>; 2],
    /// Banks with waiting reads, writes.
    busy: [u64; 2],
    /// Waiting reads, writes.
    counts: [u32; 2],
    /// Serves writes.
    draining: bool,
    /// The last cycle in which a read waited.
    last_read: u64,
    /// The last column command was a write.
    wrote: bool,
    banks: Vec<Bank>,
    /// First cycle of the next column command in each bank group.
    group_column: Vec<u64>,
    column_bus: u64,
    row_bus: u64,
    /// First cycles of the next read and write, by bus turnaround.
    direction: [u64; 2],
    last_activate: Option<u64>,
    /// The last four activates.
    activates: [Option<u64>; 4],
    next_activate: u32,
    next_refresh: u64,
    refresh_bank: u32,
    pub counters: ChannelCounters,
    by_launch: ByLaunch<ChannelCounters>,
}

/// A channel by its bank timing.
#[derive(Debug)]
pub(super) struct BankTimedChannel {
    clock: Clock,
    timing: DramTiming,
    controller_latency: SimTime,
    interleave: u64,
    lines_of_row: u64,
    group_of_bank: u32,
    /// The bank of a line, where the topology says so.
    bank_function: Option<BitFunction>,
    busy_time: [SimTime; 5],
    state: ChannelState,
    next: NextCommands,
    /// The next column and row command, by the state; `None` where they must be sought. They hold until time passes them.
    column: Option<Candidate>,
    row: Option<Candidate>,
    /// Nothing is to be done before this cycle.
    due: u64,
}

/// The first cycle that the buses leave to a command of each kind.
#[derive(Clone, Copy)]
struct Buses {
    column: u64,
    activate: u64,
    precharge: u64,
}

impl BankTimedChannel {
    pub(super) fn new(
        clock: Clock,
        timing: &DramTiming,
        controller_latency: SimTime,
        interleave: u32,
    ) -> BankTimedChannel {
        let bank = Bank { open: CLOSED, activate: 0, column: 0, precharge: 0, passed: 0, opened: None };
        let queue = || Queue { entries: VecDeque::new(), hit: NO_HIT, hit_age: 0, first_age: 0 };
        let queues = || (0..timing.banks).map(|_| queue()).collect();
        let mut channel = BankTimedChannel {
            clock,
            controller_latency,
            interleave: u64::from(interleave.max(1)),
            lines_of_row: u64::from(timing.row_bytes) / LINE_BYTES,
            group_of_bank: timing.bank_groups - 1,
            // `DramTiming::check` has found no fault with it.
            bank_function: timing.bank_function().ok().flatten(),
            busy_time: [0u64, 1, 2, 3, 4].map(|sectors| clock.time_of(sectors * u64::from(timing.burst))),
            timing: timing.clone(),
            state: ChannelState {
                now: 0,
                ages: 0,
                accepted: Slab::default(),
                arrivals: VecDeque::new(),
                queues: [queues(), queues()],
                busy: [0; 2],
                counts: [0; 2],
                draining: false,
                last_read: 0,
                wrote: false,
                banks: vec![bank; timing.banks as usize],
                group_column: vec![0; timing.bank_groups as usize],
                column_bus: 0,
                row_bus: 0,
                direction: [0; 2],
                last_activate: None,
                activates: [None; 4],
                next_activate: 0,
                next_refresh: u64::MAX,
                refresh_bank: 0,
                counters: ChannelCounters::default(),
                by_launch: ByLaunch::default(),
            },
            next: NextCommands::default(),
            column: None,
            row: None,
            due: u64::MAX,
        };
        channel.state.next_refresh = channel.refresh_interval();
        channel
    }

    pub(super) fn state(&self) -> &ChannelState {
        &self.state
    }

    /// Gives the counts by launch.
    pub(super) fn shares(&mut self, totals: &mut LaunchTotals) {
        self.state.by_launch.give(totals);
    }

    /// Takes over a saved state. False where it is of another shape.
    pub(super) fn restore(&mut self, state: ChannelState) -> bool {
        let (banks, groups) = (self.state.banks.len(), self.state.group_column.len());
        let right = state.banks.len() == banks
            && state.queues.iter().all(|queues| queues.len() == banks)
            && state.group_column.len() == groups
            && state.next_activate < 4
            && (state.refresh_bank as usize) < banks
            && state.arrivals.iter().all(|arrival| usize::from(arrival.bank) < banks && arrival.direction < 2);
        if right {
            self.state = state;
            self.due = 0;
            self.renew_all();
        }
        right
    }

    /// Takes a request in.
    pub(super) fn arrive(&mut self, time: SimTime, cycle: u64, requester: Requester, request: MemoryRequest) {
        let (bank, row) = self.place(request.line);
        let first_read = self.sectors_read_first(&request);
        let state = &mut self.state;
        for counters in [&mut state.counters, state.by_launch.of(request.launch)] {
            counters.arrivals(&request, 1);
            counters.reads_before_a_write(first_read);
        }
        let number = state.accepted.insert(Accepted { request, requester, arrived: time });
        let entry = Entry { age: state.ages, row, number };
        state.ages += 1;
        let direction = u8::from(request.kind != MemoryKind::Load && first_read == 0);
        prefetch(&state.queues[usize::from(direction)][bank as usize]);
        prefetch(&state.banks[bank as usize]);
        let arrival = Arrival { cycle, entry, bank: bank as u8, direction };
        // A write that waits for its own read may come later.
        match state.arrivals.back() {
            Some(last) if last.cycle > cycle => {
                let place = state.arrivals.partition_point(|other| other.cycle <= cycle);
                state.arrivals.insert(place, arrival);
            }
            _ => state.arrivals.push_back(arrival),
        }
        self.due = self.due.min(cycle);
    }

    /// The sectors that are read before a request can be served, as it writes parts of them.
    fn sectors_read_first(&self, request: &MemoryRequest) -> u8 {
        let writes_by_mask = self.timing.masked_writes || request.kind != MemoryKind::Store;
        if writes_by_mask { 0 } else { request.partial_sectors() }
    }

    /// The queue that the next column command will take a request from, as far as it is known.
    #[inline]
    fn next_queue(&self) -> Option<&Queue> {
        let column = self.column.filter(|column| column.cycle != u64::MAX)?;
        self.state.queues[usize::from(self.state.draining)].get(column.bank as usize)
    }

    /// Prefetches into the host's cache the data for the next command: all channels are to do the first step, then all the second, and so
    /// on.
    #[inline]
    pub(super) fn prefetch(&self, step: PrefetchStep) {
        let Some(queue) = self.next_queue() else { return };
        let entry = || queue.entries.get(queue.hit as usize);
        match step {
            PrefetchStep::Queue => prefetch(queue),
            PrefetchStep::Entry => entry().into_iter().for_each(prefetch),
            PrefetchStep::Request => entry().into_iter().for_each(|entry| self.state.accepted.prefetch(entry.number)),
        }
    }

    /// Nothing is to be done before this cycle; `u64::MAX` where nothing waits.
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// Requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.state.arrivals.len() + (self.state.counts[0] + self.state.counts[1]) as usize
    }

    /// (bank, row) of a line: bank groups alternate from line to line of the channel, rows fill before the bank changes,
    /// and higher bits are folded into the bank. Or as the topology says. The low bits of the bank number are its group.
    pub(super) fn place(&self, line: u64) -> (u32, u32) {
        if let Some(function) = &self.bank_function {
            let rows_bytes = LINE_BYTES * self.lines_of_row * u64::from(self.timing.banks) * self.interleave;
            return (function.of(line), ((line / rows_bytes) & 0x7fff_ffff) as u32);
        }
        let groups = u64::from(self.timing.bank_groups);
        let banks_of_group = u64::from(self.timing.banks) / groups;
        let local = line / LINE_BYTES / self.interleave;
        let region = local / groups / self.lines_of_row;
        let row = region / banks_of_group;
        let folded = fold(row, 3);
        let group = (local ^ folded) & (groups - 1);
        let bank = (region ^ folded >> 1) & (banks_of_group - 1);
        ((bank * groups + group) as u32, (row & 0x7fff_ffff) as u32)
    }

    fn ingest(&mut self) {
        let mut any = false;
        while let Some(&Arrival { cycle, entry, bank, direction }) = self.state.arrivals.front()
            && cycle <= self.state.now
        {
            any = true;
            let (bank, direction) = (u32::from(bank), usize::from(direction));
            let state = &mut self.state;
            state.arrivals.pop_front();
            let queue = &mut state.queues[direction][bank as usize];
            let first = queue.entries.is_empty();
            let hits = queue.hit == NO_HIT && entry.row == state.banks[bank as usize].open;
            if first {
                queue.first_age = entry.age;
            }
            if hits {
                queue.hit = queue.entries.len() as u32;
                queue.hit_age = entry.age;
            }
            queue.entries.push_back(entry);
            state.busy[direction] |= 1 << bank;
            state.counts[direction] += 1;
            // Only the first entry of a bank, and the first that hits, change the bank's next commands.
            if direction == usize::from(state.draining) && (first || hits) {
                if self.row.is_some_and(|row| row.bank == bank && row.cycle != u64::MAX) {
                    self.row = None;
                }
                self.consider(bank);
            }
        }
        if any {
            let waiting = u64::from(self.state.counts[0] + self.state.counts[1]);
            self.state.counters.queue_maximum = self.state.counters.queue_maximum.max(waiting);
        }
    }

    /// Issues every command due before cycle `limit`; `done` gets the requester, the time of the response and the request.
    /// Returns the cycle of the next command, `u64::MAX` where nothing waits.
    pub(super) fn run(&mut self, limit: u64, mut done: impl FnMut(Requester, SimTime, &MemoryRequest)) -> u64 {
        if self.due < limit {
            self.due = self.run_now(limit, &mut done);
        }
        self.due
    }

    fn run_now(&mut self, limit: u64, done: &mut impl FnMut(Requester, SimTime, &MemoryRequest)) -> u64 {
        loop {
            let arrival = self.state.arrivals.front().map_or(u64::MAX, |arrival| arrival.cycle);
            if self.state.counts == [0, 0] {
                // More may still come that arrives in cycle `limit`.
                if arrival >= limit {
                    return arrival;
                }
                self.state.now = self.state.now.max(arrival);
            }
            self.ingest();
            if self.state.next_refresh <= self.state.now {
                self.refresh();
                self.renew_all();
            }
            self.choose_direction();
            let (column, row) = self.candidates();
            let cycle = column.cycle.min(row.cycle);
            let arrival = self.state.arrivals.front().map_or(u64::MAX, |arrival| arrival.cycle);
            let event = arrival.min(self.state.next_refresh).min(self.idle_from());
            if event <= cycle && event < limit {
                self.state.now = event;
                continue;
            }
            if cycle >= limit {
                // A refresh or an arrival before that command may bring another one forward.
                return cycle.min(event);
            }
            self.state.now = cycle;
            if column.cycle == cycle {
                if let Some((requester, time, request)) = self.access(column) {
                    done(requester, time, &request);
                }
                self.column = None;
                self.consider(column.bank);
            }
            // The column command changed its own bank alone, and a bank is a candidate for one bus at a time.
            if row.cycle == cycle {
                self.open_or_close(row);
                self.row = None;
                self.consider(row.bank);
            }
        }
    }

    /// The cycle from which writes that are too few for a batch are written, as no read has come for so long; `u64::MAX` where none wait so.
    fn idle_from(&self) -> u64 {
        let ChannelState { draining, counts: [reads, writes], last_read, .. } = self.state;
        if draining || reads > 0 || writes == 0 { u64::MAX } else { last_read + u64::from(self.timing.write_idle) }
    }

    fn choose_direction(&mut self) {
        let [reads, writes] = self.state.counts;
        if reads > 0 {
            self.state.last_read = self.state.now;
        }
        let draining = if self.state.draining {
            writes > 0 && (reads == 0 || writes > self.timing.write_low)
        } else {
            writes >= self.timing.write_high || self.idle_from() <= self.state.now
        };
        if draining != self.state.draining {
            self.state.draining = draining;
            self.renew_all();
        }
    }

    /// The first column command and the first row command that may be issued, oldest request first among equals.
    fn candidates(&mut self) -> (Candidate, Candidate) {
        let buses = self.buses();
        let column = self.column.unwrap_or_else(|| self.first_column(u64::MAX, buses));
        let row = self.row.unwrap_or_else(|| self.first_row(u64::MAX, buses));
        debug_assert_eq!(column, self.first_column(u64::MAX, buses), "what was kept is what would be found");
        debug_assert_eq!(row, self.first_row(u64::MAX, buses), "what was kept is what would be found");
        (self.column, self.row) = (Some(column), Some(row));
        (column, row)
    }

    #[inline]
    fn buses(&self) -> Buses {
        let state = &self.state;
        let precharge = state.now.max(state.row_bus);
        Buses {
            column: state.now.max(state.column_bus).max(state.direction[usize::from(state.draining)]),
            activate: precharge.max(self.activate_allowed()),
            precharge,
        }
    }

    /// Forgets the next commands of all banks.
    fn renew_all(&mut self) {
        (self.column, self.row) = (None, None);
        (self.next.columns, self.next.activates, self.next.precharges) = (0, 0, 0);
        let mut banks = self.state.busy[usize::from(self.state.draining)];
        while banks != 0 {
            self.renew(banks.trailing_zeros());
            banks &= banks - 1;
        }
    }

    /// Finds the next command of this bank.
    #[inline]
    fn renew(&mut self, bank: u32) {
        let (state, next) = (&self.state, &mut self.next);
        let this = 1 << bank;
        next.columns &= !this;
        next.activates &= !this;
        next.precharges &= !this;
        let direction = usize::from(state.draining);
        if state.busy[direction] & this == 0 {
            return;
        }
        let queue = &state.queues[direction][bank as usize];
        let of_bank = &state.banks[bank as usize];
        let (set, command) = if queue.hit != NO_HIT && (queue.hit == 0 || of_bank.passed < self.timing.row_hit_cap) {
            (&mut next.columns, (of_bank.column, queue.hit_age))
        } else if of_bank.open == CLOSED {
            (&mut next.activates, (of_bank.activate, queue.first_age))
        } else {
            (&mut next.precharges, (of_bank.precharge, queue.first_age))
        };
        *set |= this;
        next.commands[bank as usize % MOST_BANKS] = command;
    }

    /// The first column command of a set of banks.
    #[inline]
    fn first_column(&self, banks: u64, buses: Buses) -> Candidate {
        let groups = &self.state.group_column[..=self.group_of_bank as usize];
        let group = |bank: usize| groups[bank & self.group_of_bank as usize].max(buses.column);
        self.next.first(banks & self.next.columns, Candidate::NEVER, group)
    }

    /// The first row command of a set of banks.
    #[inline]
    fn first_row(&self, banks: u64, buses: Buses) -> Candidate {
        let activate = self.next.first(banks & self.next.activates, Candidate::NEVER, |_| buses.activate);
        self.next.first(banks & self.next.precharges, activate, |_| buses.precharge)
    }

    /// Only this bank may do something else than before: is it now the first?
    fn consider(&mut self, bank: u32) {
        self.renew(bank);
        let (this, buses) = (1 << bank, self.buses());
        if let Some(column) = self.column {
            let candidate = self.first_column(this, buses);
            self.column = Some(if candidate.before(&column) { candidate } else { column });
        }
        if let Some(row) = self.row {
            let candidate = self.first_row(this, buses);
            self.row = Some(if candidate.before(&row) { candidate } else { row });
        }
    }

    /// First cycle that t_RRD and t_FAW leave to an activate.
    fn activate_allowed(&self) -> u64 {
        let state = &self.state;
        let pair = state.last_activate.map_or(0, |cycle| cycle + u64::from(self.timing.t_rrd));
        let four =
            state.activates[state.next_activate as usize].map_or(0, |cycle| cycle + u64::from(self.timing.t_faw));
        pair.max(four)
    }

    /// Reads or writes the chosen bank's oldest row hit. Gives the request where that was all of it.
    fn access(&mut self, chosen: Candidate) -> Option<(Requester, SimTime, MemoryRequest)> {
        let timing = &self.timing;
        let state = &mut self.state;
        let direction = usize::from(state.draining);
        let queue = &mut state.queues[direction][chosen.bank as usize];
        let bank = &mut state.banks[chosen.bank as usize];
        let position = queue.hit as usize;
        bank.passed = if position == 0 { 0 } else { bank.passed + 1 };
        // `candidates` chose an entry that is there.
        let Some(entry) = queue.entries.remove(position) else { unreachable!("a chosen entry is queued") };
        queue.seek_hit(bank.open, position);
        match queue.entries.front() {
            Some(first) => queue.first_age = first.age,
            None => state.busy[direction] &= !(1 << chosen.bank),
        }
        state.counts[direction] -= 1;

        let Accepted { request, requester, arrived } = state.accepted.remove(entry.number);
        let is_read_first = !state.draining && request.kind != MemoryKind::Load;
        let moved = if is_read_first { request.partial_sectors() } else { request.sectors };
        let sectors = u64::from(sector_count(moved)).clamp(1, 4);
        let last = chosen.cycle + (sectors - 1) * u64::from(timing.t_ccd_l);
        state.column_bus = chosen.cycle + sectors * u64::from(timing.t_ccd_s);
        state.group_column[(chosen.bank & self.group_of_bank) as usize] =
            chosen.cycle + sectors * u64::from(timing.t_ccd_l);
        let finished;
        if state.draining {
            finished = last + u64::from(timing.wl + timing.burst);
            bank.precharge = bank.precharge.max(finished + u64::from(timing.t_wr));
            state.direction[0] = state.direction[0].max(finished + u64::from(timing.t_wtr));
        } else {
            finished = last + u64::from(timing.cl + timing.burst);
            bank.precharge = bank.precharge.max(last + u64::from(timing.t_rtp));
            let write = (finished + u64::from(timing.turnaround)).saturating_sub(u64::from(timing.wl));
            state.direction[1] = state.direction[1].max(write);
        }
        let counters = &mut state.counters;
        let share = state.by_launch.of(request.launch);
        let (of_all, of_launch) = match bank.opened.take() {
            None => (&mut counters.row_hits, &mut share.row_hits),
            Some(false) => (&mut counters.row_misses, &mut share.row_misses),
            Some(true) => (&mut counters.row_conflicts, &mut share.row_conflicts),
        };
        *of_all += 1;
        *of_launch += 1;
        counters.turnarounds += u64::from(state.wrote != state.draining);
        state.wrote = state.draining;
        let busy = self.busy_time[sectors as usize].0;
        counters.busy_time += busy;
        share.busy_time += busy;
        if is_read_first {
            // Its write comes with the data, before whatever else comes in that cycle, and is as old as it was.
            let entry = Entry { number: state.accepted.insert(Accepted { request, requester, arrived }), ..entry };
            let place = state.arrivals.partition_point(|other| other.cycle < finished);
            state.arrivals.insert(place, Arrival { cycle: finished, entry, bank: chosen.bank as u8, direction: 1 });
            return None;
        }
        let time = self.clock.time_of(finished) + self.controller_latency;
        if request.kind == MemoryKind::Load {
            let latency = time.saturating_sub(arrived).0;
            counters.latency_read += latency;
            share.latency_read += latency;
        }
        Some((requester, time, request))
    }

    /// Precharges the chosen bank, or activates the row of its oldest request.
    fn open_or_close(&mut self, chosen: Candidate) {
        let state = &mut self.state;
        state.row_bus = chosen.cycle + 1;
        if state.banks[chosen.bank as usize].open != CLOSED {
            self.close(chosen.bank, chosen.cycle);
            self.state.banks[chosen.bank as usize].opened = Some(true);
            return;
        }
        let timing = &self.timing;
        let bank = &mut state.banks[chosen.bank as usize];
        bank.open = state.queues[usize::from(state.draining)][chosen.bank as usize].entries[0].row;
        bank.column = chosen.cycle + u64::from(timing.t_rcd);
        bank.precharge = chosen.cycle + u64::from(timing.t_ras);
        bank.activate = chosen.cycle + u64::from(timing.t_rc);
        bank.passed = 0;
        bank.opened = Some(bank.opened.unwrap_or(false));
        state.last_activate = Some(chosen.cycle);
        state.activates[state.next_activate as usize] = Some(chosen.cycle);
        state.next_activate = (state.next_activate + 1) % 4;
        state.counters.activates += 1;
        let row = bank.open;
        for queues in &mut state.queues {
            queues[chosen.bank as usize].seek_hit(row, 0);
        }
    }

    /// Closes the bank's row in `cycle`, if one is open.
    fn close(&mut self, bank: u32, cycle: u64) {
        let of_bank = &mut self.state.banks[bank as usize];
        if of_bank.open != CLOSED {
            of_bank.open = CLOSED;
            of_bank.opened = None;
            of_bank.activate = of_bank.activate.max(cycle + u64::from(self.timing.t_rp));
            self.state.counters.precharges += 1;
            for queues in &mut self.state.queues {
                queues[bank as usize].hit = NO_HIT;
            }
        }
    }

    fn refresh_interval(&self) -> u64 {
        match self.timing.refresh {
            Refresh::PerBank => u64::from(self.timing.t_refi / self.timing.banks),
            Refresh::AllBank => u64::from(self.timing.t_refi),
            Refresh::Off => u64::MAX,
        }
    }

    /// Does the refreshes due up to now. Those of an idle stretch are made up for at its end: all but the last round leave no trace but closed rows.
    fn refresh(&mut self) {
        let interval = self.refresh_interval();
        let banks = if self.timing.refresh == Refresh::PerBank { u64::from(self.timing.banks) } else { 1 };
        let round = interval.saturating_mul(banks);
        let state = &mut self.state;
        if state.now > state.next_refresh.saturating_add(round.saturating_mul(2)) {
            let rounds = (state.now - state.next_refresh) / round - 1;
            state.next_refresh += rounds * round;
            state.counters.refreshes += rounds * banks;
        }
        while self.state.next_refresh <= self.state.now {
            let cycle = self.state.next_refresh;
            self.state.next_refresh = cycle.saturating_add(interval);
            self.state.counters.refreshes += 1;
            if self.timing.refresh == Refresh::AllBank {
                for bank in 0..self.timing.banks {
                    self.refresh_one(bank, cycle);
                }
            } else {
                self.refresh_one(self.state.refresh_bank, cycle);
                self.state.refresh_bank = (self.state.refresh_bank + 1) % self.timing.banks;
            }
        }
    }

    fn refresh_one(&mut self, bank: u32, cycle: u64) {
        let precharge = self.state.banks[bank as usize].precharge;
        self.close(bank, cycle.max(precharge));
        let of_bank = &mut self.state.banks[bank as usize];
        of_bank.activate = of_bank.activate.max(cycle) + u64::from(self.timing.t_rfc);
    }
}
