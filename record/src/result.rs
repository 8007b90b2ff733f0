//! The result document, in the form of `--format json`.

use crate::ending::Ending;
use crate::metrics::node_facts::NodeFacts;
use crate::metrics::rollup::{RollUp, pattern, roll_up};
use crate::metrics::{METRICS, Measurement, Metric, Reading, Value};
use crate::sampled::SampledCounter;
use crate::system::exit::ExitStatus;
use crate::timing::Timing;
use crate::unfinished;
use balar_actors::catalogue::KernelProfile;
use balar_actors::catalogue::timeline::UnitTimeline;
use balar_actors::simulation::RunResult;
use balar_actors::topology::Topology;
use balar_protocol::SimTime;
use balar_protocol::kernel_records::KernelRecords;
use balar_protocol::statistics::{KernelCounters, KernelRecord, StatisticRow, StatisticSink, Verification};
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// In words.
    pub text: String,
    /// Are the statistics only those up to then?
    pub is_partial: bool,
}

/// Everything that is known about a run when it has ended.
#[derive(Debug)]
pub struct RunRecord {
    /// Name of the topology.
    pub topology: String,
    /// Name of the workload; empty where the node runs none.
    pub workload: String,
    /// All its parameters, defaults included.
    pub parameters: Vec<(String, String)>,
    /// The code that ran: "ptx", "sass" or "mixed", with its assembler: "sass, assembled by ptxas 12.9".
    pub isa: String,
    /// Why it ended.
    pub ending: Ending,
    /// Simulated time at the end.
    pub sim_time: SimTime,
    /// Real time it took.
    pub wall: Duration,
    /// Threads that simulated.
    pub threads: usize,
    /// The counters that the units wrote.
    pub statistics: StatisticSink,
    /// Which of its launches were timed.
    pub timing: Timing,
    /// The counts of each instruction, where they were asked for.
    pub profiles: Option<Vec<KernelProfile>>,
    /// The activity of the units over time, where it was asked for.
    pub timeline: Option<Vec<UnitTimeline>>,
    /// Samples, for the counter tracks of the timeline.
    pub series: Vec<SampledCounter>,
    /// Facts about the node.
    pub node: NodeFacts,
    /// The launches that are printed and written, where these are not all.
    pub chosen_launches: Option<KernelRecords>,
    /// The unit that did not return when the run was to end, if there is one.
    pub given_up: Option<String>,
}

impl RunRecord {
    /// The record of a simulation of `topology`.
    pub fn of(result: RunResult, topology: &Topology) -> RunRecord {
        let mut statistics = result.statistics;
        statistics.outcome = result.program;
        // The host numbers its launches from 1, the result from 0, in the order of launching.
        statistics.kernels.number_from_zero();
        statistics.kernels.sort_by_launch();
        let timing = Timing::of(&result.detail, &statistics.kernels);
        timing.withhold(&mut statistics);
        RunRecord {
            topology: result.topology,
            workload: result.workload.to_owned(),
            parameters: result.parameters,
            isa: result.isa,
            ending: Ending::from(&result.outcome),
            sim_time: result.sim_time,
            wall: result.wall,
            threads: result.threads,
            statistics,
            timing,
            profiles: result.profiles,
            timeline: result.timeline,
            series: Vec::new(),
            node: NodeFacts::of(topology),
            chosen_launches: None,
            given_up: result.given_up,
        }
    }

    /// The record of a run that was interrupted, with the cause of that, which the engine does not know.
    pub fn interrupted_by(mut self, cause: Ending) -> RunRecord {
        if self.ending == Ending::Interrupted {
            self.ending = cause;
        }
        self
    }

    /// The launches that are printed and written.
    pub fn launches(&self) -> &KernelRecords {
        self.chosen_launches.as_ref().unwrap_or(&self.statistics.kernels)
    }

