//! The command line.

use balar_protocol::SimTime;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Exit codes, for `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0    done, and the result verified or without a check
  1    the run ended but its result is wrong, or a snapshot differs
  2    bad arguments, topology, PTX or trace
  3    the simulated program failed: a CUDA error, a trap, an illegal address
  4    deadlock, or the limit of --max-wall
  70   a bug of balar-actors
  130  ended by Ctrl-C; the statistics so far are written

A topology is a path or the name of one that is built in (v100_node). RUST_LOG=debug shows what happens on stderr.";

const OVERRIDE_HELP: &str = "Override one parameter: 'gpu.sm[*].clock=1800 MHz' (repeatable)";

/// Simulates a node of CPUs and GPUs and the CUDA program that runs on it.
///
/// Without a subcommand: runs the topology's own workload and prints what each unit did.
#[derive(Debug, Parser)]
#[command(
    name = "balar-actors",
    version,
    after_help = EXIT_CODES,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true
)]
pub struct Arguments {
    /// What to do instead of the main job.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the main job.
    #[command(flatten)]
    pub run: RunOptions,
}

/// What to do instead of the main job.
#[derive(Debug, Subcommand)]
pub enum Command {
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
    /// List the built-in workloads, or show one with its parameters
    Workloads {
        /// A workload
        name: Option<String>,
        /// What to print
        #[arg(long, value_enum, default_value_t = CatalogueFormat::Table)]
        format: CatalogueFormat,
    },
    /// List the kernels of PTX files: registers, shared memory, and what the simulator cannot run
    Ptx {
        /// PTX files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// What to print
        #[arg(long, value_enum, default_value_t = CatalogueFormat::Table)]
        format: CatalogueFormat,
    },
    /// Compare a run with a pinned snapshot, or pin it
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
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
        /// What to draw it in
        #[arg(long, value_enum, default_value_t = GraphFormat::Dot)]
        format: GraphFormat,
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
    /// Run, and show what differs from FILE; exit code 1 where something does
    Check(SnapshotOptions),
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

/// Options of every run.
#[derive(Args, Clone, Debug)]
pub struct RunOptions {
    /// File, or name of a built-in topology
    #[arg(long, value_name = "FILE|NAME", required = true)]
    pub topology: Option<String>,
    /// Run this workload instead of the topology's, with the given parameters
    #[arg(long, value_name = "NAME[:key=value,...]")]
    pub workload: Option<WorkloadChoice>,
    /// Take the workload's kernels from this PTX file instead of the built-in one; given several times, the files are linked
    #[arg(long, value_name = "FILE")]
    pub ptx: Vec<PathBuf>,
    /// Take the workload's kernels from the built-in PTX of this compiler
    #[arg(long, value_enum, conflicts_with = "ptx")]
    pub compiler: Option<Compiler>,
    /// Overrides of single parameters.
    #[arg(long = "set", value_name = "PATH=VALUE", help = OVERRIDE_HELP)]
    pub set: Vec<Override>,
    /// Threads to simulate with; the result does not depend on it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Which code of a kernel to run
    #[arg(long, value_enum, default_value_t = Isa::Auto)]
    pub isa: Isa,
    /// What to print on stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Also write stats.json, stats.csv, kernels.csv, summary.txt and topology.ron into this folder
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// End at this simulated time, such as '20 us'; the statistics so far are written
    #[arg(long, value_name = "TIME")]
    pub stop_at: Option<SimTime>,
    /// Give up after so many seconds of real time (exit code 4); the statistics so far are written
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_wall: Option<Duration>,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

/// Which code of a kernel to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Isa {
    /// PTX, translated by this program.
    Ptx,
    /// The machine code of the GPU.
    Sass,
    /// The best that there is.
    Auto,
}

/// A compiler whose PTX a built-in workload has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compiler {
    /// NVRTC of CUDA 12: what runs by default.
    Nvrtc,
    /// nvcc of CUDA 13, for sm_75.
    Nvcc,
    /// Clang.
    Clang,
}

/// What a run prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A summary to read.
    Table,
    /// The result document.
    Json,
    /// The statistics as location,what,value,unit.
    Csv,
}

/// What a catalogue prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatalogueFormat {
    /// Tables to read.
    Table,
    /// JSON.
    Json,
}

/// What a topology is drawn in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// Graphviz.
    Dot,
    /// A picture for browsers.
    Svg,
}

/// `--workload NAME[:key=value,...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadChoice {
    /// Its name.
    pub name: String,
    /// Its parameters in the order given, each name once.
    pub parameters: Vec<(String, String)>,
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

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("expected seconds, such as 60 or 0.5, found '{text}'"))?;
    if seconds.is_nan() || seconds <= 0.0 {
        return Err("must be more than zero".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(std::iter::once("balar-actors").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_sound() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn every_option_of_a_run_is_read() {
        let line = "--topology t.ron --workload lud:size=256,seed=3 --set gpu.sm[*].clock=1800MHz --set cpu.a=1 \
                    --threads 4 --isa ptx --format csv --output out --stop-at 20us --max-wall 1.5 --quiet";
        let run = parse(line).expect(line).run;
        assert_eq!(run.topology.as_deref(), Some("t.ron"));
        let workload = run.workload.expect("given");
        assert_eq!(workload.name, "lud");
        assert_eq!(workload.parameters, [("size".into(), "256".into()), ("seed".into(), "3".into())]);
        assert_eq!(run.set[0], Override { path: "gpu.sm[*].clock".into(), value: "1800MHz".into() });
        assert_eq!((run.set.len(), run.threads, run.isa, run.format), (2, 4, Isa::Ptx, Format::Csv));
        assert_eq!(run.stop_at, Some(SimTime(20_000_000)));
        assert_eq!(run.max_wall, Some(Duration::from_millis(1500)));
        assert!(run.quiet);
    }

    #[test]
    fn subcommands_are_read() {
        for line in [
            "topology check t.ron",
            "topology show t.ron --set a.b=1",
            "topology graph t.ron --format svg",
            "units",
            "units L2Slice",
            "workloads vectoradd --format json",
            "ptx a.ptx b.ptx --format json",
            "snapshot check --topology t.ron pinned.txt",
            "snapshot accept --topology t.ron --threads 2 pinned.txt",
        ] {
            assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, said) in [
            ("", "--topology"),
            ("--topology t --thread 4", "--threads"),
            ("--topology t --threads 0", "0 is not in 1..=1024"),
            ("--topology t --format jsn", "json"),
            ("--topology t --stop-at 20", "expected a time"),
            ("--topology t --max-wall 0", "more than zero"),
            ("--topology t --max-wall soon", "expected seconds"),
            ("--topology t --max-wall nan", "more than zero"),
            ("--topology t --set clock", "expected PATH=VALUE"),
            ("--topology t --workload :a=1", "found no name"),
            ("--topology t --workload lud:size", "expected key=value"),
            ("--topology t --workload lud:size=1,size=2", "given twice"),
            ("snapshot check pinned.txt", "--topology"),
            ("topologies", "topology"),
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(said), "{line}: {error}");
        }
    }
}
