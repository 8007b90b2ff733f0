//! Runs instructions that compute on registers alone one after the other: for warps that run for their values alone.

use super::{bodies, run_lanes};
use crate::operation::Kind;
use crate::program::Program;
use crate::program::timing::CountClass;
use crate::warp::WarpState;

/// The counts of executed instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Warp instructions.
    pub instructions: u64,
    /// Thread instructions, by the lanes that were active.
    pub active: u64,
    /// Thread instructions whose guard was true.
    pub executed: u64,
    /// The thread instructions by [`CountClass`]; for control flow, warp instructions.
    pub by_class: [u64; CountClass::COUNT],
}

impl Tally {
    /// Counts a warp instruction by its active lanes, and by the active lanes whose guard was true.
    #[inline(always)]
    pub fn count(&mut self, class: CountClass, active: u32, executed: u32) {
        let threads = u64::from(executed.count_ones());
        self.instructions += 1;
        self.active += u64::from(active.count_ones());
        self.executed += threads;
        self.by_class[class as usize] += if class == CountClass::Control { 1 } else { threads };
    }
}

/// Runs the warp's next instructions as long as they compute on registers alone, and not more than so many: counts them, and gives how
/// many. Stops, too, where no lane can run.
pub type RunFunction = fn(&Program, &mut WarpState, u32, &mut Tally) -> u32;

/// The run function for this processor, as [`step_function`](super::step_function).
pub fn run_function() -> RunFunction {
    if bodies::has_vector_features() { run_vectorised } else { run::<0> }
}

/// Only for processors that `has_vector_features`: `run_function` alone hands it out.
fn run_vectorised(program: &Program, warp: &mut WarpState, most: u32, tally: &mut Tally) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `run_function` hands this function out after it has checked the processor's features.
    unsafe {
        run_with_features(program, warp, most, tally)
    }
    #[cfg(not(target_arch = "x86_64"))]
    run::<1>(program, warp, most, tally)
}

/// Bits are counted by an instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn run_with_features(program: &Program, warp: &mut WarpState, most: u32, tally: &mut Tally) -> u32 {
    run::<1>(program, warp, most, tally)
}

#[inline(always)]
fn run<const VERSION: usize>(program: &Program, warp: &mut WarpState, most: u32, tally: &mut Tally) -> u32 {
    let mut done = 0;
    while done < most && warp.control.mask != 0 {
        let pc = warp.control.pc;
        let instruction = program.instruction(pc);
        if instruction.kind != Kind::Lanes {
            break;
        }
        let active = warp.control.mask;
        let mask = active & warp.registers.predicate(instruction.guard, instruction.guard_flip);
        if mask != 0 {
            run_lanes::<VERSION>(instruction, &mut warp.registers, &warp.constants, mask);
        }
        tally.count(program.timing(pc).count, active, mask);
        warp.control.advance();
        done += 1;
    }
    done
}
