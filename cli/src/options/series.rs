//! Options of time series.

use super::headings;
use balar_protocol::SimTime;
use clap::{Args, ValueEnum};

/// Options of time series.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = headings::FILES)]
pub struct SeriesOptions {
    /// Also write what all units have counted each time that so much simulated time has passed: '1 us'
    ///
    /// It goes into the folder of --output; --metrics chooses what. Quotients go into the --timeline, too.
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub sample_interval: Option<SimTime>,
    /// Forms of the samples: samples.jsonl, *_samples.csv, run.db, or for LDMS ldms/stream.jsonl or what its store_csv writes
    #[arg(
        long,
        value_name = "FORM,...",
        value_enum,
        value_delimiter = ',',
        default_value = "jsonl",
        requires = "sample_interval"
    )]
    pub samples: Vec<SampleForm>,
    /// Of the form of LDMS: the seconds since 1970 at which simulated time begins
    #[arg(long, value_name = "SECONDS", default_value_t = 0, requires = "sample_interval")]
    pub sample_epoch: u32,
}

/// A form of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SampleForm {
    /// A JSON object a line
    Jsonl,
    /// A CSV file for the node, one for GPUs and one for launches
    Csv,
    /// An SQLite database, with the result of the run
    Sqlite,
    /// As LDMS's store_csv writes it, with the types of columns
    LdmsCsv,
    /// JSON lines as LDMS's json_stream_sampler takes them: every member in every line
    LdmsJsonl,
}

/// Between two samples.
pub fn interval(text: &str) -> Result<SimTime, String> {
    let interval: SimTime = text.parse().map_err(|error: balar_protocol::QuantityError| error.to_string())?;
    if interval == SimTime::ZERO { Err("must be more than zero".to_owned()) } else { Ok(interval) }
}
