//! Convergence barriers of machine code: where its lanes meet is in the code.
//!
//! `BSSY` names the lanes that meet at a barrier: those that run it. `BSYNC` waits until all of them that live, and that have not left
//! the barrier (`BREAK`), wait at it too. A barrier is a set of lanes that code can read, clear and write (`BMOV`); each lane has its
//! own, so that lanes that have parted can go through the same code, and call the same functions, at different times.

use super::{CONVERGENCE_BARRIERS, Control, Split, State, first_lane};
use crate::lanes::{LANES, lanes};

impl Control {
    fn barrier(&mut self, number: u8) -> &mut [u32; LANES] {
        if self.barriers.is_empty() {
            self.barriers.resize(CONVERGENCE_BARRIERS, [0; LANES]);
        }
        &mut self.barriers[usize::from(number) % CONVERGENCE_BARRIERS]
    }

    /// The lanes that each lane meets at a barrier.
    pub fn participants(&mut self, number: u8) -> [u32; LANES] {
        *self.barrier(number)
    }

    /// Sets the lanes that each lane of a mask meets at a barrier.
    pub fn set_participants(&mut self, number: u8, values: &[u32; LANES], mask: u32) {
        let barrier = self.barrier(number);
        for lane in 0..LANES {
            let keep = ((mask >> lane) & 1).wrapping_sub(1);
            barrier[lane] = barrier[lane] & keep | values[lane] & !keep;
        }
    }

    /// `BSSY`: the lanes of a mask will meet at a barrier. Goes to the next instruction.
    pub fn begin_region(&mut self, number: u8, mask: u32) {
        self.set_participants(number, &[mask; LANES], mask);
        self.advance();
    }

    /// `BREAK`: the lanes of a mask are not waited for at a barrier any more. Goes to the next instruction.
    pub fn leave_region(&mut self, number: u8, mask: u32) {
        let barrier = self.barrier(number);
        let together = lanes(mask).fold(mask, |together, lane| together | barrier[lane]);
        for lane in lanes(together) {
            barrier[lane] &= !mask;
        }
        self.advance();
        self.release_complete();
    }

    /// `BSYNC`: the lanes of a mask wait for those that they meet at a barrier; the other lanes of the running split go on.
    pub fn meet_at_barrier(&mut self, number: u8, mask: u32) {
        let Some(first) = first_lane(mask) else { return self.advance() };
        let barrier = *self.barrier(number);
        let expected = barrier[first] & self.live;
        let same = lanes(mask).filter(|&lane| barrier[lane] == barrier[first]).fold(0, |same, lane| same | 1 << lane);
        if mask == self.mask && same == mask && expected & !mask == 0 {
            self.patience = 0;
            return self.advance();
        }
        let pc = self.pc;
        let passing = self.mask & !mask;
        if passing != 0 {
            self.set_aside(pc + 1, passing, State::Runnable);
        }
        // Lanes that came together and meet different ones wait apart.
        let mut rest = mask;
        while let Some(lane) = first_lane(rest) {
            let group = lanes(rest).filter(|&other| barrier[other] == barrier[lane]).fold(0, |all, one| all | 1 << one);
            self.set_aside(pc, group, State::Converging(number));
            rest &= !group;
        }
        self.mask = 0;
        self.release_complete();
        self.select();
    }

    /// Lets the lanes go on that wait at a barrier for no others any more. Those at the same instruction become one split.
    pub(super) fn release_complete(&mut self) {
        let mut released = None;
        for index in 0..self.splits.len() {
            let Split { mask, state: State::Converging(number), .. } = self.splits[index] else { continue };
            let barrier = *self.barrier(number);
            let Some(first) = first_lane(mask) else { continue };
            let expected = barrier[first] & self.live;
            let waits = |split: &Split| {
                split.state == State::Converging(number)
                    && first_lane(split.mask).is_some_and(|lane| barrier[lane] & self.live == expected)
            };
            let waiting = self.splits.iter().filter(|split| waits(split)).fold(0, |all, split| all | split.mask);
            if expected & !waiting != 0 {
                continue;
            }
            let chosen: Vec<usize> = (0..self.splits.len()).filter(|&other| waits(&self.splits[other])).collect();
            for other in chosen {
                let split = &mut self.splits[other];
                split.state = State::Runnable;
                split.pc += 1;
            }
            released = Some(self.splits[index].pc);
            self.join(index);
        }
        if released.is_some() {
            self.splits.retain(|split| split.mask != 0);
            self.patience = 0;
        }
    }

