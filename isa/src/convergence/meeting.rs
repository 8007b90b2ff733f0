//! How lanes come to points, and meet there.

use super::points::Point;
use super::{Control, Split, State};
use crate::operation::NEVER;

impl Control {
    /// The running split is about to part; its lanes meet at `reconvergence`, unless they do at the present point already.
    pub(super) fn expect_meeting(&mut self, reconvergence: u32) {
        if reconvergence != NEVER && reconvergence != self.reconvergence {
            self.point = self.new_point(reconvergence, false);
            self.reconvergence = reconvergence;
        }
    }

    /// A point inside the present one, where all lanes of the running split will meet.
    pub(super) fn new_point(&mut self, pc: u32, is_call: bool) -> u16 {
        self.points.add(Point { pc, is_call, waiting: 0, outstanding: self.mask, parent: self.point })
    }

    /// Lanes wait at the present point.
    pub(super) fn leave_at_point(&mut self, mask: u32) {
        if let Some(point) = self.points.get_mut(self.point) {
            point.waiting |= mask;
            point.outstanding &= !mask;
        }
    }

    /// The running split has come to the point where it meets others. If it is the last to come, it takes them all along; if not, it
    /// waits.
    pub(super) fn meet(&mut self) {
        while self.pc == self.reconvergence {
            self.leave_at_point(self.mask);
            let Some(&point) = self.points.get(self.point) else { return };
            if point.outstanding != 0 {
                self.mask = 0;
                self.select();
                return;
            }
            self.points.release(self.point);
            self.mask = point.waiting;
            self.enter_point(point.parent);
            self.be_patient();
        }
    }

    /// The running split meets others at this point next.
    pub(super) fn enter_point(&mut self, number: u16) {
        self.point = number;
        self.reconvergence = match self.points.get(number) {
            Some(point) if !point.is_call => point.pc,
            _ => NEVER,
        };
    }

    /// Closes the points around the running split that wait for no lanes any more, after its lanes have gone. The lanes at the
    /// innermost of them where any wait go on.
    pub(super) fn close_points(&mut self) {
        while let Some(&point) = self.points.get(self.point) {
            if point.outstanding != 0 {
                break;
            }
            self.points.release(self.point);
            self.point = point.parent;
            if point.waiting != 0 {
                self.splits.push(Split {
                    pc: point.pc,
                    mask: point.waiting,
                    point: point.parent,
                    state: State::Runnable,
                });
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LOW, started};

    #[test]
    fn the_last_to_come_takes_all_along_through_points_at_one_place() {
        // At 0: the lower half goes to 4; at 1: the lanes of 0xff0000 do, to meet the rest of their half at 3. All meet at 5.
        let mut control = started();
        assert!(control.branch(4, 5, LOW));
        assert_eq!((control.pc, control.mask), (1, !LOW));
        assert!(control.branch(3, 3, 0xff_0000));
        assert_eq!((control.pc, control.mask), (2, 0xff00_0000));
        control.advance();
        assert_eq!((control.pc, control.mask), (3, !LOW), "the upper half is complete");
        control.advance();
        control.advance();
        assert_eq!((control.pc, control.mask), (4, LOW), "the upper half waits at 5");
        control.advance();
        assert_eq!((control.pc, control.mask), (5, u32::MAX));
        assert!(control.points.is_empty());
    }
}
