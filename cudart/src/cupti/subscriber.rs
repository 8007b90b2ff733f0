//! Versions, errors, contexts, and subscriptions to callbacks.

use super::Outcome;
use crate::abi::arguments::Out;
use crate::abi::cupti::{API_VERSIONS, CuptiError, function_name};
use crate::profiling_api;
use crate::session::connection::{activity, description};
use crate::session::contexts::context::{ContextHandle, device_of};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The handle of the one subscriber that there can be.
const SUBSCRIBER: u64 = 1;
/// `CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT`, the lower half of `pthread_self`, and `CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM`.
const THREAD_OF_LIBRARY: u32 = 0;
const THREAD_OF_SYSTEM: u32 = 1;

/// `CUPTI_CB_DOMAIN_RUNTIME_API`.
const RUNTIME_DOMAIN: u32 = 2;

static SUBSCRIBED: AtomicBool = AtomicBool::new(false);
static THREAD_TYPE: AtomicU32 = AtomicU32::new(THREAD_OF_LIBRARY);

/// A thread's number as the program wants it, from its two numbers.
pub(super) fn thread_number((of_library, of_system): (u64, u32)) -> u32 {
    if THREAD_TYPE.load(Ordering::Relaxed) == THREAD_OF_SYSTEM { of_system } else { of_library as u32 }
}

/// The number of a device's context: there is one for each, and 0 means none.
pub(super) const fn context_number(device: u32) -> u32 {
    device.saturating_add(1)
}

/// The failure, in words.
fn text(code: c_int) -> Option<&'static CStr> {
    Some(match code {
        0 => c"CUPTI_SUCCESS",
        1 => c"CUPTI_ERROR_INVALID_PARAMETER",
        2 => c"CUPTI_ERROR_INVALID_DEVICE",
        3 => c"CUPTI_ERROR_INVALID_CONTEXT",
        7 => c"CUPTI_ERROR_INVALID_OPERATION",
        12 => c"CUPTI_ERROR_MAX_LIMIT_REACHED",
        18 => c"CUPTI_ERROR_QUEUE_EMPTY",
        21 => c"CUPTI_ERROR_INVALID_KIND",
        27 => c"CUPTI_ERROR_NOT_SUPPORTED",
        39 => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        999 => c"CUPTI_ERROR_UNKNOWN",
        _ => return None,
    })
}

fn say(code: c_int, place: Out<*const c_char>) -> Outcome {
    Ok(place.set(text(code).ok_or(CuptiError::InvalidParameter)?.as_ptr())?)
}

fn version(major: u32, place: Out<u32>) -> Outcome {
    let found = API_VERSIONS.iter().find(|(of, _)| *of == major);
    Ok(place.set(found.map_or(0, |(_, version)| *version))?)
}

fn check(subscriber: u64) -> Outcome {
    let is_it = subscriber == SUBSCRIBER && SUBSCRIBED.load(Ordering::Relaxed);
    if is_it { Ok(()) } else { Err(CuptiError::InvalidParameter) }
}

profiling_api! {
    fn cuptiGetVersion_11(place: Out<u32>) {
        version(11, place)
    }

    fn cuptiGetVersion_12(place: Out<u32>) {
        version(12, place)
    }

    fn cuptiGetVersion_13(place: Out<u32>) {
        version(13, place)
    }

    fn cuptiGetResultString(code: c_int, place: Out<*const c_char>) {
        say(code, place)
    }

    fn cuptiGetErrorMessage(code: c_int, place: Out<*const c_char>) {
        say(code, place)
    }

    fn cuptiGetLastError() {
        Ok(())
    }

    /// The names of functions of the runtime that records name.
    fn cuptiGetCallbackName(domain: u32, number: u32, place: Out<*const c_char>) {
        place.check()?;
        let name = if domain == RUNTIME_DOMAIN { function_name(number) } else { None };
        Ok(place.set(name.ok_or(CuptiError::InvalidParameter)?.as_ptr())?)
    }

    fn cuptiGetTimestamp(place: Out<u64>) {
        Ok(place.set(activity::timestamp())?)
    }

    fn cuptiGetDeviceId(context: ContextHandle, place: Out<u32>) {
        place.check()?;
        Ok(place.set(device_of(context)?)?)
    }

    fn cuptiGetContextId(context: ContextHandle, place: Out<u32>) {
        place.check()?;
        Ok(place.set(context_number(device_of(context)?))?)
    }

    fn cuptiSetThreadIdType(which: u32) {
        if which > THREAD_OF_SYSTEM {
            return Err(CuptiError::InvalidParameter);
        }
        THREAD_TYPE.store(which, Ordering::Relaxed);
        Ok(())
    }

    fn cuptiGetThreadIdType(place: Out<u32>) {
        Ok(place.set(THREAD_TYPE.load(Ordering::Relaxed))?)
    }

    fn cuptiDeviceSupported(device: c_int, place: Out<c_int>) {
        description::device_of(device)?;
        Ok(place.set(1)?)
    }

    fn cuptiComputeCapabilitySupported(_major: c_int, _minor: c_int, place: Out<c_int>) {
        Ok(place.set(1)?)
    }

    fn cuptiSubscribe(subscriber: Out<u64>, _callback: *const c_void, _data: *mut c_void) {
        subscriber.check()?;
        if SUBSCRIBED.swap(true, Ordering::Relaxed) {
            return Err(CuptiError::MultipleSubscribers);
        }
        Ok(subscriber.set(SUBSCRIBER)?)
    }

    fn cuptiUnsubscribe(subscriber: u64) {
        check(subscriber)?;
        SUBSCRIBED.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn cuptiEnableCallback(_enable: u32, subscriber: u64, _domain: u32, _callback: u32) {
        check(subscriber)
    }

    fn cuptiEnableDomain(_enable: u32, subscriber: u64, _domain: u32) {
        check(subscriber)
    }

    fn cuptiEnableAllDomains(_enable: u32, subscriber: u64) {
        check(subscriber)
    }
}
