//! Calls of the calling thread, which is connected when it makes the first.

use crate::session::connection::simulator::{self, Sink};
use crate::session::connection::{management, watch};
use crate::session::state::connection::Connection;
use crate::session::state::{named_ranges, process, thread};
use balar_host::call::{HostPages, ProfilerCall};
use balar_host::tunnel::{Client, Role, SOCKET_VARIABLE};
use balar_host::{Call, CallResult, CudaError};
use std::path::PathBuf;

/// The process comes to its end by itself. Says so, where it has used the simulator.
pub fn say_goodbye() {
    let path = std::env::var_os(SOCKET_VARIABLE).map(PathBuf::from);
    let has_used_it = || (process::node().is_some() && !process::is_forked()) || management::is_connected();
    if let Some(path) = path.filter(|_| !process::is_lost() && has_used_it()) {
        Client::say_goodbye(&path);
    }
}

/// Connects the calling thread if it is not connected yet.
pub fn connect() -> Result<(), CudaError> {
    with(|_| Ok(()))
}

/// Calls `use_it` with the calling thread's tunnel.
fn with<T>(use_it: impl FnOnce(&mut Connection) -> Result<T, CudaError>) -> Result<T, CudaError> {
    process::usable()?;
    thread::with(|thread| {
        // The tunnel is in use if a signal handler calls CUDA during another call.
        let _in_call = thread.begin_call().ok_or(CudaError::NotPermitted)?;
        let mut connection = thread.tunnel.lock();
        if connection.as_ref().is_none_or(simulator::has_failed) {
            *connection = Some(simulator::open(Role::Thread)?);
            thread.show_tunnel();
            if let Some(connection) = connection.as_mut() {
                tell_open_ranges(connection);
            }
        }
        connection.as_mut().map_or(Err(CudaError::Unknown), use_it)
    })
}

/// The calling thread has a tunnel: tells of its ranges that are open. Others wait, so that none ends before it has begun.
fn tell_open_ranges(connection: &mut Connection) {
    let mut ranges = named_ranges::shared();
    for name in ranges.take_untold(thread::own_number()) {
        simulator::tell(connection, &Call::Profiler(ProfilerCall::Begin(name)));
    }
}

/// Makes a touch on the calling thread's own tunnel, for a thread that has none.
pub fn touch(call: &Call) -> Option<HostPages> {
    with(|connection| Ok(simulator::touch(connection, thread::own_number(), call))).ok().flatten()
}

/// Makes a call that the program knows nothing of, as [`simulator::tell`] does. False where the thread may make none.
pub fn tell(call: &Call) -> bool {
    with(|connection| {
        simulator::tell(connection, call);
        Ok(())
    })
    .is_ok()
}

/// Makes a call on a device; the errors of its result are those of the call.
pub fn call_with(device: u32, call: &Call, payloads: &[&[u8]], sink: Sink<'_>) -> Result<CallResult, CudaError> {
    let before = watch::begins(call);
    let result = with(|connection| simulator::call(connection, device, call, payloads, sink));
    watch::returned(device, call, &result, before);
    result
}

/// Makes a call without payloads on a device.
pub fn call_on(device: u32, call: &Call) -> Result<CallResult, CudaError> {
    call_with(device, call, &[], &mut |_, _| {})
}

/// Makes a call without payloads on the current device.
pub fn call(call: &Call) -> Result<CallResult, CudaError> {
    call_on(thread::device(), call)
}

/// Makes a call on the current device that gives no value.
pub fn done(call: &Call) -> Result<(), CudaError> {
    self::call(call).map(|_| ())
}

/// Makes a call on the current device that gives an address.
pub fn pointer(call: &Call) -> Result<u64, CudaError> {
    match self::call(call)? {
        CallResult::Pointer(address) => Ok(address),
        _ => Err(CudaError::Unknown),
    }
}

/// Runs when the process unloads the library: after the destructors of the program's own objects, which may still call CUDA.
extern "C" fn end() {
    process::end();
    say_goodbye();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
