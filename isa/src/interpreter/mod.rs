//! Runs instructions.

pub(crate) mod access;
pub(crate) mod bodies;
pub(crate) mod call;
pub(crate) mod carry;
pub(crate) mod collective;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod floating_point;
pub(crate) mod integer;
pub(crate) mod machine;
pub(crate) mod matrix;
mod matrix_groups;
mod matrix_tiles;
mod members;
pub(crate) mod movement;
mod narrowing;
pub(crate) mod packed;
pub(crate) mod registers;
mod run;
pub(crate) mod tensor_columns;
pub(crate) mod tensor_sum;
pub(crate) mod video;

use crate::convergence::ReductionTarget;
use crate::execution::{
    BarrierArrival, BarrierKind, CLUSTER_BARRIER, Effect, MemoryAccess, NUMBERED_BARRIERS, StepContext,
};
use crate::lanes::{LANES, lanes};
use crate::machine::constants::LaunchConstants;
use crate::operation::operand::{SINK_ROW, uniform_predicate};
use crate::operation::{ALL_COPIES, Instruction, Kind, UniformResult, counter};
use crate::program::Program;
use crate::warp::WarpState;
use access::{asynchronous, bulk, memory, tensor_maps, texture};
use balar_protocol::cuda::FaultCause;
use registers::{Lane, Registers};
pub use run::{RunFunction, Tally, run_function};

/// Runs the instruction at `warp.pc()` in the lanes of `warp.active_mask()`: registers, memory, control flow. The warp is
/// neither finished nor blocked. `access` is filled where the effect is `Effect::Memory`.
pub type StepFunction = fn(&Program, &mut WarpState, &mut StepContext, &mut MemoryAccess) -> Effect;

/// Runs the instruction at `warp.pc()`, one whose [`Timing::is_plain`](crate::program::Timing::is_plain), as a [`StepFunction`] does.
pub type PlainFunction = fn(&Program, &mut WarpState);

/// The plain function for this processor, as [`step_function`].
pub fn plain_function() -> PlainFunction {
    if bodies::has_vector_features() { plain::<1> } else { plain::<0> }
}

/// Version 1 only for processors that `has_vector_features`: `plain_function` alone hands it out.
fn plain<const VERSION: usize>(program: &Program, warp: &mut WarpState) {
    let instruction = program.instruction(warp.control.pc);
    let mask = warp.control.mask & warp.registers.predicate(instruction.guard, instruction.guard_flip);
    warp.executed = mask;
    if mask != 0 {
        run_lanes::<VERSION>(instruction, &mut warp.registers, &warp.constants, mask);
    }
    warp.control.advance();
}

pub use matrix_groups::ProductReads;
pub use members::member_mask_hazard;

/// The step function for this processor. All of them give the same results, bit for bit; choose once.
pub fn step_function() -> StepFunction {
    if bodies::has_vector_features() { step_vectorised } else { step_portable }
}

/// The step function that runs on any processor: for comparison.
pub fn portable_step_function() -> StepFunction {
    step_portable
}

fn step_portable(
    program: &Program,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
) -> Effect {
    step::<0>(program, warp, context, access)
}

/// Only for processors that `has_vector_features`: `step_function` alone hands it out.
fn step_vectorised(
    program: &Program,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
) -> Effect {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `step_function` hands this function out after it has checked the processor's features.
    unsafe {
        step_with_features(program, warp, context, access)
    }
    #[cfg(not(target_arch = "x86_64"))]
    step::<1>(program, warp, context, access)
}

/// The loops over lanes of loads and stores gain from the vector features, too.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
fn step_with_features(
    program: &Program,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
) -> Effect {
    step::<1>(program, warp, context, access)
}

