//! A host program written as a list of calls, for tests.

use crate::built_in;
use balar_actors::engine::RunOptions;
use balar_actors::simulation::{DeviceCode, RunResult, simulate_host_with_code, simulate_program};
use balar_actors::topology::Topology;
use balar_host::call::{CopyEnd, CopyShape, Function, Launch};
use balar_host::{
    Bytes, Call, CallFailure, CallResult, CudaError, Host, HostProgram, Measurement, Next, Request, SingleThread,
    ThreadId, Verification,
};
use balar_protocol::ProcessId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// PTX of the kernel `double(from, to)`: each thread of the grid writes twice the word that it reads.
pub const DOUBLE: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry double(.param .u64 from, .param .u64 to) {
    .reg .b32 %r<5>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r1, %r1, %r2, %r3;
    mul.wide.u32 %d3, %r1, 4;
    add.s64 %d4, %d1, %d3;
    add.s64 %d5, %d2, %d3;
    ld.global.u32 %r4, [%d4];
    shl.b32 %r4, %r4, 1;
    st.global.u32 [%d5], %r4;
    ret;
}
";

/// A call made of the results of those before.
pub type Step = Box<dyn Fn(&[CallResult]) -> Call + Send>;

/// What a program has seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The result of each call, in order.
    pub results: Vec<CallResult>,
    /// What kernels printed: each time that the program was given some, how many calls had returned, and the text.
    pub printed: Vec<(usize, String)>,
}

impl Seen {
    /// All that was printed.
    pub fn text(&self) -> String {
        self.printed.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The error that the last call gave.
    pub fn error(&self) -> Option<CudaError> {
        match self.results.last() {
            Some(CallResult::Error(error)) => Some(*error),
            _ => None,
        }
    }

    /// The 32-bit words that copy number `index` among those from the device brought.
    ///
    /// # Panics
    ///
    /// Where there is no such copy.
    pub fn words(&self, index: usize) -> Vec<u32> {
        let data = self.results.iter().filter_map(|result| match result {
            CallResult::Data(bytes) => Some(bytes),
            _ => None,
        });
        let bytes = data.clone().nth(index).unwrap_or_else(|| panic!("{:?}", self.results));
        bytes.to_vec().chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
    }
}

/// The program.
pub struct Steps {
    steps: VecDeque<Step>,
    seen: Arc<Mutex<Seen>>,
    verification: Verification,
}

impl Steps {
    /// A program of these calls, and where to look at what it saw.
    pub fn new(steps: Vec<Step>) -> (Box<Steps>, Arc<Mutex<Seen>>) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        (Box::new(Steps { steps: steps.into(), seen: seen.clone(), verification: Verification::NotChecked }), seen)
    }
}

impl HostProgram for Steps {
    fn next(&mut self, previous: CallResult) -> Call {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if previous != CallResult::Start {
            seen.results.push(previous);
        }
        if let Some(error) = seen.error() {
            return Call::Exit { error: Some(CallFailure { call: "a call".to_owned(), error }) };
        }
        self.steps.pop_front().map_or(Call::Exit { error: None }, |step| step(&seen.results))
    }

    fn receive(&mut self, _: u32, _: Arc<[u8]>) {}

    fn printed(&mut self, text: &[u8]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = seen.results.len();
        seen.printed.push((calls, String::from_utf8_lossy(text).into_owned()));
    }

    fn verification(&self) -> &Verification {
        &self.verification
    }

    fn measurements(&self) -> Vec<Measurement> {
        Vec::new()
    }
}

/// A program whose calls have devices: the current one of each.
struct OnDevices {
    thread: SingleThread,
    devices: VecDeque<u32>,
}

impl Host for OnDevices {
    fn next(&mut self) -> Next {
        match self.thread.next() {
            Next::Call(request) => Next::Call(Request { device: self.devices.pop_front().unwrap_or(0), ..request }),
            other => other,
        }
    }

    fn complete(&mut self, thread: ThreadId, result: CallResult) {
        self.thread.complete(thread, result);
    }

    fn call_back(&mut self, process: ProcessId, function: u64) {
        self.thread.call_back(process, function);
    }

    fn receive(&mut self, process: ProcessId, transfer: u32, data: Arc<[u8]>) {
        self.thread.receive(process, transfer, data);
    }

    fn printed(&mut self, process: ProcessId, text: &[u8], error: &[u8]) {
        self.thread.printed(process, text, error);
    }

    fn verification(&self) -> Verification {
        self.thread.verification()
    }

    fn measurements(&self) -> Vec<Measurement> {
        self.thread.measurements()
    }
}

