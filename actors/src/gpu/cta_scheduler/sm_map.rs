//! The SM map table: the free resources of each SM, and the launch in each CTA slot.

use super::room::{Room, Taken};
use crate::catalogue::{CtaNeeds, SmCapability};
use balar_protocol::cluster::ClusterPlace;
use balar_protocol::cuda::LaunchId;
use balar_protocol::{CarveOutPreference, PortId};
use serde::{Deserialize, Serialize};

/// CTA slots that an SM can have: they are kept in one word.
pub(super) const MAXIMUM_CTA_SLOTS: u32 = u64::BITS;

/// One SM.
#[derive(Debug, Serialize, Deserialize)]
struct SmState {
    free: Room,
    /// Bit i: slot i is free.
    free_slots: u64,
    /// The launch in each slot, and what its CTA has taken. Free slots have launch 0.
    slots: Vec<(LaunchId, Taken)>,
}

/// The contents of the table.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SmMapState {
    sms: Vec<SmState>,
    /// Where the search for the next SM begins: behind the last one chosen.
    next: u32,
}

/// What a CTA of a launch wants of an SM.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedPlace {
    pub needs: CtaNeeds,
    pub preference: CarveOutPreference,
}

impl WantedPlace {
    /// The carve-out of the launch on such an SM.
    fn carve_out_on(&self, sm: &SmCapability) -> u32 {
        sm.carve_out(&self.needs, self.preference)
    }
}

/// What a CTA has got.
#[derive(Debug)]
pub(super) struct CtaPlace {
    /// The port of its SM.
    pub port: PortId,
    /// Its slot there.
    pub slot: u16,
    /// The sub-core of each of its warps.
    pub sub_cores: Box<[u8]>,
    /// The SM's shared memory.
    pub carve_out: u32,
}

impl SmState {
    /// Takes the first free slot, of which there is one, for a CTA of `launch`, on the SM at `port` with this capability.
    fn take_slot(&mut self, launch: LaunchId, wanted: &WantedPlace, port: PortId, provides: &SmCapability) -> CtaPlace {
        let slot = self.free_slots.trailing_zeros();
        self.free_slots &= self.free_slots - 1;
        let (taken, sub_cores) = self.free.take(&provides.resources, &wanted.needs, wanted.carve_out_on(provides));
        self.slots[slot as usize] = (launch, taken);
        CtaPlace { port, slot: slot as u16, sub_cores, carve_out: self.free.carve_out() }
    }
}

/// The numbers of the bits of a word.
fn members(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        next
    })
}

/// Does an SM with this room take a CTA now that is wanted there, after launches that wait?
fn takes(sm: &SmCapability, room: &Room, wanted: &WantedPlace, before: &[WantedPlace]) -> bool {
    // An SM that a launch never fits on does not become empty for it.
    let before = before.iter().filter(|launch| sm.resources.holds(&launch.needs));
    room.holds(&sm.resources, &wanted.needs)
        && before.chain([wanted]).all(|launch| room.can_have(launch.carve_out_on(sm)))
}

/// The table.
#[derive(Debug)]
pub(super) struct SmMap {
    /// Where each SM is.
    ports: Vec<PortId>,
    /// All that each has.
    provides: Vec<SmCapability>,
    /// The number of each at the network between SMs, and the groups of SMs within which a cluster is placed.
    numbers: Vec<u16>,
    groups: Vec<Vec<usize>>,
    pub state: SmMapState,
}

impl SmMap {
    /// Empty SMs at these ports, each with its capability; at most [`MAXIMUM_CTA_SLOTS`] of its CTA slots are used.
    pub fn new(sms: impl IntoIterator<Item = (PortId, SmCapability)>) -> SmMap {
        let (ports, provides): (Vec<PortId>, Vec<SmCapability>) = sms.into_iter().unzip();
        let state = |provides: &SmCapability| {
            let slots = provides.cta_slots.min(MAXIMUM_CTA_SLOTS);
            SmState {
                free: Room::of(&provides.resources),
                free_slots: u64::MAX.checked_shr(MAXIMUM_CTA_SLOTS - slots).unwrap_or(0),
                slots: vec![(LaunchId(0), Taken::default()); slots as usize],
            }
        };
        let sms = provides.iter().map(state).collect();
        SmMap { state: SmMapState { sms, next: 0 }, ports, provides, numbers: Vec::new(), groups: Vec::new() }
    }

