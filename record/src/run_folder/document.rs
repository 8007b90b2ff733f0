//! The document of a run, which `--format json` prints and stats.json holds.

use balar_protocol::ranges::RangePath;
use balar_protocol::statistics::KernelCounters;
use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The schema that is read.
const SCHEMA: u64 = 1;
/// Who writes such documents.
const PROGRAM: &str = "balar-actors";

/// Why a text is no document of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// The mistake, and its place.
    pub problem: String,
    /// The remedy.
    pub help: &'static str,
}

/// A run, as its document tells it.
#[derive(Debug, Deserialize)]
pub struct RunDocument {
    /// Version of the program that wrote it.
    pub version: String,
    /// Name of the topology.
    pub topology: String,
    /// The workload.
    pub workload: Workload,
    /// The code that ran.
    pub isa: String,
    /// Did the simulated program reach its end?
    pub completed: bool,
    /// Is its result right? `None` where it was not checked.
    #[serde(default)]
    pub verified: Option<bool>,
    /// Why the run ended.
    #[serde(default)]
    pub ended_by: String,
    /// The failure in words.
    #[serde(default)]
    pub problem: Option<String>,
    /// Simulated time at the end; `None` where nothing was timed.
    #[serde(deserialize_with = "Option::deserialize")]
    pub sim_time_ps: Option<u64>,
    /// Values that the program reports about itself.
    #[serde(default)]
    pub results: Vec<ProgramResult>,
    /// Kernel launches.
    pub kernels: Vec<Launch>,
    /// Every counter of every unit.
    pub statistics: Vec<Statistic>,
    /// The counters by row of units.
    #[serde(default)]
    pub roll_ups: Vec<RowReading>,
    /// The metrics by row of units.
    #[serde(default)]
    pub metrics: Vec<RowReading>,
}

/// A counter or a metric over a row of units, or over all launches on a GPU.
#[derive(Debug, Deserialize)]
pub struct RowReading {
    /// Its name.
    #[serde(alias = "what")]
    pub metric: String,
    /// The units: "gpu.sm\[*\]".
    pub location: String,
    /// Units, or launches.
    #[serde(default)]
    pub instances: u64,
    /// Their sum; `None` of a quotient.
    pub sum: Option<f64>,
    /// The mean; for quotients, the quotient of the sums.
    pub avg: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
    /// The unit of measure.
    #[serde(default)]
    pub unit: String,
}

/// The workload of a run.
#[derive(Debug, Deserialize)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Its parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, serde_json::Value>,
}

/// A value that the program reports about itself.
#[derive(Debug, Deserialize)]
pub struct ProgramResult {
    /// Its name.
    pub name: String,
    /// Its value; `None` where it is no number.
    #[serde(default)]
    pub value: Option<f64>,
    /// Its unit of measure.
    #[serde(default)]
    pub unit: String,
}

/// One counter of one unit.
#[derive(Debug, Deserialize)]
pub struct Statistic {
    /// Path of the unit.
    pub location: String,
    /// Name of the counter.
    pub what: String,
    /// Its value.
    pub value: u64,
    /// Its unit of measure.
    #[serde(default)]
    pub unit: String,
}

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Its number.
    pub launch: u64,
    /// The kernel's name.
    pub name: String,
    /// The named range that it was launched in.
    pub range: Option<RangePath>,
    /// Path of the GPU.
    pub gpu: String,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers_per_thread: Option<u32>,
    /// Shared memory of a CTA, bytes.
    pub shared_bytes: Option<u32>,
    /// Did it end as it should?
    pub completed: bool,
    /// How it was simulated: "timed", or "functional", without time.
    pub detail: Option<String>,
    /// When it started and when its last CTA ended, ps; `None` where its time was not simulated.
    pub span_ps: Option<(u64, u64)>,
    /// How long it took, ps; likewise.
    pub time_ps: Option<u64>,
    /// SM-clock cycles; `None` where they were not simulated.
    pub cycles: Option<u64>,
    /// Its counters, in the order of [`KernelCounters::DEFINITIONS`]; `None` of those that the document lacks.
    counters: Box<[Option<u64>]>,
}

