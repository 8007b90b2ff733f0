//! A shard: an actor that hosts units and runs them through windows.

use super::LiveBoard;
use super::agenda::Agenda;
use super::containment::contain;
use super::coordinator::Coordinator;
use super::epoch::Epochs;
use super::handoff::{Handoff, Patience};
use super::pending::Pending;
use super::placement::Seat;
use super::run::WindowCut;
use super::unit::{Inbox, NextWake, Outbox, Unit, Window};
use super::wall_clock::{Deadline, Stopwatch};
use actix::{Actor, Addr, Context, Handler};
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{Message, SimTime, UnitId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Windows a shard runs by itself before it reports, where no other shard has work.
const WINDOWS_PER_GRANT: u64 = 256;

/// Messages from one shard to another.
pub(super) type Batch = Vec<(UnitId, Message)>;

/// A unit in its shard.
pub(super) struct Slot {
    id: UnitId,
    path: String,
    unit: Box<dyn Unit>,
    out: Outbox,
    wake: SimTime,
    pending: Pending,
    failed: bool,
}

impl Slot {
    pub fn new(id: UnitId, path: String, unit: Box<dyn Unit>, out: Outbox, span: SimTime) -> Slot {
        // Every unit runs in the first window: it may have something to start with.
        Slot { id, path, unit, out, wake: SimTime::ZERO, pending: Pending::new(span), failed: false }
    }
}

/// A unit that panicked or broke a rule.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub unit: UnitId,
    pub time: SimTime,
    pub message: String,
}

/// Run this window, and then, up to the horizon, all that follow from the shard's own units.
///
/// The buffers travel back in the [`Report`]: nothing is allocated for them.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(super) struct RunWindows {
    pub window: Window,
    /// No other shard has anything to do before this time.
    pub horizon: SimTime,
    /// Messages from each shard.
    pub inbound: Vec<Batch>,
}

/// What came of [`RunWindows`].
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(super) struct Report {
    pub shard: usize,
    /// Messages for each shard.
    pub outbound: Vec<Batch>,
    /// The earliest stamp or wake of the shard's own units.
    pub next: SimTime,
    /// No message of theirs arrives before this time.
    pub reach: SimTime,
    /// The last thing that happened here.
    pub last_event: SimTime,
    /// The last window run.
    pub last: Window,
    pub windows: u64,
    pub messages: u64,
    pub busy: Duration,
    pub failure: Option<Failure>,
}

/// The run is over: hand in the statistics.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(super) struct CollectStatistics;

/// What a unit has to say at the end. `Err` = it panicked while it said so.
pub(super) struct UnitResult {
    pub unit: UnitId,
    pub statistics: Result<StatisticSink, String>,
    pub outstanding: Option<String>,
}

/// The statistics of a shard's units.
#[derive(actix::Message)]
#[rtype(result = "()")]
pub(super) struct ShardResult {
    pub units: Vec<UnitResult>,
}

/// Where a shard on another thread and the coordinator find each other's messages without sleeping.
#[derive(Default)]
pub(super) struct Desk {
    pub commands: Handoff<RunWindows>,
    pub reports: Handoff<Report>,
}

/// What all shards know.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// By unit: the smallest latency of its wires.
    pub latencies: Arc<[SimTime]>,
    pub epochs: Epochs,
    pub cut: WindowCut,
    pub stop_at: SimTime,
    pub deadline: Deadline,
    pub interrupt: Arc<AtomicBool>,
    pub progress: Option<LiveBoard>,
    pub seats: Arc<[Seat]>,
}

impl Surroundings {
    /// The window that starts with the earliest pending event, where no message that is yet to be sent arrives before `reach`.
    pub fn window_at(&self, start: SimTime, reach: SimTime) -> Window {
        let until = reach.min(self.epochs.end_after(start));
        Window { start, until: self.cut.shorten(start, until).min(self.stop_at) }
    }

    pub fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    pub fn out_of_time(&self) -> bool {
        self.deadline.is_over()
    }
}

