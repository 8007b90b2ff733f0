//! Programs on the simulated host CPU.

use crate::call::{Call, CallResult};
use balar_protocol::ProcessId;
use balar_protocol::statistics::Verification;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A host thread of a program, numbered from 0 in the order of their first calls, over all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId(pub u32);

/// A call that a thread makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Which thread.
    pub thread: ThreadId,
    /// Its process.
    pub process: ProcessId,
    /// The thread's current device: index of the GPU.
    pub device: u32,
    /// Host time the thread has computed since its last call returned.
    pub host_picoseconds: u64,
    /// The call.
    pub call: Call,
}

/// The program's next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// A thread that is not in a call makes one.
    Call(Request),
    /// Nothing before an outstanding call returns: simulated time may advance.
    Waiting,
    /// One of several processes has ended: its resources on the devices are released.
    ProcessEnds {
        /// Which.
        process: ProcessId,
        /// If set, its kernels end at once; otherwise its outstanding work is completed first.
        was_killed: bool,
    },
    /// The end: the program has ended, or is no longer waited for. An error says in words why it failed; `None` where all is well.
    End {
        /// Why it ended otherwise than it should.
        error: Option<String>,
    },
}

/// The program on the simulated host CPU: threads that make CUDA calls. Simulated time stands still while it is asked.
pub trait Host: Send {
    /// The next act of any thread. Blocks until it is known: [`Next::Waiting`] is an answer only while some call has not returned, or a
    /// call back is expected.
    fn next(&mut self) -> Next;

    /// Whether streams will reach host functions. If so, simulated time may advance although no thread is in a call:
    /// all may be asleep until a function wakes them.
    fn expect_call_back(&mut self, expected: bool) {
        let _ = expected;
    }

    /// Whether threads may make a call while others wait for theirs: such as are in no call and asleep, say in a lock. Where there are,
    /// [`Host::next`] is called from time to time while simulated time advances.
    fn has_threads_outside(&self) -> bool {
        false
    }

    /// Before a thread's call returns: how many operations the thread can add to streams of its device without waiting for room.
    fn queue_room(&mut self, thread: ThreadId, operations: usize) {
        let _ = (thread, operations);
    }

    /// A thread's call returns.
    fn complete(&mut self, thread: ThreadId, result: CallResult);

    /// A stream of a process has come to a host function: some thread of it runs it, and says [`Call::CallbackDone`] when it has.
    fn call_back(&mut self, process: ProcessId, function: u64);

    /// Takes the bytes of a process's asynchronous copy to pageable memory, before the call that waits for it returns.
    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>);

    /// Takes the text that a process's kernels have printed, before the call that brings it returns; `error` is text for the standard error
    /// stream, such as the text of an assertion.
    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]);

    /// Compares the device's results with a host computation, if the program has such a check. Meaningful after its end.
    fn verification(&self) -> Verification;

    /// Values that the program has measured, in display order. Empty before its end.
    fn measurements(&self) -> Vec<Measurement>;
}

/// A single-threaded program, which makes one CUDA call after another, such as a built-in workload.
///
/// The simulated host CPU asks for a call, models its cost, and hands back its result with the request for the next
/// one. A call that blocks the host (a synchronous copy, a synchronisation) has its result when it is over; any other
/// one at once.
pub trait HostProgram: Send {
    /// The next call. `previous` is the result of the call before, [`CallResult::Start`] the first time. After
    /// [`Call::Exit`] it is not asked again.
    fn next(&mut self, previous: CallResult) -> Call;

    /// Takes the bytes of an asynchronous copy from the device, before the call that waits for it returns.
    fn receive(&mut self, transfer: u32, data: Arc<[u8]>);

    /// Takes the text that kernels have printed since the last call of this function, before the call that brings it returns: a launch, a
    /// synchronisation, a copy that the host waits for, or the end of the program.
    fn printed(&mut self, text: &[u8]) {
        let _ = text;
    }

    /// Compares the device's results with a host computation. Meaningful after [`Call::Exit`]; the expected values
    /// are computed here, once.
    fn verification(&self) -> &Verification;

    /// Values that the workload has measured, in display order. Empty before [`Call::Exit`].
    fn measurements(&self) -> Vec<Measurement>;

    /// CTAs of all launches that the program will make, by the name of their kernel, where that is known before it begins.
    fn planned_ctas(&self) -> Option<BTreeMap<Arc<str>, u64>> {
        None
    }
}

/// A [`HostProgram`] as a [`Host`]: its thread is number 0, on device 0.
pub struct SingleThread {
    program: Box<dyn HostProgram>,
    /// The result of the last call, until the next one is asked for.
    returned: Option<CallResult>,
    ended: bool,
}

impl SingleThread {
    /// The program at its start.
    pub fn new(program: Box<dyn HostProgram>) -> SingleThread {
        SingleThread { program, returned: Some(CallResult::Start), ended: false }
    }
}

impl Host for SingleThread {
    fn next(&mut self) -> Next {
        if self.ended {
            return Next::End { error: None };
        }
        let Some(previous) = self.returned.take() else { return Next::Waiting };
        let call = self.program.next(previous);
        self.ended = matches!(call, Call::Exit { .. });
        let (thread, process) = (ThreadId(0), ProcessId::FIRST);
        Next::Call(Request { thread, process, device: 0, host_picoseconds: 0, call })
    }

    fn complete(&mut self, _: ThreadId, result: CallResult) {
        self.returned = Some(result);
    }

    fn call_back(&mut self, _: ProcessId, _: u64) {
        // A single-threaded program has no host functions.
    }

    fn receive(&mut self, _: ProcessId, transfer: u32, data: Arc<[u8]>) {
        self.program.receive(transfer, data);
    }

    fn printed(&mut self, _: ProcessId, text: &[u8], _: &[u8]) {
        self.program.printed(text);
    }

    fn verification(&self) -> Verification {
        self.program.verification().clone()
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.program.measurements()
    }
}

/// A value that a workload measured itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}