    /// The values of metrics.
    pub fn measurement(&self) -> Measurement<'_> {
        Measurement::new(&self.statistics.rows, &self.statistics.kernels, &self.node, self.sim_time)
    }

    /// Did the simulated program reach its end without an error?
    pub fn completed(&self) -> bool {
        let finished =
            self.statistics.outcome.as_ref().is_none_or(|program| program.finished && program.error.is_none());
        self.ending == Ending::Completed && finished
    }

    /// Is the result right? `None` where nothing was checked.
    pub fn verified(&self) -> Option<bool> {
        self.statistics.outcome.as_ref()?.verification.verified()
    }

    /// The exit code of the run.
    pub fn status(&self) -> ExitStatus {
        let program = self.statistics.outcome.as_ref();
        match self.ending {
            Ending::UnitPanic(_) => ExitStatus::Bug,
            Ending::UnitBroken(_) => ExitStatus::UnitBroken,
            _ if program.is_some_and(|program| program.error.is_some()) => ExitStatus::ProgramFailed,
            _ if self.verified() == Some(false) => ExitStatus::Wrong,
            Ending::ProgramKilled(_) => ExitStatus::ProgramFailed,
            Ending::Deadlock(_) | Ending::WallLimit => ExitStatus::DeadlockOrLimit,
            Ending::Interrupted => ExitStatus::Interrupted,
            Ending::Terminated => ExitStatus::Terminated,
            Ending::StopTime | Ending::Launches(_) => ExitStatus::Done,
            Ending::Completed if program.is_some_and(|program| !program.finished) => ExitStatus::DeadlockOrLimit,
            Ending::Completed => ExitStatus::Done,
        }
    }

    /// The failure in words; `None` where there was none.
    pub fn problem(&self) -> Option<String> {
        let Cause { text, is_partial } = self.cause()?;
        if let Some(unit) = &self.given_up {
            return Some(format!("{text}: {unit} did not return, so the run was given up; the statistics are lost"));
        }
        Some(if is_partial { format!("{text}; the statistics are partial") } else { text })
    }

    /// The failure, and whether the statistics reach only up to it.
    pub fn cause(&self) -> Option<Cause> {
        let program = self.statistics.outcome.as_ref();
        let of_all = |text: String| Some(Cause { text, is_partial: false });
        if let Ending::UnitPanic(text) | Ending::UnitBroken(text) = &self.ending {
            return of_all(text.clone());
        }
        if let Ending::ProgramKilled(signal) = &self.ending {
            return Some(self.broken_off(&format!("{} was killed by {signal}", self.workload)));
        }
        if let Some(error) = program.and_then(|program| program.error.as_ref()) {
            return of_all(error.clone());
        }
        if let Some(Verification::Failed(text)) = program.map(|program| &program.verification) {
            return of_all(format!("the result of {} is wrong: {text}", self.workload));
        }
        match &self.ending {
            Ending::Deadlock(text) => of_all(text.clone()),
            Ending::WallLimit => Some(self.broken_off("ended by --max-wall")),
            Ending::Terminated => Some(self.broken_off("ended by SIGTERM")),
            Ending::Interrupted => Some(self.broken_off("interrupted")),
            Ending::Completed if program.is_some_and(|program| !program.finished) => {
                let at = self.timed_span().map(|time| format!(" at {time}")).unwrap_or_default();
                of_all(format!("no event is left{at}, but the program has not ended"))
            }
            _ => None,
        }
    }

    /// Launches that CUDA refused in a program that went on all the same, in words; `None` where there are none, and where the program itself
    /// failed, which is told as what went wrong.
    pub fn refused_launches(&self) -> Option<String> {
        let program = self.statistics.outcome.as_ref().filter(|program| program.error.is_none())?;
        let first = program.first_refused.as_ref()?;
        let others = match program.launches_refused.saturating_sub(1) {
            0 => String::new(),
            1 => "; 1 more launch was refused".to_owned(),
            others => format!("; {others} more launches were refused"),
        };
        Some(format!("{first}{others}; the program went on"))
    }

    /// Where a run was when `what` ended it.
    fn broken_off(&self, what: &str) -> Cause {
        let running = self.running_kernels().map(|kernels| format!(" in {kernels}")).unwrap_or_default();
        let at = self.timed_span().map(|time| format!(" at {time} of simulated time")).unwrap_or_default();
        Cause { text: format!("{what}{at}{running}"), is_partial: true }
    }

    /// Simulated time at the end; `None` where nothing was timed.
    pub fn timed_span(&self) -> Option<SimTime> {
        (self.timing != Timing::Nothing).then_some(self.sim_time)
    }

    /// The kernels that were running at the end, each with its position; `None` where there is none.
    pub fn running_kernels(&self) -> Option<String> {
        unfinished::text(&self.statistics.kernels, self.sim_time)
    }

    /// Warp instructions of all kernels for each second of real time.
    pub fn warp_instructions_per_second(&self) -> f64 {
        let instructions: u64 = self.statistics.kernels.iter().map(|kernel| kernel.counters.ctas.inst_executed).sum();
        ratio(instructions as f64, self.wall.as_secs_f64()).unwrap_or(0.0)
    }

    fn metric_entries(&self) -> Vec<MetricEntry> {
        let measured = self.measurement();
        let of = |metric: &'static Metric| {
            let readings = measured.readings(metric, |_| true, pattern).into_iter();
            readings.map(|Reading { location, instances, sum, avg, min, max }| {
                let (metric, unit) = (metric.name, metric.unit());
                MetricEntry { metric, location, instances, sum, avg, min, max, unit }
            })
        };
        METRICS.iter().flat_map(of).collect()
    }

    /// The document.
    pub fn document(&self) -> ResultDocument<'_> {
        let program = self.statistics.outcome.as_ref();
        ResultDocument {
            schema: 1,
            program: "balar-actors",
            version: env!("CARGO_PKG_VERSION"),
            topology: &self.topology,
            workload: WorkloadEntry { name: &self.workload, parameters: Parameters(&self.parameters) },
            isa: &self.isa,
            completed: self.completed(),
            verified: self.verified(),
            ended_by: self.ending.name(),
            problem: self.problem(),
            sim_time_ps: self.timed_span().map(SimTime::picoseconds),
            wall_seconds: self.wall.as_secs_f64(),
            threads: self.threads,
            warp_instructions_per_second: self.warp_instructions_per_second(),
            results: program
                .map(|program| &program.results[..])
                .unwrap_or_default()
                .iter()
                .map(|(name, value, unit)| ProgramResult { name, value: *value, unit })
                .collect(),
            kernels: KernelEntries(self.launches()),
            statistics: self.statistics.rows.iter().map(StatisticEntry::from).collect(),
            roll_ups: roll_up(&self.statistics.rows),
            metrics: self.metric_entries(),
        }
    }
}

