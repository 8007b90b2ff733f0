//! Recording the calls of a program.

use balar_actors::simulation::InitialCode;
use balar_host::Host;
use balar_host::trace::{Header, HostWindow, Recorder, RecordingState, TraceWriter};
use balar_record::ending::Ending;
use balar_record::result::RunRecord;
use balar_record::system::failure::say;
use std::io;
use std::path::{Path, PathBuf};

/// The recording of a run, where one was asked for.
#[derive(Debug, Default)]
pub struct Recording {
    folder: Option<PathBuf>,
    state: Option<RecordingState>,
}

impl Recording {
    /// A recording into `folder`; none without one.
    pub fn new(folder: Option<&Path>) -> Recording {
        Recording { folder: folder.map(Path::to_owned), state: None }
    }

    /// Puts a recorder before a program.
    ///
    /// # Errors
    ///
    /// Where the trace cannot be begun.
    pub fn wrap(
        &mut self,
        host: Box<dyn Host>,
        header: Header,
        code: &InitialCode,
        window: Option<HostWindow>,
    ) -> io::Result<Box<dyn Host>> {
        let Some(folder) = &self.folder else { return Ok(host) };
        let writer = TraceWriter::create(folder, header).map_err(io::Error::other)?;
        let (recorder, state) = Recorder::new(host, writer, code, window);
        self.state = Some(state);
        Ok(Box::new(recorder))
    }

    /// Notes in the trace, and reports on stderr, that it ends before the program did, if the run did not complete.
    pub fn report_ending(&self, record: &RunRecord) {
        // With --launches the program ends as far as its trace knows.
        let is_whole = matches!(record.ending, Ending::Completed | Ending::Launches(_));
        let Some(folder) = self.folder.as_ref().filter(|_| !is_whole) else { return };
        let cause = record.cause().map(|cause| cause.text);
        let cause = cause.unwrap_or_else(|| format!("ended by --stop-at at {} of simulated time", record.sim_time));
        if let Err(error) = Header::interrupt(folder, &cause) {
            say(format_args!("error: the trace does not say that the run was interrupted: {error}"));
        }
        let folder = folder.display();
        say(format_args!(
            "the trace in {folder} ends where the run did: `replay --partial` replays it as far as it goes"
        ));
    }

    /// Why the recording was abandoned, if it was. This does not affect the run itself.
    pub fn problem(&self) -> Option<String> {
        let error = self.state.as_ref().and_then(RecordingState::take_error)?;
        Some(format!("the trace is unfinished: {error}"))
    }
}
