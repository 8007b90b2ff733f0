//! The SM map table: what is free on each SM, and which launch each CTA slot runs.

use balar_protocol::PortId;
use balar_protocol::cuda::{KernelLaunch, LaunchId};

/// What one SM has in all, or what a CTA takes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmResources {
    /// Threads.
    pub threads: u32,
    /// Warps.
    pub warps: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
}

/// Registers are given to a warp in units of this many (CUDA occupancy calculator, compute capability 6.0 to 9.0).
const REGISTER_UNIT: u32 = 256;
/// Shared memory is given to a CTA in units of this many bytes (CUDA occupancy calculator, 6.0 to 7.5).
const SHARED_UNIT: u32 = 256;

impl SmResources {
    /// What a CTA of `launch` takes, rounded up to allocation units.
    pub fn of_cta(launch: &KernelLaunch) -> SmResources {
        let warps = launch.warps_per_cta();
        let warp_registers = launch.registers_per_thread.saturating_mul(32).next_multiple_of(REGISTER_UNIT);
        SmResources {
            threads: launch.threads_per_cta(),
            warps,
            registers: warp_registers.saturating_mul(warps),
            shared_bytes: launch.shared_bytes.checked_next_multiple_of(SHARED_UNIT).unwrap_or(u32::MAX),
        }
    }

    /// Does `wanted` fit into it?
    #[inline]
    pub fn holds(&self, wanted: &SmResources) -> bool {
        self.threads >= wanted.threads
            && self.warps >= wanted.warps
            && self.registers >= wanted.registers
            && self.shared_bytes >= wanted.shared_bytes
    }

    /// How many CTAs that take `wanted` each, at most `slots`, it has room for.
    pub fn room_for(&self, wanted: &SmResources, slots: u32) -> u32 {
        let fits = |all: u32, each: u32| all.checked_div(each).unwrap_or(u32::MAX);
        slots
            .min(fits(self.threads, wanted.threads))
            .min(fits(self.warps, wanted.warps))
            .min(fits(self.registers, wanted.registers))
            .min(fits(self.shared_bytes, wanted.shared_bytes))
    }

    fn take(&mut self, taken: &SmResources) {
        self.threads -= taken.threads;
        self.warps -= taken.warps;
        self.registers -= taken.registers;
        self.shared_bytes -= taken.shared_bytes;
    }

    fn give(&mut self, given: &SmResources) {
        self.threads += given.threads;
        self.warps += given.warps;
        self.registers += given.registers;
        self.shared_bytes += given.shared_bytes;
    }
}

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
