//! Options of `sweep`.

use crate::options::detail::{self, DetailOption};
use crate::options::format::TableFormat;
use crate::options::headings;
use crate::options::program::{HostAccesses, page_bytes};
use crate::options::selection::{LaunchSelection, MetricList, ProfileFromStart, metric_list};
use crate::options::series::SeriesOptions;
use crate::options::simulation::{CodeOptions, LimitOptions};
use crate::options::topology::TOPOLOGY_VARIABLE;
use crate::options::workload::WorkloadOptions;
use balar_protocol::Bytes;
use balar_sweeps::points::Axis;
use clap::{Args, Subcommand, ValueEnum};
use std::ops::Range;
use std::path::PathBuf;

/// What `sweep --help` adds.
pub const SWEEP_HELP: &str = "\
A key is what a run's --set takes (gpu.clock, 'gpu.l2[*].ways'), `topology`, `workload`, `workload.KEY` for one of its parameters, or a name
that stands as {name} in the arguments of a program.

  balar-actors sweep --topology v100_node --workload vectoradd --set 'gpu.clock=500 MHz,1312 MHz' --set workload.elements=1024,4096 --output DIR
  balar-actors sweep --topology v100_node --set n=256,512 --output DIR -- ./app --size {n}
  balar-actors sweep -t v100_node --set 'workload=gemm:size=256,\"lud:size=256,seed=3\"' -o DIR      # quotes keep commas together

Each point is a process with a folder of its own in DIR/points. The same command again runs what is not finished; several at the same time
share the points. When all points are finished, DIR has results.csv, kernels.csv, sweep.db, and plot.svg where one or two keys are swept.";

/// A sweep, or what is to be done with one.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SweepOptions {
    /// What is to be done; without one, points are run.
    #[command(subcommand)]
    pub command: Option<SweepCommand>,
    /// What is swept.
    #[command(flatten)]
    pub points: PointOptions,
    /// What all points have in common.
    #[command(flatten)]
    pub common: CommonOptions,
    /// What is collected.
    #[command(flatten)]
    pub results: ResultOptions,
    /// The folder of the sweep
    #[arg(short = 'o', long, value_name = "DIR", required = true, help_heading = headings::FILES)]
    pub output: Option<PathBuf>,
    /// Points at the same time [default: the number of CPUs, divided by --threads]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=4096),
        help_heading = headings::LIMITS
    )]
    pub jobs: Option<u16>,
    /// Run only these points, by number from 0, the end not included: 20..30, 7; nothing is collected then
    #[arg(long = "points", value_name = "A..B", value_parser = points, help_heading = headings::LIMITS)]
    pub range: Option<Range<usize>>,
    /// Run points again that have failed
    #[arg(long, help_heading = headings::LIMITS)]
    pub retry_failed: bool,
    /// Remove whatever sweep the folder has, and begin anew
    #[arg(long, help_heading = headings::LIMITS)]
    pub restart: bool,
    /// Show no progress
    #[arg(short = 'q', long, help_heading = headings::PRINTED)]
    pub quiet: bool,
    /// A CUDA program and its arguments, instead of a workload; {name} stands for a value
    #[arg(
        value_name = "PROGRAM",
        last = true,
        conflicts_with_all = ["workload", "ptx", "compiler"],
        help_heading = headings::ARGUMENTS
    )]
    pub program: Vec<String>,
}

/// What is to be done with a sweep.
#[derive(Clone, Debug, Subcommand)]
pub enum SweepCommand {
    /// Collect the results of the points that are finished
    Collect {
        /// The folder of the sweep
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// What is collected.
        #[command(flatten)]
        results: ResultOptions,
    },
}

/// What is swept.
#[derive(Args, Clone, Debug)]
pub struct PointOptions {
    /// A key and its values: 'gpu.clock=500 MHz,1312 MHz'; the points are every combination, the last key changes fastest (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE,...", help_heading = headings::NODE)]
    pub set: Vec<Axis>,
    /// A list of points: [{"gpu.clock": "500 MHz", "workload.edge": 8}, ...]; each is combined with what --set says
    #[arg(long, value_name = "FILE.ron", help_heading = headings::NODE)]
    pub points_file: Option<PathBuf>,
}

/// What all points have in common: options of their runs.
#[derive(Args, Clone, Debug)]
#[command(
    mut_arg("stop_at", |it| it.help("End each point at this simulated time, such as '20 us'")),
    mut_arg("max_wall", |it| it.help("Give up a point after this many seconds of real time; it has failed then")),
    mut_arg("threads", |it| it.help("Threads of each simulation; the results do not depend on their number"))
)]
pub struct CommonOptions {
    /// The node: a file, or the name of a built-in topology
    #[arg(
        short = 't',
        long,
        value_name = "FILE|NAME",
        env = TOPOLOGY_VARIABLE,
        hide_env = true,
        display_order = 0,
        help_heading = headings::WHAT_RUNS
    )]
    pub topology: Option<String>,
    /// The workload.
    #[command(flatten)]
    pub work: WorkloadOptions,
    /// Which code of kernels runs.
    #[command(flatten)]
    pub code: CodeOptions,
    /// What is timed.
    #[arg(
        long,
        value_name = "WHAT",
        help = detail::HELP,
        value_parser = as_given::<DetailOption>,
        help_heading = headings::LIMITS
    )]
    pub detail: Vec<String>,
    /// When points end.
    #[command(flatten)]
    pub limits: LimitOptions,
    /// Which launches are written.
    #[command(flatten)]
    pub launches: LaunchSelection,
    /// Count by instruction, too, into instructions.csv of each point
    #[arg(long, help_heading = headings::FILES)]
    pub profile_instructions: bool,
    /// Time series of each point.
    #[command(flatten)]
    pub series: SeriesOptions,
    /// Of a program: size of the pages of shared memory through which its data is transferred
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = page_bytes,
        requires = "program",
        help_heading = headings::WHAT_RUNS
    )]
    pub tunnel_page: Option<Bytes>,
    /// Of a program: how its own accesses to managed memory are known
    #[arg(long, value_enum, requires = "program", help_heading = headings::WHAT_RUNS)]
    pub host_accesses: Option<HostAccesses>,
}

