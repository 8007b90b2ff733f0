//! Which split runs next, and how long lanes wait for others that do not come: every lane makes progress.
//!
//! Splits take turns at backward branches. Lanes that wait at a point while others spin, or while others wait at a barrier of the
//! CTA, are let go.
//!
//! NVIDIA states that every thread makes progress from compute capability 7.0 on, but not how; so the four counts below are the
//! simulator's own. Each was varied by a factor of 4 up and down. Of all workloads at their default sizes on `v100_node`, only
//! `virtual_dispatch` moved, with [`TURN`] alone and by less than 0.07 % of its time. The counts matter to programs whose lanes wait
//! for each other. The comment of each constant says how many instructions such a warp of 32 lanes ran from its start to its end.

use super::{Control, Split, State};

/// Backward branches of a split after which another one runs.
///
/// While a lane polls, the lane that it waits for does not run, and a turn is how long that lasts. A hand-over between two lanes that
/// poll for each other takes 25 instructions with 8, 7 with 2 and 97 with 32. No measured program gains from longer turns.
const TURN: u32 = 8;
/// Backward branches of the warp, whichever of its splits make them, after which another split runs.
///
/// If lanes part and meet in each iteration of a loop, each meeting may begin a new turn, and [`TURN`] is never reached. Without this
/// limit, such lanes poll for ever for a flag that another lane is to set. The program ends after 4,630 instructions with 512, 1,174
/// with 128 and 18,454 with 2,048. No measured program loses anything with a smaller number, down to 8.
const OVERDUE: u32 = 512;
/// Backward branches without a meeting of lanes after which the lanes that wait at a point go on alone.
///
/// The lane that gets a spin lock leaves the loop and waits behind it for the others. Without this limit it waits for ever, as the
/// others spin until it releases the lock. If lanes are let go too early, they run the code behind a long loop in several groups: a
/// warp whose lane i makes 100 * i iterations needs 9,912 instructions with 4,096 or more, 11,721 with 1,024 and 25,590 with 256.
const PATIENCE: u32 = 4_096;
/// An atomic or a volatile load adds this to the count that [`PATIENCE`] limits.
///
/// A loop of such accesses may poll for lanes that wait at the point, so that these go on after 16 iterations rather than 4,096. 32
/// lanes that each add 1 under a spin lock need 1,507 instructions with 256, 943 with 1,024, 5,971 with 64 and 190,573 with 1. Loops
/// that do not poll pay for it: a warp whose lane i makes i atomic additions needs 1,340 instructions with 256, 4,958 with 1,024 and
/// 737 with 64.
const SYNCHRONISING_STEP: u32 = 256;

impl Control {
    /// Counts an access by which lanes may wait for each other.
    pub fn synchronising_step(&mut self) {
        self.patience = self.patience.saturating_add(SYNCHRONISING_STEP);
    }

    /// Lanes have met. Patience begins anew, unless others still wait for these further out: lanes that spin may part and meet in
    /// each iteration of their loop.
    pub(super) fn be_patient(&mut self) {
        if self.points.outwards(self.point).all(|point| point.waiting == 0) {
            self.patience = 0;
        }
    }

