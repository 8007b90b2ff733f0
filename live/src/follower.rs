//! Follows a run: takes samples from the engine, looks at the live board, and says how the run is.

use super::estimate::{Work, estimate};
use super::state::{Gpu, Kernel, LiveState, Measured, Phase, RunFacts, Share, VERSION};
use super::stopwatch::Stopwatch;
use balar_actors::engine::{DeadlockReport, LiveBoard, Observer, Sample, SampleKind, SampleLayout, WaitingUnit};
use balar_actors::gpu::gauges::CTAS_DONE;
use balar_protocol::SimTime;
use balar_protocol::launches::LaunchFacts;
use balar_record::kernel_name::readable_name;
use balar_record::metrics::node_facts::NodeFacts;
use balar_record::metrics::utilisation::Utilisation;
use balar_record::series::{Column, Row, Table, Tables};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How many launches that have ended are shown.
const ENDED_SHOWN: usize = 12;
/// Rates are those of this stretch of real time.
const RATES_OF: Duration = Duration::from_secs(3);

/// A run whose simulated time has not moved for so long seems to hang: its state then says what its units wait for.
const STILL: Duration = Duration::from_secs(2);

/// The metrics of GPUs and of the node.
const METRICS: &[&str] = &[
    "sm.ipc",
    "sm.efficiency",
    "sm.issue_active_elapsed",
    "sm.occupancy",
    "sm.warps_launched",
    "sm.inst_executed",
    "sm.thread_inst_executed",
    "l1.util",
    "l1.hit_rate",
    "l2.util",
    "l2.hit_rate_rd",
    "l2.throughput",
    "dram.util",
    "dram.read_throughput",
    "dram.write_throughput",
    "dram.bytes_rd",
    "dram.bytes_wr",
    "noc.packets_req",
    "noc.packets_rsp",
    "copy_engine.bytes",
    "gmmu.walks",
    "gmmu.far_faults",
    "stall.selected",
    "stall.not_selected",
    "stall.long_scoreboard",
    "stall.short_scoreboard",
    "stall.wait",
    "stall.barrier",
    "stall.membar",
    "stall.math_pipe_throttle",
    "stall.lg_throttle",
    "stall.drain",
    "stall.branch_resolve",
    "stall.sleeping",
    "stall.no_instruction",
    "stall.imc_miss",
    "host.calls",
    "link.bytes",
    "pcie.bytes_h2d",
    "pcie.bytes_d2h",
    "uvm.bytes",
];

/// How busy the parts of a GPU are, by the column that says so.
const PARTS: [(&str, &str); 6] = [
    ("sm_efficiency", "SMs active"),
    ("sm_issue_active_elapsed", "issue slots"),
    ("sm_occupancy", "occupancy"),
    ("l1_util", "L1"),
    ("l2_util", "L2"),
    ("dram_util", "device memory"),
];

/// A moment in the past, for rates.
#[derive(Clone, Copy, Debug)]
struct CountsAtTime {
    wall: Duration,
    sim_ps: u64,
    messages: u64,
    instructions: u64,
}

/// The layout of the engine's samples, and the readers of their values.
struct SampleReading {
    layout: Arc<SampleLayout>,
    tables: Tables,
    utilisation: Utilisation,
    /// Rows that count the warp instructions of SMs.
    instructions: Vec<usize>,
}

impl SampleReading {
    fn new(layout: Arc<SampleLayout>, node: &NodeFacts) -> SampleReading {
        let rows = layout.rows.iter().enumerate();
        SampleReading {
            tables: Tables::new(node, METRICS, &layout),
            utilisation: Utilisation::new(&layout, node),
            instructions: rows.filter(|(_, row)| row.what == "inst_executed").map(|(at, _)| at).collect(),
            layout,
        }
    }
}

