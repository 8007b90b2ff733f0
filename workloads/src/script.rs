//! Host programs written as lists of actions, and the results that they collect for their check.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::parameters::{Memory, WorkloadError};
use balar_host::call::{Function, Launch};
use balar_host::{Call, CallFailure, CallResult, HostProgram, Measurement, Verification};

/// A device allocation of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Buffer(usize);

impl Buffer {
    /// The buffer that the n-th allocation makes.
    pub fn at(index: usize) -> Buffer {
        Buffer(index)
    }

    /// The number of its allocation.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A copy from the device in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer(usize);

/// Where an operation is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The default stream; copies wait until they are done.
    Default,
    /// The stream that the n-th `create_stream` made; copies do not wait.
    Stream(usize),
}

/// Where a buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In device memory, where the workload does not ask for managed memory.
    Device,
    /// In device memory, whatever memory the workload asks for.
    DeviceAlways,
    Managed,
    /// In page-locked memory of the host.
    Pinned,
}

/// Zeros, and pointers into the buffer that holds them.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    bytes: usize,
    /// The index of each 64-bit word that holds a pointer, and the offset in bytes that it points to.
    links: Vec<(usize, u64)>,
}

impl Ring {
    /// The words of a buffer at `address`.
    fn words(&self, address: u64) -> Vec<u64> {
        let mut words = vec![0u64; self.bytes / size_of::<u64>()];
        for (index, offset) in &self.links {
            words[*index] = address + offset;
        }
        words
    }
}

/// A kernel argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    Buffer(Buffer),
    /// Address of a byte within a buffer.
    BufferAt(Buffer, u64),
    NullPointer,
    U32(u32),
    F32(f32),
    F64(f64),
}

/// Size and place of a kernel launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_memory_bytes: u32,
    pub queue: Queue,
    /// Whether all blocks run at once.
    pub cooperative: bool,
}

impl Shape {
    /// One-dimensional, on the default stream.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Shape::planar([blocks, 1], [threads, 1])
    }

    /// Two-dimensional, on the default stream.
    pub fn planar(grid: [u32; 2], block: [u32; 2]) -> Self {
        Shape {
            grid: [grid[0], grid[1], 1],
            block: [block[0], block[1], 1],
            shared_memory_bytes: 0,
            queue: Queue::Default,
            cooperative: false,
        }
    }
}

/// The next action of a script. Buffers and transfers are numbered in the order of their actions.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Allocate {
        bytes: u64,
        place: Place,
    },
    Release(Buffer),
    Upload {
        buffer: Buffer,
        data: Arc<[u8]>,
        queue: Queue,
    },
    UploadRing {
        buffer: Buffer,
        ring: Ring,
    },
    CopyWithin {
        destination: Buffer,
        source: Buffer,
        bytes: u64,
        queue: Queue,
    },
    Fill {
        buffer: Buffer,
        value: u8,
        bytes: u64,
        queue: Queue,
    },
    Download {
        buffer: Buffer,
        range: Range<u64>,
        transfer: Transfer,
        queue: Queue,
    },
    /// The host writes managed memory from its start on.
    Write {
        buffer: Buffer,
        data: Arc<[u8]>,
    },
    WriteRing {
        buffer: Buffer,
        ring: Ring,
    },
    /// The host reads managed memory. It does not wait for kernels.
    Read {
        buffer: Buffer,
        range: Range<u64>,
        transfer: Transfer,
    },
    /// Prefetches managed memory to a device, or to the host.
    Prefetch {
        buffer: Buffer,
        range: Range<u64>,
        device: Option<u32>,
        queue: Queue,
    },
    Launch {
        kernel: Arc<str>,
        shape: Shape,
        arguments: Vec<Argument>,
    },
    CreateStream,
    DestroyStream(usize),
    SynchronizeStream(usize),
    SynchronizeDevice,
    Compute {
        nanoseconds: u64,
    },
    ReadClock,
}

impl Action {
    /// Waits for a stream, or for the whole device.
    pub fn synchronize(queue: Queue) -> Action {
        match queue {
            Queue::Default => Action::SynchronizeDevice,
            Queue::Stream(index) => Action::SynchronizeStream(index),
        }
    }
}

