//! The tunnel of each thread to the simulator.

use super::posting::{Counted, Posting};
use super::{accesses, activity, devices, management, named_ranges, printed, process, staging, thread, transfers};
use balar_host::call::HostPages;
use balar_host::tunnel::{Client, Reply, Role, SOCKET_VARIABLE, is_simulator_gone};
use balar_host::{Call, CallResult, CudaError};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A thread's tunnel.
pub struct Connection {
    client: Client,
    /// The thread's time, in nanoseconds, when its last call returned.
    returned_at: u64,
    posting: Posting,
    /// The simulator's number of the thread.
    number: u32,
    /// Calls so far.
    calls: u64,
    /// The device of its last call.
    device: u32,
    /// The error of a posted call that came with the reply to a touch, which reports none.
    missed: Option<CudaError>,
    /// Whether the calls of others wait for their order with those made here.
    _counted: Option<Counted>,
}

/// Takes the bytes of a result: their offset, and the bytes.
pub type Sink<'a> = &'a mut dyn FnMut(u64, &[u8]);

impl Connection {
    /// A tunnel for the calling thread.
    ///
    /// # Errors
    ///
    /// No device where the program does not run on a simulator; otherwise, that of a simulator that is gone.
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
        process::set_node(welcome.node, welcome.arena);
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
        &mut self,
        device: u32,
        call: &Call,
        payloads: &[&[u8]],
        sink: Sink<'_>,
    ) -> Result<CallResult, CudaError> {
        if process::is_lost() {
            return Err(process::NO_SIMULATOR);
        }
        let (node_device, node_call) = (devices::of_node(device)?, devices::call_of_node(call)?);
        self.device = device;
        let computed = thread_nanoseconds().saturating_sub(self.returned_at).saturating_mul(1000);
        let _told = activity::begins((self.number, self.calls), device, call);
        self.calls += 1;
        if self.posting.take(device, call) {
            let posted = self.client.post(node_device, computed, node_call.into_owned());
            self.returned_at = thread_nanoseconds();
            return posted.map(|()| CallResult::None).map_err(|error| failed(&error));
        }
        self.posting.begins(call);
        let reply = self.client.call(node_device, computed, &node_call, payloads, sink);
        let Reply { result, missed, may_post, printed, printed_error, received } =
            reply.map_err(|error| failed(&error))?;
        for (transfer, data) in received {
            transfers::deliver(transfer, &data);
        }
        printed::show_after_kept(&printed, &printed_error);
        self.returned_at = thread_nanoseconds();
        let result = match (result, self.missed.take().or(missed)) {
            (CallResult::Error(error), _) => Err(error),
            // As in CUDA, which reports the errors of asynchronous work with any call after it. A device that was reset has none.
            (_, Some(error)) if *call != Call::DeviceReset => Err(error),
            (result, _) => Ok(result),
        };
        self.posting.returned(device, call, &result, may_post);
        let result = result?;
        staging::returned(device, call);
        Ok(devices::result_of_program(result))
    }

    /// Makes a touch for the thread whose tunnel this is, which is in no call and waits for a page. Any thread may do that.
    ///
    /// It takes no lock that the waiting thread may hold: what kernels have printed is kept for the next call, as is an error.
    pub fn touch(&mut self, thread: u32, call: &Call) -> Option<HostPages> {
        let node_device = devices::of_node(self.device).ok()?;
        let now = nanoseconds_of(thread);
        let computed = now.saturating_sub(self.returned_at).saturating_mul(1000);
        self.calls += 1;
        let reply = self.client.call(node_device, computed, call, &[], &mut |_, _| {});
        let Reply { result, missed, may_post, printed, printed_error, received } =
            reply.map_err(|error| failed(&error)).ok()?;
        for (transfer, data) in received {
            transfers::deliver(transfer, &data);
        }
        printed::keep(printed, printed_error);
        self.returned_at = nanoseconds_of(thread);
        self.missed = self.missed.take().or(missed);
        let (result, pages) = match result {
            CallResult::Error(error) => (Err(error), None),
            CallResult::HostPages(pages) => (Ok(CallResult::None), pages),
            result => (Ok(result), None),
        };
        self.posting.returned(self.device, call, &result, may_post);
        pages
    }

    /// Makes a call for the calling thread that is none of the program's: its next call has the errors of earlier ones, and what
    /// kernels have printed.
    pub fn tell(&mut self, call: &Call) {
        self.touch(own_number(), call);
    }

    /// Waits for the next host function that a stream has reached; `None` at the end of the connection.
    pub fn next_callback(&mut self) -> Option<u64> {
        let function = self.client.next_callback().ok().flatten();
        self.returned_at = thread_nanoseconds();
        function
    }

    /// Has the connection failed, so that its thread needs another?
    pub fn has_failed(&self) -> bool {
        self.client.has_ended()
    }
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
        if connection.as_ref().is_none_or(Connection::has_failed) {
            *connection = Some(Connection::open(Role::Thread)?);
            thread.show_tunnel();
            if let Some(connection) = connection.as_mut() {
                named_ranges::connected(connection);
            }
        }
        connection.as_mut().map_or(Err(CudaError::Unknown), use_it)
    })
}

/// Makes a touch on the calling thread's own tunnel, for a thread that has none.
pub fn touch(call: &Call) -> Option<HostPages> {
    with(|connection| Ok(connection.touch(own_number(), call))).ok().flatten()
}

/// Makes a call that the program knows nothing of, as [`Connection::tell`] does. False where the thread may make none.
pub fn tell(call: &Call) -> bool {
    with(|connection| {
        connection.tell(call);
        Ok(())
    })
    .is_ok()
}

/// The kernel's number of the calling thread.
pub(super) fn own_number() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Makes a call on a device; the errors of its result are those of the call.
pub fn call_with(device: u32, call: &Call, payloads: &[&[u8]], sink: Sink<'_>) -> Result<CallResult, CudaError> {
    let before = accesses::begins(call)?;
    let result = with(|connection| connection.call(device, call, payloads, sink));
    accesses::returned(device, call, &result, before);
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
