//! What calls wait for, and what happens then.

use crate::keys::OperationNumber;
use balar_host::Call;
use balar_protocol::{ContextId, ProcessId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a blocked call waits for.
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
    /// That processes which have ended have given back what they had.
    EndedProcesses,
    /// That the driver of unified memory is done with what it was asked under this number.
    Managed(u32),
}

/// What happens before the call returns.
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
    /// The program has done what it waited for, an access of its own: what the driver of unified memory was asked, where there is one.
    Touched(Option<u32>),
    /// The program writes these bytes at this address.
    Write(u64, Arc<[u8]>),
    /// The program reads at this address so many bytes: the result of its call, which whoever has the memory gives.
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
    /// What it waits for.
    pub until: Until,
    /// What happens before it returns.
    pub then: Then,
}

impl Wait {
    /// For operations alone.
    pub(crate) fn operations(numbers: Vec<OperationNumber>) -> Wait {
        Wait { until: Until::Operations(numbers), then: Then::Nothing }
    }
}