    /// A network joins the SMs, which have these numbers there, and groups of so many of them, in the order of the numbers.
    pub fn with_network(mut self, numbers: Vec<u16>, groups: &[u32]) -> SmMap {
        let mut first = 0;
        for &sms in groups {
            let range = first..first + sms;
            let members = (0..numbers.len()).filter(|&sm| range.contains(&u32::from(numbers[sm])));
            self.groups.push(members.collect());
            first += sms;
        }
        self.numbers = numbers;
        self
    }

    /// Does a group of SMs that run nothing else have room for a cluster of so many such CTAs?
    pub fn has_room_for_cluster(&self, wanted: &CtaNeeds, size: u32) -> bool {
        let slots = |sm: &usize| self.state.sms[*sm].slots.len() as u32;
        let room = |sm: &usize| u64::from(self.provides[*sm].room_for(wanted).min(slots(sm)));
        self.groups.iter().any(|group| group.iter().map(room).sum::<u64>() >= u64::from(size))
    }

    /// Takes slots for a cluster of so many CTAs of `launch`, all in one group of SMs, the one with the most free warps that has room, and
    /// on as many SMs as there are: gives their places and those of the network, by rank. `None` where it fits nowhere as a whole.
    pub fn place_cluster(
        &mut self,
        launch: LaunchId,
        wanted: &WantedPlace,
        before: &[WantedPlace],
        size: u32,
    ) -> Option<Vec<(CtaPlace, ClusterPlace)>> {
        let mut groups: Vec<(u32, usize)> = self
            .groups
            .iter()
            .zip(0..)
            .map(|(group, number)| {
                let free: u32 = group.iter().map(|&sm| self.state.sms[sm].free.warps()).sum();
                (u32::MAX - free, number)
            })
            .collect();
        groups.sort_unstable();
        groups.into_iter().find_map(|(_, group)| self.place_in_group(launch, wanted, before, (group, size)))
    }

    fn place_in_group(
        &mut self,
        launch: LaunchId,
        wanted: &WantedPlace,
        before: &[WantedPlace],
        (group, size): (usize, u32),
    ) -> Option<Vec<(CtaPlace, ClusterPlace)>> {
        let SmMap { ports, provides, numbers, groups, state: SmMapState { sms, next } } = self;
        let group = &groups[group];
        let next_before = *next;
        let first = group.partition_point(|&sm| sm < *next as usize);
        // SMs before they were changed, and how many CTAs of the cluster each of the group has.
        let mut changed: Vec<(usize, Room, u64)> = Vec::new();
        let mut taken: Vec<u32> = vec![0; group.len()];
        let mut places = Vec::with_capacity(size as usize);
        for _ in 0..size {
            let order = (first..group.len()).chain(0..first);
            let candidates = order.filter(|&member| {
                let sm = &sms[group[member]];
                sm.free_slots != 0 && takes(&provides[group[member]], &sm.free, wanted, before)
            });
            let best = candidates.min_by_key(|&member| (taken[member], u32::MAX - sms[group[member]].free.warps()));
            let Some(member) = best else { break };
            let index = group[member];
            let sm = &mut sms[index];
            if taken[member] == 0 {
                changed.push((index, sm.free.clone(), sm.free_slots));
            }
            taken[member] += 1;
            let place = sm.take_slot(launch, wanted, ports[index], &provides[index]);
            let in_network = ClusterPlace { sm: numbers[index], slot: place.slot };
            places.push((place, in_network));
            *next = if index + 1 == ports.len() { 0 } else { index as u32 + 1 };
        }
        let is_placed = places.len() == size as usize;
        if !is_placed {
            // As if nothing had been tried.
            *next = next_before;
            for (index, free, free_slots) in changed {
                let sm = &mut sms[index];
                for slot in members(free_slots & !sm.free_slots) {
                    sm.slots[slot] = (LaunchId(0), Taken::default());
                }
                (sm.free, sm.free_slots) = (free, free_slots);
            }
        }
        is_placed.then_some(places)
    }

