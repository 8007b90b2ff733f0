//! Streams.

use crate::abi::arguments::{In, Out};
use crate::abi::graph::HostNodeParams;
use crate::cuda_api;
use crate::session::stream::{self, STREAMS, Stream, StreamHandle};
use crate::session::{callbacks, capture, connection, event, graph, process, ranges, thread};
use balar_host::{Call, CallResult, CudaError};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;
/// Streams of the highest priority: lower numbers go first. (NVIDIA's drivers give -5 for GPUs from compute capability 7.0 on.)
pub const HIGHEST_PRIORITY: i32 = -5;
/// Streams of the lowest priority.
pub const LOWEST_PRIORITY: i32 = 0;

/// Attributes of streams (`cudaStreamAttrID`).
mod attribute {
    pub const ACCESS_POLICY_WINDOW: u32 = 1;
    pub const SYNCHRONIZATION_POLICY: u32 = 3;
    pub const PRIORITY: u32 = 8;
    pub const MEMORY_SYNCHRONIZATION_DOMAIN_MAP: u32 = 9;
    pub const MEMORY_SYNCHRONIZATION_DOMAIN: u32 = 10;
}

/// Value of an attribute (`cudaStreamAttrValue`).
pub type AttributeValue = [u64; 8];

type Attributes = BTreeMap<(u32, u32), BTreeMap<u32, AttributeValue>>;

/// Attributes that the program has set, by device and number of the stream.
static ATTRIBUTES: Mutex<Attributes> = Mutex::new(BTreeMap::new());

fn attributes() -> MutexGuard<'static, Attributes> {
    ATTRIBUTES.lock().unwrap_or_else(PoisonError::into_inner)
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
    capture::forget_stream(stream.number);
    attributes().remove(&(stream.device, stream.number));
    connection::call_on(stream.device, &Call::StreamDestroy { stream: stream.number }).map(|_| ())
}

/// Streams of a device that has been reset are no longer there.
pub fn forget_device(device: u32) {
    for stream in STREAMS.retain(|_, stream| stream.device != device) {
        capture::forget_stream(stream.number);
    }
    attributes().retain(|(owner, _), _| *owner != device);
}

/// Has a stream run a function of the program.
pub fn launch_host_function(handle: StreamHandle, host: HostNodeParams) -> Result<(), CudaError> {
    if host.function == 0 {
        return Err(CudaError::InvalidValue);
    }
    let stream = stream::resolve(handle)?;
    if capture::take_work(&stream, || Ok(graph::Work::Host(host)))?.is_some() {
        return Ok(());
    }
    run_in(&stream, callbacks::of_program(host))
}

fn run_in(stream: &Stream, function: callbacks::Function) -> Result<(), CudaError> {
    process::description()?;
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
    let stream = stream::resolve(handle)?;
    let (number, captured) = event::EVENTS.with(event, |event| (event.number, event.captured.clone()))?;
    if flags & EXTERNAL != 0 {
        if capture::take_work(&stream, || Ok(graph::Work::EventWait(event)))?.is_some() {
            return Ok(());
        }
        return Err(CudaError::IllegalState);
    }
    if capture::wait(&stream, captured.as_ref())? {
        return Ok(());
    }
    connection::call_on(stream.device, &Call::StreamWaitEvent { stream: stream.number, event: number }).map(|_| ())
}

/// Waits for a stream.
pub fn synchronize(handle: StreamHandle) -> Result<(), CudaError> {
    let stream = stream::resolve(handle)?;
    capture::forbid(&stream)?;
    connection::call_on(stream.device, &Call::StreamSynchronize { stream: stream.number }).map(|_| ())
}

/// Whether a stream has done all: an error "not ready" where it has not.
pub fn query(handle: StreamHandle) -> Result<(), CudaError> {
    let stream = stream::resolve(handle)?;
    capture::forbid(&stream)?;
    connection::call_on(stream.device, &Call::StreamQuery { stream: stream.number }).map(|_| ())
}

/// A number that no other stream of the program has.
pub fn id(stream: &Stream) -> u64 {
    u64::from(stream.device) << 32 | u64::from(stream.number)
}

