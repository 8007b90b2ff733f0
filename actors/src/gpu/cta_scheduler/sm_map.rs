//! The SM map table: what is free on each SM, and which launch each CTA slot runs.

use crate::catalogue::{SmCapability, SmResources};
use balar_protocol::PortId;
use balar_protocol::cuda::LaunchId;

/// CTA slots that an SM can have: they are kept in one word.
pub(super) const MAXIMUM_CTA_SLOTS: u32 = u64::BITS;

/// One SM.
#[derive(Debug)]
struct SmState {
    port: PortId,
    /// All it has.
    provides: SmCapability,
    free: SmResources,
    /// Bit i: slot i is free.
    free_slots: u64,
    /// What each slot runs, and what that takes. Free slots have launch 0.
    slots: Vec<(LaunchId, SmResources)>,
}

/// The table.
#[derive(Debug)]
pub(super) struct SmMap {
    sms: Vec<SmState>,
    /// Where the search for the next SM begins: behind the last one chosen.
    next: usize,
}

impl SmMap {
    /// Empty SMs at these ports, each with what it provides; of its CTA slots at most [`MAXIMUM_CTA_SLOTS`].
    pub fn new(sms: impl IntoIterator<Item = (PortId, SmCapability)>) -> SmMap {
        let state = |(port, provides): (PortId, SmCapability)| {
            let slots = provides.cta_slots.min(MAXIMUM_CTA_SLOTS);
            SmState {
                port,
                provides,
                free: provides.resources,
                free_slots: u64::MAX.checked_shr(MAXIMUM_CTA_SLOTS - slots).unwrap_or(0),
                slots: vec![(LaunchId(0), SmResources::default()); slots as usize],
            }
        };
        SmMap { sms: sms.into_iter().map(state).collect(), next: 0 }
    }

    /// Does an SM that runs nothing else have room for such a CTA?
    pub fn has_room_when_empty(&self, wanted: &SmResources) -> bool {
        self.sms.iter().any(|sm| sm.provides.resources.holds(wanted))
    }

    /// The ports of all SMs.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.sms.iter().map(|sm| sm.port)
    }

    /// Takes a slot for a CTA of `launch` on the SM with the most free warps, the first in round-robin order among equals.
    /// `None` where it fits nowhere.
    pub fn place(&mut self, launch: LaunchId, wanted: &SmResources) -> Option<(PortId, u16)> {
        let count = self.sms.len();
        let mut best: Option<(usize, u32)> = None;
        let order = (self.next..count).chain(0..self.next);
        for index in order {
            let sm = &self.sms[index];
            let better = best.is_none_or(|(_, warps)| sm.free.warps > warps);
            if better && sm.free_slots != 0 && sm.free.holds(wanted) {
                best = Some((index, sm.free.warps));
            }
        }
        let (index, _) = best?;
        self.next = if index + 1 == count { 0 } else { index + 1 };
        let sm = &mut self.sms[index];
        let slot = sm.free_slots.trailing_zeros();
        sm.free_slots &= sm.free_slots - 1;
        sm.free.take(wanted);
        sm.slots[slot as usize] = (launch, *wanted);
        Some((sm.port, slot as u16))
    }

    /// Frees `slot` of the SM at `port`. False where it does not run `launch`: it was aborted before its completion came.
    pub fn release(&mut self, port: PortId, slot: u16, launch: LaunchId) -> bool {
        let Some(sm) = self.sms.iter_mut().find(|sm| sm.port == port) else { return false };
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
        for sm in &mut self.sms {
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
