//! Options of `compare`.

use crate::options::format::TableFormat;
use clap::Args;
use regex::Regex;
use std::path::PathBuf;

/// What `compare --help` adds.
pub const COMPARE_HELP: &str = "\
Kernels are matched by name, their launches by their order. Causes are told from the counters of launches, and from cycles by stall reason
where both runs have counted by instruction (--profile-instructions). Counters of the whole run are rolled up by row of units and ranked
by their relative change times the square root of their share of the run's greatest counter in the same unit of measure. The exit code is
0 whether runs differ or not; `snapshot check` is a check.

  balar-actors --topology v100_node --workload lud --output before
  balar-actors --topology v100_node --workload lud --output after --set 'gpu.sm[*].clock=1530 MHz'
  balar-actors compare before after";

/// Options of `compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareOptions {
    /// The run before: a folder of --output, or a document of --format json
    #[arg(value_name = "A")]
    pub before: PathBuf,
    /// The run after
    #[arg(value_name = "B")]
    pub after: PathBuf,
    /// Rows of each part that are printed
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// Only kernels whose name matches: 'lud_.*'
    #[arg(long, value_name = "REGEX")]
    pub kernel: Option<Regex>,
    /// What to print; CSV and JSON have all of it
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
    /// Print all of it: launch by launch, and every figure and counter that differs
    #[arg(long)]
    pub details: bool,
}
