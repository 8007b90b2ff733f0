//! Barriers of parts of a warp, and lanes that gather.

use super::super::tests::{LOW, started};
use super::*;

#[test]
fn lanes_that_wait_for_those_at_a_barrier_go_on() {
    // At 0: half leave a loop whose body has a barrier at 1; all meet at 5, where they end.
    let mut control = started();
    assert!(control.branch(5, 5, LOW));
    assert_eq!((control.pc, control.mask), (1, !LOW));
    control.arrive_at_barrier(0, BarrierKind::Sync, ReductionTarget::None, !LOW);
    assert_eq!((control.pc, control.mask), (5, LOW), "the barrier waits for their end");
    control.exit(LOW);
    assert_eq!((control.mask, control.live), (0, !LOW));
    control.release_barrier(0, |_, _| {});
    assert_eq!((control.pc, control.mask), (2, !LOW));
    for _ in 0..3 {
        control.advance();
    }
    assert_eq!((control.pc, control.mask), (5, !LOW), "nothing keeps them where they were to meet the others");
}

#[test]
fn lanes_let_go_by_a_barrier_meet_further_out() {
    // At 0: eight lanes go to 9, where all meet; at 1: eight more to 6, where the other 24 meet; sixteen come to a barrier at 2.
    let mut control = started();
    assert!(control.branch(9, 9, 0xff));
    assert!(control.branch(6, 6, 0xff00));
    assert_eq!((control.pc, control.mask), (2, !LOW));
    control.arrive_at_barrier(0, BarrierKind::Sync, ReductionTarget::None, !LOW);
    assert_eq!((control.pc, control.mask), (6, 0xff00), "the innermost first");
    for _ in 6..9 {
        control.advance();
    }
    assert_eq!((control.pc, control.mask), (9, LOW), "with those that waited further out");
}

#[test]
fn lanes_that_gather_go_on_together() {
    // At 0: the lower half goes to 4. The upper half gathers all lanes at 1, the lower half at 4.
    let mut control = started();
    control.branch(4, 6, LOW);
    assert_eq!((control.pc, control.mask), (1, !LOW));
    assert_eq!(control.gather(!LOW, u32::MAX, false), None, "the others are elsewhere");
    assert_eq!((control.pc, control.mask), (4, LOW));
    assert_eq!(control.gather(LOW, u32::MAX, false), Some(u32::MAX));
    control.scatter();
    assert_eq!((control.pc, control.mask), (5, LOW));
    control.advance();
    assert_eq!((control.pc, control.mask), (2, !LOW), "behind the instruction that gathered them");
}

#[test]
fn lanes_that_nobody_joins_go_on_alone() {
    // The halves gather at different instructions, though they ask for lanes at the same one.
    let mut control = started();
    control.branch(4, 6, LOW);
    assert_eq!(control.gather(!LOW, u32::MAX, true), None);
    assert_eq!(control.gather(LOW, u32::MAX, true), None);
    let (pc, mask) = (control.pc, control.mask);
    assert_eq!(control.gather(mask, u32::MAX, true), Some(mask), "at {pc}");
}
