//! Clears away what a killed simulator leaves: a process that outlives it.
//!
//! The folder of a run holds files as long as the program may load them, so it cannot be removed early. A signal that cannot be
//! caught must not leave it behind.

use crate::arguments::CLEAR_AWAY;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The process: it waits for the end of this one. Dropped, it is told that there is nothing to do.
#[derive(Debug)]
pub struct Janitor(Child);

impl Janitor {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// Where the system has no process for it.
    pub fn start(folder: &Path) -> io::Result<Janitor> {
        let mut command = Command::new("/proc/self/exe");
        // A group of its own: a signal to all of this one's does not reach it. It keeps nothing of ours open.
        command.arg(CLEAR_AWAY).arg(folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        command.spawn().map(Janitor)
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        // It has nothing to do any longer, and is a process of ours in any case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What it does: waits until the other end of its standard input is gone, and clears `folder` away.
pub fn clear_away(folder: &Path) {
    // Nothing comes; an error is an end too.
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    balar_host::tunnel::remove_folder(folder);
}
