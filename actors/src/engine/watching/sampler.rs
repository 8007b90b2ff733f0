//! How the coordinator takes samples: when, from which shards, and into which order.

use super::control::Order;
use super::sampling::{Sample, SampleKind, SampleLayout, SampleTimes, Watch};
use crate::engine::containment::contain;
use crate::engine::report::WaitingUnit;
use crate::engine::unit::Unit;
use balar_protocol::launches::LaunchSink;
use balar_protocol::statistics::{StatisticRow, StatisticSink};
use balar_protocol::{SimTime, UnitId};

/// A shard's part of a sample. Its buffers travel back with the next demand.
#[derive(Default)]
pub(in crate::engine) struct ShardSample {
    /// The numbers of its units, one after another.
    pub values: Vec<u64>,
    /// Whether each of them has been read anew.
    pub read: Vec<bool>,
    /// A buffer for the numbers of one unit.
    pub numbers: Vec<u64>,
    pub launches: LaunchSink,
    /// Its units that have work outstanding, where that is asked for.
    pub waiting: Vec<(UnitId, String)>,
}

/// The coordinator's act before the next window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Next {
    /// It runs a window that does not go beyond this time.
    Window(SimTime),
    /// It takes a sample.
    Take(SimTime, SampleKind),
    /// The run is held and stands at this time, if it was not beyond: it looks again whether it has to end.
    Hold(SimTime),
}

/// The samples of a run on their way from the shards to the watcher.
pub(in crate::engine) struct Sampler {
    watch: Watch,
    layout: SampleLayout,
    times: SampleTimes,
    /// Units, by shard.
    units: Vec<Vec<UnitId>>,
    values: Vec<u64>,
    changed: Vec<bool>,
    launches: LaunchSink,
    waiting: Vec<(UnitId, String)>,
    /// Buffers, by shard.
    buffers: Vec<ShardSample>,
    /// The sample that is being taken, and how many shards have not handed in.
    under_way: Option<(SimTime, SampleKind)>,
    missing: usize,
    has_ended: bool,
}

impl Sampler {
    /// A sampler of units that have not run, each with its path, in these shards.
    pub fn new<'a>(
        watch: Watch,
        units: impl Iterator<Item = (&'a str, &'a dyn Unit)>,
        shard_of: impl Fn(usize) -> usize,
        shards: usize,
    ) -> Sampler {
        let mut layout = SampleLayout::default();
        let mut of_shards = vec![Vec::new(); shards];
        for (index, (path, unit)) in units.enumerate() {
            let first = layout.rows.len();
            layout.rows.append(&mut rows(path, unit));
            layout.units.push((path.to_owned(), first..layout.rows.len()));
            of_shards[shard_of(index)].push(UnitId(index as u32));
        }
        watch.observer().begin(&layout);
        Sampler {
            times: watch.times(),
            values: vec![0; layout.rows.len()],
            changed: vec![false; layout.units.len()],
            launches: LaunchSink::default(),
            waiting: Vec::new(),
            buffers: (0..shards).map(|_| ShardSample::default()).collect(),
            units: of_shards,
            under_way: None,
            missing: 0,
            has_ended: false,
            watch,
            layout,
        }
    }

    /// How many numbers a unit gives.
    pub fn numbers_of(&self, unit: usize) -> usize {
        self.layout.units[unit].1.len()
    }

    /// The act before anything at `start`; all before `reached` has happened, and `end` is when the run ends, if it does.
    pub fn next(&mut self, start: SimTime, reached: SimTime, end: Option<SimTime>) -> Next {
        if let Some(end) = end {
            return match self.times.due(end).filter(|&due| due < end) {
                Some(due) => Next::Take(due, SampleKind::Due),
                None if self.has_ended => Next::Window(SimTime::MAX),
                None => {
                    self.has_ended = true;
                    Next::Take(end, SampleKind::Last)
                }
            };
        }
        if let Some(due) = self.times.due(start) {
            return Next::Take(due, SampleKind::Due);
        }
        match self.watch.control.order(reached, start) {
            Order::GoOn(until) => Next::Window(until.min(self.times.next())),
            Order::Sample => Next::Take(reached.min(start), SampleKind::Asked),
            Order::Hold(time) => Next::Hold(time),
        }
    }

    /// Is a sample on its way?
    pub fn is_taking(&self) -> bool {
        self.missing > 0
    }

    /// Begins a sample: gives the buffers for each shard.
    pub fn begin(&mut self, time: SimTime, kind: SampleKind) -> impl Iterator<Item = ShardSample> {
        self.under_way = Some((time, kind));
        self.missing = self.buffers.len();
        self.launches.begun.clear();
        self.launches.counts.clear();
        self.waiting.clear();
        self.buffers.iter_mut().map(std::mem::take)
    }

    /// A shard hands in. With the last one the sample is shown.
    pub fn take(&mut self, shard: usize, mut sample: ShardSample) {
        let mut given = &sample.values[..];
        for (unit, &read) in self.units[shard].iter().zip(&sample.read) {
            let range = self.layout.units[unit.0 as usize].1.clone();
            let Some((own, others)) = given.split_at_checked(range.len()) else { break };
            self.changed[unit.0 as usize] = read;
            if read {
                self.values[range].copy_from_slice(own);
            }
            given = others;
        }
        self.launches.begun.append(&mut sample.launches.begun);
        self.launches.counts.append(&mut sample.launches.counts);
        self.waiting.append(&mut sample.waiting);
        self.buffers[shard] = sample;
        self.missing -= 1;
        if self.missing == 0 {
            self.show();
        }
    }

    fn show(&mut self) {
        let Some((time, kind)) = self.under_way.take() else { return };
        // Shards hand in when they can: what they say is put in an order that does not depend on them.
        self.launches.begun.sort_by(|a, b| (&a.gpu, a.launch).cmp(&(&b.gpu, b.launch)));
        self.launches.counts.sort_by_key(|counts| counts.launch);
        self.waiting.sort_by_key(|(unit, _)| *unit);
        let path = |unit: UnitId| self.layout.units[unit.0 as usize].0.clone();
        let waiting = self.waiting.drain(..).map(|(unit, waits_for)| WaitingUnit { path: path(unit), waits_for });
        let waiting: Vec<WaitingUnit> = waiting.collect();
        let Sampler { values, changed, launches, .. } = self;
        self.watch.observer().sample(&Sample { time, kind, values, changed, launches, waiting: &waiting });
    }
}

/// The rows of a unit before it has run. One that panics has none.
fn rows(path: &str, unit: &dyn Unit) -> Vec<StatisticRow> {
    let written = contain(|| {
        let mut sink = StatisticSink::default();
        sink.set_location(path);
        unit.statistics(&mut sink);
        sink.rows
    });
    written.unwrap_or_default()
}
