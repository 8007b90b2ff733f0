//! Options of `replay`.

use super::headings;
use super::simulation::SimulationOptions;
use clap::Args;
use std::path::PathBuf;

/// A recorded program.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("topology", |topology| topology.required(true)))]
pub struct ReplayOptions {
    /// Options of every run.
    #[command(flatten)]
    pub simulation: SimulationOptions,
    /// Replay the trace of an unfinished run as far as it goes
    #[arg(long, help_heading = headings::WHAT_RUNS)]
    pub partial: bool,
    /// Do not compare the data that the device computes (for programs whose results depend on timing)
    #[arg(long, help_heading = headings::WHAT_RUNS)]
    pub unchecked: bool,
    /// For traces of Balar: read the code from this PTX file or CUDA executable instead of the folder (repeatable)
    #[arg(long, value_name = "FILE", help_heading = headings::WHAT_RUNS)]
    pub ptx: Vec<PathBuf>,
    /// The folder of the trace
    #[arg(value_name = "DIR", help_heading = headings::ARGUMENTS)]
    pub trace: PathBuf,
}
