//! A CTA that runs for its values alone: its warps, and which of them can go on.

use crate::engine::state::{CodeSource, StateError, complete_launch};
use crate::gpu::sm::lane_memory;
use crate::gpu::sm::warps::Place;
use crate::gpu::sm::warps::cta::{Completion, CtaSlot};
use crate::gpu::sm::warps::slot::Context;
use balar_isa::machine::LaunchConstants;
use balar_isa::program::Program;
use balar_isa::warp::{WarpShape, WarpState};
use balar_protocol::cta::CtaCluster;
use balar_protocol::cuda::KernelLaunch;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::sync::Arc;

/// Warp instructions that a CTA runs before another one's turn comes, unless it waits before: other CTAs may be waited for.
const CTA_TURN: u32 = 1 << 16;

/// The wait of a warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waits {
    /// Nothing.
    #[default]
    Nothing,
    /// A barrier of its CTA.
    Barrier,
    /// The end of the epoch: others may have written by then the value that it looks for.
    Epoch,
    /// The end of the epoch, which tells the result of the atomic or the heap operation at this instruction.
    Answer(u32),
}

/// A warp; its registers and state are kept when it ends, so that the next one reuses its memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FunctionalWarp {
    pub context: Context,
    pub waits: Waits,
    /// Loads in this epoch by which it may wait for others.
    pub polls: u32,
}

/// CTAs that have ended whose memory a thread of the engine keeps.
const MOST_KEPT: usize = 64;

/// The memory of a CTA that has ended.
#[derive(Default)]
struct Ended {
    warps: Vec<FunctionalWarp>,
    shared: Vec<u8>,
}

thread_local! {
    /// CTAs that have ended on any SM that this thread runs, the latest last: their memory is still in the processor's cache.
    static ENDED: RefCell<Vec<Ended>> = const { RefCell::new(Vec::new()) };
}

/// A CTA, or a slot that is free.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FunctionalCta {
    /// Shared memory, barriers, counters.
    pub slot: CtaSlot,
    /// Its warps, perhaps more; none in a slot that is free.
    pub warps: Vec<FunctionalWarp>,
    /// Warps that can go on, a bit each.
    pub ready: u32,
    /// The warp whose turn is next.
    pub next: u32,
    /// Warp instructions until another CTA's turn.
    pub turn: u32,
}

impl FunctionalCta {
    /// A CTA begins.
    pub fn start(
        &mut self,
        launch: &Arc<KernelLaunch>,
        program: &Arc<Program>,
        Place { sm, sm_count, .. }: Place,
        (cta, cluster): ([u32; 3], Option<&CtaCluster>),
        constants: &LaunchConstants,
    ) {
        let shared_bytes = program.resources().addressed_shared_bytes(launch.shared_bytes);
        Ended { warps: self.warps, shared: self.slot.shared } = ENDED.with_borrow_mut(Vec::pop).unwrap_or_default();
        self.slot.start(Arc::clone(launch), cta, shared_bytes, cluster);
        let constants = program.constants_of_rank(constants, self.slot.cluster.rank());
        self.slot.constants = constants.clone();
        let warps = launch.warps_per_cta();
        let mut shape = WarpShape {
            block: launch.block,
            grid: launch.grid,
            cta,
            cluster: launch.cluster.into(),
            warp_in_cta: 0,
            sm,
            sm_count,
            warp_slot: 0,
            warp_slots: warps,
            grid_id: u64::from(launch.id.0),
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            shared_bytes,
            grid_workspace: launch.grid_workspace,
            parameters: Arc::clone(&launch.parameters),
            constants,
        };
        if self.warps.len() < warps as usize {
            self.warps.resize_with(warps as usize, FunctionalWarp::default);
        }
        for (number, warp) in (0..warps).zip(&mut self.warps) {
            (shape.warp_in_cta, shape.warp_slot) = (number, number);
            warp.start(program, &shape);
        }
        self.ready = u32::MAX >> (32 - warps.clamp(1, 32));
        (self.next, self.turn) = (0, CTA_TURN);
    }

