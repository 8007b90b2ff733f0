//! Launches that a thread need not wait for.
//!
//! A launch that returns at once tells the program one thing, whether CUDA has accepted it. One that is like another that was accepted
//! before, with no more blocks and no more shared memory, is accepted too, as long as nothing has changed that a launch depends on: it
//! is [posted](balar_host::tunnel::Client::post), which saves both ends a wake-up. The first of its kind, and every one after an error,
//! is waited for.

use crate::session::state::process;
use balar_host::call::{Function, Launch};
use balar_host::{Call, CallResult, CudaError};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Connections of the process. While there are several, each waits for its calls, so that the order in which threads make them is that
/// in which the simulator hears of them.
static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
/// Calls of all threads that may have changed which launches are accepted.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// Kinds of launches that are kept.
const MAXIMUM_KINDS: usize = 64;

/// One of the process's connections.
#[derive(Debug)]
pub struct Counted(());

impl Counted {
    /// There is one more. Must come before it can say anything.
    pub fn new() -> Counted {
        CONNECTIONS.fetch_add(1, Ordering::SeqCst);
        Counted(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        CONNECTIONS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A thread's knowledge of the launches that it may post.
#[derive(Debug, Default)]
pub struct Posting {
    accepted: Vec<LaunchKind>,
    /// [`CHANGES`], as `accepted` knows them.
    changes: u64,
    /// How many calls may still be posted on this device before one is waited for.
    left: u32,
    device: u32,
}

/// Launches that are alike, and the largest that have been accepted.
#[derive(Debug)]
struct LaunchKind {
    device: u32,
    function: Function,
    stream: u32,
    block: [u32; 3],
    parameter_bytes: usize,
    grid: [u32; 3],
    /// What the extents of all accepted grids are multiples of: so are those of a cluster of the kernel, if it has any.
    step: [u32; 3],
    shared_bytes: u32,
}

impl LaunchKind {
    fn is_of(&self, device: u32, launch: &Launch) -> bool {
        self.device == device
            && self.stream == launch.stream
            && self.block == launch.block
            && self.parameter_bytes == launch.parameters.len()
            && self.function == launch.function
            // Whether clusters fill a grid, a larger grid does not tell.
            && launch.cluster.is_none()
    }

    /// Would this launch be accepted, too?
    fn accepts(&self, launch: &Launch) -> bool {
        self.covers(launch) && (!knows_clusters() || self.is_filled_alike(launch))
    }

    /// Do clusters that fill all its grids fill that of this launch?
    fn is_filled_alike(&self, launch: &Launch) -> bool {
        launch.grid.iter().zip(self.step).all(|(extent, step)| extent.is_multiple_of(step))
    }

    /// Are its limits, each by itself, above those of this launch?
    fn covers(&self, launch: &Launch) -> bool {
        let fits = |(wanted, accepted): (&u32, u32)| (1..=accepted).contains(wanted);
        launch.grid.iter().zip(self.grid).all(fits) && launch.shared_memory_bytes <= self.shared_bytes
    }
}

/// The greatest common divisor.
fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Has a device of the node clusters of blocks, which must fill grids?
fn knows_clusters() -> bool {
    let node = process::node();
    node.is_some_and(|node| node.description.devices.iter().any(|device| !device.cluster_groups.is_empty()))
}

impl Posting {
    /// Is this call to be posted? Then it is counted.
    pub fn take(&mut self, device: u32, call: &Call) -> bool {
        let Call::Launch(launch) = call else { return false };
        let is_posted = self.left > 0
            && self.device == device
            && !launch.cooperative
            && CONNECTIONS.load(Ordering::SeqCst) == 1
            && self.changes == CHANGES.load(Ordering::Relaxed)
            && self.accepted.iter().any(|kind| kind.is_of(device, launch) && kind.accepts(launch));
        self.left -= u32::from(is_posted);
        is_posted
    }

    /// A call begins that will be waited for.
    pub fn begins(&mut self, call: &Call) {
        if changes_launches(call) {
            CHANGES.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A call has returned, and so many calls may be posted.
    pub fn returned(&mut self, device: u32, call: &Call, result: &Result<CallResult, CudaError>, may_post: u32) {
        (self.left, self.device) = (may_post, device);
        let changes = CHANGES.load(Ordering::Relaxed);
        if self.changes != changes || result.as_ref().is_err_and(|error| *error != CudaError::NotReady) {
            self.accepted.clear();
            self.changes = changes;
        }
        if let (Ok(_), Call::Launch(launch)) = (result, call) {
            self.accept(device, launch);
        }
    }

    fn accept(&mut self, device: u32, launch: &Launch) {
        if let Some(kind) = self.accepted.iter_mut().find(|kind| kind.is_of(device, launch)) {
            for (largest, accepted) in kind.grid.iter_mut().zip(launch.grid) {
                *largest = accepted.max(*largest);
            }
            for (step, accepted) in kind.step.iter_mut().zip(launch.grid) {
                *step = common_divisor(*step, accepted);
            }
            kind.shared_bytes = kind.shared_bytes.max(launch.shared_memory_bytes);
            return;
        }
        if self.accepted.len() == MAXIMUM_KINDS {
            self.accepted.clear();
        }
        let Launch { function, grid, block, shared_memory_bytes, stream, parameters, .. } = launch;
        self.accepted.push(LaunchKind {
            device,
            function: function.clone(),
            stream: *stream,
            block: *block,
            parameter_bytes: parameters.len(),
            grid: *grid,
            step: *grid,
            shared_bytes: *shared_memory_bytes,
        });
    }
}

/// May a launch that was accepted before this call be refused after it? Not after calls that only add work to streams, wait for it,
/// or give and take memory.
fn changes_launches(call: &Call) -> bool {
    !matches!(
        call,
        Call::Launch(_)
            | Call::GraphLaunch { .. }
            | Call::Copy { .. }
            | Call::Memset { .. }
            | Call::DeviceSynchronize
            | Call::StreamCreate { .. }
            | Call::StreamSynchronize { .. }
            | Call::StreamQuery { .. }
            | Call::StreamWaitEvent { .. }
            | Call::EventCreate { .. }
            | Call::EventDestroy { .. }
            | Call::EventRecord { .. }
            | Call::EventSynchronize { .. }
            | Call::EventQuery { .. }
            | Call::EventElapsed { .. }
            | Call::Malloc { .. }
            | Call::MallocAsync { .. }
            | Call::MallocHost { .. }
            | Call::Free { .. }
            | Call::FreeAsync { .. }
            | Call::FreeHost { .. }
            | Call::Advise { .. }
            | Call::TouchManaged { .. }
            | Call::WriteManaged { .. }
            | Call::ReadManaged { .. }
            | Call::MemoryInfo
            | Call::PointerInfo { .. }
            | Call::Profiler(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(grid: [u32; 3], change: impl FnOnce(&mut Launch)) -> Call {
        let mut launch = Launch {
            function: Function { module: 1, name: "k".into() },
            grid,
            block: [32, 1, 1],
            shared_memory_bytes: 100,
            stream: 0,
            parameters: vec![0; 8],
            cooperative: false,
            cluster: None,
            non_portable_cluster: false,
            access_policy: None,
        };
        change(&mut launch);
        Call::Launch(launch)
    }

    const DONE: Result<CallResult, CudaError> = Ok(CallResult::None);

    #[test]
    fn grids_are_filled_by_the_clusters_of_those_that_were_accepted() {
        let mut posting = Posting::default();
        for (extent, divisor) in [(12, 12), (18, 6), (4, 2)] {
            let Call::Launch(launch) = launch([extent, 1, 1], |_| {}) else { unreachable!() };
            posting.accept(0, &launch);
            assert_eq!(posting.accepted[0].step, [divisor, 1, 1]);
        }
        let is_filled = |extent| {
            let Call::Launch(launch) = launch([extent, 1, 1], |_| {}) else { unreachable!() };
            posting.accepted[0].is_filled_alike(&launch)
        };
        assert!(is_filled(8) && !is_filled(7));
    }

    /// The whole life in one test: the counts are of the process.
    #[test]
    fn a_launch_is_posted_when_one_like_it_was_accepted() {
        let first = Counted::new();
        let mut posting = Posting::default();
        let plain = launch([4, 2, 1], |_| {});
        assert!(!posting.take(0, &plain), "the first of its kind");
        posting.returned(0, &plain, &DONE, 2);
        assert!(!posting.take(0, &launch([5, 1, 1], |_| {})), "more blocks");
        assert!(!posting.take(0, &launch([1, 3, 1], |_| {})), "more blocks in y");
        assert!(!posting.take(0, &launch([0, 1, 1], |_| {})), "no blocks");
        assert!(!posting.take(0, &launch([4, 2, 1], |l| l.shared_memory_bytes = 101)));
        assert!(!posting.take(0, &launch([4, 2, 1], |l| l.block = [31, 1, 1])));
        assert!(!posting.take(0, &launch([4, 2, 1], |l| l.stream = 1)));
        assert!(!posting.take(0, &launch([4, 2, 1], |l| l.cooperative = true)));
        assert!(!posting.take(0, &launch([4, 2, 1], |l| l.parameters.clear())));
        assert!(!posting.take(0, &launch([4, 2, 1], |l| l.function.module = 2)));
        assert!(!posting.take(1, &plain) && !posting.take(0, &Call::DeviceSynchronize));
        assert!(posting.take(0, &launch([3, 1, 1], |l| l.shared_memory_bytes = 0)));
        assert!(posting.take(0, &plain));
        assert!(!posting.take(0, &plain), "as many as may be");
        // Launches that were accepted since count, each limit by itself.
        posting.returned(0, &launch([1, 9, 1], |_| {}), &DONE, 100);
        assert!(posting.take(0, &launch([4, 9, 1], |_| {})));
        // Work and memory change nothing; a query that says that work is under way is no failure.
        posting.begins(&Call::Malloc { bytes: 5 });
        posting.returned(0, &Call::StreamQuery { stream: 0 }, &Err(CudaError::NotReady), 100);
        assert!(posting.take(0, &plain));
        // Another thread makes its order matter.
        let second = Counted::new();
        assert!(!posting.take(0, &plain));
        drop(second);
        assert!(posting.take(0, &plain));
        // What was accepted may be refused now: after such a call of any thread, and after an error.
        Posting::default().begins(&Call::StreamDestroy { stream: 3 });
        assert!(!posting.take(0, &plain));
        posting.returned(0, &plain, &DONE, 100);
        assert!(posting.take(0, &plain));
        posting.returned(0, &Call::DeviceSynchronize, &Err(CudaError::IllegalAddress), 100);
        assert!(!posting.take(0, &plain));
        drop(first);
    }
}
