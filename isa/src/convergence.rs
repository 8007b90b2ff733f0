//! Which lanes of a warp are where, and where they meet again.
//!
//! Lanes that part at a branch meet at its immediate post-dominator. A `Point` collects them there; a `Split` is a set of lanes
//! with one program counter. One split runs at a time; it is the one whose program counter and lanes [`Control`] holds.
//!
//! | room | what it holds |
//! |---|---|
//! | this file | the state of a warp's control flow; branches and the end of lanes |
//! | `points` | where lanes wait for the lanes they parted from |
//! | `meeting` | how lanes come to points and meet there |
//! | `calls` | calls and returns of functions |
//! | `barriers` | convergence barriers of machine code, where lanes meet as the code says rather than at post-dominators |
//! | `waiting` | lanes that wait at barriers of the CTA, or for other lanes at the same instruction |
//! | `fairness` | which split runs next, and how long lanes wait for others that do not come |
//!
//! Splits of a warp take turns, so that a spin lock between lanes of one warp ends. A call makes a point where its lanes meet as they return.
//!
//! **Invariant:** a point of a call is reached by returns alone, never because a program counter matches: a function that calls itself comes by the same
//! instructions in another frame.

mod barriers;
mod calls;
mod fairness;
mod meeting;
mod points;
mod waiting;

use crate::lanes::{LANES, lanes};
use crate::operation::NEVER;
use points::{NO_POINT, Points};
use serde::{Deserialize, Serialize};
pub(crate) use waiting::ReductionTarget;

/// The reason for which a split does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// Nothing but its turn.
    Runnable,
    /// The release of a barrier of the CTA; its reduction writes to the target.
    Barrier(u8, ReductionTarget),
    /// Those that it meets at a convergence barrier.
    Converging(u8),
    /// The other lanes that its member mask names, with the same mask: where `same_pc`, at the same instruction; else at any that
    /// gathers lanes.
    Gathering { members: u32, same_pc: bool },
}

/// Lanes with one program counter that do not run now.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Split {
    pc: u32,
    mask: u32,
    /// The innermost point where these lanes meet others.
    point: u16,
    state: State,
}

/// Convergence barriers of a warp.
pub(crate) const CONVERGENCE_BARRIERS: usize = 16;

/// For each barrier the lanes that each lane meets there.
type Barriers = Vec<[u32; LANES]>;

/// Control flow of one warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Control {
    /// The running split's program counter.
    pub pc: u32,
    /// The running split's lanes; 0 if no lane can run.
    pub mask: u32,
    /// Lanes that have not ended.
    pub live: u32,
    /// The innermost point where the running split meets others.
    point: u16,
    /// The program counter of that point; `NEVER` if lanes come to it by a return.
    reconvergence: u32,
    /// Backward branches since the running split was selected.
    turn: u32,
    /// Backward branches since a split last had to let others run, whichever splits have run since.
    overdue: u32,
    /// Backward branches, and more for synchronising accesses, since lanes last met.
    patience: u32,
    /// Nothing else can run, so the running split does not wait for other lanes.
    alone: bool,
    /// The splits that do not run. The last runnable one runs next.
    splits: Vec<Split>,
    points: Points,
    /// For machine code: the lanes that meet at convergence barriers. Empty until there is one.
    barriers: Barriers,
}

impl Control {
    /// Puts all lanes of a mask at the first instruction.
    pub fn reset(&mut self, mask: u32) {
        self.pc = 0;
        self.mask = mask;
        self.live = mask;
        self.point = NO_POINT;
        self.reconvergence = NEVER;
        self.turn = 0;
        self.overdue = 0;
        self.patience = 0;
        self.alone = false;
        self.splits.clear();
        self.points.clear();
        self.barriers.clear();
    }

