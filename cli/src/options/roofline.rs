//! Options of `roofline`.

use crate::options::format::StudyFormat;
use crate::options::simulation::{Isa, seconds};
use crate::options::topology::{OVERRIDE_HELP, Override, TOPOLOGY_VARIABLE};
use crate::options::workload::WorkloadChoice;
use balar_experiments::roofline;
use balar_protocol::Bytes;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// What `roofline --help` adds.
pub const ROOFLINE_HELP: &str = "\
Parts:
  levels       bandwidth of reads by all SMs over the working set, and the levels of memory that it shows
  throughput   fp64, fp32, fp16 and tensor throughput over the operations on each element
  toolkit      the Roofline Toolkit's kernels: A trials inside, B trials outside, C shared memory
  parallelism  throughput over warps of an SM and independent chains of a thread
  reuse        pageable and page-locked copies, zero copy, managed memory over working set and reuse

--output writes roofline.svg and .png, a chart and a CSV file for each part, roofline.json as the Empirical Roofline Toolkit has it, and
data.txt for NERSC's plot_roofline.py. docs/roofline.md says how each figure is measured.

  balar-actors roofline --topology v100_sxm2_node --output roofline
  balar-actors roofline --topology p100_node --workload gemm --workload lud:size=512
  balar-actors roofline --topology v100_node --run out --by-kernel --part all";

/// Options of `roofline`.
#[derive(Args, Clone, Debug)]
pub struct RooflineOptions {
    /// File, or name of a built-in topology
    #[arg(short = 't', long, value_name = "FILE|NAME", env = TOPOLOGY_VARIABLE, hide_env = true)]
    pub topology: String,
    /// Overrides of single parameters.
    #[arg(long = "set", value_name = "PATH=VALUE", help = OVERRIDE_HELP)]
    pub set: Vec<Override>,
    /// What is measured
    #[arg(long = "part", value_enum, value_delimiter = ',', default_values_t = [PartChoice::Levels, PartChoice::Throughput])]
    pub parts: Vec<PartChoice>,
    /// Place this workload, which is run on the node, below the ceilings (repeatable)
    #[arg(short = 'w', long = "workload", value_name = "NAME[:key=value,...]")]
    pub workloads: Vec<WorkloadChoice>,
    /// Place a finished run below the ceilings: the folder that --output has written (repeatable)
    #[arg(long = "run", value_name = "DIR")]
    pub runs: Vec<PathBuf>,
    /// Place the kernels of workloads and runs, too
    #[arg(long)]
    pub by_kernel: bool,
    /// Each working set is so many times the one before
    #[arg(long, value_name = "FACTOR", default_value = "1.2", value_parser = growth)]
    pub growth: f64,
    /// The largest working set [default: 16 times the L2 up to 96 MiB, but 4 times the L2 and 32 MiB at least]
    #[arg(long, value_name = "BYTES", value_parser = largest)]
    pub largest: Option<Bytes>,
    /// Blocks of the toolkit's kernels
    #[arg(long, value_name = "N", default_value_t = 224, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub blocks: u32,
    /// Threads of a block of them, a multiple of 32
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = threads)]
    pub threads: u32,
    /// Runs at the same time; the figures do not depend on their number [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Which code of a kernel to run
    #[arg(long, value_enum, default_value_t = Isa::Auto)]
    pub isa: Isa,
    /// What to print on stdout; CSV is the table of ceilings
    #[arg(long, value_enum, default_value_t = StudyFormat::Table)]
    pub format: StudyFormat,
    /// Also write tables, charts and files for other tools into this folder
    #[arg(short = 'o', long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Give up after this many seconds of real time (exit code 4)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_wall: Option<Duration>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PartChoice {
    /// Levels of memory.
    Levels,
    /// Arithmetic.
    Throughput,
    /// The toolkit's kernels.
    Toolkit,
    /// Warps and chains.
    Parallelism,
    /// Copies, zero copy, managed memory.
    Reuse,
    /// All of it.
    All,
}

impl PartChoice {
    /// The parts that it stands for.
    pub fn parts(self) -> Vec<roofline::Part> {
        match self {
            PartChoice::Levels => vec![roofline::Part::Levels],
            PartChoice::Throughput => vec![roofline::Part::Throughput],
            PartChoice::Toolkit => vec![roofline::Part::Toolkit],
            PartChoice::Parallelism => vec![roofline::Part::Parallelism],
            PartChoice::Reuse => vec![roofline::Part::Reuse],
            PartChoice::All => roofline::Part::ALL.to_vec(),
        }
    }
}

fn growth(text: &str) -> Result<f64, String> {
    let growth: f64 = text.parse().map_err(|_| format!("expected a factor, such as 1.2, found '{text}'"))?;
    if (1.01..=16.0).contains(&growth) { Ok(growth) } else { Err("must be from 1.01 to 16".to_owned()) }
}

fn largest(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|_| format!("expected a size, such as '64 MiB', found '{text}'"))?;
    let range = 4096..=8 << 30;
    if range.contains(&size.0) { Ok(size) } else { Err("must be from 4 KiB to 8 GiB".to_owned()) }
}

fn threads(text: &str) -> Result<u32, String> {
    let threads: u32 = text.parse().map_err(|_| format!("expected a number of threads, found '{text}'"))?;
    let is_one = (32..=1024).contains(&threads) && threads.is_multiple_of(32);
    if is_one { Ok(threads) } else { Err("must be a multiple of 32 from 32 to 1024".to_owned()) }
}
