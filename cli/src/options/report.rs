//! Options of `report`.

use clap::Args;
use std::path::PathBuf;

/// What `report --help` adds.
pub const REPORT_HELP: &str = "\
The page is one file that asks nobody for anything: open it in a browser, send it, print it. A run writes its own with --report FILE, which
also samples it, so that the page shows the run over time and by unit. Of a folder, it shows over time what --sample-interval wrote
(samples.jsonl), and stalls by kernel with --profile-instructions.

  balar-actors --topology v100_node --workload lud --output before
  balar-actors --topology v100_node --workload lud --output after --set 'gpu.sm[*].clock=1530 MHz'
  balar-actors report before after --output difference.html";

/// Options of `report`.
#[derive(Args, Clone, Debug)]
pub struct ReportOptions {
    /// A run, or two to compare: folders of --output, or documents of --format json
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// The page
    #[arg(short = 'o', long, value_name = "FILE.html")]
    pub output: PathBuf,
}