    /// Where no lanes can run: lets some go on that wait at a barrier for others that do not meet them there any more. False if there
    /// are none.
    ///
    /// A function saves the barriers of its caller in registers while it uses them itself. Lanes that leave a barrier meanwhile (`BREAK`)
    /// are still in the masks that it writes back. And ptxas leaves `BREAK` out where lanes leave a loop for an instruction that gathers all
    /// lanes (own finding: a random kernel, for every architecture): those that wait there for lanes at a barrier do not meet them at it.
    pub(super) fn release_abandoned(&mut self) -> bool {
        let abandoned = self.splits.iter().position(|split| {
            let (State::Converging(number), Some(first)) = (split.state, first_lane(split.mask)) else { return false };
            let barrier = &self.barriers[usize::from(number) % CONVERGENCE_BARRIERS];
            let same = |other: &&Split| {
                other.state == split.state && first_lane(other.mask).is_some_and(|lane| barrier[lane] == barrier[first])
            };
            let waiting = self.splits.iter().filter(same).fold(0, |all, other| all | other.mask);
            let missing = barrier[first] & self.live & !waiting;
            let waits_for_these = |lane: usize| {
                self.splits.iter().any(|other| {
                    let names = matches!(other.state, State::Gathering { members, .. } if members & waiting != 0);
                    names && other.mask >> lane & 1 == 1
                })
            };
            lanes(missing)
                .all(|lane| barrier[lane] & waiting == 0 || (barrier[lane] >> lane) & 1 == 0 || waits_for_these(lane))
        });
        let Some(index) = abandoned else { return false };
        let State::Converging(number) = self.splits[index].state else { return false };
        let barrier = *self.barrier(number);
        let mut waiting = 0;
        let expected = first_lane(self.splits[index].mask).map_or(0, |first| barrier[first]);
        for split in &self.splits {
            if split.state == State::Converging(number)
                && first_lane(split.mask).is_some_and(|lane| barrier[lane] == expected)
            {
                waiting |= split.mask;
            }
        }
        self.set_participants(number, &[waiting; LANES], waiting);
        self.release_complete();
        true
    }

    /// Puts runnable splits at the instruction of that at `index` together with it.
    fn join(&mut self, index: usize) {
        let pc = self.splits[index].pc;
        let mut all = 0;
        for split in &mut self.splits {
            if split.state == State::Runnable && split.pc == pc {
                all |= std::mem::take(&mut split.mask);
            }
        }
        self.splits[index].mask = all;
    }

