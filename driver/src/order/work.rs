//! The work of operations: kernels, copies, functions of the program.

use crate::keys::{OperationNumber, StreamKey};
use balar_host::ThreadId;
use balar_host::call::Conditional;
use balar_protocol::copy::CopyOperation;
use balar_protocol::cuda::KernelLaunch;
use balar_protocol::ranges::RangePath;
use balar_protocol::{Detail, ProcessId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The work of an operation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// For the CTA scheduler, which keeps the order of a queue itself.
    Kernel(Arc<KernelLaunch>),
    /// For a copy engine.
    Copy(Box<Transfer>),
    /// For the driver of unified memory.
    Prefetch(Prefetch),
    /// For a thread of the program: the program's number of a function.
    HostFunction(u64),
    /// An event gets its time.
    Record(u32),
    /// The allocation at this address ends.
    Free(u64),
    /// Words in device memory get values, by their addresses.
    Conditions(Vec<(u64, u32)>),
    /// Graphs that run as a word in device memory says.
    Conditional(Box<ConditionalWork>),
    /// The graph has been run that the conditional node of this number has chosen.
    EndOfGraph(OperationNumber),
    /// Nothing: a place in the order.
    Nothing,
}

impl Work {
    /// It has been asked for by a thread in a named range: kernels are of that.
    pub fn in_range(mut self, range: Option<&RangePath>) -> Work {
        match &mut self {
            Work::Kernel(launch) if range.is_some() => Arc::make_mut(launch).range = range.cloned(),
            Work::Conditional(conditional) => conditional.range = range.cloned(),
            _ => {}
        }
        self
    }

    /// Bytes of pageable memory that it keeps until it is done.
    pub fn kept_bytes(&self) -> u64 {
        match self {
            Work::Copy(copy) => match &copy.operation {
                CopyOperation::HostToDevice { data, .. } => data.len() as u64,
                _ => 0,
            },
            _ => 0,
        }
    }
}

/// A prefetch of managed memory, as an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Prefetch {
    pub address: u64,
    pub bytes: u64,
    /// A GPU, or `None` for the host.
    pub target: Option<u8>,
}

/// A conditional node, as an operation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ConditionalWork {
    /// The stream of its graph.
    pub stream: StreamKey,
    pub node: Conditional,
    /// The named range that its graph was launched in.
    pub range: Option<RangePath>,
}

/// Who gets the bytes that a copy brings to pageable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivery {
    /// Nobody: it brings none.
    None,
    /// The thread whose call waits for them.
    Thread(ThreadId),
    /// A process, under its own number.
    Transfer(ProcessId, u32),
}

/// A copy or fill, as an operation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Transfer {
    /// Index of the GPU whose copy engine does it.
    pub device: usize,
    pub operation: CopyOperation,
    pub delivery: Delivery,
    /// How closely it is simulated.
    pub detail: Detail,
}

impl Transfer {
    /// In words.
    pub fn describe(&self) -> String {
        format!("a transfer of {} bytes", self.operation.bytes())
    }
}
