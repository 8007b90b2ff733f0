//! Work that the program has asked the GPUs for and that is not yet done: operations that wait for each other.
//!
//! Streams, events and graphs are nothing but predecessors of operations.

use super::work::Work;
use crate::keys::OperationNumber;
use balar_protocol::cuda::{KernelLaunch, LaunchId};
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The part of an earlier operation that an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Edge {
    /// Its end.
    Done(OperationNumber),
    /// That the CTA scheduler has it, which runs the kernels of one queue one after another.
    Given(OperationNumber),
}

/// The facts about an operation when it is added.
#[derive(Debug)]
pub(crate) struct NewOperation {
    /// The context whose work it is.
    pub context: ContextId,
    /// Its stream, for messages and for the order among those that can start at the same time.
    pub stream: u32,
    /// Lower numbers start first.
    pub priority: i32,
    /// Its work.
    pub work: Work,
}

#[derive(Debug, Serialize, Deserialize)]
struct Operation {
    context: ContextId,
    stream: u32,
    priority: i32,
    work: Work,
    /// Predecessors that it still waits for.
    waits: u32,
    /// Whether it has begun.
    given: bool,
    /// Who waits for its end.
    after_done: Vec<OperationNumber>,
    /// Who waits for it to begin.
    after_given: Vec<OperationNumber>,
}

/// All operations that are not yet done.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Operations {
    pending: BTreeMap<OperationNumber, Operation>,
    /// Those that can begin: the order is that of priorities, then of streams.
    ready: BTreeSet<(i32, u32, OperationNumber)>,
    /// The operations of each context that are not yet done.
    of_context: BTreeMap<ContextId, BTreeSet<OperationNumber>>,
    launches: BTreeMap<LaunchId, OperationNumber>,
    /// Bytes of pageable memory that copies bring to devices and that are kept for them, by context.
    kept_bytes: BTreeMap<ContextId, u64>,
    /// How many host functions have not begun.
    functions_to_come: usize,
    next: OperationNumber,
}

impl Operations {
    /// The number that the next operation gets.
    pub fn next(&self) -> OperationNumber {
        self.next
    }

    /// Is it not yet done?
    pub fn is_pending(&self, number: OperationNumber) -> bool {
        self.pending.contains_key(&number)
    }

    /// Will streams come to host functions?
    pub fn has_functions_to_come(&self) -> bool {
        self.functions_to_come > 0
    }

    /// The operation that a launch is, until it is done.
    pub fn of_launch(&self, launch: LaunchId) -> Option<OperationNumber> {
        self.launches.get(&launch).copied()
    }

    /// Operations of a context that are not yet done.
    pub fn count(&self, context: ContextId) -> usize {
        self.of_context.get(&context).map_or(0, BTreeSet::len)
    }

    /// Bytes that operations of a context, not yet done, keep of pageable memory.
    pub fn kept_bytes(&self, context: ContextId) -> u64 {
        self.kept_bytes.get(&context).copied().unwrap_or(0)
    }

    /// Is every operation of the context done that was asked for before this one?
    pub fn is_done_before(&self, context: ContextId, number: OperationNumber) -> bool {
        let first = self.of_context.get(&context).and_then(BTreeSet::first);
        first.is_none_or(|&first| first >= number)
    }

    /// Adds an operation that waits for these. Predecessors that are done already count as nothing.
    pub fn add(&mut self, new: NewOperation, edges: &[Edge]) -> OperationNumber {
        let number = self.next;
        self.next += 1;
        let mut waits = 0;
        for edge in edges {
            let list = match *edge {
                Edge::Done(before) => self.pending.get_mut(&before).map(|before| &mut before.after_done),
                Edge::Given(before) => {
                    let before = self.pending.get_mut(&before).filter(|before| !before.given);
                    before.map(|before| &mut before.after_given)
                }
            };
            let Some(list) = list.filter(|list| list.last() != Some(&number)) else { continue };
            list.push(number);
            waits += 1;
        }
        let NewOperation { context, stream, priority, work } = new;
        if waits == 0 {
            self.ready.insert((priority, stream, number));
        }
        if let Work::Kernel(launch) = &work {
            self.launches.insert(launch.id, number);
        }
        self.functions_to_come += usize::from(matches!(work, Work::HostFunction(_)));
        if work.kept_bytes() > 0 {
            *self.kept_bytes.entry(context).or_default() += work.kept_bytes();
        }
        self.of_context.entry(context).or_default().insert(number);
        let (after_done, after_given) = (Vec::new(), Vec::new());
        let operation = Operation { context, stream, priority, work, waits, given: false, after_done, after_given };
        self.pending.insert(number, operation);
        number
    }

    /// Begins the first operation that can: gives its number, context and work.
    pub fn begin(&mut self) -> Option<(OperationNumber, ContextId, &mut Work)> {
        let (_, _, number) = self.ready.pop_first()?;
        let operation = self.pending.get_mut(&number)?;
        operation.given = true;
        self.functions_to_come -= usize::from(matches!(operation.work, Work::HostFunction(_)));
        let followers = std::mem::take(&mut operation.after_given);
        self.release(&followers);
        let operation = self.pending.get_mut(&number)?;
        Some((number, operation.context, &mut operation.work))
    }

