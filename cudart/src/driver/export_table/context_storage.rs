//! Values that libraries keep for each context, under keys of their own: the runtime finds its state of a context so.

use super::table::{ExportTable, NAMES, Slot};
use crate::abi::arguments::Out;
use crate::driver::early;
use crate::session::contexts::storage::{self, Destructor};
use std::ffi::c_int;

/// The table. It does not begin with its size.
pub static TABLE: ExportTable = ExportTable {
    name: NAMES[2],
    identifier: 0xc693336e_1121_df11_a8c3_68f355d89593,
    slots: &[
        Slot::function(put as *const ()),
        Slot::function(delete as *const ()),
        Slot::function(get as *const ()),
        Slot::number(0),
    ],
};

/// Keeps a value for a context, or for the current one where it is 0. `destructor` is called with context, key and value at the end of the
/// context.
unsafe extern "C" fn put(context: u64, key: usize, value: usize, destructor: Option<Destructor>) -> c_int {
    early(&mut || storage::put(context, key, value, destructor))
}

/// Forgets a value; its destructor is not called.
unsafe extern "C" fn delete(context: u64, key: usize) -> c_int {
    early(&mut || storage::delete(context, key))
}

/// The value that is kept; an invalid handle where there is none.
unsafe extern "C" fn get(place: Out<usize>, context: u64, key: usize) -> c_int {
    early(&mut || place.set(storage::get(context, key)?))
}
