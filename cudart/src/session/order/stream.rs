//! Streams: how programs name them, their lives, their attributes, and functions of the program that they run.

use crate::abi::graph::HostNodeParams;
use crate::abi::stream::{AttributeValue, StreamCallback, StreamHandle};
use crate::session::addresses::ranges;
use crate::session::connection::{self, callbacks, description};
use crate::session::graph;
use crate::session::order::{access_policy, capture};
use crate::session::state::events::EVENTS;
use crate::session::state::streams::{STREAMS, Stream};
use crate::session::state::{captures, thread};
use balar_host::{AccessPolicyWindow, Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaStreamLegacy`.
const LEGACY: u64 = 1;
/// `cudaStreamPerThread`.
const PER_THREAD: u64 = 2;

/// `cudaStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;
/// Streams of the highest priority: lower numbers go first. (NVIDIA's drivers give -5 for GPUs from compute capability 7.0 on.)
pub const HIGHEST_PRIORITY: i32 = -5;
/// Streams of the lowest priority.
pub const LOWEST_PRIORITY: i32 = 0;

/// Attributes of streams (`cudaStreamAttrID`).
mod attribute {
    pub use crate::abi::launch::attribute::ACCESS_POLICY_WINDOW;
    pub const SYNCHRONIZATION_POLICY: u32 = 3;
    pub const PRIORITY: u32 = 8;
    pub const MEMORY_SYNCHRONIZATION_DOMAIN_MAP: u32 = 9;
    pub const MEMORY_SYNCHRONIZATION_DOMAIN: u32 = 10;
}

type StreamAttributes = BTreeMap<(u32, u32), BTreeMap<u32, AttributeValue>>;

/// Attributes that the program has set, by device and number of the stream.
static ATTRIBUTES: Mutex<StreamAttributes> = Mutex::new(BTreeMap::new());

fn attributes() -> MutexGuard<'static, StreamAttributes> {
    ATTRIBUTES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A default stream, or one that the program made.
pub fn resolve(handle: StreamHandle) -> Result<Stream, CudaError> {
    let device = thread::device();
    let default = |number| Stream { number, device, flags: 0, priority: 0 };
    match handle.0 {
        0 if thread::default_stream_is_of_thread() => Ok(default(of_thread(device)?)),
        0 | LEGACY => Ok(default(0)),
        PER_THREAD => Ok(default(of_thread(device)?)),
        handle => STREAMS.get(handle),
    }
}

/// The simulator's number of a stream.
pub fn number(handle: StreamHandle) -> Result<u32, CudaError> {
    Ok(resolve(handle)?.number)
}

/// The calling thread's own default stream, which is made when it is first used.
fn of_thread(device: u32) -> Result<u32, CudaError> {
    if let Some(number) = thread::with(|thread| thread.default_streams.borrow().get(&device).copied()) {
        return Ok(number);
    }
    let create = Call::StreamCreate { non_blocking: false, priority: 0 };
    let CallResult::Stream(number) = connection::call_on(device, &create)? else { return Err(CudaError::Unknown) };
    thread::with(|thread| thread.default_streams.borrow_mut().insert(device, number));
    Ok(number)
}

/// Makes a stream on the current device.
pub fn create(flags: u32, priority: i32) -> Result<u64, CudaError> {
    if flags & !NON_BLOCKING != 0 {
        return Err(CudaError::InvalidValue);
    }
    let priority = priority.clamp(HIGHEST_PRIORITY, LOWEST_PRIORITY);
    let device = thread::device();
    let call = Call::StreamCreate { non_blocking: flags & NON_BLOCKING != 0, priority };
    let CallResult::Stream(number) = connection::call_on(device, &call)? else { return Err(CudaError::Unknown) };
    Ok(STREAMS.insert(Stream { number, device, flags, priority }))
}

/// Ends a stream that the program made.
pub fn destroy(handle: StreamHandle) -> Result<(), CudaError> {
    let stream = STREAMS.remove(handle.0)?;
    captures::forget_stream(stream.number);
    attributes().remove(&(stream.device, stream.number));
    connection::call_on(stream.device, &Call::StreamDestroy { stream: stream.number }).map(|_| ())
}

/// Forgets the streams of a device that has been reset.
pub fn forget_device(device: u32) {
    for stream in STREAMS.retain(|_, stream| stream.device != device) {
        captures::forget_stream(stream.number);
    }
    attributes().retain(|(owner, _), _| *owner != device);
}

/// Makes a stream run a function of the program.
pub fn launch_host_function(handle: StreamHandle, host: HostNodeParams) -> Result<(), CudaError> {
    if host.function == 0 {
        return Err(CudaError::InvalidValue);
    }
    let stream = resolve(handle)?;
    if capture::take_work(&stream, || Ok(graph::Work::Host(host)))?.is_some() {
        return Ok(());
    }
    run_in(&stream, callbacks::of_program(host))
}

/// As [`launch_host_function`], with how the thread that calls the function waits: 0 blocking, 1 spinning. It changes nothing.
pub fn launch_host_function_in(handle: StreamHandle, host: HostNodeParams, mode: u32) -> Result<(), CudaError> {
    if mode > 1 {
        return Err(CudaError::InvalidValue);
    }
    launch_host_function(handle, host)
}

fn run_in(stream: &Stream, function: callbacks::Function) -> Result<(), CudaError> {
    description::description()?;
    let function = callbacks::add(function)?;
    let outcome = connection::call_on(stream.device, &Call::HostFunction { stream: stream.number, function });
    if outcome.is_err() {
        callbacks::remove(function);
    }
    outcome.map(|_| ())
}

/// Makes a stream wait for an event.
pub fn wait_event(handle: StreamHandle, event: u64, flags: u32) -> Result<(), CudaError> {
    const EXTERNAL: u32 = 1;
    if flags & !EXTERNAL != 0 {
        return Err(CudaError::InvalidValue);
    }
    let stream = resolve(handle)?;
    let (number, captured) = EVENTS.with(event, |event| (event.number, event.captured.clone()))?;
    if flags & EXTERNAL != 0 {
        if capture::take_work(&stream, || Ok(graph::Work::EventWait(event)))?.is_some() {
            return Ok(());
        }
        return Err(CudaError::IllegalState);
    }
    if captures::wait(&stream, captured.as_ref())? {
        return Ok(());
    }
    connection::call_on(stream.device, &Call::StreamWaitEvent { stream: stream.number, event: number }).map(|_| ())
}

/// Waits for a stream.
pub fn synchronize(handle: StreamHandle) -> Result<(), CudaError> {
    let stream = resolve(handle)?;
    captures::forbid(&stream)?;
    connection::call_on(stream.device, &Call::StreamSynchronize { stream: stream.number }).map(|_| ())
}

/// Asks whether a stream has finished; `NotReady` if it has not.
pub fn query(handle: StreamHandle) -> Result<(), CudaError> {
    let stream = resolve(handle)?;
    captures::forbid(&stream)?;
    connection::call_on(stream.device, &Call::StreamQuery { stream: stream.number }).map(|_| ())
}

/// A number that no other stream of the program has.
pub fn id(stream: &Stream) -> u64 {
    u64::from(stream.device) << 32 | u64::from(stream.number)
}

/// The value of an attribute that the program has set.
fn value_given(stream: &Stream, attribute: u32) -> Option<AttributeValue> {
    attributes().get(&(stream.device, stream.number))?.get(&attribute).copied()
}

/// An attribute of a stream: the value that the program has set, or its first value.
pub fn get_attribute(stream: &Stream, attribute: u32) -> Result<AttributeValue, CudaError> {
    let set = value_given(stream, attribute);
    let word = |word: u64| [word, 0, 0, 0, 0, 0, 0, 0];
    match (set, attribute) {
        (Some(value), _) => Ok(value),
        (None, attribute::ACCESS_POLICY_WINDOW | attribute::MEMORY_SYNCHRONIZATION_DOMAIN) => Ok(word(0)),
        // Domain 0 for ordinary kernels, 1 for those of libraries that talk to other nodes.
        (None, attribute::MEMORY_SYNCHRONIZATION_DOMAIN_MAP) => Ok(word(0x0100)),
        // `cudaSyncPolicyAuto`.
        (None, attribute::SYNCHRONIZATION_POLICY) => Ok(word(1)),
        (None, attribute::PRIORITY) => Ok(word(u64::from(stream.priority as u32))),
        _ => Err(CudaError::InvalidValue),
    }
}

/// Sets an attribute of a stream.
pub fn set_attribute(stream: &Stream, attribute: u32, value: AttributeValue) -> Result<(), CudaError> {
    // Refuses attributes that streams do not have.
    get_attribute(stream, attribute)?;
    if attribute == attribute::ACCESS_POLICY_WINDOW {
        access_policy::window_of(&value, stream.device)?;
    }
    attributes().entry((stream.device, stream.number)).or_default().insert(attribute, value);
    Ok(())
}

/// The window of memory whose accesses by the stream's kernels have a property.
pub fn access_policy(stream: &Stream) -> Result<Option<AccessPolicyWindow>, CudaError> {
    let set = value_given(stream, attribute::ACCESS_POLICY_WINDOW);
    set.map_or(Ok(None), |value| access_policy::window_of(&value, stream.device))
}

/// Who may use managed memory (`cudaStreamAttachMemAsync`): changes nothing, since devices that move pages on demand let everyone use
/// them. `bytes` is 0 or all of the allocation.
pub fn attach(handle: StreamHandle, pointer: u64, bytes: usize, flags: u32) -> Result<(), CudaError> {
    const GLOBAL: u32 = 1;
    const HOST: u32 = 2;
    const SINGLE: u32 = 4;
    let stream = resolve(handle)?;
    captures::forbid(&stream)?;
    let is_default = handle.0 <= 1;
    if !matches!(flags, GLOBAL | HOST | SINGLE) || flags == SINGLE && is_default || pointer == 0 {
        return Err(CudaError::InvalidValue);
    }
    let is_managed = matches!(ranges::residence(pointer, bytes as u64), ranges::Residence::Managed(_));
    let is_all = bytes == 0 || ranges::find(pointer).is_none_or(|range| range.bytes == bytes as u64);
    if is_managed && is_all { Ok(()) } else { Err(CudaError::InvalidValue) }
}

/// Gives a stream the attributes of another one.
pub fn copy_attributes(destination: &Stream, source: &Stream) {
    let mut attributes = attributes();
    let copied = attributes.get(&(source.device, source.number)).cloned().unwrap_or_default();
    attributes.insert((destination.device, destination.number), copied);
}

/// Makes a stream call a function of the program with the stream and the code of success (`cudaStreamAddCallback`).
pub fn add_callback(
    handle: StreamHandle,
    function: Option<StreamCallback>,
    data: u64,
    flags: u32,
) -> Result<(), CudaError> {
    let function = function.filter(|_| flags == 0).ok_or(CudaError::InvalidValue)?;
    let stream = resolve(handle)?;
    captures::forbid(&stream)?;
    // SAFETY: the program asks for this call.
    run_in(&stream, Box::new(move || unsafe { function(handle.0, 0, data as *mut c_void) }))
}