fn get_attribute(stream: &Stream, attribute: u32) -> Result<AttributeValue, CudaError> {
    let set = attributes().get(&(stream.device, stream.number)).and_then(|set| set.get(&attribute).copied());
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

fn set_attribute(stream: &Stream, attribute: u32, value: AttributeValue) -> Result<(), CudaError> {
    // Refuses what streams do not have.
    get_attribute(stream, attribute)?;
    attributes().entry((stream.device, stream.number)).or_default().insert(attribute, value);
    Ok(())
}

/// Who may use managed memory (`cudaStreamAttachMemAsync`): changes nothing, since all pages are always there for everyone.
fn attach(handle: StreamHandle, pointer: u64, bytes: usize, flags: u32) -> Result<(), CudaError> {
    const GLOBAL: u32 = 1;
    const HOST: u32 = 2;
    const SINGLE: u32 = 4;
    let stream = stream::resolve(handle)?;
    capture::forbid(&stream)?;
    let is_default = handle.0 <= 1;
    if !matches!(flags, GLOBAL | HOST | SINGLE) || flags == SINGLE && is_default || pointer == 0 {
        return Err(CudaError::InvalidValue);
    }
    let is_managed = matches!(ranges::place(pointer, bytes as u64), ranges::Place::Managed(_));
    if is_managed { Ok(()) } else { Err(CudaError::InvalidValue) }
}

/// What `cudaStreamAddCallback` has called: the stream, the error, the data.
pub type StreamCallback = unsafe extern "C" fn(u64, c_int, *mut c_void);

cuda_api! {
    fn cudaStreamCreate(stream: Out<u64>) {
        stream.check()?;
        stream.set(create(0, 0)?)
    }

    fn cudaStreamCreateWithFlags(stream: Out<u64>, flags: u32) {
        stream.check()?;
        stream.set(create(flags, 0)?)
    }

    fn cudaStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: c_int) {
        stream.check()?;
        stream.set(create(flags, priority)?)
    }

    fn cudaStreamDestroy(stream: StreamHandle) {
        destroy(stream)
    }

    stream fn cudaStreamSynchronize(stream: StreamHandle) {
        synchronize(stream)
    }

    stream fn cudaStreamQuery(stream: StreamHandle) {
        query(stream)
    }

    stream fn cudaStreamWaitEvent(stream: StreamHandle, event: u64, flags: u32) {
        wait_event(stream, event, flags)
    }

    stream fn cudaStreamGetFlags(stream: StreamHandle, flags: Out<u32>) {
        flags.set(stream::resolve(stream)?.flags)
    }

    stream fn cudaStreamGetPriority(stream: StreamHandle, priority: Out<c_int>) {
        priority.set(stream::resolve(stream)?.priority)
    }

    stream fn cudaStreamGetId(stream: StreamHandle, number: Out<u64>) {
        number.set(id(&stream::resolve(stream)?))
    }

    stream fn cudaStreamGetDevice(stream: StreamHandle, device: Out<c_int>) {
        device.set(stream::resolve(stream)?.device as c_int)
    }

    stream fn cudaStreamGetAttribute(stream: StreamHandle, attribute: u32, value: Out<AttributeValue>) {
        value.set(get_attribute(&stream::resolve(stream)?, attribute)?)
    }

    stream fn cudaStreamSetAttribute(stream: StreamHandle, attribute: u32, value: In<AttributeValue>) {
        set_attribute(&stream::resolve(stream)?, attribute, value.get()?)
    }

    stream fn cudaStreamCopyAttributes(destination: StreamHandle, source: StreamHandle) {
        let (destination, source) = (stream::resolve(destination)?, stream::resolve(source)?);
        let mut attributes = attributes();
        let copied = attributes.get(&(source.device, source.number)).cloned().unwrap_or_default();
        attributes.insert((destination.device, destination.number), copied);
        Ok(())
    }

    stream fn cudaStreamAttachMemAsync(stream: StreamHandle, pointer: u64, bytes: usize, flags: u32) {
        attach(stream, pointer, bytes, flags)
    }

    stream fn cudaLaunchHostFunc(stream: StreamHandle, function: u64, data: u64) {
        launch_host_function(stream, HostNodeParams { function, data })
    }

    stream fn cudaLaunchHostFunc_v2(stream: StreamHandle, function: u64, data: u64, mode: u32) {
        // How the thread waits: 0 blocking, 1 spinning.
        if mode > 1 {
            return Err(CudaError::InvalidValue);
        }
        launch_host_function(stream, HostNodeParams { function, data })
    }

    stream fn cudaStreamAddCallback(stream: StreamHandle, function: Option<StreamCallback>, data: u64, flags: u32) {
        let function = function.filter(|_| flags == 0).ok_or(CudaError::InvalidValue)?;
        let handle = stream.0;
        let stream = stream::resolve(stream)?;
        capture::forbid(&stream)?;
        // SAFETY: the program asks for this call.
        run_in(&stream, Box::new(move || unsafe { function(handle, 0, data as *mut c_void) }))
    }

    fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        process::description()?;
        least.set_if_wanted(LOWEST_PRIORITY);
        greatest.set_if_wanted(HIGHEST_PRIORITY);
        Ok(())
    }

    fn cudaCtxResetPersistingL2Cache() {
        process::description().map(|_| ())
    }
}