    /// Runs another split, as the present one has no lanes that can run.
    pub(super) fn select(&mut self) {
        self.turn = 0;
        self.alone = false;
        let mut index = self.splits.iter().rposition(|split| split.state == State::Runnable);
        if index.is_none() && self.release_abandoned() {
            index = self.splits.iter().rposition(|split| split.state == State::Runnable);
        }
        if index.is_none() {
            // Lanes that wait for others which cannot come go on without them.
            index = self.splits.iter().rposition(|split| matches!(split.state, State::Gathering { .. }));
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

    /// The lanes that wait at a point, if any, go on without the others.
    fn let_go(&mut self, number: u16) {
        if let Some(point) = self.points.get_mut(number).filter(|point| point.waiting != 0) {
            let mask = std::mem::take(&mut point.waiting);
            self.splits.push(Split { pc: point.pc, mask, point: point.parent, state: State::Runnable });
        }
    }

    /// Lets the lanes go on that wait at the innermost point where any do; false if none wait. Lanes at points further out stay,
    /// because these may still meet them there.
    fn let_innermost_go(&mut self) -> bool {
        let numbers = 0..self.points.len() as u16;
        let waiting = numbers.filter(|&number| self.points.get(number).is_some_and(|point| point.waiting != 0));
        let innermost = waiting.max_by_key(|&number| self.points.outwards(number).count());
        if let Some(number) = innermost {
            self.let_go(number);
        }
        innermost.is_some()
    }

    /// Lets other lanes run if these have had their turn; called at each backward branch.
    pub(super) fn take_turns(&mut self) {
        if self.mask == 0 || (self.splits.is_empty() && self.points.is_empty()) {
            return;
        }
        self.turn += 1;
        self.overdue = self.overdue.saturating_add(1);
        self.patience = self.patience.saturating_add(1);
        if self.patience >= PATIENCE {
            self.patience = 0;
            for number in 0..self.points.len() as u16 {
                self.let_go(number);
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

#[cfg(test)]
mod tests {
    use super::super::tests::{LOW, started};
    use super::*;
    use crate::operation::NEVER;

    /// Backward branches to `pc` by the present lanes until others run.
    fn turns(control: &mut Control, pc: u32) -> u32 {
        let mask = control.mask;
        (1..=100_000)
            .find(|_| {
                control.branch(pc, NEVER, mask);
                control.mask != mask
            })
            .unwrap_or(u32::MAX)
    }

    #[test]
    fn splits_take_turns_in_their_loops() {
        // At 0: the lower half goes to 10; nowhere do they meet. Each half loops.
        let mut control = started();
        control.branch(10, NEVER, LOW);
        for pc in [1, 10, 1, 10] {
            assert_eq!(control.pc, pc);
            assert_eq!(turns(&mut control, pc), TURN);
        }
    }

    #[test]
    fn lanes_that_part_and_meet_in_each_turn_let_others_run() {
        // At 0: lane 0 goes to 10; the others poll in a loop from 1, in which half of them go around 2.
        let mut control = started();
        control.branch(10, NEVER, 1);
        let mut count = 0;
        while control.mask != 1 {
            assert_eq!((control.pc, control.mask), (1, !1), "all of them, {count} times around");
            control.branch(3, 3, LOW & !1);
            control.advance();
            assert_eq!((control.pc, control.mask), (3, !1));
            control.branch(1, NEVER, !1);
            count += 1;
            assert!(count <= OVERDUE, "lane 0 never runs");
        }
        assert_eq!(control.pc, 10);
    }

    #[test]
    fn polling_accesses_shorten_the_wait() {
        // At 0: lane 0 leaves a loop behind which all meet at 5; the others go on around it.
        for (polls, expected) in [(false, PATIENCE), (true, PATIENCE.div_ceil(1 + SYNCHRONISING_STEP))] {
            let mut control = started();
            control.branch(5, 5, 1);
            assert_eq!((control.pc, control.mask), (1, !1));
            let mut count = 0;
            while control.splits.is_empty() && control.mask == !1 {
                if polls {
                    control.synchronising_step();
                }
                control.branch(1, NEVER, !1);
                count += 1;
                assert!(count <= PATIENCE, "lane 0 waits for ever");
            }
            assert_eq!(count, expected, "polls: {polls}");
            assert_eq!((control.pc, control.mask), (5, 1), "the others have had their turn");
        }
    }

    #[test]
    fn lanes_that_wait_for_a_spinning_one_go_on() {
        // All lanes but one return at once; that one spins until they have gone by.
        let mut control = started();
        control.call(&[10; crate::lanes::LANES], u32::MAX);
        control.leave_function(!1);
        for _ in 0..2 * PATIENCE {
            if control.mask != 1 {
                break;
            }
            let pc = control.pc;
            control.branch(pc, NEVER, 1);
        }
        assert_eq!((control.pc, control.mask), (1, !1));
        control.exit(!1);
        assert!(!control.leave_function(1));
        assert_eq!((control.pc, control.mask, control.live), (1, 1, 1));
    }
}
