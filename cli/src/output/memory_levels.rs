//! What each level of memory moved: bytes, rate, how much of what it can deliver, hits.

use super::table::Lines;
use crate::metrics::{copies_use_l2, covered};
use crate::result::{RunRecord, ratio};
use crate::rollup::{RollUp, pattern, roll_up};
use balar_protocol::Frequency;
use std::collections::BTreeSet;

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
    kernels: u64,
}

/// The levels that moved anything, in a table; empty where there is none.
pub fn text(record: &RunRecord, width: Option<u16>) -> String {
    let rolled = roll_up(&record.statistics.rows);
    let spans = Spans { run: record.sim_time.picoseconds(), kernels: kernel_time(record) };
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
    let spans = Spans { run: record.sim_time.picoseconds(), kernels: kernel_time(record) };
    let of_gpu = |name: &str| {
        let mut gpus = record.node.gpus().iter().map(|gpu| pattern(&gpu.part) + ".");
        gpus.any(|gpu| name.starts_with(&gpu))
    };
    let levels = levels(record, &rolled, &spans).into_iter().filter(|level| of_gpu(&level.name));
    levels.filter_map(|level| Some((level.name, level.busy? * 100.0, level.in_kernels))).collect()
}

/// Picoseconds in which at least one kernel ran.
fn kernel_time(record: &RunRecord) -> u64 {
    let timed = record.statistics.kernels.iter().filter(|kernel| kernel.detail.is_timed());
    covered(timed.map(|kernel| (kernel.start_ps, kernel.end_ps)).collect())
}

/// The counters of one row of units.
struct Counters<'a>(&'a [RollUp]);

impl Counters<'_> {
    fn find(&self, what: &str) -> Option<&RollUp> {
        self.0.iter().find(|counter| counter.what == what)
    }

    fn has(&self, whats: &[&str]) -> bool {
        whats.iter().all(|what| self.find(what).is_some())
    }

    /// The sums of several counters together.
    fn sum(&self, whats: &[&str]) -> u64 {
        whats.iter().filter_map(|what| self.find(what)).map(|counter| counter.sum).fold(0, u64::saturating_add)
    }
}

