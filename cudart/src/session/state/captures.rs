//! The streams that are captured: their captured work so far, and the calls that captures forbid.

use crate::abi::capture::{ActiveCapture, CaptureInfo, capture_status};
use crate::abi::graph::EdgeData;
use crate::session::state::dependency::Dependency;
use crate::session::state::streams::Stream;
use crate::session::state::thread;
use balar_host::CudaError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cudaStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;

static CAPTURES: Mutex<Captures> =
    Mutex::new(Captures { last: 0, captures: BTreeMap::new(), streams: BTreeMap::new() });
/// The number of captures: most calls need to know only that it is zero.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The calls that a capture forbids to threads (`cudaStreamCaptureMode`). The values are C's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureMode {
    /// Calls that are unsafe are forbidden to all threads.
    Global,
    /// They are forbidden to the thread that began it.
    ThreadLocal,
    /// They are allowed.
    Relaxed,
}

impl CaptureMode {
    /// The mode with C's number.
    pub fn of_code(code: i32) -> Result<CaptureMode, CudaError> {
        match code {
            0 => Ok(CaptureMode::Global),
            1 => Ok(CaptureMode::ThreadLocal),
            2 => Ok(CaptureMode::Relaxed),
            _ => Err(CudaError::InvalidValue),
        }
    }
}

/// The work that an event stands for that was recorded in a captured stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The capture.
    capture: u64,
    /// The nodes.
    dependencies: Vec<Dependency>,
}

/// All captures.
pub(in crate::session) struct Captures {
    pub(in crate::session) last: u64,
    pub(in crate::session) captures: BTreeMap<u64, Capture>,
    /// Captured streams, by the simulator's number.
    pub(in crate::session) streams: BTreeMap<u32, CapturedStream>,
}

/// A capture.
pub(in crate::session) struct Capture {
    pub(in crate::session) graph: u64,
    /// Whether the graph was made for the capture.
    pub(in crate::session) owns_graph: bool,
    /// The stream that it began with.
    pub(in crate::session) origin: u32,
    pub(in crate::session) mode: CaptureMode,
    pub(in crate::session) thread: u64,
    pub(in crate::session) is_valid: bool,
    /// Nodes that streams came to which have ended since: the first stream has to wait for them, too.
    pub(in crate::session) left: Vec<u64>,
}

/// A stream that is captured.
pub(in crate::session) struct CapturedStream {
    pub(in crate::session) capture: u64,
    pub(in crate::session) is_blocking: bool,
    /// The dependencies of the stream's next operation.
    pub(in crate::session) dependencies: Vec<Dependency>,
    /// The dependencies as the program was shown them.
    pub(in crate::session) shown: (Vec<u64>, Vec<EdgeData>),
}

/// The state of a stream's capture.
struct Status {
    capture: u64,
    /// Whether it can still give a graph.
    is_valid: bool,
    graph: u64,
}

/// All captures.
pub(in crate::session) fn lock() -> MutexGuard<'static, Captures> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Is nothing being captured?
pub(in crate::session) fn none() -> bool {
    COUNT.load(Ordering::Relaxed) == 0
}

/// A number of the calling thread.
pub(in crate::session) fn this_thread() -> u64 {
    rustix::thread::gettid().as_raw_nonzero().get() as u64
}

