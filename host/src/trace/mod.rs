//! Recorded runs: the calls of a program with everything that they depend on, to be played again without it.
//!
//! A trace is a folder (`docs/traces.md`): a header (`trace.txt`), events in the order in which they happened (`events.bin`), and
//! bulk data (`payloads.bin`). Folders of Balar's traces are read, too.

mod balar;
mod comparison;
mod error;
mod event;
mod header;
mod payloads;
mod reader;
mod recorder;
mod replay;
mod shared_memory;
mod writer;

use std::sync::Arc;

/// A file with code, by its name: a PTX text, or a cubin.
pub type CodeFile = (String, Arc<[u8]>);

#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;

pub use balar::{BalarError, BalarReplay, BalarTrace, LineError};
pub use error::TraceError;
pub use event::Event;
pub use header::{FORMAT_VERSION, Header};
pub use payloads::PayloadId;
pub use reader::Trace;
pub use recorder::{Recorder, RecordingState};
pub use replay::Replay;
pub use shared_memory::HostWindow;
pub use writer::TraceWriter;
