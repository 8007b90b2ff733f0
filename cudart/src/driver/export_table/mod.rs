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
//! | [`processors`] | where SMs are, for libraries |
//!
//! Slots that nobody is known to call lead to [`unknown`], whose error names the table and the slot.

pub mod callback_hooks;
pub mod context_storage;
pub mod integrity;
pub mod interface;
pub mod log;
pub mod processors;
mod table;
pub mod tools;

pub use table::{ExportTable, Identifier, Slot, unknown};

/// The tables that there are, each at its number.
pub static TABLES: [&ExportTable; 10] = [
    &interface::TABLE,
    &callback_hooks::TABLE,
    &context_storage::TABLE,
    &integrity::TABLE,
    &tools::CONTEXT_CHECKS,
    &tools::THREADS,
    &tools::CONTEXTS,
    &tools::MODULES,
    &log::TABLE,
    &processors::TABLE,
];

/// The table with this name.
pub fn find(identifier: Identifier) -> Option<&'static ExportTable> {
    TABLES.iter().copied().find(|table| table.identifier() == identifier)
}

#[cfg(test)]
mod tests {
    use super::table::{NAMES, unknown_slot};
    use super::*;
    use balar_host::CudaError;
    use std::collections::BTreeSet;
    use std::ffi::c_int;

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

    #[test]
    fn each_table_has_the_name_of_its_number() {
        assert_eq!(TABLES.map(|table| table.name), NAMES);
    }

    /// Sizes as traced with NVIDIA's driver; that of the context-local storage is none.
    #[test]
    fn tables_begin_with_their_sizes() {
        let sizes = [13, 7, 0, 3, 4, 4, 95, 64, 0, 0];
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
        let slot = TABLES[number].slots[17];
        // SAFETY: a slot without a meaning is a function without arguments.
        let call: extern "C" fn() -> c_int = unsafe { std::mem::transmute(slot) };
        assert_eq!(call(), CudaError::NotSupported.code() as c_int);
        let text = unknown_slot(number, 17);
        assert!(text.contains("function 17") && text.contains("TOOLS_CONTEXT"), "{text}");
    }
}
