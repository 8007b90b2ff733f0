//! The log: what happens in a run, on stderr, for people or for programs.

use balar_record::system::failure::say;
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt;

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line for each event, with the spans that it is in.
    #[default]
    Text,
    /// A JSON object on each line: for each event, and for each span when it ends.
    Json,
}

/// Begins the log. `RUST_LOG` is a level ("debug") or levels by module ("balar_actors::engine=trace").
pub(crate) fn start(format: LogFormat) {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let filter = match wanted.parse::<Targets>() {
        Ok(filter) if !wanted.is_empty() => filter,
        Ok(_) => Targets::new().with_default(LevelFilter::WARN),
        Err(error) => {
            say(format_args!("RUST_LOG is ignored: {error}"));
            Targets::new().with_default(LevelFilter::WARN)
        }
    };
    let started = match format {
        LogFormat::Text => {
            let lines = layer().with_writer(io::stderr).with_ansi(io::stderr().is_terminal());
            registry().with(lines).with(filter).try_init()
        }
        LogFormat::Json => {
            let lines = layer().json().with_writer(io::stderr).with_ansi(false).with_span_events(FmtSpan::CLOSE);
            registry().with(lines).with(filter).try_init()
        }
    };
    // This fails only if a program that embeds this one has installed a log already.
    let _ = started;
}
