//! A time series: tables, their columns, and the rows that a sample makes.

use crate::metrics::node_facts::NodeFacts;
use crate::metrics::rollup::pattern;
use crate::metrics::{CompiledMetric, METRICS, Metric, PlacedUnit, RollUpKind, Value, find, is_like, placed_units};
use balar_actors::engine::{Sample, SampleLayout};
use balar_protocol::cuda::LaunchId;
use balar_protocol::launches::LaunchFacts;
use balar_protocol::statistics::{KernelCounters, StatisticRow};
use balar_protocol::{GpuDescription, SimTime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A table of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// The units outside of the GPUs: host CPU, links, unified memory. A row a sample.
    Node,
    /// The units of each GPU. A row for each at each sample.
    Gpu,
    /// The work of the CTAs of a launch. A row for each launch that was there since the sample before.
    Launch,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 3] = [Table::Node, Table::Gpu, Table::Launch];

    /// Its name: "gpu".
    pub fn name(self) -> &'static str {
        match self {
            Table::Node => "node",
            Table::Gpu => "gpu",
            Table::Launch => "launch",
        }
    }
}

/// A column with a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: letters, digits and underscores.
    pub name: String,
    /// Unit of measure of its values.
    pub unit: String,
    /// One line of meaning.
    pub meaning: String,
    /// Is it a whole number that counts since the run began? Other columns are of the time since the row before.
    pub is_count: bool,
}

/// Whose numbers a row has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Path of the GPU; empty in the table of the node.
    pub gpu: Arc<str>,
    /// The process whose context it is; -1 where no kernel runs.
    pub context: i64,
    /// The stream; -1 likewise.
    pub stream: i64,
    /// The launch, numbered from 0; -1 likewise.
    pub launch: i64,
    /// The kernel's name; empty likewise.
    pub kernel: Arc<str>,
}

impl Subject {
    fn of_gpu(gpu: &str) -> Subject {
        Subject { gpu: gpu.into(), context: -1, stream: -1, launch: -1, kernel: "".into() }
    }

    fn of_launch(facts: &LaunchFacts) -> Subject {
        Subject {
            gpu: Arc::clone(&facts.gpu),
            context: i64::from(facts.context.process().0),
            stream: i64::from(facts.stream),
            // The host numbers its launches from 1.
            launch: i64::from(facts.launch.0) - 1,
            kernel: Arc::clone(&facts.name),
        }
    }
}

/// A row of a series.
#[derive(Debug)]
pub struct Row<'a> {
    /// Whose.
    pub table: Table,
    /// Simulated time.
    pub time: SimTime,
    /// Whose numbers.
    pub subject: &'a Subject,
    /// The values by column; none where there is no value.
    pub values: &'a [Option<Value>],
}

/// Metrics of a series for which no names are given: the ones that most people look at first.
pub const USUAL: &[&str] = &[
    "sm.cycles_active",
    "sm.warp_cycles_active",
    "sm.warps_launched",
    "sm.ctas_launched",
    "sm.inst_executed",
    "sm.thread_inst_executed",
    "sm.inst_issued",
    "sm.ipc",
    "sm.occupancy",
    "sm.issue_active",
    "stall.long_scoreboard",
    "stall.barrier",
    "stall.math_pipe_throttle",
    "sm.flop_sp",
    "sm.flop_dp",
    "l1.sectors_ld",
    "l1.sectors_st",
    "l1.hit_rate",
    "l2.sectors_rd",
    "l2.sectors_wr",
    "l2.hit_rate_rd",
    "l2.util",
    "dram.bytes_rd",
    "dram.bytes_wr",
    "dram.util",
    "noc.packets_req",
    "noc.packets_rsp",
    "copy_engine.bytes",
    "gmmu.far_faults",
    "host.calls",
    "link.bytes",
    "pcie.bytes_h2d",
    "pcie.bytes_d2h",
    "uvm.bytes",
];

/// Columns, with the sources of their values.
#[derive(Clone, Default)]
struct Sources {
    columns: Vec<Column>,
    metrics: Vec<MetricSource>,
}

