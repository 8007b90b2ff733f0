//! Streams: which earlier operations a new one waits for.
//!
//! Operations of one stream run in order. The default stream of a device, number 0, is the legacy one: its operations wait for all
//! earlier ones of every blocking stream of the device, and later ones of those wait for them.

use super::operations::{Edge, NewOperation, Operations};
use super::work::Work;
use crate::keys::{OperationNumber, StreamKey};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Stream {
    context: ContextId,
    non_blocking: bool,
    priority: i32,
    /// The operation that the next one waits for.
    tail: Option<Tail>,
    /// The last operation: it is done when the stream has done all.
    last: Option<OperationNumber>,
    destroyed: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Tail {
    operation: OperationNumber,
    is_kernel: bool,
}

/// All streams of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Streams {
    legacy: Vec<Stream>,
    own: BTreeMap<u32, Stream>,
    next: u32,
}

impl Streams {
    /// The default streams alone, for a process on a node of so many devices.
    pub fn new(process: ProcessId, devices: usize) -> Streams {
        let legacy = |device| Stream { context: ContextId::new(process, device), ..Stream::default() };
        Streams { legacy: (0..devices).map(legacy).collect(), own: BTreeMap::new(), next: 1 }
    }

    /// A new stream.
    pub fn create(&mut self, context: ContextId, non_blocking: bool, priority: i32) -> u32 {
        let stream = self.next;
        self.next += 1;
        self.own.insert(stream, Stream { context, non_blocking, priority, ..Stream::default() });
        stream
    }

    /// The stream that `number` is for a thread whose current device is `device`.
    pub fn find(&self, device: usize, number: u32) -> Option<StreamKey> {
        if number == 0 {
            return (device < self.legacy.len()).then_some(StreamKey::Legacy(device));
        }
        self.own.get(&number).filter(|stream| !stream.destroyed).map(|_| StreamKey::Own(number))
    }

    /// The stream takes no more work, and goes when its work is done. Gives false where there is no stream of that number, or it is a
    /// default stream.
    #[must_use]
    pub fn destroy(&mut self, stream: u32) -> bool {
        match self.own.get_mut(&stream) {
            Some(state) if !state.destroyed => state.destroyed = true,
            _ => return false,
        }
        true
    }

    /// All streams of a context end.
    pub fn destroy_all(&mut self, context: ContextId) {
        self.own.retain(|_, stream| stream.context != context);
        self.legacy[context.gpu()] = Stream { context, ..Stream::default() };
    }

    /// Whose stream it is.
    pub fn context(&self, key: StreamKey) -> ContextId {
        self.get(key).map(|stream| stream.context).unwrap_or_default()
    }

    /// Lower numbers go first.
    pub fn priority(&self, key: StreamKey) -> i32 {
        self.get(key).map_or(0, |stream| stream.priority)
    }

    /// The operations whose ends are the end of all that was asked of the stream so far.
    pub fn ends(&mut self, key: StreamKey, operations: &Operations) -> Vec<OperationNumber> {
        let mut ends: Vec<_> = self.get(key).and_then(|stream| stream.last).into_iter().collect();
        if let StreamKey::Legacy(_) = key {
            ends.extend(self.blocking(self.context(key), operations));
        }
        ends.retain(|&number| operations.is_pending(number));
        ends
    }

    /// The operations that a new operation of the stream waits for. `is_kernel`: it is one of the stream's own queue.
    pub fn edges(&mut self, key: StreamKey, is_kernel: bool, operations: &Operations) -> Vec<Edge> {
        let mut edges = Vec::new();
        let Some(stream) = self.get(key) else { return edges };
        let context = stream.context;
        let behind_legacy = !stream.non_blocking && matches!(key, StreamKey::Own(_));
        if let Some(tail) = stream.tail {
            let queued = is_kernel && tail.is_kernel;
            edges.push(if queued { Edge::Given(tail.operation) } else { Edge::Done(tail.operation) });
        }
        if behind_legacy {
            edges.extend(self.legacy[context.gpu()].tail.map(|tail| Edge::Done(tail.operation)));
        }
        if matches!(key, StreamKey::Legacy(_)) {
            edges.extend(self.blocking(context, operations).into_iter().map(Edge::Done));
        }
        edges.retain(|edge| match *edge {
            Edge::Done(number) | Edge::Given(number) => operations.is_pending(number),
        });
        edges
    }