/// `numerator / denominator`, `None` where that means nothing.
pub fn ratio(numerator: f64, denominator: f64) -> Option<f64> {
    (denominator > 0.0).then(|| numerator / denominator)
}

/// The result document, schema 1. Wall-clock fields and `threads` are the only ones that may differ between two runs of
/// the same input.
#[derive(Debug, Serialize)]
pub struct ResultDocument<'a> {
    /// Version of this shape.
    pub schema: u32,
    /// "balar-actors".
    pub program: &'static str,
    /// Version of the program.
    pub version: &'static str,
    /// Name of the topology.
    pub topology: &'a str,
    /// The workload.
    pub workload: WorkloadEntry<'a>,
    /// The code that ran.
    pub isa: &'a str,
    /// Did the simulated program reach its end?
    pub completed: bool,
    /// Is its result right? `null` where it was not checked.
    pub verified: Option<bool>,
    /// Why the run ended.
    pub ended_by: &'static str,
    /// The failure in words.
    pub problem: Option<String>,
    /// Simulated time at the end; `null` where nothing was timed.
    pub sim_time_ps: Option<u64>,
    /// Real time it took.
    pub wall_seconds: f64,
    /// Threads that simulated.
    pub threads: usize,
    /// Speed of the simulation.
    pub warp_instructions_per_second: f64,
    /// Values that the program reports about itself.
    pub results: Vec<ProgramResult<'a>>,
    /// Kernel launches.
    pub kernels: KernelEntries<'a>,
    /// Every counter of every unit.
    pub statistics: Vec<StatisticEntry<'a>>,
    /// The counters summed over all units of a row: "gpu.sm\[*\]".
    pub roll_ups: Vec<RollUp>,
    /// The metrics of the catalogue, over all units of a row, or all launches on a GPU.
    pub metrics: Vec<MetricEntry>,
}

