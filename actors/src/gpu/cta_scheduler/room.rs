//! What an SM has left for CTAs: threads, shared memory, the warp slots of each sub-core, and the registers of each register file.
//!
//! **Where warps go.** Each warp of a CTA gets the sub-core that has most free warp slots. Among equals the search begins one sub-core
//! further with each warp. The next CTA goes on where this one has stopped, or one further where that is where a round of CTAs has begun.
//! So a CTA's warps spread evenly, and warps of one number in their CTAs do, too. That the first warps of all CTAs are not on one sub-core
//! is known of a Quadro GV100: in `binomialOptions`, whose first warp has four times the work of each other, its cycles are less than one
//! sub-core's FMA pipe would need for all first warps (AccelWattch, hw_perf.csv).
//!
//! **Carve-outs.** Where shared memory and the L1 share their memory, each launch has a carve-out that it would run with
//! (`SmCapability::carve_out`). An empty SM takes that of the CTA that comes. While CTAs are there it changes nothing: a CTA joins them where
//! the carve-out is at least its launch's own, and where it is smaller waits until the SM is empty, for a launch that began with too small a
//! one would keep it while its CTAs follow each other. "Launching a kernel with a different preference than the most recent preference
//! setting may insert a device-side synchronization point" (CUDA Runtime API, `cudaFuncSetCacheConfig`); and "the driver may choose a
//! different configuration if required to execute the function or to avoid thrashing" (CUDA C++ Programming Guide, compute capability
//! 7.x). So that the SM does become empty, CTAs of launches that come later in order do not join there meanwhile. Which of them a driver
//! lets join is not published.

use crate::catalogue::{CtaNeeds, SmResources};
use balar_protocol::{MAXIMUM_REGISTER_FILES, MAXIMUM_SUB_CORES};
use serde::{Deserialize, Serialize};

/// What an SM has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Room {
    threads: u32,
    ctas: u32,
    /// Bytes of shared memory that CTAs have, of those of the carve-out.
    shared_taken: u32,
    /// That of the CTA that came to the empty SM last.
    carve_out: u32,
    /// Free warp slots by sub-core; none where the SM has no such sub-core.
    warps: [u32; MAXIMUM_SUB_CORES],
    /// Free registers by register file; none where the SM has no such file.
    registers: [u32; MAXIMUM_REGISTER_FILES],
    turn: Turn,
}

/// At which sub-core the search for the next CTA's first warp begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Turn {
    /// Where a round of CTAs has begun.
    first: u32,
    /// How far it has come.
    position: u32,
}

impl Turn {
    /// The sub-core for the search of warp `warp` of the next CTA, `step` further.
    fn sub_core(self, warp: u32, step: u32, sub_cores: u32) -> usize {
        ((self.first + self.position + warp + step) % sub_cores) as usize
    }

    /// A CTA of so many warps has come.
    fn advance(&mut self, warps: u32, sub_cores: u32) {
        self.position = (self.position + warps) % sub_cores;
        if self.position == 0 {
            self.first = (self.first + 1) % sub_cores;
        }
    }
}

/// What a CTA has taken.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    threads: u32,
    shared_bytes: u32,
    registers_of_warp: u32,
    /// Warps by sub-core, and by register file.
    warps: [u8; MAXIMUM_SUB_CORES],
    warps_of_file: [u8; MAXIMUM_REGISTER_FILES],
}

/// Does each sub-core have a register file of its own?
fn has_own_files(sm: &SmResources) -> bool {
    sm.sub_cores == sm.register_files
}

impl Room {
    /// An empty SM.
    pub fn of(sm: &SmResources) -> Room {
        let (mut warps, mut registers) = ([0; MAXIMUM_SUB_CORES], [0; MAXIMUM_REGISTER_FILES]);
        let sub_cores = (0..sm.sub_cores).zip(&mut warps);
        sub_cores.for_each(|(sub_core, free)| *free = sm.warps_of_sub_core(sub_core));
        registers.iter_mut().take(sm.register_files as usize).for_each(|free| *free = sm.registers_of_file());
        let turn = Turn::default();
        Room { threads: sm.threads, ctas: 0, shared_taken: 0, carve_out: sm.shared_bytes, warps, registers, turn }
    }

    /// Warps that no CTA has.
    pub fn warps(&self) -> u32 {
        self.warps.iter().sum()
    }

