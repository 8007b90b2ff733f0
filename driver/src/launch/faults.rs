//! A kernel's fault as the program sees it: an error, and words.

use crate::process::context::ContextFailure;
use crate::readable_names::readable_names;
use balar_host::CudaError;
use balar_isa::program::lanes;
use balar_protocol::cuda::{FaultCause, KernelFault};

/// Why the context of a kernel with blocks of this extent has failed.
pub(crate) fn failure_of(fault: &KernelFault, block: [u32; 3]) -> ContextFailure {
    ContextFailure::new(error_of(&fault.cause), readable_names(&fault.to_string()), words_of(fault, block))
}

/// The words that CUDA itself prints about a fault: a line for each thread of the warp.
fn words_of(fault: &KernelFault, [x, y, _]: [u32; 3]) -> Option<String> {
    let FaultCause::AssertionFailed { message, file, line, function, lanes: failed } = &fault.cause else {
        return None;
    };
    let [bx, by, bz] = fault.cta;
    let [tx, ty, tz] = fault.thread;
    let first_lane = (tx + x * (ty + y * tz)).wrapping_sub(failed.trailing_zeros());
    let words = lanes(*failed).map(|lane| {
        let thread = first_lane.wrapping_add(lane as u32);
        let (tx, ty, tz) = (thread % x, thread / x % y, thread / x / y);
        format!(
            "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{tx},{ty},{tz}] Assertion `{message}` failed."
        )
    });
    Some(words.collect::<Vec<_>>().join("\n"))
}

/// The CUDA error that a kernel's fault becomes.
fn error_of(cause: &FaultCause) -> CudaError {
    match cause {
        FaultCause::IllegalAddress { .. }
        | FaultCause::AbsentCta { .. }
        | FaultCause::InvalidImage { .. }
        | FaultCause::OutsideSurface { .. } => CudaError::IllegalAddress,
        FaultCause::MisalignedAddress { .. } => CudaError::MisalignedAddress,
        FaultCause::Trap | FaultCause::InvalidFree { .. } => CudaError::LaunchFailure,
        FaultCause::AssertionFailed { .. } => CudaError::Assert,
        FaultCause::StackOverflow { .. } => CudaError::HardwareStackError,
        FaultCause::InvalidTarget(_) => CudaError::InvalidPc,
        FaultCause::Unsupported(_) | FaultCause::Hazard(_) => CudaError::IllegalInstruction,
    }
}
