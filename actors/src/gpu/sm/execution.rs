//! The meaning of a warp's next instruction: values, which are computed when it issues.

use super::lane_memory::{Caller, OwnWrites, RecentRanges, SmMemory};
use super::warps::cluster::{Elsewhere, Sent};
use super::warps::cta::CtaSlot;
use super::warps::slot::Context;
use crate::memory::{DeviceMemoryView, WriteLog};
use balar_isa::cluster::shared_base;
use balar_isa::execution::{AccessKind, AccessValues, Effect, MemoryAccess, Space, StepContext};
use balar_isa::interpreter::{
    PlainFunction, RunFunction, StepFunction, Tally, plain_function, run_function, step_function,
};
use balar_isa::machine::{LaunchConstants, LaunchFacts};
use balar_isa::program::{CountClass, Program, Timing, lanes};
use balar_isa::warp::WarpState;
use balar_protocol::cuda::KernelLaunch;
use balar_protocol::memory::WORD_BYTES;
use balar_protocol::statistics::CtaCounters;
use balar_protocol::{Clock, SimTime};

/// Local memory of all warps lies here, above every device address, interleaved word by word over the lanes.
const LOCAL_WINDOW: u64 = 0x7f00_0000_0000;

/// The constants of a launch of machine code on a GPU of so many SMs; those of its module are taken from memory as it is now.
pub fn launch_constants(
    launch: &KernelLaunch,
    program: &Program,
    sm_count: u32,
    view: &DeviceMemoryView,
) -> LaunchConstants {
    let facts = LaunchFacts {
        block: launch.block,
        grid: launch.grid,
        cluster: launch.cluster.into(),
        parameters: &launch.parameters,
        grid_workspace: launch.grid_workspace,
        dynamic_shared_bytes: launch.dynamic_shared_bytes,
        grid_id: u64::from(launch.id.0),
        sm_count,
    };
    program.launch_constants(&facts, |address, bytes| view.read(address, bytes))
}

/// The cycle that is being simulated.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Its number.
    pub cycle: u64,
    /// Whose cycle it is.
    pub clock: Clock,
}

impl Moment {
    /// When the cycle begins. Most instructions do not ask.
    #[inline]
    pub fn time(&self) -> SimTime {
        self.clock.time_of(self.cycle)
    }
}

/// Device memory for a step: its state at the end of the last value epoch, and the SM's writes since.
pub struct Values<'a, 'b, L: OwnWrites = WriteLog> {
    /// The former.
    pub view: &'a DeviceMemoryView<'b>,
    /// The latter.
    pub log: &'a mut L,
    /// The ranges of legal addresses that were used last.
    pub recent: &'a mut RecentRanges,
    /// The name of the step's log entries: the key that its access will have.
    pub token: u32,
    /// The time when the step's log entries take effect.
    pub time: SimTime,
}

/// Steps warps. Nothing in it outlives a step and its effects.
#[derive(Debug)]
pub struct Execution {
    step: StepFunction,
    plain: PlainFunction,
    run: RunFunction,
    /// The access that the last step made.
    pub access: MemoryAccess,
    /// Accesses of the same instruction beyond it.
    pub further: Vec<MemoryAccess>,
    /// The values of that access.
    pub values: Box<AccessValues>,
    /// Where it is one to the shared memory of other CTAs, which is still to be made.
    pub remote: Option<Elsewhere>,
    /// What the copy of the last step sends to other CTAs of the cluster.
    pub sent: Option<Sent>,
    /// For a step that has to be repeated: the token of the atomic that it waits for.
    pub blocked_by: u32,
}

impl Execution {
    /// Nothing has been stepped.
    pub fn new() -> Execution {
        Execution {
            step: step_function(),
            plain: plain_function(),
            run: run_function(),
            access: MemoryAccess::default(),
            further: Vec::new(),
            values: Box::default(),
            remote: None,
            sent: None,
            blocked_by: 0,
        }
    }

