//! Who watches a run while it goes on: made from the options before it, and finished after it.

use crate::arguments::SimulationOptions;
use crate::failure::Failure;
use crate::files::WriteError;
use crate::result::RunRecord;
use crate::series::Series;
use crate::timeline;
use balar_actors::engine::{Observer, RunControl, Watch};
use balar_actors::topology::Topology;
use balar_protocol::SimTime;
use std::sync::{Arc, Mutex, PoisonError};

/// Who watches a run.
#[derive(Clone, Default)]
pub struct Observation {
    interval: Option<SimTime>,
    series: Option<Arc<Mutex<Series>>>,
}

impl Observation {
    /// Those that the options ask for. The folder of the run is there.
    ///
    /// # Errors
    ///
    /// What of an earlier run is in the way and cannot be replaced.
    pub fn prepare(options: &SimulationOptions, topology: &Topology) -> Result<Observation, Failure> {
        let series = Series::new(options, topology)?;
        Ok(Observation {
            interval: options.series.sample_interval,
            series: series.map(|series| Arc::new(Mutex::new(series))),
        })
    }

    /// How the engine is to be watched; `None` where nobody does.
    pub fn watch(&self) -> Option<Watch> {
        let series = Arc::clone(self.series.as_ref()?) as Arc<Mutex<dyn Observer>>;
        Some(Watch::shared(self.interval, RunControl::default(), series))
    }

    /// The run is over: gives what was sampled for its timeline.
    pub fn take_counters(&self) -> Vec<timeline::Series> {
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
}