/// A capture has begun.
pub(in crate::session) fn count_begun() {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// A capture has ended.
pub(in crate::session) fn count_ended() {
    COUNT.fetch_sub(1, Ordering::Relaxed);
}

/// Refuses a call that concerns a captured stream, or all streams, and cannot be part of a graph: the capture gives no graph.
pub fn forbid(stream: &Stream) -> Result<(), CudaError> {
    if none() {
        return Ok(());
    }
    let mut captures = lock();
    if captures.is_captured(stream)? {
        captures.or_invalid(stream.number, Err(CudaError::StreamCaptureUnsupported))
    } else {
        Ok(())
    }
}

/// Refuses a call that waits for everything: all captures give no graph.
pub fn forbid_all() -> Result<(), CudaError> {
    if none() {
        return Ok(());
    }
    let mut captures = lock();
    for capture in captures.captures.values_mut() {
        capture.is_valid = false;
    }
    if captures.captures.is_empty() { Ok(()) } else { Err(CudaError::StreamCaptureUnsupported) }
}

/// Refuses a call that is unsafe while a capture forbids such calls to the calling thread.
pub fn require_safe() -> Result<(), CudaError> {
    if none() {
        return Ok(());
    }
    let mode = CaptureMode::of_code(thread::with(|thread| thread.capture_mode.get()))?;
    let this = this_thread();
    let mut captures = lock();
    let forbidding = captures.captures.values_mut().filter(|capture| match (mode, capture.mode) {
        (CaptureMode::Relaxed, _) | (_, CaptureMode::Relaxed) => false,
        (CaptureMode::Global, CaptureMode::Global) => true,
        _ => capture.thread == this,
    });
    let count = forbidding.map(|capture| capture.is_valid = false).count();
    if count == 0 { Ok(()) } else { Err(CudaError::StreamCaptureUnsupported) }
}

/// Sets the calls that capture forbids to the calling thread (`cudaStreamCaptureMode`); gives the earlier mode.
pub fn exchange_mode(new: i32) -> Result<i32, CudaError> {
    CaptureMode::of_code(new)?;
    Ok(thread::with(|thread| thread.capture_mode.replace(new)))
}

/// The state of a stream's capture; `None` where it has none.
fn status(stream: &Stream) -> Result<Option<Status>, CudaError> {
    if none() {
        return Ok(None);
    }
    let captures = lock();
    if stream.number == 0 && captures.streams.values().any(|stream| stream.is_blocking) {
        return Err(CudaError::StreamCaptureImplicit);
    }
    Ok(captures.streams.get(&stream.number).and_then(|stream| {
        let capture = captures.captures.get(&stream.capture)?;
        Some(Status { capture: stream.capture, is_valid: capture.is_valid, graph: capture.graph })
    }))
}

/// The state of a stream's capture as programs are told it, and the dependencies of the stream's next operation if `with_dependencies`.
pub fn info(stream: &Stream, with_dependencies: bool) -> Result<CaptureInfo, CudaError> {
    let Some(status) = status(stream)? else {
        return Ok(CaptureInfo { status: capture_status::NONE, active: None });
    };
    if !status.is_valid {
        return Ok(CaptureInfo { status: capture_status::INVALIDATED, active: None });
    }
    let dependencies = if with_dependencies { show_dependencies(stream) } else { None };
    let active = ActiveCapture { number: status.capture, graph: status.graph, dependencies };
    Ok(CaptureInfo { status: capture_status::ACTIVE, active: Some(active) })
}

/// The dependencies of the stream's next operation: addresses of the nodes and of their edges' data, which stay until the stream goes on,
/// and their number.
fn show_dependencies(stream: &Stream) -> Option<(u64, u64, usize)> {
    let mut captures = lock();
    let stream = captures.streams.get_mut(&stream.number)?;
    stream.shown = stream.dependencies.iter().map(|dependency| (dependency.node, dependency.edge)).unzip();
    Some((stream.shown.0.as_ptr() as u64, stream.shown.1.as_ptr() as u64, stream.shown.0.len()))
}

/// The work that an event stands for that is recorded in the stream now; `None` where the stream is not captured.
pub fn record(stream: &Stream) -> Result<Option<Captured>, CudaError> {
    if none() {
        return Ok(None);
    }
    let mut captures = lock();
    if !captures.is_captured(stream)? {
        return Ok(None);
    }
    let stream = captures.streams.get(&stream.number);
    Ok(stream.map(|stream| Captured { capture: stream.capture, dependencies: stream.dependencies.clone() }))
}

/// A stream waits for an event. `false`: this does not concern a capture, and nothing was done.
pub fn wait(stream: &Stream, event: Option<&Captured>) -> Result<bool, CudaError> {
    if none() && event.is_none() {
        return Ok(false);
    }
    let mut captures = lock();
    let own = captures.streams.get(&stream.number).map(|stream| stream.capture);
    let Some(event) = event else {
        if !captures.is_captured(stream)? {
            return Ok(false);
        }
        return captures.or_invalid(stream.number, Err(CudaError::StreamCaptureIsolation));
    };
    let Some(capture) = captures.captures.get(&event.capture) else { return Err(CudaError::CapturedEvent) };
    if !capture.is_valid {
        return Err(CudaError::StreamCaptureInvalidated);
    }
    match own {
        Some(own) if own == event.capture => {}
        Some(_) => {
            if let Some(capture) = captures.captures.get_mut(&event.capture) {
                capture.is_valid = false;
            }
            return captures.or_invalid(stream.number, Err(CudaError::StreamCaptureMerge));
        }
        None if stream.number == 0 => {
            captures.invalidate(event.capture);
            return Err(CudaError::StreamCaptureImplicit);
        }
        None => captures.join(stream, event.capture, Vec::new()),
    }
    if let Some(stream) = captures.streams.get_mut(&stream.number) {
        stream.wait_for(event.dependencies.clone());
    }
    Ok(true)
}

/// Refuses to ask for the state of an event that was recorded in a captured stream: the capture gives no graph.
pub fn forbid_event(event: Option<&Captured>) -> Result<(), CudaError> {
    let Some(event) = event else { return Ok(()) };
    lock().invalidate(event.capture);
    Err(CudaError::CapturedEvent)
}

/// A stream ends. The capture that began with it gives no graph; one that another stream's event brought to it goes on.
pub fn forget_stream(number: u32) {
    if none() {
        return;
    }
    let mut captures = lock();
    let Some(stream) = captures.streams.remove(&number) else { return };
    let Some(capture) = captures.captures.get_mut(&stream.capture) else { return };
    if capture.origin != number {
        capture.left.extend(stream.dependencies.iter().map(|dependency| dependency.node));
        return;
    }
    captures.invalidate(stream.capture);
    captures.streams.retain(|_, other| other.capture != stream.capture);
    captures.captures.remove(&stream.capture);
    COUNT.fetch_sub(1, Ordering::Relaxed);
}

impl CapturedStream {
    /// The stream waits for these nodes, too.
    pub(in crate::session) fn wait_for(&mut self, dependencies: Vec<Dependency>) {
        for dependency in dependencies {
            if !self.dependencies.contains(&dependency) {
                self.dependencies.push(dependency);
            }
        }
    }
}

impl Captures {
    /// Whether a stream is captured. An error where its capture gives no graph any longer, or where the legacy stream would wait
    /// for streams that are captured.
    pub(in crate::session) fn is_captured(&mut self, stream: &Stream) -> Result<bool, CudaError> {
        if stream.number == 0 {
            return self.refuse_legacy().map(|()| false);
        }
        if let Some(captured) = self.streams.get(&stream.number) {
            let is_valid = self.captures.get(&captured.capture).is_some_and(|capture| capture.is_valid);
            return if is_valid { Ok(true) } else { Err(CudaError::StreamCaptureInvalidated) };
        }
        Ok(false)
    }

    /// From now on a stream is captured, too.
    pub(in crate::session) fn join(&mut self, stream: &Stream, capture: u64, dependencies: Vec<Dependency>) {
        let is_blocking = stream.flags & NON_BLOCKING == 0;
        let joined = CapturedStream { capture, is_blocking, dependencies, shown: Default::default() };
        self.streams.insert(stream.number, joined);
    }

    /// The capture gives no graph.
    pub(in crate::session) fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.captures.get_mut(&capture) {
            capture.is_valid = false;
        }
    }

    /// Invalidates the stream's capture if the outcome is an error.
    pub(in crate::session) fn or_invalid<T>(
        &mut self,
        stream: u32,
        outcome: Result<T, CudaError>,
    ) -> Result<T, CudaError> {
        if outcome.is_err()
            && let Some(capture) = self.streams.get(&stream).map(|stream| stream.capture)
        {
            self.invalidate(capture);
        }
        outcome
    }

    /// Refuses work in the legacy default stream while streams are captured that it waits for.
    fn refuse_legacy(&mut self) -> Result<(), CudaError> {
        let waited_for: BTreeSet<u64> =
            self.streams.values().filter(|stream| stream.is_blocking).map(|stream| stream.capture).collect();
        for capture in &waited_for {
            self.invalidate(*capture);
        }
        if waited_for.is_empty() { Ok(()) } else { Err(CudaError::StreamCaptureImplicit) }
    }
}
