//! Lanes that wait at barriers of the CTA, or for other lanes of their warp at the same instruction.

use super::{Control, Split, State};
use crate::execution::BarrierKind;
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

    /// Waits until the live lanes of `members` are at this instruction (`same_pc`), or at any instruction that gathers lanes. Gives
    /// the lanes that run it now, and the caller must call [`Control::scatter`] after it; `None` if the running split waits.
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
                // Lanes that came here apart go on together.
                if !same_pc && split.pc == pc && split.point == self.point {
                    self.mask |= std::mem::take(&mut split.mask);
                }
                split.pc += 1;
            }
            self.splits.retain(|split| split.mask != 0);
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
