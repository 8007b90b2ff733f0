//! Values of metrics, for a run and for each of its launches.

use super::catalogue::METRICS;
use super::formula::Parts;
use super::formula::{Fact, Formula, Value};
use super::launch_counters::place_of_counter;
use super::metric::{Metric, RollUpKind};
use super::occupancy::Occupancy;
use super::place::Place;
use super::place::is_in;
use crate::metrics::node_facts::NodeFacts;
use balar_protocol::kernel_records::KernelRecords;
use balar_protocol::statistics::{KernelRecord, StatisticRow};
use balar_protocol::{GpuDescription, SimTime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A metric over units that share a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The part of their paths that they share: "gpu.sm\[*\]".
    pub location: String,
    /// Units, or launches.
    pub instances: u64,
    /// Their sum; none for a quotient.
    pub sum: Option<Value>,
    /// The mean; for quotients, the quotient of the sums.
    pub avg: Option<Value>,
    /// The least.
    pub min: Option<Value>,
    /// The greatest.
    pub max: Option<Value>,
}

impl Reading {
    fn of(location: String, parts: &[Parts]) -> Option<Reading> {
        let all = parts.iter().copied().reduce(Parts::and)?;
        let values = || parts.iter().filter_map(|parts| parts.value());
        let by = |a: &Value, b: &Value| a.real().total_cmp(&b.real());
        let sum = if matches!(all, Parts::Ratio(..)) { None } else { all.value() };
        let mean = sum.map(|sum| Value::Real(sum.real() / parts.len() as f64));
        Some(Reading {
            location,
            instances: parts.len() as u64,
            sum,
            avg: mean.or_else(|| all.value()),
            min: values().min_by(by),
            max: values().max_by(by),
        })
    }

    /// One of its values.
    pub fn rolled_up(&self, kind: RollUpKind) -> Option<Value> {
        match kind {
            RollUpKind::Sum => self.sum,
            RollUpKind::Avg => self.avg,
            RollUpKind::Min => self.min,
            RollUpKind::Max => self.max,
        }
    }
}

/// A measurement: rows of statistics, at the end of a run or at any time in it, and the launches until then.
pub struct Measurement<'a> {
    node: &'a NodeFacts,
    launches: &'a KernelRecords,
    /// Rows of each unit, with its place.
    units: Vec<(Place, &'a [StatisticRow])>,
    /// By GPU: picoseconds in which its kernels ran.
    kernel_time: BTreeMap<&'a str, u64>,
    /// Picoseconds until now.
    time: u64,
    /// Do copies go through the L2? Then the L2 and the memory below it are used while no kernel runs.
    copies_use_l2: bool,
}

