//! Samples: the counts of units so far, read at times of simulated time or when a watcher asks, while the run goes on.
//!
//! The coordinator lets no window cross the time of a sample. So everything before it has happened and nothing after it, and a sample
//! depends on units alone, not on threads or on where windows end. Units are asked for numbers; the names of these are asked for once.
//!
//! **Invariant:** nothing that is simulated sees a sample: a run with samples gives the results of one without.

use super::control::RunControl;
use crate::engine::report::WaitingUnit;
use balar_protocol::SimTime;
use balar_protocol::launches::LaunchSink;
use balar_protocol::statistics::StatisticRow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Takes the samples of a run.
pub trait Observer: Send {
    /// The run begins: the layout of each sample.
    fn begin(&mut self, layout: &SampleLayout);

    /// A sample has been taken. It is called between windows: the simulation waits for it.
    fn sample(&mut self, sample: &Sample<'_>);
}

/// Which numbers samples hold, in their order: the rows of all units.
#[derive(Clone, Debug, Default)]
pub struct SampleLayout {
    /// The rows, as they are before anything has happened.
    pub rows: Vec<StatisticRow>,
    /// The path of each unit, and which of the rows are its own.
    pub units: Vec<(String, Range<usize>)>,
}

/// Why a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    /// Its time has come.
    Due,
    /// A watcher has asked ([`RunControl::ask`]). Such samples come at times that differ from run to run.
    Asked,
    /// The run is over.
    Last,
}

/// The counts of units at a time.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Everything before it has happened, and nothing after it.
    pub time: SimTime,
    /// Why it was taken.
    pub kind: SampleKind,
    /// The numbers, in the order of [`SampleLayout::rows`].
    pub values: &'a [u64],
    /// May the numbers of a unit differ from those of the sample before? In the order of [`SampleLayout::units`].
    pub changed: &'a [bool],
    /// The fates of launches since the sample before, for samples of any kind.
    pub launches: &'a LaunchSink,
    /// In a sample that a watcher has asked for: the units that have work outstanding, and what they wait for.
    pub waiting: &'a [WaitingUnit],
}

/// How a run is watched.
#[derive(Clone)]
pub struct Watch {
    /// Simulated time from one sample to the next, counted from zero; `None` = only when a watcher asks, and at the end.
    ///
    /// Stretches in which nothing happens have one sample at their first such time and one at their last.
    pub interval: Option<SimTime>,
    /// Who asks for samples beside these, and holds the run.
    pub control: RunControl,
    /// After so many samples the interval doubles, and again after half as many more; `None` = it stays as it is.
    thinning: Option<u32>,
    observer: Arc<Mutex<dyn Observer>>,
}

impl Watch {
    /// A watch by `observer`, with samples at multiples of `interval`, which is above zero.
    pub fn new(interval: Option<SimTime>, control: RunControl, observer: impl Observer + 'static) -> Watch {
        Watch::shared(interval, control, Arc::new(Mutex::new(observer)))
    }

    /// As [`Self::new`], with an observer that the code which started the run looks at as well.
    pub fn shared(interval: Option<SimTime>, control: RunControl, observer: Arc<Mutex<dyn Observer>>) -> Watch {
        Watch { interval, control, thinning: None, observer }
    }

    /// The same watch, whose interval doubles after `most` samples, and again after half as many more: for runs of any length, whose samples
    /// remain few. `most` is at least 2.
    pub fn thinned(self, most: u32) -> Watch {
        Watch { thinning: Some(most.max(2)), ..self }
    }

    pub(in crate::engine) fn times(&self) -> SampleTimes {
        SampleTimes { thinning: self.thinning, ..SampleTimes::new(self.interval) }
    }

    pub(in crate::engine) fn observer(&self) -> MutexGuard<'_, dyn Observer + 'static> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("interval", &self.interval).finish_non_exhaustive()
    }
}

/// When samples are due.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct SampleTimes {
    interval: SimTime,
    /// The next one; [`SimTime::MAX`] = none is.
    next: SimTime,
    /// How many may be taken before the interval doubles.
    thinning: Option<u32>,
    /// How many have been taken; half of them are forgotten when the interval doubles.
    taken: u32,
}

impl SampleTimes {
    /// At multiples of `interval` after zero.
    pub fn new(interval: Option<SimTime>) -> SampleTimes {
        let next = interval.filter(|interval| interval.0 > 0);
        let next = next.unwrap_or(SimTime::MAX);
        SampleTimes { interval: next, next, thinning: None, taken: 0 }
    }

    /// Simulated time may be advanced up to here.
    #[inline]
    pub fn next(&self) -> SimTime {
        self.next
    }

    /// The sample that is due before anything at `start` happens, where nothing has happened since the one before it.
    ///
    /// In an empty stretch, the first and the last sample are due.
    #[inline]
    pub fn due(&mut self, start: SimTime) -> Option<SimTime> {
        if start < self.next || start == SimTime::MAX {
            return None;
        }
        let due = self.next;
        self.taken = self.taken.saturating_add(1);
        if self.thinning.is_some_and(|most| self.taken >= most) {
            self.interval = self.interval.saturating_add(self.interval);
            self.taken /= 2;
        }
        let interval = self.interval.0;
        let last = SimTime(start.0 / interval * interval);
        self.next = if due < last { last } else { SimTime(due.0 / interval * interval).saturating_add(self.interval) };
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(times: &mut SampleTimes, start: u64) -> Vec<u64> {
        std::iter::from_fn(|| times.due(SimTime(start))).map(|time| time.0).collect()
    }

    #[test]
    fn samples_are_due_at_multiples_and_at_both_ends_of_empty_stretches() {
        let mut times = SampleTimes::new(Some(SimTime(10)));
        assert_eq!(times.next(), SimTime(10));
        assert_eq!(due(&mut times, 9), []);
        assert_eq!(due(&mut times, 10), [10]);
        assert_eq!(due(&mut times, 15), []);
        assert_eq!(due(&mut times, 29), [20]);
        assert_eq!(due(&mut times, 77), [30, 70]);
        assert_eq!(times.next(), SimTime(80));
        assert_eq!(due(&mut times, 1_000_000), [80, 1_000_000]);
        assert_eq!(due(&mut times, u64::MAX), [], "nothing is left to happen");
    }

    #[test]
    fn the_interval_doubles_where_samples_would_be_many() {
        let mut times = SampleTimes { thinning: Some(4), ..SampleTimes::new(Some(SimTime(10))) };
        let taken: Vec<u64> = (1..200).flat_map(|start| due(&mut times, start)).collect();
        assert_eq!(taken, [10, 20, 30, 40, 60, 80, 120, 160]);
        assert_eq!(times.next(), SimTime(240));
        // Of an empty stretch the first and the last are due, too.
        assert_eq!(due(&mut times, 1500), [240, 1440]);
    }

    #[test]
    fn without_an_interval_none_is_due() {
        for interval in [None, Some(SimTime::ZERO)] {
            let mut times = SampleTimes::new(interval);
            assert_eq!((times.next(), due(&mut times, 1 << 60)), (SimTime::MAX, Vec::new()), "{interval:?}");
        }
    }
}