/// Runs calls, each with the number of its current device, where all GPUs have the kernels of a PTX text. They must come to their end.
///
/// # Panics
///
/// Where they do not.
pub fn run_on_devices(node: &Topology, text: &str, steps: Vec<(u32, Step)>, options: RunOptions) -> (RunResult, Seen) {
    let (devices, steps) = steps.into_iter().unzip();
    let (program, seen) = Steps::new(steps);
    let host = Box::new(OnDevices { thread: SingleThread::new(program), devices });
    let file = || vec![("kernels.ptx".to_owned(), text.as_bytes().into())];
    let code = DeviceCode { initial: node.gpus().iter().map(|_| file()).collect(), ..DeviceCode::default() };
    let result = simulate_host_with_code(node, &code, |_| Ok(host), options);
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    assert!(
        result.completed() && seen.error().is_none(),
        "{:?} {:?} {:?}",
        result.outcome,
        result.program,
        seen.error()
    );
    (result, seen)
}

/// A call that needs no result.
pub fn call(call: Call) -> Step {
    Box::new(move |_| call.clone())
}

/// The value that call number `index` gave: an address, a number of an array, a handle.
///
/// # Panics
///
/// Where it gave none.
pub fn value(results: &[CallResult], index: usize) -> u64 {
    match results[index] {
        CallResult::Pointer(value) | CallResult::Object(value) => value,
        ref other => panic!("call {index} gave {other:?}"),
    }
}

/// A kernel argument.
#[derive(Clone, Copy, Debug)]
pub enum Argument {
    /// What call number `n` gave.
    Value(usize),
    /// A number.
    Word(u32),
}

/// A launch in the default stream.
pub fn launch(kernel: &str, grid: [u32; 2], block: [u32; 2], arguments: &[Argument]) -> Step {
    let (kernel, arguments): (Arc<str>, Vec<Argument>) = (kernel.into(), arguments.to_vec());
    Box::new(move |results| {
        let mut parameters: Vec<u8> = Vec::new();
        for argument in &arguments {
            match *argument {
                Argument::Value(index) => {
                    parameters.resize(parameters.len().next_multiple_of(8), 0);
                    parameters.extend(value(results, index).to_le_bytes());
                }
                Argument::Word(word) => parameters.extend(word.to_le_bytes()),
            }
        }
        Call::Launch(Launch {
            function: Function::built_in(kernel.clone()),
            grid: [grid[0], grid[1], 1],
            block: [block[0], block[1], 1],
            shared_memory_bytes: 0,
            stream: 0,
            parameters,
            cooperative: false,
            cluster: None,
            non_portable_cluster: false,
            access_policy: None,
        })
    })
}

/// A copy to what call number `to` gave.
pub fn upload(to: usize, data: Vec<u8>) -> Step {
    let data: Arc<[u8]> = data.into();
    Box::new(move |results| Call::copy_to_device(value(results, to), data.clone().into(), 0, false))
}

/// A copy of rows and slices to the beginning of the array that call number `to` gave.
pub fn write_array(to: usize, [width, height, depth]: [u64; 3], data: Vec<u8>) -> Step {
    Box::new(move |results| Call::Copy {
        destination: CopyEnd::Array { array: value(results, to), offset: [0; 3] },
        source: CopyEnd::Bytes(data.clone().into()),
        shape: CopyShape { width, height, depth },
        transfer: 0,
        stream: 0,
        asynchronous: false,
    })
}

/// A copy of rows and slices from the beginning of the array that call number `from` gave.
pub fn read_array(from: usize, [width, height, depth]: [u64; 3]) -> Step {
    Box::new(move |results| Call::Copy {
        destination: CopyEnd::Bytes(Bytes::absent(width * height * depth)),
        source: CopyEnd::Array { array: value(results, from), offset: [0; 3] },
        shape: CopyShape { width, height, depth },
        transfer: 0,
        stream: 0,
        asynchronous: false,
    })
}

/// The host writes managed memory that call number `to` gave.
pub fn write_managed(to: usize, data: Vec<u8>) -> Step {
    let data: Arc<[u8]> = data.into();
    Box::new(move |results| Call::WriteManaged { pointer: value(results, to), data: data.clone().into() })
}

/// The host reads managed memory that call number `from` gave.
pub fn read_managed(from: usize, bytes: u64) -> Step {
    Box::new(move |results| Call::ReadManaged { pointer: value(results, from), bytes })
}

/// A copy from what call number `from` gave.
pub fn download(from: usize, bytes: u64) -> Step {
    Box::new(move |results| Call::copy_from_device(value(results, from), bytes, 0, 0, false))
}

/// The word that a kernel of one CTA of so many threads stores at the address that it gets, on the V100 node.
///
/// # Panics
///
/// Where it does not come to its end.
pub fn word_of(kernel: &'static str, ptx: &str, threads: u32) -> u32 {
    let (program, seen) = Steps::new(vec![
        call(Call::Malloc { bytes: 4 }),
        launch(kernel, [1, 1], [threads, 1], &[Argument::Value(0)]),
        download(0, 4),
    ]);
    let result = simulate_program(&built_in("v100_node"), kernel, (kernel, ptx), program, RunOptions::default());
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.completed(), "{:?}", result.program);
    seen.lock().expect("the run is over").words(0)[0]
}
