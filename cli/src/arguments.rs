//! The command line.

use crate::compare::{COMPARE_HELP, CompareOptions};
use crate::detail::{self, DetailOption};
use crate::disassemble::{DISASSEMBLE_HELP, DisassembleOptions};
use crate::hotspots::{HOTSPOTS_HELP, HotspotOptions};
use crate::output::Format;
use crate::output::selection::Selection;
use crate::report::{REPORT_HELP, ReportOptions};
use crate::roofline::{ROOFLINE_HELP, RooflineOptions};
use crate::series::SeriesOptions;
use crate::sweep::{SWEEP_HELP, SweepOptions};
use balar_actors::engine;
use balar_actors::simulation::IsaChoice;
use balar_protocol::{Bytes, SimTime};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Exit codes, for `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0    done; the result is verified, or the workload has no check
  1    the run ended but its result is wrong, a snapshot differs, or points of a sweep failed
  2    bad arguments, topology, PTX or trace
  3    the simulated program failed: a CUDA error, a trap, an illegal address
  4    deadlock, or the limit of --max-wall
  5    a unit that does not come with balar-actors broke a rule
  70   a bug in balar-actors
  130  ended by Ctrl-C; the statistics so far are written
  143  ended by SIGTERM; the statistics so far are written

A topology is a path or the name of one that is built in (v100_node). RUST_LOG=debug shows what happens on stderr.";

/// What `run --help` adds.
const RUN_HELP: &str = "\
The program must contain PTX, or machine code for the simulated GPU; its CUDA runtime may be linked statically or shared. This command
returns its exit code (128 + N if signal N kills it); 2, 4, 5 and 70 are this command's own. The statistics follow on stderr, or are
written into the folder of --output. At --stop-at, --max-wall and the second Ctrl-C, the program's CUDA calls fail, and it is terminated;
so it is where SIGTERM, which is passed on to it, has not ended it after 1.5 s.";

/// What `validate --help` adds.
const VALIDATE_HELP: &str = "\
Studies, their parts, and how long they take:
  balar     the study of Balar (SAND2019-10389) on its V100 node; all of it: half a minute on two CPUs, with LULESH ten
            applications, mix, clocks
  uvm       unified memory beside a GTX 1080 Ti and beside the simulator UVMSmart; all of it: about ten minutes on two CPUs
            hardware, prefetchers, shootdowns, evictions
  ldms      counters of the LDMS-GPU study (SAND2020), which a V100S counted; all of it: half a minute on two CPUs
            vectoradd, bfs
  roofline  levels of memory and arithmetic throughput of a V100, as `roofline` measures them; all of it: two minutes on two CPUs
            ceilings
  volta     microbenchmarks beside V100 and TITAN V; all of it: about a minute on two CPUs; the recorded parts a second
            latency, instructions, bandwidth, microbenchmarks, programs, public_microbenchmarks, counters

Without a study, this lists them. --output writes a CSV file for each table, report.json, summary.txt, comparisons.csv, the
charts as SVG, and index.html, a page with all of it. Ctrl-C ends it; the tables then lack what has not run.

LULESH is run as `run -- COMMAND` would run it, as machine code where a ptxas is found (BALAR_PTXAS).";

/// What `watch --help` adds.
const WATCH_HELP: &str = "\
Where stdout is no terminal, this prints how the run is now and ends. It ends with the run; a watcher that ends or is killed does
not touch the run.";

/// Of `--set`.
pub const OVERRIDE_HELP: &str = "Override one parameter: 'gpu.sm[*].clock=1800 MHz', 'gpu.sm[*].latencies.integer=7'; 'gpu.clock=1500 MHz' sets the \
                             clock of the GPU's CTA scheduler and of all its units with the same clock (repeatable)";

/// The hidden subcommand.
pub const CLEAR_AWAY: &str = "clear-away";

/// Simulates a node of CPUs and GPUs and the CUDA program that runs on it.
///
/// Without a subcommand, it runs the topology's own workload and prints the result.
#[derive(Debug, Parser)]
#[command(
    name = "balar-actors",
    version,
    after_help = EXIT_CODES,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true
)]
pub struct Arguments {
    /// The subcommand; without one, the main job runs.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the main job.
    #[command(flatten)]
    pub run: RunOptions,
}

/// The subcommand; without one, the main job runs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a CUDA program, unmodified, on the simulated node
    #[command(after_help = RUN_HELP)]
    Run(ProgramOptions),
    /// Replay a recorded program: a trace of --record, or one of Balar
    Replay(ReplayOptions),
    /// Remove what a run has left when its simulator has been killed
    #[command(name = CLEAR_AWAY, hide = true)]
    ClearAway {
        /// The folder of the run
        folder: Option<PathBuf>,
        /// Its shared memory
        #[arg(long, value_name = "NAME")]
        memory: Option<String>,
    },
    /// Show a run with --live in this terminal while it goes on: p pauses it, s steps, r resumes, q leaves it alone
    #[command(after_help = WATCH_HELP)]
    Watch {
        /// Its process number; without one, the only run that there is
        pid: Option<u32>,
    },
    /// Check, print or draw a topology
    #[command(subcommand)]
    Topology(TopologyCommand),
    /// List the hardware units, or show one: parameters, defaults, ports, counters
    Units {
        /// A unit, as topologies name it
        name: Option<String>,
        /// What to print
        #[arg(long, value_enum, default_value_t = CatalogueFormat::Table)]
        format: CatalogueFormat,
    },
    /// List the metrics, under our names and those of nvprof, ncu, GPGPU-Sim and SST, or show one
    Metrics {
        /// A metric by any of its names, in which * stands for anything: dram__bytes_read.sum, 'stall_*'
        name: Option<String>,
        /// What to print
        #[arg(long, value_enum, default_value_t = CatalogueFormat::Table)]
        format: CatalogueFormat,
    },
    /// List the built-in workloads, or show one with its parameters
    Workloads {
        /// A workload
        name: Option<String>,
        /// What to print
        #[arg(long, value_enum, default_value_t = CatalogueFormat::Table)]
        format: CatalogueFormat,
    },
    /// List the built-in topologies
    Topologies {
        /// What to print
        #[arg(long, value_enum, default_value_t = CatalogueFormat::Table)]
        format: CatalogueFormat,
    },
    /// Print a script that completes the arguments of balar-actors in a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, for `man -l`
    Man,
    /// List the kernels of PTX files: registers, shared memory, and what the simulator cannot run
    Ptx {
        /// PTX files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// What to print
        #[arg(long, value_enum, default_value_t = CatalogueFormat::Table)]
        format: CatalogueFormat,
    },
    /// Print the machine code (SASS) of a cubin, a fatbin, or a program that holds some, with its control words
    #[command(after_help = DISASSEMBLE_HELP)]
    Disassemble(DisassembleOptions),
    /// Print where the cycles of kernels went: by instruction, line or function
    #[command(after_help = HOTSPOTS_HELP)]
    Hotspots(HotspotOptions),
    /// Print what differs between two runs: kernel by kernel, in time and in cause
    #[command(after_help = COMPARE_HELP)]
    Compare(CompareOptions),
    /// Write what a run did, or what two did, as one page of HTML
    #[command(after_help = REPORT_HELP)]
    Report(ReportOptions),
    /// Compare a run with a pinned snapshot, or pin it
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Measure what a node can do at most, and place programs below that
    #[command(after_help = ROOFLINE_HELP)]
    Roofline(RooflineOptions),
    /// Run a simulation at many points: every combination of values of its parameters
    #[command(after_help = SWEEP_HELP)]
    Sweep(SweepOptions),
    /// Run a study: simulated figures beside measured ones
    #[command(after_help = VALIDATE_HELP)]
    Validate(ValidateOptions),
}

/// The words of a command, as a shell would tell them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(pub Vec<String>);

impl FromStr for Words {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Words, Self::Err> {
        let words = shlex::split(text).ok_or("a quote is not closed")?;
        if words.is_empty() { Err("it has no word") } else { Ok(Words(words)) }
    }
}

/// A study.
#[derive(Args, Clone, Debug)]
pub struct ValidateOptions {
    /// The study; without one, the studies are listed
    pub study: Option<String>,
    /// Parts of it; all of them without any
    #[arg(value_name = "PART")]
    pub parts: Vec<String>,
    /// Only this program (repeatable)
    #[arg(long = "program", value_name = "NAME", requires = "study")]
    pub programs: Vec<String>,
    /// The study `balar`: LULESH in CUDA, edge 22 and 50 iterations, and its arguments ("./lulesh -s 22"); without it, `shock` stands in
    #[arg(long, value_name = "COMMAND", requires = "study")]
    pub lulesh: Option<Words>,
    /// Runs at the same time; the figures do not depend on their number [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// What to print on stdout; CSV is the list of all comparisons
    #[arg(long, value_enum, default_value_t = StudyFormat::Table)]
    pub format: StudyFormat,
    /// Also write tables, comparisons and charts into this folder
    #[arg(long, value_name = "DIR", requires = "study")]
    pub output: Option<PathBuf>,
    /// Give up after this many seconds of real time (exit code 4); the tables lack what has not run
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_wall: Option<Duration>,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

/// Subcommands on a topology.
#[derive(Debug, Subcommand)]
pub enum TopologyCommand {
    /// Report every error of a topology
    Check(TopologyOptions),
    /// Print a topology with its parts, ranges and defaults written out
    Show(TopologyOptions),
    /// Draw a topology
    Graph {
        /// The topology.
        #[command(flatten)]
        topology: TopologyOptions,
        /// Write the picture to this file instead of standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Format of the picture; the default is DOT for files that end in .dot or .gv and for standard output, SVG for other files
        #[arg(long, value_enum)]
        format: Option<GraphFormat>,
    },
}

/// A topology with overrides.
#[derive(Args, Debug)]
pub struct TopologyOptions {
    /// File, or name of a built-in topology
    #[arg(value_name = "FILE|NAME")]
    pub topology: String,
    /// Overrides of single parameters.
    #[arg(long = "set", value_name = "PATH=VALUE", help = OVERRIDE_HELP)]
    pub set: Vec<Override>,
}

/// Subcommands on a snapshot.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Run, and show what differs from FILE, by row of units (--details: by unit); exit code 1 if anything differs
    Check {
        /// The run and the file.
        #[command(flatten)]
        options: SnapshotOptions,
        /// Accept numbers that differ from their pinned value by at most this percentage
        #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent)]
        tolerance: f64,
    },
    /// Run, and write FILE
    Accept(SnapshotOptions),
}

/// A run and the file that pins it.
#[derive(Args, Debug)]
pub struct SnapshotOptions {
    /// Options of the run.
    #[command(flatten)]
    pub run: RunOptions,
    /// The snapshot
    pub file: PathBuf,
}

/// Options of a run of a workload.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// Options of every run.
    #[command(flatten)]
    pub simulation: SimulationOptions,
    /// Run this workload instead of the topology's, with the given parameters
    #[arg(long, value_name = "NAME[:key=value,...]")]
    pub workload: Option<WorkloadChoice>,
    /// Take the workload's kernels from this PTX file instead of the built-in one; given several times, the files are linked
    #[arg(long, value_name = "FILE")]
    pub ptx: Vec<PathBuf>,
    /// Take the workload's kernels from the built-in PTX of this compiler
    #[arg(long, value_enum, conflicts_with = "ptx")]
    pub compiler: Option<Compiler>,
}

/// A CUDA program to run on the simulated node.
#[derive(Args, Clone, Debug)]
pub struct ProgramOptions {
    /// Options of every run.
    #[command(flatten)]
    pub simulation: SimulationOptions,
    /// Show progress even though the program writes to the same terminal
    #[arg(long)]
    pub progress: bool,
    /// Size of the pages of shared memory through which the program's data is transferred
    #[arg(long, value_name = "BYTES", default_value = "4 KiB", value_parser = page_bytes)]
    pub tunnel_page: Bytes,
    /// On a node that moves managed memory: how the program's own accesses to it are known
    #[arg(long, value_enum, default_value_t = HostAccesses::Seen)]
    pub host_accesses: HostAccesses,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// How a program's own accesses to managed memory are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostAccesses {
    /// The system tells of each as it happens (userfaultfd); where it refuses to, as `assumed`
    Seen,
    /// All of it is taken to be used by the host before each launch and after each synchronisation
    Assumed,
}

/// A recorded program.
#[derive(Args, Clone, Debug)]
pub struct ReplayOptions {
    /// Options of every run.
    #[command(flatten)]
    pub simulation: SimulationOptions,
    /// Replay the trace of an unfinished run as far as it goes
    #[arg(long)]
    pub partial: bool,
    /// Do not compare the data that the device computes (for programs whose results depend on timing)
    #[arg(long)]
    pub unchecked: bool,
    /// For traces of Balar: read the code from this PTX file or CUDA executable instead of the folder (repeatable)
    #[arg(long, value_name = "FILE")]
    pub ptx: Vec<PathBuf>,
    /// The folder of the trace
    #[arg(value_name = "DIR")]
    pub trace: PathBuf,
}

/// Options of every run.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("place_of_profiles").args(["output", "report"]).multiple(true))]
pub struct SimulationOptions {
    /// File, or name of a built-in topology
    #[arg(long, value_name = "FILE|NAME", required = true)]
    pub topology: Option<String>,
    /// Overrides of single parameters.
    #[arg(long = "set", value_name = "PATH=VALUE", help = OVERRIDE_HELP)]
    pub set: Vec<Override>,
    /// Threads of the simulation; the result does not depend on their number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Which code of a kernel to run
    #[arg(long, value_enum, default_value_t = Isa::Auto)]
    pub isa: Isa,
    /// The assembler (ptxas) that makes machine code of PTX where --isa auto or sass finds PTX alone [default: that of BALAR_PTXAS, the
    /// first in PATH, or /usr/local/cuda/bin/ptxas]
    #[arg(long, value_name = "PATH")]
    pub ptxas: Option<PathBuf>,
    /// What is timed.
    #[arg(long, value_name = "WHAT", help = detail::HELP)]
    pub detail: Vec<DetailOption>,
    /// Machine code: end a kernel that reads a register before its producer's latency has passed
    #[arg(long)]
    pub check_hazards: bool,
    /// What to print: on stdout, or after the program's own output on stderr
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Which part of the result to print.
    #[command(flatten)]
    pub selection: Selection,
    /// Also write stats.json, stats.csv, kernels.csv, summary.txt and topology.ron into this folder
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Also write what the run did as a page of HTML: figures, kernels, stalls, everything over time and by unit
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Count by instruction, too: executions, cycles by stall reason, sectors and bank conflicts, as instructions.csv in the folder of
    /// --output, for `hotspots`, `compare`, `disassemble --run` and spreadsheets; the page of --report has stalls by kernel of it
    #[arg(long, requires = "place_of_profiles")]
    pub profile_instructions: bool,
    /// Time series.
    #[command(flatten)]
    pub series: SeriesOptions,
    /// Also write what happened when as a trace for Perfetto (ui.perfetto.dev): calls, kernels, CTAs, copies, page
    /// migrations; packed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// What the timeline shows
    #[arg(long, value_enum, default_value_t = TimelineDetail::Ctas, requires = "timeline")]
    pub timeline_detail: TimelineDetail,
    /// Record the program's calls into this folder, for `replay`
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// End at this simulated time, such as '20 us'; the statistics so far are written
    #[arg(long, value_name = "TIME")]
    pub stop_at: Option<SimTime>,
    /// Give up after this many seconds of real time (exit code 4); the statistics so far are written
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_wall: Option<Duration>,
    /// Let the run be looked at, paused and stepped while it goes on: as a page, by Prometheus, by `balar-actors watch`; on this port
    /// of 127.0.0.1, or a free one
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0", value_parser = crate::live::port)]
    pub live: Option<u16>,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

/// What a timeline shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimelineDetail {
    /// Calls, kernels, copies, links, page migrations, counters
    Kernels,
    /// The CTAs of each SM, too
    Ctas,
}

impl From<TimelineDetail> for engine::TimelineDetail {
    fn from(detail: TimelineDetail) -> engine::TimelineDetail {
        match detail {
            TimelineDetail::Kernels => engine::TimelineDetail::Kernels,
            TimelineDetail::Ctas => engine::TimelineDetail::Ctas,
        }
    }
}

/// Which code of a kernel to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Isa {
    /// PTX.
    Ptx,
    /// The machine code of the GPU, assembled where there is PTX alone; an error where there is neither.
    Sass,
    /// Machine code where there is some for the GPU or PTX can be assembled, otherwise PTX.
    Auto,
}

impl From<Isa> for IsaChoice {
    fn from(isa: Isa) -> IsaChoice {
        match isa {
            Isa::Ptx => IsaChoice::Ptx,
            Isa::Sass => IsaChoice::Sass,
            Isa::Auto => IsaChoice::Auto,
        }
    }
}

/// A compiler that has built the PTX of built-in workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compiler {
    /// NVRTC of CUDA 12: what runs by default.
    Nvrtc,
    /// nvcc of CUDA 13, for sm_75.
    Nvcc,
    /// Clang.
    Clang,
}

/// What a catalogue prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatalogueFormat {
    /// Tables to read.
    Table,
    /// JSON.
    Json,
}

/// What a study prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyFormat {
    /// Tables to read.
    Table,
    /// All of it as JSON.
    Json,
    /// The comparisons, a line each.
    Csv,
}

/// Format of a picture of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// A graph of the rows of units, for Graphviz
    Dot,
    /// A picture of the node: the host, and each GPU as a die
    Svg,
}

impl GraphFormat {
    /// The format of a file of this name; standard output gets DOT.
    pub fn of(output: Option<&Path>) -> GraphFormat {
        let is_dot = |path: &Path| path.extension().is_some_and(|extension| extension == "dot" || extension == "gv");
        if output.is_none_or(is_dot) { GraphFormat::Dot } else { GraphFormat::Svg }
    }
}

/// `--workload NAME[:key=value,...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadChoice {
    /// Its name.
    pub name: String,
    /// Its parameters in the order given, each name once.
    pub parameters: Vec<(String, String)>,
}

impl fmt::Display for WorkloadChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (at, (key, value)) in self.parameters.iter().enumerate() {
            write!(f, "{}{key}={value}", if at == 0 { ":" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for WorkloadChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let name = name.trim();
        if name.is_empty() {
            return Err("expected NAME[:key=value,...], found no name".to_owned());
        }
        let mut parameters: Vec<(String, String)> = Vec::new();
        for field in rest.into_iter().flat_map(|rest| rest.split(',')) {
            let (key, value) =
                field.split_once('=').ok_or_else(|| format!("expected key=value after '{name}:', found '{field}'"))?;
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() || value.is_empty() {
                return Err(format!("expected key=value after '{name}:', found '{field}'"));
            }
            if parameters.iter().any(|(given, _)| given == key) {
                return Err(format!("parameter '{key}' is given twice"));
            }
            parameters.push((key.to_owned(), value.to_owned()));
        }
        Ok(WorkloadChoice { name: name.to_owned(), parameters })
    }
}

/// `--set PATH=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Units and parameter: "gpu.sm\[*\].clock".
    pub path: String,
    /// The value, as RON or as bare text.
    pub value: String,
}

impl FromStr for Override {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, value) = text.split_once('=').ok_or("expected PATH=VALUE, such as 'gpu.sm[*].clock=1800 MHz'")?;
        let (path, value) = (path.trim(), value.trim());
        if path.is_empty() || value.is_empty() {
            return Err("expected PATH=VALUE, such as 'gpu.sm[*].clock=1800 MHz'".to_owned());
        }
        Ok(Override { path: path.to_owned(), value: value.to_owned() })
    }
}

pub(crate) fn page_bytes(text: &str) -> Result<Bytes, String> {
    let range = balar_host::tunnel::PAGE_BYTES;
    let bytes = text.parse::<u64>().ok().or_else(|| text.parse::<Bytes>().ok().map(|bytes| bytes.0));
    let fits = |bytes: &u64| bytes.is_power_of_two() && range.contains(bytes);
    bytes.filter(fits).map(Bytes).ok_or_else(|| {
        format!(
            "expected a power of two from {} to {} bytes, such as 64 KiB, found '{text}'",
            range.start(),
            range.end()
        )
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text
        .trim_end_matches('%')
        .trim_end()
        .parse()
        .map_err(|_| format!("expected percent, such as 0.5, found '{text}'"))?;
    if percent.is_finite() && percent >= 0.0 { Ok(percent) } else { Err("must be zero or more".to_owned()) }
}

/// A time limit of real time.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("expected seconds, such as 60 or 0.5, found '{text}'"))?;
    if seconds.is_nan() || seconds <= 0.0 {
        return Err("must be more than zero".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
