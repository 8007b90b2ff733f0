//! What an SM has left for CTAs: threads, warps, shared memory, and the registers of each register file.

use crate::catalogue::{CtaNeeds, SmResources};
use balar_protocol::MAXIMUM_REGISTER_FILES;
use serde::{Deserialize, Serialize};

/// What an SM has left.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Room {
    threads: u32,
    warps: u32,
    shared_bytes: u32,
    /// Free registers by register file; none where the SM has no such file.
    registers: [u32; MAXIMUM_REGISTER_FILES],
}

/// What a CTA has taken.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    threads: u32,
    warps: u32,
    shared_bytes: u32,
    registers_of_warp: u32,
    /// Warps by register file.
    warps_of_file: [u8; MAXIMUM_REGISTER_FILES],
}

impl Room {
    /// An empty SM.
    pub fn of(sm: &SmResources) -> Room {
        let mut registers = [0; MAXIMUM_REGISTER_FILES];
        registers.iter_mut().take(sm.register_files as usize).for_each(|free| *free = sm.registers_of_file());
        Room { threads: sm.threads, warps: sm.warps, shared_bytes: sm.shared_bytes, registers }
    }

    /// Warps that no CTA has.
    pub fn warps(&self) -> u32 {
        self.warps
    }

    /// Is what a CTA needs there? Each of its warps can have its registers in any file.
    pub fn holds(&self, sm: &SmResources, needs: &CtaNeeds) -> bool {
        self.threads >= needs.threads
            && self.warps >= needs.warps
            && self.shared_bytes >= sm.allocated_shared(needs)
            && (needs.registers_of_warp == 0
                || self.registers.iter().map(|free| free / needs.registers_of_warp).sum::<u32>() >= needs.warps)
    }

    /// A CTA takes what it needs, which is there: each warp gets its registers of the file that has most of them, the first among equals.
    pub fn take(&mut self, sm: &SmResources, needs: &CtaNeeds) -> Taken {
        let CtaNeeds { threads, warps, registers_of_warp, .. } = *needs;
        let shared_bytes = sm.allocated_shared(needs);
        self.threads -= threads;
        self.warps -= warps;
        self.shared_bytes -= shared_bytes;
        let (registers, mut warps_of_file) = (&mut self.registers, [0; MAXIMUM_REGISTER_FILES]);
        if registers_of_warp > 0 {
            for _ in 0..warps {
                let fuller = |most, file| if registers[file] > registers[most] { file } else { most };
                let most = (1..MAXIMUM_REGISTER_FILES).fold(0, fuller);
                registers[most] -= registers_of_warp;
                warps_of_file[most] += 1;
            }
        }
        Taken { threads, warps, shared_bytes, registers_of_warp, warps_of_file }
    }

    /// A CTA gives back what it took.
    pub fn give(&mut self, taken: &Taken) {
        self.threads += taken.threads;
        self.warps += taken.warps;
        self.shared_bytes += taken.shared_bytes;
        for (free, warps) in self.registers.iter_mut().zip(taken.warps_of_file) {
            *free += u32::from(warps) * taken.registers_of_warp;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sm(register_files: u32) -> SmResources {
        SmResources { register_files, ..SmResources::VOLTA }
    }

    /// What CTAs of one kind take until there is no room for another.
    fn fill(room: &mut Room, sm: &SmResources, needs: &CtaNeeds) -> Vec<Taken> {
        std::iter::from_fn(|| room.holds(sm, needs).then(|| room.take(sm, needs))).collect()
    }

    /// As many CTAs of one kind go in one after another as the rule of occupancy says, and all is there again when they are gone.
    #[test]
    fn an_sm_fills_with_as_many_ctas_as_it_has_room_for() {
        for files in [1, 2, 4, 6] {
            let sm = sm(files);
            for (threads, registers) in
                [(96, 37), (192, 104), (64, 88), (64, 104), (672, 88), (1024, 64), (33, 255), (160, 40), (64, 0)]
            {
                let needs = CtaNeeds::of_threads(threads, registers, 1000);
                let mut room = Room::of(&sm);
                let taken = fill(&mut room, &sm, &needs);
                assert_eq!(taken.len() as u32, sm.room_for(&needs, u32::MAX), "{files} {threads} {registers}");
                taken.iter().rev().for_each(|taken| room.give(taken));
                assert_eq!(room, Room::of(&sm));
            }
        }
    }

    /// Two kinds of warps, of 10,240 and of 6,144 registers: of the second, each file of 16,384 has room for one beside one of the first.
    #[test]
    fn ctas_of_two_kernels_share_the_files() {
        let sm = sm(4);
        let (large, small) = (CtaNeeds::of_threads(128, 320, 0), CtaNeeds::of_threads(32, 192, 0));
        let mut room = Room::of(&sm);
        assert_eq!(fill(&mut room, &sm, &large).len(), 1);
        assert_eq!(fill(&mut room, &sm, &small).len(), 4);
    }
}
