//! The load that distributes matrices among lanes.

use crate::execution::{AccessKind, Effect, LaneValues, MemoryAccess, StepContext};
use crate::interpreter::access::memory::{describe, problem};
use crate::interpreter::matrix::distributed;
use crate::interpreter::registers::Lane;
use crate::operation::Instruction;
use crate::warp::WarpState;

/// The immediate of `LDSM` has this bit where the matrices are transposed; the bits above are their number.
pub(crate) const TRANSPOSED: u32 = 1;

/// `LDSM`: rows of 16 bytes of 8 by 8 matrices of 16 bits, which are distributed as `ldmatrix` does. Lane 8 i + r has the address of
/// row r of matrix i; other lanes' addresses are not read.
pub(crate) fn load_matrices(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let count = (instruction.immediate >> 1).clamp(1, 4);
    access.kind = AccessKind::Load;
    let rows = describe(instruction, warp, access, mask & (u32::MAX >> (32 - 8 * count)));
    let values = &mut context.values.accessed;
    *values = LaneValues::default();
    if rows != 0
        && let Err(error) = context.memory.load(access, values)
    {
        return problem(error);
    }
    let words = std::array::from_fn(|word| {
        let half = if word < 2 { &values.low } else { &values.high };
        std::array::from_fn(|lane| (half[lane] >> (32 * (word % 2))) as u32)
    });
    for matrix in 0..count as usize {
        let part = distributed(&words, matrix, instruction.immediate & TRANSPOSED != 0);
        u32::write(&mut warp.registers, instruction.destinations[matrix], &part, mask);
    }
    warp.control.advance();
    Effect::Memory { deferred: false }
}