/// The sources of the values of a column.
#[derive(Clone)]
struct MetricSource {
    metric: CompiledMetric,
    /// The rows of units whose numbers it is made of.
    rows: Vec<usize>,
}

impl Sources {
    /// Adds a column, unless there is one of this name.
    fn add(&mut self, column: Column, metric: CompiledMetric, mut rows: Vec<usize>) {
        if !self.columns.iter().any(|known| known.name == column.name) {
            rows.sort_unstable();
            rows.dedup();
            self.columns.push(column);
            self.metrics.push(MetricSource { metric, rows });
        }
    }
}

fn values_of<'a>(
    sources: &'a mut [MetricSource],
    numbers: &'a [u64],
    seconds: f64,
    changed: &'a [bool],
) -> impl Iterator<Item = Option<Value>> {
    let value = move |MetricSource { metric, rows }: &mut MetricSource| {
        metric.value(numbers, seconds, rows.iter().any(|row| changed[*row]))
    };
    sources.iter_mut().map(value)
}

/// The rows of a GPU.
struct GpuRows {
    subject: Subject,
    metrics: Vec<MetricSource>,
    /// By metric: its place among the columns of all GPUs.
    places: Vec<usize>,
}

/// A launch that is known of.
struct Tracked {
    facts: LaunchFacts,
    ended: KernelCounters,
    resident: KernelCounters,
    metrics: Vec<MetricSource>,
}

/// Makes rows of samples.
pub struct Tables {
    outside: Vec<MetricSource>,
    gpus: Vec<GpuRows>,
    launches: BTreeMap<LaunchId, Tracked>,
    /// The sources of the columns of a launch.
    of_launch: Vec<MetricSource>,
    columns: BTreeMap<Table, Vec<Column>>,
    /// By unit of the engine: the rows of units that it, or parts of it, are in.
    rows_of: Vec<Vec<usize>>,
    /// By row of units: have its numbers changed since rows were made last?
    changed: Vec<bool>,
    nobody: Subject,
    /// When rows were made last.
    before: SimTime,
    values: Vec<Option<Value>>,
}

impl Tables {
    /// The tables of a node, with the metrics and counters that are selected, or the usual ones.
    pub fn new(node: &NodeFacts, wanted: &[&str], layout: &SampleLayout) -> Tables {
        let units = placed_units(&layout.rows, node);
        let of = |gpu: Option<usize>| -> Sources {
            let units: Vec<&PlacedUnit> = units.iter().filter(|unit| unit.gpu == gpu).collect();
            sources(wanted, &units, &layout.rows, node)
        };
        let mut of_gpus = vec![count("kernels", "kernel", "kernels on the GPU; the row names the oldest of them")];
        let mut gpus = Vec::new();
        for (gpu, description) in node.gpus().iter().enumerate() {
            let Sources { columns, metrics } = of(Some(gpu));
            // GPUs of one node may differ.
            let mut place = |column: Column| {
                let known = of_gpus.iter().position(|known| known.name == column.name);
                known.unwrap_or_else(|| {
                    of_gpus.push(column);
                    of_gpus.len() - 1
                })
            };
            let places = columns.into_iter().map(&mut place).collect();
            gpus.push(GpuRows { subject: Subject::of_gpu(&description.part), metrics, places });
        }
        let of_launch = node.gpus().first().map(|gpu| launch_sources(wanted, gpu, node)).unwrap_or_default();
        let mut of_launches = vec![
            count("ctas", "CTA", "CTAs of the grid"),
            count("ctas_ended", "CTA", "CTAs that have ended"),
            count("ended", "", "1 in the last row of a launch, else 0"),
        ];
        of_launches.extend(of_launch.columns);
        let outside = of(None);
        let rows_of = layout.units.iter().map(|(_, own)| {
            let parts = units.iter().filter(|unit| own.contains(&unit.rows.start)).map(|unit| unit.row);
            let mut rows: Vec<usize> = parts.collect();
            rows.dedup();
            rows
        });
        let rows_of: Vec<Vec<usize>> = rows_of.collect();
        let changed = vec![true; units.iter().map(|unit| unit.row + 1).max().unwrap_or_default()];
        let columns = [(Table::Node, outside.columns), (Table::Gpu, of_gpus), (Table::Launch, of_launches)];
        Tables {
            outside: outside.metrics,
            gpus,
            launches: BTreeMap::new(),
            of_launch: of_launch.metrics,
            columns: columns.into(),
            rows_of,
            changed,
            nobody: Subject::of_gpu(""),
            before: SimTime::ZERO,
            values: Vec::new(),
        }
    }