    /// Runs the warp's next instruction, a plain one, and counts it.
    #[inline]
    pub fn run_plain(&self, program: &Program, state: &mut WarpState, timing: &Timing, counters: &mut CtaCounters) {
        let active = state.active_mask();
        (self.plain)(program, state);
        count(counters, timing, active, state.executed_mask());
    }

    /// Runs the warp's next instructions as long as they compute on registers alone, at most so many, and counts them: gives how many.
    #[inline]
    pub fn run(&self, program: &Program, state: &mut WarpState, most: u32, tally: &mut Tally) -> u32 {
        (self.run)(program, state, most, tally)
    }

    /// Runs the warp's next instruction and counts it. It reads these clocks: a cycle, and nanoseconds.
    #[inline(always)]
    pub fn step<L: OwnWrites>(
        &mut self,
        context: &mut Context,
        cta: &mut CtaSlot,
        values: Values<L>,
        (cycle, nanoseconds): (u64, u64),
    ) -> Effect {
        let Context { state: Some(state), program: Some(program), local, .. } = context else {
            unreachable!("a warp that is placed has a program and a state");
        };
        let timing = program.timing(state.pc());
        self.further.clear();
        values.recent.of(cta.context);
        let mut memory = SmMemory {
            view: values.view,
            context: cta.context,
            log: values.log,
            time: values.time,
            shared: &mut cta.shared,
            shared_base: shared_base(cta.cluster.rank()),
            cluster: &cta.cluster,
            remote: &mut self.remote,
            sent: &mut self.sent,
            local,
            local_bytes: program.resources().local_bytes as usize,
            recent: values.recent,
            further: &mut self.further,
            token: values.token,
            blocked_by: None,
            caller: Caller {
                launch: cta.launch.as_ref(),
                cta: cta.cta,
                first_thread: state.first_thread(),
                runtime: &mut cta.device_runtime,
            },
        };
        let active = state.active_mask();
        let mut surroundings = StepContext { memory: &mut memory, values: &mut self.values, cycle, nanoseconds };
        let effect = (self.step)(program, state, &mut surroundings, &mut self.access);
        if let Some(token) = memory.blocked_by {
            self.blocked_by = token;
        }
        if !matches!(effect, Effect::Retry) {
            count(&mut cta.counters, timing, active, state.executed_mask());
        }
        effect
    }

    /// A thread's local addresses become addresses of the window in which the 32-bit words of the warp's lanes lie side by side ("local
    /// memory is organized such that consecutive 32-bit words are accessed by consecutive thread IDs", CUDA C++ Programming Guide). What is
    /// larger lies side by side as a whole, which are the same lines. Warps are numbered over all SMs.
    pub fn interleave_local(&mut self, warp_number: u64, lane_bytes: u32) {
        let unit = u64::from(self.access.bytes).max(WORD_BYTES);
        let lane_bytes = u64::from(lane_bytes).next_multiple_of(16);
        let base = LOCAL_WINDOW + warp_number * 32 * lane_bytes.next_multiple_of(128);
        // Lanes that take no part have anything for an address.
        for lane in lanes(self.access.mask) {
            let address = &mut self.access.addresses[lane];
            let within = *address & (unit - 1);
            *address = base + (*address - within) * 32 + lane as u64 * unit + within;
        }
    }
}

/// Lanes of a mask, which is most often full.
#[inline]
fn threads_of(mask: u32) -> u64 {
    if mask == u32::MAX { 32 } else { u64::from(mask.count_ones()) }
}

