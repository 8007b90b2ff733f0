//! Ctrl-C: the first ends the run cleanly, with the statistics so far; the second ends the program at once.

use crate::exit::ExitStatus;
use crate::failure::say;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Listens for Ctrl-C from now on, and sets the flag that it returns at the first.
///
/// # Errors
///
/// Where the system grants no thread or signal handler.
pub fn listen() -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Taken before the thread starts: no Ctrl-C after the return of this function is missed.
    #[cfg(unix)]
    let mut signal = {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?
    };
    std::thread::Builder::new().name("ctrl-c".to_owned()).spawn(move || {
        runtime.block_on(async {
            for press in 0.. {
                #[cfg(unix)]
                let received = signal.recv().await.is_some();
                #[cfg(not(unix))]
                let received = tokio::signal::ctrl_c().await.is_ok();
                match (received, press) {
                    (false, _) => return,
                    (true, 0) => {
                        flag.store(true, Ordering::Relaxed);
                        say("interrupted: the run ends with the statistics so far; Ctrl-C again ends it at once");
                    }
                    (true, _) => std::process::exit(i32::from(ExitStatus::Interrupted.code())),
                }
            }
        });
    })?;
    Ok(interrupted)
}
