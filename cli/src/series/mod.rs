//! Time series: what the units of a node have counted, at times of simulated time, into files of several kinds.
//!
//! ```text
//!   engine ──► Sample ──► Tables (rows for the node, each GPU, each launch) ──► writers: JSON lines, CSV, SQLite, LDMS
//! ```
//!
//! **Invariant:** counts of a row are those since the run began, and the last row has the totals; quotients and rates are those of the
//! time since the row before.

mod comma_separated;
mod counters;
mod json_lines;
mod ldms;
pub mod sample_keeper;
mod sqlite;
mod writer;

use crate::options::selection::Selection;
use crate::options::series::{SampleForm, SeriesOptions};
use crate::options::simulation::SimulationOptions;
use crate::output::folder;
use balar_actors::engine::{Observer, Sample, SampleKind, SampleLayout};
use balar_actors::topology::Topology;
use balar_record::metrics::node_facts::NodeFacts;
use balar_record::result::RunRecord;
use balar_record::sampled::SampledCounter;
use balar_record::series::Tables;
use balar_record::system::failure::Failure;
use balar_record::system::files::WriteError;
use comma_separated::CommaSeparated;
use counters::TimelineCounters;
use json_lines::JsonLines;
use ldms::LdmsCsv;
use sqlite::Database;
use std::io;
use std::path::Path;
use writer::SeriesWriter;

/// Files of series that a run may leave in its folder.
const FILES: [&str; 5] = ["samples.jsonl", "node_samples.csv", "gpu_samples.csv", "launch_samples.csv", "run.db"];

/// Removes what an earlier run has left of its series in a folder: it is of another run. Returns the names of what is gone.
///
/// # Errors
///
/// What could not be removed.
pub fn clear(folder: &Path) -> Result<Vec<String>, WriteError> {
    let mut gone = Vec::new();
    for name in FILES {
        if folder::remove(&folder.join(name))? {
            gone.push(name.to_owned());
        }
    }
    let of_ldms = LdmsCsv::folder(folder);
    match std::fs::remove_dir_all(&of_ldms) {
        Ok(()) => gone.extend(of_ldms.file_name().map(|name| name.to_string_lossy().into_owned())),
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(WriteError { path: of_ldms, cause }),
        Err(_) => {}
    }
    Ok(gone)
}

/// Takes the samples of a run and writes them.
pub struct SeriesRecorder {
    node: NodeFacts,
    selection: Selection,
    tables: Option<Tables>,
    writers: Vec<Box<dyn SeriesWriter>>,
    counters: Option<TimelineCounters>,
    /// What went wrong first. Nothing is written from then on.
    failure: Option<WriteError>,
}

impl SeriesRecorder {
    /// The series that the options ask for, into a folder that exists, and for a timeline; `None` where they ask for none.
    ///
    /// # Errors
    ///
    /// If something in the folder cannot be replaced, or if there is neither a folder nor a timeline.
    pub fn new(options: &SimulationOptions, topology: &Topology) -> Result<Option<SeriesRecorder>, Failure> {
        let (series, folder) = (&options.series, options.output.as_deref());
        if let Some(folder) = folder {
            let gone = clear(folder).map_err(Failure::input)?;
            // A run that samples replaces what was sampled.
            if series.sample_interval.is_none() && !options.quiet {
                folder::tell_removed(folder, &gone);
            }
        }
        if series.sample_interval.is_none() {
            return Ok(None);
        }
        if folder.is_none() && options.timeline.is_none() {
            if options.report.is_some() {
                return Ok(None);
            }
            let help = "--output names a folder for its files, --timeline a file with its quotients, --report a page";
            return Err(Failure::mistake("--sample-interval: there is no place for what is sampled", help));
        }
        let node = NodeFacts::of(topology);
        let gpus = || node.gpus().iter().map(|gpu| gpu.part.clone()).collect();
        let counters = options.timeline.is_some().then(|| TimelineCounters::new(gpus()));
        let writers = folder.map(|folder| SeriesRecorder::writers(series, topology, folder)).unwrap_or_default();
        let selection = options.selection.clone();
        Ok(Some(SeriesRecorder { node, selection, tables: None, writers, counters, failure: None }))
    }

    fn writers(options: &SeriesOptions, topology: &Topology, folder: &Path) -> Vec<Box<dyn SeriesWriter>> {
        let mut writers: Vec<Box<dyn SeriesWriter>> = Vec::new();
        for (at, form) in options.samples.iter().enumerate() {
            if options.samples[..at].contains(form) {
                continue;
            }
            writers.push(match form {
                SampleForm::Jsonl => Box::new(JsonLines::new(folder.join(FILES[0]), &topology.name)),
                SampleForm::Csv => Box::new(CommaSeparated::new(folder)),
                SampleForm::Sqlite => Box::new(Database::new(folder.join(FILES[4]))),
                SampleForm::LdmsJsonl => {
                    Box::new(JsonLines::for_ldms(LdmsCsv::folder(folder).join("stream.jsonl"), &topology.name))
                }
                SampleForm::LdmsCsv => Box::new(LdmsCsv::new(folder, &topology.name, options.sample_epoch.into())),
            });
        }
        writers
    }

    /// What goes into the timeline; the run is over.
    pub fn take_counters(&mut self) -> Vec<SampledCounter> {
        self.counters.as_mut().map(TimelineCounters::take).unwrap_or_default()
    }

    /// Writes what is left. The run is over.
    ///
    /// # Errors
    ///
    /// The first thing that could not be written, at any time.
    pub fn finish(&mut self, record: &RunRecord, expanded_topology: &str) -> Result<(), WriteError> {
        self.each(|writer, _| writer.finish(record, expanded_topology));
        self.failure.take().map_or(Ok(()), Err)
    }

    fn each(&mut self, mut act: impl FnMut(&mut dyn SeriesWriter, &mut Tables) -> Result<(), WriteError>) {
        let Some(tables) = &mut self.tables else { return };
        for writer in &mut self.writers {
            if self.failure.is_none() {
                self.failure = act(writer.as_mut(), tables).err();
            }
        }
    }
}

impl Observer for SeriesRecorder {
    fn begin(&mut self, layout: &SampleLayout) {
        self.tables = Some(Tables::new(&self.node, &self.selection.wanted_names().collect::<Vec<_>>(), layout));
        self.each(|writer, tables| writer.begin(tables));
        if let (Some(counters), Some(tables)) = (&mut self.counters, &self.tables) {
            counters.begin(tables);
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let Some(tables) = &mut self.tables else { return };
        tables.note(sample);
        if sample.kind == SampleKind::Asked {
            return;
        }
        let (writers, counters, failure) = (&mut self.writers, &mut self.counters, &mut self.failure);
        tables.rows(sample, |row| {
            if let Some(counters) = counters {
                counters.row(row);
            }
            for writer in writers.iter_mut() {
                if failure.is_none() {
                    *failure = writer.row(row).err();
                }
            }
        });
        self.each(|writer, _| writer.end_of_sample());
    }
}
