//! The waits of calls, and the steps after them.

use crate::keys::OperationNumber;
use balar_host::Call;
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The condition that ends the wait of a blocked call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// These operations.
    Operations(Vec<OperationNumber>),
    /// Everything in the context that was asked for before this operation.
    ContextBefore {
        /// The context.
        context: ContextId,
        /// The operation.
        number: OperationNumber,
    },
    /// The same of all contexts of a process.
    ProcessBefore(ProcessId, OperationNumber),
    /// Room for one more operation of the context.
    QueueRoom(ContextId),
    /// Ended processes have given back their memory.
    EndedProcesses,
    /// The driver of unified memory has answered the question of this number.
    Managed(u32),
}

/// The step before the call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Then {
    /// Nothing else.
    Nothing,
    /// The allocation at this address ends.
    Free(u64),
    /// Memory is mapped at these addresses, and no longer: the first address, and bytes.
    Unmap(u64, u64),
    /// Memory of another process that begins at this address is closed.
    Close(u64),
    /// The module ends.
    Unload(u32),
    /// Everything of the device ends.
    Reset,
    /// The call is made once more, in no time.
    Again(Box<Call>),
    /// The driver of unified memory is told that the program has waited, and is waited for, too.
    Synchronise,
    /// An access by the program itself is over: the number of the question to the driver of unified memory, where there is one.
    Touched(Option<u32>),
    /// The program writes these bytes at this address.
    Write(u64, Arc<[u8]>),
    /// The program reads at this address so many bytes: the result of its call, which the owner of the memory gives.
    Read(u64, u64),
}

impl Then {
    /// Does the call go on, and perhaps wait again, instead of returning? See [`Driver::goes_on`](crate::Driver::goes_on).
    pub fn goes_on(&self) -> bool {
        matches!(self, Then::Again(_) | Then::Synchronise)
    }

    /// Is it the end of an access of the program's own? It costs nothing, for it is no call of CUDA.
    pub fn is_access(&self) -> bool {
        matches!(self, Then::Touched(_) | Then::Write(..) | Then::Read(..))
    }
}

/// A blocked call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// The condition that ends the wait.
    pub until: Until,
    /// The step before it returns.
    pub then: Then,
}

impl Wait {
    /// For operations alone.
    pub(crate) fn operations(numbers: Vec<OperationNumber>) -> Wait {
        Wait { until: Until::Operations(numbers), then: Then::Nothing }
    }
}
