//! The state of a warp: its registers, its predicates, and which lanes are where.

use crate::cluster::ClusterShape;
use crate::convergence::{Control, ReductionTarget};
use crate::execution::LaneValues;
use crate::interpreter::access::elements::{scatter, write_loaded};
use crate::interpreter::registers::{Lane, Registers, cluster as of_cluster, special};
use crate::lanes::LANES;
use crate::machine::constants::LaunchConstants;
use crate::operation::Kind;
use crate::operation::operand::{Row, TRUE_PREDICATE};
use crate::program::Program;
use crate::program::timing::Timing;
use balar_protocol::prefetch::prefetch_at;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Registers of an instruction that are brought closer: most have no more.
const PREFETCHED: usize = 4;

/// The place of a warp in its launch, and the values of its special registers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WarpShape {
    /// Threads of a CTA in x, y, z (`%ntid`).
    pub block: [u32; 3],
    /// CTAs of the grid (`%nctaid`).
    pub grid: [u32; 3],
    /// This CTA (`%ctaid`).
    pub cta: [u32; 3],
    /// The clusters of the grid.
    pub cluster: ClusterShape,
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
    /// Shared memory, bytes: static, dynamic, and what addresses count before them (`%total_smem_size`, `SR_SMEMSZ`).
    pub shared_bytes: u32,
    /// The device address of a cooperative launch's grid workspace, which cooperative groups read as `%envreg1` (high word) and
    /// `%envreg2` (low word). It is 0 for any other launch.
    pub grid_workspace: u64,
    /// The launch's parameter block.
    pub parameters: Arc<[u8]>,
    /// The launch's constants; where there are none, those that the program has by itself.
    #[serde(skip)]
    pub constants: LaunchConstants,
}

/// A warp's registers and control flow. They are plain values, which serde can write in the middle of a kernel and read back. The
/// program that the warp runs is not part of them; a state is valid with that program alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WarpState {
    pub(crate) registers: Registers,
    /// The launch's constants, which its CTA keeps in a saved state.
    #[serde(skip)]
    pub(crate) constants: LaunchConstants,
    pub(crate) control: Control,
    /// Lanes in which the last instruction took effect.
    pub(crate) executed: u32,
}

impl WarpState {
    /// A warp about to run its first instruction, with the lanes that the block's size gives it.
    pub fn new(program: &Program, shape: WarpShape) -> Self {
        let registers = Registers {
            rows: Vec::new(),
            predicates: Vec::new(),
            carry: 0,
            special: [0; special::COUNT],
            cluster: [0; of_cluster::COUNT],
            parameters: Arc::clone(&shape.parameters),
        };
        let mut warp =
            WarpState { registers, constants: LaunchConstants::default(), control: Control::default(), executed: 0 };
        warp.reset(program, &shape);
        warp
    }

    /// Makes the same state as [`WarpState::new`], in the memory of a warp that has ended.
    pub fn reset(&mut self, program: &Program, shape: &WarpShape) {
        let registers = &mut self.registers;
        registers.rows.resize(usize::from(program.register_rows), Row::ZERO);
        program.zeroed_rows.iter().for_each(|&row| registers.rows[usize::from(row)] = Row::ZERO);
        registers.predicates.clear();
        registers.predicates.resize(usize::from(program.predicate_slots), 0);
        registers.predicates[usize::from(TRUE_PREDICATE)] = u32::MAX;
        registers.carry = 0;
        let threads = shape.block.iter().product::<u32>();
        for axis in 0..3 {
            registers.special[special::BLOCK + axis] = shape.block[axis];
            registers.special[special::CTA + axis] = shape.cta[axis];
            registers.special[special::GRID + axis] = shape.grid[axis];
        }
        let cluster = &shape.cluster;
        let (clusters, of_cta, place) =
            (cluster.clusters(shape.grid), cluster.cluster_of(shape.cta), cluster.place_of(shape.cta));
        for axis in 0..3 {
            registers.cluster[of_cluster::INDEX + axis] = of_cta[axis];
            registers.cluster[of_cluster::INDICES + axis] = clusters[axis];
            registers.cluster[of_cluster::CTA + axis] = place[axis];
            registers.cluster[of_cluster::CTAS + axis] = cluster.dimensions[axis];
        }
        registers.cluster[of_cluster::RANK] = cluster.rank_of(shape.cta);
        registers.cluster[of_cluster::SIZE] = cluster.size();
        registers.cluster[of_cluster::IS_EXPLICIT] = u32::from(cluster.is_explicit);
        registers.special[special::SM] = shape.sm;
        registers.special[special::SM_COUNT] = shape.sm_count;
        registers.special[special::WARP] = shape.warp_slot;
        registers.special[special::WARP_COUNT] = shape.warp_slots;
        registers.special[special::GRID_ID_LOW] = shape.grid_id as u32;
        registers.special[special::GRID_ID_LOW + 1] = (shape.grid_id >> 32) as u32;
        registers.special[special::DYNAMIC_SHARED] = shape.dynamic_shared_bytes;
        registers.special[special::TOTAL_SHARED] = shape.shared_bytes;
        registers.special[special::ENVIRONMENT_1] = (shape.grid_workspace >> 32) as u32;
        registers.special[special::ENVIRONMENT_1 + 1] = shape.grid_workspace as u32;
        registers.special[special::ZERO] = 0;
        registers.special[special::ONE] = 1;
        let first = 32 * shape.warp_in_cta;
        registers.special[special::FIRST_THREAD] = first;
        // Most often the warp before was of the same launch: to count its owners again would cost more than the rest.
        if !Arc::ptr_eq(&registers.parameters, &shape.parameters) {
            registers.parameters = Arc::clone(&shape.parameters);
        }
        if shape.constants.0.is_empty() {
            self.constants = LaunchConstants(Arc::clone(&program.constants));
        } else if !self.constants.is(&shape.constants) {
            self.constants = shape.constants.clone();
        }
        let lanes = threads.saturating_sub(first);
        self.control.reset(if lanes >= 32 { u32::MAX } else { (1 << lanes) - 1 });
    }