/// Follows a run.
pub struct Follower {
    facts: RunFacts,
    node: NodeFacts,
    board: LiveBoard,
    clock: Stopwatch,
    reading: Option<SampleReading>,
    /// The numbers of the last sample.
    values: Vec<u64>,
    /// How many samples there have been.
    samples: u64,
    sampled: SimTime,
    /// From when to when rates and shares have been measured: a run that is held gives samples in which no time has passed.
    measured_from: SimTime,
    measured: SimTime,
    is_measured: bool,
    /// The latest measurements, by GPU and outside of the GPUs.
    gpus: Vec<Gpu>,
    outside: Vec<Measured>,
    units: BTreeMap<String, f32>,
    resident: Vec<Kernel>,
    ended: VecDeque<Kernel>,
    ended_by_gpu: BTreeMap<String, u64>,
    waiting: Vec<WaitingUnit>,
    /// The waiting units that were put into lines last, and the lines.
    lines_of: Vec<WaitingUnit>,
    lines: Vec<String>,
    /// When the run was asked for a sample that it has not given.
    asked: Option<Duration>,
    began: Option<Duration>,
    is_over: bool,
    ending: Option<String>,
    past: VecDeque<CountsAtTime>,
    looked: Duration,
    held: Duration,
    moved: Duration,
}

impl Follower {
    /// The follower of a run that has not begun.
    pub fn new(facts: RunFacts, node: NodeFacts, board: LiveBoard) -> Follower {
        Follower {
            facts,
            node,
            board,
            clock: Stopwatch::start(),
            reading: None,
            values: Vec::new(),
            samples: 0,
            sampled: SimTime::ZERO,
            measured_from: SimTime::ZERO,
            measured: SimTime::ZERO,
            is_measured: false,
            gpus: Vec::new(),
            outside: Vec::new(),
            units: BTreeMap::new(),
            resident: Vec::new(),
            ended: VecDeque::new(),
            ended_by_gpu: BTreeMap::new(),
            waiting: Vec::new(),
            lines_of: Vec::new(),
            lines: Vec::new(),
            asked: None,
            began: None,
            is_over: false,
            ending: None,
            past: VecDeque::new(),
            looked: Duration::ZERO,
            held: Duration::ZERO,
            moved: Duration::ZERO,
        }
    }

    /// The layout of samples, once the run has given one.
    pub fn layout(&self) -> Option<Arc<SampleLayout>> {
        self.reading.as_ref().filter(|_| self.is_measured).map(|reading| Arc::clone(&reading.layout))
    }

    /// The numbers of the last sample, in the order of the layout.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// How many samples there have been.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Is the run to be asked for a sample: it has begun, is not over, and owes none?
    pub fn may_ask(&mut self) -> bool {
        let may = self.reading.is_some() && !self.is_over && self.asked.is_none();
        if may {
            self.asked = Some(self.clock.elapsed());
        }
        may
    }

    /// The run is over, and this is how it ended.
    pub fn end(&mut self, ending: String) {
        self.ending.get_or_insert(ending);
    }

    /// How the run is now. Called a few times a second; `is_held` says whether it stands still because it is held.
    pub fn look(&mut self, is_held: bool) -> LiveState {
        let now = self.clock.elapsed();
        let passed = now.saturating_sub(std::mem::replace(&mut self.looked, now));
        if is_held {
            self.held += passed;
        }
        let moment = self.moment(now);
        if self.past.back().is_none_or(|last| last.sim_ps != moment.sim_ps) {
            self.moved = now;
        }
        while self.past.len() > 1 && self.past.get(1).is_some_and(|next| next.wall + RATES_OF < now) {
            self.past.pop_front();
        }
        self.past.push_back(moment);
        let mut state = self.glance(is_held);
        if !self.is_over && (is_held || state.still_seconds > STILL.as_secs_f64()) {
            state.waiting = self.waiting_lines();
        }
        state
    }

    fn moment(&self, wall: Duration) -> CountsAtTime {
        CountsAtTime {
            wall,
            sim_ps: self.board.time().0.max(self.sampled.0),
            messages: self.board.messages(),
            instructions: self.instructions(),
        }
    }

