//! Functions of the program that streams run: a thread of their own calls them, one after another, as the simulator asks.

use crate::abi::graph::HostNodeParams;
use crate::session::connection::signals::without_signals;
use crate::session::connection::{simulator, watch};
use crate::session::state::{process, thread};
use balar_host::tunnel::Role;
use balar_host::{Call, CudaError};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The function that a stream runs when it reaches this point.
pub type Function = Box<dyn FnOnce() + Send>;

static FUNCTIONS: Mutex<WaitingFunctions> =
    Mutex::new(WaitingFunctions { last: 0, is_started: false, waiting: BTreeMap::new() });

struct WaitingFunctions {
    last: u64,
    /// The thread runs.
    is_started: bool,
    waiting: BTreeMap<u64, Function>,
}

fn functions() -> MutexGuard<'static, WaitingFunctions> {
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

/// The thread.
fn run(started: &SyncSender<Result<(), CudaError>>) {
    thread::with(|thread| {
        // As long as it lives, the CUDA calls of these functions are refused.
        let _in_call = thread.begin_call();
        let mut place = thread.tunnel.lock();
        let opened = simulator::open(Role::Callbacks);
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
            while let Some(number) = simulator::next_callback(connection) {
                let function = functions().waiting.remove(&number);
                if let Some(function) = function {
                    watch::function_begins();
                    thread.tunnel.run_function(function);
                }
                let done = Call::CallbackDone { function: number };
                if simulator::call(connection, 0, &done, &[], &mut |_, _| {}).is_err() {
                    break;
                }
            }
            // Streams wait for their functions: if only this connection has failed, another one replaces it.
            if process::is_lost() || !simulator::has_failed(connection) {
                return;
            }
            let Ok(next) = simulator::open(Role::Callbacks) else { return };
            *connection = next;
        }
    });
}
