//! Branches, convergence and jumps of machine code.

use super::signs::inversion_of;
use crate::execution::Effect;
use crate::interpreter::registers::Lane;
use crate::lanes::{LANES, lanes};
use crate::machine::code::CODE_WINDOW;
use crate::operation::{ConvergenceKind, Instruction};
use crate::program::Program;
use crate::sass::INSTRUCTION_BYTES;
use crate::warp::WarpState;
use balar_protocol::cuda::FaultCause;

/// The effect of an instruction on the places of the warp's lanes. `immediate` is the number of the convergence barrier.
pub(crate) fn converge(
    kind: ConvergenceKind,
    program: &Program,
    instruction: &Instruction,
    warp: &mut WarpState,
    mask: u32,
) -> Effect {
    let barrier = instruction.immediate as u8;
    let control = &mut warp.control;
    match kind {
        ConvergenceKind::Jump => return jump(program, instruction, warp, mask),
        ConvergenceKind::BranchIfUnanimous | ConvergenceKind::BranchIfAny => {
            let goes = if kind == ConvergenceKind::BranchIfAny { mask != 0 } else { mask == control.mask };
            let taken = if goes { control.mask } else { 0 };
            let divergent = control.branch(instruction.target, instruction.reconvergence, taken);
            return Effect::Branch { divergent };
        }
        ConvergenceKind::BranchIfDiverged | ConvergenceKind::BranchIfConverged => {
            // Of lanes of a mask that have not ended, which is all ones where code asks about the whole warp; or of those that it does not have.
            let asked = u32::read(&warp.registers, &warp.constants.0, instruction.sources[0]);
            let asked = asked[control.mask.trailing_zeros() as usize % LANES] ^ inversion_of(instruction);
            let asked = asked & control.live;
            // All lanes go the same way, whatever the guard: code goes on with what a whole warp does. Together are those of which the guard is
            // true (own finding: code that asks either way, for a reduction by lanes of several masks, agrees with PTX so alone).
            let is_together = asked & !mask == 0;
            let goes = mask != 0 && is_together == (kind == ConvergenceKind::BranchIfConverged);
            let taken = if goes { control.mask } else { 0 };
            let divergent = control.branch(instruction.target, instruction.reconvergence, taken);
            return Effect::Branch { divergent };
        }
        _ if mask == 0 => control.advance(),
        ConvergenceKind::Begin => control.begin_region(barrier, mask),
        ConvergenceKind::Leave => control.leave_region(barrier, mask),
        ConvergenceKind::Meet => {
            control.meet_at_barrier(barrier, mask);
        }
        ConvergenceKind::Yield => control.yield_turn(),
        ConvergenceKind::Read | ConvergenceKind::ReadAndClear => {
            let values = control.participants(barrier);
            if kind == ConvergenceKind::ReadAndClear {
                control.set_participants(barrier, &[0; LANES], mask);
            }
            control.advance();
            u32::write(&mut warp.registers, instruction.destinations[0], &values, mask);
        }
        ConvergenceKind::Write => {
            let values = u32::read(&warp.registers, &warp.constants.0, instruction.sources[0]);
            control.set_participants(barrier, &values, mask);
            control.advance();
        }
    }
    Effect::Plain
}

/// Each lane goes to the address that a register has: `offset` is added to it.
fn jump(program: &Program, instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    let addresses = u64::read_pair(&warp.registers, &warp.constants.0, instruction.sources[0]);
    let mut targets = [0; LANES];
    for lane in lanes(mask) {
        let address = addresses[lane].wrapping_add(instruction.offset as u64);
        let place = address.wrapping_sub(CODE_WINDOW);
        let index = place / INSTRUCTION_BYTES as u64;
        let system = program.system_entry(address);
        let inside = place % INSTRUCTION_BYTES as u64 == 0 && index < program.len() as u64;
        targets[lane] = match system {
            Some(entry) => entry,
            None if inside => index as u32,
            None => {
                let cause = format!("no code is at address {address:#x}");
                return Effect::Fault { lane: lane as u8, cause: FaultCause::InvalidTarget(cause) };
            }
        };
    }
    Effect::Branch { divergent: warp.control.branch_many(&targets, instruction.reconvergence, mask) }
}
