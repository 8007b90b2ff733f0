//! A shard: an actor that hosts units and runs them through windows.

use super::LiveBoard;
use super::agenda::Agenda;
use super::containment::contain;
use super::epoch::Epochs;
use super::hand_over::Schedule;
use super::handoff::{Handoff, Patience};
use super::inbox::Inbox;
use super::options::WindowCut;
use super::outbox::{Batch, Mistake, Outbox};
use super::pending::{CalendarShape, Pending};
use super::placement::Seat;
use super::unit::{NextWake, Unit, Window, Wire};
use super::wall_clock::{Deadline, Stopwatch};
use super::watching::control::RunControl;
use super::watching::sampler::ShardSample;
use super::watching::watchdog::Calls;
use actix::{Actor, Addr, Context, Handler, Message, Recipient};
use balar_protocol::by_launch::LaunchTotals;
use balar_protocol::launches::LaunchCounts;
use balar_protocol::statistics::StatisticSink;
use balar_protocol::{SimTime, UnitId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Windows a shard runs by itself before it reports, where no other shard has work.
const WINDOWS_PER_GRANT: u64 = 256;
/// Windows after which units are asked for their counts by launch: some tens of the shortest launches.
const WINDOWS_BETWEEN_SHARES: u64 = 1 << 14;

/// A unit and its way into a shard.
pub(super) struct Tenant {
    pub id: UnitId,
    pub path: String,
    pub unit: Box<dyn Unit>,
    /// Who takes over from it.
    pub twin: Option<Box<dyn Unit>>,
    pub wires: Vec<Wire>,
    /// How many numbers it gives for a sample; none where nobody watches.
    pub numbers: usize,
}

/// A unit in its shard.
struct Slot {
    id: UnitId,
    path: String,
    unit: Box<dyn Unit>,
    twin: Option<Box<dyn Unit>>,
    wake: SimTime,
    failed: bool,
    /// It has run since its counters were last read.
    has_run: bool,
    /// How many numbers it gives for a sample.
    numbers: usize,
}

/// A unit that panicked or broke a rule.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The unit that ran.
    pub unit: UnitId,
    pub mistake: Mistake,
}

/// Run this window, and then, up to the horizon, all that follow from the shard's own units.
///
/// The buffers travel back in the [`Report`]: nothing is allocated for them.
pub(super) struct RunWindows {
    pub window: Window,
    /// No other shard has anything to do before this time.
    pub horizon: SimTime,
    /// No message of theirs arrives before this time.
    pub reach: SimTime,
    /// Messages from each shard.
    pub inbound: Vec<Batch>,
}

impl Message for RunWindows {
    type Result = ();
}

/// The result of [`RunWindows`].
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

impl Message for Report {
    type Result = ();
}

/// Hand in the counts of units before this time. Nothing is left to happen before it.
pub(super) struct TakeSample {
    pub time: SimTime,
    /// Hand in the waits of units, too.
    pub with_waiting: bool,
    pub sample: ShardSample,
}

impl Message for TakeSample {
    type Result = ();
}

/// The result of [`TakeSample`].
pub(super) struct SampleReport {
    pub shard: usize,
    pub sample: ShardSample,
}

impl Message for SampleReport {
    type Result = ();
}

/// The run is over: hand in the statistics.
pub(super) struct CollectStatistics {
    /// Simulated time at its end.
    pub end: SimTime,
}

impl Message for CollectStatistics {
    type Result = ();
}

/// The results of a unit at the end. `Err` = it panicked while it gave them.
pub(super) struct UnitResult {
    pub unit: UnitId,
    pub statistics: Result<StatisticSink, String>,
    pub outstanding: Option<String>,
    pub holds_others_up: bool,
}

/// The statistics of a shard's units.
pub(super) struct ShardResult {
    pub units: Vec<UnitResult>,
}

impl Message for ShardResult {
    type Result = ();
}

/// Where the reports and results of a shard go: to the coordinator.
pub(super) struct Recipients {
    reports: Recipient<Report>,
    samples: Recipient<SampleReport>,
    results: Recipient<ShardResult>,
}

impl Recipients {
    /// To an actor that takes both.
    pub fn of<A>(address: &Addr<A>) -> Recipients
    where
        A: Actor<Context = Context<A>> + Handler<Report> + Handler<SampleReport> + Handler<ShardResult>,
    {
        Recipients {
            reports: address.clone().recipient(),
            samples: address.clone().recipient(),
            results: address.clone().recipient(),
        }
    }
}

