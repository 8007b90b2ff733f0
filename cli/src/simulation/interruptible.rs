//! Runs that end promptly when they are interrupted, even while a workload fills its arrays or checks its result.

use crate::simulation::interrupt::Interrupt;
use balar_host::call::CallResult;
use balar_host::{Host, Measurement, Next, ThreadId, Verification};
use balar_protocol::ProcessId;
use std::io;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks at the interrupt.
const PERIOD: Duration = Duration::from_millis(50);
/// Looks after which work in progress is abandoned. Loading that is almost done can finish within this time.
const PATIENCE: u32 = 6;
/// Stack of a thread that loads and simulates: the same as that of a program's first thread.
const STACK_BYTES: usize = 8 << 20;

/// Runs `work` on a thread of its own. Returns `None` if the run was interrupted while `may_be_left` holds: the thread is then abandoned
/// and ends with the process.
///
/// # Errors
///
/// Where the system has no thread.
///
/// # Panics
///
/// Where `work` does.
pub fn run<T: Send + 'static>(
    interrupt: &Interrupt,
    may_be_left: impl Fn() -> bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let (sender, receiver) = mpsc::channel();
    let builder = thread::Builder::new().name("simulation".to_owned()).stack_size(STACK_BYTES);
    let worker = builder.spawn(move || {
        // The receiver is gone if the work was abandoned.
        let _ = sender.send(work());
    })?;
    let mut looks = 0;
    loop {
        match receiver.recv_timeout(PERIOD) {
            Ok(result) => return Ok(Some(result)),
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panicked) => panic::resume_unwind(panicked),
                Ok(()) => return Ok(receiver.try_recv().ok()),
            },
            Err(RecvTimeoutError::Timeout) if interrupt.flag.load(Ordering::Relaxed) && may_be_left() => {
                looks += 1;
                if looks == PATIENCE {
                    return Ok(None);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// A host whose check of its result can be abandoned.
pub struct InterruptibleHost {
    inner: Arc<Mutex<Box<dyn Host>>>,
    interrupt: Interrupt,
    given_up: Arc<AtomicBool>,
}

impl InterruptibleHost {
    /// Wraps `inner`; `given_up` is set if its check is abandoned.
    pub fn new(inner: Box<dyn Host>, interrupt: Interrupt, given_up: Arc<AtomicBool>) -> InterruptibleHost {
        InterruptibleHost { inner: Arc::new(Mutex::new(inner)), interrupt, given_up }
    }

    fn inner(&self) -> MutexGuard<'_, Box<dyn Host>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host for InterruptibleHost {
    fn next(&mut self) -> Next {
        self.inner().next()
    }

    fn expect_call_back(&mut self, expected: bool) {
        self.inner().expect_call_back(expected);
    }

    fn has_threads_outside(&self) -> bool {
        self.inner().has_threads_outside()
    }

    fn queue_room(&mut self, thread: ThreadId, operations: usize) {
        self.inner().queue_room(thread, operations);
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        self.inner().complete(thread, result);
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        self.inner().call_back(process, function);
    }

    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>) {
        self.inner().receive(process, transfer, data);
    }

    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]) {
        self.inner().printed(process, text, error);
    }

    fn verification(&self) -> Verification {
        let inner = self.inner.clone();
        let check = move || inner.lock().unwrap_or_else(PoisonError::into_inner).verification();
        match run(&self.interrupt, || true, check) {
            Ok(Some(verification)) => verification,
            Ok(None) => {
                self.given_up.store(true, Ordering::Relaxed);
                Verification::NotChecked
            }
            // If there is no thread for it, the result is checked here.
            Err(_) => self.inner().verification(),
        }
    }

    fn measurements(&self) -> Vec<Measurement> {
        // An abandoned check still holds the program.
        if self.given_up.load(Ordering::Relaxed) { Vec::new() } else { self.inner().measurements() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose check never ends.
    struct Endless;

    impl Host for Endless {
        fn next(&mut self) -> Next {
            Next::End { error: None }
        }

        fn complete(&mut self, _: ThreadId, _: CallResult) {}

        fn call_back(&mut self, _: ProcessId, _: u64) {}

        fn receive(&mut self, _: ProcessId, _: u32, _: Arc<[u8]>) {}

        fn printed(&mut self, _: ProcessId, _: &[u8], _: &[u8]) {}

        fn verification(&self) -> Verification {
            loop {
                thread::park();
            }
        }

        fn measurements(&self) -> Vec<Measurement> {
            Vec::new()
        }
    }

    #[test]
    fn a_check_without_an_end_is_given_up() {
        let (interrupt, given_up) = (Interrupt::default(), Arc::<AtomicBool>::default());
        let host = InterruptibleHost::new(Box::new(Endless), interrupt.clone(), given_up.clone());
        interrupt.flag.store(true, Ordering::Relaxed);
        assert_eq!(host.verification(), Verification::NotChecked);
        assert!(given_up.load(Ordering::Relaxed));
        assert_eq!(host.measurements(), Vec::new());
    }

    #[test]
    fn what_must_not_be_left_is_waited_for() {
        let interrupt = Interrupt::default();
        interrupt.flag.store(true, Ordering::Relaxed);
        let work = || {
            thread::sleep(PERIOD * (PATIENCE + 4));
            7
        };
        assert_eq!(run(&interrupt, || false, work).expect("a thread"), Some(7));
    }
}
