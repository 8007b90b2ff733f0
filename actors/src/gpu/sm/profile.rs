//! The counts of an SM for each instruction, where a run asks for them.
//!
//! A run that does not ask has [`NoProfile`], whose functions do nothing: the compiler makes an SM of its own for each of the two. So that
//! this costs nothing, functions that are called from one place of the SM are always inlined: by itself the compiler does not inline them,
//! where there are two SMs.
//!
//! **Invariant:** whatever is charged to the SM's own counters is charged to an instruction as well, when it is and by the same reason, so
//! that the instructions' sums are the SM's counters.

use super::counters::{SmCounters, Stall};
use super::warps::wheel::{WarpSet, members};
use balar_protocol::cuda::ProgramId;
use balar_protocol::statistics::{CtaCounters, StatisticDefinition};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::LazyLock;

balar_protocol::counters! {
    /// The work of an instruction, beside the cycles of its warps.
    pub struct InstructionCounters {
        /// warp instructions executed
        inst_executed: "instruction",
        /// thread instructions executed, lanes inside the active mask
        thread_inst_executed: "instruction",
        /// thread instructions executed whose guard was true
        thread_inst_executed_pred_on: "instruction",
        /// shared-memory wavefronts of loads
        shared_wavefronts_load: "wavefront",
        /// shared-memory wavefronts of stores
        shared_wavefronts_store: "wavefront",
        /// shared-memory wavefronts beyond the least possible
        shared_memory_bank_conflicts: "wavefront",
        /// loads that asked L1 for sectors: executions with a lane that the guard did not keep from it
        l1_accesses_load: "access",
        /// stores that sent sectors through L1, in the same way
        l1_accesses_store: "access",
        /// sectors that global loads asked L1 for
        l1_sectors_load: "sector",
        /// sectors that global stores sent through L1
        l1_sectors_store: "sector",
        /// sectors of loads that hit in L1, those on their way for another load included
        l1_sector_hits_load: "sector",
        /// sectors of loads that this SM asked the L2 for
        l2_sectors_load: "sector",
    }
}

/// Counters of an SM that an instruction has, too: issued instructions, and the reasons of cycles.
fn is_of_instructions(definition: &StatisticDefinition) -> bool {
    definition.name == "inst_issued" || definition.name.starts_with("stall_")
}

/// The counters of each instruction.
static COLUMNS: LazyLock<Vec<StatisticDefinition>> = LazyLock::new(|| {
    let of_sm = SmCounters::DEFINITIONS.iter().filter(|definition| is_of_instructions(definition));
    InstructionCounters::DEFINITIONS.iter().chain(of_sm).copied().collect()
});

/// The counters of each instruction, in the order of [`CodeProfile::counts`].
pub fn columns() -> &'static [StatisticDefinition] {
    &COLUMNS
}

/// Takes events of instructions.
pub trait Profile: Clone + Debug + Default + Send + Serialize + DeserializeOwned + 'static {
    /// Does it keep anything?
    const IS_KEPT: bool;

    /// Does it know the program?
    fn knows(&self, program: ProgramId) -> bool;
    /// A program of so many instructions comes, which it does not know.
    fn enter(&mut self, program: ProgramId, instructions: usize);
    /// Its counts of each program.
    fn codes(&self) -> &[CodeProfile];
    /// Forgets all programs. No warp is there.
    fn clear(&mut self);

    /// A warp begins to run a program that it knows.
    fn begin(&mut self, warp: usize, program: ProgramId);
    /// The following events belong to the instruction at `pc`, which is the warp's next, until another one is named.
    fn next_is(&mut self, warp: usize, pc: u32);
    /// The instruction issues: that cycle is its own. It stands for so many of the GPU's own instructions.
    fn issued(&mut self, warp: usize, passes: u64);
    /// It has been executed in these lanes. Its guard let the lanes in `executed` do so.
    fn executed(&mut self, warp: usize, active: u32, executed: u32);
    /// An access that it made has been counted.
    fn accessed(&mut self, warp: usize, before: &CtaCounters, after: &CtaCounters);
    /// So many cycles of the warp are charged to a reason.
    fn stalled(&mut self, warp: usize, stall: Stall, cycles: u64);
    /// So many cycles are not, after all.
    fn refunded(&mut self, warp: usize, stall: Stall, cycles: u64);
    /// So many cycles of each of these warps are charged to a reason.
    fn all_stalled(&mut self, warps: WarpSet, stall: Stall, cycles: u64);
    /// A cycle of each of these warps, which could have issued.
    fn not_selected(&mut self, warps: WarpSet);
    /// From a cycle on these warps wait for room below the L1.
    fn throttled(&mut self, warps: WarpSet, cycle: u64);
    /// They are charged for that up to a cycle.
    fn throttle_charged(&mut self, warps: WarpSet, cycle: u64);
}

/// The counts of an SM for a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CodeProfile {
    /// The program.
    pub program: ProgramId,
    rows: Vec<Row>,
}

impl CodeProfile {
    /// Instruction by instruction: its counts, in the order of [`columns`].
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.rows.iter().flat_map(|row| {
            let of_sm = SmCounters::DEFINITIONS.iter().zip(row.cycles.values());
            let of_sm = of_sm.filter(|(definition, _)| is_of_instructions(definition)).map(|(_, count)| count);
            row.counters.values().chain(of_sm)
        })
    }
}

/// The counts of an instruction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Row {
    counters: InstructionCounters,
    /// The SM's counters that an instruction has.
    cycles: SmCounters,
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct NoProfile;

