//! The records that the program wants, and their delivery: into buffers that the program gives, when it asks for the records so far.

use super::Outcome;
use super::records::{Records, Wanted};
use crate::abi::arguments::Out;
use crate::abi::cupti::{CuptiError, kind, record_bytes};
use crate::profiling_api;
use crate::session::connection::activity::{self, Clock};
use crate::session::connection::management;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Asks for a buffer: its address, its bytes, and how many records it takes, 0 for as many as fit.
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Gives a buffer back: a context, a stream, the buffer, its bytes, and how many of them are records.
type Complete = unsafe extern "C" fn(*const c_void, u32, *mut u8, usize, usize);

/// A buffer of the program's.
struct Buffer {
    address: *mut u8,
    bytes: usize,
    /// How many records it takes; 0 for as many as fit.
    most: usize,
}

// SAFETY: the program gives its buffers to this library, whatever thread fills them.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Asks the program for one; `None` where it gives none.
    fn requested(request: Request) -> Option<Buffer> {
        let (mut address, mut bytes, mut most) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: a function of the program's, which writes three places.
        unsafe { request(&raw mut address, &raw mut bytes, &raw mut most) };
        (!address.is_null()).then_some(Buffer { address, bytes, most })
    }

    /// Puts records into it and gives it back. Gives how many found a place.
    fn fill(self, records: &[Vec<u8>], complete: Complete) -> usize {
        let Buffer { address, bytes, most } = self;
        let (mut filled, mut count) = (0, 0);
        while let Some(record) = records.get(count)
            && filled + record.len() <= bytes
            && (most == 0 || count < most)
        {
            // SAFETY: the program has given so many bytes.
            unsafe { address.add(filled).copy_from_nonoverlapping(record.as_ptr(), record.len()) };
            filled += record.len();
            count += 1;
        }
        // SAFETY: a function of the program's, which takes its buffer back.
        unsafe { complete(std::ptr::null(), 0, address, bytes, filled) };
        count
    }
}

/// A profiler's wishes, and the state of its records.
struct Profiler {
    /// A bit for each kind of record that is wanted.
    kinds: u64,
    /// The functions that give and take buffers, and the major version of CUDA whose records they want.
    buffers: Option<(Request, Complete, u32)>,
    /// The buffer that was asked for when the first record came about: profilers ask for records when they have given a buffer, not before.
    buffer: Option<Buffer>,
    records: Option<Records>,
    /// Records that wait for being asked for.
    made: Vec<Vec<u8>>,
    /// Records that had no buffer.
    dropped: usize,
}

static PROFILER: Mutex<Profiler> =
    Mutex::new(Profiler { kinds: 0, buffers: None, buffer: None, records: None, made: Vec::new(), dropped: 0 });

impl Profiler {
    /// Makes the records of work until now, of the kinds that are wanted now.
    fn collect(&mut self) -> Outcome {
        let (Some(records), Some((_, _, major))) = (&mut self.records, self.buffers) else { return Ok(()) };
        // Work first: the call that asked for it has returned, or is about to.
        let work = management::take_activity()?;
        self.made.extend(records.of(Wanted { kinds: self.kinds, major }, activity::take(), &work));
        Ok(())
    }
}

fn profiler() -> MutexGuard<'static, Profiler> {
    PROFILER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets whether a kind of record is wanted.
fn want(kind: u32, wanted: bool) -> Outcome {
    if kind == 0 || kind > kind::LAST {
        return Err(CuptiError::InvalidKind);
    }
    let mut profiler = profiler();
    if !wanted {
        // Work until now is told all the same.
        profiler.collect()?;
    }
    let before = profiler.kinds;
    profiler.kinds = if wanted { before | 1 << kind } else { before & !(1 << kind) };
    match (before == 0, profiler.kinds == 0) {
        (true, false) => {
            profiler.records = Some(Records::default());
            activity::listen(ask_for_buffer);
            management::record_activity(true)?;
        }
        (false, true) => {
            profiler.records = None;
            activity::stop_listening();
            management::record_activity(false)?;
        }
        _ => {}
    }
    Ok(())
}

fn register(request: Option<Request>, complete: Option<Complete>, major: u32) -> Outcome {
    let (Some(request), Some(complete)) = (request, complete) else { return Err(CuptiError::InvalidParameter) };
    profiler().buffers = Some((request, complete, major));
    Ok(())
}

/// A call was kept, and there will be a record of it: asks for a buffer, if there is none.
fn ask_for_buffer() {
    // Who is at work with the profiler now asks for buffers itself; the call must not wait for it.
    let request = match PROFILER.try_lock().as_deref() {
        Ok(Profiler { kinds: 1.., buffer: None, buffers: Some((request, ..)), .. }) => *request,
        _ => return,
    };
    // The program may call this library while it makes one.
    let buffer = Buffer::requested(request);
    let mut profiler = profiler();
    match (&profiler.buffer, profiler.buffers) {
        // Another thread was faster.
        (Some(_), Some((_, complete, _))) => {
            drop(profiler);
            buffer.map(|buffer| buffer.fill(&[], complete));
        }
        _ => profiler.buffer = buffer,
    }
}

