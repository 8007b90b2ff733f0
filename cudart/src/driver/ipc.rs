//! Memory and events that processes share.

use crate::abi::arguments::Out;
use crate::abi::ipc::IpcHandle;
use crate::driver_api;
use crate::session::memory::ipc;

driver_api! {
    context fn cuIpcGetMemHandle(handle: Out<IpcHandle>, pointer: u64) {
        handle.check()?;
        handle.set(ipc::memory_handle(pointer)?)
    }

    context fn cuIpcOpenMemHandle(pointer: Out<u64>, handle: IpcHandle, flags: u32) {
        pointer.check()?;
        pointer.set(ipc::open_memory(handle, flags)?)
    }

    context fn cuIpcOpenMemHandle_v2(pointer: Out<u64>, handle: IpcHandle, flags: u32) {
        pointer.check()?;
        pointer.set(ipc::open_memory(handle, flags)?)
    }

    context fn cuIpcCloseMemHandle(pointer: u64) {
        ipc::close_memory(pointer)
    }

    context fn cuIpcGetEventHandle(handle: Out<IpcHandle>, event: u64) {
        handle.check()?;
        handle.set(ipc::event_handle(event)?)
    }

    context fn cuIpcOpenEventHandle(event: Out<u64>, handle: IpcHandle) {
        event.check()?;
        event.set(ipc::open_event(handle)?)
    }
}
