//! Memory and events that processes share.

use crate::abi::arguments::Out;
use crate::abi::ipc::IpcHandle;
use crate::runtime_api;
use crate::session::memory::ipc;

runtime_api! {
    fn cudaIpcGetMemHandle(handle: Out<IpcHandle>, pointer: u64) {
        handle.check()?;
        handle.set(ipc::memory_handle(pointer)?)
    }

    fn cudaIpcOpenMemHandle(pointer: Out<u64>, handle: IpcHandle, flags: u32) {
        pointer.check()?;
        pointer.set(ipc::open_memory(handle, flags)?)
    }

    fn cudaIpcCloseMemHandle(pointer: u64) {
        ipc::close_memory(pointer)
    }

    fn cudaIpcGetEventHandle(handle: Out<IpcHandle>, event: u64) {
        handle.check()?;
        handle.set(ipc::event_handle(event)?)
    }

    fn cudaIpcOpenEventHandle(event: Out<u64>, handle: IpcHandle) {
        event.check()?;
        event.set(ipc::open_event(handle)?)
    }
}