impl Launch {
    /// A counter; `None` where the document lacks it.
    pub fn counter(&self, name: &str) -> Option<u64> {
        counter_place(name).and_then(|place| self.counters[place])
    }

    /// Was its time simulated?
    pub fn is_timed(&self) -> bool {
        self.time_ps.is_some() && self.detail.as_deref().is_none_or(|detail| detail == "timed")
    }
}

fn counter_place(name: &str) -> Option<usize> {
    KernelCounters::DEFINITIONS.iter().position(|definition| definition.name == name)
}

impl<'de> Deserialize<'de> for Launch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Launch, D::Error> {
        deserializer.deserialize_map(LaunchVisitor)
    }
}

struct LaunchVisitor;

impl<'de> Visitor<'de> for LaunchVisitor {
    type Value = Launch;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a kernel launch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Launch, A::Error> {
        let mut launch = Launch {
            launch: 0,
            name: String::new(),
            range: None,
            gpu: String::new(),
            grid: [1; 3],
            block: [1; 3],
            registers_per_thread: None,
            shared_bytes: None,
            completed: true,
            detail: None,
            span_ps: None,
            time_ps: None,
            cycles: None,
            counters: vec![None; KernelCounters::DEFINITIONS.len()].into(),
        };
        let (mut name, mut start, mut end) = (None, None::<u64>, None::<u64>);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match &*key {
                "launch" => launch.launch = map.next_value()?,
                "name" => name = Some(map.next_value()?),
                "range" => launch.range = map.next_value()?,
                "gpu" => launch.gpu = map.next_value()?,
                "grid" => launch.grid = map.next_value()?,
                "block" => launch.block = map.next_value()?,
                "registers_per_thread" => launch.registers_per_thread = map.next_value()?,
                "shared_bytes" => launch.shared_bytes = map.next_value()?,
                "completed" => launch.completed = map.next_value()?,
                "detail" => launch.detail = map.next_value()?,
                "start_ps" => start = map.next_value()?,
                "end_ps" => end = map.next_value()?,
                "cycles" => launch.cycles = map.next_value()?,
                other => match counter_place(other) {
                    Some(place) => launch.counters[place] = map.next_value()?,
                    None => drop(map.next_value::<IgnoredAny>()?),
                },
            }
        }
        launch.name = name.ok_or_else(|| de::Error::missing_field("name"))?;
        launch.span_ps = start.zip(end);
        launch.time_ps = launch.span_ps.map(|(start, end)| end.saturating_sub(start));
        Ok(launch)
    }
}

impl RunDocument {
    /// Reads the text of a document.
    ///
    /// # Errors
    ///
    /// The text is no document of a run, is a document of another schema, or is cut off.
    pub fn parse(text: &str) -> Result<RunDocument, DocumentError> {
        /// The fields that tell the kind of a document.
        #[derive(Deserialize)]
        struct Kind {
            schema: Option<serde_json::Value>,
            program: Option<String>,
            version: Option<String>,
            kernels: Option<IgnoredAny>,
        }
        let no_run = || DocumentError {
            problem: "it is no document of a run of balar-actors".to_owned(),
            help: "a run with --output DIR writes stats.json, and with --format json prints the same",
        };
        let kind: Kind = serde_json::from_str(text).map_err(|error| broken(&error).unwrap_or_else(no_run))?;
        if kind.program.as_deref() != Some(PROGRAM) || kind.kernels.is_none() {
            return Err(no_run());
        }
        match kind.schema.as_ref().and_then(serde_json::Value::as_u64) {
            Some(SCHEMA) => {}
            found => {
                let found = found.map_or("no schema".to_owned(), |found| format!("schema {found}"));
                let version = kind.version.map_or(String::new(), |version| format!(", by version {version}"));
                return Err(DocumentError {
                    problem: format!("the document has {found}{version}, expected schema {SCHEMA}"),
                    help: "it was written by another version of balar-actors: read it with that one, or run again",
                });
            }
        }
        serde_json::from_str(text).map_err(|error| {
            broken(&error).unwrap_or_else(|| DocumentError {
                problem: error.to_string(),
                help: "the document is not as balar-actors writes it: run again",
            })
        })
    }
}