    /// Adds an operation to a stream: it waits for operations by the stream's order, and for `extra`.
    pub fn push(&mut self, key: StreamKey, work: Work, extra: &[Edge], operations: &mut Operations) -> OperationNumber {
        let is_kernel = matches!(work, Work::Kernel(_));
        let is_mark = matches!(work, Work::Record(_) | Work::Nothing);
        let mut edges = self.edges(key, is_kernel, operations);
        edges.extend(extra.iter().filter(|edge| match **edge {
            Edge::Done(number) | Edge::Given(number) => operations.is_pending(number),
        }));
        let tail = self.get(key).and_then(|stream| stream.tail).map(|tail| tail.operation);
        let (context, priority) = (self.context(key), self.priority(key));
        // What waits for nothing but the operation before and takes no time is over with that: later ones need not wait for it.
        let follows_tail = edges.iter().all(|edge| matches!(edge, Edge::Done(number) if Some(*number) == tail));
        let number = operations.add(NewOperation { context, stream: key.number(), priority, work }, &edges);
        let passes = is_mark && follows_tail;
        self.set_end(key, number, (!passes).then_some(is_kernel));
        number
    }

    /// The stream's last operation; with `tail` the next one waits for it.
    pub fn set_end(&mut self, key: StreamKey, number: OperationNumber, tail: Option<bool>) {
        let Some(stream) = self.get_mut(key) else { return };
        stream.last = Some(number);
        if let Some(is_kernel) = tail {
            stream.tail = Some(Tail { operation: number, is_kernel });
        }
    }

    /// The last operations of a context's blocking streams that are not yet done. Destroyed streams that are done go.
    fn blocking(&mut self, context: ContextId, operations: &Operations) -> Vec<OperationNumber> {
        let is_pending = |number: &OperationNumber| operations.is_pending(*number);
        self.own.retain(|_, stream| !stream.destroyed || stream.last.as_ref().is_some_and(is_pending));
        let of_context = self.own.values().filter(|stream| stream.context == context && !stream.non_blocking);
        of_context.filter_map(|stream| stream.last).filter(is_pending).collect()
    }

    fn get(&self, key: StreamKey) -> Option<&Stream> {
        match key {
            StreamKey::Legacy(device) => self.legacy.get(device),
            StreamKey::Own(stream) => self.own.get(&stream),
        }
    }

