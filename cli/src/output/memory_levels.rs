//! What each level of memory moved: bytes, rate, how much of what it can deliver, hits.

use super::table::Lines;
use balar_protocol::Frequency;
use balar_protocol::statistics::KernelCounters;
use balar_record::metrics::rollup::{RollUp, pattern, roll_up};
use balar_record::metrics::{Place, covered, place_of_counter};
use balar_record::result::{RunRecord, ratio};
use std::collections::BTreeMap;

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Most levels that a summary shows.
const MOST: usize = 12;

/// A level: a row of units of one kind.
#[derive(Debug, PartialEq)]
struct Level {
    name: String,
    bytes: u64,
    /// Part of the time in which it delivered, over all units of the row.
    busy: Option<f64>,
    /// Hits and what they are part of: in a cache, or in open rows of a DRAM.
    hits: Option<(u64, u64)>,
    /// Is it measured while kernels ran, and not over the whole run?
    in_kernels: bool,
}

/// Picoseconds that levels are measured over.
struct Spans {
    run: u64,
    /// In which at least one of the chosen launches ran.
    kernels: u64,
}

impl Spans {
    fn of(record: &RunRecord) -> Spans {
        let timed = record.launches().iter().filter(|kernel| kernel.detail.is_timed());
        let kernels = covered(timed.map(|kernel| (kernel.start_ps, kernel.end_ps)).collect());
        Spans { run: record.sim_time.picoseconds(), kernels }
    }

    /// That of what launches count, or of what the whole run does.
    fn over(&self, in_kernels: bool) -> u64 {
        if in_kernels { self.kernels } else { self.run }
    }
}

/// The levels that moved anything, in a table; empty where there is none.
pub fn text(record: &RunRecord, width: Option<u16>) -> String {
    let rolled = roll_up(&record.statistics.rows);
    let spans = Spans::of(record);
    let levels = levels(record, &rolled, &spans);
    if levels.is_empty() {
        return String::new();
    }
    let number = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
    let rows = levels.into_iter().take(MOST).map(|level| {
        let (over, span) = if level.in_kernels { ("kernels", spans.kernels) } else { ("run", spans.run) };
        vec![
            level.name,
            format!("{:.3}", level.bytes as f64 / 1e6),
            number(ratio(level.bytes as f64 * 1e3, span as f64), 1),
            number(level.busy.map(|busy| busy * 100.0), 1),
            number(level.hits.and_then(|(hits, all)| ratio(hits as f64 * 100.0, all as f64)), 1),
            over.to_owned(),
        ]
    });
    let header = vec!["memory", "MB", "GB/s", "busy %", "hit %", "measured over"];
    Lines { header, left: vec![0, 5], droppable: vec![5], elastic: Some(0), rows: rows.collect() }.text(width)
}

/// Levels of the GPUs with how much of what they can deliver they did, in percent, and whether that is measured while kernels ran.
pub fn shares_of_peak(record: &RunRecord) -> Vec<(String, f64, bool)> {
    let rolled = roll_up(&record.statistics.rows);
    let spans = Spans::of(record);
    let of_gpu = |name: &str| {
        let mut gpus = record.node.gpus().iter().map(|gpu| pattern(&gpu.part) + ".");
        gpus.any(|gpu| name.starts_with(&gpu))
    };
    let levels = levels(record, &rolled, &spans).into_iter().filter(|level| of_gpu(&level.name));
    levels.filter_map(|level| Some((level.name, level.busy? * 100.0, level.in_kernels))).collect()
}

/// What the chosen launches count together, by the pattern of their GPUs' paths.
struct OfLaunches(BTreeMap<String, Vec<u64>>);

impl OfLaunches {
    fn new(record: &RunRecord) -> OfLaunches {
        let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for launch in record.launches().iter().filter(|launch| launch.detail.is_timed()) {
            let of_gpu = sums.entry(pattern(&launch.gpu)).or_insert_with(|| vec![0; KernelCounters::DEFINITIONS.len()]);
            for (sum, value) in of_gpu.iter_mut().zip(launch.counters.values()) {
                *sum = sum.saturating_add(value);
            }
        }
        OfLaunches(sums)
    }

