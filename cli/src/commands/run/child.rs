//! The program that runs on the simulated node: how it is started, ended and signalled.

use balar_host::tunnel::{Control, ProgramEnd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a program that has lost its simulator may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// How long it may take after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// The running program. Dropping this ends the program if it still runs.
#[derive(Debug)]
pub struct ProgramChild {
    handle: ChildHandle,
    watcher: Option<JoinHandle<()>>,
    control: Control,
}

/// A handle for signals to the program. Unlike a process number, it never refers to a later process.
#[derive(Clone, Debug)]
pub struct ChildHandle(Arc<OwnedFd>);

impl ChildHandle {
    /// Sends a signal, if the program still runs.
    pub fn signal(&self, signal: Signal) {
        // It is no error if the program has ended.
        let _ = pidfd_send_signal(&*self.0, signal);
    }

    /// Waits for the program to end, for `limit` at most; returns whether it has ended.
    pub fn ends_within(&self, limit: Duration) -> bool {
        let timeout = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
        loop {
            match poll(&mut [PollFd::new(&*self.0, PollFlags::IN)], Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                ready => return ready.is_ok_and(|ready| ready > 0),
            }
        }
    }
}

/// Lets a program, and the programs that it starts, have the same addresses in each run: programs of several files with the static runtime
/// of CUDA 9.1 take other cycles at other addresses. Where the system does not allow it, as in some containers, the addresses are random.
fn fix_addresses(command: &mut Command) {
    let without_randomization = || {
        // SAFETY: these calls read and write the personality of the process alone, and are safe between fork and exec.
        unsafe {
            let own = libc::personality(ASK_PERSONALITY);
            if own >= 0 {
                libc::personality(own as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            }
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(without_randomization) };
}

/// Asks `personality` for the present value.
const ASK_PERSONALITY: libc::c_ulong = 0xffff_ffff;

impl ProgramChild {
    /// Starts the program. `control` is told when it ends; `interrupt` is set if a signal killed it, because its work on the devices ends
    /// with it.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(mut command: Command, control: Control, interrupt: Arc<AtomicBool>) -> io::Result<ProgramChild> {
        fix_addresses(&mut command);
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

    /// A handle for signals to it.
    pub fn handle(&self) -> ChildHandle {
        self.handle.clone()
    }

    /// Ends the program if it still runs. Returns how it ended by itself, or `None` if it had to be ended.
    pub fn finish(mut self) -> Option<ProgramEnd> {
        let own = self.control.program();
        self.end();
        own
    }

    fn end(&mut self) {
        let Some(watcher) = self.watcher.take() else { return };
        if self.control.program().is_none() && !self.handle.ends_within(GRACE) {
            self.handle.signal(Signal::TERM);
            // A stopped process handles SIGTERM only once it continues.
            self.handle.signal(Signal::CONT);
            if !self.handle.ends_within(TERM_GRACE) {
                self.handle.signal(Signal::KILL);
            }
        }
        // The thread returns nothing, and the panic hook reports a panic.
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
        // Its status was reaped elsewhere: it is only known that it has ended.
        Err(_) => ProgramEnd::Exited(0),
    }
}
