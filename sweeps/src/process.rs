//! The process of a point, from its start to its end.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, kill_process_group, pidfd_open, pidfd_send_signal,
    set_parent_process_death_signal,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time between two looks at the interrupt.
const PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// How long a process may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);
/// The bytes of a process's stderr that are kept from the beginning, and as many from the end.
const KEPT: usize = 64 << 10;

/// The end of a process.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// Its messages on stderr.
    pub said: String,
    /// Was it ended by the interrupt?
    pub interrupted: bool,
}

/// Runs a process until it ends. When `interrupt` is set, it gets SIGTERM, and SIGKILL where that does not help. It is killed when the
/// thread that called this ends, however that ends.
///
/// # Errors
///
/// It cannot be started or watched.
pub fn run(mut command: Command, interrupt: &AtomicBool) -> io::Result<Ended> {
    let own = rustix::process::getpid();
    let die_with_parent = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended in between.
        if getppid() == Some(own) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // A process group of its own: Ctrl-C is this process's to deal with.
    command.stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    // SAFETY: between fork and exec, the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(die_with_parent) };
    let child = KilledOnDrop(command.spawn()?);
    watch(child, interrupt)
}

/// A process that does not outlive its owner.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

fn watch(mut child: KilledOnDrop, interrupt: &AtomicBool) -> io::Result<Ended> {
    let handle = pidfd_open(Pid::from_child(&child.0), PidfdFlags::empty())?;
    let mut said = Said::default();
    let mut stderr = child.0.stderr.take().map(OwnedFd::from);
    if let Some(stderr) = &stderr {
        fcntl_setfl(stderr, OFlags::NONBLOCK)?;
    }
    let mut waited: Option<Duration> = None;
    loop {
        let ended = {
            let mut fds = vec![PollFd::new(&handle, PollFlags::IN)];
            fds.extend(stderr.as_ref().map(|stderr| PollFd::new(stderr, PollFlags::IN)));
            match poll(&mut fds, Some(&PERIOD)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            !fds[0].revents().is_empty()
        };
        if let Some(pipe) = &stderr
            && said.read(pipe)?
        {
            stderr = None;
        }
        if ended {
            // Others may hold the other end of the pipe; their further output does not matter.
            return Ok(Ended { status: child.0.wait()?, said: said.text(), interrupted: waited.is_some() });
        }
        if interrupt.load(Ordering::Relaxed) {
            match &mut waited {
                None => {
                    // It is no error if it has just ended.
                    let _ = pidfd_send_signal(&handle, Signal::TERM);
                    waited = Some(Duration::ZERO);
                }
                // Roughly: what it says ends a period early.
                Some(time) => *time += Duration::from_nanos(PERIOD.tv_nsec as u64),
            }
            if waited > Some(GRACE) {
                let _ = kill_process_group(Pid::from_child(&child.0), Signal::KILL);
            }
        }
    }
}

/// The beginning and the end of a text.
#[derive(Default)]
struct Said {
    bytes: Vec<u8>,
    left_out: bool,
}

impl Said {
    /// Reads the bytes that are there; returns whether the pipe is at its end.
    fn read(&mut self, pipe: &impl AsFd) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        loop {
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => return Ok(true),
                Ok(count) => self.add(&buffer[..count]),
                Err(rustix::io::Errno::AGAIN) => return Ok(false),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // The middle goes now and then, so that each byte is moved a few times at most.
        if self.bytes.len() > 4 * KEPT {
            self.left_out = true;
            self.bytes.drain(KEPT..self.bytes.len() - KEPT);
        }
    }

    fn text(mut self) -> String {
        if self.left_out || self.bytes.len() > 2 * KEPT {
            let note = b"\n[...]\n";
            self.bytes.splice(KEPT..self.bytes.len().saturating_sub(KEPT).max(KEPT), note.iter().copied());
        }
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::null());
        command
    }

    #[test]
    fn what_a_process_says_and_how_it_ends_is_known() {
        let ended = run(shell("echo one >&2; echo two >&2; exit 3"), &AtomicBool::new(false)).expect("it runs");
        assert_eq!((ended.status.code(), ended.said.as_str(), ended.interrupted), (Some(3), "one\ntwo\n", false));
    }

    #[test]
    fn a_child_that_stays_is_not_waited_for() {
        let ended = run(shell("sleep 300 & echo $! >&2"), &AtomicBool::new(false)).expect("it runs");
        let pid = ended.said.trim().parse().ok().and_then(Pid::from_raw).expect("a number");
        // It would not be there if the run had waited for it.
        rustix::process::kill_process(pid, Signal::KILL).expect("it is there");
    }

    #[test]
    fn an_interrupt_ends_it() {
        let interrupt = AtomicBool::new(true);
        let ended = run(shell("trap 'exit 7' TERM; while :; do sleep 0.05; done"), &interrupt).expect("it runs");
        // The signal may come before the trap is set.
        assert!(ended.interrupted && matches!(ended.status.code(), Some(7) | None), "{ended:?}");
    }

    #[test]
    fn long_texts_lose_their_middle() {
        let ended = run(shell("echo first >&2; yes | head -c 1000000 >&2; echo last >&2"), &AtomicBool::new(false));
        let said = ended.expect("it runs").said;
        assert!(said.starts_with("first\ny\n") && said.contains("\n[...]\n") && said.ends_with("last\n"));
        assert!(said.len() <= 4 * KEPT + 16, "{}", said.len());
    }
}
