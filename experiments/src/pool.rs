//! Runs that are independent of each other, several at a time.

use rayon::ThreadPoolBuilder;
use rayon::iter::{ParallelBridge, ParallelIterator};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Stack of a thread that simulates.
const STACK_BYTES: usize = 8 << 20;

/// Makes all jobs on at most so many threads, whose name is given, and tells of each how many of how many have ended. They begin in their
/// order. What comes of them is in no order.
///
/// # Errors
///
/// Where the system has no thread.
///
/// # Panics
///
/// Where a job does.
pub(crate) fn make_all<J: Send, T: Send>(
    (name, threads): (&'static str, usize),
    jobs: Vec<J>,
    progress: &(dyn Fn(usize, usize) + Sync),
    make: impl Fn(J) -> Option<T> + Sync,
) -> io::Result<Vec<T>> {
    let (planned, ended) = (jobs.len(), AtomicUsize::new(0));
    let threads = threads.clamp(1, planned.max(1));
    let pool =
        ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK_BYTES).thread_name(move |_| name.to_owned());
    let pool = pool.build().map_err(io::Error::other)?;
    progress(0, planned);
    let one = |job| {
        let made = make(job)?;
        progress(ended.fetch_add(1, Ordering::Relaxed) + 1, planned);
        Some(made)
    };
    // A bridge gives each thread that is free the next job: cut in parts, they would not begin in their order.
    Ok(pool.install(|| jobs.into_iter().par_bridge().filter_map(one).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn jobs_begin_in_their_order_and_are_made_once() {
        for threads in [0, 1, 3] {
            let (begun, told) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
            let progress = |ended, planned| told.lock().expect("nobody panics").push((ended, planned));
            let make = |job: u32| {
                begun.lock().expect("nobody panics").push(job);
                // What is given up has no result.
                (job % 4 != 3).then_some(job * 10)
            };
            let mut made = make_all(("test", threads), (0..20).collect(), &progress, make).expect("threads");
            made.sort_unstable();
            assert_eq!(made, (0..20).filter(|job| job % 4 != 3).map(|job| job * 10).collect::<Vec<u32>>());
            let (mut begun, mut told) = (begun.into_inner().expect("sound"), told.into_inner().expect("sound"));
            if threads < 2 {
                assert_eq!(begun, (0..20).collect::<Vec<u32>>(), "one thread takes them in their order");
                assert_eq!(told, (0..=15).map(|ended| (ended, 20)).collect::<Vec<_>>());
            }
            begun.sort_unstable();
            told.sort_unstable();
            assert_eq!(begun, (0..20).collect::<Vec<u32>>());
            assert_eq!(told, (0..=15).map(|ended| (ended, 20)).collect::<Vec<_>>());
        }
        let nothing = make_all(("test", 2), Vec::<u32>::new(), &|_, _| {}, Some).expect("threads");
        assert!(nothing.is_empty());
    }
}
