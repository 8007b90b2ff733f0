//! The time that calls about launches take, and the messages about them: to the CTA scheduler about launches by kernels, to threads that
//! they have got no buffer.

use super::parameters::SmParameters;
use super::runtime::PENDING_EXCEEDED;
use super::warps::cta::CtaSlot;
use super::warps::device_runtime::DeviceRuntime;
use balar_isa::execution::SystemCall;
use balar_isa::program::lanes;
use balar_protocol::Payload;
use balar_protocol::cta::CtaMessage;
use balar_protocol::device_launch::DeviceWork;

/// Cycles that a warp waits for the driver's part of a call: for the call, and for each of its lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceRuntimeCosts {
    buffer: (u32, u32),
    launch: (u32, u32),
    stream: u32,
    print: u32,
}

impl DeviceRuntimeCosts {
    pub fn new(parameters: &SmParameters) -> DeviceRuntimeCosts {
        let SmParameters { parameter_buffer_cost, device_launch_cost, device_stream_cost, device_print_cost, .. } =
            *parameters;
        DeviceRuntimeCosts {
            buffer: parameter_buffer_cost,
            launch: device_launch_cost,
            stream: device_stream_cost,
            print: device_print_cost,
        }
    }

    /// The cycles of a call: once, and for each lane.
    pub fn of(&self, call: SystemCall) -> (u64, u64) {
        let (once, each) = match call {
            SystemCall::ParameterBuffer | SystemCall::SizedParameterBuffer => self.buffer,
            SystemCall::LaunchBuffer | SystemCall::Launch => self.launch,
            SystemCall::CreateStream => (self.stream, 0),
            SystemCall::Print => (self.print, 0),
            _ => (0, 0),
        };
        (once.into(), each.into())
    }
}

/// The operations that a CTA's threads have put into streams since the last call of this function, as messages to the CTA scheduler.
pub(super) fn messages(cta: &mut CtaSlot) -> impl Iterator<Item = Payload> + use<> {
    let posted = std::mem::take(&mut cta.device_runtime.posted);
    let parent = cta.launch.as_ref().map(|launch| launch.id);
    posted.into_iter().filter_map(move |(stream, operation)| {
        let work = DeviceWork { parent: parent?, stream, operation };
        Some(Payload::Cta(CtaMessage::DeviceWork(Box::new(work))))
    })
}

/// Lanes of a warp have got no buffer, for as many launches wait as may: their threads are told so when they ask.
pub(super) fn note_refused(runtime: &mut DeviceRuntime, first_thread: u32, refused: u32) {
    for lane in lanes(refused) {
        runtime.set_last_error(first_thread + lane as u32, PENDING_EXCEEDED.runtime);
    }
}
