//! The results of all points of a sweep in one place.
//!
//! | room | what it writes |
//! |---|---|
//! | `table` | results.csv: a row for each point; kernels.csv: a row for each kernel of each point |
//! | `database` | sweep.db: all of it, with counters and metrics, as an SQLite database |
//! | `columnar` | results.parquet, kernels.parquet, in builds with the feature `parquet` |
//! | `plot` | plot.svg, where one or two parameters are swept |

#[cfg(feature = "parquet")]
mod columnar;
mod database;
mod plot;
mod table;

pub use plot::{PLOTTED, TIME_METRIC};
pub use table::{Cell, Table};

use crate::SweepError;
use crate::folder::SweepFolder;
use crate::summary::PointSummary;
use crate::worker::Runs;
use serde::Serialize;

/// The files that are written.
pub const FILES: [&str; 6] =
    ["results.csv", "kernels.csv", "sweep.db", "plot.svg", "results.parquet", "kernels.parquet"];

/// Can this build write Parquet files?
pub const HAS_PARQUET: bool = cfg!(feature = "parquet");

/// The results of a point's run.
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
    /// The counts of its units, by row of units.
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
    /// Time of them all, ps; `None` where the time of one was not simulated.
    pub time_ps: Option<u64>,
    /// SM-clock cycles of them all, likewise.
    pub cycles: Option<u64>,
    /// Their counters, each with its name, summed; `None` where a count of one is not known.
    pub counters: Vec<(&'static str, Option<u64>)>,
}

impl KernelFigures {
    fn counter(&self, name: &str) -> Option<u64> {
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
    /// The mean; for quotients, the quotient of the sums.
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
    /// The sum; for quotients, the mean.
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
    fn value(&self, roll_up: RollUp) -> Option<f64> {
        match roll_up {
            RollUp::Usual => self.sum.or(self.avg),
            RollUp::Sum => self.sum,
            RollUp::Avg => self.avg,
            RollUp::Min => self.min,
            RollUp::Max => self.max,
        }
    }
}

/// The results to collect.
#[derive(Clone, Debug, Default)]
pub struct Collecting {
    /// Columns of results.csv beside the usual ones.
    pub columns: Vec<WantedColumn>,
    /// The value in the chart: one of [`PLOTTED`], or the name of a column.
    pub plot: Option<String>,
    /// Parquet files, too?
    pub parquet: bool,
}

/// The collected results.
#[derive(Clone, Debug)]
pub struct Collected {
    /// A row for each point.
    pub results: Table,
    /// Points that are finished.
    pub finished: usize,
    /// Why there is no chart, where there is none.
    pub no_plot: Option<String>,
}

/// A point with its results.
struct PointResult {
    summary: Option<PointSummary>,
    figures: Option<RunFigures>,
}

/// Collects the results of a folder's points, and writes them into the folder. Points that are not finished have a row without values.
///
/// # Errors
///
/// A point cannot be read, or a file not be written.
pub fn collect(folder: &SweepFolder, runs: &dyn Runs, wanted: &Collecting) -> Result<Collected, SweepError> {
    let database = database::Database::begin(folder)?;
    let mut rows = Vec::with_capacity(folder.len());
    let mut kernels = table::kernels();
    let mut finished = 0;
    for index in 0..folder.len() {
        let result = read(folder, runs, index)?;
        finished += usize::from(result.summary.is_some());
        database.add(folder, index, &result)?;
        table::add_kernels(&mut kernels, index, &result);
        rows.push(table::PointRow::of(folder, index, &result, &wanted.columns));
    }
    let results = table::results(folder, &rows, &wanted.columns);
    results.write_csv(&folder.path.join(FILES[0]))?;
    kernels.write_csv(&folder.path.join(FILES[1]))?;
    database.end()?;
    #[cfg(feature = "parquet")]
    if wanted.parquet {
        columnar::write(&results, &folder.path.join(FILES[4]))?;
        columnar::write(&kernels, &folder.path.join(FILES[5]))?;
    }
    let no_plot = plot::write(folder, &results, wanted.plot.as_deref())?.err();
    Ok(Collected { results, finished, no_plot })
}

/// The results of some points, without writing them.
///
/// # Errors
///
/// A point cannot be read.
pub fn results_of(
    folder: &SweepFolder,
    runs: &dyn Runs,
    points: std::ops::Range<usize>,
    columns: &[WantedColumn],
) -> Result<Table, SweepError> {
    let mut rows = Vec::with_capacity(points.len());
    for index in points {
        rows.push(table::PointRow::of(folder, index, &read(folder, runs, index)?, columns));
    }
    Ok(table::results(folder, &rows, columns))
}

fn read(folder: &SweepFolder, runs: &dyn Runs, index: usize) -> Result<PointResult, SweepError> {
    let summary = folder.summary(index)?;
    let place = folder.point(index);
    let figures = match &summary {
        Some(_) => runs.figures(&place).map_err(|problem| SweepError::NotWritten { index, problem })?,
        None => None,
    };
    Ok(PointResult { summary, figures })
}

/// A value of text keys and numbers as a line of JSON.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("text keys and numbers always serialise into memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::tests::definition;
    use crate::summary::PointStatus;
    use std::path::Path;
    use std::process::Command;

