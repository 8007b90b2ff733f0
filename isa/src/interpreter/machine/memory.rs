//! Loads of machine code that PTX does not have.

use crate::execution::{Effect, MemoryAccess, StepContext};
use crate::interpreter::access::memory;
use crate::interpreter::condition;
use crate::interpreter::registers::Lane;
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::warp::WarpState;

/// A load where a predicate is true. Elsewhere the destinations become zero: such lanes execute the instruction, and access nothing.
pub(in crate::interpreter) fn load_or_zero(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let loading = mask & condition(instruction, &warp.registers);
    let zeroed = mask & !loading;
    let effect = memory::load(instruction, warp, context, access, loading);
    if matches!(effect, Effect::Memory { .. }) && zeroed != 0 {
        for &destination in &instruction.destinations[..usize::from(instruction.memory.elements)] {
            u32::write(&mut warp.registers, destination, &[0; LANES], zeroed);
        }
        warp.executed |= zeroed;
    }
    effect
}