impl<'a> Measurement<'a> {
    /// The measurement of these rows, in which rows of a unit follow each other, and of all launches on the node, at a time.
    pub fn new(
        rows: &'a [StatisticRow],
        launches: &'a KernelRecords,
        node: &'a NodeFacts,
        time: SimTime,
    ) -> Measurement<'a> {
        let gpus: Vec<&str> = node.gpus().iter().map(|gpu| gpu.part.as_str()).collect();
        let units = rows.chunk_by(|row, next| row.location == next.location).filter_map(|unit| {
            let has = |counter: &str| unit.iter().any(|row| row.what == counter);
            let place = Place::ALL.into_iter().find(|place| place.holds(&unit[0].location, has, &gpus))?;
            Some((place, unit))
        });
        let kernel_time = gpus.iter().map(|gpu| (*gpu, time_of(launches, gpu))).collect();
        let copies_use_l2 = copies_use_l2(rows.iter().map(|row| (row.what, row.value)));
        Measurement { node, launches, units: units.collect(), kernel_time, time: time.picoseconds(), copies_use_l2 }
    }

    /// A metric over the units at locations that are chosen; those with the same label have one reading. Empty where nothing gives it.
    pub fn readings(
        &self,
        metric: &Metric,
        chosen: impl Fn(&str) -> bool,
        label: impl Fn(&str) -> String,
    ) -> Vec<Reading> {
        let mut groups: Vec<(String, Vec<Parts>)> = Vec::new();
        let mut add = |location: &str, parts: Option<Parts>| {
            let Some(parts) = parts else { return };
            let label = label(location);
            match groups.iter_mut().find(|(known, _)| *known == label) {
                Some((_, known)) => known.push(parts),
                None => groups.push((label, vec![parts])),
            }
        };
        if let Formula::Greatest(_) = metric.formula {
            for gpu in self.node.gpus().iter().filter(|gpu| chosen(&gpu.part)) {
                let launches = self.launches.iter().filter(|launch| *launch.gpu == *gpu.part);
                let value = self.over_launches(metric, launches);
                add(&gpu.part, value.map(|value| Parts::Ratio(value.real(), 1.0)));
            }
        } else if metric.place == Place::Launch {
            let launches = self.launches.iter().filter(|launch| chosen(&launch.gpu));
            launches.for_each(|launch| add(&launch.gpu, self.parts_of_launch(metric, &metric.formula, &launch)));
        }
        for (place, rows) in &self.units {
            let location = rows[0].location.as_str();
            if *place == metric.place && chosen(location) {
                add(location, self.parts_of_unit(metric, rows));
            }
        }
        // What copies use as well is measured over kernels where all units of the kind are read together: those of one unit cannot be told
        // apart from the copies'.
        let is_share = matches!(metric.formula, Formula::Ratio { .. } | Formula::Rate(..));
        if is_below_sms(metric.place) && self.copies_use_l2 && is_share {
            let all = self.units.iter().filter(|(place, _)| *place == metric.place).count();
            if let [(location, parts)] = &groups[..]
                && parts.len() == all
                && let Some(value) = self.over_launches(metric, self.launches.iter())
            {
                let (location, instances) = (location.clone(), all as u64);
                let sum = matches!(metric.formula, Formula::Rate(..)).then_some(value);
                return vec![Reading { location, instances, sum, avg: Some(value), min: None, max: None }];
            }
        }
        groups.into_iter().filter_map(|(location, parts)| Reading::of(location, &parts)).collect()
    }

    /// A metric over launches together: sums, and quotients of sums; a rate is that of their bytes in the sum of their times.
    pub fn over_launches(&self, metric: &Metric, launches: impl Iterator<Item = KernelRecord>) -> Option<Value> {
        if let Formula::Greatest(names) = metric.formula {
            let launches: Vec<KernelRecord> = launches.collect();
            return greatest(names, |part| self.sums_over_launches(part, launches.iter().cloned()));
        }
        self.sums_over_launches(metric, launches)
    }

    fn sums_over_launches(&self, metric: &Metric, launches: impl Iterator<Item = KernelRecord>) -> Option<Value> {
        let formula = metric.launch_formula()?;
        let timed = launches.filter(|launch| launch.detail.is_timed());
        let parts = timed.filter_map(|launch| {
            let seconds = launch.duration_ps()? as f64 * 1e-12;
            Some(match self.parts_of_launch(metric, &formula, &launch)? {
                Parts::Rate(rate) => Parts::Ratio(rate * seconds, seconds),
                parts => parts,
            })
        });
        parts.reduce(Parts::and)?.value()
    }

    /// A metric over launches, one reading for each GPU that they ran on. Empty where launches do not have it.
    pub fn readings_of_launches(&self, metric: &Metric, launches: impl Iterator<Item = KernelRecord>) -> Vec<Reading> {
        let Some(formula) = metric.launch_formula() else { return Vec::new() };
        by_gpu(launches, |launch| self.parts_of_launch(metric, &formula, launch))
    }

    /// A counter of units at a place, of launches: one reading for each GPU that they ran on. Empty where launches do not have it.
    pub fn counter_of_launches(
        &self,
        place: Place,
        counter: &str,
        launches: impl Iterator<Item = KernelRecord>,
    ) -> Vec<Reading> {
        let Some(at) = place_of_counter(place, counter) else { return Vec::new() };
        by_gpu(launches, |launch| launch.known_counters().nth(at).flatten().map(Parts::Sum))
    }

    /// The place of the unit at a location; `None` where no unit with a place is there.
    pub fn place_of(&self, location: &str) -> Option<Place> {
        self.units.iter().find(|(_, rows)| rows[0].location == location).map(|(place, _)| *place)
    }

    /// A metric over all units of the node together.
    pub fn total(&self, metric: &Metric) -> Option<Reading> {
        self.readings(metric, |_| true, |_| String::new()).pop()
    }

    /// A metric of a launch. A launch that is the only one also has the counts of its SMs.
    pub fn of_launch(&self, metric: &Metric, launch: &KernelRecord) -> Option<Value> {
        if let Formula::Greatest(names) = metric.formula {
            return greatest(names, |part| self.parts_of_launch(part, &part.launch_formula()?, launch)?.value());
        }
        if let Some(formula) = metric.launch_formula() {
            return self.parts_of_launch(metric, &formula, launch)?.value();
        }
        let is_alone =
            self.launches.len() == 1 && launch.completed && launch.detail.is_timed() && metric.place == Place::Sm;
        let reading = is_alone.then(|| self.total(metric)).flatten()?;
        reading.rolled_up(metric.usual_roll_up())
    }

    fn parts_of_unit(&self, metric: &Metric, rows: &[StatisticRow]) -> Option<Parts> {
        let location = rows[0].location.as_str();
        let counter = |name: &str| rows.iter().find(|row| row.what == name).map(|row| row.value);
        let gpu = self.node.gpus().iter().find(|gpu| is_in(location, &gpu.part));
        let all = self.copies_use_l2 && metric.place != Place::Sm;
        let kernel_time = || self.kernel_time.get(gpu?.part.as_str()).copied();
        let seconds = || if all { Some(self.time) } else { kernel_time() }.map(|time| time as f64 * 1e-12);
        metric.formula.parts(counter, |fact| match fact {
            Fact::MeasuredSeconds => seconds(),
            Fact::MeasuredCycles => Some(seconds()? * self.node.clock(location)?.hertz() as f64),
            Fact::SubCores => self.node.sub_cores(location).map(|sub_cores| sub_cores as f64),
            Fact::L1SectorsPerCycle => self.node.l1_sectors_per_cycle(location).map(|sectors| sectors as f64),
            Fact::SmWarps | Fact::Sms => fact_of_gpu(fact, gpu?),
        })
    }

    fn parts_of_launch(&self, metric: &Metric, formula: &Formula, launch: &KernelRecord) -> Option<Parts> {
        let gpu = self.node.gpus().iter().find(|gpu| *gpu.part == *launch.gpu);
        let number = |name: &str| number_of_launch(metric.place, name, launch, gpu);
        let seconds = || Some(launch.duration_ps()? as f64 * 1e-12);
        // Below the SMs, all units of a kind together are measured for as long as the launch took.
        let is_below = is_below_sms(metric.place);
        let units = || self.units_of(metric.place, &launch.gpu);
        formula.parts(number, |fact| match fact {
            Fact::MeasuredSeconds if is_below && matches!(formula, Formula::Ratio { .. }) => {
                Some(seconds()? * units().count() as f64)
            }
            Fact::MeasuredSeconds => seconds(),
            Fact::MeasuredCycles if is_below => {
                let clocks = units().filter_map(|location| Some(self.node.clock(location)?.hertz() as f64));
                Some(seconds()? * clocks.sum::<f64>())
            }
            Fact::MeasuredCycles => Some(launch.timed_cycles()? as f64 * f64::from(gpu?.sm_count())),
            Fact::SubCores => self.node.sub_cores(self.sm_of(&launch.gpu)?).map(|sub_cores| sub_cores as f64),
            Fact::L1SectorsPerCycle => {
                self.node.l1_sectors_per_cycle(self.sm_of(&launch.gpu)?).map(|sectors| sectors as f64)
            }
            Fact::SmWarps | Fact::Sms => fact_of_gpu(fact, gpu?),
        })
    }

    /// An SM of a GPU.
    fn sm_of(&self, gpu: &str) -> Option<&str> {
        self.units_of(Place::Sm, gpu).next()
    }

    /// The units of a GPU at a place.
    fn units_of(&self, place: Place, gpu: &str) -> impl Iterator<Item = &str> {
        let units = self.units.iter().filter(move |(other, _)| *other == place);
        units.map(|(_, rows)| rows[0].location.as_str()).filter(move |location| is_in(location, gpu))
    }
}