    /// `YIELD`: other lanes run before these go on. Goes to the next instruction.
    pub fn yield_turn(&mut self) {
        self.advance();
        if self.splits.iter().any(|split| split.state == State::Runnable) {
            let present = Split { pc: self.pc, mask: self.mask, point: self.point, state: State::Runnable };
            self.splits.insert(0, present);
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

    #[test]
    fn lanes_meet_where_the_code_says() {
        // 0: BSSY; 1: the lower half goes to 5; 2..: the others; 9: BSYNC.
        let mut control = started();
        control.begin_region(0, u32::MAX);
        control.branch(5, NEVER, LOW);
        assert_eq!((control.pc, control.mask), (2, !LOW));
        control.pc = 9;
        control.meet_at_barrier(0, !LOW);
        assert_eq!((control.pc, control.mask), (5, LOW));
        control.pc = 9;
        control.meet_at_barrier(0, LOW);
        assert_eq!((control.pc, control.mask), (10, u32::MAX));
        assert!(control.splits.is_empty());
    }

    #[test]
    fn lanes_that_end_or_leave_are_not_waited_for() {
        for leaves in [false, true] {
            let mut control = started();
            control.begin_region(3, u32::MAX);
            control.branch(5, NEVER, LOW);
            control.pc = 9;
            control.meet_at_barrier(3, !LOW);
            if leaves {
                control.leave_region(3, LOW);
                assert_eq!((control.pc, control.mask), (6, LOW), "these go on by themselves");
                control.exit(LOW);
            } else {
                control.exit(LOW);
            }
            assert_eq!((control.pc, control.mask), (10, !LOW));
        }
    }

    #[test]
    fn lanes_that_have_parted_use_one_barrier_apart() {
        let mut control = started();
        control.branch(20, NEVER, LOW);
        // The upper half waits for a part of itself, while the lower half goes through a region of the same barrier.
        control.begin_region(0, !LOW);
        control.branch(10, NEVER, 1 << 31);
        control.pc = 15;
        control.meet_at_barrier(0, !LOW & !(1 << 31));
        let order = [control.mask, control.splits.iter().find(|split| split.state == State::Runnable).unwrap().mask];
        assert!(order.contains(&LOW) && order.contains(&(1 << 31)));
        if control.mask != LOW {
            control.yield_turn();
        }
        assert_eq!(control.mask, LOW);
        control.begin_region(0, LOW);
        control.pc = 15;
        control.meet_at_barrier(0, LOW);
        assert_eq!((control.pc, control.mask), (16, LOW));
    }

    #[test]
    fn lanes_that_leave_while_a_function_keeps_the_barrier_are_not_waited_for() {
        for order in [false, true] {
            let mut control = started();
            control.begin_region(7, u32::MAX);
            control.begin_region(6, u32::MAX);
            control.branch(30, NEVER, LOW);
            // The upper half leaves the inner barrier for the outer one; the lower half has saved the inner one before.
            let saved = control.participants(6);
            control.set_participants(6, &[0; LANES], LOW);
            let upper = |control: &mut Control| {
                control.leave_region(6, !LOW);
                control.pc = 50;
                control.meet_at_barrier(7, !LOW);
            };
            let lower = |control: &mut Control| {
                control.set_participants(6, &saved, LOW);
                control.pc = 40;
                control.meet_at_barrier(6, LOW);
            };
            if order {
                upper(&mut control);
                lower(&mut control);
            } else {
                control.yield_turn();
                lower(&mut control);
                upper(&mut control);
            }
            assert_eq!((control.pc, control.mask), (41, LOW), "without the upper half");
            control.pc = 50;
            control.meet_at_barrier(7, LOW);
            assert_eq!((control.pc, control.mask), (51, u32::MAX));
        }
    }

    #[test]
    fn lanes_that_are_waited_for_where_all_gather_leave_a_barrier() {
        for order in [false, true] {
            let mut control = started();
            control.begin_region(7, u32::MAX);
            control.branch(30, NEVER, LOW);
            // The upper half goes to the end of the region, the lower half to where all gather.
            let gather = |control: &mut Control| {
                let mut together = 0;
                control.gather(control.mask, &[u32::MAX; LANES], true, |mask| together = mask);
                together
            };
            if order {
                control.yield_turn();
            }
            for _ in 0..2 {
                if control.mask == LOW {
                    control.pc = 50;
                    assert_eq!(gather(&mut control), 0);
                } else {
                    control.pc = 40;
                    control.meet_at_barrier(7, !LOW);
                }
            }
            assert_eq!((control.pc, control.mask), (41, !LOW), "without the lower half");
            control.pc = 50;
            assert_eq!(gather(&mut control), u32::MAX);
        }
    }

    #[test]
    fn barriers_are_values() {
        let mut control = started();
        control.begin_region(6, u32::MAX);
        let saved = control.participants(6);
        assert_eq!(saved, [u32::MAX; LANES]);
        control.set_participants(6, &[0; LANES], LOW);
        assert_eq!(control.participants(6)[0], 0);
        control.set_participants(6, &saved, u32::MAX);
        assert_eq!(control.participants(6), saved);
    }
}
