//! The coordinator: an actor that owns simulated time and moves the shards through it.

use super::containment::contain;
use super::handoff::{Patience, look_for};
use super::outbox::{Batch, Mistake};
use super::report::{DeadlockReport, EngineError, LostStatistics, Outcome, RunReport, WaitingUnit};
use super::shard::{
    CollectStatistics, Desk, Failure, Recipients, Report, RunConditions, RunWindows, SampleReport, Shard, ShardResult,
    TakeSample, Tenant, UnitResult,
};
use super::watching::sampler::{Next, Sampler};
use super::watching::sampling::SampleKind;
use actix::{Actor, Addr, ArbiterHandle, AsyncContext, Context, Handler};
use balar_protocol::SimTime;
use balar_protocol::statistics::StatisticSink;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The parts that a coordinator is made from.
pub(super) struct CoordinatorSetup {
    pub conditions: RunConditions,
    pub paths: Arc<[String]>,
    /// The units of each shard.
    pub tenants: Vec<Vec<Tenant>>,
    /// Takes samples, where a watcher wants them.
    pub sampler: Option<Sampler>,
    /// Where each shard lives.
    pub arbiters: Vec<ArbiterHandle>,
    /// Shards and coordinator look for each other's messages before they sleep: each has a processor of its own.
    pub wakeful: bool,
    pub result: oneshot::Sender<Result<RunReport, EngineError>>,
}

/// The coordinator's knowledge of a shard.
struct ShardState {
    address: Addr<Shard>,
    /// The earliest stamp or wake of its units when it last reported.
    own_next: SimTime,
    /// No message that its units are yet to send arrives before this time, as far as they knew when it last reported.
    own_reach: SimTime,
    /// The same two for the messages in `inbound`.
    inbound_earliest: SimTime,
    inbound_reach: SimTime,
    /// Buffers of its last report, for its next command.
    buffers: Vec<Batch>,
    /// Messages for it, by the shard they come from.
    inbound: Vec<Batch>,
    busy: Duration,
    /// It has a command that it has not reported on.
    running: bool,
    /// The desk of a shard on another thread, where messages need not wake any thread.
    desk: Option<Arc<Desk>>,
}

impl ShardState {
    /// When it next has something to do.
    fn next(&self) -> SimTime {
        self.own_next.min(self.inbound_earliest)
    }

    /// No message that it is yet to send arrives before this time.
    fn reach(&self) -> SimTime {
        self.own_reach.min(self.inbound_reach)
    }
}

/// Owns simulated time.
pub(super) struct Coordinator {
    shards: Vec<ShardState>,
    conditions: RunConditions,
    paths: Arc<[String]>,
    /// Shards that have not reported yet.
    running: usize,
    /// When the last window began.
    last_start: SimTime,
    /// When it ended.
    reached: SimTime,
    last_event: SimTime,
    windows: u64,
    /// Windows that the shards of the present step ran: the same number for all of them.
    step_windows: u64,
    messages: u64,
    failure: Option<Failure>,
    sampler: Option<Sampler>,
    /// Set when the run is over and statistics are being collected.
    ending: Option<Ending>,
    results: Vec<UnitResult>,
    results_missing: usize,
    result: Option<oneshot::Sender<Result<RunReport, EngineError>>>,
    patience: Patience,
}

/// Why the run is over.
#[derive(Clone, Copy, Debug)]
enum Ending {
    NothingLeft,
    StoppedAt,
    WallLimit,
    Interrupted,
    Failure,
}