/// The greatest value of the metrics that have these names and a value.
fn greatest(names: &[&str], value: impl Fn(&Metric) -> Option<Value>) -> Option<Value> {
    let parts = names.iter().filter_map(|name| METRICS.iter().find(|metric| metric.name == *name));
    parts.filter_map(value).max_by(|a, b| a.real().total_cmp(&b.real()))
}

/// What launches have, one reading for each GPU that they ran on.
fn by_gpu(
    launches: impl Iterator<Item = KernelRecord>,
    parts_of: impl Fn(&KernelRecord) -> Option<Parts>,
) -> Vec<Reading> {
    let mut of_gpus: Vec<(Arc<str>, Vec<Parts>)> = Vec::new();
    for launch in launches {
        let Some(parts) = parts_of(&launch) else { continue };
        match of_gpus.iter_mut().find(|(gpu, _)| *gpu == launch.gpu) {
            Some((_, known)) => known.push(parts),
            None => of_gpus.push((launch.gpu, vec![parts])),
        }
    }
    of_gpus.into_iter().filter_map(|(gpu, parts)| Reading::of(gpu.to_string(), &parts)).collect()
}

/// Is it what SMs share: crossbar, L2, memory?
fn is_below_sms(place: Place) -> bool {
    matches!(place, Place::L2 | Place::Crossbar | Place::Dram)
}

