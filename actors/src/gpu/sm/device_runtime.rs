//! What calls about launches take, and how what kernels launch leaves the SM.

use super::counters::Stall;
use super::parameters::SmParameters;
use super::profile::Profile;
use super::progress::{Sm, Step};
use super::runtime::PENDING_EXCEEDED;
use super::warps::device_runtime::DeviceRuntime;
use balar_isa::execution::SystemCall;
use balar_isa::program::lanes;
use balar_protocol::Payload;
use balar_protocol::cta::CtaMessage;
use balar_protocol::cuda::LaunchId;
use balar_protocol::device_launch::{DeviceOperation, DeviceStream, DeviceWork};

/// Cycles that a warp waits for the driver's part of a call: for the call, and for each of its lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceRuntimeCosts {
    buffer: (u32, u32),
    launch: (u32, u32),
    stream: u32,
}

impl DeviceRuntimeCosts {
    pub fn new(parameters: &SmParameters) -> DeviceRuntimeCosts {
        let SmParameters { parameter_buffer_cost, device_launch_cost, device_stream_cost, .. } = *parameters;
        DeviceRuntimeCosts { buffer: parameter_buffer_cost, launch: device_launch_cost, stream: device_stream_cost }
    }

    /// Of a call: once, and for each lane.
    fn of(&self, call: SystemCall) -> (u64, u64) {
        let (once, each) = match call {
            SystemCall::ParameterBuffer | SystemCall::SizedParameterBuffer => self.buffer,
            SystemCall::LaunchBuffer | SystemCall::Launch => self.launch,
            SystemCall::CreateStream => (self.stream, 0),
            _ => (0, 0),
        };
        (once.into(), each.into())
    }
}

/// What a thread of a launch has put into a stream, as a message.
pub(super) fn message(parent: LaunchId, (stream, operation): (DeviceStream, DeviceOperation)) -> Payload {
    Payload::Cta(CtaMessage::DeviceWork(Box::new(DeviceWork { parent, stream, operation })))
}

/// Lanes of a warp have got no buffer, for as many launches wait as may: their threads are told so when they ask.
pub(super) fn note_refused(runtime: &mut DeviceRuntime, first_thread: u32, refused: u32) {
    for lane in lanes(refused) {
        runtime.set_last_error(first_thread + lane as u32, PENDING_EXCEEDED.runtime);
    }
}

impl<P: Profile> Sm<P> {
    /// A call of the device runtime has been made: what its lanes have put into streams goes to the CTA scheduler, one after the other.
    /// Everybody sees what was written before. Gives the cycles that the warp waits for the call.
    pub(super) fn device_runtime_call(&mut self, warp: usize, call: SystemCall, mask: u32, step: &mut Step) -> u64 {
        let (once, each) = self.specification.device_runtime.of(call);
        let cycle = step.now.cycle;
        let visible = self.writer.visible_at(step.now.time());
        let (slot, _, cta) = self.state.warps.all_of(warp);
        let cost = once + each * u64::from(mask.count_ones());
        if cost > 0 {
            slot.stall = Stall::LongScoreboard;
        }
        if cta.device_runtime.posted.is_empty() {
            return cost;
        }
        let posted = std::mem::take(&mut cta.device_runtime.posted);
        let Some(parent) = cta.launch.as_ref().map(|launch| launch.id) else { return cost };
        for (number, work) in (1..).zip(posted) {
            let at = self.wiring.ports.clock.time_of(cycle + once + each * number).max(visible);
            step.out.send(self.wiring.cta, at, message(parent, work));
        }
        cost
    }
}