    /// Those of the GPU that units are part of.
    fn of(&self, location: &str) -> Option<&[u64]> {
        let is_in = |gpu: &str| location.strip_prefix(gpu).is_some_and(|rest| rest.starts_with('.'));
        self.0.iter().find(|(gpu, _)| is_in(gpu)).map(|(_, sums)| sums.as_slice())
    }
}

/// The counters of one row of units: what launches count, where there are any; else what was counted over the whole run.
struct Counters<'a> {
    rows: &'a [RollUp],
    launches: Option<&'a [u64]>,
}

impl Counters<'_> {
    fn find(&self, what: &str) -> Option<&RollUp> {
        self.rows.iter().find(|counter| counter.what == what)
    }

    fn has(&self, whats: &[&str]) -> bool {
        whats.iter().all(|what| self.find(what).is_some())
    }

    /// The sums of several counters of units at a place together.
    fn sum(&self, place: Place, whats: &[&str]) -> u64 {
        let sum = |what: &&str| match self.launches {
            Some(launches) => launches.get(place_of_counter(place, what)?).copied(),
            None => self.find(what).map(|counter| counter.sum),
        };
        whats.iter().filter_map(sum).fold(0, u64::saturating_add)
    }
}

fn levels(record: &RunRecord, rolled: &[RollUp], spans: &Spans) -> Vec<Level> {
    let launches = OfLaunches::new(record);
    let groups = rolled.chunk_by(|row, next| row.location == next.location);
    let levels = groups.flat_map(|group| {
        let (location, units) = (group[0].location.as_str(), group[0].instances);
        let counters = Counters { rows: group, launches: launches.of(location) };
        let clock = record.node.clock(location);
        let in_kernels = counters.launches.is_some();
        let span = spans.over(in_kernels);
        if counters.has(&["l1_sectors_load", "l1_sectors_store"]) {
            let per_cycle = record.node.l1_sectors_per_cycle(location);
            l1_and_shared(location, units, &counters, (clock, per_cycle), spans)
        } else if let Some(facts) = record.node.crossbar(location) {
            let plane = |name: &str, flits: &str, outputs: u64, per_cycle: u64| {
                let flits = counters.sum(Place::Crossbar, &[flits]);
                Level {
                    name: format!("{location} {name}"),
                    bytes: facts.flit_bytes.saturating_mul(flits),
                    busy: busy_cycles(flits.div_ceil(per_cycle.max(1)), units.saturating_mul(outputs), clock, span),
                    hits: None,
                    in_kernels,
                }
            };
            vec![
                plane("requests", "flits_request", facts.slices, facts.slice_flits),
                plane("responses", "flits_response", facts.requesters, facts.requester_flits),
            ]
        } else if counters.has(&["sector_hits_read", "bytes", "data_busy_cycles"]) {
            let sum = |whats: &[&str]| counters.sum(Place::L2, whats);
            vec![Level {
                name: location.to_owned(),
                bytes: sum(&["bytes"]),
                busy: busy_cycles(sum(&["data_busy_cycles"]), units, clock, span),
                hits: Some((sum(&["sector_hits_read"]), sum(&["sectors_read"]))),
                in_kernels,
            }]
        } else if counters.has(&["row_hits", "busy_time"]) && location.ends_with(".channel[*]") {
            let sum = |whats: &[&str]| counters.sum(Place::Dram, whats);
            vec![Level {
                name: location.trim_end_matches(".channel[*]").to_owned(),
                bytes: SECTOR.saturating_mul(sum(&["sectors_read", "sectors_written"])),
                busy: ratio(sum(&["busy_time"]) as f64, (span.saturating_mul(units)) as f64),
                // Requests that found their row open.
                hits: Some((sum(&["row_hits"]), sum(&["row_hits", "row_misses", "row_conflicts"]))),
                in_kernels,
            }]
        } else if counters.has(&["messages", "bytes", "busy_time"]) {
            let sum = |what| counters.find(what).map_or(0, |counter| counter.sum);
            vec![Level {
                name: location.to_owned(),
                bytes: sum("bytes"),
                busy: ratio(sum("busy_time") as f64, (spans.run.saturating_mul(units)) as f64),
                hits: None,
                in_kernels: false,
            }]
        } else {
            Vec::new()
        }
    });
    let mut levels: Vec<Level> =
        levels.filter(|level| level.bytes > 0 || level.busy.is_some_and(|busy| busy > 0.0)).collect();
    // A link that carries commands alone says nothing beside one that carries data.
    let most = levels.iter().map(|level| level.bytes).max().unwrap_or(0);
    levels.retain(|level| level.bytes >= most / 1000);
    // From the cores outwards: what is measured in kernels first.
    levels.sort_by_key(|level| !level.in_kernels);
    levels
}

