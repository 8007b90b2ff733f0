//! Which lanes of a warp are where, and where they meet again.
//!
//! Lanes that part at a branch meet at its immediate post-dominator. A `Point` collects them there; a `Split` is a set of lanes
//! with one program counter. One split runs at a time. Splits take turns at backward branches, and lanes that wait at a point
//! while others spin, or wait at a barrier of the CTA, are let go, so that every lane makes progress.
//!
//! A call makes a point, too, where its lanes meet as they return. It is reached by a return alone, never because a program
//! counter matches: a function that calls itself comes by the same instructions in another frame.

use crate::execution::BarrierKind;
use crate::operation::NEVER;
use crate::program::{LANES, lanes};
use serde::{Deserialize, Serialize};

/// Backward branches after which another split runs.
const TURN: u32 = 8;
/// The same for a loop whose lanes part and meet in each turn.
const OVERDUE: u32 = 512;
/// Backward branches without a meeting of lanes after which those that wait at a point go on alone.
const PATIENCE: u32 = 4_096;
/// What an atomic or a volatile load counts for: a loop of those may wait for the lanes at the point.
const SYNCHRONISING_STEP: u32 = 256;

const NO_POINT: u16 = u16::MAX;

/// Where lanes wait for those they parted from. One that is free has no lanes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Point {
    pc: u32,
    /// Lanes come here by a return from a function.
    is_call: bool,
    /// Lanes that are here.
    waiting: u32,
    /// Lanes that may still come.
    outstanding: u32,
    parent: u16,
}

/// What a barrier's reduction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReductionTarget {
    None,
    Row(u16),
    Predicate(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    Runnable,
    /// At a barrier of the CTA.
    Barrier(u8, ReductionTarget),
    /// At an instruction that wants other lanes of the warp, at the same instruction where true.
    Gathering(bool),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Split {
    pc: u32,
    mask: u32,
    point: u16,
    state: State,
}

/// Control flow of one warp.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Control {
    /// The running split's program counter.
    pub pc: u32,
    /// Its lanes; 0 = none can run.
    pub mask: u32,
    /// Lanes that have not ended.
    pub live: u32,
    point: u16,
    /// Where the running split meets others.
    reconvergence: u32,
    turn: u32,
    /// Backward branches since a split last had to let others run, whatever splits of its own it has gone through.
    overdue: u32,
    patience: u32,
    /// Nothing else can run: do not wait for other lanes.
    alone: bool,
    splits: Vec<Split>,
    points: Vec<Point>,
    free_points: Vec<u16>,
}

