//! What is collected of a sweep, and what is printed.

use super::failure::sweep_failure;
use super::figures;
use super::points::{PointRuns, VERSION};
use crate::options::format::TableFormat;
use crate::options::selection::unknown;
use crate::options::sweep::ResultOptions;
use crate::output;
use crate::output::table;
use balar_actors::catalogue::UnitDefinition;
use balar_record::json::to_text;
use balar_record::metrics::{Choice, RollUpKind, find, is_like};
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use balar_record::system::terminal;
use balar_sweeps::SweepError;
use balar_sweeps::collect::{
    Cell, Collecting, HAS_PARQUET, PLOTTED, RollUp, RunFigures, Table, WantedColumn, collect, results_of,
};
use balar_sweeps::folder::SweepFolder;
use balar_sweeps::worker::Runs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Rows of a table on stdout; files have all.
const SHOWN_ROWS: usize = 60;

/// What is to be collected.
///
/// # Errors
///
/// A name that no counter or metric has; Parquet files, where this build cannot write them.
pub fn collecting(options: &ResultOptions, kinds: &[&'static UnitDefinition]) -> Result<Collecting, Failure> {
    if options.parquet && !HAS_PARQUET {
        let help =
            "`cargo build --release --features parquet` makes one that does; results.csv and sweep.db have the same";
        return Err(Failure::mistake("--parquet: this build of balar-actors writes no Parquet files", help));
    }
    let mut columns: Vec<WantedColumn> = Vec::new();
    for wanted in options.metrics.iter().flat_map(|list| &list.0) {
        add(&mut columns, &wanted.name, &wanted.place, kinds)?;
    }
    if let Some(name) = options.plot.as_deref().filter(|name| !PLOTTED.contains(name)) {
        add(&mut columns, name, "--plot", kinds)?;
    }
    Ok(Collecting { columns, plot: options.plot.clone(), parquet: options.parquet })
}

fn add(
    columns: &mut Vec<WantedColumn>,
    name: &str,
    place: &str,
    kinds: &[&'static UnitDefinition],
) -> Result<(), Failure> {
    let counters = || kinds.iter().flat_map(|kind| kind.counters).map(|counter| counter.name);
    let mut found: Vec<WantedColumn> = Vec::new();
    for counter in counters().filter(|counter| is_like(name, counter)) {
        let (column, name) = (counter.to_owned(), counter.to_owned());
        found.push(WantedColumn { column, name, is_metric: false, roll_up: RollUp::Usual });
    }
    if found.is_empty() {
        found.extend(find(name).into_iter().map(|choice| {
            let Choice { metric, name, roll_up, .. } = choice;
            let roll_up = match roll_up {
                None => RollUp::Usual,
                Some(RollUpKind::Sum) => RollUp::Sum,
                Some(RollUpKind::Avg) => RollUp::Avg,
                Some(RollUpKind::Min) => RollUp::Min,
                Some(RollUpKind::Max) => RollUp::Max,
            };
            WantedColumn { column: name, name: metric.name.to_owned(), is_metric: true, roll_up }
        }));
    }
    if found.is_empty() {
        let message = format_args!("{place} {name}: no unit counts that, and no metric has that name");
        return Err(unknown(message, name, counters().chain(PLOTTED)));
    }
    for column in found {
        if !columns.iter().any(|known| known.column == column.column) {
            columns.push(column);
        }
    }
    Ok(())
}

/// Runs that are over: their figures can be read, and nothing else.
struct PastRuns;

impl Runs for PastRuns {
    fn command(&self, _: usize, _: &Path) -> Result<Command, SweepError> {
        Err(SweepError::Unsuitable("no point is run where results are collected".to_owned()))
    }

    fn input_hash(&self, _: usize) -> Option<String> {
        None
    }

    fn figures(&self, folder: &Path) -> Result<Option<RunFigures>, String> {
        figures::of_folder(folder)
    }

    fn is_program(&self) -> bool {
        false
    }
}

/// `sweep collect`: collects what the points of a folder have found, and prints it.
///
/// # Errors
///
/// The folder has no sweep, or cannot be read or written.
pub fn collect_folder(
    path: &Path,
    options: &ResultOptions,
    kinds: &[&'static UnitDefinition],
) -> Result<ExitStatus, Failure> {
    let collecting = collecting(options, kinds)?;
    let folder = SweepFolder::read(path, VERSION).map_err(sweep_failure)?;
    let collected = collect(&folder, &PastRuns, &collecting).map_err(sweep_failure)?;
    print(&collected.results, &folder, options.format)?;
    tell(&folder, &collected, options);
    Ok(ExitStatus::Done)
}

/// After points have been run: collects and prints all of them, or prints some.
///
/// # Errors
///
/// The folder cannot be read or written.
pub fn conclude(
    folder: &SweepFolder,
    runs: &PointRuns<'_>,
    range: Range<usize>,
    is_part: bool,
    options: &ResultOptions,
    collecting: &Collecting,
) -> Result<(), Failure> {
    if is_part || !folder.is_complete().map_err(sweep_failure)? {
        return print(
            &results_of(folder, runs, range, &collecting.columns).map_err(sweep_failure)?,
            folder,
            options.format,
        );
    }
    let collected = collect(folder, runs, collecting).map_err(sweep_failure)?;
    print(&collected.results, folder, options.format)?;
    tell(folder, &collected, options);
    Ok(())
}

fn tell(folder: &SweepFolder, collected: &balar_sweeps::collect::Collected, options: &ResultOptions) {
    let missing = folder.len() - collected.finished;
    if missing > 0 {
        say(format_args!("{missing} of {} points are not finished", folder.len()));
    }
    if let Some(why) = collected.no_plot.as_ref().filter(|_| options.plot.is_some()) {
        say(format_args!("no plot.svg is written: {why}"));
    }
}

fn print(results: &Table, folder: &SweepFolder, format: TableFormat) -> Result<(), Failure> {
    let text = match format {
        TableFormat::Table => shown(results, folder, terminal::width(&io::stdout())),
        TableFormat::Csv => {
            let mut bytes = Vec::new();
            results.csv(&mut bytes).map_err(Failure::bug)?;
            String::from_utf8(bytes).map_err(Failure::bug)?
        }
        TableFormat::Json => json(results),
    };
    output::print(&text).map_err(|error| Failure::input(format_args!("cannot write the result: {error}")))
}

fn json(results: &Table) -> String {
    let rows = results.rows.iter().map(|row| {
        let cells = results.header.iter().zip(row).map(|(name, cell)| {
            let value = match cell {
                Cell::Empty => serde_json::Value::Null,
                Cell::Text(text) => text.as_str().into(),
                Cell::Count(count) => (*count).into(),
                Cell::Real(real) => (*real).into(),
            };
            (name.clone(), value)
        });
        serde_json::Value::Object(cells.collect())
    });
    to_text(&serde_json::json!({ "points": rows.collect::<Vec<_>>() }))
}

/// The table that people read: times in a unit that suits them, and no columns that say the same of all points.
fn shown(results: &Table, folder: &SweepFolder, width: Option<u16>) -> String {
    let keys = &folder.definition.keys;
    let usual = ["status", "sim_time_ps", "kernel_time_ps", "kernel_cycles", "launches", "warp_instructions"];
    let last_usual = results.column("warp_instructions").unwrap_or_default();
    let is_shown = |at: usize, name: &str| at <= keys.len() || at > last_usual || usual.contains(&name);
    let columns: Vec<usize> = (0..results.header.len()).filter(|at| is_shown(*at, &results.header[*at])).collect();
    let header: Vec<String> = columns
        .iter()
        .map(|at| match results.header[*at].as_str() {
            "sim_time_ps" => "time us".to_owned(),
            "kernel_time_ps" => "kernels us".to_owned(),
            "kernel_cycles" => "SM cycles".to_owned(),
            "warp_instructions" => "warp inst".to_owned(),
            name => name.to_owned(),
        })
        .collect();
    let cell = |at: usize, cell: &Cell| match cell.number() {
        Some(picoseconds) if results.header[at].ends_with("_ps") => format!("{:.3}", picoseconds * 1e-6),
        _ => match cell {
            Cell::Real(real) => format!("{real:.4}"),
            cell => cell.text(),
        },
    };
    let names: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut lines = table::table(&names, width);
    for row in results.rows.iter().take(SHOWN_ROWS) {
        let is_text = |at: &usize| (1..=keys.len()).contains(at) || results.header[*at] == "status";
        let left: Vec<usize> = (0..columns.len()).filter(|place| is_text(&columns[*place])).collect();
        table::add(&mut lines, columns.iter().map(|at| cell(*at, &row[*at])), &left);
    }
    let mut text = table::lines(lines);
    if let Some(more) = results.rows.len().checked_sub(SHOWN_ROWS).filter(|more| *more > 0) {
        text += &format!(" {more} more points are in {}\n", folder.path.join("results.csv").display());
    }
    text
}
