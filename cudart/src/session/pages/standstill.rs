//! A moment in which no other thread of the process runs.
//!
//! Pages that change places must keep the writes of other threads meanwhile. The operating system has no call that copies pages and
//! replaces them at once. To protect them from writes would raise signals in the program and errors in its system calls. Fault handlers of
//! a process's own (`userfaultfd`) are open to few. So this file does the same as debuggers and leak detectors: a helper process, which
//! shares this one's memory, traces the other threads and stops them. They do not notice, except that some system calls (`epoll_wait`)
//! return early with `EINTR`, as they do when a program is stopped and goes on.

use crate::session::connection::signals;
use libc::{c_int, c_void, pid_t};
use rustix::fs::{CWD, Mode, OFlags, RawDir, SeekFrom};
use rustix::io::Errno;
use rustix::thread::futex;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of the helper's stack.
const STACK: usize = 128 << 10;
/// Threads that may begin between the count and the standstill.
const SPARE_THREADS: usize = 1024;
/// How often this thread looks whether the helper still lives.
const LOOK: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The helper has just begun.
const NEW: u32 = 0;
/// It may stop the others.
const GO: u32 = 1;
/// They stand.
const STANDING: u32 = 2;
/// They cannot be stopped, and run.
const FAILED: u32 = 3;
/// They may run again.
const DONE: u32 = 4;

/// A thread that stands.
#[derive(Clone, Copy)]
struct Standing {
    thread: pid_t,
    /// The signal that it was about to get, which it gets when it goes on; otherwise 0.
    signal: c_int,
}

/// The state that this thread and the helper use at the same time.
struct Signals {
    state: AtomicU32,
    error: AtomicI32,
}

/// The state that the helper works with, and this thread leaves alone meanwhile.
struct Task<'a> {
    signals: &'a Signals,
    process: pid_t,
    /// The thread that goes on.
    own: pid_t,
    /// The folder of the process's threads.
    threads: OwnedFd,
    standing: Vec<Standing>,
}

/// Calls `work` while no other thread of the process runs. It must not allocate memory or take a lock: another thread may have
/// stopped while it did.
///
/// # Errors
///
/// If the system does not let them be stopped, for example because a debugger traces the program. `work` has not been called then.
pub fn with_others_standing<T>(work: impl FnOnce() -> T) -> Result<T, Errno> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = rustix::fs::openat(
        CWD,
        c"/proc/self/task",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut count = 0;
    each_thread(&threads, |_| {
        count += 1;
        Ok(())
    })?;
    if count == 1 {
        return Ok(work());
    }
    let signals = Signals { state: AtomicU32::new(NEW), error: AtomicI32::new(0) };
    let mut task = Task {
        signals: &signals,
        process: rustix::process::getpid().as_raw_nonzero().get(),
        own: rustix::thread::gettid().as_raw_nonzero().get(),
        threads,
        standing: Vec::with_capacity(count + SPARE_THREADS),
    };
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let mut work = Some(work);
    // No handler of a signal may run here while the others stand; the helper gets none at all.
    signals::without_signals(|| {
        match attempt(&mut task, &mut stack, false, &mut work) {
            // Where only descendants may be traced, a process can name others that may trace it.
            Err(Errno::PERM) => attempt(&mut task, &mut stack, true, &mut work),
            outcome => outcome,
        }
    })
}

/// Starts a helper that stops the others, and calls `work`.
fn attempt<T, F: FnOnce() -> T>(
    task: &mut Task<'_>,
    stack: &mut [u128],
    allow: bool,
    work: &mut Option<F>,
) -> Result<T, Errno> {
    task.standing.clear();
    let Signals { state, error } = task.signals;
    state.store(NEW, Ordering::Release);
    let flags = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_UNTRACED;
    // SAFETY: the stack and the task outlive the helper, which is waited for below, and nothing else uses them until then.
    let helper = unsafe { libc::clone(help, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut *task).cast()) };
    if helper < 0 {
        return Err(last_error());
    }
    if allow {
        set_tracer(helper);
    }
    set(state, GO);
    let mut result = Err(Errno::CHILD);
    while matches!(state.load(Ordering::Acquire), NEW | GO) {
        let _ = futex::wait(state, futex::Flags::PRIVATE, GO, Some(&LOOK));
        // SAFETY: a child of this thread's, whose status nobody else asks for.
        if unsafe { libc::waitpid(helper, null_mut(), libc::__WALL | libc::WNOHANG) } != 0 {
            return result;
        }
    }
    if state.load(Ordering::Acquire) == STANDING {
        if let Some(work) = work.take() {
            result = Ok(work());
        }
        set(state, DONE);
    } else {
        result = Err(Errno::from_raw_os_error(error.load(Ordering::Relaxed)));
    }
    // SAFETY: as above.
    while unsafe { libc::waitpid(helper, null_mut(), libc::__WALL) } < 0 && last_error() == Errno::INTR {}
    if allow {
        set_tracer(0);
    }
    result
}

fn set(state: &AtomicU32, value: u32) {
    state.store(value, Ordering::Release);
    let _ = futex::wake(state, futex::Flags::PRIVATE, 1);
}

/// Names a process that may trace this one. Kernels without such a rule refuse the call and do not need it.
fn set_tracer(process: pid_t) {
    // SAFETY: changes no memory.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, process as libc::c_ulong, 0, 0, 0) };
}