    /// Runs that found the same everywhere.
    struct Alike;

    pub(super) fn reading(name: &str, location: &str, sum: Option<f64>) -> Reading {
        Reading {
            name: name.to_owned(),
            location: location.to_owned(),
            instances: 2,
            sum,
            avg: Some(0.25),
            min: Some(0.1),
            max: Some(0.5),
            unit: "byte".to_owned(),
        }
    }

    impl Runs for Alike {
        fn command(&self, _: usize, _: &Path) -> Result<Command, SweepError> {
            Ok(Command::new("true"))
        }

        fn input_hash(&self, _: usize) -> Option<String> {
            None
        }

        fn figures(&self, _: &Path) -> Result<Option<RunFigures>, String> {
            let kernel = |name: &str, calls, time, cycles, instructions| KernelFigures {
                name: name.to_owned(),
                calls,
                time_ps: Some(time),
                cycles: Some(cycles),
                counters: vec![("inst_executed", Some(instructions))],
            };
            Ok(Some(RunFigures {
                isa: "ptx".to_owned(),
                ended_by: "completed".to_owned(),
                verified: Some(true),
                sim_time_ps: Some(1000),
                kernels: vec![kernel("one", 2, 400, 50, 40), kernel("two", 1, 200, 20, 2)],
                statistics: Vec::new(),
                metrics: vec![
                    reading("ipc", "gpu.sm[*]", None),
                    reading("bytes", "gpu.hbm[*]", Some(32.0)),
                    reading("bytes", "gpu.l2[*]", Some(64.0)),
                ],
            }))
        }

        fn is_program(&self) -> bool {
            false
        }
    }

    /// A sweep of `a`, in which all points but the second are finished.
    pub(super) fn collected(values: &[&str], columns: &[WantedColumn]) -> (tempfile::TempDir, Table) {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = SweepFolder::open(parent.path(), definition(values), false).expect("opened");
        for index in (0..values.len()).filter(|index| *index != 1) {
            let claim = folder.claim(index).expect("a lock").expect("free");
            let summary = PointSummary {
                index,
                settings: folder.settings(index),
                configuration_hash: folder.definition.configuration_hash(index),
                input_hash: None,
                version: "1.0".to_owned(),
                status: PointStatus::Done,
                exit_code: Some(0),
                signal: None,
                problem: None,
                wall_seconds: 0.5 + index as f64,
            };
            claim.finish(claim.begin().expect("a folder"), &summary).expect("finished");
        }
        let wanted = Collecting { columns: columns.to_vec(), ..Collecting::default() };
        let collected = collect(&folder, &Alike, &wanted).expect("collected");
        assert_eq!(collected.finished, values.len() - usize::from(values.len() > 1));
        (parent, collected.results)
    }
}
