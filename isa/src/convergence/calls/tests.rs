//! Calls and returns of parts of a warp.

use super::super::tests::{LOW, started};
use super::*;

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
    assert!(control.points.is_empty() && control.splits.is_empty());
    assert_eq!(control.points.len(), 20, "as many as there were at once");
}