/// The facts of the GPU about its SMs.
fn fact_of_gpu(fact: Fact, gpu: &GpuDescription) -> Option<f64> {
    match fact {
        Fact::SmWarps => Some(f64::from(gpu.smallest_sm()?.resources.warps)),
        Fact::Sms => Some(f64::from(gpu.sm_count())),
        _ => None,
    }
}

/// A counter of a launch, or another number that is known of it.
fn number_of_launch(place: Place, name: &str, launch: &KernelRecord, gpu: Option<&GpuDescription>) -> Option<u64> {
    let product = |extents: [u32; 3]| extents.iter().fold(1u64, |all, extent| all.saturating_mul(u64::from(*extent)));
    let occupancy = || Some(Occupancy::of(launch, &gpu?.smallest_sm()?, gpu?.sm_count()));
    // A resource that a CTA does not take does not limit it.
    let limit = |ctas: u32| (ctas < u32::MAX).then_some(u64::from(ctas));
    Some(match name {
        "duration_ps" => launch.duration_ps()?,
        "cycles" => launch.timed_cycles()?,
        "sm_cycles" => launch.timed_cycles()?.saturating_mul(u64::from(gpu?.sm_count())),
        "grid_size" => product(launch.grid),
        "block_size" => product(launch.block),
        "threads" => product(launch.grid).saturating_mul(product(launch.block)),
        "registers_per_thread" => launch.registers_per_thread.into(),
        "shared_bytes" => launch.shared_bytes.into(),
        "occupancy_limit_registers" => limit(occupancy()?.by_registers)?,
        "occupancy_limit_shared_memory" => limit(occupancy()?.by_shared_memory)?,
        "occupancy_limit_warps" => limit(occupancy()?.by_warps)?,
        "occupancy_limit_ctas" => limit(occupancy()?.by_ctas)?,
        "occupancy_ctas" => occupancy()?.ctas().into(),
        "occupancy_warps" => occupancy()?.warps().into(),
        _ => {
            let at = place_of_counter(place, name)?;
            launch.known_counters().nth(at)??
        }
    })
}