    fn get_mut(&mut self, key: StreamKey) -> Option<&mut Stream> {
        match key {
            StreamKey::Legacy(device) => self.legacy.get_mut(device),
            StreamKey::Own(stream) => self.own.get_mut(&stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::kernel_launch;
    use balar_protocol::cuda::{KernelLaunch, LaunchId};
    use std::sync::Arc;

    struct Device {
        streams: Streams,
        operations: Operations,
    }

    impl Device {
        fn new() -> Device {
            Device { streams: Streams::new(ProcessId::FIRST, 2), operations: Operations::default() }
        }

        fn push(&mut self, stream: u32, work: Work) -> OperationNumber {
            let key = self.streams.find(0, stream).expect("the stream exists");
            self.streams.push(key, work, &[], &mut self.operations)
        }

        fn kernel(&mut self, stream: u32) -> OperationNumber {
            let id = LaunchId(self.operations.next() as u32 + 1);
            self.push(stream, Work::Kernel(Arc::new(KernelLaunch { id, ..kernel_launch() })))
        }

        fn begun(&mut self) -> Vec<OperationNumber> {
            std::iter::from_fn(|| self.operations.begin().map(|(number, ..)| number)).collect()
        }

        fn complete(&mut self, number: OperationNumber) {
            assert!(self.operations.complete(number).is_some());
        }
    }

    #[test]
    fn kernels_of_one_stream_go_together_and_others_wait_for_them() {
        let mut device = Device::new();
        let (a, b) = (device.kernel(0), device.kernel(0));
        let copy = device.push(0, Work::HostFunction(1));
        let after = device.kernel(0);
        assert_eq!(device.begun(), [a, b]);
        device.complete(a);
        assert!(device.begun().is_empty());
        device.complete(b);
        assert_eq!(device.begun(), [copy]);
        device.complete(copy);
        assert_eq!(device.begun(), [after]);
    }

    #[test]
    fn the_default_stream_waits_for_blocking_streams_and_they_wait_for_it() {
        let mut device = Device::new();
        let (a, b) =
            (device.streams.create(ContextId::first(0), false, 0), device.streams.create(ContextId::first(0), true, 0));
        let other = device.streams.create(ContextId::first(1), false, 0);
        let (in_a, in_b, in_other) = (device.kernel(a), device.kernel(b), device.kernel(other));
        let legacy = device.kernel(0);
        let (later_a, later_b) = (device.kernel(a), device.kernel(b));
        assert_eq!(device.begun(), [in_a, in_b, later_b, in_other]);
        device.complete(in_a);
        assert_eq!(device.begun(), [legacy], "neither the non-blocking stream nor the other device is waited for");
        device.complete(legacy);
        assert_eq!(device.begun(), [later_a]);
    }

    #[test]
    fn a_record_does_not_keep_kernels_apart() {
        let mut device = Device::new();
        let stream = device.streams.create(ContextId::first(0), false, 0);
        let first = device.kernel(stream);
        let record = device.push(stream, Work::Record(1));
        let second = device.kernel(stream);
        assert_eq!(device.begun(), [first, second]);
        device.complete(first);
        assert_eq!(device.begun(), [record]);
        device.complete(record);
        device.complete(second);
        let key = device.streams.find(0, stream).expect("it exists");
        assert!(device.streams.ends(key, &device.operations).is_empty());
    }

    #[test]
    fn a_record_in_the_default_stream_keeps_streams_apart() {
        let mut device = Device::new();
        let (a, b) = (
            device.streams.create(ContextId::first(0), false, 0),
            device.streams.create(ContextId::first(0), false, 0),
        );
        let in_a = device.kernel(a);
        let record = device.push(0, Work::Record(1));
        let in_b = device.kernel(b);
        assert_eq!(device.begun(), [in_a]);
        device.complete(in_a);
        assert_eq!(device.begun(), [record]);
        device.complete(record);
        assert_eq!(device.begun(), [in_b]);
    }

    #[test]
    fn a_destroyed_stream_does_its_work_and_the_default_stream_waits_for_it() {
        let mut device = Device::new();
        let stream = device.streams.create(ContextId::first(0), false, 0);
        let work = device.kernel(stream);
        assert_eq!(device.begun(), [work]);
        assert!(device.streams.destroy(stream) && !device.streams.destroy(stream) && !device.streams.destroy(0));
        assert_eq!(device.streams.find(0, stream), None);
        let legacy = device.kernel(0);
        assert!(device.begun().is_empty());
        device.complete(work);
        assert_eq!(device.begun(), [legacy]);
        device.kernel(0);
        assert!(device.streams.own.is_empty());
    }

    #[test]
    fn a_priority_is_the_streams() {
        let mut device = Device::new();
        let (low, high) =
            (device.streams.create(ContextId::first(0), true, 0), device.streams.create(ContextId::first(0), true, -1));
        let (in_low, in_high) = (device.kernel(low), device.kernel(high));
        assert_eq!(device.begun(), [in_high, in_low]);
    }
}
