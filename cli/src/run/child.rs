//! The program that runs on the simulated node: its start, its end, and the signals that it is sent.

use balar_host::tunnel::{Control, ProgramEnd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a program that has lost its simulator has to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// What it has after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// The program, from its start to its end. Dropped before its end, it ends it.
#[derive(Debug)]
pub struct ProgramChild {
    handle: ChildHandle,
    watcher: Option<JoinHandle<()>>,
    control: Control,
}

/// To signal the program: never another one that has its number after its end.
#[derive(Clone, Debug)]
pub struct ChildHandle(Arc<OwnedFd>);

impl ChildHandle {
    /// Sends a signal, where the program still lives.
    pub fn signal(&self, signal: Signal) {
        // That it is gone is no error.
        let _ = pidfd_send_signal(&*self.0, signal);
    }

    /// Has it ended after that time at the latest?
    fn ends_within(&self, limit: Duration) -> bool {
        let timeout = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        loop {
            match poll(&mut [PollFd::new(&*self.0, PollFlags::IN)], Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                ready => return ready.is_ok_and(|ready| ready > 0),
            }
        }
    }
}

impl ProgramChild {
    /// Starts the program. Its end is told to `control`; `interrupt` is set where a signal ended it, since what it has left
    /// running on the devices ends with it.
    ///
    /// # Errors
    ///
    /// Where it cannot be started.
    pub fn start(mut command: Command, control: Control, interrupt: Arc<AtomicBool>) -> io::Result<ProgramChild> {
        let mut child = command.spawn()?;
        tracing::info!(process = child.id(), program = ?command.get_program(), "the program has started");
        control.program_started(child.id());
        let descriptor = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let handle = match descriptor {
            Ok(descriptor) => ChildHandle(Arc::new(descriptor)),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.into());
            }
        };
        let told = control.clone();
        let watcher = std::thread::Builder::new().name("program".to_owned()).spawn(move || {
            let end = wait(&mut child);
            told.program_ended(end);
            if matches!(end, ProgramEnd::Killed(_)) {
                interrupt.store(true, Ordering::Relaxed);
            }
        })?;
        Ok(ProgramChild { handle, watcher: Some(watcher), control })
    }

    /// To signal it.
    pub fn handle(&self) -> ChildHandle {
        self.handle.clone()
    }

    /// Ends the program, if it has not ended; tells how it ended by itself, `None` where it had to be ended.
    pub fn finish(mut self) -> Option<ProgramEnd> {
        let own = self.control.program();
        self.end();
        own
    }

    fn end(&mut self) {
        let Some(watcher) = self.watcher.take() else { return };
        if self.control.program().is_none() && !self.handle.ends_within(GRACE) {
            self.handle.signal(Signal::TERM);
            // One that is stopped sees the signal when it goes on.
            self.handle.signal(Signal::CONT);
            if !self.handle.ends_within(TERM_GRACE) {
                self.handle.signal(Signal::KILL);
            }
        }
        // It has nothing to give back; where it panicked, its hook has said so.
        let _ = watcher.join();
    }
}

impl Drop for ProgramChild {
    fn drop(&mut self) {
        self.end();
    }
}

fn wait(child: &mut Child) -> ProgramEnd {
    match child.wait() {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => ProgramEnd::Exited(code),
            (None, signal) => ProgramEnd::Killed(signal.unwrap_or(0)),
        },
        // Somebody else has taken its status: all that is known is that it is gone.
        Err(_) => ProgramEnd::Exited(0),
    }
}