    /// An operation is done: gives its context and work.
    pub fn complete(&mut self, number: OperationNumber) -> Option<(ContextId, Work)> {
        let operation = self.remove(number)?;
        Some((operation.context, operation.work))
    }

    /// A kernel is over.
    pub fn complete_kernel(&mut self, launch: LaunchId) -> Option<(ContextId, Arc<KernelLaunch>)> {
        let number = *self.launches.get(&launch)?;
        match self.complete(number)? {
            (context, Work::Kernel(launch)) => Some((context, launch)),
            _ => None,
        }
    }

    /// All launches, to complete their code.
    pub fn launches_mut(&mut self) -> impl Iterator<Item = &mut KernelLaunch> {
        self.pending.values_mut().filter_map(|operation| match &mut operation.work {
            Work::Kernel(launch) => Some(Arc::make_mut(launch)),
            _ => None,
        })
    }

    /// The work of an operation that has begun and is not done, and its owner.
    pub fn under_way(&mut self, number: OperationNumber) -> Option<(ContextId, &mut Work)> {
        let operation = self.pending.get_mut(&number).filter(|operation| operation.given)?;
        Some((operation.context, &mut operation.work))
    }

    /// The host function under way with this number of a process.
    pub fn host_function(&self, process: ProcessId, function: u64) -> Option<OperationNumber> {
        let is_it = |operation: &Operation| {
            let is_its = operation.given && operation.context.process() == process;
            is_its && matches!(operation.work, Work::HostFunction(number) if number == function)
        };
        self.pending.iter().find(|(_, operation)| is_it(operation)).map(|(number, _)| *number)
    }

    /// No thread of the process is left to run host functions: those under way are over.
    pub fn end_host_functions(&mut self, process: ProcessId) {
        let is_under_way = |operation: &Operation| {
            let is_its = operation.given && operation.context.process() == process;
            is_its && matches!(operation.work, Work::HostFunction(_))
        };
        let functions = self.pending.iter().filter(|(_, operation)| is_under_way(operation));
        let functions: Vec<OperationNumber> = functions.map(|(number, _)| *number).collect();
        for number in functions {
            self.remove(number);
        }
    }

    /// Forgets those of a context's operations that have not begun; others that wait for them go on. Gives the allocations that would have
    /// ended.
    pub fn drop_waiting(&mut self, context: ContextId) -> Vec<u64> {
        let of_context = self.of_context.get(&context).into_iter().flatten().copied();
        let waiting: Vec<_> =
            of_context.filter(|number| self.pending.get(number).is_some_and(|operation| !operation.given)).collect();
        let mut freed = Vec::new();
        for number in waiting {
            match self.remove(number) {
                Some(Operation { work: Work::Free(address), .. }) => freed.push(address),
                // The conditional node is done that has waited for it.
                Some(Operation { work: Work::EndOfGraph(of), .. }) => drop(self.remove(of)),
                _ => {}
            }
        }
        freed
    }

    /// The oldest operation not yet done, in words.
    pub fn oldest(&self) -> Option<String> {
        let (_, operation) = self.pending.first_key_value()?;
        let what = match &operation.work {
            Work::Kernel(kernel) => format!("kernel {} (launch {})", kernel.name, kernel.id),
            Work::Copy(copy) => copy.describe(),
            Work::Prefetch(prefetch) => format!("a prefetch of {} bytes at {:#x}", prefetch.bytes, prefetch.address),
            Work::HostFunction(function) => format!("host function {function}"),
            Work::Record(event) => format!("the record of event {event}"),
            Work::Free(address) => format!("the end of the allocation at {address:#x}"),
            Work::Conditional(_) => "a conditional node of a graph".to_owned(),
            Work::Conditions(_) => "the first values of a graph's conditions".to_owned(),
            Work::EndOfGraph(_) => "the graph of a conditional node".to_owned(),
            Work::Nothing => "a wait".to_owned(),
        };
        Some(format!("{what} of stream {}", operation.stream))
    }

    fn remove(&mut self, number: OperationNumber) -> Option<Operation> {
        let operation = self.pending.remove(&number)?;
        self.ready.remove(&(operation.priority, operation.stream, number));
        if let Some(of_context) = self.of_context.get_mut(&operation.context) {
            of_context.remove(&number);
            if of_context.is_empty() {
                self.of_context.remove(&operation.context);
            }
        }
        if let Some(kept) = self.kept_bytes.get_mut(&operation.context) {
            *kept -= operation.work.kept_bytes();
        }
        self.functions_to_come -= usize::from(!operation.given && matches!(operation.work, Work::HostFunction(_)));
        if let Work::Kernel(launch) = &operation.work {
            self.launches.remove(&launch.id);
        }
        self.release(&operation.after_given);
        self.release(&operation.after_done);
        Some(operation)
    }