/// Part of the cycles of `units` units in `span` picoseconds.
fn busy_cycles(cycles: u64, units: u64, clock: Option<Frequency>, span: u64) -> Option<f64> {
    let ticks = span as f64 * 1e-12 * clock?.hertz() as f64;
    ratio(cycles as f64, ticks * units as f64)
}

fn l1_and_shared(
    location: &str,
    units: u64,
    counters: &Counters,
    (clock, per_cycle): (Option<Frequency>, Option<u64>),
    spans: &Spans,
) -> Vec<Level> {
    let sum = |whats: &[&str]| counters.sum(Place::Sm, whats);
    let sectors = sum(&["l1_sectors_load", "l1_sectors_store"]);
    // Sectors a cycle: as many as the L1 delivers are one busy cycle.
    let busy = busy_cycles(sectors, units, clock, spans.kernels).zip(per_cycle);
    let l1 = Level {
        name: format!("{location} L1"),
        bytes: SECTOR.saturating_mul(sectors),
        busy: busy.map(|(busy, per_cycle)| busy / per_cycle as f64),
        hits: Some((sum(&["l1_sector_hits_load"]), sum(&["l1_sectors_load"]))),
        in_kernels: true,
    };
    let wavefronts = sum(&["shared_wavefronts_load", "shared_wavefronts_store"]);
    let shared = Level {
        name: format!("{location} shared memory"),
        // Each of the 32 banks gives a word of 4 bytes in a wavefront, whether it is used or not.
        bytes: wavefronts.saturating_mul(32 * 4),
        busy: busy_cycles(wavefronts, units, clock, spans.kernels),
        hits: None,
        in_kernels: true,
    };
    vec![l1, shared]
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::statistics::{KernelRecord, StatisticRow, UnitCounters};
    use balar_record::sample::record;

    /// Sets what units count of the first launch.
    fn count_in_launches(record: &mut RunRecord, set: impl Fn(&mut UnitCounters)) {
        let kernels = record.statistics.kernels.iter().enumerate().map(|(index, mut kernel)| {
            if index == 0 {
                set(&mut kernel.counters.units);
            }
            kernel
        });
        record.statistics.kernels = kernels.collect();
    }

    /// The record, in which three kernels run for 100, 400 and 140 cycles of 762 ps, with four channels of memory and a link.
    fn with_memory() -> RunRecord {
        let mut record = record();
        let mut row = |location: &str, what, value, unit| {
            record.statistics.rows.push(StatisticRow {
                location: location.to_owned(),
                what,
                value,
                unit,
                maximum: false,
            });
        };
        // Of the run, half as much again as of the kernels.
        for channel in 0..4 {
            let location = format!("gpu.hbm[0].channel[{channel}]");
            for (what, value) in [
                ("row_hits", 4),
                ("row_misses", 2),
                ("row_conflicts", 1),
                ("sectors_read", 150),
                ("sectors_written", 30),
                ("busy_time", 640 * 762),
            ] {
                row(&location, what, value, "");
            }
        }
        count_in_launches(&mut record, |units| {
            (units.dram_row_hits, units.dram_row_misses, units.dram_row_conflicts) = (12, 4, 4);
            (units.dram_sectors_read, units.dram_sectors_written) = (400, 80);
            units.dram_busy_time = 4 * 640 * 762 / 2;
        });
        let mut row = |location: &str, what, value, unit| {
            let location = location.to_owned();
            record.statistics.rows.push(StatisticRow { location, what, value, unit, maximum: false });
        };
        for (what, value) in [("messages", 3), ("bytes", 6000), ("busy_time", 1_500_000)] {
            row("link.to_host", what, value, "");
        }
        record
    }

    #[test]
    fn levels_of_a_gpu_are_measured_while_its_kernels_run() {
        let text = text(&with_memory(), None);
        let cells = |start: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{start}: {text}"));
            line.split_whitespace().map(str::to_owned).collect()
        };
        // 4 x 120 sectors of 32 bytes in 640 cycles of 762 ps, half of which each channel was busy; 3 of 5 requests hit an open row.
        assert_eq!(cells("gpu.hbm[*]"), ["gpu.hbm[*]", "0.015", "31.5", "50.0", "60.0", "kernels"]);
        // 6000 bytes in the 3 us of the run, half of which the link was busy.
        assert_eq!(cells("link.to_host"), ["link.to_host", "0.006", "2.0", "50.0", "-", "run"]);
    }

    #[test]
    fn both_ways_through_the_crossbar_have_a_row() {
        let mut record = with_memory();
        let topology =
            crate::simulation::node::load("v100_node", &[], balar_actors::kinds::UNITS).expect("it is built in");
        record.node = balar_record::metrics::node_facts::NodeFacts::of(&topology);
        let outputs = record.node.crossbar("gpu.crossbar").expect("a crossbar");
        // 84 SMs and the copy engine; 32 slices.
        assert_eq!((outputs.slices, outputs.requesters, outputs.flit_bytes), (32, 85, 32));
        let span_ps: u64 = 640 * 762;
        let cycles = span_ps * 1200 / 1_000_000;
        for (what, value) in [("flits_request", 1_000_000), ("flits_response", 3_000_000)] {
            let location = "gpu.crossbar".to_owned();
            record.statistics.rows.push(StatisticRow { location, what, value, unit: "", maximum: false });
        }
        // Half and a quarter of what all outputs pass on in these cycles.
        count_in_launches(&mut record, |units| {
            units.crossbar_flits_request = 32 * outputs.slice_flits * cycles / 2;
            units.crossbar_flits_response = 85 * outputs.requester_flits * cycles / 4;
        });
        let text = text(&record, None);
        let cells = |start: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{start}: {text}"));
            line.split_whitespace().skip(2).collect()
        };
        // 32 bytes a flit.
        let megabytes = |flits: u64| format!("{:.3}", (32 * flits) as f64 / 1e6);
        let [requests, responses] = ["gpu.crossbar requests", "gpu.crossbar responses"].map(cells);
        assert_eq!((requests[0], requests[2]), (&*megabytes(16 * outputs.slice_flits * cycles), "50.0"));
        assert_eq!((responses[0], responses[4]), (&*megabytes(85 * outputs.requester_flits * cycles / 4), "kernels"));
    }

    #[test]
    fn overlapping_kernels_are_counted_once() {
        let mut record = record();
        let times = [(10, 30), (20, 40), (50, 60)];
        let kernels = record.statistics.kernels.iter().zip(times);
        record.statistics.kernels =
            kernels.map(|(kernel, (start_ps, end_ps))| KernelRecord { start_ps, end_ps, ..kernel }).collect();
        assert_eq!(Spans::of(&record).kernels, 30 + 10);
    }
}