/// A metric over all units of a row, or all launches on a GPU.
#[derive(Debug, Serialize)]
pub struct MetricEntry {
    /// Our name for it.
    pub metric: &'static str,
    /// Path of the units, with "\[*\]" for each index; the GPU of launches.
    pub location: String,
    /// Units, or launches.
    pub instances: u64,
    /// Their sum; `null` of a quotient.
    pub sum: Option<Value>,
    /// The mean; for quotients, the quotient of the sums.
    pub avg: Option<Value>,
    /// The least.
    pub min: Option<Value>,
    /// The greatest.
    pub max: Option<Value>,
    /// Unit of measure.
    pub unit: &'static str,
}

/// The workload of a run.
#[derive(Debug, Serialize)]
pub struct WorkloadEntry<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its parameters.
    pub parameters: Parameters<'a>,
}

/// Parameters of a workload: an object whose values are numbers where their text is one.
#[derive(Debug)]
pub struct Parameters<'a>(pub &'a [(String, String)]);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, text) in self.0 {
            match (text.parse::<u64>(), text.parse::<f64>(), text.parse::<bool>()) {
                (Ok(number), ..) => map.serialize_entry(key, &number)?,
                (_, Ok(number), _) if number.is_finite() => map.serialize_entry(key, &number)?,
                (.., Ok(truth)) => map.serialize_entry(key, &truth)?,
                _ => map.serialize_entry(key, text)?,
            }
        }
        map.end()
    }
}

/// A value that the program reports about itself.
#[derive(Debug, Serialize)]
pub struct ProgramResult<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value.
    pub value: f64,
    /// Its unit of measure.
    pub unit: &'a str,
}

/// Kernel launches: each is unpacked when it is written, for there may be millions.
#[derive(Debug)]
pub struct KernelEntries<'a>(pub &'a KernelRecords);

impl Serialize for KernelEntries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for kernel in self.0.iter() {
            list.serialize_element(&KernelEntry(&kernel))?;
        }
        list.end()
    }
}

/// A kernel launch: the fields of its record, every counter under its own name, and derived values.
#[derive(Debug)]
pub struct KernelEntry<'a>(pub &'a KernelRecord);

impl KernelEntry<'_> {
    /// Values derived from the counters: (name, value); `None` if the divisor is zero.
    pub fn derived(&self) -> [(&'static str, Option<f64>); 4] {
        let counters = &self.0.counters.ctas;
        let of = |part: u64, whole: u64| ratio(part as f64, whole as f64);
        // Counts of a launch that was not timed are 0 where they need timing.
        [
            ("inst_executed_per_cycle", of(counters.inst_executed, self.0.cycles)),
            ("thread_inst_executed_per_inst_executed", of(counters.thread_inst_executed, counters.inst_executed)),
            ("l1_hit_rate_load", of(counters.l1_sector_hits_load, counters.l1_sectors_load)),
            ("l2_hit_rate_load", of(counters.l2_sector_hits_load, counters.l2_sectors_load)),
        ]
    }
}