impl Coordinator {
    pub fn new(setup: CoordinatorSetup, context: &mut Context<Self>) -> Coordinator {
        let count = setup.tenants.len();
        let conditions = setup.conditions;
        let shortest = conditions.latencies.iter().copied().min().unwrap_or(SimTime::MAX);
        let empty = || (0..count).map(|_| Batch::new()).collect::<Vec<Batch>>();
        let start = |(index, (tenants, arbiter)): (usize, (Vec<Tenant>, ArbiterHandle))| {
            let (conditions, coordinator) = (conditions.clone(), Recipients::of(&context.address()));
            let own_next = if tenants.is_empty() { SimTime::MAX } else { SimTime::ZERO };
            let desk = (setup.wakeful && index > 0).then(Arc::<Desk>::default);
            let of_shard = desk.clone();
            let start = move |_: &mut Context<Shard>| Shard::new(index, tenants, conditions, coordinator, of_shard);
            let address = Shard::start_in_arbiter(&arbiter, start);
            ShardState {
                address,
                own_next,
                // Nothing has been sent yet: the first window is the shortest.
                own_reach: shortest,
                inbound_earliest: SimTime::MAX,
                inbound_reach: SimTime::MAX,
                buffers: empty(),
                inbound: empty(),
                busy: Duration::ZERO,
                running: false,
                desk,
            }
        };
        let shards = setup.tenants.into_iter().zip(setup.arbiters).enumerate().map(start).collect();
        Coordinator {
            shards,
            conditions,
            paths: setup.paths,
            running: 0,
            last_start: SimTime::ZERO,
            reached: SimTime::ZERO,
            last_event: SimTime::ZERO,
            windows: 0,
            step_windows: 0,
            messages: 0,
            failure: None,
            sampler: setup.sampler,
            ending: None,
            results: Vec::new(),
            results_missing: 0,
            patience: Patience::default(),
            result: Some(setup.result),
        }
    }

    /// Why the run is over, where it is, if the next event is at `start`.
    fn ending_at(&self, start: SimTime) -> Option<Ending> {
        if self.failure.is_some() {
            Some(Ending::Failure)
        } else if start == SimTime::MAX {
            Some(Ending::NothingLeft)
        } else if start >= self.conditions.stop_at {
            Some(Ending::StoppedAt)
        } else if self.conditions.interrupted() {
            Some(Ending::Interrupted)
        } else if self.conditions.out_of_time() {
            Some(Ending::WallLimit)
        } else {
            None
        }
    }

    /// Starts the next window or a sample, or ends the run.
    fn step(&mut self) {
        let (start, ending, limit) = loop {
            let start = self.shards.iter().map(ShardState::next).min().unwrap_or(SimTime::MAX);
            let ending = self.ending_at(start);
            let end = ending.map(|ending| self.end(matches!(ending, Ending::StoppedAt)));
            let next = self.sampler.as_mut().map(|sampler| sampler.next(start, self.reached, end));
            match next {
                None => break (start, ending, SimTime::MAX),
                Some(Next::Window(limit)) => break (start, ending, limit),
                Some(Next::Take(time, kind)) => return self.begin_sample(time, kind),
                Some(Next::Hold(time)) => self.reach(time),
            }
        };
        if ending.is_some() {
            tracing::debug!(
                ?ending,
                time_ps = start.0,
                windows = self.windows,
                messages = self.messages,
                "no window follows"
            );
            self.ending = ending;
            self.conditions.epochs.finish();
            self.results_missing = self.shards.len();
            let end = self.end(matches!(ending, Some(Ending::StoppedAt)));
            for shard in &self.shards {
                shard.address.do_send(CollectStatistics { end });
            }
            return;
        }

        self.conditions.epochs.between(self.last_start, start);
        let reach = self.shards.iter().map(ShardState::reach).min().unwrap_or(SimTime::MAX);
        let mut window = self.conditions.window_at(start, reach);
        window.until = window.until.min(limit);
        self.running = self.shards.iter().filter(|shard| shard.next() < window.until).count();
        let alone = self.running == 1;
        // What the others do next, where only one shard has work: it needs nobody until then.
        let others = self.shards.iter().map(ShardState::next).filter(|&next| next >= window.until).min();
        let horizon = if alone { others.unwrap_or(SimTime::MAX).min(limit) } else { window.until };
        let sleeping = self.shards.iter().filter(|shard| shard.next() >= window.until);
        let reach = sleeping.map(ShardState::reach).min().unwrap_or(SimTime::MAX);
        // Shard 0 lives on this thread: the others start first.
        for shard in self.shards.iter_mut().rev().filter(|shard| shard.next() < window.until) {
            let mut inbound = std::mem::take(&mut shard.buffers);
            std::mem::swap(&mut inbound, &mut shard.inbound);
            (shard.inbound_earliest, shard.inbound_reach) = (SimTime::MAX, SimTime::MAX);
            shard.running = true;
            let command = RunWindows { window, horizon, reach, inbound };
            let refused = match &shard.desk {
                Some(desk) => {
                    desk.reports.open();
                    desk.commands.offer(command).err()
                }
                None => Some(command),
            };
            if let Some(command) = refused {
                shard.address.do_send(command);
            }
        }
    }

