//! The functions of the CUDA driver (`cu*`): each reads its arguments, calls the [`session`](crate::session), and makes an error one of
//! the driver's codes. None of them sets the runtime's last error.

pub mod array;
pub mod context;
pub mod copy;
pub mod device;
pub mod error;
pub mod executable;
pub mod export_table;
pub mod function;
pub mod graph;
pub mod ipc;
pub mod launch;
pub mod link;
pub mod memory;
pub mod module;
pub mod procedure;
pub mod stream;
pub mod tensor_map;
pub mod texture_reference;
pub mod virtual_memory;

use crate::session::api::{ApiBody, code, contained};
use crate::session::contexts::context::{current, runtime_is_used};
use balar_host::CudaError;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// `cuInit` has been called.
static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// Defines functions of the driver and exports each as `balar_NAME`; see [`cuda_function!`](crate::cuda_function).
///
/// - `early fn`: works before `cuInit`.
/// - `early stream fn`: also has a twin whose default stream is the thread's own.
/// - `fn`: works without a context.
/// - `context fn`: needs a current context.
/// - `stream fn`: needs one too, and has such a twin.
#[macro_export]
macro_rules! driver_api {
    () => {};
    ($(#[$meta:meta])* early fn $name:ident $arguments:tt $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $crate::driver::early, $(#[$meta])* fn $name $arguments $body }
        $crate::driver_api! { $($rest)* }
    };
    ($(#[$meta:meta])* early stream fn $name:ident $arguments:tt $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $crate::driver::early, $(#[$meta])* stream fn $name $arguments $body }
        $crate::driver_api! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident $arguments:tt $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $crate::driver::initialized, $(#[$meta])* fn $name $arguments $body }
        $crate::driver_api! { $($rest)* }
    };
    ($(#[$meta:meta])* context fn $name:ident $arguments:tt $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $crate::driver::in_context, $(#[$meta])* fn $name $arguments $body }
        $crate::driver_api! { $($rest)* }
    };
    ($(#[$meta:meta])* stream fn $name:ident $arguments:tt $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $crate::driver::in_context, $(#[$meta])* stream fn $name $arguments $body }
        $crate::driver_api! { $($rest)* }
    };
}

/// Defines functions of the driver that do the same as a function of [`session`](crate::session) with the same arguments, in the forms of
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
pub fn early(body: ApiBody) -> c_int {
    code(contained(body).map_err(error::of_driver))
}

/// Runs the body of a function that works after `cuInit`. A program that uses the runtime too need not call it.
pub fn initialized(body: ApiBody) -> c_int {
    early(&mut || {
        if INITIALIZED.load(Ordering::Relaxed) || runtime_is_used() {
            body()
        } else {
            Err(CudaError::InitializationError)
        }
    })
}

/// Runs the body of a function that needs a current context.
pub fn in_context(body: ApiBody) -> c_int {
    initialized(&mut || {
        current()?;
        body()
    })
}
