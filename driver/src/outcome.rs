//! The callers of calls, and the outcomes of calls.

use crate::wait::{Then, Until, Wait};
use balar_host::{Call, CallResult, CudaError, ThreadId};
use balar_protocol::ContextId;

/// Why a call fails: the error that it returns, and the cause in words.
pub type Failure = (CudaError, String);

/// Who makes a call: a thread, and the context that is current to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The thread.
    pub thread: ThreadId,
    /// The context.
    pub context: ContextId,
}

/// The outcome of a call when its host time is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It returns at once.
    Returns(CallResult),
    /// It waits for work.
    Waits(Wait),
}

impl Outcome {
    /// The call returns an address.
    pub(crate) fn pointer(address: u64) -> Outcome {
        Outcome::Returns(CallResult::Pointer(address))
    }

    /// The call waits, and something happens before it returns.
    pub(crate) fn waits(until: Until, then: Then) -> Outcome {
        Outcome::Waits(Wait { until, then })
    }
}

/// The outcome of a call from a part of the driver.
pub(crate) type CallOutcome = Result<Outcome, Failure>;

/// The call returns at once, and gives nothing.
pub(crate) const NOTHING: CallOutcome = Ok(Outcome::Returns(CallResult::None));

/// A call that nothing takes.
pub(crate) fn not_modelled(call: &Call) -> Failure {
    (CudaError::NotSupported, format!("{} is not modelled", call.name()))
}

/// A call with a value that it cannot have.
pub(crate) fn invalid(text: String) -> Failure {
    (CudaError::InvalidValue, text)
}

/// The process that a handle is from cannot open it (`cudaErrorDeviceUninitialized`, as CUDA has it).
pub(crate) fn own_handle() -> Failure {
    (CudaError::DeviceUninitialized, "a handle is for other processes than its own".to_owned())
}

/// A stream that a process does not have.
pub(crate) fn no_stream(stream: u32) -> Failure {
    (CudaError::InvalidResourceHandle, format!("there is no stream {stream}"))
}
