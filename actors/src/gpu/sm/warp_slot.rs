//! A warp slot of an SM: the warp's state, its scoreboard, and what it waits for.

use super::copies::Copies;
use super::counters::{SmCounters, Stall};
use balar_isa::program::Program;
use balar_isa::warp::WarpState;
use balar_protocol::cuda::ProgramId;
use std::sync::Arc;

/// When a register can be read, with why it is late in the low bits, so that the later of two is the larger number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready(u64);

impl Ready {
    /// Not known before a response of the memory system arrives.
    pub const PENDING: Ready = Ready((u64::MAX >> 2) << 2 | Stall::LongScoreboard as u64);

    /// From `cycle` on; `stall` (one of the first three reasons) is charged to a warp that waits for it.
    #[inline]
    pub fn at(cycle: u64, stall: Stall) -> Ready {
        debug_assert!((stall as u64) < 3);
        Ready(cycle << 2 | stall as u64)
    }

    /// The cycle.
    #[inline]
    pub fn cycle(self) -> u64 {
        self.0 >> 2
    }

    /// The reason.
    #[inline]
    pub fn stall(self) -> Stall {
        match self.0 & 3 {
            0 => Stall::Wait,
            1 => Stall::LongScoreboard,
            _ => Stall::ShortScoreboard,
        }
    }
}

/// What the scheduler knows of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No warp.
    Empty,
    /// In its sub-core's wheel or ready set.
    Scheduled,
    /// Waits for a response of the memory system.
    Memory,
    /// Waits for a line of code.
    Fetch,
    /// Waits for room below the L1.
    Throttled,
    /// Waits at a CTA barrier.
    Barrier,
    /// Waits for its stores to be acknowledged, at a fence.
    Fence,
    /// Waits for copies to shared memory.
    Copies,
    /// Has ended, and waits for its stores to be acknowledged and its copies to come.
    Draining,
}

/// One warp slot.
#[derive(Debug)]
pub struct WarpSlot {
    /// Registers and control flow; kept when the warp ends, so that the next one reuses its memory.
    pub state: Option<WarpState>,
    /// The code.
    pub program: Option<Arc<Program>>,
    /// The code's number.
    pub program_id: ProgramId,
    /// The line of code it issued from last.
    pub fetched_line: u32,
    /// The CTA's slot.
    pub cta: u16,
    /// The warp's number in its CTA.
    pub warp_in_cta: u32,
    /// Counts the warps that had this slot: late responses for an aborted one are told by it.
    pub generation: u32,
    /// What it waits for.
    pub status: Status,
    /// When each register and predicate can be read.
    pub scoreboard: Vec<Ready>,
    /// Stores and reductions not acknowledged yet, and atomics not answered.
    pub outstanding: u32,
    /// Copies to shared memory.
    pub copies: Copies,
    /// The threads' local memory, lane by lane.
    pub local: Vec<u8>,
    /// First cycle in which it could issue.
    pub ready_cycle: u64,
    /// Why it could not before.
    pub stall: Stall,
    /// All warp-cycles before this cycle have been charged.
    pub charged_until: u64,
    /// When it came.
    pub start_cycle: u64,
}

impl Default for WarpSlot {
    fn default() -> Self {
        WarpSlot {
            state: None,
            program: None,
            program_id: ProgramId::default(),
            fetched_line: u32::MAX,
            cta: 0,
            warp_in_cta: 0,
            generation: 0,
            status: Status::Empty,
            scoreboard: Vec::new(),
            outstanding: 0,
            copies: Copies::default(),
            local: Vec::new(),
            ready_cycle: 0,
            stall: Stall::NoInstruction,
            charged_until: 0,
            start_cycle: 0,
        }
    }
}

impl WarpSlot {
    /// Charges every cycle up to `cycle`: those before `ready_cycle` to the warp's stall, the others to "not selected".
    #[inline]
    pub fn charge_until(&mut self, cycle: u64, counters: &mut SmCounters) {
        let stalled = self.ready_cycle.clamp(self.charged_until, cycle.max(self.charged_until));
        self.stall.charge(counters, stalled - self.charged_until);
        if cycle > stalled {
            counters.stall_not_selected += cycle - stalled;
        }
        self.charged_until = cycle.max(self.charged_until);
    }

    /// From `cycle` on it waits for something without a known end, for this reason.
    pub fn wait(&mut self, status: Status, stall: Stall, cycle: u64, counters: &mut SmCounters) {
        self.charge_until(cycle, counters);
        self.status = status;
        self.stall = stall;
        self.ready_cycle = u64::MAX;
    }
}
