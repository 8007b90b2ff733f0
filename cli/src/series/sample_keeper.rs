//! Takes the samples of a run that its report needs, by unit, and keeps some hundreds of them however long the run is.

use balar_actors::engine::{Observer, Sample, SampleKind, SampleLayout};
use balar_protocol::SimTime;
use balar_record::metrics::{METRICS, Place};
use balar_record::run_folder::instructions::STALL;
use std::collections::BTreeSet;

/// Between the first samples. The interval doubles as the run goes on.
pub const FIRST_INTERVAL: SimTime = SimTime(50_000);
/// So many samples are kept at most; where there are more, every other one goes.
pub const MOST: usize = 512;

/// Metrics that are shown over time. All of them are among those that time series have without being asked.
pub const METRICS_OVER_TIME: &[&str] = &[
    "sm.occupancy",
    "sm.ipc",
    "sm.inst_executed",
    "l1.sectors_ld",
    "l1.hit_rate",
    "l2.sectors_rd",
    "l2.hit_rate_rd",
    "l2.util",
    "dram.bytes_rd",
    "dram.bytes_wr",
    "dram.util",
    "gmmu.far_faults",
    "link.bytes",
    "uvm.bytes",
];
/// Counters that are looked at by unit, beside those.
const BY_UNIT: [&str; 5] = ["cycles_active", "bytes", "busy_time", "sectors_read", "sectors_written"];

/// What units had counted at some times.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Which numbers there are: some of those of the run.
    pub layout: SampleLayout,
    /// When each sample was taken, ps.
    pub times: Vec<u64>,
    /// By sample: the numbers, in the order of the layout.
    pub values: Vec<Vec<u64>>,
}

/// Keeps the samples of a run.
#[derive(Debug, Default)]
pub struct SampleKeeper {
    samples: Samples,
    /// Which rows of the run's samples are kept.
    rows: Vec<usize>,
}

impl SampleKeeper {
    /// What has been sampled.
    pub fn take(&mut self) -> Samples {
        std::mem::take(&mut self.samples)
    }

    fn keep(&mut self, time: u64, values: &[u64]) {
        if self.samples.times.last() == Some(&time) {
            return;
        }
        if self.samples.times.len() >= MOST {
            // Counts go on: what a sample that goes has counted, the next one has, too.
            let Samples { times, values, .. } = &mut self.samples;
            let mut index = 0;
            times.retain(|_| every_other(&mut index));
            index = 0;
            values.retain(|_| every_other(&mut index));
        }
        self.samples.times.push(time);
        self.samples.values.push(self.rows.iter().map(|&row| values[row]).collect());
    }
}

/// Is it the second, the fourth, ...?
fn every_other(index: &mut usize) -> bool {
    *index += 1;
    index.is_multiple_of(2)
}

/// The counters that are kept.
fn wanted() -> BTreeSet<&'static str> {
    let metrics = METRICS.iter().filter(|metric| METRICS_OVER_TIME.contains(&metric.name));
    let of_metrics = metrics.flat_map(|metric| metric.formula.counters());
    let signs = Place::ALL.into_iter().flat_map(|place| place.signature().iter().copied());
    of_metrics.chain(signs).chain(BY_UNIT).collect()
}

impl Observer for SampleKeeper {
    fn begin(&mut self, layout: &SampleLayout) {
        let wanted = wanted();
        let mut kept = SampleLayout::default();
        for (path, range) in &layout.units {
            let first = kept.rows.len();
            for at in range.clone() {
                let row = &layout.rows[at];
                if wanted.contains(row.what) || row.what.starts_with(STALL) {
                    self.rows.push(at);
                    kept.rows.push(row.clone());
                }
            }
            kept.units.push((path.clone(), first..kept.rows.len()));
        }
        self.samples.layout = kept;
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        // What somebody asks for comes at times that differ from run to run.
        if sample.kind != SampleKind::Asked {
            self.keep(sample.time.0, sample.values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::statistics::StatisticRow;
    use balar_record::series::USUAL;

    #[test]
    fn what_is_shown_over_time_is_in_every_series() {
        for name in METRICS_OVER_TIME {
            assert!(METRICS.iter().any(|metric| metric.name == *name), "{name}");
            assert!(USUAL.contains(name), "{name}");
        }
    }

    #[test]
    fn few_samples_of_a_long_run_are_kept() {
        let row = |what| StatisticRow { location: "u".to_owned(), what, value: 0, unit: "", maximum: false };
        let layout =
            SampleLayout { rows: vec![row("queue_maximum"), row("bytes")], units: vec![("u".to_owned(), 0..2)] };
        let mut keeper = SampleKeeper::default();
        keeper.begin(&layout);
        for index in 1..=100_000_u64 {
            keeper.keep(index * FIRST_INTERVAL.0, &[7, index]);
        }
        keeper.keep(100_000 * FIRST_INTERVAL.0 + 1, &[7, 100_000]);
        let samples = keeper.take();
        assert!((MOST / 2..=MOST + 1).contains(&samples.times.len()), "{}", samples.times.len());
        assert!(samples.times.is_sorted() && samples.values.iter().all(|values| values.len() == 1));
        assert_eq!(samples.layout.rows[0].what, "bytes");
        assert_eq!(samples.values.last(), Some(&vec![100_000]), "the last one has the totals");
    }
}