impl Serialize for KernelEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kernel = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("launch", &kernel.launch.0)?;
        if let Some(parent) = kernel.parent {
            map.serialize_entry("parent", &parent.0)?;
        }
        if let Some(range) = &kernel.range {
            map.serialize_entry("range", range)?;
        }
        map.serialize_entry("name", &kernel.name)?;
        map.serialize_entry("process", &kernel.process)?;
        map.serialize_entry("stream", &kernel.stream)?;
        map.serialize_entry("gpu", &kernel.gpu)?;
        map.serialize_entry("grid", &kernel.grid)?;
        map.serialize_entry("block", &kernel.block)?;
        map.serialize_entry("registers_per_thread", &kernel.registers_per_thread)?;
        map.serialize_entry("shared_bytes", &kernel.shared_bytes)?;
        map.serialize_entry("completed", &kernel.completed)?;
        if !kernel.completed {
            map.serialize_entry("ctas", &unfinished::ctas(kernel))?;
            map.serialize_entry("ctas_ended", &unfinished::ctas_ended(kernel))?;
        }
        let is_timed = kernel.detail.is_timed();
        map.serialize_entry("detail", kernel.detail.name())?;
        map.serialize_entry("start_ps", &is_timed.then_some(kernel.start_ps))?;
        map.serialize_entry("end_ps", &is_timed.then_some(kernel.end_ps))?;
        map.serialize_entry("cycles", &kernel.timed_cycles())?;
        for (definition, value) in KernelCounters::DEFINITIONS.iter().zip(kernel.known_counters()) {
            map.serialize_entry(definition.name, &value)?;
        }
        for (name, value) in self.derived() {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

/// One counter of one unit.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct StatisticEntry<'a> {
    /// Path of the unit.
    pub location: &'a str,
    /// Name of the counter.
    pub what: &'a str,
    /// Its value.
    pub value: u64,
    /// Its unit of measure.
    pub unit: &'a str,
}

