//! Member masks that contradict each other, where hazards are checked.

use super::registers::Lane;
use crate::lanes::LANES;
use crate::operation::Kind;
use crate::program::Program;
use crate::warp::WarpState;

/// The mistake in the member masks that the warp's lanes name at its next instruction, if that gathers lanes. It is about the first lane
/// that is not in its own mask, or that is in the mask of another lane, which runs with it, and names another mask. CUDA leaves the results
/// of such lanes undefined.
pub fn member_mask_hazard(program: &Program, warp: &WarpState) -> Option<(u8, String)> {
    let instruction = program.instruction(warp.control.pc);
    if !matches!(instruction.kind, Kind::Collective | Kind::WarpBarrier | Kind::WarpBarrierApart) {
        return None;
    }
    let lanes = warp.control.mask & warp.registers.predicate(instruction.guard, instruction.guard_flip);
    let members = u32::read(&warp.registers, &warp.constants.0, instruction.sources[3]);
    first_hazard(lanes, &members)
}

fn first_hazard(lanes: u32, members: &[u32; LANES]) -> Option<(u8, String)> {
    let here = || (0..LANES as u8).filter(|&lane| lanes >> lane & 1 == 1);
    for lane in here() {
        let own = members[usize::from(lane)];
        if own >> lane & 1 == 0 {
            return Some((lane, format!("lane {lane} is not in the member mask {own:#010x} that it names itself")));
        }
        let other = here().find(|&other| {
            let named = members[usize::from(other)];
            named != own && named >> lane & 1 == 1
        });
        if let Some(other) = other {
            let named = members[usize::from(other)];
            let text = format!(
                "lane {lane} names the member mask {own:#010x} and is in that of lane {other}, {named:#010x}, too"
            );
            return Some((lane, text));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lanes: u32, masks: &[(u32, u32)]) -> Option<(u8, String)> {
        let mut members = [0; LANES];
        for &(of, mask) in masks {
            for (lane, named) in members.iter_mut().enumerate() {
                if of >> lane & 1 == 1 {
                    *named = mask;
                }
            }
        }
        first_hazard(lanes, &members)
    }

    #[test]
    fn groups_that_share_no_lane_are_free() {
        assert_eq!(found(!0, &[(!0, !0)]), None);
        assert_eq!(found(!0, &[(0xffff, 0xffff), (0xffff_0000, 0xffff_0000)]), None);
        // A mask may name lanes that come later, and lanes that do not run name nothing.
        assert_eq!(found(0x3, &[(0x3, 0xf), (0xc, 0x1)]), None);
    }

    #[test]
    fn a_lane_in_no_mask_is_named() {
        let text = "lane 4 is not in the member mask 0x0000000f that it names itself";
        assert_eq!(found(0x1f, &[(0x1f, 0xf)]), Some((4, text.to_owned())));
    }

    #[test]
    fn a_lane_in_two_masks_is_named() {
        let text = "lane 1 names the member mask 0x00000006 and is in that of lane 0, 0x00000003, too";
        assert_eq!(found(0x7, &[(0x1, 0x3), (0x6, 0x6)]), Some((1, text.to_owned())));
    }
}
