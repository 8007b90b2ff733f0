//! Calls and returns of functions.
//!
//! A call makes a point, where its lanes meet as they return. Lanes come to it by a return alone, never because a program counter
//! matches: a function that calls itself comes by the same instructions in another frame.

use super::{Control, State, first_lane, lanes_with};
use crate::lanes::LANES;
use crate::operation::NEVER;

impl Control {
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
            self.set_aside(targets[lane], lanes, State::Runnable);
        }
        divergent
    }

    /// Where the running split's function returns to; `None` outside functions.
    pub fn return_address(&self) -> Option<u32> {
        self.points.outwards(self.point).find(|point| point.is_call).map(|point| point.pc)
    }

    /// Lanes of the running split return from their function and wait for the others that made the call with them. When the last of
    /// them comes, all go on. True where lanes part.
    pub fn leave_function(&mut self, mask: u32) -> bool {
        if mask == 0 {
            self.advance();
            return false;
        }
        let mut number = self.point;
        while let Some(point) = self.points.get_mut(number) {
            point.outstanding &= !mask;
            if point.is_call {
                point.waiting |= mask;
                break;
            }
            number = point.parent;
        }
        self.mask &= !mask;
        if self.mask != 0 {
            self.advance();
            return true;
        }
        let call = self.points.get(number).copied();
        if let Some(call) = call.filter(|call| self.point == number && call.outstanding == 0) {
            self.points.release(number);
            (self.pc, self.mask) = (call.pc, call.waiting);
            self.enter_point(call.parent);
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
}

#[cfg(test)]
mod tests;
