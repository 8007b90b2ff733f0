//! Events.

use crate::abi::arguments::Out;
use crate::abi::stream::StreamHandle;
use crate::runtime_api;
use crate::session::order::event;

runtime_api! {
    fn cudaEventCreate(event: Out<u64>) {
        event.check()?;
        event.set(event::create(0)?)
    }

    fn cudaEventCreateWithFlags(event: Out<u64>, flags: u32) {
        event.check()?;
        event.set(event::create(flags)?)
    }

    fn cudaEventDestroy(event: u64) {
        event::destroy(event)
    }

    stream fn cudaEventRecord(event: u64, stream: StreamHandle) {
        event::record(event, stream, 0)
    }

    stream fn cudaEventRecordWithFlags(event: u64, stream: StreamHandle, flags: u32) {
        event::record(event, stream, flags)
    }

    fn cudaEventQuery(event: u64) {
        event::query(event)
    }

    fn cudaEventSynchronize(event: u64) {
        event::synchronize(event)
    }

    fn cudaEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) {
        milliseconds.check()?;
        milliseconds.set(event::elapsed(start, end)?)
    }

    fn cudaEventElapsedTime_v2(milliseconds: Out<f32>, start: u64, end: u64) {
        milliseconds.check()?;
        milliseconds.set(event::elapsed(start, end)?)
    }
}