    /// Does an SM that runs nothing else have room for such a CTA?
    pub fn has_room_when_empty(&self, wanted: &CtaNeeds) -> bool {
        self.provides.iter().any(|sm| sm.resources.holds(wanted))
    }

    /// Is `state` of a table of this shape?
    pub fn fits(&self, state: &SmMapState) -> bool {
        let slots = |sms: &[SmState]| sms.iter().map(|sm| sm.slots.len()).collect::<Vec<_>>();
        slots(&state.sms) == slots(&self.state.sms) && state.next as usize <= state.sms.len()
    }

    /// The ports of all SMs.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.ports.iter().copied()
    }

    /// SMs.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// The port of an SM.
    pub fn port(&self, sm: usize) -> PortId {
        self.ports[sm]
    }

    /// The SM at a port.
    pub fn index_of(&self, port: PortId) -> Option<usize> {
        self.ports.iter().position(|&of_sm| of_sm == port)
    }

    /// CTA slots of an SM.
    pub fn slots(&self, sm: usize) -> u32 {
        self.state.sms[sm].slots.len() as u32
    }

    /// The search for an SM begins with the first one.
    pub fn begin_anew(&mut self) {
        self.state.next = 0;
    }

    /// Takes a slot for a CTA of `launch` on the SM with the most free warps, the first in round-robin order among equals: gives its place
    /// there. `None` where it fits nowhere. SMs that are to become empty for one of the launches that come before take no CTA until they are.
    pub fn place(&mut self, launch: LaunchId, wanted: &WantedPlace, before: &[WantedPlace]) -> Option<CtaPlace> {
        let SmMapState { sms, next } = &mut self.state;
        let (count, first) = (sms.len(), *next as usize);
        let mut best: Option<(usize, u32)> = None;
        let order = (first..count).chain(0..first);
        for index in order {
            let sm = &sms[index];
            let better = best.is_none_or(|(_, warps)| sm.free.warps() > warps);
            if better && sm.free_slots != 0 && takes(&self.provides[index], &sm.free, wanted, before) {
                best = Some((index, sm.free.warps()));
            }
        }
        let (index, _) = best?;
        *next = if index + 1 == count { 0 } else { index as u32 + 1 };
        Some(sms[index].take_slot(launch, wanted, self.ports[index], &self.provides[index]))
    }

    /// Frees `slot` of the SM at `port`. False where it does not run `launch`: it was aborted before its completion came.
    pub fn release(&mut self, port: PortId, slot: u16, launch: LaunchId) -> bool {
        let Some(index) = self.index_of(port) else { return false };
        let sm = &mut self.state.sms[index];
        let Some(entry) = sm.slots.get_mut(usize::from(slot)) else { return false };
        if entry.0 != launch || launch == LaunchId(0) {
            return false;
        }
        let (_, taken) = std::mem::take(entry);
        sm.free.give(&taken);
        sm.free_slots |= 1 << slot;
        true
    }

    /// Frees every slot of `launch`.
    pub fn release_all(&mut self, launch: LaunchId) {
        for sm in &mut self.state.sms {
            for (slot, entry) in sm.slots.iter_mut().enumerate() {
                if entry.0 == launch {
                    let (_, taken) = std::mem::take(entry);
                    sm.free.give(&taken);
                    sm.free_slots |= 1 << slot;
                }
            }
        }
    }
}