/// Where a shard on another thread and the coordinator find each other's messages without sleeping.
#[derive(Default)]
pub(super) struct Desk {
    pub commands: Handoff<RunWindows>,
    pub reports: Handoff<Report>,
}

/// What holds for a whole run, which every shard knows. (What units take while they are built is the catalogue's `Surroundings`.)
#[derive(Clone)]
pub(super) struct RunConditions {
    /// By unit: the smallest latency of its wires.
    pub latencies: Arc<[SimTime]>,
    pub calendar: CalendarShape,
    pub epochs: Epochs,
    pub cut: WindowCut,
    pub stop_at: SimTime,
    pub deadline: Deadline,
    pub interrupt: Arc<AtomicBool>,
    /// The control by which a watcher may hold the run, and ask it.
    pub control: Option<RunControl>,
    pub progress: Option<LiveBoard>,
    pub seats: Arc<[Seat]>,
    pub hand_over: Schedule,
    /// Where the watchdog looks.
    pub calls: Calls,
    /// The span of the run, within which the units' own ones are.
    pub span: tracing::Span,
}

impl RunConditions {
    /// The window that starts with the earliest pending event, where no message that is yet to be sent arrives before `reach`.
    pub fn window_at(&self, start: SimTime, reach: SimTime) -> Window {
        // An event after `reach` has no window yet; that of nothing, which this gives then, is not run.
        let until = reach.min(self.epochs.end_after(start)).max(start);
        Window { start, until: self.cut.shorten(start, until).min(self.stop_at) }
    }

    pub fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Has a watcher asked for something that the coordinator does between windows?
    pub fn is_called(&self) -> bool {
        self.control.as_ref().is_some_and(RunControl::needs_attention)
    }

    pub fn out_of_time(&self) -> bool {
        self.deadline.is_over()
    }
}