impl Profile for NoProfile {
    const IS_KEPT: bool = false;

    fn knows(&self, _: ProgramId) -> bool {
        true
    }

    fn enter(&mut self, _: ProgramId, _: usize) {}

    fn codes(&self) -> &[CodeProfile] {
        &[]
    }

    fn clear(&mut self) {}

    fn begin(&mut self, _: usize, _: ProgramId) {}

    #[inline(always)]
    fn next_is(&mut self, _: usize, _: u32) {}

    #[inline(always)]
    fn issued(&mut self, _: usize, _: u64) {}

    #[inline(always)]
    fn executed(&mut self, _: usize, _: u32, _: u32) {}

    #[inline(always)]
    fn accessed(&mut self, _: usize, _: &CtaCounters, _: &CtaCounters) {}

    #[inline(always)]
    fn stalled(&mut self, _: usize, _: Stall, _: u64) {}

    #[inline(always)]
    fn refunded(&mut self, _: usize, _: Stall, _: u64) {}

    #[inline(always)]
    fn all_stalled(&mut self, _: WarpSet, _: Stall, _: u64) {}

    #[inline(always)]
    fn not_selected(&mut self, _: WarpSet) {}

    #[inline(always)]
    fn throttled(&mut self, _: WarpSet, _: u64) {}

    #[inline(always)]
    fn throttle_charged(&mut self, _: WarpSet, _: u64) {}
}

/// Counts of each instruction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ByInstruction {
    codes: Vec<CodeProfile>,
    warps: Vec<Place>,
}

/// Where a warp is.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Place {
    /// The place of its program.
    code: usize,
    /// The instruction to which its cycles are charged.
    pc: u32,
    /// Where it waits for room below the L1: since when, or up to when that is charged.
    throttled_since: u64,
}

impl ByInstruction {
    fn row(&mut self, warp: usize) -> &mut Row {
        let Place { code, pc, .. } = self.warps[warp];
        &mut self.codes[code].rows[pc as usize]
    }
}

impl Profile for ByInstruction {
    const IS_KEPT: bool = true;

    fn knows(&self, program: ProgramId) -> bool {
        self.codes.iter().any(|code| code.program == program)
    }

    fn enter(&mut self, program: ProgramId, instructions: usize) {
        self.codes.push(CodeProfile { program, rows: vec![Row::default(); instructions] });
    }

    fn codes(&self) -> &[CodeProfile] {
        &self.codes
    }

    fn clear(&mut self) {
        self.codes.clear();
    }

    fn begin(&mut self, warp: usize, program: ProgramId) {
        if self.warps.len() <= warp {
            self.warps.resize(warp + 1, Place::default());
        }
        let code = self.codes.iter().position(|code| code.program == program);
        self.warps[warp] = Place { code: code.expect("a program comes before its warps"), ..Place::default() };
    }

    fn next_is(&mut self, warp: usize, pc: u32) {
        self.warps[warp].pc = pc;
    }

    fn issued(&mut self, warp: usize, passes: u64) {
        let cycles = &mut self.row(warp).cycles;
        cycles.inst_issued += passes;
        cycles.stall_none_selected += 1;
    }

    fn executed(&mut self, warp: usize, active: u32, executed: u32) {
        let counters = &mut self.row(warp).counters;
        counters.inst_executed += 1;
        counters.thread_inst_executed += u64::from(active.count_ones());
        counters.thread_inst_executed_pred_on += u64::from(executed.count_ones());
    }

    fn accessed(&mut self, warp: usize, before: &CtaCounters, after: &CtaCounters) {
        let counters = &mut self.row(warp).counters;
        counters.shared_wavefronts_load += after.shared_wavefronts_load - before.shared_wavefronts_load;
        counters.shared_wavefronts_store += after.shared_wavefronts_store - before.shared_wavefronts_store;
        counters.shared_memory_bank_conflicts +=
            after.shared_memory_bank_conflicts - before.shared_memory_bank_conflicts;
        let (load, store) =
            (after.l1_sectors_load - before.l1_sectors_load, after.l1_sectors_store - before.l1_sectors_store);
        counters.l1_accesses_load += u64::from(load > 0);
        counters.l1_accesses_store += u64::from(store > 0);
        counters.l1_sectors_load += load;
        counters.l1_sectors_store += store;
        counters.l1_sector_hits_load += after.l1_sector_hits_load - before.l1_sector_hits_load;
        counters.l2_sectors_load += after.l2_sectors_load - before.l2_sectors_load;
    }

    fn stalled(&mut self, warp: usize, stall: Stall, cycles: u64) {
        stall.charge(&mut self.row(warp).cycles, cycles);
    }

    fn refunded(&mut self, warp: usize, stall: Stall, cycles: u64) {
        stall.refund(&mut self.row(warp).cycles, cycles);
    }

    fn all_stalled(&mut self, warps: WarpSet, stall: Stall, cycles: u64) {
        members(warps).for_each(|warp| self.stalled(warp, stall, cycles));
    }

    fn not_selected(&mut self, warps: WarpSet) {
        members(warps).for_each(|warp| self.row(warp).cycles.stall_not_selected += 1);
    }

    fn throttled(&mut self, warps: WarpSet, cycle: u64) {
        members(warps).for_each(|warp| self.warps[warp].throttled_since = cycle);
    }

    fn throttle_charged(&mut self, warps: WarpSet, cycle: u64) {
        for warp in members(warps) {
            let since = std::mem::replace(&mut self.warps[warp].throttled_since, cycle);
            self.stalled(warp, Stall::LgThrottle, cycle - since);
        }
    }
}