#[inline(always)]
fn step<const VERSION: usize>(
    program: &Program,
    warp: &mut WarpState,
    context: &mut StepContext,
    access: &mut MemoryAccess,
) -> Effect {
    let pc = warp.control.pc;
    let instruction = program.instruction(pc);
    let active = warp.control.mask;
    let mask = active & warp.registers.predicate(instruction.guard, instruction.guard_flip);
    warp.executed = mask;
    match instruction.kind {
        Kind::Lanes => {
            if mask != 0 {
                run_lanes::<VERSION>(instruction, &mut warp.registers, &warp.constants, mask);
            }
            warp.control.advance();
            Effect::Plain
        }
        Kind::Load => memory::load(instruction, warp, context, access, mask),
        Kind::LoadOrZero => machine::memory::load_or_zero(instruction, warp, context, access, mask),
        Kind::LoadMatrices => machine::matrix::load_matrices(instruction, warp, context, access, mask),
        Kind::StoreMatrices => machine::matrix::store_matrices(instruction, warp, context, access, mask),
        Kind::Store => memory::store(instruction, warp, context, access, mask),
        Kind::Atomic => memory::atomic(instruction, warp, context, access, mask),
        Kind::AndTell => asynchronous::access_and_tell(instruction, warp, context, access, mask),
        Kind::Image(form) => texture::run(program, instruction, &form, warp, context, access, mask),
        Kind::Copy | Kind::CopyPart => asynchronous::copy(instruction, warp, context, access, mask),
        Kind::CopyArrive => asynchronous::arrive_after_copies(instruction, warp, context, access, mask),
        Kind::BarrierTest => asynchronous::test(instruction, warp, context, access, mask),
        Kind::CopyCommit | Kind::CopyWait => {
            warp.control.advance();
            match instruction.immediate {
                _ if mask == 0 => Effect::Plain,
                _ if instruction.kind == Kind::CopyCommit => Effect::CopyCommit,
                ALL_COPIES => Effect::CopyWait { groups: None },
                groups => Effect::CopyWait { groups: Some(groups) },
            }
        }
        Kind::GroupProduct => matrix_groups::product::<VERSION>(instruction, warp, context, mask),
        Kind::ProductCommit => {
            warp.control.advance();
            if mask == 0 { Effect::Plain } else { Effect::ProductCommit }
        }
        Kind::ProductWait => matrix_groups::wait(instruction, warp, mask),
        Kind::Branch => {
            let mask = mask & condition(instruction, &warp.registers);
            Effect::Branch { divergent: warp.control.branch(instruction.target, instruction.reconvergence, mask) }
        }
        Kind::BranchTable => call::branch_table(program, instruction, warp, mask),
        Kind::Call => call::call(program, instruction, warp, mask),
        Kind::CallThrough => call::call_through(program, instruction, warp, mask),
        Kind::Return => call::leave(program, warp, mask),
        Kind::StackAllocate => call::stack_allocate(program, instruction, warp, mask),
        Kind::StackSave => call::stack_save(program, instruction, warp, mask),
        Kind::StackRestore => call::stack_restore(program, instruction, warp, mask),
        Kind::System(system) => call::system(instruction, warp, context, system, mask),
        Kind::Exit => {
            let mask = mask & condition(instruction, &warp.registers);
            warp.control.exit(mask);
            Effect::Exit { mask }
        }
        Kind::Collective => gather::<VERSION>(instruction, warp, mask),
        Kind::WarpBarrier | Kind::WarpBarrierApart => {
            let mask = mask & condition(instruction, &warp.registers);
            gather::<VERSION>(instruction, warp, mask)
        }
        Kind::Counter => {
            read_counter(instruction, &mut warp.registers, context, mask);
            warp.control.advance();
            Effect::Plain
        }
        Kind::Barrier(kind) => arrive_at_barrier(kind, instruction, warp, mask),
        Kind::ClusterArrive => {
            warp.control.advance();
            if mask == 0 { Effect::Plain } else { Effect::ClusterArrive { mask } }
        }
        Kind::ClusterWait => {
            let waiting = if mask == 0 { 0 } else { context.memory.waits_for_cluster(mask) };
            match waiting {
                0 => warp.control.advance(),
                _ => {
                    let target = ReductionTarget::None;
                    warp.control.arrive_at_barrier(CLUSTER_BARRIER, BarrierKind::Sync, target, waiting);
                }
            }
            if mask == 0 { Effect::Plain } else { Effect::ClusterWait }
        }
        Kind::Fence => {
            warp.control.advance();
            if mask == 0 { Effect::Plain } else { Effect::Fence }
        }
        Kind::Sleep => {
            let mask = mask & condition(instruction, &warp.registers);
            sleep(instruction, warp, mask)
        }
        Kind::Convergence(kind) => {
            let mask = mask & condition(instruction, &warp.registers);
            machine::control::converge(kind, program, instruction, warp, mask)
        }
        Kind::Bulk(form) => bulk::run(program, instruction, &form, warp, context, access, mask),
        Kind::BulkCommit | Kind::BulkWait => {
            warp.control.advance();
            match instruction.kind {
                _ if mask == 0 => Effect::Plain,
                Kind::BulkCommit => Effect::BulkCommit,
                _ => Effect::BulkWait { groups: instruction.immediate },
            }
        }
        Kind::ReplaceField(field) => tensor_maps::replace_field(instruction, field, warp, context, access, mask),
        Kind::CopyTensorMap => tensor_maps::copy(instruction, warp, context, access, mask),
        Kind::Trap => {
            if mask == 0 {
                warp.control.advance();
                return Effect::Plain;
            }
            Effect::Fault { lane: mask.trailing_zeros() as u8, cause: FaultCause::Trap }
        }
    }
}

/// What lanes do together: they wait for each other, and then do it at once.
#[inline(always)]
fn gather<const VERSION: usize>(instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    if mask == 0 {
        warp.control.advance();
        return Effect::Plain;
    }
    let WarpState { control, registers, constants, .. } = warp;
    let members = u32::read(registers, &constants.0, instruction.sources[3]);
    match instruction.kind {
        Kind::Collective => {
            control
                .gather(mask, &members, true, |lanes| run_lanes::<VERSION>(instruction, registers, constants, lanes));
        }
        Kind::WarpBarrierApart => {
            let mask = control.separate(mask, &members);
            control.gather(mask, &members, false, |_| {});
        }
        _ => control.gather(mask, &members, false, |_| {}),
    }
    Effect::Plain
}