    /// Warps of which each needs so many registers that the SM has room for.
    fn warps_with_registers(&self, sm: &SmResources, registers_of_warp: u32) -> u32 {
        let by_registers = self.registers.map(|free| free.checked_div(registers_of_warp).unwrap_or(u32::MAX));
        if has_own_files(sm) {
            return self.warps.iter().zip(by_registers).map(|(&warps, by_registers)| warps.min(by_registers)).sum();
        }
        self.warps().min(by_registers.iter().fold(0, |sum, &warps| u32::saturating_add(sum, warps)))
    }

    /// Is what a CTA needs there?
    pub fn holds(&self, sm: &SmResources, needs: &CtaNeeds) -> bool {
        let shared_bytes = if self.ctas == 0 { sm.shared_bytes } else { self.carve_out - self.shared_taken };
        self.threads >= needs.threads
            && shared_bytes >= sm.allocated_shared(needs)
            && self.warps_with_registers(sm, needs.registers_of_warp) >= needs.warps
    }

    /// Has the SM a carve-out of so many bytes or more, or can it have one for a CTA that comes now?
    pub fn can_have(&self, carve_out: u32) -> bool {
        self.ctas == 0 || self.carve_out >= carve_out
    }

    /// Bytes of shared memory that the SM has for its CTAs.
    pub fn carve_out(&self) -> u32 {
        self.carve_out
    }

    /// A CTA of a launch with that carve-out takes what it needs, which is there. Gives the sub-core of each of its warps, too.
    pub fn take(&mut self, sm: &SmResources, needs: &CtaNeeds, carve_out: u32) -> (Taken, Box<[u8]>) {
        let CtaNeeds { threads, registers_of_warp, .. } = *needs;
        let mut taken =
            Taken { threads, shared_bytes: sm.allocated_shared(needs), registers_of_warp, ..Taken::default() };
        if self.ctas == 0 {
            self.carve_out = carve_out;
        }
        self.ctas += 1;
        self.threads -= threads;
        self.shared_taken += taken.shared_bytes;
        let sub_cores = (0..needs.warps).map(|warp| self.take_warp(sm, &mut taken, warp)).collect();
        self.turn.advance(needs.warps, sm.sub_cores.max(1));
        (taken, sub_cores)
    }

    /// A warp of the CTA takes a warp slot and its registers: gives its sub-core.
    fn take_warp(&mut self, sm: &SmResources, taken: &mut Taken, warp: u32) -> u8 {
        let needed = taken.registers_of_warp;
        let own_files = has_own_files(sm);
        let order = (0..sm.sub_cores).map(|step| self.turn.sub_core(warp, step, sm.sub_cores));
        let has_room = |&sub_core: &usize| !own_files || self.registers[sub_core] >= needed;
        let sub_core = first_maximum(order.filter(has_room), |sub_core| self.warps[sub_core]);
        let file =
            if own_files { sub_core } else { first_maximum(0..MAXIMUM_REGISTER_FILES, |file| self.registers[file]) };
        self.warps[sub_core] -= 1;
        taken.warps[sub_core] += 1;
        self.registers[file] -= needed;
        taken.warps_of_file[file] += 1;
        sub_core as u8
    }

    /// A CTA gives back what it took.
    pub fn give(&mut self, taken: &Taken) {
        self.ctas -= 1;
        self.threads += taken.threads;
        self.shared_taken -= taken.shared_bytes;
        for (free, warps) in self.warps.iter_mut().zip(taken.warps) {
            *free += u32::from(warps);
        }
        for (free, warps) in self.registers.iter_mut().zip(taken.warps_of_file) {
            *free += u32::from(warps) * taken.registers_of_warp;
        }
    }
}

