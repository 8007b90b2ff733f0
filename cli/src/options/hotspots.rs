//! Options of `hotspots`.

use super::format::TableFormat;
use clap::{Args, ValueEnum};
use regex::Regex;
use std::path::PathBuf;

/// What `hotspots --help` adds.
pub const HOTSPOTS_HELP: &str = "\
Columns:
  cycles %     share of the cycles of the kernel's warps in which they issued it or waited to
  executed     warp instructions
  lanes        active lanes of a warp instruction, on average
  main stalls  why warps waited longest, as shares of the row's own cycles
  sectors      of 32 bytes, of an access to global or local memory, on average: 4 where a warp reads 32 neighbouring words of 4 bytes;
               4/32 where a row has loads and stores that differ: 4 of a load, 32 of a store
  conflicts    wavefronts of shared memory beyond the least possible

Lines are those of the source where the code names them (nvcc -lineinfo); else, where PTX ran, those of the PTX. The built-in workloads are
compiled without lines.

  balar-actors --topology v100_node --workload lud --output run --profile-instructions
  balar-actors hotspots run --by opcode --sort executed
  balar-actors hotspots run --kernel 'lud_.*' --sort conflicts";

/// Options of `hotspots`.
#[derive(Args, Clone, Debug)]
pub struct HotspotOptions {
    /// The folder that a run with --profile-instructions --output has written
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Only kernels whose name matches: 'lud_.*'
    #[arg(long, value_name = "REGEX")]
    pub kernel: Option<Regex>,
    /// What the instructions of a kernel are summed by
    #[arg(long, value_enum, default_value_t = By::Instruction)]
    pub by: By,
    /// What rows are sorted by: cycles, executed, lanes (the fewest first), sectors (of an access), conflicts, code (its order), or a counter of
    /// instructions.csv
    #[arg(long, value_name = "COLUMN", default_value = "cycles")]
    pub sort: String,
    /// Rows of a kernel that are printed [default: 10 in tables, all in CSV and JSON]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// What to print; CSV and JSON have every counter
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
    /// Also write the warp cycles of each instruction as folded stacks into this file, for flame graphs (inferno, flamegraph.pl, speedscope)
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Print the text of the source files, or else of the code, with what ran beside each line
    #[arg(long, conflicts_with_all = ["format", "by", "sort", "limit"])]
    pub listing: bool,
    /// Look for source files in this folder before the place that the code names (repeatable)
    #[arg(long, value_name = "DIR", requires = "listing")]
    pub source: Vec<PathBuf>,
}

/// What the instructions of a kernel are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Each instruction by itself
    Instruction,
    /// By line of the source file; where PTX ran that names none, by its own line
    Line,
    /// By function, inlined ones too where the code names them
    Function,
    /// By what the instructions do, with its modifiers: LDG.E.SYS, ld.global.f32
    Opcode,
}
