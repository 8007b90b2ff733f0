//! The command line.

use crate::log::LogFormat;
use crate::options::compare::{COMPARE_HELP, CompareOptions};
use crate::options::disassemble::{DISASSEMBLE_HELP, DisassembleOptions};
use crate::options::format::CatalogueFormat;
use crate::options::hotspots::{HOTSPOTS_HELP, HotspotOptions};
use crate::options::new::NewCommand;
use crate::options::program::{ProgramOptions, RUN_HELP};
use crate::options::replay::ReplayOptions;
use crate::options::report::{REPORT_HELP, ReportOptions};
use crate::options::roofline::{ROOFLINE_HELP, RooflineOptions};
use crate::options::snapshot::SnapshotCommand;
use crate::options::sweep::{SWEEP_HELP, SweepOptions};
use crate::options::topology::TopologyCommand;
use crate::options::validate::{VALIDATE_HELP, ValidateOptions};
use crate::options::workload::RunOptions;
use balar_record::system::janitor::CLEAR_AWAY;
use clap::{Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// What `-h` adds, and `--help` behind the exit codes.
macro_rules! examples {
    () => {
        "\
Examples:
  balar-actors -t v100_node                                # the topology's own workload
  balar-actors -t t4_node -w gemm:size=512 -o out          # a built-in workload; its files go into the folder out
  balar-actors -w lud --set 'gpu.clock=1 GHz' --sections   # on v100_node, or the node of BALAR_TOPOLOGY
  balar-actors run -t v100_node -- ./app --size 512        # a CUDA program of your own
  balar-actors sweep -t v100_node -w gemm --set 'gpu.clock=1200 MHz,1500 MHz' -o clocks

`balar-actors workloads`, `topologies`, `metrics` and `units` list what can be named; `balar-actors COMMAND --help` has more of a command."
    };
}

/// What `-h` adds.
const EXAMPLES: &str = examples!();

/// What `--help` adds.
const EXIT_CODES: &str = concat!(
    "\
Exit codes:
  0    done; the result is verified, or the workload has no check
  1    the run ended but its result is wrong, a snapshot differs, or points of a sweep failed
  2    bad arguments, topology, PTX or trace, a --kernel that no launch is of
  3    the simulated program failed: a CUDA error, a trap, an illegal address
  4    deadlock, or the limit of --max-wall
  5    a unit that does not come with balar-actors broke a rule
  70   a bug in balar-actors
  130  ended by Ctrl-C; the statistics so far are written
  143  ended by SIGTERM; the statistics so far are written

A topology is a path or the name of one that is built in (v100_node). BALAR_TOPOLOGY names that of runs without --topology.
RUST_LOG=debug shows what happens on stderr.

",
    examples!()
);

/// What `watch --help` adds.
const WATCH_HELP: &str = "\
Where stdout is no terminal, this prints how the run is now and ends. It ends with the run; a watcher that ends or is killed does
not touch the run.";

/// Simulates a node of CPUs and GPUs and the CUDA program that runs on it.
///
/// Without a subcommand, it runs the topology's own workload and prints the result.
#[derive(Debug, Parser)]
#[command(
    name = "balar-actors",
    version,
    after_help = EXAMPLES,
    after_long_help = EXIT_CODES,
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
    /// How the log of RUST_LOG is written on stderr
    #[arg(long, value_enum, value_name = "FORMAT", global = true, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
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
    /// Make a project with a hardware unit of your own
    #[command(subcommand)]
    New(NewCommand),
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

#[cfg(test)]
mod tests;