/// Hosts units. It never looks at another shard's.
pub(super) struct Shard {
    index: usize,
    slots: Vec<Slot>,
    /// The messages on their way to each slot, and when each next has something to do.
    out: Outbox,
    inbox: Inbox,
    /// When the window before began.
    last_start: SimTime,
    last_event: SimTime,
    messages: u64,
    /// Calls of its units so far.
    calls: u64,
    /// The counts of its units by launch.
    shares: LaunchTotals,
    /// Windows since they were last asked for it.
    windows_since_shares: u64,
    failure: Option<Failure>,
    conditions: RunConditions,
    coordinator: Recipients,
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
        tenants: Vec<Tenant>,
        conditions: RunConditions,
        coordinator: Recipients,
        desk: Option<Arc<Desk>>,
    ) -> Shard {
        let latencies = tenants.iter().map(|tenant| conditions.latencies[tenant.id.0 as usize]).collect();
        let pending = tenants.iter().map(|_| Pending::new(conditions.calendar)).collect();
        let (mut slots, mut wires) = (Vec::with_capacity(tenants.len()), Vec::with_capacity(tenants.len()));
        for Tenant { id, path, unit, twin, wires: own, numbers } in tenants {
            // Every unit runs in the first window: it may have something to start with.
            slots.push(Slot { id, path, unit, twin, wake: SimTime::ZERO, failed: false, has_run: true, numbers });
            wires.push(own);
        }
        let seats = Arc::clone(&conditions.seats);
        Shard {
            index,
            slots,
            out: Outbox::new(index as u32, seats, wires.into_iter(), pending, Agenda::new(latencies)),
            inbox: Inbox::default(),
            last_start: SimTime::ZERO,
            last_event: SimTime::ZERO,
            messages: 0,
            calls: 0,
            shares: LaunchTotals::default(),
            windows_since_shares: 0,
            failure: None,
            conditions,
            coordinator,
            desk,
            patience: Patience::default(),
        }
    }

    /// Does the hand-overs that are due at the start of `window`, where an epoch has ended since the last one.
    #[cold]
    fn hand_over(&mut self, window: Window) {
        if self.conditions.epochs.end_after(self.last_start) > window.start {
            return;
        }
        self.conditions.hand_over.done(window.start);
        for index in 0..self.slots.len() {
            let (slot, schedule) = (&mut self.slots[index], &self.conditions.hand_over);
            let (Some(twin), false) = (&mut slot.twin, slot.failed) else { continue };
            let copied = self.out.pending[index].replace(|message| schedule.copy(message));
            let handed_over = copied.and_then(|()| schedule.swap(&mut slot.unit, twin));
            if let Err(error) = handed_over {
                self.fail(index, ours(window.start, format!("it cannot be handed over: {error}")));
            }
        }
    }

    /// Runs every unit that has something to do in the window.
    fn run_window(&mut self, window: Window) {
        if self.conditions.hand_over.is_due(window.start) {
            self.hand_over(window);
        }
        self.last_start = window.start;
        self.conditions.calls.window_begins(self.index, window.start);
        for block in 0..self.out.agenda.blocks() {
            let Some(slots) = self.out.agenda.due_block(block, window.until) else { continue };
            for index in slots {
                if self.out.agenda.is_due(index, window.until) {
                    self.run_unit(index, window);
                }
            }
            self.out.agenda.settle(block);
        }
        self.conditions.calls.end(self.index);
    }

    fn run_unit(&mut self, index: usize, window: Window) {
        let slot = &mut self.slots[index];
        slot.has_run = true;
        self.inbox.clear();
        self.out.take_due(index, window.until, &mut self.inbox);
        self.messages += self.inbox.len() as u64;
        let latest = self.inbox.last_time().unwrap_or(window.start);
        let woken = if slot.wake < window.until { slot.wake } else { window.start };
        self.last_event = self.last_event.max(latest).max(woken);

        self.calls += 1;
        self.conditions.calls.begin(self.index, self.calls, slot.id.0);
        self.out.begin(index, slot.id, window);
        let advanced = contain(|| slot.unit.advance(window, &mut self.inbox, &mut self.out));

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
        self.out.agenda.set(index, slot.wake.min(self.out.pending[index].earliest()));
        let problem = problem.map(|message| Box::new(ours(window.start, message)));
        if let Some(mistake) = problem.or_else(|| self.out.take_mistake()) {
            self.fail(index, *mistake);
        }
    }

    #[cold]
    fn fail(&mut self, index: usize, mistake: Mistake) {
        let slot = &mut self.slots[index];
        // A unit that was asked for what it does not have has done nothing wrong: its statistics count.
        slot.failed = mistake.sender.is_none();
        slot.wake = SimTime::MAX;
        self.out.agenda.set(index, SimTime::MAX);
        self.inbox.clear();
        // Slots are in the order of units: the first failure of a window is that of its first unit.
        self.failure.get_or_insert(Failure { unit: slot.id, mistake });
    }

    fn receive(&mut self, inbound: &mut [Batch], window: Window) {
        for (unit, message) in inbound.iter_mut().flat_map(|batch| batch.drain(..)) {
            self.out.deliver(unit, message, window.start);
        }
    }

    /// May another window follow without the others' knowledge?
    fn may_go_on(&self, window: Window, horizon: SimTime) -> bool {
        window.start < self.conditions.stop_at
            && window.start < SimTime::MAX
            && window.until <= horizon.min(self.out.outbound_earliest)
            && self.failure.is_none()
            && !self.conditions.interrupted()
            && !self.conditions.is_called()
            && !self.conditions.out_of_time()
    }

    fn run_windows(&mut self, mut command: RunWindows) -> Report {
        let start = Stopwatch::start();
        self.receive(&mut command.inbound, command.window);
        self.out.outbound = command.inbound;
        self.out.outbound_earliest = SimTime::MAX;
        self.messages = 0;
        let mut window = command.window;
        let mut windows = 0;
        let (next, reach) = loop {
            self.run_window(window);
            windows += 1;
            let (next, reach) = (self.out.agenda.earliest(), self.out.agenda.reach());
            let following = self.conditions.window_at(next, reach.min(command.reach));
            if windows == WINDOWS_PER_GRANT || !self.may_go_on(following, command.horizon) {
                break (next, reach);
            }
            // No other shard runs.
            self.conditions.epochs.between(window.start, next);
            window = following;
        };
        self.windows_since_shares += windows;
        if self.windows_since_shares >= WINDOWS_BETWEEN_SHARES {
            self.take_shares();
        }
        Report {
            shard: self.index,
            outbound: std::mem::take(&mut self.out.outbound),
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

    /// Takes the counts of units by launch, so that no unit keeps counts of many launches.
    #[cold]
    fn take_shares(&mut self) {
        self.windows_since_shares = 0;
        for slot in self.slots.iter_mut().filter(|slot| !slot.failed) {
            // A panic here is reported when the statistics are collected.
            let _ = contain(|| slot.unit.shares(&mut self.shares));
        }
    }

    /// Reads the counters of the units that have run since they were last read, or whose counters move by themselves.
    fn take_sample(&mut self, time: SimTime, with_waiting: bool, sample: &mut ShardSample) {
        let ShardSample { values, read, numbers, launches, waiting } = sample;
        read.clear();
        values.resize(self.slots.iter().map(|slot| slot.numbers).sum(), 0);
        let mut rest = &mut values[..];
        let mut fresh = LaunchTotals::default();
        launches.now = time;
        for slot in &mut self.slots {
            let (own, others) = rest.split_at_mut(slot.numbers);
            rest = others;
            let is_read = !slot.failed && (slot.has_run || slot.unit.counts_by_time());
            read.push(is_read);
            if slot.failed {
                continue;
            }
            if is_read {
                slot.has_run = false;
                // A panic here is reported when the statistics are collected.
                let given = contain(|| {
                    let mut sink = StatisticSink::of_numbers(time, std::mem::take(numbers));
                    slot.unit.statistics(&mut sink);
                    slot.unit.launches(launches);
                    slot.unit.shares(&mut fresh);
                    sink.into_numbers()
                });
                *numbers = given.unwrap_or_default();
                if numbers.len() == own.len() {
                    own.copy_from_slice(numbers);
                }
            }
            if with_waiting && let Ok(Some(waits_for)) = contain(|| slot.unit.outstanding()) {
                waiting.push((slot.id, waits_for));
            }
        }
        fresh.each(|launch, units| LaunchCounts::among(&mut launches.counts, launch).ended.units.add(units));
        self.shares.append(fresh);
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
            failure: Some(Failure { unit, mistake: ours(window.start, message) }),
        }
    }
}