    /// The running split goes to the next instruction.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.pc += 1;
        if self.pc == self.reconvergence {
            self.meet();
        }
    }

    /// The running split's lanes of `taken` go to `target`; they meet the others at `reconvergence`. True where they part.
    pub fn branch(&mut self, target: u32, reconvergence: u32, taken: u32) -> bool {
        let backward = target <= self.pc;
        let others = self.mask & !taken;
        if others == 0 {
            self.pc = target;
        } else if taken == 0 {
            self.pc += 1;
        } else {
            self.expect_meeting(reconvergence);
            let next = self.pc + 1;
            if target == self.reconvergence {
                self.leave_at_point(taken);
                (self.pc, self.mask) = (next, others);
            } else if next == self.reconvergence {
                self.leave_at_point(others);
                (self.pc, self.mask) = (target, taken);
            } else {
                self.set_aside(target, taken, State::Runnable);
                (self.pc, self.mask) = (next, others);
            }
        }
        if self.pc == self.reconvergence {
            self.meet();
        }
        if backward {
            self.take_turns();
        }
        others != 0 && taken != 0
    }

    /// The lanes of `taken` go to their targets, the others of the running split to the next instruction; they meet at
    /// `reconvergence`. True where lanes part.
    pub fn branch_many(&mut self, targets: &[u32; LANES], reconvergence: u32, taken: u32) -> bool {
        let all = self.mask;
        let Some(first) = first_lane(all) else { return false };
        let mut places = [self.pc + 1; LANES];
        for lane in lanes(taken) {
            places[lane] = targets[lane];
        }
        if lanes_with(&places, places[first]) & all == all {
            return self.branch(places[first], reconvergence, all);
        }
        let backward = (0..LANES).any(|lane| (taken >> lane) & 1 != 0 && targets[lane] <= self.pc);
        self.expect_meeting(reconvergence);
        self.mask = 0;
        let mut rest = all;
        while let Some(lane) = first_lane(rest) {
            let lanes = lanes_with(&places, places[lane]) & rest;
            rest &= !lanes;
            self.part(places[lane], lanes);
        }
        if backward {
            self.take_turns();
        }
        true
    }

    /// Lanes that have been taken from the running split go to `pc`, or wait there where that is the present point. The first
    /// lanes that do not wait become the running split.
    fn part(&mut self, pc: u32, mask: u32) {
        if pc == self.reconvergence {
            self.leave_at_point(mask);
        } else if self.mask == 0 {
            (self.pc, self.mask) = (pc, mask);
        } else {
            self.set_aside(pc, mask, State::Runnable);
        }
    }

    /// Lanes become a split that does not run now, and that meets others where the running split does.
    fn set_aside(&mut self, pc: u32, mask: u32, state: State) {
        self.splits.push(Split { pc, mask, point: self.point, state });
    }

    /// Lanes of `rest` take the running instruction later, apart from the others, which they meet at the next one.
    pub fn postpone(&mut self, rest: u32) {
        self.expect_meeting(self.pc + 1);
        self.set_aside(self.pc, rest, State::Runnable);
        self.mask &= !rest;
    }

    /// Lanes of the running split end; the others go on.
    pub fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        self.points.expect_no_longer(self.point, mask);
        if mask != 0 {
            // Those that gather lanes may have waited for these.
            for split in &mut self.splits {
                if let State::Gathering { .. } = split.state {
                    split.state = State::Runnable;
                }
            }
        }
        self.mask &= !mask;
        if mask != 0 && !self.barriers.is_empty() {
            self.release_complete();
        }
        if self.mask != 0 {
            self.advance();
            return;
        }
        self.close_points();
        self.select();
    }
}

fn first_lane(mask: u32) -> Option<usize> {
    if mask == 0 { None } else { Some(mask.trailing_zeros() as usize) }
}

/// The lanes that have a value.
fn lanes_with(values: &[u32; LANES], value: u32) -> u32 {
    let mut lanes = 0;
    for (lane, other) in values.iter().enumerate() {
        lanes |= u32::from(*other == value) << lane;
    }
    lanes
}

#[cfg(test)]
mod tests;
