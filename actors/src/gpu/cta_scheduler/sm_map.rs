//! The SM map table: what is free on each SM, and which launch each CTA slot runs.

use crate::catalogue::SmResources;
use balar_protocol::PortId;
use balar_protocol::cuda::LaunchId;

/// One SM.
#[derive(Debug)]
struct SmState {
    port: PortId,
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
    /// Empty SMs at these ports, each with `resources` and `slots` CTA slots (1 to 64).
    pub fn new(ports: impl Iterator<Item = PortId>, resources: SmResources, slots: u32) -> SmMap {
        let free_slots = if slots >= 64 { u64::MAX } else { (1 << slots) - 1 };
        let state = |port| SmState {
            port,
            free: resources,
            free_slots,
            slots: vec![(LaunchId(0), SmResources::default()); slots as usize],
        };
        SmMap { sms: ports.map(state).collect(), next: 0 }
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
