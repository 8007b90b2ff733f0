//! The conversation of a connection and the simulator.

use crate::session::connection::{activity, host_window, printed, transfers, translation, waiting_bytes};
use crate::session::state::connection::Connection;
use crate::session::state::posting::{Counted, Posting};
use crate::session::state::process::{self, SeenNode};
use crate::session::state::thread;
use balar_host::call::HostPages;
use balar_host::tunnel::{Client, Reply, Role, SOCKET_VARIABLE, is_simulator_gone};
use balar_host::{Call, CallResult, CudaError};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes the bytes of a result: their offset, and the bytes.
pub type Sink<'a> = &'a mut dyn FnMut(u64, &[u8]);

/// A tunnel for the calling thread.
///
/// # Errors
///
/// `cudaErrorNoDevice` where the program does not run on a simulator; otherwise, the error of a simulator that is gone.
pub fn open(role: Role) -> Result<Connection, CudaError> {
    let Some(path) = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            process::say("no CUDA device: start the program with `balar-actors run --topology NAME -- PROGRAM`");
        }
        return Err(CudaError::NoDevice);
    };
    if process::is_lost() {
        return Err(process::NO_SIMULATOR);
    }
    // Threads connect one at a time: each has more descriptors open meanwhile than it keeps, and a process may have few.
    let connecting = process::connecting();
    let counted = (role != Role::Accesses).then(Counted::new);
    let (client, welcome) = Client::connect(&path, role).map_err(|error| failed(&error))?;
    process::set_node(|| {
        let node = SeenNode::new(welcome.node, welcome.arena);
        host_window::map(node.memory.as_ref());
        node
    });
    drop(connecting);
    let returned_at = thread_nanoseconds();
    Ok(Connection {
        client,
        returned_at,
        posting: Posting::default(),
        number: welcome.thread,
        calls: 0,
        device: 0,
        missed: None,
        _counted: counted,
    })
}

/// Makes a call.
pub fn call(
    connection: &mut Connection,
    device: u32,
    call: &Call,
    payloads: &[&[u8]],
    sink: Sink<'_>,
) -> Result<CallResult, CudaError> {
    if process::is_lost() {
        return Err(process::NO_SIMULATOR);
    }
    let (node_device, node_call) = (translation::of_node(device)?, translation::call_of_node(call)?);
    connection.device = device;
    let computed = thread_nanoseconds().saturating_sub(connection.returned_at).saturating_mul(1000);
    let _told = activity::begins((connection.number, connection.calls), device, call);
    connection.calls += 1;
    if connection.posting.take(device, call) {
        let posted = connection.client.post(node_device, computed, node_call.into_owned());
        connection.returned_at = thread_nanoseconds();
        return posted.map(|()| CallResult::None).map_err(|error| failed(&error));
    }
    connection.posting.begins(call);
    let reply = connection.client.call(node_device, computed, &node_call, payloads, sink);
    let Reply { result, missed, may_post, printed, printed_error, received } = reply.map_err(|error| failed(&error))?;
    for (transfer, data) in received {
        transfers::deliver(transfer, &data);
    }
    printed::show_after_kept(&printed, &printed_error);
    connection.returned_at = thread_nanoseconds();
    let result = match (result, connection.missed.take().or(missed)) {
        (CallResult::Error(error), _) => Err(error),
        // As in CUDA, which reports the errors of asynchronous work with any call after it. A device that was reset has none.
        (_, Some(error)) if *call != Call::DeviceReset => Err(error),
        (result, _) => Ok(result),
    };
    connection.posting.returned(device, call, &result, may_post);
    let result = result?;
    waiting_bytes::returned(device, call);
    Ok(translation::result_of_program(result))
}

/// Makes a touch for the thread whose tunnel this is, which is in no call and waits for a page. Any thread may do that.
///
/// It takes no lock that the waiting thread may hold: text that kernels have printed is kept for the next call, as is an error.
pub fn touch(connection: &mut Connection, thread: u32, call: &Call) -> Option<HostPages> {
    let node_device = translation::of_node(connection.device).ok()?;
    let now = nanoseconds_of(thread);
    let computed = now.saturating_sub(connection.returned_at).saturating_mul(1000);
    connection.calls += 1;
    let reply = connection.client.call(node_device, computed, call, &[], &mut |_, _| {});
    let Reply { result, missed, may_post, printed, printed_error, received } =
        reply.map_err(|error| failed(&error)).ok()?;
    for (transfer, data) in received {
        transfers::deliver(transfer, &data);
    }
    printed::keep(printed, printed_error);
    connection.returned_at = nanoseconds_of(thread);
    connection.missed = connection.missed.take().or(missed);
    let (result, pages) = match result {
        CallResult::Error(error) => (Err(error), None),
        CallResult::HostPages(pages) => (Ok(CallResult::None), pages),
        result => (Ok(result), None),
    };
    connection.posting.returned(connection.device, call, &result, may_post);
    pages
}

/// Makes a call for the calling thread that the program did not make: the program's next call has the errors of earlier ones, and the text
/// that kernels have printed.
pub fn tell(connection: &mut Connection, call: &Call) {
    touch(connection, thread::own_number(), call);
}

/// Waits for the next host function that a stream has reached; `None` at the end of the connection.
pub fn next_callback(connection: &mut Connection) -> Option<u64> {
    let function = connection.client.next_callback().ok().flatten();
    connection.returned_at = thread_nanoseconds();
    function
}

/// Has the connection failed, so that its thread needs another?
pub fn has_failed(connection: &Connection) -> bool {
    connection.client.has_ended()
}

/// The error of a call whose connection has failed. Other connections go on, unless the simulator is gone.
fn failed(error: &io::Error) -> CudaError {
    if is_simulator_gone(error) { process::lose() } else { process::NO_SIMULATOR }
}

/// How long the calling thread has computed.
fn thread_nanoseconds() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// How long a thread of the process has computed.
fn nanoseconds_of(thread: u32) -> u64 {
    // As the kernel numbers the clocks of threads.
    let clock = (!thread.cast_signed() << 3) | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return 0;
    }
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
