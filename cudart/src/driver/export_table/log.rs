//! Messages of libraries, from CUDA 13 on. Nobody asks for them on a simulated node: they are not kept.

use super::table::{ExportTable, NAMES, Slot};
use crate::driver::early;
use crate::export_slots;
use std::ffi::{c_char, c_int, c_void};

/// The table. It does not begin with its size.
pub static TABLE: ExportTable = ExportTable {
    name: NAMES[8],
    identifier: 0xf8cff951_2146_8b4e_b9e2_fb469e7c0dd9,
    slots: &const {
        export_slots![8; 26;
            1 => Slot::function(log as *const ()),
            2 => Slot::function(is_logged as *const ()),
            25 => Slot::function(check_requirement as *const ()),
        ]
    },
};

/// Takes a message: a format of C, and its values as a `va_list`.
unsafe extern "C" fn log(_domain: c_int, _severity: c_int, _format: *const c_char, _values: *const c_void) -> c_int {
    early(&mut || Ok(()))
}

/// Whether messages are kept.
unsafe extern "C" fn is_logged() -> c_int {
    early(&mut || Ok(()))
}

/// Whether the driver is new enough for a library: it is.
unsafe extern "C" fn check_requirement() -> c_int {
    early(&mut || Ok(()))
}
