//! The calls of the process while a profiler listens (CUPTI): when each was made, and the numbers by which the profiler knows it. The
//! simulator knows when the work of a call ran; thread and number of a call join the two.

use balar_host::Call;
use balar_host::call::CallClass;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A call of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeCall {
    /// The simulator's number of the thread, and that of the call among the thread's.
    pub number: (u32, u64),
    /// The CUDA function.
    pub name: &'static str,
    /// Its class.
    pub class: CallClass,
    /// The thread's current device.
    pub device: u32,
    /// The simulator's number of its stream; 0 where it names none.
    pub stream: u32,
    /// The thread, as `pthread_self` numbers it, and as the kernel does.
    pub thread: (u64, u32),
    /// When it was made and when it returned, nanoseconds of [`timestamp`].
    pub start: u64,
    /// See `start`.
    pub end: u64,
    /// A number that no other call of the process has; not 0.
    pub correlation: u32,
    /// The program's own numbers for its work, by kind: the last pushed of each.
    pub external: Vec<(u32, u64)>,
}

static LISTENING: AtomicBool = AtomicBool::new(false);
/// The function that is called after each call that is kept.
static AFTER_CALL: OnceLock<fn()> = OnceLock::new();
static CALLS: Mutex<Vec<MadeCall>> = Mutex::new(Vec::new());
static NEXT: AtomicU32 = AtomicU32::new(1);
/// The program's own clock, if it has one.
static CLOCK: AtomicUsize = AtomicUsize::new(0);

/// A clock of the program's.
pub type Clock = extern "C" fn() -> u64;

thread_local! {
    /// The numbers that the thread has pushed, by kind, the last at the end.
    static EXTERNAL: RefCell<BTreeMap<u32, Vec<u64>>> = const { RefCell::new(BTreeMap::new()) };
}

fn calls() -> MutexGuard<'static, Vec<MadeCall>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls are kept from now on. The first `after_call` that the process ever gives is called when one has been kept.
pub fn listen(after_call: fn()) {
    AFTER_CALL.get_or_init(|| after_call);
    LISTENING.store(true, Ordering::Relaxed);
}

/// Keeps no further calls, and forgets the kept ones.
pub fn stop_listening() {
    LISTENING.store(false, Ordering::Relaxed);
    calls().clear();
}

/// The calls that have returned since this was asked before.
pub fn take() -> Vec<MadeCall> {
    std::mem::take(&mut *calls())
}

/// Sets the clock that times are told by; `None` for the system's.
pub fn set_clock(clock: Option<Clock>) {
    CLOCK.store(clock.map_or(0, |clock| clock as usize), Ordering::Relaxed);
}

/// The time now, nanoseconds: by the program's own clock, or else since 1970.
pub fn timestamp() -> u64 {
    match CLOCK.load(Ordering::Relaxed) {
        0 => {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
            (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
        }
        clock => {
            // SAFETY: a function of this type was stored.
            let clock = unsafe { std::mem::transmute::<usize, Clock>(clock) };
            clock()
        }
    }
}

/// The calling thread's further calls belong to this number of the program's.
pub fn push_external(kind: u32, number: u64) {
    EXTERNAL.with(|external| external.borrow_mut().entry(kind).or_default().push(number));
}

/// Ends the effect of the last [`push_external`]; gives its number, if there is one.
pub fn pop_external(kind: u32) -> Option<u64> {
    EXTERNAL.with(|external| external.borrow_mut().get_mut(&kind)?.pop())
}

/// A call under way, which is kept when this is dropped.
pub struct Told(Option<MadeCall>);

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(mut call) = self.0.take() {
            call.end = timestamp();
            calls().push(call);
            if let Some(after_call) = AFTER_CALL.get() {
                after_call();
            }
        }
    }
}

/// A call begins: the thread's with this number.
pub fn begins(number: (u32, u64), device: u32, call: &Call) -> Told {
    use CallClass as Class;
    let is_of_cuda = !matches!(
        call.class(),
        Class::Compute { .. } | Class::Clock | Class::Exit | Class::CallBack | Class::Access | Class::Management
    );
    if !LISTENING.load(Ordering::Relaxed) || !is_of_cuda {
        return Told(None);
    }
    // At the end of a thread there may be none.
    let external = EXTERNAL.try_with(|external| {
        let external = external.borrow();
        external.iter().filter_map(|(kind, numbers)| Some((*kind, *numbers.last()?))).collect()
    });
    let start = timestamp();
    Told(Some(MadeCall {
        number,
        name: call.name(),
        class: call.class(),
        device,
        stream: call.stream().unwrap_or(0),
        // SAFETY: the function has no conditions.
        thread: (unsafe { libc::pthread_self() }, rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()),
        start,
        end: start,
        correlation: NEXT.fetch_add(1, Ordering::Relaxed),
        external: external.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, for the kept calls belong to the process.
    #[test]
    fn calls_are_kept_while_a_profiler_listens() {
        drop(begins((1, 0), 0, &Call::DeviceSynchronize));
        assert_eq!(take(), []);
        static HEARD: AtomicU32 = AtomicU32::new(0);
        listen(|| {
            HEARD.fetch_add(1, Ordering::Relaxed);
        });
        extern "C" fn clock() -> u64 {
            77
        }
        set_clock(Some(clock));
        push_external(3, 10);
        push_external(3, 11);
        push_external(4, 20);
        drop(begins((1, 1), 2, &Call::StreamSynchronize { stream: 5 }));
        assert_eq!((pop_external(3), pop_external(4), pop_external(4)), (Some(11), Some(20), None));
        drop(begins((1, 2), 2, &Call::memset(1, 2, 3, 6, true)));
        drop(begins((1, 3), 2, &Call::ReadClock));
        set_clock(None);
        let of_test = |call: &MadeCall| call.device == 2;
        let found: Vec<_> =
            take().into_iter().filter(of_test).map(|it| (it.number, it.name, it.stream, it.external)).collect();
        let first = ((1, 1), "cudaStreamSynchronize", 0, vec![(3, 11), (4, 20)]);
        assert_eq!(found, [first, ((1, 2), "cudaMemsetAsync", 6, vec![(3, 10)])]);
        assert!(timestamp() > 77 && HEARD.load(Ordering::Relaxed) >= 2);
        stop_listening();
    }
}