/// Picoseconds in which at least one kernel ran on a GPU.
fn time_of(launches: &KernelRecords, gpu: &str) -> u64 {
    let launches = launches.iter().filter(|launch| &*launch.gpu == gpu && launch.detail.is_timed());
    covered(launches.map(|launch| (launch.start_ps, launch.end_ps)).collect())
}

/// Do copy engines move lines through the L2, by the counters of all units?
pub fn copies_use_l2<'a>(mut counters: impl Iterator<Item = (&'a str, u64)>) -> bool {
    counters.any(|(what, value)| matches!(what, "line_loads" | "line_stores") && value > 0)
}

/// How much of time some spans cover together.
pub fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut time, mut end) = (0, 0);
    for (start, stop) in spans {
        time += stop.saturating_sub(start.max(end));
        end = end.max(stop);
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::find;
    use crate::metrics::rollup::pattern;
    use crate::sample::record;
    use balar_protocol::statistics::UnitCounters;

    /// Two SMs of a V100's GPU with 8 and 5 warps, and launches of 100, 400 and 140 cycles of 762 ps.
    fn with_node() -> crate::result::RunRecord {
        let mut record = record();
        let topology = crate::sample::node("v100_node");
        record.node = NodeFacts::of(&topology);
        let mut row = |location: &str, what, value| {
            let location = location.to_owned();
            let at = record.statistics.rows.iter().rposition(|row| row.location == location).map_or(0, |at| at + 1);
            let row = StatisticRow { location, what, value, unit: "", maximum: false };
            record.statistics.rows.insert(at, row);
        };
        for (sm, active, warps) in [(0, 100, 1600), (1, 0, 0)] {
            row(&format!("gpu.sm[{sm}]"), "cycles_active", active);
            row(&format!("gpu.sm[{sm}]"), "warp_cycles_active", warps);
        }
        record
    }

    fn metric(name: &str) -> &'static Metric {
        find(name).first().unwrap_or_else(|| panic!("{name}")).metric
    }

    #[test]
    fn counts_have_four_roll_ups_and_quotients_are_those_of_sums() {
        let record = with_node();
        let measured =
            Measurement::new(&record.statistics.rows, &record.statistics.kernels, &record.node, record.sim_time);
        let of = |name: &str| measured.readings(metric(name), |_| true, pattern).pop().expect("it is counted");
        let warps = of("warps_launched");
        assert_eq!((warps.location.as_str(), warps.instances), ("gpu.sm[*]", 2));
        let (sum, avg) = (Some(Value::Count(13)), Some(Value::Real(6.5)));
        assert_eq!(
            (warps.sum, warps.avg, warps.min, warps.max),
            (sum, avg, Some(Value::Count(5)), Some(Value::Count(8)))
        );
        // 1600 warp-cycles in 100 cycles with 64 warp slots; the other SM was never active.
        let occupancy = of("sm__warps_active.avg.pct_of_peak_sustained_active");
        assert_eq!(
            (occupancy.sum, occupancy.avg, occupancy.min),
            (None, Some(Value::Real(25.0)), Some(Value::Real(25.0)))
        );
        // The 640 cycles of three launches, 100 of them on one SM of two.
        let Some(Value::Real(efficiency)) = of("sm_efficiency").avg else { panic!("a quotient") };
        assert!((efficiency - 100.0 * 100.0 / (2.0 * 640.0 * 762e-12 * 1312e6)).abs() < 1e-9, "{efficiency}");
        assert_eq!(measured.readings(metric("l2.bytes"), |_| true, pattern), [], "no unit counts that");
        let one = measured.readings(metric("warps_launched"), |location| location == "gpu.sm[1]", str::to_owned);
        assert_eq!((one.len(), one[0].sum), (1, Some(Value::Count(5))));
    }

    /// 4000 bytes in 640 cycles of 762 ps; 3000 of the bytes are the kernels'.
    #[test]
    fn what_copies_use_is_told_apart_from_them() {
        let mut record = with_node();
        let mut row = |location: &str, what, value| {
            record.statistics.rows.push(StatisticRow {
                location: location.to_owned(),
                what,
                value,
                unit: "",
                maximum: false,
            });
        };
        ["sector_hits_read", "sectors_filled"].into_iter().for_each(|what| row("gpu.l2[7]", what, 0));
        row("gpu.l2[7]", "bytes", 4000);
        let rate = |record: &crate::result::RunRecord| {
            record.measurement().total(metric("l2.throughput")).and_then(|reading| reading.sum).map_or(0.0, Value::real)
        };
        assert!((rate(&record) - 4000.0 / 487.68).abs() < 1e-9, "{}", rate(&record));
        let location = "gpu.copy_engine.to_host".to_owned();
        record.statistics.rows.push(StatisticRow { location, what: "line_loads", value: 1, unit: "", maximum: false });
        let kernels = record.statistics.kernels.iter().map(|mut kernel| {
            kernel.counters.units.l2_bytes = 1000;
            kernel
        });
        record.statistics.kernels = kernels.collect();
        assert!((rate(&record) - 3000.0 / 487.68).abs() < 1e-9, "{}", rate(&record));
        // Nothing is known of one slice of several but its counts in the run's 3 us.
        let location = "gpu.l2[8]".to_owned();
        for what in ["sector_hits_read", "sectors_filled", "bytes"] {
            record.statistics.rows.push(StatisticRow {
                location: location.clone(),
                what,
                value: 6,
                unit: "",
                maximum: false,
            });
        }
        let measured = record.measurement();
        let one = measured.readings(metric("l2.throughput"), |location| location == "gpu.l2[8]", str::to_owned);
        assert_eq!((one.len(), one[0].sum), (1, Some(Value::Real(6e-9 / 3e-6))));
    }

    #[test]
    fn launches_have_their_own_values() {
        let record = with_node();
        let measured =
            Measurement::new(&record.statistics.rows, &record.statistics.kernels, &record.node, record.sim_time);
        let mut launch = record.statistics.kernels.get(1).expect("three launches");
        // One slice of L2 at 1312 MHz, as there are rows of one; four warps on each of the SMs' 300 active cycles.
        launch.counters.units = UnitCounters {
            cycles_active: 300,
            warp_cycles_active: 1200,
            l2_sectors_read: 80,
            l2_sector_hits_read: 20,
            l2_bytes: 4000,
            dram_sectors_written: 7,
            ..UnitCounters::default()
        };
        let of = |name: &str| measured.of_launch(metric(name), &launch);
        for (name, value) in [
            ("warps_launched", Value::Count(64)),
            ("gpc__cycles_elapsed.max", Value::Count(400)),
            ("elapsed_cycles_sm", Value::Count(84 * 400)),
            ("gpu__time_duration.sum", Value::Count(400 * 762)),
            ("launch__grid_size", Value::Count(8)),
            ("launch__thread_count", Value::Count(8 * 256)),
            ("inst_per_warp", Value::Real(800.0 / 64.0)),
            ("gpu.ipc", Value::Real(2.0)),
            // 8192 registers and 2 KiB of a CTA of 8 warps.
            ("launch.occupancy_limit_registers", Value::Count(8)),
            ("sm.theoretical_occupancy", Value::Real(100.0)),
            ("active_cycles", Value::Count(300)),
            ("sm.occupancy", Value::Real(100.0 * 1200.0 / (300.0 * 64.0))),
            ("l2.hit_rate_rd", Value::Real(25.0)),
            ("lts__t_bytes", Value::Count(4000)),
            ("dram__bytes_write.sum", Value::Count(7 * 32)),
        ] {
            assert_eq!(of(name), Some(value), "{name}");
        }
        // Two launches together: 1200 warp-cycles in 300 cycles, and nothing in none.
        let two = [launch.clone(), record.statistics.kernels.get(0).expect("three launches")];
        let over = |name: &str| measured.over_launches(metric(name), two.iter().cloned());
        assert_eq!(over("sm.occupancy"), Some(Value::Real(6.25)));
        let Some(Value::Real(rate)) = over("l2.throughput") else { panic!("a rate") };
        assert!((rate - 4000.0 / (500.0 * 0.762)).abs() < 1e-9, "{rate}");
        let Some(Value::Real(rate)) = of("l2.throughput") else { panic!("a rate") };
        assert!((rate - 4000.0 / (400.0 * 0.762)).abs() < 1e-9, "{rate}");
    }

    /// Names of ncu, nvprof and GPGPU-Sim, by hand: 400 cycles in 400 x 762 ps, 300 and 500 warp-cycles of waiting for 200 issues, and of L1,
    /// L2 and memory the busiest one.
    #[test]
    fn names_of_other_tools_have_their_values() {
        let mut record = with_node();
        for what in ["sector_hits_read", "sectors_filled"] {
            let location = "gpu.l2[7]".to_owned();
            record.statistics.rows.push(StatisticRow { location, what, value: 0, unit: "", maximum: false });
        }
        let measured = record.measurement();
        let mut busy = record.statistics.kernels.get(1).expect("three launches");
        busy.counters.units.warp_cycles_active = 1200;
        busy.counters.units.inst_issued = 160;
        busy.counters.units.stall_none_selected = 200;
        busy.counters.units.stall_long_scoreboard = 300;
        busy.counters.units.stall_barrier = 500;
        busy.counters.ctas.l1_sectors_load = 4000;
        busy.counters.ctas.l1_bytes_load = 64_000;
        busy.counters.ctas.l1_sectors_store = 100;
        busy.counters.ctas.l1_bytes_store = 400;
        busy.counters.ctas.shared_memory_bank_conflicts = 50;
        busy.counters.ctas.shared_memory_bank_conflicts_load = 31;
        busy.counters.units.l2_data_busy_cycles = 60;
        let real = |name: &str| measured.of_launch(metric(name), &busy).map_or(f64::NAN, Value::real);
        for (name, value) in [
            ("gpc__cycles_elapsed.avg.per_second", 400.0 / (400.0 * 762e-12)),
            ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 1.5),
            ("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", 2.5),
            ("smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", 1.0),
            ("smsp__average_warp_latency_per_inst_issued.ratio", 1200.0 / 160.0),
            // Four schedulers of each of 84 SMs in 400 cycles.
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", 100.0 * 200.0 / (84.0 * 4.0 * 400.0)),
            // 60 cycles of one slice, which has 1312 MHz; the L1s delivered 4100 of 84 x 400 x 4 sectors.
            (
                "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                100.0 * 60.0 / (400.0 * 762e-12 * 1312e6),
            ),
            ("gpu_tot_sim_cycle", 400.0),
            // 64000 bytes in 4000 sectors of 32, 400 in 100.
            ("gld_efficiency", 50.0),
            ("gst_efficiency", 12.5),
            ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", 31.0),
            ("shared_st_bank_conflict", 19.0),
            // 19200 thread instructions.
            ("gpu_tot_ipc", 48.0),
        ] {
            let found = real(name);
            assert!((found - value).abs() < 1e-9 * value.abs(), "{name}: {found}, not {value}");
        }
    }
}
