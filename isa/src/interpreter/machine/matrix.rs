//! The load that distributes matrices among lanes, and the store that collects them.

use crate::execution::{AccessKind, Effect, LaneValues, MemoryAccess, StepContext};
use crate::interpreter::access::memory::{describe, problem};
use crate::interpreter::matrix::{collected, distributed};
use crate::interpreter::registers::Lane;
use crate::lanes::LANES;
use crate::operation::Instruction;
use crate::warp::WarpState;

/// The immediate of `LDSM` and `STSM` has this bit where the matrices are transposed; the bits above are their number.
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

/// `STSM`: the contrary of `LDSM`, as `stmatrix` is of `ldmatrix`. The sources have a matrix each.
pub(crate) fn store_matrices(
    instruction: &Instruction,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
    mask: u32,
) -> Effect {
    let count = (instruction.immediate >> 1).clamp(1, 4);
    access.kind = AccessKind::Store;
    let rows = describe(instruction, warp, access, mask & (u32::MAX >> (32 - 8 * count)));
    let parts = std::array::from_fn(|matrix| match matrix < count as usize {
        true => u32::read(&warp.registers, &warp.constants.0, instruction.sources[1 + matrix]),
        false => [0; LANES],
    });
    let values = &mut context.values.accessed;
    *values = LaneValues::default();
    for word in 0..4 {
        let part = collected(&parts, word, instruction.immediate & TRANSPOSED != 0);
        let half = if word < 2 { &mut values.low } else { &mut values.high };
        for (to, from) in half.iter_mut().zip(part) {
            *to |= u64::from(from) << (32 * (word % 2));
        }
    }
    if rows != 0
        && let Err(error) = context.memory.store(access, values)
    {
        return problem(error);
    }
    warp.control.advance();
    Effect::Memory { deferred: false }
}
