//! The CUDA protocol: kernel launches from the host to the CTA scheduler, and what became of them.

pub use crate::fault::{FaultAccess, FaultCause, FaultSpace, KernelFault};
pub use crate::launch::{Code, KernelLaunch, LaunchId, ProgramId};

use crate::context::ContextId;
use crate::ports::Side;
use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Messages of the CUDA protocol.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CudaMessage {
    /// Host to CTA scheduler: run this kernel after the earlier ones of its stream.
    Launch(Arc<KernelLaunch>),
    /// Host to CTA scheduler: this context, which has failed, begins anew.
    Reset(ContextId),
    /// Host to CTA scheduler: everything of this context ends at once, for its process has been killed.
    Abort(ContextId),
    /// CTA scheduler to host: the last CTA has ended, or the kernel failed.
    LaunchCompleted {
        /// Which launch.
        launch: LaunchId,
        /// Why it failed, if it did.
        fault: Option<Box<KernelFault>>,
        /// From when to when it ran, on the GPU; `None` if it did not begin.
        ran: Option<Box<(SimTime, SimTime)>>,
    },
}

impl CudaMessage {
    /// Which side sends it: the host is the client, the CTA scheduler the server.
    pub const fn sender(&self) -> Side {
        match self {
            CudaMessage::Launch(_) | CudaMessage::Reset(_) | CudaMessage::Abort(_) => Side::Client,
            CudaMessage::LaunchCompleted { .. } => Side::Server,
        }
    }
}
