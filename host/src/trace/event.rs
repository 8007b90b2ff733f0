//! The events of a trace, in the order in which they happened.

use super::payloads::PayloadId;
use crate::call::CallResult;
use crate::program::{Request, ThreadId};
use balar_protocol::ProcessId;
use serde::{Deserialize, Serialize};

/// Something that happened between a program and the simulated host CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Code that is loaded from the start, as module [`BUILT_IN_MODULE`](crate::call::BUILT_IN_MODULE) of a device: before all else.
    Code {
        /// The device.
        device: u32,
        /// Name of the file.
        name: String,
        /// PTX text.
        text: PayloadId,
    },
    /// The program makes a call.
    Request {
        /// The call. Bulk data is present as lengths alone.
        request: Request,
        /// Its bulk data, in the order of [`Call::payloads`](crate::Call::payloads).
        payloads: Vec<PayloadId>,
    },
    /// A call returns.
    Result {
        /// Whose call.
        thread: ThreadId,
        /// Its result. Bytes are present as their length alone.
        result: CallResult,
        /// The bytes of a copy from the device.
        data: Option<PayloadId>,
        /// Checksum of all pinned and managed memory at this time, where the call has waited for the device.
        shared_memory: Option<u128>,
    },
    /// A stream has come to a host function.
    CallBack {
        /// Whose stream.
        process: ProcessId,
        /// Its number.
        function: u64,
    },
    /// The bytes of an asynchronous copy to pageable memory.
    Receive {
        /// Whose it is.
        process: ProcessId,
        /// The copy.
        transfer: u32,
        /// The bytes.
        data: PayloadId,
    },
    /// Text that kernels have printed.
    Printed {
        /// Whose kernels.
        process: ProcessId,
        /// Text for the standard output.
        text: PayloadId,
        /// Text for the standard error stream.
        error: PayloadId,
    },
    /// The program has written to pinned or managed memory since the event before.
    HostWrite {
        /// Address and length of each range.
        ranges: Vec<(u64, u64)>,
        /// The bytes of all ranges, one after another.
        data: PayloadId,
    },
    /// The program had nothing to do as often as this, though no call returned and no host function was called: its next act came from
    /// outside.
    Waited {
        /// How often.
        times: u32,
    },
    /// One of several processes has ended.
    ProcessEnds {
        /// Which.
        process: ProcessId,
        /// Its kernels end at once.
        was_killed: bool,
    },
    /// The program has ended without [`Call::Exit`](crate::Call::Exit), or after it.
    End {
        /// Its failure.
        error: Option<String>,
    },
}

/// How many kinds of events there are: the first number that names none.
pub(super) const EVENT_KINDS: u8 = 10;

impl Event {
    /// The payloads that the event refers to.
    pub fn payloads(&self) -> Vec<PayloadId> {
        match self {
            Event::Code { text, .. } => vec![*text],
            Event::Request { payloads, .. } => payloads.clone(),
            Event::Result { data, .. } => data.iter().copied().collect(),
            Event::Receive { data, .. } | Event::HostWrite { data, .. } => vec![*data],
            Event::Printed { text, error, .. } => vec![*text, *error],
            Event::CallBack { .. } | Event::Waited { .. } | Event::ProcessEnds { .. } | Event::End { .. } => Vec::new(),
        }
    }
}