    /// Asks every shard for the counts of its units.
    fn begin_sample(&mut self, time: SimTime, kind: SampleKind) {
        let Some(sampler) = &mut self.sampler else { return };
        let with_waiting = kind == SampleKind::Asked;
        for (shard, sample) in self.shards.iter().zip(sampler.begin(time, kind)) {
            shard.address.do_send(TakeSample { time, with_waiting, sample });
        }
    }

    /// Is a sample on its way?
    fn is_sampling(&self) -> bool {
        self.sampler.as_ref().is_some_and(Sampler::is_taking)
    }

    /// Goes on until a message has to come through the mailbox, or the run is over.
    fn proceed(&mut self) {
        loop {
            if self.running == 0 && !self.is_sampling() {
                self.step();
            }
            // Shard 0 lives on this thread: it can only run once this returns.
            if self.ending.is_some() || self.is_sampling() || self.shards[0].running {
                return;
            }
            let Some(report) = self.look_for_report() else { return };
            self.take(report);
        }
    }

    /// Waits for the report of a shard on another thread, not for long; later reports come through the mailbox.
    fn look_for_report(&mut self) -> Option<Report> {
        let desks = || self.shards.iter().filter_map(|shard| shard.desk.as_ref()).filter(|desk| desk.reports.is_open());
        desks().next()?;
        let found = if self.patience.worth_while() {
            let found = look_for(|| desks().find_map(|desk| desk.reports.try_take()));
            self.patience.looked(found.is_some());
            found
        } else {
            None
        };
        found.or_else(|| desks().find_map(|desk| desk.reports.close()))
    }

    fn take(&mut self, mut report: Report) {
        self.last_event = self.last_event.max(report.last_event);
        self.step_windows = self.step_windows.max(report.windows);
        self.messages += report.messages;
        if let Some(failure) = report.failure {
            // Of several in one window, the first unit's: the same for any placement.
            if self.failure.as_ref().is_none_or(|first| failure.unit < first.unit) {
                self.failure = Some(failure);
            }
        }
        for (to, batch) in report.outbound.iter_mut().enumerate().filter(|(_, batch)| !batch.is_empty()) {
            let shard = &mut self.shards[to];
            for (unit, message) in batch.iter() {
                let reach = message.time.saturating_add(self.conditions.latencies[unit.0 as usize]);
                shard.inbound_earliest = shard.inbound_earliest.min(message.time);
                shard.inbound_reach = shard.inbound_reach.min(reach);
            }
            let waiting = &mut shard.inbound[report.shard];
            if waiting.is_empty() {
                std::mem::swap(waiting, batch);
            } else {
                waiting.append(batch);
            }
        }
        let shard = &mut self.shards[report.shard];
        shard.buffers = report.outbound;
        shard.busy += report.busy;
        shard.own_next = report.next;
        shard.own_reach = report.reach;
        shard.running = false;
        self.running -= 1;
        if self.running > 0 {
            return;
        }

        self.last_start = report.last.start;
        self.windows += std::mem::take(&mut self.step_windows);
        self.reach(report.last.until);
    }

    /// Nothing happens before `time` that has not happened.
    fn reach(&mut self, time: SimTime) {
        self.reached = self.reached.max(time);
        if let Some(progress) = &self.conditions.progress {
            progress.reached(self.reached, self.windows, self.messages);
        }
    }

    /// Simulated time at the end of the run.
    fn end(&self, is_stopped: bool) -> SimTime {
        if is_stopped { self.conditions.stop_at } else { self.last_event }
    }