impl Control {
    /// All lanes of a mask at the first instruction.
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
        self.free_points.clear();
    }

    /// The running split goes to the next instruction.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.pc += 1;
        if self.pc == self.reconvergence {
            self.meet();
        }
    }

    /// Counts an access by which lanes may wait for each other.
    pub fn synchronising_step(&mut self) {
        self.patience = self.patience.saturating_add(SYNCHRONISING_STEP);
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
                self.splits.push(Split { pc: target, mask: taken, point: self.point, state: State::Runnable });
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

    /// The lanes of `calling` go to their functions, each to its entry of `targets`; the other lanes of the running split wait
    /// at the next instruction for their return. True where lanes part.
    pub fn call(&mut self, targets: &[u32; LANES], calling: u32) -> bool {
        let Some(first) = first_lane(calling) else {
            self.advance();
            return false;
        };
        let others = self.mask & !calling;
        self.point = self.new_point(self.pc + 1, true);
        self.reconvergence = NEVER;
        if others != 0 {
            self.leave_at_point(others);
        }
        self.pc = targets[first];
        self.mask = lanes_with(targets, self.pc) & calling;
        let mut rest = calling & !self.mask;
        let divergent = others != 0 || rest != 0;
        while let Some(lane) = first_lane(rest) {
            let lanes = lanes_with(targets, targets[lane]) & rest;
            rest &= !lanes;
            self.splits.push(Split { pc: targets[lane], mask: lanes, point: self.point, state: State::Runnable });
        }
        divergent
    }

    /// Where the running split's function returns to; `None` outside functions.
    pub fn return_address(&self) -> Option<u32> {
        let mut point = self.point;
        while point != NO_POINT {
            let here = &self.points[usize::from(point)];
            if here.is_call {
                return Some(here.pc);
            }
            point = here.parent;
        }
        None
    }

    /// Lanes of the running split return from their function and wait for the others that were called with them; the last to
    /// come lets all go on. True where lanes part.
    pub fn leave_function(&mut self, mask: u32) -> bool {
        if mask == 0 {
            self.advance();
            return false;
        }
        let mut point = self.point;
        while point != NO_POINT {
            let here = &mut self.points[usize::from(point)];
            here.outstanding &= !mask;
            if here.is_call {
                here.waiting |= mask;
                break;
            }
            point = here.parent;
        }
        self.mask &= !mask;
        if self.mask != 0 {
            self.advance();
            return true;
        }
        let here = self.points.get(usize::from(point)).copied();
        if let Some(here) = here.filter(|here| self.point == point && here.outstanding == 0) {
            self.free_point(point);
            (self.pc, self.mask) = (here.pc, here.waiting);
            self.enter_point(here.parent);
            self.be_patient();
            if self.pc == self.reconvergence {
                self.meet();
            }
            return false;
        }
        self.close_points();
        self.select();
        true
    }

    /// Lanes of the running split end; the others go on.
    pub fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        let mut point = self.point;
        while point != NO_POINT {
            let here = &mut self.points[usize::from(point)];
            here.outstanding &= !mask;
            point = here.parent;
        }
        if mask != 0 {
            for split in &mut self.splits {
                if let State::Gathering(_) = split.state {
                    split.state = State::Runnable;
                }
            }
        }
        self.mask &= !mask;
        if self.mask != 0 {
            self.advance();
            return;
        }
        self.close_points();
        self.select();
    }

    /// The last lanes that points waited for may have gone: of the innermost point that held others, these go on.
    fn close_points(&mut self) {
        while self.point != NO_POINT {
            let here = self.points[usize::from(self.point)];
            if here.outstanding != 0 {
                break;
            }
            self.free_point(self.point);
            self.point = here.parent;
            if here.waiting != 0 {
                self.splits.push(Split { pc: here.pc, mask: here.waiting, point: here.parent, state: State::Runnable });
                break;
            }
        }
    }

    /// Lanes of the running split arrive at a barrier of the CTA and wait there, unless they only announce themselves.
    pub fn arrive_at_barrier(&mut self, barrier: u8, kind: BarrierKind, target: ReductionTarget, mask: u32) {
        if kind == BarrierKind::Arrive {
            self.advance();
            return;
        }
        self.suspend(mask, State::Barrier(barrier, target));
        self.select();
    }

    /// Lets the lanes at a barrier go on; calls back with the target and the lanes of each reduction.
    pub fn release_barrier(&mut self, barrier: u8, mut write: impl FnMut(ReductionTarget, u32)) {
        for index in 0..self.splits.len() {
            let Split { pc, mask, point, state } = self.splits[index];
            let State::Barrier(at, target) = state else { continue };
            if at != barrier {
                continue;
            }
            write(target, mask);
            self.splits[index].state = State::Runnable;
            self.splits[index].pc = pc + 1;
            // Those that came here apart go on together.
            let same = |other: &Split| other.state == State::Runnable && other.pc == pc + 1 && other.point == point;
            if let Some(earlier) = self.splits[..index].iter().position(same) {
                self.splits[earlier].mask |= mask;
                self.splits[index].mask = 0;
            }
        }
        self.splits.retain(|split| split.mask != 0);
        if self.mask == 0 {
            self.select();
        }
    }

    /// Waits until the lanes of `members` that live are at this instruction (`same_pc`), or at any that gathers. Gives the lanes
    /// that run it now, or `None` where the running split waits; [`Control::scatter`] must follow.
    pub fn gather(&mut self, mask: u32, members: u32, same_pc: bool) -> Option<u32> {
        let needed = members & self.live;
        if needed & !mask == 0 {
            self.alone = false;
            return Some(mask);
        }
        let pc = self.pc;
        let joins = |split: &Split| split.state == State::Gathering(same_pc) && (!same_pc || split.pc == pc);
        let together = self.splits.iter().filter(|split| joins(split)).fold(mask, |lanes, split| lanes | split.mask);
        if needed & !together == 0 || std::mem::take(&mut self.alone) {
            self.alone = false;
            for split in self.splits.iter_mut().filter(|split| joins(split)) {
                split.state = State::Runnable;
                split.pc += 1;
            }
            return Some(together);
        }
        self.suspend(mask, State::Gathering(same_pc));
        self.select();
        None
    }

    /// The running split goes on after [`Control::gather`] gave it lanes.
    pub fn scatter(&mut self) {
        self.advance();
    }

    /// Lanes of `rest` take the running instruction later, apart from the others, which they meet at the next one.
    pub fn postpone(&mut self, rest: u32) {
        self.expect_meeting(self.pc + 1);
        self.splits.push(Split { pc: self.pc, mask: rest, point: self.point, state: State::Runnable });
        self.mask &= !rest;
    }

    /// Puts lanes of the running split aside at this instruction; its others will go on with the next.
    fn suspend(&mut self, mask: u32, state: State) {
        let others = self.mask & !mask;
        if others != 0 {
            self.splits.push(Split { pc: self.pc + 1, mask: others, point: self.point, state: State::Runnable });
        }
        self.splits.push(Split { pc: self.pc, mask, point: self.point, state });
        self.mask = 0;
    }

    /// The running split is about to part; its lanes meet at `reconvergence`, unless they do at the present point already.
    fn expect_meeting(&mut self, reconvergence: u32) {
        if reconvergence != NEVER && reconvergence != self.reconvergence {
            self.point = self.new_point(reconvergence, false);
            self.reconvergence = reconvergence;
        }
    }

    /// Lanes that have been taken from the running split go to `pc`, or wait there where that is the present point. The first
    /// that do not wait become the running split.
    fn part(&mut self, pc: u32, mask: u32) {
        if pc == self.reconvergence {
            self.leave_at_point(mask);
        } else if self.mask == 0 {
            (self.pc, self.mask) = (pc, mask);
        } else {
            self.splits.push(Split { pc, mask, point: self.point, state: State::Runnable });
        }
    }

    fn new_point(&mut self, pc: u32, is_call: bool) -> u16 {
        let point = Point { pc, is_call, waiting: 0, outstanding: self.mask, parent: self.point };
        if let Some(index) = self.free_points.pop() {
            self.points[usize::from(index)] = point;
            return index;
        }
        self.points.push(point);
        // At most one point for each lane, frame of its stack and level of the post-dominator tree that it is in: the stack's
        // limit is what bounds them.
        (self.points.len() - 1) as u16
    }

    fn free_point(&mut self, point: u16) {
        let here = &mut self.points[usize::from(point)];
        (here.waiting, here.outstanding) = (0, 0);
        self.free_points.push(point);
    }

    fn leave_at_point(&mut self, mask: u32) {
        let point = &mut self.points[usize::from(self.point)];
        point.waiting |= mask;
        point.outstanding &= !mask;
    }

    /// The running split is where it meets others: joins them if it is the last, else waits.
    fn meet(&mut self) {
        while self.point != NO_POINT && self.pc == self.reconvergence {
            self.leave_at_point(self.mask);
            let point = self.points[usize::from(self.point)];
            if point.outstanding != 0 {
                self.mask = 0;
                self.select();
                return;
            }
            self.free_point(self.point);
            self.mask = point.waiting;
            self.enter_point(point.parent);
            self.be_patient();
        }
    }

    /// Lanes have met: patience begins anew, unless others still wait for these further out. Lanes that spin may part and meet
    /// in each turn of their loop.
    fn be_patient(&mut self) {
        let mut point = self.point;
        while let Some(here) = self.points.get(usize::from(point)) {
            if here.waiting != 0 {
                return;
            }
            point = here.parent;
        }
        self.patience = 0;
    }

    fn enter_point(&mut self, point: u16) {
        self.point = point;
        self.reconvergence = match self.points.get(usize::from(point)) {
            Some(here) if !here.is_call => here.pc,
            _ => NEVER,
        };
    }

    /// Runs another split, the present one having none to run.
    fn select(&mut self) {
        self.turn = 0;
        self.alone = false;
        let mut index = self.splits.iter().rposition(|split| split.state == State::Runnable);
        if index.is_none() {
            // Lanes that wait for others which cannot come go on without them.
            index = self.splits.iter().rposition(|split| matches!(split.state, State::Gathering(_)));
            self.alone = index.is_some();
        }
        if index.is_none() && self.let_innermost_go() {
            // The barrier may wait for these, or for their end.
            index = Some(self.splits.len() - 1);
        }
        let Some(index) = index else {
            self.mask = 0;
            return;
        };
        let split = self.splits.remove(index);
        (self.pc, self.mask) = (split.pc, split.mask);
        self.enter_point(split.point);
        if self.pc == self.reconvergence {
            self.meet();
        }
    }

    /// The lanes that wait at a point go on without the others.
    fn let_go(&mut self, index: usize) {
        let point = &mut self.points[index];
        let split = Split { pc: point.pc, mask: point.waiting, point: point.parent, state: State::Runnable };
        point.waiting = 0;
        self.splits.push(split);
    }

    /// Lets the lanes of the innermost point go on that has some waiting; false where none has. They may find others further
    /// out, which therefore stay.
    fn let_innermost_go(&mut self) -> bool {
        let waiting = (0..self.points.len()).filter(|&index| self.points[index].waiting != 0);
        let innermost = waiting.max_by_key(|&index| {
            let outer = |point: &u16| self.points.get(usize::from(*point)).map(|point| point.parent);
            std::iter::successors(Some(index as u16), outer).count()
        });
        if let Some(index) = innermost {
            self.let_go(index);
        }
        innermost.is_some()
    }

    /// At a backward branch: lets other lanes run if these have had their turn.
    fn take_turns(&mut self) {
        if self.mask == 0 || (self.splits.is_empty() && self.points.len() == self.free_points.len()) {
            return;
        }
        self.turn += 1;
        self.overdue = self.overdue.saturating_add(1);
        self.patience = self.patience.saturating_add(1);
        if self.patience >= PATIENCE {
            self.patience = 0;
            for index in 0..self.points.len() {
                if self.points[index].waiting != 0 {
                    self.let_go(index);
                }
            }
        }
        if (self.turn >= TURN || self.overdue >= OVERDUE)
            && self.splits.iter().any(|split| split.state == State::Runnable)
        {
            let present = Split { pc: self.pc, mask: self.mask, point: self.point, state: State::Runnable };
            self.splits.insert(0, present);
            self.overdue = 0;
            self.mask = 0;
            self.select();
        }
    }
}

fn first_lane(mask: u32) -> Option<usize> {
    if mask == 0 { None } else { Some(mask.trailing_zeros() as usize) }
}

/// The lanes that go to a target.
fn lanes_with(targets: &[u32; LANES], target: u32) -> u32 {
    let mut lanes = 0;
    for (lane, other) in targets.iter().enumerate() {
        lanes |= u32::from(*other == target) << lane;
    }
    lanes
}

#[cfg(test)]
mod tests;
