//! Contexts, streams and modules for libraries that are built like tools: cuBLAS, cuFFT, cuSOLVER.

use super::table::{ExportTable, NAMES, Slot};
use crate::abi::arguments::Out;
use crate::abi::stream::StreamHandle;
use crate::driver::early;
use crate::export_slots;
use crate::session::code::module;
use crate::session::contexts::context;
use crate::session::order::stream;
use balar_host::CudaError;
use std::ffi::{c_int, c_void};

/// Whether contexts can be used.
pub static CONTEXT_CHECKS: ExportTable = ExportTable {
    name: NAMES[4],
    identifier: 0x263e8860_7cd2_6143_92f6_bbd5006dfa7e,
    slots: &const {
        export_slots![4; 4;
            0 => Slot::number(4 * size_of::<Slot>()),
            2 => Slot::function(check_context as *const ()),
            3 => Slot::function(is_usable as *const ()),
        ]
    },
};

/// The calling thread's context.
pub static THREADS: ExportTable = ExportTable {
    name: NAMES[5],
    identifier: 0x42d85a81_23f6_cb47_8298_f6e78a3aecdc,
    slots: &const {
        export_slots![5; 4;
            0 => Slot::number(4 * size_of::<Slot>()),
            2 => Slot::function(current_context as *const ()),
        ]
    },
};

/// Numbers of contexts and of streams.
pub static CONTEXTS: ExportTable = ExportTable {
    name: NAMES[6],
    identifier: 0x21318c60_9714_3248_8ca6_41ff7324c8f2,
    slots: &const {
        export_slots![6; 95;
            0 => Slot::number(95 * size_of::<Slot>()),
            4 => Slot::function(context_identifier as *const ()),
            39 => Slot::function(stream_identifier as *const ()),
            51 => Slot::function(stream_of_context as *const ()),
        ]
    },
};

/// The functions of modules.
pub static MODULES: ExportTable = ExportTable {
    name: NAMES[7],
    identifier: 0x6e163fbe_b958_444d_835c_e182aff1991e,
    slots: &const {
        export_slots![7; 64;
            0 => Slot::number(64 * size_of::<Slot>()),
            7 => Slot::function(functions_of_module as *const ()),
        ]
    },
};

/// Nothing is wrong with a context.
unsafe extern "C" fn check_context(context: u64, flags: Out<u32>, details: Out<*const c_void>) -> c_int {
    early(&mut || {
        context::check(context)?;
        flags.set_if_wanted(0);
        details.set_if_wanted(std::ptr::null());
        Ok(())
    })
}

/// Contexts can be used.
unsafe extern "C" fn is_usable() -> c_int {
    early(&mut || Ok(()))
}

/// The calling thread's context, or 0.
unsafe extern "C" fn current_context(place: Out<u64>) -> c_int {
    early(&mut || place.set(context::top()))
}

/// A number that no other context of the process ever has.
unsafe extern "C" fn context_identifier(context: u64, place: Out<u64>) -> c_int {
    early(&mut || place.set(context::check(context)?))
}

/// The stream that a program's handle means in a context. There is none for -1.
unsafe extern "C" fn stream_of_context(context: u64, stream: StreamHandle, place: Out<StreamHandle>) -> c_int {
    early(&mut || {
        context::check(context)?;
        if stream.0 == u64::MAX {
            return Err(CudaError::InvalidResourceHandle);
        }
        place.set(stream)
    })
}

/// A number that no other stream of the process ever has.
unsafe extern "C" fn stream_identifier(context: u64, stream: StreamHandle, place: Out<u64>) -> c_int {
    early(&mut || {
        context::check(context)?;
        place.set(stream::id(&stream::resolve(stream)?))
    })
}

/// The function that [`functions_of_module`] calls: with the value that it was given, and a function's handle.
type Visitor = unsafe extern "C" fn(*mut c_void, u64);

/// Calls `visit` with each function of a module. Returns 1 where that is done.
unsafe extern "C" fn functions_of_module(
    context: u64,
    module: u64,
    visit: Option<Visitor>,
    user: *mut c_void,
) -> c_int {
    const DONE: c_int = 1;
    let outcome = early(&mut || {
        context::check(context)?;
        let visit = visit.ok_or(CudaError::InvalidValue)?;
        for function in module::functions(module)? {
            // SAFETY: the caller's function, with the value that it is to have.
            unsafe { visit(user, function) };
        }
        Ok(())
    });
    if outcome == 0 { DONE } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_its_handle_and_minus_one_is_none() {
        let context = context::primary(3);
        let mut handle = StreamHandle::DEFAULT;
        // SAFETY: `handle` outlives its use.
        let mut of = |stream| unsafe { stream_of_context(context, StreamHandle(stream), Out::new(&raw mut handle)) };
        assert_eq!([of(0x1230), of(u64::MAX)], [0, CudaError::InvalidResourceHandle.code() as c_int]);
        assert_eq!(handle.0, 0x1230);
    }

    #[test]
    fn contexts_have_numbers_and_are_found_right() {
        let context = context::primary(3);
        let (mut identifier, mut flags, mut details) = (0, 7, std::ptr::without_provenance(1));
        // SAFETY: the places outlive their use.
        unsafe {
            assert_eq!(context_identifier(context, Out::new(&raw mut identifier)), 0);
            assert_eq!(check_context(context, Out::new(&raw mut flags), Out::new(&raw mut details)), 0);
            assert_ne!(check_context(1, Out::nowhere(), Out::nowhere()), 0);
        }
        assert!(identifier == context && flags == 0 && details.is_null());
    }

    #[test]
    fn functions_of_no_module_are_not_visited() {
        // SAFETY: there is no module of this handle.
        assert_eq!(unsafe { functions_of_module(context::primary(3), 1, None, std::ptr::null_mut()) }, 0);
    }
}
