//! The helpers that the tests of the rooms share, and branches.

use super::*;

/// The lower half of a warp.
pub(super) const LOW: u32 = 0xffff;

/// A warp of 32 lanes at its first instruction.
pub(super) fn started() -> Control {
    let mut control = Control::default();
    control.reset(u32::MAX);
    control
}

#[test]
fn lanes_of_a_branch_by_table_meet() {
    // At 0: a quarter of the lanes each goes to 10, 20, 30; the last stays and goes to 1. All meet at 40.
    let mut control = started();
    let targets = std::array::from_fn(|lane| [10, 20, 30, 0][lane / 8]);
    assert!(control.branch_many(&targets, 40, 0xff_ffff));
    let mut met = Vec::new();
    while control.mask != u32::MAX {
        met.push((control.pc, control.mask));
        while control.pc != 39 {
            control.advance();
        }
        control.advance();
    }
    met.sort_unstable();
    assert_eq!(met, [(1, 0xff00_0000), (10, 0xff), (20, 0xff00), (30, 0xff_0000)]);
    assert_eq!(control.pc, 40);
    assert!(control.points.is_empty() && control.splits.is_empty());
}

#[test]
fn lanes_that_end_are_not_waited_for() {
    // At 0: the lower half goes to 4, where all meet; the upper half ends.
    let mut control = started();
    control.branch(4, 4, LOW);
    control.exit(!LOW);
    assert_eq!((control.pc, control.mask, control.live), (4, LOW, LOW));
    control.exit(LOW);
    assert_eq!((control.mask, control.live), (0, 0));
}
