//! Tables of functions without names, which `cuGetExportTable` gives: the CUDA runtime that is linked into programs and NVIDIA's libraries
//! (cuBLAS, cuFFT, cuDNN) call the driver through them, too.
//!
//! A table is an array of addresses and is asked for by a number of 128 bits. Most begin with their size in bytes. Projects that stand in
//! for the driver (ZLUDA, SCUDA) publish the purpose of the functions; which of them are called was traced with the runtimes of CUDA 11.8
//! to 13.5, and with the libraries.
//!
//! | module | purpose of its functions |
//! |---|---|
//! | [`interface`] | primary contexts and code, for the runtime |
//! | [`callback_hooks`] | room where tools note the calls that they want to be told of |
//! | [`context_storage`] | values that libraries keep for each context |
//! | [`integrity`] | the answer by which the runtime knows the driver |
//! | [`tools`] | contexts, streams and modules, for libraries that are built like tools |
//! | [`log`] | messages of libraries |
//!
//! Slots that nobody is known to call lead to [`unknown`], whose error names the table and the slot.

pub mod callback_hooks;
pub mod context_storage;
pub mod integrity;
pub mod interface;
pub mod log;
pub mod tools;

use crate::driver::early;
use crate::session::state::process;
use balar_host::CudaError;
use std::ffi::{c_int, c_void};
use std::fmt;

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

/// A table of functions. Tables are statics, not constants: a table has one address, which [`integrity`] tells.
#[derive(Clone, Copy, Debug)]
pub struct ExportTable {
    /// Its name in messages.
    pub name: &'static str,
    /// The number that it is asked for by.
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

/// The tables that there are.
pub static TABLES: [&ExportTable; 9] = [
    &interface::TABLE,
    &callback_hooks::TABLE,
    &context_storage::TABLE,
    &integrity::TABLE,
    &tools::CONTEXT_CHECKS,
    &tools::THREADS,
    &tools::CONTEXTS,
    &tools::MODULES,
    &log::TABLE,
];

/// The table with this name.
pub fn find(identifier: Identifier) -> Option<&'static ExportTable> {
    TABLES.iter().copied().find(|table| table.identifier() == identifier)
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

/// The message about a call to an unknown slot.
fn unknown_slot(table: usize, slot: usize) -> String {
    let name = TABLES.get(table).map_or("?", |table| table.name);
    format!("a library calls function {slot} of the driver's private table {name}, which the simulator does not have")
}

/// Slots of a table, by their numbers: those named, which are expressions of [`Slot`], and for all others [`unknown`].
///
/// `slots![TABLE; COUNT; 0 => ..., 2 => ...]`: the number of the table in [`TABLES`], how many slots there are.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn tables_are_found_by_the_bytes_of_their_names() {
        let identifier = *b"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9";
        let table = find(Identifier(identifier)).expect("the runtime's table");
        assert_eq!(table.name, "CUDART_INTERFACE");
        assert_eq!(table.identifier().to_string(), "6bd5fb6c-5bf4-e74a-8987-d93912fd9df9");
        let names: BTreeSet<Identifier> = TABLES.iter().map(|table| table.identifier()).collect();
        assert_eq!(names.len(), TABLES.len());
        assert!(find(Identifier([0; 16])).is_none());
    }

    /// Sizes as traced with NVIDIA's driver; that of the context-local storage is none.
    #[test]
    fn tables_begin_with_their_sizes() {
        let sizes = [13, 7, 0, 3, 4, 4, 95, 64, 0];
        for (table, slots) in TABLES.iter().zip(sizes) {
            if slots > 0 {
                assert_eq!(
                    (table.slots[0].address(), table.slots.len()),
                    (slots * 8, slots as usize),
                    "{}",
                    table.name
                );
            }
        }
    }

    #[test]
    fn a_call_that_nobody_knows_names_table_and_slot() {
        let number = TABLES.iter().position(|table| table.name == "TOOLS_CONTEXT").expect("a table");
        let slot = TABLES[number].slots[17].0;
        // SAFETY: a slot without a meaning is a function without arguments.
        let call: extern "C" fn() -> c_int = unsafe { std::mem::transmute(slot) };
        assert_eq!(call(), CudaError::NotSupported.code() as c_int);
        let text = unknown_slot(number, 17);
        assert!(text.contains("function 17") && text.contains("TOOLS_CONTEXT"), "{text}");
    }
}