    /// The CTA has ended: gives its launch.
    pub fn end(&mut self) -> Option<Arc<KernelLaunch>> {
        let memory = Ended { warps: std::mem::take(&mut self.warps), shared: std::mem::take(&mut self.slot.shared) };
        ENDED.with_borrow_mut(|ended| {
            if ended.len() < MOST_KEPT {
                ended.push(memory);
            }
        });
        self.slot.launch.take()
    }

    /// The next warp that can go on, from the one whose turn is next on.
    #[inline]
    pub fn next_ready(&self) -> Option<usize> {
        let later = self.ready & (u32::MAX << self.next);
        let from = if later == 0 { self.ready } else { later };
        (from != 0).then(|| from.trailing_zeros() as usize)
    }

    /// Another CTA's turn has come.
    pub fn begin_turn(&mut self) {
        self.turn = CTA_TURN;
    }

    /// A warp cannot go on.
    pub fn wait(&mut self, warp: usize, waits: Waits) {
        self.warps[warp].waits = waits;
        self.ready &= !(1 << warp);
    }

    /// An epoch has ended: who waited for that goes on.
    pub fn epoch_ended(&mut self) {
        let warps = self.slot.launch.as_ref().map_or(0, |launch| launch.warps_per_cta() as usize);
        for (number, warp) in self.warps[..warps].iter_mut().enumerate() {
            warp.polls = 0;
            if matches!(warp.waits, Waits::Epoch | Waits::Answer(_)) {
                warp.waits = Waits::Nothing;
                self.ready |= 1 << number;
            }
        }
    }

    /// Does any warp go on by itself, now or when the epoch has ended?
    pub fn goes_on(&self) -> bool {
        self.ready != 0 || self.of_launch().iter().any(|warp| matches!(warp.waits, Waits::Epoch | Waits::Answer(_)))
    }

    /// Its warps, those that have ended included.
    fn of_launch(&self) -> &[FunctionalWarp] {
        let warps = self.slot.launch.as_ref().map_or(0, |launch| launch.warps_per_cta() as usize);
        &self.warps[..warps]
    }

    /// Warps that wait at barriers.
    pub fn at_barriers(&self) -> usize {
        self.of_launch().iter().filter(|warp| warp.waits == Waits::Barrier).count()
    }

    /// Those that wait at a barrier go on.
    pub fn release_barrier(&mut self, completion: Completion) {
        let warps = self.of_launch().len();
        for (number, warp) in self.warps[..warps].iter_mut().enumerate() {
            let Some(state) = &mut warp.context.state else { continue };
            if state.is_finished() {
                continue;
            }
            state.release_barrier(completion.barrier, completion.reduction);
            if warp.waits == Waits::Barrier && !state.is_blocked() {
                warp.waits = Waits::Nothing;
                self.ready |= 1 << number;
            }
        }
    }

    /// Its threads go on from the barrier of their cluster.
    pub fn release_cluster(&mut self) {
        self.slot.cluster.release();
        self.release_barrier(Completion::OF_CLUSTER);
    }

    /// Gives code to the state that was read back.
    ///
    /// # Errors
    ///
    /// Code is missing.
    pub fn complete(&mut self, codes: &dyn CodeSource) -> Result<(), StateError> {
        let Some(launch) = &mut self.slot.launch else { return Ok(()) };
        complete_launch(launch, codes)?;
        let program = launch.code.program().ok_or(StateError::UnknownCode(launch.code.id()))?;
        for warp in &mut self.warps {
            warp.context.program = Some(Arc::clone(&program));
            if let Some(state) = &mut warp.context.state {
                state.attach(&self.slot.constants);
            }
        }
        Ok(())
    }
}

impl FunctionalWarp {
    fn start(&mut self, program: &Arc<Program>, shape: &WarpShape) {
        let Context { state, program: code, local, .. } = &mut self.context;
        match state {
            Some(state) => state.reset(program, shape),
            None => *state = Some(WarpState::new(program, shape.clone())),
        }
        lane_memory::begin_local(local, program.resources().local_bytes as usize);
        if code.as_ref().is_none_or(|code| !Arc::ptr_eq(code, program)) {
            *code = Some(Arc::clone(program));
        }
        (self.waits, self.polls) = (Waits::Nothing, 0);
    }
}