/// The results that a finished script collected.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    addresses: Vec<u64>,
    streams: Vec<u32>,
    downloads: Vec<Option<Arc<[u8]>>>,
    /// Readings of the clock, in order, in picoseconds.
    pub times: Vec<u64>,
    /// The text that the kernels printed.
    pub printed: Vec<u8>,
}

impl Outcome {
    /// Device address of a buffer; 0 where it was never allocated.
    pub fn address(&self, buffer: Buffer) -> u64 {
        self.addresses.get(buffer.0).copied().unwrap_or(0)
    }

    /// The values that a transfer brought. An error where it did not arrive or has another size than was asked for.
    pub fn values<T: bytemuck::AnyBitPattern>(&self, transfer: Transfer, count: usize) -> Result<Cow<'_, [T]>, String> {
        let Some(Some(bytes)) = self.downloads.get(transfer.0) else {
            return Err(format!("copy {} from the device never arrived", transfer.0));
        };
        let wanted = count * size_of::<T>();
        if bytes.len() != wanted {
            return Err(format!("copy {} from the device has {} bytes instead of {wanted}", transfer.0, bytes.len()));
        }
        Ok(match bytemuck::try_cast_slice(bytes) {
            Ok(values) => Cow::Borrowed(values),
            // The bytes lie at an address that the type does not allow.
            Err(_) => Cow::Owned(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()),
        })
    }
}

/// Checks the results that a script collected.
pub(crate) trait Check: Send {
    /// Says which result is wrong, where one is.
    fn verify(&self, outcome: &Outcome) -> Result<(), String>;

    /// The measurements of the workload; asked for with a complete outcome only.
    fn measurements(&self, _outcome: &Outcome) -> Vec<Measurement> {
        Vec::new()
    }
}

/// Collects the actions of a host program.
#[derive(Default)]
pub(crate) struct Script {
    actions: VecDeque<Action>,
    buffers: usize,
    transfers: usize,
    streams: usize,
    pinned: Vec<Buffer>,
}

impl Script {
    pub fn allocate(&mut self, bytes: u64) -> Buffer {
        self.allocate_in(Place::Device, bytes)
    }

    /// Allocates device memory for data that the host copies or never sees. It stays on the device where the rest is managed.
    pub fn allocate_on_device(&mut self, bytes: u64) -> Buffer {
        self.allocate_in(Place::DeviceAlways, bytes)
    }

    /// Allocates page-locked memory of the host, and fills it.
    pub fn allocate_pinned_with<T: bytemuck::NoUninit>(&mut self, values: &[T]) -> Buffer {
        let data: Arc<[u8]> = bytemuck::cast_slice(values).into();
        let buffer = self.allocate_in(Place::Pinned, data.len() as u64);
        self.upload(buffer, data, Queue::Default);
        buffer
    }

    fn allocate_in(&mut self, place: Place, bytes: u64) -> Buffer {
        self.actions.push_back(Action::Allocate { bytes, place });
        let buffer = Buffer(self.buffers);
        self.buffers += 1;
        if place == Place::Pinned {
            self.pinned.push(buffer);
        }
        buffer
    }

    /// Allocates and fills.
    pub fn allocate_with<T: bytemuck::NoUninit>(&mut self, values: &[T]) -> Buffer {
        self.allocate_with_bytes(bytemuck::cast_slice(values).into())
    }

    /// Allocates and fills.
    pub fn allocate_with_bytes(&mut self, data: Arc<[u8]>) -> Buffer {
        let buffer = self.allocate(data.len() as u64);
        self.upload(buffer, data, Queue::Default);
        buffer
    }

    pub fn release(&mut self, buffer: Buffer) {
        self.actions.push_back(Action::Release(buffer));
    }

    pub fn upload(&mut self, buffer: Buffer, data: Arc<[u8]>, queue: Queue) {
        self.actions.push_back(Action::Upload { buffer, data, queue });
    }

    /// Fills a buffer with zeros, and with pointers into itself: `links` has the index of each 64-bit word that holds
    /// one, and the offset in bytes that it points to.
    pub fn upload_ring(&mut self, buffer: Buffer, bytes: usize, links: Vec<(usize, u64)>) {
        self.actions.push_back(Action::UploadRing { buffer, ring: Ring { bytes, links } });
    }