    fn release(&mut self, followers: &[OperationNumber]) {
        for &number in followers {
            let Some(follower) = self.pending.get_mut(&number) else { continue };
            follower.waits -= 1;
            if follower.waits == 0 {
                self.ready.insert((follower.priority, follower.stream, number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: ContextId = ContextId::first(0);

    fn kernel(id: u32) -> Work {
        Work::Kernel(Arc::new(KernelLaunch { id: LaunchId(id), ..crate::test_support::kernel_launch() }))
    }

    fn add(operations: &mut Operations, stream: u32, work: Work, edges: &[Edge]) -> OperationNumber {
        operations.add(NewOperation { context: CONTEXT, stream, priority: 0, work }, edges)
    }

    fn begun(operations: &mut Operations) -> Vec<OperationNumber> {
        std::iter::from_fn(|| operations.begin().map(|(number, ..)| number)).collect()
    }

    #[test]
    fn host_functions_under_way_end_with_the_program() {
        let mut operations = Operations::default();
        let function = add(&mut operations, 0, Work::HostFunction(1), &[]);
        let behind = add(&mut operations, 0, kernel(1), &[Edge::Done(function)]);
        let other = add(&mut operations, 1, kernel(2), &[]);
        assert_eq!(begun(&mut operations), [function, other]);
        operations.end_host_functions(ProcessId::FIRST);
        assert!(!operations.is_pending(function) && operations.is_pending(other));
        assert_eq!(begun(&mut operations), [behind]);
    }

    #[test]
    fn host_functions_come_until_they_begin_or_are_dropped() {
        let mut operations = Operations::default();
        let kernel = add(&mut operations, 0, kernel(1), &[]);
        let first = add(&mut operations, 0, Work::HostFunction(1), &[Edge::Done(kernel)]);
        add(&mut operations, 0, Work::HostFunction(2), &[Edge::Done(first)]);
        assert_eq!(begun(&mut operations), [kernel]);
        assert!(operations.has_functions_to_come());
        operations.complete(kernel);
        assert_eq!(begun(&mut operations), [first]);
        assert!(operations.has_functions_to_come());
        operations.drop_waiting(CONTEXT);
        assert!(!operations.has_functions_to_come());
        operations.complete(first);
        assert!(!operations.has_functions_to_come());
    }

    #[test]
    fn ends_and_beginnings_release_those_that_wait() {
        let mut operations = Operations::default();
        let a = add(&mut operations, 0, kernel(1), &[]);
        let b = add(&mut operations, 0, kernel(2), &[Edge::Given(a)]);
        let c = add(&mut operations, 0, Work::Nothing, &[Edge::Done(b), Edge::Done(a)]);
        let d = add(&mut operations, 0, kernel(3), &[Edge::Done(c), Edge::Given(b)]);
        assert_eq!(begun(&mut operations), [a, b]);
        assert!(operations.complete_kernel(LaunchId(2)).is_some());
        assert!(begun(&mut operations).is_empty());
        assert!(operations.complete_kernel(LaunchId(1)).is_some());
        assert_eq!(begun(&mut operations), [c]);
        assert!(!operations.is_done_before(CONTEXT, d) && operations.is_done_before(CONTEXT, c));
        assert!(operations.complete(c).is_some() && operations.complete(c).is_none());
        assert_eq!(begun(&mut operations), [d]);
        assert_eq!(operations.count(CONTEXT), 1);
        let e = add(&mut operations, 0, kernel(4), &[Edge::Given(d), Edge::Done(a)]);
        assert_eq!(begun(&mut operations), [e], "what is done or has begun is not waited for");
    }

    #[test]
    fn priorities_come_before_streams_and_streams_before_the_order_of_calls() {
        let mut operations = Operations::default();
        let mut add = |stream, priority| {
            operations.add(NewOperation { context: CONTEXT, stream, priority, work: Work::Nothing }, &[])
        };
        let numbers = [add(2, 0), add(1, 0), add(3, -1), add(1, 0)];
        assert_eq!(begun(&mut operations), [numbers[2], numbers[1], numbers[3], numbers[0]]);
    }

    #[test]
    fn what_has_not_begun_is_dropped_and_other_devices_go_on() {
        let mut operations = Operations::default();
        let first = add(&mut operations, 0, kernel(1), &[]);
        assert_eq!(begun(&mut operations), [first]);
        let free = add(&mut operations, 0, Work::Free(0x100), &[Edge::Done(first)]);
        let other = NewOperation { context: ContextId::first(1), stream: 4, priority: 0, work: Work::Nothing };
        let other = operations.add(other, &[Edge::Done(free)]);
        assert_eq!(operations.drop_waiting(CONTEXT), [0x100]);
        assert_eq!(begun(&mut operations), [other]);
        assert_eq!(operations.count(CONTEXT), 1);
        assert!(operations.oldest().is_some_and(|text| text.starts_with("kernel k (launch 0) of stream 0")));
    }
}
