//! What the runs of points have found, which of it is asked for, and the files that it is written to.

use crate::summary::PointSummary;

/// What is written.
pub const FILES: [&str; 6] =
    ["results.csv", "kernels.csv", "sweep.db", "plot.svg", "results.parquet", "kernels.parquet"];

/// What the run of a point found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFigures {
    /// The code that ran.
    pub isa: String,
    /// Why it ended.
    pub ended_by: String,
    /// Is its result right? `None` where it was not checked.
    pub verified: Option<bool>,
    /// Simulated time at the end, ps; `None` where nothing was timed.
    pub sim_time_ps: Option<u64>,
    /// Its kernels by name, in the order of their first launches.
    pub kernels: Vec<KernelFigures>,
    /// What its units counted, by row of units.
    pub statistics: Vec<Reading>,
    /// Its metrics, by row of units.
    pub metrics: Vec<Reading>,
}

/// All launches of a kernel in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelFigures {
    /// The kernel's name, as the code has it.
    pub name: String,
    /// Launches.
    pub calls: u64,
    /// Time of them all, ps; `None` where that of one was not simulated.
    pub time_ps: Option<u64>,
    /// SM-clock cycles of them all, likewise.
    pub cycles: Option<u64>,
    /// Their counters, each with its name, summed; `None` where that of one is not known.
    pub counters: Vec<(&'static str, Option<u64>)>,
}

impl KernelFigures {
    pub(super) fn counter(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|(own, _)| *own == name).and_then(|(_, value)| *value)
    }
}

/// A counter or a metric over a row of units.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Its name.
    pub name: String,
    /// The units: "gpu.sm\[*\]".
    pub location: String,
    /// Units, or launches.
    pub instances: u64,
    /// Its sum; `None` of a quotient.
    pub sum: Option<f64>,
    /// The mean; of quotients, the quotient of the sums.
    pub avg: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    /// The unit of measure.
    pub unit: String,
}

/// A column that is asked for: a counter or a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedColumn {
    /// How the column is called.
    pub column: String,
    /// The name of the metric or counter.
    pub name: String,
    /// Is it one of the metrics, not of the counters?
    pub is_metric: bool,
    /// Which of its values.
    pub roll_up: RollUp,
}

/// Which value of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollUp {
    /// The sum; of quotients, the mean.
    Usual,
    /// The sum.
    Sum,
    /// The mean.
    Avg,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl Reading {
    pub(super) fn value(&self, roll_up: RollUp) -> Option<f64> {
        match roll_up {
            RollUp::Usual => self.sum.or(self.avg),
            RollUp::Sum => self.sum,
            RollUp::Avg => self.avg,
            RollUp::Min => self.min,
            RollUp::Max => self.max,
        }
    }
}

/// A point with what is known of it.
pub(super) struct PointResult {
    pub(super) summary: Option<PointSummary>,
    pub(super) figures: Option<RunFigures>,
}
