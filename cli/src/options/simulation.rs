//! Options of every run.

use super::detail::{self, DetailOption};
use super::format::Format;
use super::headings;
use super::selection::Selection;
use super::series::SeriesOptions;
use super::topology::{OVERRIDE_HELP, Override, TOPOLOGY_VARIABLE};
use balar_actors::engine;
use balar_actors::simulation::IsaChoice;
use balar_protocol::SimTime;
use balar_record::system::failure::Failure;
use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Options of every run.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("place_of_profiles").args(["output", "report"]).multiple(true))]
pub struct SimulationOptions {
    /// The node: a file, or the name of a built-in topology
    ///
    /// Where no option names one, it is that of BALAR_TOPOLOGY, or v100_node. `balar-actors topologies` lists those that are built in.
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
    /// Which code of kernels runs.
    #[command(flatten)]
    pub code: CodeOptions,
    /// Overrides of single parameters.
    #[arg(long = "set", value_name = "PATH=VALUE", help = OVERRIDE_HELP, help_heading = headings::NODE)]
    pub set: Vec<Override>,
    /// What is timed.
    #[arg(long, value_name = "WHAT", help = detail::HELP, help_heading = headings::LIMITS)]
    pub detail: Vec<DetailOption>,
    /// When it ends.
    #[command(flatten)]
    pub limits: LimitOptions,
    /// What to print: on stdout, or after the program's own output on stderr
    #[arg(long, value_enum, default_value_t = Format::Table, help_heading = headings::PRINTED)]
    pub format: Format,
    /// Which part of the result to print.
    #[command(flatten)]
    pub selection: Selection,
    /// Show no progress
    #[arg(short = 'q', long, help_heading = headings::PRINTED)]
    pub quiet: bool,
    /// Also write stats.json, stats.csv, kernels.csv, summary.txt and topology.ron into this folder
    #[arg(short = 'o', long, value_name = "DIR", help_heading = headings::FILES)]
    pub output: Option<PathBuf>,
    /// Also write what the run did as a page of HTML: figures, kernels, stalls, everything over time and by unit
    #[arg(long, value_name = "FILE.html", help_heading = headings::FILES)]
    pub report: Option<PathBuf>,
    /// Count by instruction, too, into instructions.csv of the folder of --output
    ///
    /// Executions, cycles by stall reason, sectors and bank conflicts, for `hotspots`, `compare`, `disassemble --run` and spreadsheets; the
    /// page of --report has stalls by kernel of it.
    #[arg(long, requires = "place_of_profiles", help_heading = headings::FILES)]
    pub profile_instructions: bool,
    /// Time series.
    #[command(flatten)]
    pub series: SeriesOptions,
    /// Also write what happened when as a trace for Perfetto (ui.perfetto.dev)
    ///
    /// Calls, kernels, CTAs, copies, page migrations; packed if the name ends in .gz.
    #[arg(long, value_name = "FILE", help_heading = headings::FILES)]
    pub timeline: Option<PathBuf>,
    /// What the timeline shows
    #[arg(
        long,
        value_enum,
        default_value_t = TimelineDetail::Ctas,
        requires = "timeline",
        help_heading = headings::FILES
    )]
    pub timeline_detail: TimelineDetail,
    /// Record the program's calls into this folder, for `replay`
    #[arg(long, value_name = "DIR", help_heading = headings::FILES)]
    pub record: Option<PathBuf>,
    /// Let the run be looked at, paused and stepped while it goes on, as a page on 127.0.0.1
    ///
    /// On this port, or a free one. Prometheus and `balar-actors watch` look at the same.
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        default_missing_value = "0",
        value_parser = port,
        help_heading = headings::LOOKING_ON
    )]
    pub live: Option<u16>,
}

/// Which code of kernels runs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = headings::WHAT_RUNS)]
pub struct CodeOptions {
    /// Which code of a kernel to run
    #[arg(long, value_enum, default_value_t = Isa::Auto)]
    pub isa: Isa,
    /// The assembler (ptxas) that makes machine code of PTX where --isa auto or sass finds PTX alone [default: that of BALAR_PTXAS, the
    /// first in PATH, or /usr/local/cuda/bin/ptxas]
    #[arg(long, value_name = "PATH")]
    pub ptxas: Option<PathBuf>,
    /// End a kernel that uses shared memory before a copy or a product is done with it, or, in machine code, a register too early
    #[arg(long)]
    pub check_hazards: bool,
}

/// How many launches a program makes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = headings::LIMITS)]
pub struct LaunchLimitOptions {
    /// End when the program has made so many launches, and what it has asked for until then is done
    ///
    /// Launches that fail do not count, and a graph counts as one. The statistics so far are written.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub launches: Option<u32>,
}

/// When a run ends, and how much of the machine it takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = headings::LIMITS)]
pub struct LimitOptions {
    /// End at this simulated time, such as '20 us'; the statistics so far are written
    #[arg(long, value_name = "TIME")]
    pub stop_at: Option<SimTime>,
    /// Give up after this many seconds of real time (exit code 4); the statistics so far are written
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_wall: Option<Duration>,
    /// Threads of the simulation; the result does not depend on their number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
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

/// Refuses options that ask for times where nothing is timed.
///
/// # Errors
///
/// The first of them.
pub fn check_detail(options: &SimulationOptions) -> Result<(), Failure> {
    let refused = if !detail::choice(&options.detail).times_nothing() {
        None
    } else if options.limits.stop_at.is_some() {
        Some(("--stop-at", "--max-wall ends a run after so many seconds of real time"))
    } else if options.timeline.is_some() {
        Some(("--timeline", "--detail kernel=REGEX or launch=N names what is timed and shown"))
    } else if options.series.sample_interval.is_some() {
        Some(("--sample-interval", "--detail kernel=REGEX or launch=N names what is timed and sampled"))
    } else if options.profile_instructions {
        Some(("--profile-instructions", "--detail kernel=REGEX or launch=N names what is timed and profiled"))
    } else {
        None
    };
    match refused {
        Some((option, help)) => {
            Err(Failure::mistake(format_args!("{option}: with --detail none no time is simulated"), help))
        }
        None => Ok(()),
    }
}

/// The port that `--live` names; 0 = one that is free.
///
/// # Errors
///
/// If it is none.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| {
        "not a port (1 to 65535); for a free one, let another option or -- follow --live, or write it last".to_owned()
    })
}

/// A time limit of real time.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("expected seconds, such as 60 or 0.5, found '{text}'"))?;
    if seconds.is_nan() || seconds <= 0.0 {
        return Err("must be more than zero".to_owned());
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
