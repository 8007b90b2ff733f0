//! Lanes that wait at barriers of the CTA, or for other lanes of their warp at the same instruction.

use super::{Control, Split, State, first_lane, lanes_with};
use crate::execution::BarrierKind;
use crate::lanes::LANES;
use serde::{Deserialize, Serialize};

/// Where a barrier's reduction writes its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReductionTarget {
    /// The barrier reduces nothing.
    None,
    /// A row of the register file.
    Row(u16),
    /// A predicate.
    Predicate(u8),
}

impl Control {
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
            // Lanes that came here apart go on together.
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

    /// Lanes of the running split are at an instruction that gathers lanes; `members` has the mask that each lane names. The lanes of one
    /// mask wait until all its live lanes are here with the same mask: where `same_pc`, at this instruction, else at any that gathers.
    /// Those that are complete run the instruction together, which `run` does, and go on; lanes of another mask have no part in it.
    pub fn gather(&mut self, mask: u32, members: &[u32; LANES], same_pc: bool, mut run: impl FnMut(u32)) {
        let alone = std::mem::take(&mut self.alone);
        let mut waiting = 0;
        let mut rest = mask;
        while let Some(lane) = first_lane(rest) {
            let named = members[lane];
            let group = lanes_with(members, named) & rest;
            rest &= !group;
            match self.together(group, State::Gathering { members: named, same_pc }, alone) {
                Some(together) => run(together),
                None => waiting |= group,
            }
        }
        if waiting == 0 {
            self.advance();
            return;
        }
        let others = self.mask & !waiting;
        if others != 0 {
            self.set_aside(self.pc + 1, others, State::Runnable);
        }
        while let Some(lane) = first_lane(waiting) {
            let group = lanes_with(members, members[lane]) & waiting;
            waiting &= !group;
            self.set_aside(self.pc, group, State::Gathering { members: members[lane], same_pc });
        }
        self.mask = 0;
        self.select();
    }

    /// The lanes that run the present instruction with those of `group`, which let go those that have waited; `None` while lanes that
    /// the mask of `state` names are elsewhere, unless nothing else can run (`alone`).
    fn together(&mut self, group: u32, state: State, alone: bool) -> Option<u32> {
        let State::Gathering { members, same_pc } = state else { return Some(group) };
        let missing = members & self.live & !group;
        if missing == 0 {
            return Some(group);
        }
        let pc = self.pc;
        let joins = |split: &Split| split.state == state && (!same_pc || split.pc == pc);
        let together = self.splits.iter().filter(|split| joins(split)).fold(group, |lanes, split| lanes | split.mask);
        if missing & !together != 0 && !alone {
            return None;
        }
        for split in self.splits.iter_mut().filter(|split| joins(split)) {
            split.state = State::Runnable;
            // Lanes that came here apart go on together.
            if !same_pc && split.pc == pc && split.point == self.point {
                self.mask |= std::mem::take(&mut split.mask);
            }
            split.pc += 1;
        }
        self.splits.retain(|split| split.mask != 0);
        Some(together)
    }

    /// Lanes of the running split that name another mask than its first lane run this instruction later, those of each mask together and apart
    /// from others; gives the lanes of `mask` that are left.
    pub fn separate(&mut self, mask: u32, members: &[u32; LANES]) -> u32 {
        let Some(first) = first_lane(mask) else { return mask };
        let mut rest = mask & !lanes_with(members, members[first]);
        let left = mask & !rest;
        self.mask &= !rest;
        while let Some(lane) = first_lane(rest) {
            let group = lanes_with(members, members[lane]) & rest;
            rest &= !group;
            self.set_aside(self.pc, group, State::Runnable);
        }
        left
    }

    /// Puts lanes of the running split aside at this instruction; its other lanes will go on with the next.
    fn suspend(&mut self, mask: u32, state: State) {
        let others = self.mask & !mask;
        if others != 0 {
            self.set_aside(self.pc + 1, others, State::Runnable);
        }
        self.set_aside(self.pc, mask, state);
        self.mask = 0;
    }
}

#[cfg(test)]
mod tests;
