//! The subcommands of `snapshot`.

use super::headings;
use super::workload::RunOptions;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Subcommands on a snapshot.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Run, and show what differs from FILE, by row of units (--details: by unit); exit code 1 if anything differs
    Check {
        /// The run and the file.
        #[command(flatten)]
        options: SnapshotOptions,
        /// Accept numbers that differ from their pinned value by at most this percentage
        #[arg(
            long,
            value_name = "PERCENT",
            default_value_t = 0.0,
            value_parser = percent,
            help_heading = headings::PRINTED
        )]
        tolerance: f64,
    },
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
    #[arg(help_heading = headings::ARGUMENTS)]
    pub file: PathBuf,
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text
        .trim_end_matches('%')
        .trim_end()
        .parse()
        .map_err(|_| format!("expected percent, such as 0.5, found '{text}'"))?;
    if percent.is_finite() && percent >= 0.0 { Ok(percent) } else { Err("must be zero or more".to_owned()) }
}
