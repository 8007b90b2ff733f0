//! A channel by its bank timing: first-ready, first-come-first-served, with write draining.
//!
//! Row commands (activate, precharge) and column commands (read, write) have a command bus each, as in HBM. A request's sectors go
//! to one row: its column commands are `t_ccd_l` apart, and those of another bank group fall in between. So a request of n sectors
//! charges the data bus n x `t_ccd_s` and its bank group n x `t_ccd_l`. A channel works from command to command, never through idle cycles.

use super::ChannelCounters;
use super::timing::{DramTiming, Refresh};
use crate::interleave::fold;
use balar_protocol::memory::{LINE_BYTES, MemoryKind, MemoryRequest};
use balar_protocol::{Clock, PortId, SimTime};
use std::collections::VecDeque;

/// A row number no request has: nothing open.
const CLOSED: u32 = u32::MAX;
/// No entry of the bank's queue hits the open row.
const NO_HIT: u32 = u32::MAX;

/// Whom the end of a request is told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requester {
    /// Whoever is at the port.
    Port(PortId),
    /// The burst in this slot.
    Burst(u32),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    request: MemoryRequest,
    row: u32,
    requester: Requester,
    age: u64,
    arrived: SimTime,
}

/// The waiting reads or writes of one bank.
#[derive(Clone, Debug)]
struct Queue {
    entries: VecDeque<Entry>,
    /// Position of the oldest entry that hits the open row.
    hit: u32,
}

impl Queue {
    /// Finds the oldest entry for `row`; there is none before position `from`.
    #[inline]
    fn seek_hit(&mut self, row: u32, from: usize) {
        let position = self.entries.range(from..).position(|entry| entry.row == row);
        self.hit = position.map_or(NO_HIT, |position| (from + position) as u32);
    }
}

#[derive(Clone, Copy, Debug)]
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

/// A channel by its bank timing.
#[derive(Debug)]
pub(crate) struct BankTimedChannel {
    clock: Clock,
    timing: DramTiming,
    controller_latency: SimTime,
    interleave: u64,
    lines_of_row: u64,
    group_of_bank: u32,
    now: u64,
    ages: u64,
    arrivals: VecDeque<(u64, Entry)>,
    /// Reads, writes; of each bank.
    queues: [Vec<Queue>; 2],
    /// Banks with waiting reads, writes.
    busy: [u64; 2],
    /// Waiting reads, writes.
    counts: [u32; 2],
    /// Serves writes.
    draining: bool,
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
    next_activate: usize,
    next_refresh: u64,
    refresh_bank: u32,
    busy_time: [SimTime; 5],
    pub(crate) counters: ChannelCounters,
}

impl BankTimedChannel {
    pub(crate) fn new(
        clock: Clock,
        timing: &DramTiming,
        controller_latency: SimTime,
        interleave: u32,
    ) -> BankTimedChannel {
        let bank = Bank { open: CLOSED, activate: 0, column: 0, precharge: 0, passed: 0, opened: None };
        let queues = || vec![Queue { entries: VecDeque::with_capacity(16), hit: NO_HIT }; timing.banks as usize];
        let mut channel = BankTimedChannel {
            clock,
            controller_latency,
            interleave: u64::from(interleave.max(1)),
            lines_of_row: u64::from(timing.row_bytes) / LINE_BYTES,
            group_of_bank: timing.bank_groups - 1,
            now: 0,
            ages: 0,
            arrivals: VecDeque::with_capacity(64),
            queues: [queues(), queues()],
            busy: [0; 2],
            counts: [0; 2],
            draining: false,
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
            busy_time: [0u64, 1, 2, 3, 4].map(|sectors| clock.time_of(sectors * u64::from(timing.burst))),
            counters: ChannelCounters::default(),
            timing: timing.clone(),
        };
        channel.next_refresh = channel.refresh_interval();
        channel
    }

    /// Takes a request in.
    pub(super) fn arrive(&mut self, time: SimTime, cycle: u64, requester: Requester, request: MemoryRequest) {
        self.counters.arrival(&request);
        let entry = Entry { request, row: 0, requester, age: self.ages, arrived: time };
        self.ages += 1;
        self.arrivals.push_back((cycle, entry));
    }

    pub(crate) fn has_work(&self) -> bool {
        self.waiting() > 0
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.arrivals.len() + (self.counts[0] + self.counts[1]) as usize
    }

