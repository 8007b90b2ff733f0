//! The tables of `validation/`: hardware's figures, and the simulated ones beside them, with a date.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::LazyLock;

/// When the tables of microbenchmarks were measured.
pub(super) const DATE: &str = "2026-11-23";
/// When the cycles of programs were measured.
pub(super) const PROGRAMS_DATE: &str = "2026-11-28";
/// When the times of kernels were measured.
pub(super) const KERNELS_DATE: &str = "2026-11-28";
/// When the counters of kernels were measured.
pub(super) const COUNTERS_DATE: &str = "2026-11-28";

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

/// A row of a table of kernels: what a program prints of one, and how the program is run.
#[derive(Debug, Deserialize)]
pub(super) struct KernelRow {
    /// The kernel and its size.
    pub name: String,
    /// The program, as a file below the folder of programs.
    pub program: String,
    /// Where it runs, below that folder.
    pub directory: String,
    /// Its arguments; `{folder}` stands for that folder.
    pub arguments: String,
    /// What made the kernel's code.
    pub compiler: String,
    /// The parameter of a model that was set by this row; empty where none was.
    pub sets: String,
    /// The label behind which the program prints the figure.
    pub value: String,
    /// The hardware's figure.
    pub hardware: f64,
    /// The simulated one; `None` where there is none yet.
    pub simulated: Option<f64>,
    /// Where the hardware's figure is from.
    pub source: String,
}

/// A table that is read once.
pub(super) type Rows = LazyLock<Vec<Row>>;
/// A table of kernels that is read once.
pub(super) type KernelRows = LazyLock<Vec<KernelRow>>;

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

/// `titanv_kernels.csv`.
pub(super) static TITANV_KERNELS: KernelRows =
    LazyLock::new(|| parsed(include_str!("../../../validation/titanv_kernels.csv")));
/// `rtx2080ti_kernels.csv`.
pub(super) static RTX2080TI_KERNELS: KernelRows =
    LazyLock::new(|| parsed(include_str!("../../../validation/rtx2080ti_kernels.csv")));

fn parsed<R: DeserializeOwned>(text: &str) -> Vec<R> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("the tables of this repository have these columns")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The study prints milliseconds, and runs what has a name.
    #[test]
    fn every_table_of_kernels_is_read() {
        for rows in [&TITANV_KERNELS, &RTX2080TI_KERNELS] {
            assert_eq!(rows.len(), 24);
            for row in rows.iter() {
                assert!(row.hardware > 0.0 && row.simulated.is_none_or(|simulated| simulated > 0.0), "{row:?}");
                assert!([&row.name, &row.program, &row.compiler, &row.source].iter().all(|text| !text.is_empty()));
                assert_eq!((&*row.directory, &*row.value), (".", "time_ms"), "{}", row.name);
            }
        }
        let first = &TITANV_KERNELS[0];
        assert_eq!((&*first.name, &*first.sets, first.hardware), ("conv2d_3x3 512", "", 0.005599));
    }

    #[test]
    fn every_table_is_read() {
        for (rows, least) in [(&MICROBENCHMARKS, 469), (&PROGRAMS, 59), (&PUBLIC_MICROBENCHMARKS, 20), (&COUNTERS, 151)]
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