    pub fn copy_within(&mut self, destination: Buffer, source: Buffer, bytes: u64, queue: Queue) {
        self.actions.push_back(Action::CopyWithin { destination, source, bytes, queue });
    }

    pub fn fill(&mut self, buffer: Buffer, value: u8, bytes: u64, queue: Queue) {
        self.actions.push_back(Action::Fill { buffer, value, bytes, queue });
    }

    pub fn download(&mut self, buffer: Buffer, bytes: u64, queue: Queue) -> Transfer {
        self.download_at(buffer, 0, bytes, queue)
    }

    /// Copies a part of a buffer, which begins `offset` bytes behind the buffer's start.
    pub fn download_at(&mut self, buffer: Buffer, offset: u64, bytes: u64, queue: Queue) -> Transfer {
        let transfer = Transfer(self.transfers);
        self.transfers += 1;
        self.actions.push_back(Action::Download { buffer, range: offset..offset + bytes, transfer, queue });
        transfer
    }

    pub fn launch(&mut self, kernel: &str, shape: Shape, arguments: &[Argument]) {
        self.actions.push_back(Action::Launch { kernel: kernel.into(), shape, arguments: arguments.to_vec() });
    }

    pub fn create_stream(&mut self) -> Queue {
        self.actions.push_back(Action::CreateStream);
        self.streams += 1;
        Queue::Stream(self.streams - 1)
    }

    /// Waits for a stream, or for the whole device.
    pub fn synchronize(&mut self, queue: Queue) {
        self.actions.push_back(Action::synchronize(queue));
    }

    pub fn compute(&mut self, nanoseconds: u64) {
        self.actions.push_back(Action::Compute { nanoseconds });
    }

    pub fn read_clock(&mut self) {
        self.actions.push_back(Action::ReadClock);
    }

    /// Ends the script: destroys the streams, and gives the program.
    pub fn finish(mut self, check: impl Check + 'static) -> Result<ScriptedProgram, WorkloadError> {
        self.actions.extend((0..self.streams).map(Action::DestroyStream));
        Ok(ScriptedProgram {
            actions: self.actions,
            pinned: self.pinned,
            outcome: Outcome { downloads: vec![None; self.transfers], ..Outcome::default() },
            check: Box::new(check),
            pending: Pending::Start,
            last_call: String::new(),
            state: State::Running,
            verification: OnceCell::new(),
        })
    }
}

/// The expected result of the call in progress.
enum Pending {
    Start,
    Nothing,
    Pointer,
    Stream,
    Data(Transfer),
    Time,
}

enum State {
    Running,
    Complete,
    /// A CUDA call failed.
    GaveUp,
    /// A call gave something else than it should.
    Confused(String),
}

/// A finished script, as a host program.
pub(crate) struct ScriptedProgram {
    actions: VecDeque<Action>,
    /// Buffers in page-locked memory.
    pinned: Vec<Buffer>,
    outcome: Outcome,
    check: Box<dyn Check>,
    pending: Pending,
    /// The call in progress, as an error names it.
    last_call: String,
    state: State,
    verification: OnceCell<Verification>,
}

/// A call, as an error names it.
fn describe(call: &Call) -> String {
    match call {
        Call::Malloc { bytes } | Call::MallocManaged { bytes } => format!("{} of {bytes} bytes", call.name()),
        Call::Launch(launch) => format!("{} of {}", call.name(), launch.function.name),
        other => other.name().to_owned(),
    }
}

impl ScriptedProgram {
    /// The same program with its data elsewhere.
    #[must_use]
    pub fn with_memory(self, memory: Memory) -> ScriptedProgram {
        ScriptedProgram { actions: memory.actions(self.actions), ..self }
    }

