//! Calls, returns and barriers of parts of a warp.

use super::*;

const LOW: u32 = 0xffff;

fn started() -> Control {
    let mut control = Control::default();
    control.reset(u32::MAX);
    control
}

#[test]
fn lanes_that_return_wait_for_those_called_with_them() {
    let mut control = started();
    assert!(!control.call(&[10; LANES], u32::MAX));
    assert_eq!((control.pc, control.mask, control.return_address()), (10, u32::MAX, Some(1)));
    assert!(control.leave_function(LOW));
    assert_eq!((control.pc, control.mask), (11, !LOW));
    assert!(!control.leave_function(!LOW));
    assert_eq!((control.pc, control.mask, control.return_address()), (1, u32::MAX, None));
}

#[test]
fn lanes_that_do_not_call_wait_too() {
    let mut control = started();
    assert!(control.call(&[10; LANES], LOW));
    assert_eq!((control.pc, control.mask), (10, LOW));
    assert!(!control.leave_function(LOW));
    assert_eq!((control.pc, control.mask), (1, u32::MAX));
}

#[test]
fn each_target_has_lanes_of_its_own() {
    let mut control = started();
    assert!(control.call(&std::array::from_fn(|lane| if lane < 16 { 10 } else { 20 }), u32::MAX));
    assert_eq!((control.pc, control.mask), (10, LOW));
    assert!(control.leave_function(LOW));
    assert_eq!((control.pc, control.mask), (20, !LOW));
    assert!(!control.leave_function(!LOW));
    assert_eq!((control.pc, control.mask), (1, u32::MAX));
}

#[test]
fn the_same_code_in_another_frame_is_no_meeting() {
    // At 10: half branch to 12, to meet at 14; the others call 10 again from 11.
    let mut control = started();
    control.call(&[10; LANES], u32::MAX);
    assert!(control.branch(12, 14, LOW));
    assert_eq!((control.pc, control.mask), (11, !LOW));
    control.call(&[10; LANES], !LOW);
    // They come by 14 in their own frame and do not stop there.
    for pc in 10..15 {
        assert_eq!((control.pc, control.mask), (pc, !LOW));
        control.advance();
    }
    assert!(!control.leave_function(!LOW));
    assert_eq!((control.pc, control.mask), (12, !LOW));
    // In the frame of the branch they do.
    control.advance();
    control.advance();
    assert_eq!((control.pc, control.mask), (12, LOW));
    control.advance();
    control.advance();
    assert_eq!((control.pc, control.mask), (14, u32::MAX));
    assert!(!control.leave_function(u32::MAX));
    assert_eq!((control.pc, control.mask), (1, u32::MAX));
}

#[test]
fn lanes_that_end_in_a_function_are_not_waited_for() {
    let mut control = started();
    control.call(&[10; LANES], u32::MAX);
    control.leave_function(LOW);
    control.exit(!LOW);
    assert_eq!((control.pc, control.mask, control.live), (1, LOW, LOW));
}

#[test]
fn lanes_that_wait_for_a_spinning_one_go_on() {
    // All lanes but one return at once; that one spins until they have gone by.
    let mut control = started();
    control.call(&[10; LANES], u32::MAX);
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

#[test]
fn calls_leave_nothing_behind() {
    let mut control = started();
    for _ in 0..1000 {
        let pc = control.pc;
        for depth in 0..20 {
            assert_eq!(control.mask, u32::MAX);
            control.call(&[100 + depth; LANES], u32::MAX);
        }
        for _ in 0..20 {
            control.leave_function(LOW);
            control.leave_function(!LOW);
        }
        assert_eq!((control.pc, control.mask), (pc + 1, u32::MAX));
    }
    assert_eq!((control.points.len(), control.free_points.len(), control.splits.len()), (20, 20, 0));
}

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