/// Gives the program the records of work since the last flush.
fn flush() -> Outcome {
    let mut profiler = profiler();
    let Some((request, complete, _)) = profiler.buffers else { return Err(CuptiError::InvalidOperation) };
    profiler.collect()?;
    let (made, buffer) = (std::mem::take(&mut profiler.made), profiler.buffer.take());
    // The program may call this library while it has them.
    drop(profiler);
    let dropped = fill(&made, buffer, request, complete);
    self::profiler().dropped += dropped;
    Ok(())
}

/// Puts records into buffers of the program; the first buffer may be there already. Gives how many records found no place.
fn fill(records: &[Vec<u8>], first: Option<Buffer>, request: Request, complete: Complete) -> usize {
    let mut rest = records;
    if let Some(buffer) = first {
        rest = &rest[buffer.fill(rest, complete)..];
    }
    while !rest.is_empty() {
        let count = Buffer::requested(request).map_or(0, |buffer| buffer.fill(rest, complete));
        if count == 0 {
            return rest.len();
        }
        rest = &rest[count..];
    }
    0
}

/// The record behind `record` in a buffer, or the first.
fn next(buffer: *mut u8, valid: usize, record: Out<*mut u8>) -> Outcome {
    record.check()?;
    let major = profiler().buffers.map_or(0, |(_, _, major)| major);
    // SAFETY: the place is not null, and holds a record or null.
    let before = unsafe { record.pointer().read_unaligned() };
    let at = if before.is_null() {
        0
    } else {
        // SAFETY: a record begins with its kind.
        let kind = unsafe { before.cast::<u32>().read_unaligned() };
        let length = record_bytes(kind, major).ok_or(CuptiError::InvalidParameter)?;
        before.addr().wrapping_sub(buffer.addr()).wrapping_add(length)
    };
    if buffer.is_null() || at >= valid {
        return Err(CuptiError::MaxLimitReached);
    }
    // SAFETY: within the buffer.
    Ok(record.set(unsafe { buffer.add(at) })?)
}

profiling_api! {
    fn cuptiActivityEnable(kind: u32) {
        want(kind, true)
    }

    fn cuptiActivityDisable(kind: u32) {
        want(kind, false)
    }

    fn cuptiActivityEnableContext(_context: u64, kind: u32) {
        want(kind, true)
    }

    fn cuptiActivityDisableContext(_context: u64, kind: u32) {
        want(kind, false)
    }

    fn cuptiActivityRegisterCallbacks_11(request: Option<Request>, complete: Option<Complete>) {
        register(request, complete, 11)
    }

    fn cuptiActivityRegisterCallbacks_12(request: Option<Request>, complete: Option<Complete>) {
        register(request, complete, 12)
    }

    fn cuptiActivityRegisterCallbacks_13(request: Option<Request>, complete: Option<Complete>) {
        register(request, complete, 13)
    }

    /// The system's clock where there is none.
    fn cuptiActivityRegisterTimestampCallback(clock: Option<Clock>) {
        activity::set_clock(clock);
        Ok(())
    }

    fn cuptiActivityFlushAll(_flags: u32) {
        flush()
    }

    fn cuptiActivityFlush(_context: u64, _stream: u32, _flags: u32) {
        flush()
    }

    fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: Out<*mut u8>) {
        next(buffer, valid, record)
    }

    fn cuptiActivityGetNumDroppedRecords(_context: u64, _stream: u32, count: Out<usize>) {
        count.check()?;
        Ok(count.set(std::mem::take(&mut profiler().dropped))?)
    }

    fn cuptiActivityPushExternalCorrelationId(kind: u32, number: u64) {
        activity::push_external(kind, number);
        Ok(())
    }

    fn cuptiActivityPopExternalCorrelationId(kind: u32, number: Out<u64>) {
        number.set_if_wanted(activity::pop_external(kind).ok_or(CuptiError::QueueEmpty)?);
        Ok(())
    }

    /// Accepts sizes of buffers of a device, which has none, and settings of further records.
    fn cuptiActivitySetAttribute(_attribute: u32, _bytes: *mut usize, _value: *mut c_void) {
        Ok(())
    }

    /// Buffers are given back when the program asks for it.
    fn cuptiActivityFlushPeriod(_milliseconds: u32) {
        Ok(())
    }

    fn cuptiActivityEnableLatencyTimestamps(_enable: u8) {
        Ok(())
    }

    fn cuptiActivityEnableLaunchAttributes(_enable: u8) {
        Ok(())
    }

    fn cuptiActivityEnableAllSyncRecords(_enable: u8) {
        Ok(())
    }

    fn cuptiActivityEnableCudaEventDeviceTimestamps(_enable: u8) {
        Ok(())
    }

    fn cuptiActivityEnableDriverApi(_callback: u32, _enable: u8) {
        Ok(())
    }

    fn cuptiActivityEnableRuntimeApi(_callback: u32, _enable: u8) {
        Ok(())
    }

    fn cuptiFinalize() {
        let kinds = profiler().kinds;
        (0..=kind::LAST).filter(|kind| kinds & 1 << kind != 0).try_for_each(|kind| want(kind, false))
    }
}
