//! State that the tunnel shares with the rest of the simulator while a program runs.

#![expect(
    clippy::disallowed_types,
    reason = "the tunnel runs in real time: it waits for programs, and does not simulate"
)]

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::Pid;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How the program that was started has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Why the tunnel gave the program up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The run was interrupted.
    Interrupted,
    /// The run has taken its limit of real time.
    WallLimit,
}

#[derive(Debug)]
struct Inner {
    interrupt: Arc<AtomicBool>,
    deadline: Option<Instant>,
    started: OnceLock<u32>,
    program: Mutex<Option<ProgramEnd>>,
    wake: OwnedFd,
    stopped: OnceLock<StopReason>,
}

/// Shared by the tunnel's server and the code that starts the program.
#[derive(Clone, Debug)]
pub struct Control(Arc<Inner>);

impl Control {
    /// A program that is about to start. `interrupt` ends the run when it is set, and so does `max_wall` from now on.
    ///
    /// # Errors
    ///
    /// Where the system has no descriptors left.
    pub fn new(interrupt: Arc<AtomicBool>, max_wall: Option<Duration>) -> io::Result<Control> {
        let deadline = max_wall.and_then(|limit| Instant::now().checked_add(limit));
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (started, stopped) = (OnceLock::new(), OnceLock::new());
        Ok(Control(Arc::new(Inner { interrupt, deadline, started, program: Mutex::new(None), wake, stopped })))
    }

    /// The program has been started, as this process.
    pub fn program_started(&self, process: u32) {
        // It is started once.
        let _ = self.0.started.set(process);
    }

    /// Is this the process of the program that was started?
    pub(super) fn is_program(&self, process: Pid) -> bool {
        self.0.started.get().is_some_and(|started| i64::from(*started) == i64::from(process.as_raw_nonzero().get()))
    }

    /// The program that was started has ended.
    pub fn program_ended(&self, end: ProgramEnd) {
        *self.0.program.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        // The counter of the event is far from full.
        let _ = rustix::io::write(&self.0.wake, &1_u64.to_ne_bytes());
    }

    /// How the program that was started has ended; `None` while it runs.
    pub fn program(&self) -> Option<ProgramEnd> {
        *self.0.program.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the tunnel gave the program up, if it did.
    pub fn stopped(&self) -> Option<StopReason> {
        self.0.stopped.get().copied()
    }

    /// Why the run is to end, if it is.
    pub(super) fn reason_to_stop(&self) -> Option<StopReason> {
        if self.0.interrupt.load(Ordering::Relaxed) {
            Some(StopReason::Interrupted)
        } else {
            let is_over = self.0.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            is_over.then_some(StopReason::WallLimit)
        }
    }

    /// Is the run to end? If so, the tunnel gives the program up.
    pub fn is_stopping(&self) -> bool {
        let Some(reason) = self.reason_to_stop() else { return false };
        // The first reason stays.
        let _ = self.0.stopped.set(reason);
        true
    }

    /// Readable once the program has ended.
    pub(super) fn wake(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }
}

/// A signal's name and number.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    format!("{name} (signal {signal})")
}
