//! Events that end a run early: Ctrl-C, SIGTERM, and the limit of real time. The first one ends it cleanly, with the statistics so far; a
//! second signal ends the program at once, whatever else it does.

use balar_record::ending::Ending;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::say;
use futures::future::{Either, select};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Causes, as a number.
const NONE: u8 = 0;
const CTRL_C: u8 = 1;
const TERMINATE: u8 = 2;
const WALL_LIMIT: u8 = 3;

/// Whether a run must end, and why.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// Ends the run when it is set.
    pub flag: Arc<AtomicBool>,
    cause: Arc<AtomicU8>,
}

impl Interrupt {
    /// Listens for signals from now on, and ends the run when `limit` of real time is over, the time for loading included.
    ///
    /// # Errors
    ///
    /// Where the system grants no thread or signal handler.
    pub fn listen(limit: Option<Duration>) -> io::Result<Interrupt> {
        Interrupt::listen_with(limit, "interrupted: the run ends with the statistics so far; once more ends it at once")
    }

    /// As [`Interrupt::listen`]; the first signal is answered with `note`.
    ///
    /// # Errors
    ///
    /// Where the system grants no thread or signal handler.
    pub fn listen_with(limit: Option<Duration>, note: &'static str) -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        let own = interrupt.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Registered before the thread starts, so that no signal is missed after this function returns.
        let (mut ctrl_c, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut has_received_one = false;
                loop {
                    let cause = match select(pin!(ctrl_c.recv()), pin!(terminate.recv())).await {
                        Either::Left((received, _)) => received.map(|()| CTRL_C),
                        Either::Right((received, _)) => received.map(|()| TERMINATE),
                    };
                    let Some(cause) = cause else { return };
                    own.end(cause);
                    if has_received_one {
                        let status = if cause == TERMINATE { ExitStatus::Terminated } else { ExitStatus::Interrupted };
                        std::process::exit(i32::from(status.code()));
                    }
                    has_received_one = true;
                    say(note);
                }
            });
        })?;
        if let Some(limit) = limit {
            let own = interrupt.clone();
            std::thread::Builder::new().name("max-wall".to_owned()).spawn(move || {
                std::thread::sleep(limit);
                own.end(WALL_LIMIT);
            })?;
        }
        Ok(interrupt)
    }

    /// Ends the run for this cause, unless there was an earlier one.
    fn end(&self, cause: u8) -> bool {
        let first = self.cause.compare_exchange(NONE, cause, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.flag.store(true, Ordering::Relaxed);
        first
    }

    /// The ending of a run that was interrupted.
    pub fn ending(&self) -> Ending {
        match self.cause.load(Ordering::Relaxed) {
            TERMINATE => Ending::Terminated,
            WALL_LIMIT => Ending::WallLimit,
            _ => Ending::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stays() {
        let interrupt = Interrupt::default();
        assert!(interrupt.end(WALL_LIMIT) && !interrupt.end(CTRL_C));
        assert_eq!((interrupt.ending(), interrupt.flag.load(Ordering::Relaxed)), (Ending::WallLimit, true));
    }
}