    /// As [`Self::look`], but without the times at which rates are taken, and without what units wait for.
    pub fn glance(&self, is_held: bool) -> LiveState {
        let now = self.clock.elapsed();
        let phase = match () {
            () if self.ending.is_some() => Phase::Ended,
            () if self.is_over => Phase::Concluding,
            () if self.reading.is_none() => Phase::Preparing,
            () if is_held => Phase::Held,
            () => Phase::Running,
        };
        let moment = self.moment(now);
        let [sim_us_per_second, messages_per_second, warp_instructions_per_second] = self.rates(moment);
        let gauges = self.board.values();
        let schedulers = || gauges.iter().filter_map(|(name, value)| Some((name.strip_suffix(CTAS_DONE)?, *value)));
        let work = Work::of(&self.board);
        let took = now.saturating_sub(self.began.unwrap_or(now)).saturating_sub(self.held);
        let mut gpus = self.gpus.clone();
        for gpu in &mut gpus {
            let of_gpu =
                schedulers().filter(|(path, _)| path.strip_prefix(&gpu.name).is_some_and(|at| at.starts_with('.')));
            gpu.ctas_ended = of_gpu.map(|(_, done)| done).sum();
            gpu.kernels_ended = self.ended_by_gpu.get(&gpu.name).copied().unwrap_or_default();
        }
        let is_going = phase == Phase::Running || phase == Phase::Held;
        LiveState {
            version: VERSION,
            run: self.facts.clone(),
            phase,
            ending: self.ending.clone(),
            sim_ps: moment.sim_ps,
            windows: self.board.windows(),
            messages: moment.messages,
            wall_seconds: now.as_secs_f64(),
            held_seconds: self.held.as_secs_f64(),
            still_seconds: if is_going { now.saturating_sub(self.moved).as_secs_f64() } else { 0.0 },
            unanswered_seconds: self.asked.map_or(0.0, |asked| now.saturating_sub(asked).as_secs_f64()),
            sim_us_per_second,
            messages_per_second,
            warp_instructions_per_second,
            ctas_ended: work.ended,
            ctas_planned: work.planned,
            estimate: estimate(&work, took, self.facts.is_program),
            kernels_ended: self.ended_by_gpu.values().sum(),
            kernels: self.ended.iter().chain(&self.resident).cloned().collect(),
            gpus,
            node: self.outside.clone(),
            units: self.units.clone(),
            sampled_ps: self.sampled.0,
            measured_from_ps: self.measured_from.0,
            measured_to_ps: self.measured.0,
            waiting: Vec::new(),
        }
    }

    /// The lines about waiting units at the last sample: one line for all units that wait alike.
    pub fn waiting_lines(&mut self) -> Vec<String> {
        // Finding out who waits alike takes a while.
        if self.lines_of != self.waiting {
            let report = DeadlockReport { time: self.sampled, waiting: self.waiting.clone() };
            self.lines = report.to_string().lines().skip(1).map(|line| line.trim().to_owned()).collect();
            self.lines_of.clone_from(&self.waiting);
        }
        self.lines.clone()
    }

    fn instructions(&self) -> u64 {
        let rows = self.reading.iter().flat_map(|reading| &reading.instructions);
        rows.filter_map(|&row| self.values.get(row)).sum()
    }

    /// Simulated microseconds, messages and warp instructions in a second of real time, lately, or of the whole run once it is over.
    fn rates(&self, now: CountsAtTime) -> [f64; 3] {
        let mut before = self.past.front().copied().unwrap_or(now);
        if self.is_over {
            // Those of the whole run, without the time before it and the time for which it was held.
            let began = self.began.unwrap_or_default() + self.held;
            before = CountsAtTime { wall: began, sim_ps: 0, messages: 0, instructions: 0 };
        }
        let seconds = (now.wall.saturating_sub(before.wall)).as_secs_f64();
        let rate =
            |now: u64, before: u64| if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 };
        [
            rate(now.sim_ps, before.sim_ps) / 1e6,
            rate(now.messages, before.messages),
            rate(now.instructions, before.instructions),
        ]
    }

    fn note_launches(&mut self, launches: &[LaunchFacts]) {
        self.resident.clear();
        for facts in launches {
            let kernel = kernel(facts);
            if kernel.end_ps.is_none() {
                self.resident.push(kernel);
                continue;
            }
            *self.ended_by_gpu.entry(kernel.gpu.clone()).or_default() += 1;
            self.ended.push_back(kernel);
            if self.ended.len() > ENDED_SHOWN {
                self.ended.pop_front();
            }
        }
    }

    fn measure(&mut self, sample: &Sample<'_>) {
        let Some(SampleReading { tables, utilisation, .. }) = &mut self.reading else { return };
        let seconds = sample.time.0.saturating_sub(self.measured.0) as f64 * 1e-12;
        self.measured_from = std::mem::replace(&mut self.measured, sample.time);
        self.units = utilisation.take(sample.values, seconds);
        let columns = [Table::Node, Table::Gpu].map(|table| tables.columns(table).to_vec());
        let (mut gpus, mut outside) = (Vec::new(), Vec::new());
        tables.rows(sample, |row| match row.table {
            Table::Node => outside = measured(&columns[0], row),
            Table::Gpu => gpus.push(gpu(&columns[1], row)),
            Table::Launch => {}
        });
        (self.gpus, self.outside, self.is_measured) = (gpus, outside, true);
    }
}

