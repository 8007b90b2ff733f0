//! Options of a run of a workload, and what names a workload.

use super::headings;
use super::simulation::{LaunchLimitOptions, SimulationOptions};
use clap::{Args, ValueEnum};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Options of a run of a workload.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("topology", |topology| topology.required_unless_present("workload")))]
pub struct RunOptions {
    /// The workload.
    #[command(flatten)]
    pub work: WorkloadOptions,
    /// Options of every run.
    #[command(flatten)]
    pub simulation: SimulationOptions,
    /// How many launches are made.
    #[command(flatten)]
    pub launch_limit: LaunchLimitOptions,
}

/// What chooses a workload and its code.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = headings::WHAT_RUNS)]
pub struct WorkloadOptions {
    /// Run this workload instead of the topology's, with the given parameters: gemm, lud:size=256
    ///
    /// `balar-actors workloads` lists them, and `balar-actors workloads NAME` the parameters of one.
    #[arg(short = 'w', long, value_name = "NAME[:key=value,...]")]
    pub workload: Option<WorkloadChoice>,
    /// Take the workload's kernels from this PTX file instead of the built-in one; given several times, the files are linked
    #[arg(long, value_name = "FILE")]
    pub ptx: Vec<PathBuf>,
    /// Take the workload's kernels from the built-in PTX of this compiler
    #[arg(long, value_enum, conflicts_with = "ptx")]
    pub compiler: Option<Compiler>,
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
