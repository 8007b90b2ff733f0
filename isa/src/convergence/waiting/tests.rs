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

/// The lanes of `mask` gather those of `members`; gives the groups that run the instruction now.
fn gather(control: &mut Control, mask: u32, members: u32, same_pc: bool) -> Vec<u32> {
    let mut groups = Vec::new();
    control.gather(mask, &[members; LANES], same_pc, |lanes| groups.push(lanes));
    groups
}

#[test]
fn lanes_of_other_masks_run_an_exclusive_barrier_later() {
    let mut control = started();
    let mut members = [LOW; LANES];
    members[16..24].fill(0xff_0000);
    members[24..].fill(0xff00_0000);
    let mut groups = Vec::new();
    while control.live != 0 {
        assert_eq!(control.pc, 0);
        let group = control.separate(control.mask, &members);
        control.gather(group, &members, false, |lanes| assert_eq!(lanes, group));
        assert_eq!((control.pc, control.mask), (1, group), "apart from the others");
        control.exit(group);
        groups.push(group);
    }
    groups.sort_unstable();
    assert_eq!(groups, [LOW, 0xff_0000, 0xff00_0000]);
}

#[test]
fn lanes_that_gather_go_on_together() {
    // At 0: the lower half goes to 4. The upper half gathers all lanes at 1, the lower half at 4.
    let mut control = started();
    control.branch(4, 6, LOW);
    assert_eq!((control.pc, control.mask), (1, !LOW));
    assert_eq!(gather(&mut control, !LOW, u32::MAX, false), [], "the others are elsewhere");
    assert_eq!((control.pc, control.mask), (4, LOW));
    assert_eq!(gather(&mut control, LOW, u32::MAX, false), [u32::MAX]);
    assert_eq!((control.pc, control.mask), (5, LOW));
    control.advance();
    assert_eq!((control.pc, control.mask), (2, !LOW), "behind the instruction that gathered them");
}

#[test]
fn lanes_that_nobody_joins_go_on_alone() {
    // The halves gather at different instructions, though they ask for lanes at the same one.
    let mut control = started();
    control.branch(4, 6, LOW);
    assert_eq!(gather(&mut control, !LOW, u32::MAX, true), []);
    assert_eq!(gather(&mut control, LOW, u32::MAX, true), []);
    let (pc, mask) = (control.pc, control.mask);
    assert_eq!(gather(&mut control, mask, u32::MAX, true), [mask], "at {pc}");
}

#[test]
fn lanes_of_each_mask_gather_for_themselves() {
    // At 0: the lower quarter goes to 4. At 1 each of the other quarters gathers its own lanes, but the last asks for the lower one too.
    let mut control = started();
    control.branch(4, 6, 0xff);
    let members =
        std::array::from_fn(|lane| if !(8..24).contains(&lane) { 0xff00_00ff } else { 0xff << (lane / 8 * 8) });
    let mut groups = Vec::new();
    control.gather(0xffff_ff00, &members, true, |lanes| groups.push(lanes));
    assert_eq!(groups, [0xff00, 0xff_0000]);
    assert_eq!((control.pc, control.mask), (2, 0xff_ff00), "those that are complete go on");
    // They end; the lower quarter comes to the instruction at which the last waits.
    control.exit(0xff_ff00);
    assert_eq!((control.pc, control.mask), (1, 0xff00_0000), "whose lanes may have waited for those that ended");
    assert_eq!(gather(&mut control, 0xff00_0000, 0xff00_00ff, true), []);
    assert_eq!((control.pc, control.mask), (4, 0xff));
    control.branch(1, 6, 0xff);
    assert_eq!(gather(&mut control, 0xff, 0xff00_00ff, true), [0xff00_00ff]);
}

#[test]
fn lanes_that_wait_with_another_mask_are_not_let_go() {
    // At 0: the lower half goes to 4. The upper half waits at 1 for itself and lanes 0 to 7; the lower half gathers its own lanes.
    let mut control = started();
    control.branch(4, 6, LOW);
    assert_eq!(gather(&mut control, !LOW, 0xffff_00ff, false), []);
    assert_eq!(gather(&mut control, LOW, LOW, false), [LOW]);
    assert_eq!((control.pc, control.mask), (5, LOW), "the others still wait");
    control.advance();
    assert_eq!((control.pc, control.mask), (1, !LOW), "for lanes that do not come");
    assert_eq!(gather(&mut control, !LOW, 0xffff_00ff, false), [!LOW]);
}
