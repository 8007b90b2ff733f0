//! Runs instructions.

use crate::execution::{Effect, MemoryAccess, StepContext};
use crate::program::Program;
use crate::warp::WarpState;

/// Runs the instruction at `warp.pc()` in the lanes of `warp.active_mask()`: registers, memory, control flow. The warp is
/// neither finished nor blocked. `access` is filled where the effect is `Effect::Memory`.
pub type StepFunction = fn(&Program, &mut WarpState, &mut StepContext, &mut MemoryAccess) -> Effect;

/// The step function for this processor. All of them give the same results, bit for bit; choose once.
pub fn step_function() -> StepFunction {
    step_portable
}

fn step_portable(program: &Program, warp: &mut WarpState, context: &mut StepContext, access: &mut MemoryAccess) -> Effect {
    let _ = (program, warp, context, access);
    Effect::Fault { lane: 0, cause: balar_protocol::cuda::FaultCause::Trap }
}
