//! Streams: what the host has asked of the GPU and is not yet done, in CUDA's order.
//!
//! Operations of one stream run in order. The default stream, number 0, is the legacy one: its operations wait for all
//! earlier ones of every stream, and later ones of every stream wait for them.

use balar_protocol::copy::{CopyId, CopyOperation};
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Work for the GPU.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// For the CTA scheduler, which keeps the order of a stream itself.
    Kernel(Arc<KernelLaunch>),
    /// For the copy engine.
    Copy {
        id: CopyId,
        operation: CopyOperation,
        /// The program's number of an asynchronous copy from the device, whose bytes it receives.
        transfer: Option<u32>,
    },
}

#[derive(Debug)]
struct Operation {
    /// Place in the order in which the program asked.
    number: u64,
    work: Work,
}

#[derive(Debug, Default)]
struct Stream {
    /// Not yet done, oldest first.
    operations: VecDeque<Operation>,
    /// How many of them, from the oldest on, the GPU has been given.
    dispatched: usize,
    destroyed: bool,
}

/// All streams.
#[derive(Debug)]
pub(super) struct Streams {
    streams: BTreeMap<u32, Stream>,
    next_stream: u32,
    next_number: u64,
    pending: usize,
}

impl Streams {
    /// The default stream alone.
    pub fn new() -> Streams {
        Streams { streams: BTreeMap::from([(0, Stream::default())]), next_stream: 1, next_number: 0, pending: 0 }
    }

    /// A new stream.
    pub fn create(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 1;
        self.streams.insert(stream, Stream::default());
        stream
    }

    /// The stream takes no more work and goes when it has done what it has. False where there is none of that number, or
    /// it is the default stream.
    #[must_use]
    pub fn destroy(&mut self, stream: u32) -> bool {
        if stream == 0 || !self.exists(stream) {
            return false;
        }
        if let Some(state) = self.streams.get_mut(&stream) {
            state.destroyed = true;
        }
        self.remove_if_done(stream);
        true
    }

    /// Can the program use this number?
    pub fn exists(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_some_and(|stream| !stream.destroyed)
    }

    /// Operations not yet done.
    pub fn pending(&self) -> usize {
        self.pending
    }

    /// Has the stream done all it was asked?
    pub fn is_idle(&self, stream: u32) -> bool {
        self.streams.get(&stream).is_none_or(|stream| stream.operations.is_empty())
    }

    /// Is the operation with this place in the order done?
    pub fn is_done(&self, stream: u32, number: u64) -> bool {
        let state = self.streams.get(&stream);
        !state.is_some_and(|state| state.operations.iter().any(|operation| operation.number == number))
    }

