//! What a table is: its slots, its names, and what a slot leads to that nobody is known to call.

use crate::driver::early;
use crate::session::state::process;
use balar_host::CudaError;
use std::ffi::{c_int, c_void};
use std::fmt;

/// What messages call the tables, by their numbers.
pub const NAMES: [&str; 10] = [
    "CUDART_INTERFACE",
    "TOOLS_RUNTIME_CALLBACK_HOOKS",
    "CONTEXT_LOCAL_STORAGE",
    "INTEGRITY_CHECK",
    "CONTEXT_CHECKS",
    "TOOLS_TLS",
    "TOOLS_CONTEXT",
    "TOOLS_MODULE",
    "LOG",
    "PROCESSORS",
];

/// A slot of a table: the address of a function, or a number.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Slot(*const c_void);

// SAFETY: the address of a function or a number, which every thread may read.
unsafe impl Sync for Slot {}
// SAFETY: as above.
unsafe impl Send for Slot {}

impl Slot {
    /// A function; the callers of the table know its type.
    pub const fn function(address: *const ()) -> Slot {
        Slot(address.cast())
    }

    /// A number.
    pub const fn number(number: usize) -> Slot {
        Slot(std::ptr::without_provenance(number))
    }

    /// The address or number.
    pub fn address(self) -> u64 {
        self.0 as u64
    }
}

/// The 128 bits that name a table, in the order of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identifier(pub [u8; 16]);

impl fmt::Display for Identifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identifier(bytes) = self;
        for (index, byte) in bytes.iter().enumerate() {
            let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(formatter, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// A table of functions. Tables are statics, not constants: a table has one address, which [`integrity`](super::integrity) tells.
#[derive(Clone, Copy, Debug)]
pub struct ExportTable {
    /// What messages call it.
    pub name: &'static str,
    /// What it is asked for by.
    pub identifier: u128,
    /// Its slots.
    pub slots: &'static [Slot],
}

impl ExportTable {
    /// Its name in 128 bits.
    pub fn identifier(&self) -> Identifier {
        Identifier(self.identifier.to_be_bytes())
    }

    /// Where it lies: the same for as long as the process lives.
    pub fn address(&self) -> *const c_void {
        self.slots.as_ptr().cast()
    }
}

/// A function that nobody is known to call: the user is told once which one it was.
pub extern "C" fn unknown<const TABLE: usize, const SLOT: usize>() -> c_int {
    early(&mut || {
        static SAID: std::sync::Mutex<Vec<(usize, usize)>> = std::sync::Mutex::new(Vec::new());
        let mut said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !said.contains(&(TABLE, SLOT)) {
            said.push((TABLE, SLOT));
            process::say(&unknown_slot(TABLE, SLOT));
        }
        Err(CudaError::NotSupported)
    })
}

/// What is said of a call to an unknown slot.
pub(super) fn unknown_slot(table: usize, slot: usize) -> String {
    let name = NAMES.get(table).unwrap_or(&"?");
    format!("a library calls function {slot} of the driver's private table {name}, which the simulator does not have")
}

/// Slots of a table, by their numbers: those named, which are expressions of [`Slot`], and for all others [`unknown`].
///
/// `slots![TABLE; COUNT; 0 => ..., 2 => ...]`: the number of the table in `NAMES`, how many slots there are.
#[macro_export]
macro_rules! export_slots {
    ($table:expr; $count:expr; $($slot:literal => $entry:expr),* $(,)?) => {{
        const UNKNOWN: [$crate::driver::export_table::Slot; 96] = $crate::unknown_slots!($table;
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44
            45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84 85 86
            87 88 89 90 91 92 93 94 95);
        let mut slots = [$crate::driver::export_table::Slot::number(0); $count];
        let mut slot = 0;
        while slot < $count {
            slots[slot] = UNKNOWN[slot];
            slot += 1;
        }
        $(slots[$slot] = $entry;)*
        slots
    }};
}

/// [`unknown`] for each of these slots of a table.
#[macro_export]
macro_rules! unknown_slots {
    ($table:expr; $($slot:literal)*) => {
        [$($crate::driver::export_table::Slot::function(
            $crate::driver::export_table::unknown::<{ $table }, $slot> as *const (),
        )),*]
    };
}
