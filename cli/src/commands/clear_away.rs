//! `clear-away`: the work of the janitor, a process that outlives the simulator and removes what it leaves if it is killed.

use balar_live::shared_memory;
use std::io::{self, Read};
use std::path::Path;

/// The work of the process: it waits until the other end of its standard input is closed, and removes what it is told to.
pub fn clear_away(folder: Option<&Path>, memory: Option<&str>) {
    // No data arrives, and an error means that the other end is closed, too.
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
    if let Some(folder) = folder {
        balar_host::tunnel::remove_folder(folder);
    }
    if let Some(memory) = memory {
        shared_memory::remove(memory);
    }
}
