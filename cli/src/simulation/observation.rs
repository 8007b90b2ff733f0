//! Who watches a run while it goes on: made from the options before it, and finished after it.

use crate::options::simulation::SimulationOptions;
use crate::series::SeriesRecorder;
use crate::series::sample_keeper::{FIRST_INTERVAL, MOST, SampleKeeper, Samples};
use balar_actors::engine::{LiveBoard, Observer, RunControl, Sample, SampleLayout, Watch};
use balar_actors::topology::Topology;
use balar_live::{Live, WhatRuns};
use balar_protocol::SimTime;
use balar_record::result::RunRecord;
use balar_record::sampled::SampledCounter;
use balar_record::system::failure::Failure;
use balar_record::system::files::WriteError;
use std::sync::{Arc, Mutex, PoisonError};

/// Who watches a run.
#[derive(Clone, Default)]
pub struct Observation {
    interval: Option<SimTime>,
    series: Option<Arc<Mutex<SeriesRecorder>>>,
    live: Option<Arc<Mutex<Live>>>,
    keeper: Option<Arc<Mutex<SampleKeeper>>>,
    board: LiveBoard,
}

impl Observation {
    /// Those that the options ask for. The folder of the run is there.
    ///
    /// # Errors
    ///
    /// What of an earlier run is in the way and cannot be replaced; a port that is in use.
    pub fn prepare(options: &SimulationOptions, topology: &Topology, work: WhatRuns) -> Result<Observation, Failure> {
        let series = SeriesRecorder::new(options, topology)?;
        let board = LiveBoard::default();
        let live = options.live.map(|port| Live::start(port, topology, work, &board)).transpose()?;
        Ok(Observation {
            interval: options.series.sample_interval,
            keeper: options.report.as_ref().map(|_| Arc::default()),
            series: series.map(|series| Arc::new(Mutex::new(series))),
            live: live.map(|live| Arc::new(Mutex::new(live))),
            board,
        })
    }

    /// The board of counters of the run.
    pub fn board(&self) -> LiveBoard {
        self.board.clone()
    }

    /// How the engine is to be watched; `None` where nobody does.
    pub fn watch(&self) -> Option<Watch> {
        let series = self.series.iter().map(|series| Arc::clone(series) as Arc<Mutex<dyn Observer>>);
        let live = self.live.as_ref().map(|live| {
            let live = live.lock().unwrap_or_else(PoisonError::into_inner);
            (live.observer(), live.control())
        });
        let (live, control) = live.unzip();
        let keeper = self.keeper.iter().map(|keeper| Arc::clone(keeper) as Arc<Mutex<dyn Observer>>);
        let mut observers: Vec<Arc<Mutex<dyn Observer>>> = series.chain(live).chain(keeper).collect();
        let first = observers.pop()?;
        let observer = if observers.is_empty() {
            first
        } else {
            observers.push(first);
            Arc::new(Mutex::new(Observers(observers))) as Arc<Mutex<dyn Observer>>
        };
        let control = control.unwrap_or_else(RunControl::default);
        Some(match (self.interval, &self.keeper) {
            // A report has some hundreds of samples, however long the run is.
            (None, Some(_)) => Watch::shared(Some(FIRST_INTERVAL), control, observer).thinned(MOST as u32),
            (interval, _) => Watch::shared(interval, control, observer),
        })
    }

    /// The run is over: gives what was sampled for its report.
    pub fn take_samples(&self) -> Samples {
        let keeper = self.keeper.as_ref().map(|keeper| keeper.lock().unwrap_or_else(PoisonError::into_inner));
        keeper.map(|mut keeper| keeper.take()).unwrap_or_default()
    }

    /// The run is over: gives what was sampled for its timeline.
    pub fn take_counters(&self) -> Vec<SampledCounter> {
        let series = self.series.as_ref().map(|series| series.lock().unwrap_or_else(PoisonError::into_inner));
        series.map(|mut series| series.take_counters()).unwrap_or_default()
    }

    /// The run is over: writes what is left.
    ///
    /// # Errors
    ///
    /// The first thing that could not be written, whenever that was.
    pub fn finish(&self, record: &RunRecord, expanded_topology: &str) -> Result<(), WriteError> {
        let Some(series) = &self.series else { return Ok(()) };
        series.lock().unwrap_or_else(PoisonError::into_inner).finish(record, expanded_topology)
    }

    /// All files of the run have been written: tells those who look at it how it ended.
    pub fn end(&self, record: &RunRecord) {
        if let Some(live) = &self.live {
            live.lock().unwrap_or_else(PoisonError::into_inner).end(&balar_live::ending_of(record));
        }
    }
}

/// Several who take the samples of a run.
struct Observers(Vec<Arc<Mutex<dyn Observer>>>);

impl Observer for Observers {
    fn begin(&mut self, layout: &SampleLayout) {
        for observer in &self.0 {
            observer.lock().unwrap_or_else(PoisonError::into_inner).begin(layout);
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        for observer in &self.0 {
            observer.lock().unwrap_or_else(PoisonError::into_inner).sample(sample);
        }
    }
}