/// Counts one warp instruction.
#[inline]
fn count(counters: &mut CtaCounters, timing: &Timing, active: u32, executed: u32) {
    let threads = threads_of(executed);
    counters.inst_executed += 1;
    counters.thread_inst_executed += threads_of(active);
    counters.thread_inst_executed_pred_on += threads;
    match timing.count {
        CountClass::Integer => counters.inst_integer += threads,
        CountClass::SingleAdd => counters.flop_sp_add += threads,
        CountClass::SingleMultiply => counters.flop_sp_mul += threads,
        CountClass::SingleFma => counters.flop_sp_fma += threads,
        CountClass::DoubleAdd => counters.flop_dp_add += threads,
        CountClass::DoubleMultiply => counters.flop_dp_mul += threads,
        CountClass::DoubleFma => counters.flop_dp_fma += threads,
        CountClass::Half => counters.flop_hp += threads,
        CountClass::Conversion => counters.inst_bit_convert += threads,
        CountClass::Control => counters.inst_control += 1,
        CountClass::Other | CountClass::Memory | CountClass::Barrier => {}
    }
}

/// Adds the counts of a warp's instructions.
pub fn count_all(counters: &mut CtaCounters, tally: &Tally) {
    let of = |class: CountClass| tally.by_class[class as usize];
    counters.inst_executed += tally.instructions;
    counters.thread_inst_executed += tally.active;
    counters.thread_inst_executed_pred_on += tally.executed;
    counters.inst_integer += of(CountClass::Integer);
    counters.flop_sp_add += of(CountClass::SingleAdd);
    counters.flop_sp_mul += of(CountClass::SingleMultiply);
    counters.flop_sp_fma += of(CountClass::SingleFma);
    counters.flop_dp_add += of(CountClass::DoubleAdd);
    counters.flop_dp_mul += of(CountClass::DoubleMultiply);
    counters.flop_dp_fma += of(CountClass::DoubleFma);
    counters.flop_hp += of(CountClass::Half);
    counters.inst_bit_convert += of(CountClass::Conversion);
    counters.inst_control += of(CountClass::Control);
}

/// Counts one memory instruction.
#[inline]
pub fn count_access(counters: &mut CtaCounters, space: Space, kind: AccessKind) {
    let counter = match (kind, space) {
        (AccessKind::Atomic, _) => &mut counters.inst_atomics,
        (AccessKind::Reduction, _) => &mut counters.inst_reductions,
        (AccessKind::Load, Space::Global) => &mut counters.inst_global_loads,
        (AccessKind::Store, Space::Global) => &mut counters.inst_global_stores,
        (AccessKind::Load, Space::Shared) => &mut counters.inst_shared_loads,
        (AccessKind::Store, Space::Shared) => &mut counters.inst_shared_stores,
        (AccessKind::Load, Space::Local) => &mut counters.inst_local_loads,
        (AccessKind::Store, Space::Local) => &mut counters.inst_local_stores,
        (AccessKind::Load | AccessKind::Store, Space::Constant | Space::Parameter) => return,
    };
    *counter += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_isa::program::LANES;

    /// The addresses of lanes 0, 1 and 31 of a warp whose lanes all access one local address.
    fn interleaved(address: u64, bytes: u8) -> [u64; 3] {
        let mut execution = Execution::new();
        let access = MemoryAccess { mask: u32::MAX, bytes, addresses: [address; LANES], ..MemoryAccess::default() };
        execution.access = access;
        execution.interleave_local(0, 64);
        [0, 1, 31].map(|lane| execution.access.addresses[lane] - LOCAL_WINDOW)
    }

    #[test]
    fn words_of_local_memory_lie_side_by_side() {
        assert_eq!(interleaved(0, 4), [0, 4, 124]);
        assert_eq!(interleaved(8, 4), [256, 260, 380]);
        // Bytes and halves are where their words are.
        assert_eq!(interleaved(1, 1), [1, 5, 125]);
        assert_eq!(interleaved(10, 2), [258, 262, 382]);
        // Two and four words are in the same two and four lines.
        assert_eq!(interleaved(8, 8), [256, 264, 504]);
        assert_eq!(interleaved(16, 16), [512, 528, 1008]);
    }
}
