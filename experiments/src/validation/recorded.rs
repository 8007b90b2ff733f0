//! The tables of `validation/`: hardware's figures, and the simulated ones beside them, with a date.

use serde::Deserialize;
use std::sync::LazyLock;

/// When the tables of microbenchmarks were measured.
pub(super) const DATE: &str = "2026-11-23";
/// When the cycles of programs were measured.
pub(super) const PROGRAMS_DATE: &str = "2026-11-27";
/// When the counters of kernels were measured.
pub(super) const COUNTERS_DATE: &str = "2026-11-27";

/// A row of a table.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    /// The group of microbenchmarks; empty of programs.
    #[serde(default)]
    pub group: String,
    /// The measurement.
    #[serde(alias = "benchmark")]
    pub name: String,
    /// The built-in workload of a microbenchmark, or the name in its place.
    #[serde(default)]
    pub workload: String,
    /// The value that a program was asked for.
    #[serde(default)]
    pub value: String,
    /// The unit of a microbenchmark.
    #[serde(default)]
    pub unit: String,
    /// The hardware's figure.
    pub hardware: f64,
    /// The simulated one.
    pub simulated: f64,
    /// Accel-Sim's error, percent.
    #[serde(default)]
    pub accel_sim_error_percent: Option<f64>,
    /// "calibrated" where a parameter was set by this row.
    #[serde(default)]
    pub calibrated_or_predicted: String,
    /// Where the hardware's figure is from.
    pub source: String,
}

/// A table that is read once.
pub(super) type Rows = LazyLock<Vec<Row>>;

/// `microbenchmarks.csv`.
pub(super) static MICROBENCHMARKS: Rows =
    LazyLock::new(|| parsed(include_str!("../../../validation/microbenchmarks.csv")));
/// `public_programs.csv`.
pub(super) static PROGRAMS: Rows = LazyLock::new(|| parsed(include_str!("../../../validation/public_programs.csv")));
/// `public_microbenchmarks.csv`.
pub(super) static PUBLIC_MICROBENCHMARKS: Rows =
    LazyLock::new(|| parsed(include_str!("../../../validation/public_microbenchmarks.csv")));
/// `kernel_counters.csv`.
pub(super) static COUNTERS: Rows = LazyLock::new(|| parsed(include_str!("../../../validation/kernel_counters.csv")));

fn parsed(text: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("the tables of this repository have these columns")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_read() {
        for (rows, least) in [(&MICROBENCHMARKS, 469), (&PROGRAMS, 59), (&PUBLIC_MICROBENCHMARKS, 20), (&COUNTERS, 93)]
        {
            assert_eq!(rows.len(), least);
            assert!(rows.iter().all(|row| row.hardware >= 0.0 && !row.name.is_empty() && !row.source.is_empty()));
        }
        let first = &PROGRAMS[0];
        assert_eq!((&*first.name, first.accel_sim_error_percent), ("vectorAdd4M", Some(-18.5)));
        let latency = &MICROBENCHMARKS[0];
        assert_eq!(
            (&*latency.group, latency.hardware, &*latency.calibrated_or_predicted),
            ("latency", 27.9, "calibrated")
        );
    }
}
