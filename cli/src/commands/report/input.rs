//! What the report of a run is made of, whether the run has just ended or lies in a folder: the same documents, read in the same way.

use super::over_time::{self, SeriesOverTime};
use crate::output::comma_separated;
use crate::series::sample_keeper::Samples;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::topology::Topology;
use balar_record::json;
use balar_record::metrics::node_facts::NodeFacts;
use balar_record::metrics::{Place, covered, is_in};
use balar_record::result::RunRecord;
use balar_record::run_folder;
use balar_record::run_folder::document::RunDocument;
use balar_record::run_folder::{RunFolder, TOPOLOGY, topology};
use balar_record::system::failure::Failure;
use balar_record::system::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Tables that units record and that the report shows.
const TABLES: [&str; 1] = ["unified_memory_pages"];

/// A run.
pub struct RunInput {
    /// What it is called where there are two: "A" or "B"; else empty.
    pub label: &'static str,
    /// Its document, and where that is.
    pub folder: RunFolder,
    /// Its topology, or why there is none.
    pub topology: Result<Topology, String>,
    /// What its topology tells of the units.
    pub node: NodeFacts,
    /// Paths of its GPUs.
    pub gpus: Vec<String>,
    /// What its units counted.
    pub units: Vec<UnitCounts>,
    /// Numbers over time.
    pub series: Option<SeriesOverTime>,
    /// The same by unit, of a run that has just ended.
    pub samples: Option<Samples>,
    /// By name: tables that units have recorded, with their headers.
    pub tables: BTreeMap<String, Vec<Vec<String>>>,
}

/// What a unit, or a part of one, counted.
pub struct UnitCounts {
    /// Its path.
    pub location: String,
    /// What it counts as.
    pub place: Option<Place>,
    /// The number of its GPU.
    pub gpu: Option<usize>,
    /// By counter.
    pub counts: BTreeMap<String, u64>,
}

impl UnitCounts {
    /// A counter; 0 where it has none of that name.
    pub fn get(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }
}