/// What is collected.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = headings::PRINTED)]
pub struct ResultOptions {
    /// Further columns of results.csv: counters and metrics, by any name that `balar-actors metrics` lists; a file has one on a line (repeatable)
    #[arg(long, value_name = "FILE|NAME,...", value_parser = metric_list)]
    pub metrics: Vec<MetricList>,
    /// What plot.svg shows: kernel_time_ps, sim_time_ps, kernel_cycles, warp_instructions, or a counter or metric [default: kernel_time_ps]
    #[arg(long, value_name = "METRIC")]
    pub plot: Option<String>,
    /// Also write results.parquet and kernels.parquet, in builds with the feature `parquet`
    #[arg(long)]
    pub parquet: bool,
    /// What to print on stdout; CSV is results.csv
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
}

/// A text that can be read as a `T`, kept as it was given.
fn as_given<T: std::str::FromStr<Err = String>>(text: &str) -> Result<String, String> {
    text.parse::<T>().map(|_| text.to_owned())
}

/// `A..B`, `A..`, `..B` or `A`.
fn points(text: &str) -> Result<Range<usize>, String> {
    let number = |text: &str, absent: usize| match text.trim() {
        "" => Some(absent),
        text => text.parse().ok(),
    };
    let range = match text.split_once("..") {
        None => text.trim().parse().ok().and_then(|point: usize| Some(point..point.checked_add(1)?)),
        Some((first, end)) => number(first, 0).zip(number(end, usize::MAX)).map(|(first, end)| first..end),
    };
    range
        .filter(|range| !range.is_empty())
        .ok_or_else(|| format!("expected points such as 20..30 or 7, of which the end is not included, found '{text}'"))
}

impl CommonOptions {
    /// The options of the run of a point that say what it is, the topology and the workload left aside. Their order is fixed.
    pub fn arguments(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        let mut option = |name: &str, value: String| all.extend([name.to_owned(), value]);
        for path in &self.work.ptx {
            option("--ptx", path.to_string_lossy().into_owned());
        }
        if let Some(compiler) = self.work.compiler {
            option("--compiler", name(compiler));
        }
        option("--isa", name(self.code.isa));
        if let Some(path) = &self.code.ptxas {
            option("--ptxas", path.to_string_lossy().into_owned());
        }
        for detail in &self.detail {
            option("--detail", detail.clone());
        }
        if let Some(interval) = self.series.sample_interval {
            option("--sample-interval", format!("{} ps", interval.0));
            option("--samples", self.series.samples.iter().map(|form| name(*form)).collect::<Vec<_>>().join(","));
            if self.series.sample_epoch > 0 {
                option("--sample-epoch", self.series.sample_epoch.to_string());
            }
        }
        let LaunchSelection { kernel, profile_from_start, launch_skip, launch_count, .. } = &self.launches;
        if let Some(kernel) = kernel {
            option("--kernel", kernel.as_str().to_owned());
        }
        if *profile_from_start == ProfileFromStart::Off {
            option("--profile-from-start", "off".to_owned());
        }
        if *launch_skip > 0 {
            option("--launch-skip", launch_skip.to_string());
        }
        if let Some(count) = launch_count {
            option("--launch-count", count.to_string());
        }
        if let Some(time) = self.limits.stop_at {
            option("--stop-at", format!("{} ps", time.0));
        }
        if let Some(page) = self.tunnel_page {
            option("--tunnel-page", page.0.to_string());
        }
        if let Some(accesses) = self.host_accesses {
            option("--host-accesses", name(accesses));
        }
        for (flag, given) in
            [("--check-hazards", self.code.check_hazards), ("--profile-instructions", self.profile_instructions)]
        {
            all.extend(given.then(|| flag.to_owned()));
        }
        all
    }
}

/// The name of a value as the command line has it.
fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_points() {
        for (text, range) in
            [("3..7", Some(3..7)), ("7", Some(7..8)), ("3..", Some(3..usize::MAX)), ("..2", Some(0..2)), ("2..2", None)]
        {
            assert_eq!(points(text).ok(), range, "{text}");
        }
        for text in ["", "a..b", "-1..3", "3..a"] {
            assert!(points(text).is_err(), "{text}");
        }
    }
}