fn levels(record: &RunRecord, rolled: &[RollUp], spans: &Spans) -> Vec<Level> {
    let gpus: BTreeSet<String> = record.statistics.kernels.gpus().map(pattern).collect();
    // Copies through the L2 use it, and what is below, while no kernel runs.
    let copies_use_it = copies_use_l2(rolled.iter().map(|row| (row.what, row.sum)));
    let groups = rolled.chunk_by(|row, next| row.location == next.location);
    let levels = groups.flat_map(|group| {
        let (location, units) = (group[0].location.as_str(), group[0].instances);
        let of_gpu =
            gpus.iter().any(|gpu| location.strip_prefix(gpu.as_str()).is_some_and(|rest| rest.starts_with('.')));
        let counters = Counters(group);
        let clock = record.node.clock(location);
        let below_l1 = of_gpu && !copies_use_it;
        if counters.has(&["l1_sectors_load", "l1_sectors_store"]) {
            let per_cycle = record.node.l1_sectors_per_cycle(location);
            l1_and_shared(location, units, &counters, (clock, per_cycle), spans)
        } else if let Some(facts) = record.node.crossbar(location) {
            let span = if below_l1 { spans.kernels } else { spans.run };
            let plane = |name: &str, flits: &str, busy: &str, outputs: u64| Level {
                name: format!("{location} {name}"),
                bytes: facts.flit_bytes.saturating_mul(counters.sum(&[flits])),
                busy: busy_cycles(counters.sum(&[busy]), units.saturating_mul(outputs), clock, span),
                hits: None,
                in_kernels: below_l1,
            };
            vec![
                plane("requests", "flits_request", "output_busy_cycles_request", facts.slices),
                plane("responses", "flits_response", "output_busy_cycles_response", facts.requesters),
            ]
        } else if counters.has(&["sector_hits_read", "bytes", "data_busy_cycles"]) {
            let span = if below_l1 { spans.kernels } else { spans.run };
            vec![Level {
                name: location.to_owned(),
                bytes: counters.sum(&["bytes"]),
                busy: busy_cycles(counters.sum(&["data_busy_cycles"]), units, clock, span),
                hits: Some((counters.sum(&["sector_hits_read"]), counters.sum(&["sectors_read"]))),
                in_kernels: below_l1,
            }]
        } else if counters.has(&["row_hits", "busy_time"]) && location.ends_with(".channel[*]") {
            let span = if below_l1 { spans.kernels } else { spans.run };
            vec![Level {
                name: location.trim_end_matches(".channel[*]").to_owned(),
                bytes: SECTOR.saturating_mul(counters.sum(&["sectors_read", "sectors_written"])),
                busy: ratio(counters.sum(&["busy_time"]) as f64, (span.saturating_mul(units)) as f64),
                // Requests that found their row open.
                hits: Some((counters.sum(&["row_hits"]), counters.sum(&["row_hits", "row_misses", "row_conflicts"]))),
                in_kernels: below_l1,
            }]
        } else if counters.has(&["messages", "bytes", "busy_time"]) {
            vec![Level {
                name: location.to_owned(),
                bytes: counters.sum(&["bytes"]),
                busy: ratio(counters.sum(&["busy_time"]) as f64, (spans.run.saturating_mul(units)) as f64),
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
    let sectors = counters.sum(&["l1_sectors_load", "l1_sectors_store"]);
    // Sectors a cycle: as many as the L1 delivers are one busy cycle.
    let busy = busy_cycles(sectors, units, clock, spans.kernels).zip(per_cycle);
    let l1 = Level {
        name: format!("{location} L1"),
        bytes: SECTOR.saturating_mul(sectors),
        busy: busy.map(|(busy, per_cycle)| busy / per_cycle as f64),
        hits: Some((counters.sum(&["l1_sector_hits_load"]), counters.sum(&["l1_sectors_load"]))),
        in_kernels: true,
    };
    let wavefronts = counters.sum(&["shared_wavefronts_load", "shared_wavefronts_store"]);
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
    use crate::result::tests::record;
    use balar_protocol::statistics::KernelRecord;
    use balar_protocol::statistics::StatisticRow;

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
        for channel in 0..4 {
            let location = format!("gpu.hbm[0].channel[{channel}]");
            row(&location, "row_hits", 3, "request");
            row(&location, "row_misses", 1, "request");
            row(&location, "row_conflicts", 1, "request");
            row(&location, "sectors_read", 100, "sector");
            row(&location, "sectors_written", 20, "sector");
            row(&location, "busy_time", 640 * 762 / 2, "ps");
        }
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
        let topology = crate::node::load("v100_node", &[], balar_actors::kinds::UNITS).expect("it is built in");
        record.node = crate::node_facts::NodeFacts::of(&topology);
        let outputs = record.node.crossbar("gpu.crossbar").expect("a crossbar");
        // 84 SMs and the copy engine; 32 slices.
        assert_eq!((outputs.slices, outputs.requesters, outputs.flit_bytes), (32, 85, 32));
        let span_ps: u64 = 640 * 762;
        let cycles = span_ps * 1200 / 1_000_000;
        for (what, value) in [
            ("flits_request", 1000),
            ("flits_response", 3000),
            ("output_busy_cycles_request", 32 * cycles / 2),
            ("output_busy_cycles_response", 85 * cycles / 4),
        ] {
            let location = "gpu.crossbar".to_owned();
            record.statistics.rows.push(StatisticRow { location, what, value, unit: "", maximum: false });
        }
        let text = text(&record, None);
        let cells = |start: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{start}: {text}"));
            line.split_whitespace().skip(2).collect()
        };
        // 32 bytes a flit; half and a quarter of the cycles of all outputs.
        assert_eq!(cells("gpu.crossbar requests"), ["0.032", "65.6", "50.0", "-", "kernels"]);
        assert_eq!(cells("gpu.crossbar responses"), ["0.096", "196.9", "25.0", "-", "kernels"]);
    }

    #[test]
    fn copies_through_the_l2_are_part_of_the_run() {
        let mut record = with_memory();
        let location = "gpu.copy_engine.to_device".to_owned();
        record.statistics.rows.push(StatisticRow {
            location,
            what: "line_stores",
            value: 9,
            unit: "request",
            maximum: false,
        });
        let text = text(&record, None);
        let line = text.lines().find(|line| line.contains("gpu.hbm[*]")).expect("a line");
        assert!(line.ends_with("run"), "{text}");
    }

    #[test]
    fn overlapping_kernels_are_counted_once() {
        let mut record = record();
        let times = [(10, 30), (20, 40), (50, 60)];
        let kernels = record.statistics.kernels.iter().zip(times);
        record.statistics.kernels =
            kernels.map(|(kernel, (start_ps, end_ps))| KernelRecord { start_ps, end_ps, ..kernel }).collect();
        assert_eq!(kernel_time(&record), 30 + 10);
    }
}