/// Hosts units. It never looks at another shard's.
pub(super) struct Shard {
    index: usize,
    slots: Vec<Slot>,
    /// The earliest stamp or wake of each slot.
    agenda: Agenda,
    inbox: Inbox,
    sent: Batch,
    outbound: Vec<Batch>,
    outbound_earliest: SimTime,
    last_event: SimTime,
    messages: u64,
    failure: Option<Failure>,
    surroundings: Surroundings,
    coordinator: Addr<Coordinator>,
    /// `None` = everything goes through mailboxes.
    desk: Option<Arc<Desk>>,
    patience: Patience,
}

impl Actor for Shard {
    type Context = Context<Self>;
}

impl Shard {
    pub fn new(
        index: usize,
        slots: Vec<Slot>,
        surroundings: Surroundings,
        coordinator: Addr<Coordinator>,
        desk: Option<Arc<Desk>>,
    ) -> Shard {
        Shard {
            index,
            agenda: Agenda::new(slots.iter().map(|slot| surroundings.latencies[slot.id.0 as usize]).collect()),
            slots,
            inbox: Inbox::default(),
            sent: Vec::new(),
            outbound: Vec::new(),
            outbound_earliest: SimTime::MAX,
            last_event: SimTime::ZERO,
            messages: 0,
            failure: None,
            surroundings,
            coordinator,
            desk,
            patience: Patience::default(),
        }
    }

    /// Runs every unit that has something to do in the window.
    fn run_window(&mut self, window: Window) {
        for block in 0..self.agenda.blocks() {
            let Some(slots) = self.agenda.due_block(block, window.until) else { continue };
            for index in slots {
                if self.agenda.is_due(index, window.until) {
                    self.run_unit(index, window);
                }
            }
            self.agenda.settle(block);
        }
    }

    fn run_unit(&mut self, index: usize, window: Window) {
        let slot = &mut self.slots[index];
        self.inbox.clear();
        slot.pending.take_due(window.until, &mut self.inbox);
        self.messages += self.inbox.len() as u64;
        let latest = self.inbox.last_time().unwrap_or(window.start);
        let woken = if slot.wake < window.until { slot.wake } else { window.start };
        self.last_event = self.last_event.max(latest).max(woken);

        slot.out.window_start = window.start;
        std::mem::swap(&mut slot.out.sent, &mut self.sent);
        let advanced = contain(|| slot.unit.advance(window, &mut self.inbox, &mut slot.out));
        std::mem::swap(&mut slot.out.sent, &mut self.sent);

        let problem = match advanced {
            Err(message) => Some(message),
            Ok(_) if !self.inbox.is_empty() => {
                Some(format!("it left {} messages of the window in its inbox", self.inbox.len()))
            }
            Ok(NextWake::At(time)) if time < window.until => {
                Some(format!("it wants to wake at {time}, before the window's end at {}", window.until))
            }
            Ok(NextWake::At(time)) => {
                slot.wake = time;
                None
            }
            Ok(NextWake::OnMessage) => {
                slot.wake = SimTime::MAX;
                None
            }
        };
        self.agenda.set(index, slot.wake.min(slot.pending.earliest()));
        let problem = problem.or_else(|| self.route(index, window));
        if let Some(message) = problem {
            self.fail(index, window.start, message);
        }
    }

    /// Passes on what a unit sent; says which rule it broke.
    #[inline]
    fn route(&mut self, from: usize, window: Window) -> Option<String> {
        let mut problem = None;
        for (unit, message) in self.sent.drain(..) {
            if message.time < window.until {
                let path = &self.slots[from].path;
                problem = Some(format!(
                    "{path} sent a message that arrives at {}, before the window's end at {}",
                    message.time, window.until
                ));
                continue;
            }
            let seat = self.surroundings.seats[unit.0 as usize];
            if seat.shard as usize == self.index {
                let slot = seat.slot as usize;
                self.agenda.bring_forward(slot, message.time);
                self.slots[slot].pending.push(message, window.until);
            } else {
                self.outbound_earliest = self.outbound_earliest.min(message.time);
                self.outbound[seat.shard as usize].push((unit, message));
            }
        }
        problem
    }