impl Observer for Follower {
    fn begin(&mut self, layout: &SampleLayout) {
        self.values = vec![0; layout.rows.len()];
        self.reading = Some(SampleReading::new(Arc::new(layout.clone()), &self.node));
        self.began = Some(self.clock.elapsed());
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        self.samples += 1;
        self.sampled = sample.time;
        self.values.copy_from_slice(sample.values);
        if let Some(reading) = &mut self.reading {
            reading.tables.note(sample);
        }
        self.note_launches(&sample.launches.begun);
        match sample.kind {
            SampleKind::Asked => {
                self.asked = None;
                self.waiting = sample.waiting.to_vec();
            }
            // Another observer's: its values are about the stretch from one question to the next.
            SampleKind::Due if self.is_measured => return,
            SampleKind::Due => {}
            SampleKind::Last => {
                (self.is_over, self.asked) = (true, None);
                // The last values to be looked at are those of the whole run.
                self.reading = self.reading.take().map(|reading| SampleReading::new(reading.layout, &self.node));
                (self.measured, self.is_measured) = (SimTime::ZERO, false);
            }
        }
        if sample.time > self.measured || !self.is_measured {
            self.measure(sample);
        }
    }
}

fn kernel(facts: &LaunchFacts) -> Kernel {
    Kernel {
        launch: facts.launch.0.saturating_sub(1),
        name: readable_name(&facts.name),
        gpu: facts.gpu.to_string(),
        stream: facts.stream,
        ctas: facts.ctas,
        ctas_ended: facts.ctas_ended,
        start_ps: facts.start.0,
        end_ps: facts.end.map(|end| end.0),
    }
}

fn measured(columns: &[Column], row: &Row<'_>) -> Vec<Measured> {
    let pairs = columns.iter().zip(row.values);
    let values = pairs.map(|(column, value)| Measured {
        name: column.name.clone(),
        value: value.map(|value| value.real()).filter(|value| value.is_finite()),
        unit: column.unit.clone(),
        meaning: column.meaning.clone(),
        is_count: column.is_count,
    });
    values.collect()
}

fn gpu(columns: &[Column], row: &Row<'_>) -> Gpu {
    let metrics = measured(columns, row);
    let of = |name: &str| metrics.iter().find(|measured| measured.name == name);
    let utilisation = PARTS.iter().filter_map(|(column, name)| {
        let percent = of(column)?.value.map(|percent| percent.clamp(0.0, 100.0));
        Some(Share { name: (*name).to_owned(), percent })
    });
    let utilisation: Vec<Share> = utilisation.collect();
    let stalls = metrics.iter().filter_map(|metric| {
        let name = metric.name.strip_prefix("stall_")?.to_owned();
        Some(Share { name, percent: Some(metric.value.filter(|percent| *percent >= 0.05)?) })
    });
    let mut stalls: Vec<Share> = stalls.collect();
    stalls.sort_by(|a, b| b.percent.unwrap_or(0.0).total_cmp(&a.percent.unwrap_or(0.0)));
    let kernels = of("kernels").and_then(|kernels| kernels.value).unwrap_or(0.0) as u64;
    let metrics = metrics.into_iter().filter(|measured| measured.name != "kernels").collect();
    Gpu { name: row.subject.gpu.to_string(), kernels, utilisation, stalls, metrics, ..Gpu::default() }
}