    /// Adds work; returns its place in the order.
    pub fn push(&mut self, stream: u32, work: Work) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.pending += 1;
        self.streams.entry(stream).or_default().operations.push_back(Operation { number, work });
        number
    }

    /// Gives the GPU what has nothing left to wait for.
    pub fn dispatch(&mut self, mut send: impl FnMut(&Work)) {
        let oldest = |stream: &Stream| stream.operations.front().map(|operation| operation.number);
        let oldest_default = self.streams.get(&0).and_then(oldest).unwrap_or(u64::MAX);
        let others = self.streams.iter().filter(|(id, _)| **id != 0);
        let oldest_other = others.filter_map(|(_, stream)| oldest(stream)).min().unwrap_or(u64::MAX);
        for (id, stream) in &mut self.streams {
            let barrier = if *id == 0 { oldest_other } else { oldest_default };
            while let Some(operation) = stream.operations.get(stream.dispatched) {
                let follows_kernel = || {
                    let before = stream.dispatched.checked_sub(1).and_then(|before| stream.operations.get(before));
                    before.is_some_and(|before| matches!(before.work, Work::Kernel(_)))
                };
                let in_order =
                    stream.dispatched == 0 || (matches!(operation.work, Work::Kernel(_)) && follows_kernel());
                if !in_order || barrier < operation.number {
                    break;
                }
                send(&operation.work);
                stream.dispatched += 1;
            }
        }
    }

    /// A kernel is over.
    pub fn complete_kernel(&mut self, launch: LaunchId) -> Option<Work> {
        self.complete(|work| matches!(work, Work::Kernel(kernel) if kernel.id == launch))
    }

    /// A copy is over.
    pub fn complete_copy(&mut self, copy: CopyId) -> Option<Work> {
        self.complete(|work| matches!(work, Work::Copy { id, .. } if *id == copy))
    }

    /// The copy under way with this number.
    pub fn copy_under_way(&self, copy: CopyId) -> Option<&CopyOperation> {
        self.streams.values().flat_map(|stream| stream.operations.iter().take(stream.dispatched)).find_map(
            |operation| match &operation.work {
                Work::Copy { id, operation, .. } if *id == copy => Some(operation),
                _ => None,
            },
        )
    }

    /// Forgets what the GPU has not been given.
    pub fn drop_waiting(&mut self) {
        for stream in self.streams.values_mut() {
            self.pending -= stream.operations.len() - stream.dispatched;
            stream.operations.truncate(stream.dispatched);
        }
    }

    /// The oldest operation not yet done, in words.
    pub fn oldest(&self) -> Option<String> {
        let fronts = self.streams.iter().filter_map(|(id, stream)| Some((id, stream.operations.front()?)));
        let (stream, operation) = fronts.min_by_key(|(_, operation)| operation.number)?;
        Some(match &operation.work {
            Work::Kernel(kernel) => format!("kernel {} (launch {}) of stream {stream}", kernel.name, kernel.id),
            Work::Copy { id, operation, .. } => {
                format!("transfer {} of {} bytes of stream {stream}", id.0, operation.bytes())
            }
        })
    }

    fn complete(&mut self, is_it: impl Fn(&Work) -> bool) -> Option<Work> {
        // The operation is the oldest of its stream but where a failure ends several at once.
        let find = |(id, stream): (&u32, &Stream)| {
            let mut given = stream.operations.iter().take(stream.dispatched);
            given.position(|operation| is_it(&operation.work)).map(|at| (*id, at))
        };
        let (id, at) = self.streams.iter().find_map(find)?;
        let stream = self.streams.get_mut(&id)?;
        let operation = stream.operations.remove(at)?;
        stream.dispatched -= 1;
        self.pending -= 1;
        self.remove_if_done(id);
        Some(operation.work)
    }

    fn remove_if_done(&mut self, stream: u32) {
        if self.streams.get(&stream).is_some_and(|state| state.destroyed && state.operations.is_empty()) {
            self.streams.remove(&stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(id: u32) -> Work {
        Work::Kernel(Arc::new(KernelLaunch {
            id: LaunchId(id),
            program: Default::default(),
            name: "k".into(),
            grid: [1; 3],
            block: [32, 1, 1],
            dynamic_shared_bytes: 0,
            shared_bytes: 0,
            registers_per_thread: 16,
            local_bytes: 0,
            parameters: Arc::new([]),
            stream: 0,
            grid_workspace: 0,
        }))
    }

    fn copy(id: u32) -> Work {
        Work::Copy {
            id: CopyId(id),
            operation: CopyOperation::DeviceToHost { source: balar_protocol::copy::Rows::linear(0, 1) },
            transfer: None,
        }
    }

    /// Numbers of the kernels and copies dispatched, in order.
    fn dispatched(streams: &mut Streams) -> Vec<u32> {
        let mut ids = Vec::new();
        streams.dispatch(|work| match work {
            Work::Kernel(kernel) => ids.push(kernel.id.0),
            Work::Copy { id, .. } => ids.push(id.0),
        });
        ids
    }

    #[test]
    fn kernels_of_one_stream_go_together_and_a_copy_waits_for_them() {
        let mut streams = Streams::new();
        for work in [kernel(1), kernel(2), copy(3), kernel(4)] {
            streams.push(0, work);
        }
        assert_eq!(dispatched(&mut streams), [1, 2]);
        assert!(streams.complete_kernel(LaunchId(1)).is_some());
        assert_eq!(dispatched(&mut streams), []);
        assert!(streams.complete_kernel(LaunchId(2)).is_some());
        assert_eq!(dispatched(&mut streams), [3]);
        assert!(streams.complete_kernel(LaunchId(4)).is_none(), "it was not dispatched");
        assert!(streams.complete_copy(CopyId(3)).is_some());
        assert_eq!(dispatched(&mut streams), [4]);
        assert_eq!(streams.pending(), 1);
    }

    #[test]
    fn the_default_stream_waits_for_all_and_all_wait_for_it() {
        let mut streams = Streams::new();
        let (a, b) = (streams.create(), streams.create());
        streams.push(a, kernel(1));
        streams.push(b, kernel(2));
        streams.push(0, kernel(3));
        streams.push(a, kernel(4));
        assert_eq!(dispatched(&mut streams), [1, 2]);
        streams.complete_kernel(LaunchId(1));
        assert_eq!(dispatched(&mut streams), []);
        streams.complete_kernel(LaunchId(2));
        assert_eq!(dispatched(&mut streams), [3]);
        streams.complete_kernel(LaunchId(3));
        assert_eq!(dispatched(&mut streams), [4]);
        assert!(streams.is_idle(0) && !streams.is_idle(a));
    }

    #[test]
    fn a_destroyed_stream_does_its_work_first() {
        let mut streams = Streams::new();
        let stream = streams.create();
        streams.push(stream, copy(1));
        assert_eq!(dispatched(&mut streams), [1]);
        assert!(streams.destroy(stream) && !streams.destroy(stream) && !streams.destroy(0));
        assert!(!streams.exists(stream) && !streams.is_idle(stream));
        assert!(streams.complete_copy(CopyId(1)).is_some());
        assert!(!streams.streams.contains_key(&stream));
    }

    #[test]
    fn after_a_failure_only_what_was_dispatched_is_waited_for() {
        let mut streams = Streams::new();
        for work in [kernel(1), kernel(2), copy(3)] {
            streams.push(0, work);
        }
        dispatched(&mut streams);
        streams.drop_waiting();
        assert_eq!(streams.pending(), 2);
        assert!(streams.complete_kernel(LaunchId(2)).is_some(), "failures may come in any order");
        assert!(streams.oldest().is_some_and(|text| text.starts_with("kernel k (launch 0) of stream 0")));
    }
}