/// Lanes arrive at a barrier of their CTA.
#[inline(always)]
fn arrive_at_barrier(kind: BarrierKind, instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    let first = mask.trailing_zeros() as usize;
    if mask == 0 {
        warp.control.advance();
        return Effect::Plain;
    }
    let barrier = u32::read(&warp.registers, &warp.constants.0, instruction.sources[0])[first];
    let threads = u32::read(&warp.registers, &warp.constants.0, instruction.sources[1])[first];
    // In machine code one register may have both.
    let (barrier, threads) =
        if instruction.memory.pairs { (barrier & 0xffff, barrier >> 16 & 0xfff) } else { (barrier, threads) };
    if barrier >= u32::from(NUMBERED_BARRIERS) {
        let cause = FaultCause::Unsupported(format!("barrier {barrier} of {NUMBERED_BARRIERS}"));
        return Effect::Fault { lane: first as u8, cause };
    }
    let predicate = warp.registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0]);
    let target = match kind {
        BarrierKind::ReducePopulation => ReductionTarget::Row(instruction.destinations[0]),
        BarrierKind::ReduceAnd | BarrierKind::ReduceOr if instruction.destinations[0] != SINK_ROW => {
            ReductionTarget::Row(instruction.destinations[0])
        }
        BarrierKind::ReduceAnd | BarrierKind::ReduceOr => {
            ReductionTarget::Predicate(instruction.predicate_destinations[0])
        }
        BarrierKind::Sync | BarrierKind::Arrive => ReductionTarget::None,
    };
    warp.control.arrive_at_barrier(barrier as u8, kind, target, mask);
    let threads = (threads != 0).then_some(threads);
    Effect::Barrier(BarrierArrival { barrier: barrier as u8, kind, threads, mask, predicate: predicate & mask })
}

/// The warp sleeps as long as the lane that asks for the longest time.
#[inline(always)]
fn sleep(instruction: &Instruction, warp: &mut WarpState, mask: u32) -> Effect {
    if mask == 0 {
        warp.control.advance();
        return Effect::Plain;
    }
    let nanoseconds = u32::read(&warp.registers, &warp.constants.0, instruction.sources[0]);
    let longest = lanes(mask).map(|lane| nanoseconds[lane]).max();
    warp.control.advance();
    Effect::Sleep(longest.unwrap_or(0))
}

/// The condition that control flow and loads of machine code may have beside their guard.
#[inline(always)]
pub(in crate::interpreter) fn condition(instruction: &Instruction, registers: &Registers) -> u32 {
    registers.predicate(instruction.predicate_sources[0], instruction.predicate_flips[0])
}

#[inline(always)]
fn run_lanes<const VERSION: usize>(
    instruction: &Instruction,
    registers: &mut Registers,
    constants: &LaunchConstants,
    mask: u32,
) {
    // SAFETY: the instruction, the registers and the constants are of one decoded program; version 1 is only reached through
    // `step_vectorised` and `plain`, which are handed out after a check of the processor's features.
    unsafe { instruction.functions[VERSION](instruction, registers, &constants.0, mask) }
    if mask != u32::MAX && instruction.uniform != UniformResult::default() {
        spread(instruction.uniform, registers, mask.trailing_zeros() as usize % LANES);
    }
}

/// All lanes get what one has written to uniform registers.
#[cold]
fn spread(result: UniformResult, registers: &mut Registers, lane: usize) {
    for row in registers.rows.iter_mut().skip(result.row.into()).take(result.rows.into()) {
        row.0 = [row.0[lane]; LANES];
    }
    for number in lanes(result.predicates.into()) {
        let slot = uniform_predicate(number as u8);
        let is_true = registers.predicate(slot, 0) >> lane & 1 != 0;
        registers.set_predicate(slot, if is_true { u32::MAX } else { 0 }, u32::MAX);
    }
}

fn read_counter(instruction: &Instruction, registers: &mut Registers, context: &StepContext, mask: u32) {
    let (value, wide) = match instruction.immediate {
        counter::CYCLE_LOW => (context.cycle & 0xffff_ffff, false),
        counter::CYCLE_HIGH => (context.cycle >> 32, false),
        counter::CYCLE => (context.cycle, true),
        counter::TIMER_LOW => (context.nanoseconds & 0xffff_ffff, false),
        counter::TIMER_HIGH => (context.nanoseconds >> 32, false),
        _ => (context.nanoseconds, true),
    };
    if wide && instruction.memory.pairs {
        return u64::write_pair(registers, instruction.destinations[0], &[value; LANES], mask);
    }
    bodies::write_element(registers, instruction.destinations[0], wide, &[value; LANES], mask);
}
