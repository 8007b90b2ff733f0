//! The named ranges of a program (NVTX), which the simulator is told of as they begin and end.
//!
//! A program may name ranges before it uses CUDA, and fork then. So nothing is told, and no tunnel opened, before a thread makes a call of
//! CUDA; its ranges that are open then are told first. A thread that makes no such call tells nothing, for the simulation waits for threads
//! that it knows. But where ranges choose the timed launches ([`EVERY_THREAD`](balar_host::tunnel::EVERY_THREAD)), the ranges of every
//! thread count.

use crate::session::connection;
use crate::session::state::named_ranges::{NamedRange, OpenRange, every_thread_tells, shared};
use crate::session::state::{process, thread};
use balar_host::Call;
use balar_host::call::ProfilerCall;

/// A range begins within the calling thread's others of this domain. Returns how many these are.
pub fn push(domain: u64, name: Option<String>) -> usize {
    let range = begin(name);
    thread::with(|thread| {
        let Ok(mut domains) = thread.pushed_ranges.try_borrow_mut() else { return 0 };
        let ranges = domains.entry(domain).or_default();
        ranges.push(range);
        ranges.len() - 1
    })
}

/// The innermost of the thread's ranges of this domain ends. Returns how many are left; `None` if there was none.
pub fn pop(domain: u64) -> Option<usize> {
    let (range, left) = thread::with(|thread| {
        let mut domains = thread.pushed_ranges.try_borrow_mut().ok()?;
        let ranges = domains.get_mut(&domain)?;
        Some((ranges.pop()?, ranges.len()))
    })?;
    end(range);
    Some(left)
}

/// A range begins that any thread may end. Returns its number.
pub fn start(name: Option<String>) -> u64 {
    let range = begin(name);
    if process::is_forked() {
        return 0;
    }
    let mut shared = shared();
    shared.last += 1;
    let number = shared.last;
    shared.started.insert(number, range);
    number
}

/// The range with this number ends. One that is not open is nothing.
pub fn finish(number: u64) {
    if process::is_forked() {
        return;
    }
    let range = shared().started.remove(&number);
    end(range.flatten());
}

/// A number for a name, from 1 on: the same for the same name.
pub fn register(name: String) -> u64 {
    if process::is_forked() {
        return 0;
    }
    let names = &mut shared().names;
    let place = names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    place as u64 + 1
}

/// The name with this number.
pub fn registered(number: u64) -> Option<String> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    // In a forked child another thread of its parent may hold the lock for ever.
    if process::is_forked() { None } else { shared().names.get(place).cloned() }
}

/// Does the calling thread tell of a range at once?
fn tells() -> bool {
    thread::with(|thread| thread.has_tunnel()) || (every_thread_tells() && process::node().is_some())
}

fn begin(name: Option<String>) -> OpenRange {
    let name = name?;
    if process::usable().is_err() {
        return None;
    }
    let range = NamedRange { thread: thread::own_number(), name };
    let mut shared = shared();
    if !tells() {
        shared.untold.push(range.clone());
        return Some(range);
    }
    drop(shared);
    connection::tell(&Call::Profiler(ProfilerCall::Begin(range.name.clone()))).then_some(range)
}

fn end(range: OpenRange) {
    let Some(range) = range.filter(|_| process::usable().is_ok()) else { return };
    let mut shared = shared();
    if let Some(place) = shared.untold.iter().rposition(|untold| *untold == range) {
        shared.untold.remove(place);
        return;
    }
    drop(shared);
    if process::node().is_some() {
        connection::tell(&Call::Profiler(ProfilerCall::End(range.name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    /// In one test, for the ranges are of the process, which has no tunnel.
    #[test]
    fn ranges_nest_by_thread_and_domain_and_end_by_number() {
        let untold = || shared().untold.iter().map(|range| &*range.name).collect::<Vec<_>>().join(" ");
        assert_eq!((push(0, name("a")), push(0, name("b")), push(7, name("c")), push(0, None)), (0, 1, 0, 2));
        let number = start(name("d"));
        std::thread::spawn(move || {
            assert_eq!((pop(0), push(0, name("e"))), (None, 0), "a thread has its own");
            finish(number);
            finish(number);
        })
        .join()
        .expect("no panic");
        assert_eq!(untold(), "a b c e");
        assert_eq!((pop(0), pop(0), pop(0), pop(0)), (Some(2), Some(1), Some(0), None));
        assert_eq!(untold(), "c e");
        assert_eq!((pop(7), pop(9)), (Some(0), None));
        let number = register("solve".to_owned());
        assert_eq!(register("other".to_owned()), number + 1);
        assert_eq!((register("solve".to_owned()), registered(number)), (number, name("solve")));
        assert_eq!((registered(0), registered(number + 2)), (None, None));
    }
}
