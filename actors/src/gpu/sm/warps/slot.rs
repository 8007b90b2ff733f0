//! A warp slot of an SM: the scheduler's knowledge of the warp, and the values that it works on.

use super::copies::{BulkOfWarp, Copies, CopyKind};
use super::hazards::Hazards;
use super::image_reads::ImageReads;
use super::products::Products;
use super::readiness::Readiness;
use super::unwaited::Unwaited;
use crate::gpu::sm::counters::{SmCounters, Stall};
use balar_isa::program::{Pipe, Program};
use balar_isa::warp::WarpState;
use balar_protocol::cuda::ProgramId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The scheduler's knowledge of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// No warp.
    Empty,
    /// Ready, in the wheel, or waiting for room below the L1.
    Scheduled,
    /// Waits for an answer of the memory system.
    Memory,
    /// Waits for the value that an atomic of its SM leaves.
    Value,
    /// Waits for a line of code or constants.
    Fetch,
    /// Waits at a CTA barrier.
    Barrier,
    /// Waits for its stores to be acknowledged, at a fence.
    Fence,
    /// Waits for copies to shared memory.
    Copies,
    /// Waits for copies of many bytes.
    BulkCopies,
    /// Has ended, and waits for its copies and the answers of its atomics to come.
    Draining,
}

impl Status {
    /// The wait for copies of a kind.
    pub fn of_copies(kind: CopyKind) -> Status {
        match kind {
            CopyKind::Words => Status::Copies,
            CopyKind::Bulk => Status::BulkCopies,
        }
    }
}

/// A first instruction that no line has, and that lies far behind every instruction.
const NOWHERE: u32 = 1 << 31;

/// The fields that are looked at whenever a warp issues: one line of the host's cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(align(64))]
pub struct Warp {
    /// All warp-cycles before this cycle have been charged; so are those in which it is ready, or waits together with others.
    pub charged_until: u64,
    /// Where it waits for a known cycle, `charged_until`: since when.
    pub stalled_from: u64,
    /// When it came.
    pub start_cycle: u64,
    /// When its last store leaves the SM.
    pub stores_leave: u64,
    /// Counts the warps that had this slot: late responses for an aborted one are told by it.
    pub generation: u32,
    /// The first instruction of the line of code it issued from last.
    pub fetched: u32,
    /// Stores and reductions not acknowledged yet, and atomics not answered.
    pub outstanding: u32,
    /// The warp's number in its CTA.
    pub warp_in_cta: u32,
    /// For a warp that waits for a value: the key of the atomic that leaves the value.
    pub waits_for: u32,
    /// The code's number.
    pub program_id: ProgramId,
    /// The CTA's slot.
    pub cta: u16,
    /// The place of its launch among those that are here.
    pub party: u8,
    /// Its wait.
    pub status: Status,
    /// Why it cannot issue.
    pub stall: Stall,
    /// The place of the next instruction's pipe among [`Pipe::ALL`].
    pub pipe: u8,
    /// It has atomics that give values back.
    pub expects_answers: bool,
}

impl Default for Warp {
    fn default() -> Self {
        Warp {
            charged_until: 0,
            stalled_from: 0,
            start_cycle: 0,
            stores_leave: 0,
            generation: 0,
            fetched: NOWHERE,
            outstanding: 0,
            warp_in_cta: 0,
            waits_for: 0,
            program_id: ProgramId::default(),
            cta: 0,
            party: 0,
            status: Status::Empty,
            stall: Stall::NoInstruction,
            pipe: Pipe::Free as u8,
            expects_answers: false,
        }
    }
}

impl Warp {
    /// Whether it waits for a line of code or constants, for this reason.
    #[inline]
    pub fn awaits_line(&self, stall: Stall) -> bool {
        self.status == Status::Fetch && self.stall == stall
    }

    /// It issues an instruction in `cycle`, which is charged to that.
    #[inline]
    pub fn issue(&mut self, counters: &mut SmCounters, cycle: u64, passes: u64) {
        counters.inst_issued += passes;
        counters.stall_none_selected += 1;
        self.charged_until = cycle + 1;
        self.stall = Stall::Wait;
    }
}

/// The state of a warp; kept when it ends, so that the next one reuses its memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Context {
    /// Registers and control flow.
    pub state: Option<WarpState>,
    /// The code; named by the warp's `program_id` in a saved state.
    #[serde(skip)]
    pub program: Option<Arc<Program>>,
    /// When its instructions are ready.
    pub readiness: Readiness,
    /// The pending reads and writes, where hazards are checked.
    pub hazards: Hazards,
    /// The copies and products that are not waited for, where hazards are checked.
    pub unwaited: Unwaited,
    /// Machine code: reads of textures and surfaces that are under way.
    pub image_reads: ImageReads,
    /// Copies to shared memory.
    pub copies: Copies,
    /// Copies of many bytes.
    pub bulk: BulkOfWarp,
    /// Products of matrices by groups of warps.
    pub products: Products,
    /// The threads' local memory, lane by lane.
    pub local: Vec<u8>,
}

/// The message about a context without a program or a state.
const NO_PROGRAM: &str = "a warp that is placed has a program and a state";

impl Context {
    /// The copies of one kind that are under way.
    pub fn copies_of(&mut self, kind: CopyKind) -> &mut Copies {
        match kind {
            CopyKind::Words => &mut self.copies,
            CopyKind::Bulk => &mut self.bulk.groups,
        }
    }

    /// The program and the state of a warp that has been placed.
    #[inline]
    pub fn parts(&mut self) -> (&Program, &mut WarpState, &mut Readiness) {
        (self.program.as_deref().expect(NO_PROGRAM), self.state.as_mut().expect(NO_PROGRAM), &mut self.readiness)
    }

    /// The state of a warp that has been placed.
    #[inline]
    pub fn state(&self) -> &WarpState {
        self.state.as_ref().expect(NO_PROGRAM)
    }

    /// The code of a warp that has been placed.
    #[inline]
    pub fn program(&self) -> &Program {
        self.program.as_deref().expect(NO_PROGRAM)
    }
}