    /// (bank, row) of a line: bank groups alternate from line to line of the channel, rows fill before the bank changes,
    /// and higher bits are folded into the bank. The low bits of the bank number are its group.
    pub(super) fn place(&self, line: u64) -> (u32, u32) {
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

    fn ingest(&mut self, now: u64) {
        while let Some(&(cycle, mut entry)) = self.arrivals.front() {
            if cycle > now {
                break;
            }
            self.arrivals.pop_front();
            let (bank, row) = self.place(entry.request.line);
            entry.row = row;
            let direction = usize::from(entry.request.kind != MemoryKind::Load);
            let queue = &mut self.queues[direction][bank as usize];
            if queue.hit == NO_HIT && row == self.banks[bank as usize].open {
                queue.hit = queue.entries.len() as u32;
            }
            queue.entries.push_back(entry);
            self.busy[direction] |= 1 << bank;
            self.counts[direction] += 1;
        }
        self.counters.queue_maximum = self.counters.queue_maximum.max(u64::from(self.counts[0] + self.counts[1]));
    }

    /// Issues every command due before cycle `limit`; `done` gets the requester, the time of the response and the request.
    /// Returns the cycle of the next command, `u64::MAX` where nothing waits.
    pub(super) fn run(&mut self, limit: u64, mut done: impl FnMut(Requester, SimTime, &MemoryRequest)) -> u64 {
        loop {
            if self.counts == [0, 0] {
                let Some(&(cycle, _)) = self.arrivals.front() else { return u64::MAX };
                self.now = self.now.max(cycle);
            }
            self.ingest(self.now);
            self.refresh();
            self.choose_direction();
            let (column, row) = self.candidates();
            let cycle = column.cycle.min(row.cycle);
            let arrival = self.arrivals.front().map_or(u64::MAX, |(cycle, _)| *cycle);
            if arrival.min(self.next_refresh) <= cycle && arrival.min(self.next_refresh) < limit {
                self.now = arrival.min(self.next_refresh);
                continue;
            }
            if cycle >= limit {
                // A refresh or an arrival before that command may bring another one forward.
                return cycle.min(arrival).min(self.next_refresh);
            }
            self.now = cycle;
            if column.cycle == cycle {
                let (requester, time, request) = self.access(column);
                done(requester, time, &request);
            }
            // The column command changed its own bank alone, and a bank is a candidate for one bus at a time.
            if row.cycle == cycle {
                self.open_or_close(row);
            }
        }
    }

    fn choose_direction(&mut self) {
        let [reads, writes] = self.counts;
        if self.draining {
            self.draining = writes > 0 && (reads == 0 || writes > self.timing.write_low);
        } else {
            self.draining = writes >= self.timing.write_high || (reads == 0 && writes > 0);
        }
    }

    /// The first column command and the first row command that may be issued, oldest request first among equals.
    fn candidates(&self) -> (Candidate, Candidate) {
        let direction = usize::from(self.draining);
        let bus = self.now.max(self.column_bus).max(self.direction[direction]);
        let activate_bus = self.now.max(self.row_bus).max(self.activate_allowed());
        let precharge_bus = self.now.max(self.row_bus);
        let (mut column, mut row) = (Candidate::NEVER, Candidate::NEVER);
        let mut banks = self.busy[direction];
        while banks != 0 {
            let bank = banks.trailing_zeros();
            banks &= banks - 1;
            let state = &self.banks[bank as usize];
            let queue = &self.queues[direction][bank as usize];
            if queue.hit != NO_HIT && (queue.hit == 0 || state.passed < self.timing.row_hit_cap) {
                let group = (bank & self.group_of_bank) as usize;
                let cycle = bus.max(state.column).max(self.group_column[group]);
                let candidate = Candidate { cycle, age: queue.entries[queue.hit as usize].age, bank };
                if candidate.before(&column) {
                    column = candidate;
                }
            } else {
                let cycle = match state.open {
                    CLOSED => activate_bus.max(state.activate),
                    _ => precharge_bus.max(state.precharge),
                };
                let candidate = Candidate { cycle, age: queue.entries[0].age, bank };
                if candidate.before(&row) {
                    row = candidate;
                }
            }
        }
        (column, row)
    }

    /// First cycle that t_RRD and t_FAW leave to an activate.
    fn activate_allowed(&self) -> u64 {
        let pair = self.last_activate.map_or(0, |cycle| cycle + u64::from(self.timing.t_rrd));
        let four = self.activates[self.next_activate].map_or(0, |cycle| cycle + u64::from(self.timing.t_faw));
        pair.max(four)
    }

    /// Reads or writes the chosen bank's oldest row hit.
    fn access(&mut self, chosen: Candidate) -> (Requester, SimTime, MemoryRequest) {
        let timing = &self.timing;
        let direction = usize::from(self.draining);
        let queue = &mut self.queues[direction][chosen.bank as usize];
        let bank = &mut self.banks[chosen.bank as usize];
        let position = queue.hit as usize;
        bank.passed = if position == 0 { 0 } else { bank.passed + 1 };
        // `candidates` chose an entry that is there.
        let Some(entry) = queue.entries.remove(position) else { unreachable!("a chosen entry is queued") };
        queue.seek_hit(bank.open, position);
        if queue.entries.is_empty() {
            self.busy[direction] &= !(1 << chosen.bank);
        }
        self.counts[direction] -= 1;

        let sectors = u64::from(entry.request.sectors.count_ones()).clamp(1, 4);
        let last = chosen.cycle + (sectors - 1) * u64::from(timing.t_ccd_l);
        self.column_bus = chosen.cycle + sectors * u64::from(timing.t_ccd_s);
        self.group_column[(chosen.bank & self.group_of_bank) as usize] =
            chosen.cycle + sectors * u64::from(timing.t_ccd_l);
        let finished;
        if self.draining {
            finished = last + u64::from(timing.wl + timing.burst);
            bank.precharge = bank.precharge.max(finished + u64::from(timing.t_wr));
            self.direction[0] = self.direction[0].max(finished + u64::from(timing.t_wtr));
        } else {
            finished = last + u64::from(timing.cl + timing.burst);
            bank.precharge = bank.precharge.max(last + u64::from(timing.t_rtp));
            let write = (finished + u64::from(timing.turnaround)).saturating_sub(u64::from(timing.wl));
            self.direction[1] = self.direction[1].max(write);
        }
        let counters = &mut self.counters;
        match bank.opened.take() {
            None => counters.row_hits += 1,
            Some(false) => counters.row_misses += 1,
            Some(true) => counters.row_conflicts += 1,
        }
        counters.turnarounds += u64::from(self.wrote != self.draining);
        self.wrote = self.draining;
        counters.busy_time += self.busy_time[sectors as usize].0;
        let time = self.clock.time_of(finished) + self.controller_latency;
        if entry.request.kind == MemoryKind::Load {
            counters.latency_read += time.saturating_sub(entry.arrived).0;
        }
        (entry.requester, time, entry.request)
    }

    /// Precharges the chosen bank, or activates the row of its oldest request.
    fn open_or_close(&mut self, chosen: Candidate) {
        let direction = usize::from(self.draining);
        self.row_bus = chosen.cycle + 1;
        if self.banks[chosen.bank as usize].open != CLOSED {
            self.close(chosen.bank, chosen.cycle);
            self.banks[chosen.bank as usize].opened = Some(true);
            return;
        }
        let timing = &self.timing;
        let bank = &mut self.banks[chosen.bank as usize];
        bank.open = self.queues[direction][chosen.bank as usize].entries[0].row;
        bank.column = chosen.cycle + u64::from(timing.t_rcd);
        bank.precharge = chosen.cycle + u64::from(timing.t_ras);
        bank.activate = chosen.cycle + u64::from(timing.t_rc);
        bank.passed = 0;
        bank.opened = Some(bank.opened.unwrap_or(false));
        self.last_activate = Some(chosen.cycle);
        self.activates[self.next_activate] = Some(chosen.cycle);
        self.next_activate = (self.next_activate + 1) % 4;
        self.counters.activates += 1;
        let row = bank.open;
        for queues in &mut self.queues {
            queues[chosen.bank as usize].seek_hit(row, 0);
        }
    }

    /// Closes the bank's row in `cycle`, if one is open.
    fn close(&mut self, bank: u32, cycle: u64) {
        let state = &mut self.banks[bank as usize];
        if state.open != CLOSED {
            state.open = CLOSED;
            state.opened = None;
            state.activate = state.activate.max(cycle + u64::from(self.timing.t_rp));
            self.counters.precharges += 1;
            for queues in &mut self.queues {
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
        if self.timing.refresh == Refresh::Off {
            return;
        }
        let interval = self.refresh_interval();
        let banks = if self.timing.refresh == Refresh::PerBank { u64::from(self.timing.banks) } else { 1 };
        let round = interval * banks;
        if self.now > self.next_refresh + 2 * round {
            let rounds = (self.now - self.next_refresh) / round - 1;
            self.next_refresh += rounds * round;
            self.counters.refreshes += rounds * banks;
        }
        while self.next_refresh <= self.now {
            let cycle = self.next_refresh;
            self.next_refresh += interval;
            self.counters.refreshes += 1;
            if self.timing.refresh == Refresh::AllBank {
                for bank in 0..self.timing.banks {
                    self.refresh_one(bank, cycle);
                }
            } else {
                self.refresh_one(self.refresh_bank, cycle);
                self.refresh_bank = (self.refresh_bank + 1) % self.timing.banks;
            }
        }
    }

    fn refresh_one(&mut self, bank: u32, cycle: u64) {
        let precharge = self.banks[bank as usize].precharge;
        self.close(bank, cycle.max(precharge));
        let state = &mut self.banks[bank as usize];
        state.activate = state.activate.max(cycle) + u64::from(self.timing.t_rfc);
    }
}