impl RunInput {
    /// Reads what `--output` has written, or a document of `--format json` alone.
    ///
    /// # Errors
    ///
    /// It is no run, or something in its folder is not as it should be. That something is missing is none.
    pub fn of_folder(path: &Path, kinds: &[&'static UnitDefinition]) -> Result<RunInput, Failure> {
        let folder = RunFolder::read(path)?;
        let file = path.join(TOPOLOGY);
        let topology = if file.is_file() {
            let text = files::read(&file).map_err(|error| format!("cannot read {}: {error}", file.display()));
            text.and_then(|text| topology::read(&file.display().to_string(), &text, kinds))
        } else {
            Err(format!("there is no {TOPOLOGY}: a folder of --output has it"))
        };
        let mut tables = BTreeMap::new();
        for name in TABLES {
            let file = path.join(format!("{name}.csv"));
            if file.is_file() {
                let text = files::read_long(&file)
                    .map_err(|error| Failure::input(format_args!("cannot read {}: {error}", file.display())))?;
                tables.insert(name.to_owned(), rows(&text));
            }
        }
        let is_folder = path.is_dir();
        let series = if is_folder { over_time::read(path)? } else { None };
        Ok(RunInput { series, tables, ..RunInput::new(folder, topology) })
    }

    /// A run that has just ended, with what was sampled meanwhile.
    ///
    /// # Errors
    ///
    /// What it says of itself cannot be read: that would be a bug.
    pub fn of_record(
        record: &RunRecord,
        expanded: &str,
        samples: Samples,
        kinds: &[&'static UnitDefinition],
    ) -> Result<RunInput, Failure> {
        let document = RunDocument::parse(&json::to_text(&record.document()));
        let document = document.map_err(|error| Failure::bug(format_args!("--report: {}", error.problem)))?;
        let folder = RunFolder { path: PathBuf::new(), document };
        let topology = topology::read(TOPOLOGY, expanded, kinds);
        let mut tables = BTreeMap::new();
        for table in record.statistics.tables.iter().filter(|table| TABLES.contains(&&*table.name)) {
            let mut text = Vec::new();
            comma_separated::table(table, &mut text).map_err(Failure::bug)?;
            tables.insert(table.name.clone(), rows(&String::from_utf8_lossy(&text)));
        }
        let run = RunInput { tables, ..RunInput::new(folder, topology) };
        let series = over_time::of_samples(&samples, &run.node);
        Ok(RunInput { series: Some(series).filter(|series| !series.is_empty()), samples: Some(samples), ..run })
    }

    fn new(folder: RunFolder, topology: Result<Topology, String>) -> RunInput {
        let node = topology.as_ref().map(NodeFacts::of).unwrap_or_default();
        let document = &folder.document;
        let mut gpus: Vec<String> = node.gpus().iter().map(|gpu| gpu.part.clone()).collect();
        if gpus.is_empty() {
            let of_kernels: BTreeSet<&str> = document.kernels.iter().map(|launch| &*launch.gpu).collect();
            gpus = of_kernels.into_iter().map(str::to_owned).collect();
        }
        let paths: Vec<&str> = gpus.iter().map(String::as_str).collect();
        let units = document.statistics.chunk_by(|row, next| row.location == next.location).map(|rows| {
            let location = rows[0].location.clone();
            let counts: BTreeMap<String, u64> = rows.iter().map(|row| (row.what.clone(), row.value)).collect();
            let has = |counter: &str| counts.contains_key(counter);
            let place = Place::ALL.into_iter().find(|place| place.holds(&location, has, &paths));
            let gpu = paths.iter().position(|gpu| is_in(&location, gpu));
            UnitCounts { location, place, gpu, counts }
        });
        let units = units.collect();
        RunInput {
            label: "",
            folder,
            topology,
            node,
            gpus,
            units,
            series: None,
            samples: None,
            tables: BTreeMap::new(),
        }
    }

    /// Its document.
    pub fn document(&self) -> &run_folder::document::RunDocument {
        &self.folder.document
    }

    /// The units that count as of a place.
    pub fn of_place(&self, place: Place) -> impl Iterator<Item = &UnitCounts> {
        self.units.iter().filter(move |unit| unit.place == Some(place))
    }

    /// A counter summed over the units of a place; `None` where there is no such unit.
    pub fn sum(&self, place: Place, what: &str) -> Option<f64> {
        let values = self.of_place(place).map(|unit| unit.get(what));
        values.reduce(u64::saturating_add).map(|sum| sum as f64)
    }

    /// A quotient of such sums; `None` where that means nothing.
    pub fn quotient(&self, place: Place, part: &str, whole: &str) -> Option<f64> {
        let (part, whole) = (self.sum(place, part)?, self.sum(place, whole)?);
        (whole > 0.0).then(|| part / whole)
    }

    /// The time of the whole run, ps.
    pub fn time(&self) -> u64 {
        self.document().sim_time_ps.unwrap_or(0)
    }

    /// The time in which at least one kernel ran on any GPU, or on one of them, ps.
    pub fn kernel_time(&self, gpu: Option<usize>) -> u64 {
        let wanted = gpu.map(|gpu| self.gpus[gpu].as_str());
        let launches = self.document().kernels.iter().filter(|launch| launch.is_timed());
        let on_it = launches.filter(|launch| wanted.is_none_or(|gpu| launch.gpu == gpu));
        covered(on_it.filter_map(|launch| launch.span_ps).collect())
    }

    /// The time that charts show, ps: that of the run, or, where kernels ran in less than half of it, what is from the first to the last.
    pub fn shown(&self) -> (u64, u64) {
        let spans =
            || self.document().kernels.iter().filter(|launch| launch.is_timed()).filter_map(|launch| launch.span_ps);
        let (first, last) = (spans().map(|span| span.0).min(), spans().map(|span| span.1).max());
        match first.zip(last) {
            Some((first, last)) if last > first && (last - first) < self.time() / 2 => {
                let margin = (last - first) / 20;
                (first.saturating_sub(margin), (last + margin).min(self.time()))
            }
            _ => (0, self.time()),
        }
    }

    /// What ran on what: "lud on v100_node".
    pub fn name(&self) -> String {
        let document = self.document();
        match document.workload.name.as_str() {
            "" => document.topology.clone(),
            workload => format!("{workload} on {}", document.topology),
        }
    }

    /// A GPU as it is called where there are several.
    pub fn gpu_name(&self, gpu: usize) -> &str {
        &self.gpus[gpu]
    }
}

/// The rows of a table as CSV, its header first. What is no CSV ends them.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map_while(Result::ok).map(|row| row.iter().map(str::to_owned).collect()).collect()
}
