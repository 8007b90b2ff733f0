//! Calls of the device runtime by warps that are timed: how long a warp waits for one, and when its launches leave the SM.

use super::counters::Stall;
use super::device_runtime::messages;
use super::profile::Profile;
use super::progress::{Sm, Step};
use balar_isa::execution::SystemCall;

impl<P: Profile> Sm<P> {
    /// A call of the device runtime has been made: the operations that its lanes have put into streams go to the CTA scheduler, one after
    /// the other. Writes before them are visible to all units then. Gives the cycles that the warp waits for the call.
    pub(super) fn device_runtime_call(&mut self, warp: usize, call: SystemCall, mask: u32, step: &mut Step) -> u64 {
        let (once, each) = self.specification.device_runtime.of(call);
        let cycle = step.now.cycle;
        let visible = self.writer.visible_at(step.now.time());
        let (slot, _, cta) = self.state.warps.all_of(warp);
        let cost = once + each * u64::from(mask.count_ones());
        if cost > 0 {
            slot.stall = Stall::LongScoreboard;
        }
        for (number, message) in (1..).zip(messages(cta)) {
            let at = self.wiring.ports.clock.time_of(cycle + once + each * number).max(visible);
            step.out.send(self.wiring.cta, at, message);
        }
        cost
    }
}