    /// The report, once every shard has handed in.
    fn conclude(&mut self, ending: Ending) -> RunReport {
        self.results.sort_by_key(|result| result.unit);
        let path = |unit: balar_protocol::UnitId| self.paths[unit.0 as usize].clone();
        let mut statistics = StatisticSink::default();
        let mut lost_statistics = Vec::new();
        let (mut at_fault, mut waiting) = (Vec::new(), Vec::new());
        let mut unreported = Vec::new();
        for result in self.results.drain(..) {
            match result.statistics {
                Ok(mut sink) => {
                    statistics.rows.append(&mut sink.rows);
                    statistics.tables.append(&mut sink.tables);
                    statistics.kernels.append(&sink.kernels);
                    statistics.shares.append(sink.shares);
                    unreported.append(&mut sink.unreported);
                    statistics.outcome = sink.outcome.or(statistics.outcome);
                }
                Err(message) => lost_statistics.push(LostStatistics { path: path(result.unit), message }),
            }
            let list = if result.holds_others_up { &mut at_fault } else { &mut waiting };
            list.extend(result.outstanding.map(|waits_for| WaitingUnit { path: path(result.unit), waits_for }));
        }
        // What the others wait for stands before them.
        at_fault.append(&mut waiting);
        let waiting = at_fault;
        let kernels = std::mem::take(&mut statistics.shares).complete(&statistics.kernels);
        statistics.kernels = kernels.completed_by(&unreported);
        let outcome = match (ending, self.failure.take()) {
            (_, Some(Failure { unit, mistake: Mistake { time, message, guest: true, sender } })) => {
                Outcome::UnitBroken { path: path(sender.unwrap_or(unit)), time, message }
            }
            (_, Some(Failure { unit, mistake: Mistake { time, message, guest: false, .. } })) => {
                Outcome::UnitPanic { path: path(unit), time, message }
            }
            (Ending::NothingLeft, None) if !waiting.is_empty() => {
                Outcome::Deadlock(DeadlockReport { time: self.last_event, waiting })
            }
            (Ending::NothingLeft | Ending::Failure, None) => Outcome::Finished,
            (Ending::StoppedAt, None) => Outcome::StoppedAt,
            (Ending::WallLimit, None) => Outcome::WallLimit,
            (Ending::Interrupted, None) => Outcome::Interrupted,
        };
        RunReport {
            end: self.end(outcome == Outcome::StoppedAt),
            outcome,
            statistics,
            lost_statistics,
            given_up: None,
            windows: self.windows,
            messages: self.messages,
            shard_busy: self.shards.iter().map(|shard| shard.busy).collect(),
        }
    }

    fn finish(&mut self, result: Result<RunReport, EngineError>) {
        if let Some(sender) = self.result.take() {
            // Nobody listens only where the run's thread is gone already.
            let _ = sender.send(result);
        }
    }

    /// Runs `work`; a panic in it ends the run with an error, because shards would wait for ever.
    fn guarded(&mut self, work: impl FnOnce(&mut Self)) {
        if let Err(message) = contain(|| work(self)) {
            self.finish(Err(EngineError::Internal(message)));
        }
    }
}

impl Actor for Coordinator {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.guarded(Coordinator::proceed);
    }
}

impl Handler<Report> for Coordinator {
    type Result = ();

    fn handle(&mut self, report: Report, _: &mut Context<Self>) {
        self.guarded(|coordinator| {
            coordinator.take(report);
            coordinator.proceed();
        });
    }
}

impl Handler<SampleReport> for Coordinator {
    type Result = ();

    fn handle(&mut self, report: SampleReport, _: &mut Context<Self>) {
        self.guarded(|coordinator| {
            if let Some(sampler) = &mut coordinator.sampler {
                sampler.take(report.shard, report.sample);
            }
            coordinator.proceed();
        });
    }
}

impl Handler<ShardResult> for Coordinator {
    type Result = ();

    fn handle(&mut self, result: ShardResult, _: &mut Context<Self>) {
        self.guarded(|coordinator| {
            coordinator.results.extend(result.units);
            coordinator.results_missing -= 1;
            if let (0, Some(ending)) = (coordinator.results_missing, coordinator.ending) {
                let report = coordinator.conclude(ending);
                coordinator.finish(Ok(report));
            }
        });
    }
}
