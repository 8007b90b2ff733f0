//! In which form commands print.

use clap::ValueEnum;

/// What a run prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A summary to read, or what --details, --show and --metrics select.
    Table,
    /// The result document.
    Json,
    /// The statistics, or those that --show and --metrics select, as location,what,value,unit.
    Csv,
    /// Events and metrics by kernel, as nvprof prints them; those of --metrics, or all that launches have.
    Nvprof,
    /// A line for each launch and metric, in the columns of Nsight Compute's --csv; those of --metrics, or all that launches have.
    NcuCsv,
    /// The statistics, or those that --show and --metrics select, in the columns of SST's CSV output.
    SstCsv,
}

/// What `hotspots` and `compare` print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// Tables to read.
    Table,
    /// A line for each row, or each value.
    Csv,
    /// JSON.
    Json,
}

/// What a catalogue prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CatalogueFormat {
    /// Tables to read.
    Table,
    /// JSON.
    Json,
}

/// What a study prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StudyFormat {
    /// Tables to read.
    Table,
    /// All of it as JSON.
    Json,
    /// The comparisons, a line each.
    Csv,
}
