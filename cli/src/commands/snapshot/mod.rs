//! `snapshot`: a run compared with a pinned one, or pinned.

pub mod pinned;

use crate::commands::printing::{print, width};
use crate::commands::workload::{prepare, tell};
use crate::options::snapshot::{SnapshotCommand, SnapshotOptions};
use crate::options::workload::RunOptions;
use crate::output::table::Lines;
use crate::simulation::simulate;
use balar_actors::catalogue::UnitDefinition;
use balar_record::ending::Ending;
use balar_record::result::RunRecord;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use balar_record::system::files;
use pinned::{Difference, Snapshot};
use std::path::Path;

/// Compares a run with a snapshot, or writes one.
///
/// # Errors
///
/// Where the run cannot begin, or the snapshot cannot be read or written.
pub fn run(command: &SnapshotCommand, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    match command {
        SnapshotCommand::Check { options, tolerance } => check(options, *tolerance, kinds),
        SnapshotCommand::Accept(options) => accept(&options.run, kinds, &options.file),
    }
}

/// A run that can be compared with a snapshot: one that ended by itself, or at a simulated time.
fn comparable(
    options: &RunOptions,
    kinds: &[&'static UnitDefinition],
) -> Result<Result<RunRecord, ExitStatus>, Failure> {
    prepare(&options.simulation)?;
    let simulated = simulate::run(options, kinds)?;
    tell(&simulated, &options.simulation, kinds)?;
    let record = simulated.record;
    match record.status() {
        ExitStatus::Bug | ExitStatus::UnitBroken | ExitStatus::Interrupted | ExitStatus::Terminated => {
            Ok(Err(record.status()))
        }
        _ if record.ending == Ending::WallLimit => Ok(Err(record.status())),
        _ => Ok(Ok(record)),
    }
}

fn check(options: &SnapshotOptions, tolerance: f64, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    let SnapshotOptions { run: options, file } = options;
    let text = files::read(file).map_err(|error| {
        let help = "`balar-actors snapshot accept` with the same options writes it".to_owned();
        Failure::sentence(ExitStatus::BadInput, format_args!("cannot read {}: {error}", file.display()), Some(help))
    })?;
    let pinned = Snapshot::parse(&text)
        .map_err(|error| Failure::input(format_args!("{} is not a snapshot: {error}", file.display())))?;
    let record = match comparable(options, kinds)? {
        Ok(record) => record,
        Err(status) => return Ok(status),
    };
    let mut differences = pinned.differences(&Snapshot::of(&record));
    let all = differences.len();
    differences.retain(|difference| !difference.is_within(tolerance));
    let within = match all - differences.len() {
        0 => String::new(),
        few => format!(", {few} within {tolerance} %"),
    };
    let text = if differences.is_empty() {
        let nothing = if within.is_empty() { "nothing moved" } else { "nothing moved farther" };
        format!("{}: {nothing}{within}\n", file.display())
    } else {
        let moved = if options.simulation.selection.details { each(&differences) } else { by_row(&differences) };
        format!("{}: {} moved{within}\n{moved}", file.display(), differences.len())
    };
    print(&text)?;
    Ok(if differences.is_empty() { ExitStatus::Done } else { ExitStatus::Wrong })
}

fn percentage(percent: Option<f64>) -> String {
    percent.map(|percent| format!("{percent:+.2}")).unwrap_or_default()
}

/// The differences by row of units.
fn by_row(differences: &[Difference]) -> String {
    let rows = pinned::roll_up(differences).into_iter().map(|moved| {
        let percent = percentage(moved.percent);
        vec![moved.location, moved.what, moved.units.to_string(), moved.old, moved.new, percent]
    });
    let header = vec!["location", "what", "units", "pinned", "now", "most %"];
    Lines { header, left: vec![0, 1], droppable: vec![2], elastic: Some(0), rows: rows.collect() }.text(width())
}

/// The differences one by one.
fn each(differences: &[Difference]) -> String {
    let rows = differences.iter().map(|difference| {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        vec![
            difference.location.clone(),
            difference.what.clone(),
            shown(&difference.old),
            shown(&difference.new),
            percentage(difference.percent()),
        ]
    });
    let header = vec!["location", "what", "pinned", "now", "%"];
    Lines { header, left: vec![0, 1], elastic: Some(0), rows: rows.collect(), ..Lines::default() }.text(width())
}

fn accept(options: &RunOptions, kinds: &[&'static UnitDefinition], file: &Path) -> Result<ExitStatus, Failure> {
    let record = match comparable(options, kinds)? {
        Ok(record) => record,
        Err(status) => return Ok(status),
    };
    if record.status() == ExitStatus::Wrong {
        say("the result is wrong: the snapshot is not written");
        return Ok(ExitStatus::Wrong);
    }
    files::write(file, &Snapshot::of(&record).text()).map_err(Failure::input)?;
    print(&format!("{}: written\n", file.display()))
}
