//! Options of `disassemble`.

use crate::options::workload::WorkloadChoice;
use balar_isa::sass;
use clap::{Args, ValueEnum};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What `disassemble --help` adds.
pub const DISASSEMBLE_HELP: &str = "\
A library holds cubins for many GPUs, of which those for sm_70 to sm_75 are read. One that is damaged is told, and the others are read.

  balar-actors disassemble libcublasLt.so.12 --arch sm_75 --check";

/// Options of `disassemble`.
#[derive(Args, Clone, Debug)]
pub struct DisassembleOptions {
    /// A cubin, a fatbin, or a program or library with device code for sm_70 to sm_75
    #[arg(value_name = "FILE", required_unless_present = "workload")]
    pub file: Option<PathBuf>,
    /// The machine code of this built-in workload instead of a file
    #[arg(short = 'w', long, value_name = "NAME", conflicts_with = "file")]
    pub workload: Option<WorkloadChoice>,
    /// Of a workload: only the code that the GPUs of this topology run
    #[arg(short = 't', long, value_name = "FILE|NAME", requires = "workload", conflicts_with = "file")]
    pub topology: Option<String>,
    /// Print what instructions did in the run that wrote this folder with --profile-instructions: executions, cycles, stalls
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
    /// Only the kernel or function of this name
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// Only the code for this architecture: sm_75
    #[arg(long, value_name = "ARCH")]
    pub arch: Option<Architecture>,
    /// What to print
    #[arg(long, value_enum, default_value_t = ListingFormat::Text)]
    pub format: ListingFormat,
    /// Print the bits of each instruction, too
    #[arg(long)]
    pub words: bool,
    /// Print how many general registers and predicates are in use at each instruction, too
    #[arg(long)]
    pub live: bool,
    /// Print instead which instructions are not known or cannot be executed, how often and where, and which kernels cannot run
    #[arg(long, conflicts_with_all = ["run", "function", "words", "live"])]
    pub check: bool,
}

/// What a listing of machine code prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListingFormat {
    /// Lines to read.
    Text,
    /// JSON.
    Json,
}

/// An architecture whose machine code is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture(pub u32);

impl FromStr for Architecture {
    type Err = String;

    fn from_str(text: &str) -> Result<Architecture, String> {
        let number = text.strip_prefix("sm_").unwrap_or(text).parse().ok();
        let known = number.filter(|number| sass::ARCHITECTURES.contains(number));
        known.map(Architecture).ok_or_else(|| format!("expected one of {}", names(sass::ARCHITECTURES)))
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

/// Names of architectures: `sm_70, sm_75`.
pub fn names(architectures: impl IntoIterator<Item = u32>) -> String {
    architectures.into_iter().map(|it| Architecture(it).to_string()).collect::<Vec<_>>().join(", ")
}
