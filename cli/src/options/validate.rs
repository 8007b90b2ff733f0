//! Options of `validate`.

use super::format::StudyFormat;
use super::simulation::seconds;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What `validate --help` adds.
pub const VALIDATE_HELP: &str = "\
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
  hardware  kernels of a public program beside a TITAN V and a GeForce RTX 2080 Ti; all of it: a second; with --programs minutes
            titanv, rtx2080ti

Without a study, this lists them. --output writes a CSV file for each table, report.json, summary.txt, comparisons.csv, the
charts as SVG, and index.html, a page with all of it. Ctrl-C ends it; the tables then lack what has not run.

LULESH is run as `run -- COMMAND` would run it, as machine code where a ptxas is found (BALAR_PTXAS). So are the programs of
`hardware --programs DIR`, which print their times: runner on the TITAN V's node, runner_sm75 on the RTX 2080 Ti's. They run in DIR;
BALAR_PTXAS needs a whole path then. validation/README.md says what they are. Where one is not there, its figures stay recorded ones.";

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
    /// The study `hardware`: the folder with its programs, built; without it, recorded figures stand in
    #[arg(long = "programs", value_name = "DIR", requires = "study")]
    pub folder: Option<PathBuf>,
    /// Runs at the same time; the figures do not depend on their number [default: the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// What to print on stdout; CSV is the list of all comparisons
    #[arg(long, value_enum, default_value_t = StudyFormat::Table)]
    pub format: StudyFormat,
    /// Also write tables, comparisons and charts into this folder
    #[arg(short = 'o', long, value_name = "DIR", requires = "study")]
    pub output: Option<PathBuf>,
    /// Give up after this many seconds of real time (exit code 4); the tables lack what has not run
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_wall: Option<Duration>,
    /// Show no progress
    #[arg(short = 'q', long)]
    pub quiet: bool,
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