impl<'a> From<&'a StatisticRow> for StatisticEntry<'a> {
    fn from(row: &'a StatisticRow) -> Self {
        StatisticEntry { location: &row.location, what: row.what, value: row.value, unit: row.unit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::record;
    use balar_protocol::ProcessId;
    use balar_protocol::statistics::ProgramOutcome;

    fn program(record: &mut RunRecord) -> &mut ProgramOutcome {
        record.statistics.outcome.as_mut().expect("the record has a program")
    }

    #[test]
    fn exit_codes() {
        let status = |change: &dyn Fn(&mut RunRecord)| {
            let mut record = record();
            change(&mut record);
            (record.status().code(), record.completed(), record.problem().is_some())
        };
        assert_eq!(status(&|_| ()), (0, true, false));
        assert_eq!(status(&|r| program(r).verification = Verification::NotChecked), (0, true, false));
        assert_eq!(status(&|r| program(r).verification = Verification::Failed("c[3]".into())), (1, true, true));
        assert_eq!(status(&|r| program(r).error = Some("illegal address".into())), (3, false, true));
        assert_eq!(status(&|r| program(r).finished = false), (4, false, true));
        assert_eq!(status(&|r| r.ending = Ending::StopTime), (0, false, false));
        assert_eq!(status(&|r| r.ending = Ending::WallLimit), (4, false, true));
        assert_eq!(status(&|r| r.ending = Ending::Deadlock("cpu waits".into())), (4, false, true));
        assert_eq!(status(&|r| r.ending = Ending::Interrupted), (130, false, true));
        assert_eq!(status(&|r| r.ending = Ending::Terminated), (143, false, true));
        assert_eq!(status(&|r| r.ending = Ending::UnitPanic("gpu.sm[0]".into())), (70, false, true));
        assert_eq!(status(&|r| r.ending = Ending::UnitBroken("gpu.own[0]".into())), (5, false, true));
        assert_eq!(status(&|r| r.statistics.outcome = None), (0, true, false));
    }

    #[test]
    fn the_document_has_the_documented_fields() {
        let record = record();
        let text = crate::json::to_text(&record.document());
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["schema"], 1);
        assert_eq!(json["program"], "balar-actors");
        assert_eq!(json["workload"], serde_json::json!({"name": "lud", "parameters": {"size": 32, "mode": "fast"}}));
        assert_eq!((&json["completed"], &json["verified"]), (&true.into(), &true.into()));
        assert_eq!((&json["sim_time_ps"], &json["threads"]), (&3_000_000.into(), &1.into()));
        assert_eq!(json["warp_instructions_per_second"], 5120.0);
        let kernel = &json["kernels"][1];
        assert_eq!(kernel["name"], "lud_internal");
        assert_eq!(kernel["grid"], serde_json::json!([4, 2, 1]));
        assert_eq!((&kernel["warps_launched"], &kernel["cycles"]), (&64.into(), &400.into()));
        assert_eq!(kernel["thread_inst_executed_per_inst_executed"], 24.0);
        assert_eq!(kernel["l1_hit_rate_load"], serde_json::Value::Null);
        let row = serde_json::json!({"location": "gpu.sm[0]", "what": "warps_launched", "value": 8, "unit": "warp"});
        assert_eq!(json["statistics"][0], row);
        assert_eq!(json["statistics"].as_array().map(Vec::len), Some(record.statistics.rows.len()));
    }

    fn change(record: &mut RunRecord, launch: usize, change: impl FnOnce(&mut KernelRecord)) {
        let mut kernels: Vec<KernelRecord> = record.statistics.kernels.iter().collect();
        change(&mut kernels[launch]);
        record.statistics.kernels = kernels.into_iter().collect();
    }

    /// The record, interrupted in its last launch, 3 of whose 8 CTAs have ended while 2 were under way.
    fn interrupted() -> RunRecord {
        let mut record = record();
        record.ending = Ending::Interrupted;
        let end = record.sim_time.picoseconds();
        change(&mut record, 2, |kernel| {
            (kernel.completed, kernel.end_ps, kernel.cycles) = (false, end, 77);
            kernel.name = "_Z4spinIiEvPVT_".into();
            (kernel.counters.ctas.ctas_launched, kernel.ctas_unfinished) = (5, 2);
        });
        record
    }

    #[test]
    fn refused_launches_are_told_where_the_program_went_on() {
        let mut record = record();
        assert_eq!(record.refused_launches(), None);
        let program = program(&mut record);
        program.first_refused = Some("the launch of kernel k was refused: cudaErrorInvalidConfiguration".to_owned());
        program.launches_refused = 1;
        let said = "the launch of kernel k was refused: cudaErrorInvalidConfiguration";
        assert_eq!(record.refused_launches(), Some(format!("{said}; the program went on")));
        let told = |record: &mut RunRecord, count, error: Option<&str>| {
            let program = self::program(record);
            (program.launches_refused, program.error) = (count, error.map(str::to_owned));
            record.refused_launches()
        };
        let three = told(&mut record, 3, None);
        assert_eq!(three, Some(format!("{said}; 2 more launches were refused; the program went on")));
        assert_eq!(record.status(), ExitStatus::Done);
        assert_eq!(told(&mut record, 3, Some("a trap")), None);
    }

    #[test]
    fn a_run_without_an_unfinished_kernel_says_nothing_of_any() {
        assert_eq!(record().running_kernels(), None);
        let mut failed = interrupted();
        change(&mut failed, 2, |kernel| kernel.end_ps -= 1);
        assert_eq!(failed.running_kernels(), None, "it ended before the run did");
    }

    #[test]
    fn an_unfinished_kernel_has_a_position() {
        let mut record = interrupted();
        let said = "kernel spin<int> on gpu (launch 2, stream 0: 3 of 8 CTAs done after 77 SM cycles)";
        assert_eq!(record.running_kernels().as_deref(), Some(said));
        let problem = record.problem().expect("it was interrupted");
        assert_eq!(
            problem,
            format!("interrupted at 3000000 ps of simulated time in {said}; the statistics are partial")
        );
        change(&mut record, 0, |kernel| kernel.process = ProcessId(2));
        let running = record.running_kernels();
        assert!(running.as_ref().is_some_and(|text| text.contains("(process 0, launch 2")), "{running:?}");
    }

    #[test]
    fn the_document_tells_ctas_of_launches_that_did_not_complete() {
        let record = interrupted();
        let mut text = Vec::new();
        crate::json::write(&record, &mut text).expect("written to memory");
        let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let (first, last) = (&json["kernels"][0], &json["kernels"][2]);
        assert_eq!((&last["completed"], &last["ctas"], &last["ctas_ended"]), (&false.into(), &8.into(), &3.into()));
        assert_eq!((&first["completed"], &first["ctas"]), (&true.into(), &serde_json::Value::Null));
    }
}
