//! Facts about the program's process from the operating system.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A process, until it is gone.
#[derive(Debug)]
pub struct Process {
    pub number: Pid,
    /// Readable once the process has ended; `None` where the kernel has no such thing.
    descriptor: Option<OwnedFd>,
    /// The folder of its threads, which is looked at with each call.
    threads: Option<OwnedFd>,
}

impl Process {
    pub fn new(number: Pid) -> Process {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let threads = rustix::fs::open(folder_of_threads(number), flags, Mode::empty()).ok();
        Process { number, descriptor: pidfd_open(number, PidfdFlags::empty()).ok(), threads }
    }

    /// For `poll`.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// Has it ended?
    pub fn has_ended(&self) -> bool {
        match &self.descriptor {
            Some(descriptor) => {
                let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
            }
            None => test_kill_process(self.number).is_err(),
        }
    }

    /// Does it have more threads than so many?
    pub fn has_more_threads(&self, count: usize) -> bool {
        // Linux counts the threads as links of the folder, beside the two of every folder. Where it does not, they are read.
        let links =
            self.threads.as_ref().and_then(|threads| rustix::fs::fstat(threads).ok()).map_or(0, |stat| stat.st_nlink);
        match links.checked_sub(2).filter(|threads| *threads > 0) {
            Some(threads) => threads > count as u64,
            None => fs::read_dir(folder_of_threads(self.number)).is_ok_and(|threads| threads.count() > count),
        }
    }

    /// Are all its threads asleep, and stay so for a while?
    pub fn sleeps(&self) -> bool {
        let sleeps = || -> Option<Vec<(u32, Sleep)>> {
            let folder = fs::read_dir(folder_of_threads(self.number)).ok()?;
            let threads = folder.map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            threads.map(|thread| thread.and_then(|thread| Some((thread, self.sleep_of(thread)?)))).collect()
        };
        let Some(before) = sleeps().filter(|threads| threads.iter().all(|(_, sleep)| sleep.asleep)) else {
            return false;
        };
        std::thread::sleep(Duration::from_micros(30));
        sleeps() == Some(before)
    }

    /// Is this thread of the process asleep, and how often has it gone to sleep? `None` if the thread cannot be observed.
    pub fn sleep_of(&self, thread: u32) -> Option<Sleep> {
        let folder = format!("/proc/{}/task/{thread}", self.number.as_raw_nonzero());
        let stat = fs::read_to_string(format!("{folder}/stat")).ok()?;
        let status = fs::read_to_string(format!("{folder}/status")).ok()?;
        let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        // The name in parentheses may hold anything, a parenthesis too.
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        Some(Sleep { asleep: matches!(state, 'S' | 'T' | 't'), switches: switches.trim().parse().ok()? })
    }
}

/// Is the process stopped, by a signal or by a debugger?
pub fn is_stopped(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    // The name in parentheses may hold anything, a parenthesis too.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('T' | 't'))
}

fn folder_of_threads(process: Pid) -> String {
    format!("/proc/{}/task", process.as_raw_nonzero())
}

/// The state of a thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Does it wait for something other than a disk?
    pub asleep: bool,
    /// How often it has gone to sleep: the same number twice is one sleep.
    pub switches: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_threads_are_told_from_running_ones() {
        let process = Process::new(rustix::process::getpid());
        assert!(!process.has_ended());
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(!process.sleep_of(own).expect("a thread of this process").asleep);
        let (send, receive) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = send.send(rustix::thread::gettid().as_raw_nonzero().get() as u32);
            let _ = ended.recv();
        });
        let other = receive.recv().expect("sent");
        let asleep = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            process.sleep_of(other).expect("a thread of this process").asleep
        });
        assert!(asleep);
        drop(end);
        thread.join().expect("ends");
        assert_eq!(process.sleep_of(u32::MAX), None);
    }

    #[test]
    fn threads_are_counted_as_the_folder_lists_them() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        let process = Process::new(Pid::from_child(&child));
        assert!(process.has_more_threads(0) && !process.has_more_threads(1));
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert!(!process.has_more_threads(0));
        // Other tests begin and end threads of this process at the same time.
        let own = Process::new(rustix::process::getpid());
        let together = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| together.wait());
            }
            assert!(own.has_more_threads(3));
            together.wait();
        });
    }

    #[test]
    fn a_stopped_process_is_told_from_one_that_sleeps() {
        use rustix::process::{Signal, kill_process};
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        let process = Pid::from_child(&child);
        let becomes = |stopped: bool| {
            (0..10_000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                is_stopped(process) == stopped
            })
        };
        assert!(!is_stopped(process));
        kill_process(process, Signal::STOP).expect("ours");
        assert!(becomes(true));
        kill_process(process, Signal::CONT).expect("ours");
        assert!(becomes(false));
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert!(!is_stopped(process));
    }

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
        let process = Process::new(Pid::from_child(&child));
        assert!(!process.has_ended());
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert!(process.has_ended());
    }
}
