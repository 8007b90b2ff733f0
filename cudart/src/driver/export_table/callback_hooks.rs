//! Room where tools note which calls of the runtime they want to be told of. No tool ever does: it is zero.

use super::table::{ExportTable, NAMES, Slot};
use crate::abi::arguments::Out;
use crate::driver::early;
use crate::export_slots;
use std::ffi::c_int;
use std::sync::atomic::AtomicU64;

const NUMBER: usize = 1;
const SLOTS: usize = 7;

/// The table.
pub static TABLE: ExportTable = ExportTable {
    name: NAMES[NUMBER],
    identifier: 0xa094798c_2e74_2e74_93f2_0800200c0a66,
    slots: &const {
        export_slots![NUMBER; SLOTS;
            0 => Slot::number(SLOTS * size_of::<Slot>()),
            2 => Slot::function(function_hooks as *const ()),
            6 => Slot::function(domain_hooks as *const ()),
        ]
    },
};

/// The words that the runtime looks at are written by tools, at any time.
static FUNCTIONS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
static DOMAINS: [AtomicU64; 14] = [const { AtomicU64::new(0) }; 14];

fn give(room: &'static [AtomicU64], place: Out<*const AtomicU64>, count: Out<usize>) -> c_int {
    early(&mut || {
        place.set(room.as_ptr())?;
        count.set(room.len())
    })
}

/// A word for each function of the runtime.
unsafe extern "C" fn function_hooks(place: Out<*const AtomicU64>, count: Out<usize>) -> c_int {
    give(&FUNCTIONS, place, count)
}

/// A word for each kind of call.
unsafe extern "C" fn domain_hooks(place: Out<*const AtomicU64>, count: Out<usize>) -> c_int {
    give(&DOMAINS, place, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wants_to_be_told() {
        let (mut place, mut count) = (std::ptr::null(), 0);
        // SAFETY: both places outlive their use.
        let code = unsafe { function_hooks(Out::new(&raw mut place), Out::new(&raw mut count)) };
        // SAFETY: the room that was given.
        let room: &[AtomicU64] = unsafe { std::slice::from_raw_parts(place, count) };
        assert_eq!((code, room.len()), (0, 1024));
        assert!(room.iter().all(|word| word.load(std::sync::atomic::Ordering::Relaxed) == 0));
    }
}