    #[cold]
    fn fail(&mut self, index: usize, time: SimTime, message: String) {
        let slot = &mut self.slots[index];
        slot.failed = true;
        slot.wake = SimTime::MAX;
        self.agenda.set(index, SimTime::MAX);
        self.inbox.clear();
        self.sent.clear();
        // Slots are in the order of units: the first failure of a window is that of its first unit.
        self.failure.get_or_insert(Failure { unit: slot.id, time, message });
    }

    fn receive(&mut self, inbound: &mut [Batch], window: Window) {
        for (unit, message) in inbound.iter_mut().flat_map(|batch| batch.drain(..)) {
            let slot = self.surroundings.seats[unit.0 as usize].slot as usize;
            self.agenda.bring_forward(slot, message.time);
            self.slots[slot].pending.push(message, window.start);
        }
    }

    /// May another window follow without the others' knowledge?
    fn may_go_on(&self, window: Window, horizon: SimTime) -> bool {
        window.start < self.surroundings.stop_at
            && window.start < SimTime::MAX
            && window.until <= horizon.min(self.outbound_earliest)
            && self.failure.is_none()
            && !self.surroundings.interrupted()
            && !self.surroundings.out_of_time()
    }

    fn run_windows(&mut self, mut command: RunWindows) -> Report {
        let start = Stopwatch::start();
        self.receive(&mut command.inbound, command.window);
        self.outbound = command.inbound;
        self.outbound_earliest = SimTime::MAX;
        self.messages = 0;
        let mut window = command.window;
        let mut windows = 0;
        let (next, reach) = loop {
            self.run_window(window);
            windows += 1;
            let (next, reach) = (self.agenda.earliest(), self.agenda.reach());
            let following = self.surroundings.window_at(next, reach);
            if windows == WINDOWS_PER_GRANT || !self.may_go_on(following, command.horizon) {
                break (next, reach);
            }
            // No other shard runs.
            self.surroundings.epochs.between(window.start, next);
            window = following;
        };
        Report {
            shard: self.index,
            outbound: std::mem::take(&mut self.outbound),
            next,
            reach,
            last_event: self.last_event,
            last: window,
            windows,
            messages: self.messages,
            busy: start.elapsed(),
            failure: self.failure.take(),
        }
    }

    fn failed_report(&self, window: Window, message: String) -> Report {
        let unit = self.slots.first().map_or(UnitId(0), |slot| slot.id);
        Report {
            shard: self.index,
            outbound: Vec::new(),
            next: SimTime::MAX,
            reach: SimTime::MAX,
            last_event: self.last_event,
            last: window,
            windows: 0,
            messages: 0,
            busy: Duration::ZERO,
            failure: Some(Failure { unit, time: window.start, message }),
        }
    }
}

impl Handler<RunWindows> for Shard {
    type Result = ();

    fn handle(&mut self, command: RunWindows, _: &mut Context<Self>) {
        let mut next = Some(command);
        while let Some(command) = next {
            let window = command.window;
            // The coordinator waits for a report: it gets one even where the shard itself fails.
            let report = contain(|| self.run_windows(command)).unwrap_or_else(|message| {
                self.failed_report(window, format!("shard {} failed: {message}", self.index))
            });
            let Some(desk) = &self.desk else {
                self.coordinator.do_send(report);
                return;
            };
            let look = self.patience.worth_while();
            if look {
                desk.commands.open();
            }
            if let Err(report) = desk.reports.offer(report) {
                self.coordinator.do_send(report);
            }
            if !look {
                return;
            }
            next = desk.commands.wait();
            self.patience.looked(next.is_some());
        }
    }
}

impl Handler<CollectStatistics> for Shard {
    type Result = ();

    fn handle(&mut self, _: CollectStatistics, _: &mut Context<Self>) {
        let living = self.slots.iter().filter(|slot| !slot.failed);
        let units = living.map(|slot| {
            let statistics = contain(|| {
                let mut sink = StatisticSink::default();
                sink.set_location(&slot.path);
                slot.unit.statistics(&mut sink);
                sink
            });
            let outstanding = contain(|| slot.unit.outstanding());
            let outstanding = outstanding.unwrap_or_else(|message| Some(format!("(it panicked: {message})")));
            UnitResult { unit: slot.id, statistics, outstanding }
        });
        self.coordinator.do_send(ShardResult { units: units.collect() });
    }
}
