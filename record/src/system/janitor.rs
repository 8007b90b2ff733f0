//! A process that outlives the simulator and removes its folder or shared memory if the simulator is killed.
//!
//! The folder of a run must exist as long as the program may load files from it, and the shared memory of `--live` as long as others may
//! open it by its name, so they cannot be removed early. SIGKILL, which cannot be caught, must not leave them behind either.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The hidden subcommand that this process runs.
pub const CLEAR_AWAY: &str = "clear-away";

/// The process, which waits for the end of this one. Dropping this ends it, because nothing is left to remove.
#[derive(Debug)]
pub struct Janitor(Child);

impl Janitor {
    /// Starts the janitor of a folder.
    ///
    /// # Errors
    ///
    /// If the system cannot start a process.
    pub fn start(folder: &Path) -> io::Result<Janitor> {
        Janitor::with(&[folder.as_os_str()])
    }

    /// Starts the janitor of a shared-memory object.
    ///
    /// # Errors
    ///
    /// If the system cannot start a process.
    pub fn of_memory(name: &str) -> io::Result<Janitor> {
        Janitor::with(&["--memory".as_ref(), name.as_ref()])
    }

    fn with(arguments: &[&OsStr]) -> io::Result<Janitor> {
        let mut command = Command::new("/proc/self/exe");
        // It has its own process group, so that signals to ours do not reach it, and keeps none of our files open.
        command.arg(CLEAR_AWAY).args(arguments).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        command.spawn().map(Janitor)
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        // Nothing is left to do for it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
