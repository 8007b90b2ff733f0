//! The driver API (`cu*`), over the same core as the runtime: contexts, streams, events and memory are the runtime's.
//!
//! Most functions do what a function of the runtime does and call that. What is the driver's own is here: contexts and their stacks,
//! modules and their functions, and where its arguments differ.

pub mod array;
pub mod context;
pub mod copy;
pub mod device;
pub mod error;
pub mod executable;
pub mod function;
pub mod graph;
pub mod launch;
pub mod link;
pub mod memory;
pub mod module;
pub mod procedure;
pub mod stream;
pub mod texture_reference;
pub mod virtual_memory;

use crate::session::api::Outcome;
use crate::session::thread;
use balar_host::CudaError;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// `cuInit` has been called.
static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// Defines functions of the driver and exports each as `balar_NAME`; see [`cuda_api!`](crate::cuda_api).
///
/// - `early fn`: works before `cuInit`.
/// - `fn`: works without a context.
/// - `context fn`: needs a current context.
/// - `stream fn`: needs one too, and has a twin whose default stream is the thread's own.
#[macro_export]
macro_rules! driver_api {
    () => {};
    ($(#[$meta:meta])* early fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::cuda_api! { $(#[$meta])* quiet fn $name($($argument: $type),*) {
            $crate::driver::early(move || -> $crate::session::api::Outcome { $body })
        } }
        $crate::driver_api! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::cuda_api! { $(#[$meta])* quiet fn $name($($argument: $type),*) {
            $crate::driver::initialized(move || -> $crate::session::api::Outcome { $body })
        } }
        $crate::driver_api! { $($rest)* }
    };
    ($(#[$meta:meta])* context fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::cuda_api! { $(#[$meta])* quiet fn $name($($argument: $type),*) {
            $crate::driver::in_context(move || -> $crate::session::api::Outcome { $body })
        } }
        $crate::driver_api! { $($rest)* }
    };
    ($(#[$meta:meta])* stream fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block $($rest:tt)*) => {
        $crate::cuda_api! { $(#[$meta])* quiet stream fn $name($($argument: $type),*) {
            $crate::driver::in_context(move || -> $crate::session::api::Outcome { $body })
        } }
        $crate::driver_api! { $($rest)* }
    };
}

/// Calls a function of the runtime, whose error the runtime's last error does not become.
#[macro_export]
macro_rules! runtime {
    ($($function:ident)::+($($argument:ident),* $(,)?)) => {
        $crate::driver::forward(move || {
            // SAFETY: the arguments are the caller's, whose contract with the driver is that of the runtime's function.
            unsafe {
                $crate::runtime::$($function)::+($($argument),*)
            }
        })
    };
}

/// Defines functions of the driver that do what one of the runtime does with the same arguments: `context` and `stream` as in
/// [`driver_api!`].
#[macro_export]
macro_rules! forwards_to_runtime {
    ($($form:ident $name:ident($($argument:ident: $type:ty),* $(,)?) => $($function:ident)::+;)*) => {
        $($crate::driver_api! {
            $form fn $name($($argument: $type),*) {
                $crate::runtime!($($function)::+($($argument),*))
            }
        })*
    };
}

/// Defines functions of the driver that do what a function of [`session`](crate::session) does with the same arguments, in the forms of
/// [`driver_api!`].
#[macro_export]
macro_rules! forwards {
    () => {};
    (fn $name:ident($($argument:ident: $type:ty),* $(,)?) => $($function:ident)::+; $($rest:tt)*) => {
        $crate::driver_api! {
            fn $name($($argument: $type),*) { $crate::session::$($function)::+($($argument),*) }
        }
        $crate::forwards! { $($rest)* }
    };
    ($form:ident fn $name:ident($($argument:ident: $type:ty),* $(,)?) => $($function:ident)::+; $($rest:tt)*) => {
        $crate::driver_api! {
            $form fn $name($($argument: $type),*) { $crate::session::$($function)::+($($argument),*) }
        }
        $crate::forwards! { $($rest)* }
    };
}

/// Runs the body of a function that works at any time.
pub fn early(body: impl FnOnce() -> Outcome) -> Outcome {
    body().map_err(error::of_driver)
}

/// Runs the body of a function that works after `cuInit`. A program that uses the runtime too need not call it.
pub fn initialized(body: impl FnOnce() -> Outcome) -> Outcome {
    if !INITIALIZED.load(Ordering::Relaxed) && !crate::session::context::runtime_is_used() {
        return Err(CudaError::InitializationError);
    }
    early(body)
}

/// Runs the body of a function that needs a current context.
pub fn in_context(body: impl FnOnce() -> Outcome) -> Outcome {
    initialized(|| {
        crate::session::context::current()?;
        body()
    })
}

/// The outcome of a function of the runtime.
pub fn forward(call: impl FnOnce() -> c_int) -> Outcome {
    match thread::keeping_last_error(call) {
        0 => Ok(()),
        code => Err(CudaError::from_code(code as u32).unwrap_or(CudaError::Unknown)),
    }
}