/// The first place of those with the largest value; place 0 where there are none.
fn first_maximum(places: impl Iterator<Item = usize>, value: impl Fn(usize) -> u32) -> usize {
    places.reduce(|most, place| if value(place) > value(most) { place } else { most }).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sm(register_files: u32) -> SmResources {
        SmResources { register_files, ..SmResources::VOLTA }
    }

    /// What CTAs of one kind take until there is no room for another.
    fn fill(room: &mut Room, sm: &SmResources, needs: &CtaNeeds) -> Vec<(Taken, Box<[u8]>)> {
        std::iter::from_fn(|| room.holds(sm, needs).then(|| room.take(sm, needs, sm.shared_bytes))).collect()
    }

    /// As many CTAs of one kind go in one after another as the rule of occupancy says, and all is there again when they are gone.
    #[test]
    fn an_sm_fills_with_as_many_ctas_as_it_has_room_for() {
        for (files, sub_cores) in [(1, 4), (2, 2), (4, 4), (6, 4), (4, 1), (4, 6)] {
            let sm = SmResources { sub_cores, ..sm(files) };
            for (threads, registers) in
                [(96, 37), (192, 104), (64, 88), (64, 104), (672, 88), (1024, 64), (33, 255), (160, 40), (64, 0)]
            {
                let needs = CtaNeeds::of_threads(threads, registers, 1000);
                let mut room = Room::of(&sm);
                let taken = fill(&mut room, &sm, &needs);
                assert_eq!(taken.len() as u32, sm.room_for(&needs, u32::MAX), "{files} {threads} {registers}");
                taken.iter().rev().for_each(|(taken, _)| room.give(taken));
                assert_eq!(room, Room { turn: room.turn, ..Room::of(&sm) });
            }
        }
    }

    #[test]
    fn an_sm_changes_its_carve_out_when_it_is_empty() {
        let (sm, needs) = (sm(4), CtaNeeds::of_threads(64, 16, 4 << 10));
        let mut room = Room::of(&sm);
        let [small, large] = [16 << 10, 64 << 10];
        assert!(room.can_have(small) && room.can_have(large));
        let (first, _) = room.take(&sm, &needs, small);
        assert!(room.can_have(small) && !room.can_have(large));
        let rest: Vec<Taken> =
            std::iter::from_fn(|| room.holds(&sm, &needs).then(|| room.take(&sm, &needs, small).0)).collect();
        assert_eq!((rest.len(), room.carve_out()), (3, small), "four of 4 KiB have room in 16 KiB");
        rest.iter().for_each(|taken| room.give(taken));
        assert!(!room.can_have(large), "one CTA is there");
        room.give(&first);
        let (first, _) = room.take(&sm, &needs, large);
        // One of a smaller carve-out joins, and the SM keeps its own.
        assert!(room.can_have(small));
        let (second, _) = room.take(&sm, &needs, small);
        room.give(&first);
        assert_eq!(room.carve_out(), large);
        room.give(&second);
        assert_eq!(room, Room { turn: room.turn, carve_out: large, ..Room::of(&sm) });
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

    /// The sub-cores of the warps of the first CTAs of so many warps.
    fn sub_cores_of(warps: u32, ctas: usize) -> Vec<Vec<u8>> {
        let (sm, needs) = (sm(4), CtaNeeds::of_threads(32 * warps, 32, 0));
        let mut room = Room::of(&sm);
        fill(&mut room, &sm, &needs).into_iter().take(ctas).map(|(_, sub_cores)| sub_cores.into_vec()).collect()
    }

    #[test]
    fn warps_go_where_most_room_is_in_turn() {
        assert_eq!(sub_cores_of(1, 6), [[0], [1], [2], [3], [1], [2]]);
        assert_eq!(sub_cores_of(2, 5), [[0, 1], [2, 3], [1, 2], [3, 0], [2, 3]]);
        assert_eq!(sub_cores_of(4, 5), [[0, 1, 2, 3], [1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2], [0, 1, 2, 3]]);
        assert_eq!(sub_cores_of(8, 2), [[0, 1, 2, 3, 0, 1, 2, 3], [1, 2, 3, 0, 1, 2, 3, 0]]);
        // Balance comes first: of three warps the first one leaves room on sub-core 3.
        assert_eq!(sub_cores_of(3, 2), [[0, 1, 2], [3, 0, 1]]);
    }

    /// Of the warps of any one number in their CTAs, no sub-core has many more than a quarter.
    #[test]
    fn warps_of_one_number_spread_over_the_sub_cores() {
        for warps in 1..=8 {
            let ctas = sub_cores_of(warps, usize::MAX);
            for number in 0..warps as usize {
                let on = |sub_core| ctas.iter().filter(|cta| cta[number] == sub_core).count();
                let most = (0..4).map(on).max().expect("sub-cores");
                assert!(most <= ctas.len().div_ceil(4) + 2, "{most} of {} are warp {number} of {warps}", ctas.len());
            }
        }
    }
}