    /// The number of its first thread in its CTA.
    #[inline]
    pub fn first_thread(&self) -> u32 {
        self.registers.special[special::FIRST_THREAD]
    }

    /// A state that was read back gets its launch's constants.
    pub fn attach(&mut self, constants: &LaunchConstants) {
        self.constants = constants.clone();
    }

    /// Brings the registers closer that an instruction reads and writes, if it does not have many.
    #[inline]
    pub fn prefetch(&self, timing: &Timing) {
        // What is no register is asked for as the last one: a branch would be hard to predict.
        let rows = self.registers.rows.as_slice();
        let last = rows.len().saturating_sub(1);
        for &entry in &timing.dependencies.waits[..PREFETCHED] {
            prefetch_at(rows.as_ptr().wrapping_add(usize::from(entry).min(last)));
        }
    }

    /// The instruction to issue next. Meaningless once finished or blocked.
    #[inline(always)]
    pub fn pc(&self) -> u32 {
        self.control.pc
    }

    /// Lanes that the next instruction runs in, its guard aside.
    #[inline(always)]
    pub fn active_mask(&self) -> u32 {
        self.control.mask
    }

    /// Lanes in which the last instruction took effect: its guard was true.
    #[inline(always)]
    pub fn executed_mask(&self) -> u32 {
        self.executed
    }

    /// Lanes that have not ended.
    #[inline(always)]
    pub fn live_mask(&self) -> u32 {
        self.control.live
    }

    /// Whether all lanes have ended.
    #[inline(always)]
    pub fn is_finished(&self) -> bool {
        self.control.live == 0
    }

    /// Whether no lane can run, because all live lanes wait at barriers of the CTA.
    #[inline(always)]
    pub fn is_blocked(&self) -> bool {
        self.control.live != 0 && self.control.mask == 0
    }

    /// Lets the lanes that wait at this barrier go on. A reduction's result (a population count, or 0 or 1) is the same for all lanes.
    pub fn release_barrier(&mut self, barrier: u8, reduction: Option<u32>) {
        let registers = &mut self.registers;
        let value = reduction.unwrap_or(0);
        self.control.release_barrier(barrier, |target, mask| match target {
            ReductionTarget::None => {}
            ReductionTarget::Row(row) => u32::write(registers, row, &[value; LANES], mask),
            ReductionTarget::Predicate(slot) => {
                registers.set_predicate(slot, if value != 0 { u32::MAX } else { 0 }, mask)
            }
        });
    }

    /// Writes the values that a deferred access at `pc` has read, or the old values of an atomic, to its destination, in these lanes.
    pub fn write_deferred_result(&mut self, program: &Program, pc: u32, values: &LaneValues, mask: u32) {
        let instruction = program.instruction(pc);
        if instruction.kind == Kind::Load {
            write_loaded(instruction, &mut self.registers, values, mask);
        } else if !instruction.memory.is_reduction {
            scatter(instruction, &mut self.registers, values, mask);
        }
    }
}
