//! Signals to this process while a program runs: they are for the program.

use super::child::ChildHandle;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::say;
use futures::stream::{self, StreamExt, select_all};
use rustix::process::Signal;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a program may take to end by SIGTERM.
const TERM_GRACE: Duration = Duration::from_millis(1500);

/// What listens to SIGINT, SIGTERM and SIGHUP.
///
/// The first signal is passed on to the program, and the run ends when the program does. The second ends the run with the statistics so
/// far, the third at once. A program that SIGTERM does not end within [`TERM_GRACE`] has its run ended as by a second signal.
#[derive(Clone, Debug)]
pub struct Signals {
    /// Ends the run when it is set.
    pub interrupt: Arc<AtomicBool>,
    count: Arc<AtomicU32>,
    is_terminated: Arc<AtomicBool>,
    program: Arc<Mutex<Option<ChildHandle>>>,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    ///
    /// Where the system grants no thread or signal handler.
    pub fn listen() -> io::Result<Signals> {
        let signals = Signals {
            interrupt: Arc::default(),
            count: Arc::default(),
            is_terminated: Arc::default(),
            program: Arc::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Registered before the thread starts, so that no signal is missed after this function returns.
        let mut listeners = Vec::new();
        {
            let _inside = runtime.enter();
            for (kind, passed) in [
                (SignalKind::interrupt(), Signal::INT),
                (SignalKind::terminate(), Signal::TERM),
                (SignalKind::hangup(), Signal::HUP),
            ] {
                // `nohup` and shells ignore some signals, and the program must inherit that.
                if !is_ignored(passed) {
                    listeners.push((signal(kind)?, passed));
                }
            }
        }
        let own = signals.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                let streams = listeners.into_iter().map(|(mut listener, passed)| {
                    stream::poll_fn(move |context| {
                        listener.poll_recv(context).map(|received| received.map(|()| passed))
                    })
                });
                // Whichever signal comes next.
                let mut signals = select_all(streams);
                while let Some(received) = signals.next().await {
                    own.received(received);
                    if received == Signal::TERM {
                        let own = own.clone();
                        tokio::spawn(async move {
                            tokio::time::sleep(TERM_GRACE).await;
                            if own.program_runs() && !own.interrupt.load(Ordering::Relaxed) {
                                // Whoever sees the run end is to know why.
                                own.is_terminated.store(true, Ordering::SeqCst);
                                own.interrupt.store(true, Ordering::SeqCst);
                                say("the program has not ended since SIGTERM: the run ends with the statistics so far");
                            }
                        });
                    }
                }
            });
        })?;
        Ok(signals)
    }

    /// The program has started.
    pub fn pass_to(&self, program: ChildHandle) {
        *self.program.lock().unwrap_or_else(PoisonError::into_inner) = Some(program);
        if self.interrupted() {
            self.pass(Signal::TERM);
        }
    }

    /// Has the user ended the run?
    pub fn interrupted(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Has SIGTERM ended the run, and not the program?
    pub fn is_terminated(&self) -> bool {
        self.is_terminated.load(Ordering::Relaxed)
    }

    fn program_runs(&self) -> bool {
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        program.as_ref().is_some_and(|program| !program.ends_within(Duration::ZERO))
    }

    fn received(&self, signal: Signal) {
        match self.count.fetch_add(1, Ordering::Relaxed) {
            0 => {
                // The terminal has sent Ctrl-C to the program as well.
                if signal != Signal::INT || !in_foreground() {
                    self.pass(signal);
                }
            }
            1 => {
                say("interrupted: the run ends with the statistics so far; once more ends it at once");
                self.interrupt.store(true, Ordering::Relaxed);
            }
            _ => {
                self.pass(Signal::KILL);
                std::process::exit(i32::from(ExitStatus::Interrupted.code()));
            }
        }
    }

    fn pass(&self, signal: Signal) {
        match &*self.program.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(program) => program.signal(signal),
            // The program has not started.
            None => {
                if signal == Signal::TERM {
                    self.is_terminated.store(true, Ordering::SeqCst);
                }
                self.interrupt.store(true, Ordering::SeqCst);
            }
        }
    }
}

/// Was this process started with this signal ignored?
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.as_raw() - 1) & 1 == 1
}

/// Is the process group of this process the foreground group of its terminal?
fn in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == rustix::process::getpgrp())
}
