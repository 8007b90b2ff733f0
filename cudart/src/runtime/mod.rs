//! The functions of the CUDA runtime (`cuda*`): each reads its arguments, calls the [`session`](crate::session), and makes an error the
//! thread's last error and its own value.

pub mod capture;
pub mod device;
pub mod device_properties;
pub mod error;
pub mod event;
pub mod function;
pub mod graph;
pub mod last_error;
pub mod launch;
pub mod library;
pub mod memory;
pub mod occupancy;
pub mod registration;
pub mod stream;
pub mod texture;
pub mod texture_reference;
pub mod unsupported;
pub mod version;

use crate::session::api::{ApiBody, code, contained};
use crate::session::contexts::context;
use std::ffi::c_int;

/// Defines functions of the runtime and exports each as `balar_NAME`; see [`cuda_function!`](crate::cuda_function).
///
/// - `fn`: the body's error becomes the thread's last error and the function's value.
/// - `stream fn`: has a twin, too, whose default stream is the thread's own.
/// - `quiet fn`: the last error stays as it is: functions about errors.
/// - `raw fn ... -> T`: the body gives the value.
#[macro_export]
macro_rules! runtime_api {
    () => {};
    ($(#[$meta:meta])* fn $name:ident $arguments:tt $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $crate::runtime::recorded, $(#[$meta])* fn $name $arguments $body }
        $crate::runtime_api! { $($rest)* }
    };
    ($(#[$meta:meta])* stream fn $name:ident $arguments:tt $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $crate::runtime::recorded, $(#[$meta])* stream fn $name $arguments $body }
        $crate::runtime_api! { $($rest)* }
    };
    ($(#[$meta:meta])* quiet fn $name:ident $arguments:tt $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $crate::runtime::quiet, $(#[$meta])* fn $name $arguments $body }
        $crate::runtime_api! { $($rest)* }
    };
    ($(#[$meta:meta])* raw fn $name:ident $arguments:tt -> $result:ty $body:block $($rest:tt)*) => {
        $crate::cuda_function! { $(#[$meta])* raw fn $name $arguments -> $result $body }
        $crate::runtime_api! { $($rest)* }
    };
}

/// Runs the body of a function that sets the last error.
pub fn recorded(body: ApiBody) -> c_int {
    context::use_runtime();
    code(contained(body).inspect_err(|error| last_error::record(*error)))
}

/// Runs the body of a function that leaves the last error as it is.
pub fn quiet(body: ApiBody) -> c_int {
    code(contained(body))
}
