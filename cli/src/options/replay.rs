//! Options of `replay`.

use super::simulation::SimulationOptions;
use clap::Args;
use std::path::PathBuf;

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
