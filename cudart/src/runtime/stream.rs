//! Streams.

use crate::abi::arguments::{In, Out};
use crate::abi::driver::DeviceResource;
use crate::abi::graph::HostNodeParams;
use crate::abi::stream::{AttributeValue, StreamCallback, StreamHandle};
use crate::runtime_api;
use crate::session::connection::description;
use crate::session::devices::device;
use crate::session::order::stream;
use std::ffi::c_int;

runtime_api! {
    fn cudaStreamCreate(stream: Out<u64>) {
        stream.check()?;
        stream.set(stream::create(0, 0)?)
    }

    fn cudaStreamCreateWithFlags(stream: Out<u64>, flags: u32) {
        stream.check()?;
        stream.set(stream::create(flags, 0)?)
    }

    fn cudaStreamCreateWithPriority(stream: Out<u64>, flags: u32, priority: c_int) {
        stream.check()?;
        stream.set(stream::create(flags, priority)?)
    }

    fn cudaStreamDestroy(stream: StreamHandle) {
        stream::destroy(stream)
    }

    stream fn cudaStreamSynchronize(stream: StreamHandle) {
        stream::synchronize(stream)
    }

    stream fn cudaStreamQuery(stream: StreamHandle) {
        stream::query(stream)
    }

    stream fn cudaStreamWaitEvent(stream: StreamHandle, event: u64, flags: u32) {
        stream::wait_event(stream, event, flags)
    }

    stream fn cudaStreamGetFlags(stream: StreamHandle, flags: Out<u32>) {
        flags.set(stream::resolve(stream)?.flags)
    }

    stream fn cudaStreamGetPriority(stream: StreamHandle, priority: Out<c_int>) {
        priority.set(stream::resolve(stream)?.priority)
    }

    stream fn cudaStreamGetId(stream: StreamHandle, number: Out<u64>) {
        number.set(stream::id(&stream::resolve(stream)?))
    }

    stream fn cudaStreamGetDevice(stream: StreamHandle, device: Out<c_int>) {
        device.set(stream::resolve(stream)?.device as c_int)
    }

    stream fn cudaStreamGetDevResource(stream: StreamHandle, resource: Out<DeviceResource>, kind: u32) {
        resource.check()?;
        resource.set(device::resource(stream::resolve(stream)?.device as c_int, kind)?)
    }

    stream fn cudaStreamGetAttribute(stream: StreamHandle, attribute: u32, value: Out<AttributeValue>) {
        value.set(stream::get_attribute(&stream::resolve(stream)?, attribute)?)
    }

    stream fn cudaStreamSetAttribute(stream: StreamHandle, attribute: u32, value: In<AttributeValue>) {
        stream::set_attribute(&stream::resolve(stream)?, attribute, value.get()?)
    }

    stream fn cudaStreamCopyAttributes(destination: StreamHandle, source: StreamHandle) {
        stream::copy_attributes(&stream::resolve(destination)?, &stream::resolve(source)?);
        Ok(())
    }

    stream fn cudaStreamAttachMemAsync(stream: StreamHandle, pointer: u64, bytes: usize, flags: u32) {
        stream::attach(stream, pointer, bytes, flags)
    }

    stream fn cudaLaunchHostFunc(stream: StreamHandle, function: u64, data: u64) {
        stream::launch_host_function(stream, HostNodeParams { function, data })
    }

    stream fn cudaLaunchHostFunc_v2(stream: StreamHandle, function: u64, data: u64, mode: u32) {
        stream::launch_host_function_in(stream, HostNodeParams { function, data }, mode)
    }

    stream fn cudaStreamAddCallback(stream: StreamHandle, function: Option<StreamCallback>, data: u64, flags: u32) {
        stream::add_callback(stream, function, data, flags)
    }

    fn cudaDeviceGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        description::description()?;
        least.set_if_wanted(stream::LOWEST_PRIORITY);
        greatest.set_if_wanted(stream::HIGHEST_PRIORITY);
        Ok(())
    }

    fn cudaCtxResetPersistingL2Cache() {
        device::reset_persisting_l2()
    }
}
