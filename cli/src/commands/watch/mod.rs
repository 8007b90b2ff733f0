//! `watch`: a run with `--live` of the same user, in another terminal.
//!
//! The run is found by its shared memory, which says its port and token; the rest goes over HTTP, as for the page.
//!
//! **Invariant:** a watcher that ends, is killed or falls behind does not touch the run.

mod client;
mod screen;

use balar_live::shared_memory::{BoardReader, OpenError, running};
use balar_live::state::LiveState;
use balar_live::text;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::{Failure, say};
use client::Client;
use std::io::{self, IsTerminal};

/// Shows the run of a process, or the only one that there is.
///
/// # Errors
///
/// If there is no such run, there are several, or it does not answer.
pub fn run(pid: Option<u32>) -> Result<ExitStatus, Failure> {
    let reader = match pid {
        Some(pid) => BoardReader::open(pid).map_err(failure)?,
        None => only()?,
    };
    let client = Client::new(reader.port(), &reader.token()).map_err(|cause| unanswered(&reader, &cause))?;
    let state = client.state().map_err(|cause| unanswered(&reader, &cause))?;
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let written = crate::output::print(&text::snapshot(&state));
        written.map_err(|error| Failure::input(format_args!("cannot write: {error}")))?;
        return Ok(ExitStatus::Done);
    }
    let last = screen::show(&client, state).map_err(|error| Failure::input(format_args!("the terminal: {error}")))?;
    match last {
        Some(ending) => say(format_args!("the run of process {}: {ending}", reader.pid())),
        None => say(format_args!("the run of process {} goes on", reader.pid())),
    }
    Ok(ExitStatus::Done)
}

/// The only run that there is.
fn only() -> Result<BoardReader, Failure> {
    let readers: Vec<Result<BoardReader, OpenError>> = running().into_iter().map(BoardReader::open).collect();
    // A run that ended meanwhile, or is of somebody else, is none that could be meant.
    let (found, problems): (Vec<_>, Vec<_>) = readers.into_iter().partition(Result::is_ok);
    let mut found: Vec<BoardReader> = found.into_iter().flatten().collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let other = problems
                .into_iter()
                .filter_map(Result::err)
                .find(|error| matches!(error, OpenError::OtherVersion { .. }));
            Err(other.map_or_else(
                || {
                    Failure::mistake(
                        "no run with --live is under way",
                        "start one with --live: balar-actors --topology v100_node --live",
                    )
                },
                failure,
            ))
        }
        _ => {
            let list: Vec<String> = found.iter().map(|reader| format!("  {}", named(reader))).collect();
            let message = format!("several runs are under way:\n{}", list.join("\n"));
            Err(Failure::mistake(message, "name one by its process number: balar-actors watch NUMBER"))
        }
    }
}

/// A run in a list.
fn named(reader: &BoardReader) -> String {
    let state = Client::new(reader.port(), &reader.token()).and_then(|client| client.state());
    match state {
        Ok(LiveState { run, phase, .. }) => {
            format!("{}  {} on {}, {}", reader.pid(), run.workload, run.topology, phase.name())
        }
        Err(_) => format!("{}  does not answer", reader.pid()),
    }
}

fn failure(error: OpenError) -> Failure {
    let help = match &error {
        OpenError::Absent(_) => "`balar-actors watch` without a number shows the only run, or lists them",
        OpenError::OtherVersion { .. } => "use the `balar-actors watch` of the version that runs",
        OpenError::Refused { .. } | OpenError::NotARun(_) => "a run can be watched by the user who started it alone",
    };
    Failure::mistake(error, help)
}

fn unanswered(reader: &BoardReader, cause: &io::Error) -> Failure {
    Failure::input(format_args!("the run of process {} does not answer: {cause}", reader.pid()))
}