    /// Takes in the result of the previous call. An error text where it is of the wrong kind.
    fn accept(&mut self, result: CallResult) -> Result<(), String> {
        match (std::mem::replace(&mut self.pending, Pending::Nothing), result) {
            (Pending::Start, CallResult::Start) | (Pending::Nothing, CallResult::None) => {}
            (Pending::Pointer, CallResult::Pointer(address)) => self.outcome.addresses.push(address),
            (Pending::Stream, CallResult::Stream(stream)) => self.outcome.streams.push(stream),
            (Pending::Data(transfer), CallResult::Data(data)) => {
                self.outcome.downloads[transfer.0] = data.data().cloned();
            }
            (Pending::Time, CallResult::Time { picoseconds }) => self.outcome.times.push(picoseconds),
            (_, other) => return Err(format!("a CUDA call gave an unexpected result: {other:?}")),
        }
        Ok(())
    }

    /// Number of a stream, and whether copies in it are asynchronous.
    fn queue(&self, queue: Queue) -> (u32, bool) {
        match queue {
            Queue::Default => (0, false),
            Queue::Stream(index) => (self.outcome.streams.get(index).copied().unwrap_or(0), true),
        }
    }

    fn parameters(&self, arguments: &[Argument]) -> Vec<u8> {
        let mut block = Vec::new();
        for argument in arguments {
            match *argument {
                Argument::Buffer(buffer) => append(&mut block, &self.outcome.address(buffer).to_le_bytes()),
                Argument::BufferAt(buffer, offset) => {
                    append(&mut block, &(self.outcome.address(buffer) + offset).to_le_bytes());
                }
                Argument::NullPointer => append(&mut block, &0u64.to_le_bytes()),
                Argument::U32(value) => append(&mut block, &value.to_le_bytes()),
                Argument::F32(value) => append(&mut block, &value.to_le_bytes()),
                Argument::F64(value) => append(&mut block, &value.to_le_bytes()),
            }
        }
        block
    }

    /// The call of an action, and its expected result.
    fn call(&self, action: Action) -> (Call, Pending) {
        let address = |buffer| self.outcome.address(buffer);
        let place = |buffer, range: &Range<u64>| (address(buffer) + range.start, range.end - range.start);
        match action {
            Action::Allocate { bytes, place: Place::Managed } => (Call::MallocManaged { bytes }, Pending::Pointer),
            Action::Allocate { bytes, place: Place::Pinned } => (Call::MallocHost { bytes }, Pending::Pointer),
            Action::Allocate { bytes, .. } => (Call::Malloc { bytes }, Pending::Pointer),
            Action::Release(buffer) if self.pinned.contains(&buffer) => {
                (Call::FreeHost { pointer: address(buffer) }, Pending::Nothing)
            }
            Action::Release(buffer) => (Call::Free { pointer: address(buffer) }, Pending::Nothing),
            Action::Upload { buffer, data, queue } => {
                let (stream, asynchronous) = self.queue(queue);
                let call = Call::copy_to_device(address(buffer), data.into(), stream, asynchronous);
                (call, Pending::Nothing)
            }
            Action::UploadRing { buffer, ring } => {
                let data = bytemuck::cast_slice::<u64, u8>(&ring.words(address(buffer))).into();
                (Call::copy_to_device(address(buffer), data, 0, false), Pending::Nothing)
            }
            Action::CopyWithin { destination, source, bytes, queue } => {
                let (destination, source) = (address(destination), address(source));
                let (stream, asynchronous) = self.queue(queue);
                let call = Call::copy_within(destination, source, bytes, stream, asynchronous);
                (call, Pending::Nothing)
            }
            Action::Fill { buffer, value, bytes, queue } => {
                let (stream, asynchronous) = self.queue(queue);
                let call = Call::memset(address(buffer), value, bytes, stream, asynchronous);
                (call, Pending::Nothing)
            }
            Action::Download { buffer, range, transfer, queue } => {
                let (stream, asynchronous) = self.queue(queue);
                let (source, bytes) = place(buffer, &range);
                let call = Call::copy_from_device(source, bytes, transfer.0 as u32, stream, asynchronous);
                (call, if asynchronous { Pending::Nothing } else { Pending::Data(transfer) })
            }
            Action::Write { buffer, data } => {
                (Call::WriteManaged { pointer: address(buffer), data: data.into() }, Pending::Nothing)
            }
            Action::WriteRing { buffer, ring } => {
                let data: Arc<[u8]> = bytemuck::cast_slice::<u64, u8>(&ring.words(address(buffer))).into();
                (Call::WriteManaged { pointer: address(buffer), data: data.into() }, Pending::Nothing)
            }
            Action::Read { buffer, range, transfer } => {
                let (pointer, bytes) = place(buffer, &range);
                (Call::ReadManaged { pointer, bytes }, Pending::Data(transfer))
            }
            Action::Prefetch { buffer, range, device, queue } => {
                let (pointer, bytes) = place(buffer, &range);
                (Call::Prefetch { pointer, bytes, device, stream: self.queue(queue).0 }, Pending::Nothing)
            }
            Action::Launch { kernel, shape, arguments } => {
                let call = Call::Launch(Launch {
                    function: Function::built_in(kernel),
                    grid: shape.grid,
                    block: shape.block,
                    shared_memory_bytes: shape.shared_memory_bytes,
                    stream: self.queue(shape.queue).0,
                    parameters: self.parameters(&arguments),
                    cooperative: shape.cooperative,
                    cluster: None,
                    non_portable_cluster: false,
                    access_policy: None,
                });
                (call, Pending::Nothing)
            }
            Action::CreateStream => (Call::StreamCreate { non_blocking: false, priority: 0 }, Pending::Stream),
            Action::DestroyStream(index) => {
                (Call::StreamDestroy { stream: self.queue(Queue::Stream(index)).0 }, Pending::Nothing)
            }
            Action::SynchronizeStream(index) => {
                (Call::StreamSynchronize { stream: self.queue(Queue::Stream(index)).0 }, Pending::Nothing)
            }
            Action::SynchronizeDevice => (Call::DeviceSynchronize, Pending::Nothing),
            Action::Compute { nanoseconds } => (Call::Compute { nanoseconds }, Pending::Nothing),
            Action::ReadClock => (Call::ReadClock, Pending::Time),
        }
    }
}