/// The message about a text that ends too soon, or is no JSON.
fn broken(error: &serde_json::Error) -> Option<DocumentError> {
    match error.classify() {
        serde_json::error::Category::Eof => Some(DocumentError {
            problem: format!("it is cut off at line {}, column {}", error.line(), error.column()),
            help: "the document ends before it is complete: run again",
        }),
        serde_json::error::Category::Syntax => Some(DocumentError {
            problem: format!("it is no JSON: {error}"),
            help: "expected the stats.json of a run with --output DIR, or the output of --format json",
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::to_text;
    use crate::sample::{document, record};

    #[test]
    fn what_a_run_writes_is_read() {
        let document = document();
        assert_eq!((&*document.topology, &*document.workload.name, &*document.isa), ("v100_node", "lud", "ptx"));
        assert_eq!(document.workload.parameters["size"], 32);
        assert_eq!((document.completed, document.verified, document.sim_time_ps), (true, Some(true), Some(3_000_000)));
        assert_eq!(document.results[0].value, Some(12.5));
        let [first, second, _] = &document.kernels[..] else { panic!("three launches") };
        assert_eq!((&*first.name, first.grid, first.registers_per_thread), ("lud_diagonal", [4, 2, 1], Some(32)));
        assert_eq!((second.time_ps, second.cycles), (Some(400 * 762), Some(400)));
        assert_eq!((second.counter("inst_executed"), second.counter("no_such_counter")), (Some(800), None));
        assert!(second.is_timed());
        assert_eq!(document.statistics.len(), record().statistics.rows.len());
    }

    #[test]
    fn what_is_absent_is_not_simulated() {
        let text = to_text(&record().document());
        let text = text.replacen("\"cycles\": 100,", "\"cycles\": null, \"detail\": \"functional\",", 1);
        let text = text.replacen("\"start_ps\": 0, \"end_ps\": 76200,", "\"start_ps\": null, \"end_ps\": null,", 1);
        let text = text.replace("\"inst_integer\": 0, ", "");
        let document = RunDocument::parse(&text).expect("a document");
        let [first, second, _] = &document.kernels[..] else { panic!("three launches") };
        assert_eq!((first.cycles, first.time_ps, first.is_timed()), (None, None, false));
        assert_eq!((second.cycles, second.is_timed()), (Some(400), true));
        assert_eq!((first.counter("inst_integer"), first.counter("inst_executed")), (None, Some(200)));
    }

    #[test]
    fn a_run_in_which_nothing_was_timed_has_no_time() {
        let text = to_text(&record().document()).replacen("\"sim_time_ps\": 3000000", "\"sim_time_ps\": null", 1);
        assert_eq!(RunDocument::parse(&text).expect("a document").sim_time_ps, None);
    }

    #[test]
    fn other_documents_are_refused() {
        let text = to_text(&record().document());
        let problem = |text: &str| RunDocument::parse(text).expect_err("it is refused").problem;
        assert_eq!(problem("{}"), "it is no document of a run of balar-actors");
        assert_eq!(problem("[1]"), "it is no document of a run of balar-actors");
        assert!(problem("").starts_with("it is cut off at line 1"), "{}", problem(""));
        assert!(problem(&text[..text.len() / 2]).starts_with("it is cut off at line "), "{}", problem(&text[..99]));
        assert!(problem("balar-actors snapshot 1").starts_with("it is no JSON: "));
        let other = text.replacen("\"schema\": 1", "\"schema\": 2", 1);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(problem(&other), format!("the document has schema 2, by version {version}, expected schema 1"));
        let wrong = text.replacen("\"completed\": true", "\"completed\": 7", 1);
        assert!(problem(&wrong).starts_with("invalid type: integer `7`, expected a boolean at line "));
        let without = text.replacen("\"sim_time_ps\"", "\"time\"", 1);
        assert!(problem(&without).starts_with("missing field `sim_time_ps`"), "{}", problem(&without));
    }
}