/// A mistake that can only be the simulator's own.
fn ours(time: SimTime, message: String) -> Mistake {
    Mistake { time, message, guest: false, sender: None }
}

impl Handler<RunWindows> for Shard {
    type Result = ();

    fn handle(&mut self, command: RunWindows, _: &mut Context<Self>) {
        let span = self.surroundings.span.clone();
        let _inside = span.enter();
        let mut next = Some(command);
        while let Some(command) = next {
            let window = command.window;
            // The coordinator waits for a report: it gets one even where the shard itself fails.
            let report = contain(|| self.run_windows(command)).unwrap_or_else(|message| {
                self.failed_report(window, format!("shard {} failed: {message}", self.index))
            });
            let Some(desk) = &self.desk else {
                self.coordinator.reports.do_send(report);
                return;
            };
            let look = self.patience.worth_while();
            if look {
                desk.commands.open();
            }
            if let Err(report) = desk.reports.offer(report) {
                self.coordinator.reports.do_send(report);
            }
            if !look {
                return;
            }
            next = desk.commands.wait();
            self.patience.looked(next.is_some());
        }
    }
}

impl Handler<TakeSample> for Shard {
    type Result = ();

    fn handle(&mut self, command: TakeSample, _: &mut Context<Self>) {
        let TakeSample { time, with_waiting, mut sample } = command;
        self.take_sample(time, with_waiting, &mut sample);
        self.coordinator.samples.do_send(SampleReport { shard: self.index, sample });
    }
}

impl Handler<CollectStatistics> for Shard {
    type Result = ();

    fn handle(&mut self, CollectStatistics { end }: CollectStatistics, _: &mut Context<Self>) {
        self.take_shares();
        let mut shares = std::mem::take(&mut self.shares);
        let living = self.slots.iter().filter(|slot| !slot.failed);
        let units = living.map(|slot| {
            let statistics = contain(|| {
                let mut sink = StatisticSink::default();
                sink.now = end;
                sink.shares = std::mem::take(&mut shares);
                sink.set_location(&slot.path);
                slot.unit.statistics(&mut sink);
                slot.unit.records(&mut sink);
                sink
            });
            let outstanding = contain(|| slot.unit.outstanding());
            let outstanding = outstanding.unwrap_or_else(|message| Some(format!("(it panicked: {message})")));
            let holds_others_up = contain(|| slot.unit.holds_others_up()).unwrap_or(false);
            UnitResult { unit: slot.id, statistics, outstanding, holds_others_up }
        });
        self.coordinator.results.do_send(ShardResult { units: units.collect() });
    }
}
