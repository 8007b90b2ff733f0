//! Functions of the program that streams run: a thread of their own calls them, one after another, as the simulator asks.

use super::connection::Connection;
use super::{accesses, process, thread};
use crate::abi::graph::HostNodeParams;
use balar_host::tunnel::Role;
use balar_host::{Call, CudaError};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a stream runs when it reaches this point.
pub type Function = Box<dyn FnOnce() + Send>;

static FUNCTIONS: Mutex<Functions> = Mutex::new(Functions { last: 0, is_started: false, waiting: BTreeMap::new() });

struct Functions {
    last: u64,
    /// The thread runs.
    is_started: bool,
    waiting: BTreeMap<u64, Function>,
}

fn functions() -> MutexGuard<'static, Functions> {
    FUNCTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A function of the program for streams (`cudaHostFn_t`).
pub fn of_program(host: HostNodeParams) -> Function {
    Box::new(move || {
        // SAFETY: a null pointer is no function; any other is one of the program that takes an address.
        let function: Option<unsafe extern "C" fn(*mut c_void)> = unsafe { std::mem::transmute(host.function) };
        if let Some(function) = function {
            // SAFETY: the program asked for the call.
            unsafe { function(host.data as *mut c_void) };
        }
    })
}

/// Keeps a function until its stream reaches it, and returns its number.
pub fn add(function: Function) -> Result<u64, CudaError> {
    let mut functions = functions();
    if !functions.is_started {
        start()?;
        functions.is_started = true;
    }
    functions.last += 1;
    let number = functions.last;
    functions.waiting.insert(number, function);
    Ok(number)
}

/// Forgets a function that no stream will reach.
pub fn remove(number: u64) {
    functions().waiting.remove(&number);
}

/// Starts the thread, and waits until it is connected.
fn start() -> Result<(), CudaError> {
    let (sender, receiver) = sync_channel(1);
    let started = without_signals(|| {
        std::thread::Builder::new().name("cuda callbacks".to_owned()).spawn(move || run(&sender)).map(|_| ())
    });
    started.map_err(|_| CudaError::OperatingSystem)?;
    receiver.recv().unwrap_or(Err(CudaError::Unknown))
}

/// Calls `spawn` with all signals blocked, which a thread that it starts inherits.
pub(super) fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are valid for the calls; any bytes are a set.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let result = spawn();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}

/// The thread.
fn run(started: &SyncSender<Result<(), CudaError>>) {
    thread::with(|thread| {
        // As long as it lives, the CUDA calls of these functions are refused.
        let _in_call = thread.begin_call();
        let mut place = thread.tunnel.lock();
        let opened = Connection::open(Role::Callbacks);
        thread.show_tunnel();
        let outcome = opened.as_ref().map(|_| ()).map_err(|error| *error);
        let connection = opened.ok().map(|connection| place.insert(connection));
        if started.send(outcome).is_err() {
            return;
        }
        let Some(connection) = connection else {
            functions().is_started = false;
            return;
        };
        loop {
            while let Some(number) = connection.next_callback() {
                let function = functions().waiting.remove(&number);
                if let Some(function) = function {
                    accesses::function_begins();
                    thread.tunnel.run_function(function);
                }
                let done = Call::CallbackDone { function: number };
                if connection.call(0, &done, &[], &mut |_, _| {}).is_err() {
                    break;
                }
            }
            // Streams wait for their functions: if only this connection has failed, another one replaces it.
            if process::is_lost() || !connection.has_failed() {
                return;
            }
            let Ok(next) = Connection::open(Role::Callbacks) else { return };
            *connection = next;
        }
    });
}