    /// The columns of a table, beside those that say whose row it is and when.
    pub fn columns(&self, table: Table) -> &[Column] {
        self.columns.get(&table).map(Vec::as_slice).unwrap_or_default()
    }

    /// Notes the launches and the changed units of a sample. Call it for each sample, whether rows are made of the sample or not.
    pub fn note(&mut self, sample: &Sample<'_>) {
        for (rows, _) in self.rows_of.iter().zip(sample.changed).filter(|(_, changed)| **changed) {
            rows.iter().for_each(|row| self.changed[*row] = true);
        }
        for launch in self.launches.values_mut() {
            launch.resident = KernelCounters::default();
        }
        for facts in &sample.launches.begun {
            if let Some(known) = self.launches.get_mut(&facts.launch) {
                known.facts = facts.clone();
                continue;
            }
            let (facts, metrics, nothing) = (facts.clone(), self.of_launch.clone(), KernelCounters::default());
            let known = Tracked { facts, ended: nothing, resident: nothing, metrics };
            self.launches.insert(known.facts.launch, known);
        }
        for counts in &sample.launches.counts {
            if let Some(launch) = self.launches.get_mut(&counts.launch) {
                launch.ended.add(&counts.ended);
                launch.resident.add(&counts.resident);
            }
        }
    }

    /// Gives the rows of a sample, whose launches have been noted: first the node's, then those of GPUs, then those of launches.
    pub fn rows(&mut self, sample: &Sample<'_>, mut take: impl FnMut(&Row<'_>)) {
        let seconds = (sample.time.0 - self.before.0) as f64 * 1e-12;
        self.before = sample.time;
        let (time, values) = (sample.time, &mut self.values);
        if !self.outside.is_empty() {
            values.clear();
            values.extend(values_of(&mut self.outside, sample.values, seconds, &self.changed));
            take(&Row { table: Table::Node, time, subject: &self.nobody, values });
        }
        let columns = self.columns.get(&Table::Gpu).map_or(0, Vec::len);
        for GpuRows { subject, metrics, places } in &mut self.gpus {
            let launches = self.launches.values().map(|launch| &launch.facts);
            let mut resident =
                launches.filter(|facts| facts.gpu == subject.gpu && facts.end.is_none_or(|end| end > time)).peekable();
            let oldest = resident.peek().map(|facts| Subject::of_launch(facts));
            values.clear();
            values.resize(columns, None);
            values[0] = Some(Value::Count(resident.count() as u64));
            for (&place, value) in places.iter().zip(values_of(metrics, sample.values, seconds, &self.changed)) {
                values[place] = value;
            }
            take(&Row { table: Table::Gpu, time, subject: oldest.as_ref().unwrap_or(subject), values });
        }
        for Tracked { facts, ended, resident, metrics } in self.launches.values_mut() {
            let mut counters = *ended;
            counters.add(resident);
            let own = [facts.ctas, facts.ctas_ended, u64::from(facts.end.is_some())];
            values.clear();
            values.extend(own.map(|count| Some(Value::Count(count))));
            values.extend(values_of(metrics, &counters.values().collect::<Vec<_>>(), seconds, &[true]));
            take(&Row { table: Table::Launch, time, subject: &Subject::of_launch(facts), values });
        }
        self.launches.retain(|_, launch| launch.facts.end.is_none());
        self.changed.fill(false);
    }
}

