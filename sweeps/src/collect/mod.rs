//! The results of all points of a sweep in one place. `figures` has what runs have found, and what is asked for; the others write it.
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
pub(crate) mod figures;
mod plot;
mod table;

pub use figures::{FILES, KernelFigures, Reading, RollUp, RunFigures, WantedColumn};
pub use plot::{PLOTTED, TIME_METRIC};
pub use table::{Cell, Table};

use crate::SweepError;
use crate::folder::SweepFolder;
use crate::worker::Runs;
use figures::PointResult;

/// Can this build write Parquet files?
pub const HAS_PARQUET: bool = cfg!(feature = "parquet");

/// What is to be collected.
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

/// Collects what the points of a folder have found, and writes it into the folder. Points that are not finished have a row without values.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::tests::definition;
    use crate::summary::{PointStatus, PointSummary};
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