/// Appends a parameter at the next multiple of its size.
fn append(block: &mut Vec<u8>, bytes: &[u8]) {
    block.resize(block.len().next_multiple_of(bytes.len()), 0);
    block.extend_from_slice(bytes);
}

impl HostProgram for ScriptedProgram {
    fn next(&mut self, previous: CallResult) -> Call {
        if let CallResult::Error(error) = previous {
            self.state = State::GaveUp;
            let call = std::mem::take(&mut self.last_call);
            return Call::Exit { error: Some(CallFailure { call, error }) };
        }
        if let Err(message) = self.accept(previous) {
            self.state = State::Confused(message);
            return Call::Exit { error: None };
        }
        let Some(action) = self.actions.pop_front() else {
            self.state = State::Complete;
            return Call::Exit { error: None };
        };
        let (call, pending) = self.call(action);
        self.pending = pending;
        self.last_call = describe(&call);
        call
    }

    fn receive(&mut self, transfer: u32, data: Arc<[u8]>) {
        match self.outcome.downloads.get_mut(transfer as usize) {
            Some(download) => *download = Some(data),
            None => self.state = State::Confused(format!("a copy {transfer} that was never asked for arrived")),
        }
    }

    fn printed(&mut self, text: &[u8]) {
        self.outcome.printed.extend_from_slice(text);
    }

    fn planned_ctas(&self) -> Option<BTreeMap<Arc<str>, u64>> {
        let mut planned = BTreeMap::new();
        for action in &self.actions {
            if let Action::Launch { kernel, shape, .. } = action {
                let ctas: u64 = shape.grid.iter().map(|&n| u64::from(n)).product();
                *planned.entry(Arc::clone(kernel)).or_default() += ctas;
            }
        }
        Some(planned)
    }

    fn verification(&self) -> &Verification {
        if matches!(self.state, State::Running | State::GaveUp) {
            return &Verification::NotChecked;
        }
        self.verification.get_or_init(|| match &self.state {
            State::Running | State::GaveUp => Verification::NotChecked,
            State::Confused(message) => Verification::Failed(message.clone()),
            State::Complete => match self.check.verify(&self.outcome) {
                Ok(()) => Verification::Passed,
                Err(message) => Verification::Failed(message),
            },
        })
    }

    fn measurements(&self) -> Vec<Measurement> {
        match self.state {
            State::Complete => self.check.measurements(&self.outcome),
            _ => Vec::new(),
        }
    }
}