/// A column about a row itself, beside its metrics.
fn count(name: &str, unit: &str, meaning: &str) -> Column {
    Column { name: name.to_owned(), unit: unit.to_owned(), meaning: meaning.to_owned(), is_count: true }
}

/// A name as every reader of series takes it: letters, digits and underscores.
fn plain(name: &str) -> String {
    name.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect()
}

fn column(name: &str, metric: &Metric, roll_up: Option<RollUpKind>) -> Column {
    Column {
        name: plain(name),
        unit: metric.unit().to_owned(),
        meaning: metric.meaning().to_owned(),
        is_count: metric.is_count() && roll_up != Some(RollUpKind::Avg),
    }
}

/// The metrics that are looked at where none is named.
fn usual() -> impl Iterator<Item = &'static Metric> {
    USUAL.iter().filter_map(|name| METRICS.iter().find(|metric| metric.name == *name))
}

/// The columns of these units: the wanted ones, or the usual ones.
fn sources(wanted: &[&str], units: &[&PlacedUnit], rows: &[StatisticRow], node: &NodeFacts) -> Sources {
    let mut sources = Sources::default();
    let add = |sources: &mut Sources, name: &str, metric: &Metric, roll_up| {
        if let Some(compiled) = CompiledMetric::of(metric, roll_up, units, rows, node) {
            let own = units.iter().filter(|unit| unit.place == Some(metric.place)).map(|unit| unit.row);
            sources.add(column(name, metric, roll_up), compiled, own.collect());
        }
    };
    if wanted.is_empty() {
        usual().for_each(|metric| add(&mut sources, metric.name, metric, None));
    }
    for name in wanted {
        add_counters(&mut sources, name, units, rows);
        for choice in find(name) {
            add(&mut sources, &choice.name, choice.metric, choice.roll_up);
        }
    }
    sources
}

/// Adds the counters of a name: one column where one row of units has it, else one for each row, with the row's name before it.
fn add_counters(sources: &mut Sources, name: &str, units: &[&PlacedUnit], rows: &[StatisticRow]) {
    let mut found: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for unit in units {
        for at in unit.rows.clone().filter(|&at| is_like(name, rows[at].what)) {
            found.entry((rows[at].what, pattern(&unit.location))).or_default().push(at);
        }
    }
    let is_alone = |what: &str| found.keys().filter(|(known, _)| *known == what).count() == 1;
    for ((what, row), places) in &found {
        let definition = &rows[places[0]];
        let name = if is_alone(what) {
            (*what).to_owned()
        } else {
            format!("{}_{what}", plain(&row.replace("[*]", "")).trim_matches('_'))
        };
        let column = count(&name, definition.unit, &format!("{what} of {row}"));
        let own = units.iter().filter(|unit| pattern(&unit.location) == *row).map(|unit| unit.row);
        sources.add(column, CompiledMetric::of_counter(places.clone(), definition.maximum), own.collect());
    }
}

/// The columns of launches.
fn launch_sources(wanted: &[&str], gpu: &GpuDescription, node: &NodeFacts) -> Sources {
    let counters: Vec<&str> = KernelCounters::DEFINITIONS.iter().map(|definition| definition.name).collect();
    let mut sources = Sources::default();
    let add = |sources: &mut Sources, name: &str, metric: &Metric| {
        if let Some(compiled) = CompiledMetric::of_launch(metric, &counters, gpu, node) {
            sources.add(column(name, metric, None), compiled, vec![0]);
        }
    };
    if wanted.is_empty() {
        usual().for_each(|metric| add(&mut sources, metric.name, metric));
    }
    for name in wanted {
        let definitions = KernelCounters::DEFINITIONS.iter().enumerate();
        for (at, definition) in definitions.filter(|(_, definition)| is_like(name, definition.name)) {
            let column = count(definition.name, definition.unit, definition.meaning);
            sources.add(column, CompiledMetric::of_counter(vec![at], definition.maximum), vec![0]);
        }
        find(name).iter().for_each(|choice| add(&mut sources, &choice.name, choice.metric));
    }
    sources
}