fn last_error() -> Errno {
    // SAFETY: the calling thread's `errno`; the helper has that of the thread that waits for it.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}

/// The helper. It shares all memory with a process whose threads stand: it allocates nothing, takes no lock and does not panic.
extern "C" fn help(task: *mut c_void) -> c_int {
    // SAFETY: the caller's task, which that thread leaves alone until this process has ended.
    let task = unsafe { &mut *task.cast::<Task<'_>>() };
    let Signals { state, error } = task.signals;
    // Nothing is left behind if either is killed: if the other thread ends, so does this process, and if this process ends, the
    // kernel lets the threads go on.
    // SAFETY: changes no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) };
    wait_while(state, NEW);
    let outcome = stop_all(task);
    if let Err(failure) = outcome {
        error.store(failure.raw_os_error(), Ordering::Relaxed);
    } else {
        set(state, STANDING);
        wait_while(state, STANDING);
    }
    for standing in &task.standing {
        // SAFETY: a thread that this process traces and that stands.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, standing.thread, null_mut::<c_void>(), standing.signal as usize) };
    }
    if outcome.is_err() {
        set(state, FAILED);
    }
    0
}

fn wait_while(state: &AtomicU32, value: u32) {
    while state.load(Ordering::Acquire) == value {
        let _ = futex::wait(state, futex::Flags::PRIVATE, value, None);
    }
}

/// Stops all threads but one; those that begin meanwhile, too.
fn stop_all(task: &mut Task<'_>) -> Result<(), Errno> {
    let Task { process, own, threads, standing, .. } = task;
    // SAFETY: asks for a number.
    if unsafe { libc::getppid() } != *process {
        return Err(Errno::CHILD);
    }
    loop {
        let before = standing.len();
        each_thread(threads, |thread| {
            if thread == *own || standing.iter().any(|other| other.thread == thread) {
                return Ok(());
            }
            if standing.len() == standing.capacity() {
                return Err(Errno::NOMEM);
            }
            if let Some(signal) = stop(threads, thread)? {
                standing.push(Standing { thread, signal });
            }
            Ok(())
        })?;
        if standing.len() == before {
            return Ok(());
        }
    }
}

/// Stops a thread; returns the signal that it was about to get, or 0. `None`: it has ended.
fn stop(threads: &OwnedFd, thread: pid_t) -> Result<Option<c_int>, Errno> {
    let request = |request| {
        // SAFETY: the request has no data.
        let outcome = unsafe { libc::ptrace(request, thread, null_mut::<c_void>(), null_mut::<c_void>()) };
        if outcome < 0 { Err(last_error()) } else { Ok(()) }
    };
    match request(libc::PTRACE_SEIZE) {
        Ok(()) => {}
        Err(Errno::SRCH) => return Ok(None),
        // This happens for a first thread that has ended before the others.
        Err(_) if has_ended(threads, thread) => return Ok(None),
        Err(error) => return Err(error),
    }
    // This fails for a thread that is about to end, for which waiting is right, too.
    let _ = request(libc::PTRACE_INTERRUPT);
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        match unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) } {
            found if found == thread => break,
            _ if last_error() == Errno::INTR => {}
            _ => return Ok(None),
        }
    }
    if !libc::WIFSTOPPED(status) {
        return Ok(None);
    }
    // Stops by events have the event above the signal.
    Ok(Some(if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 }))
}

/// Is this thread a zombie?
fn has_ended(threads: &OwnedFd, thread: pid_t) -> bool {
    // The number, "/stat" and a zero byte.
    let mut name = [0_u8; 24];
    let mut end = 0;
    let mut divisor = 1_000_000_000;
    while divisor > 0 {
        let digit = thread / divisor % 10;
        if digit > 0 || end > 0 {
            name[end] = b'0' + digit as u8;
            end += 1;
        }
        divisor /= 10;
    }
    name[end..end + 5].copy_from_slice(b"/stat");
    let Ok(name) = std::ffi::CStr::from_bytes_until_nul(&name) else { return false };
    let Ok(file) = rustix::fs::openat(threads, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return true;
    };
    let mut text = [0_u8; 256];
    let Ok(read) = rustix::io::read(&file, &mut text) else { return true };
    let after = text[..read].iter().rposition(|byte| *byte == b')').map_or(0, |at| at + 2);
    matches!(text.get(after), Some(b'Z' | b'X'))
}

/// Calls `act` with the number of each thread in the folder of a process's threads.
fn each_thread(threads: &OwnedFd, mut act: impl FnMut(pid_t) -> Result<(), Errno>) -> Result<(), Errno> {
    rustix::fs::seek(threads, SeekFrom::Start(0))?;
    let mut room = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(threads, &mut room);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let digits = entry.file_name().to_bytes();
        let number = digits.iter().try_fold(0, |number: pid_t, digit| {
            digit.is_ascii_digit().then(|| number * 10 + pid_t::from(digit - b'0'))
        });
        if let Some(thread) = number {
            act(thread)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    /// Runs `test` while threads count, each as fast as it can.
    fn with_counting_threads(test: impl FnOnce(&[AtomicU64])) {
        let counters: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for counter in &counters {
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while counters.iter().any(|counter| counter.load(Ordering::Relaxed) == 0) {
                std::thread::yield_now();
            }
            test(&counters);
            stop.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn nobody_runs_in_the_moment_and_everybody_after_it() {
        with_counting_threads(|counters| {
            let read = || -> [u64; 4] { std::array::from_fn(|index| counters[index].load(Ordering::Relaxed)) };
            for _ in 0..10 {
                let moment = with_others_standing(|| {
                    let before = read();
                    (0..10_000).for_each(|_| std::hint::spin_loop());
                    (before, read())
                });
                let (before, after) = moment.expect("the system lets a process trace another of its user");
                assert_eq!(before, after);
                while read().iter().zip(after).any(|(now, then)| *now == then) {
                    std::thread::yield_now();
                }
            }
        });
    }
}
