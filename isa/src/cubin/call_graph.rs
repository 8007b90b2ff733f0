//! Which functions call which (`.nv.callgraph`).
//!
//! The section is four lists of pairs, each begun by a pair of zero and its number: (0, -1) calls by name; (0, -2) functions whose
//! addresses are taken, with a number for their prototype; (0, -3) functions that call through pointers, with the prototype's number;
//! (0, -4) which functions such calls can reach. ptxas 11.8 writes no fourth list.
//!
//! Source: own findings, from the output of ptxas 11.8, 12.9 and 13.5 for PTX made for the purpose.

use super::elf::{File, SECTION_CALL_GRAPH};
use super::error::CubinError;

/// The list of calls by name.
const DIRECT: i32 = -1;
/// The list of functions that calls through pointers can reach.
const INDIRECT: i32 = -4;

/// A call, or several: one function calls another somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the calling function's symbol.
    pub caller: usize,
    /// The number of the called function's symbol, which may be undefined: `vprintf`.
    pub callee: usize,
    /// Whether this is a function that a call through a pointer may reach.
    pub is_indirect: bool,
}

/// The calls of all functions. Functions inside the code of their one caller are not among them.
pub(super) fn calls(file: &File<'_>) -> Result<Vec<Call>, CubinError> {
    let mut calls = Vec::new();
    for section in file.sections.iter().filter(|section| section.kind == SECTION_CALL_GRAPH) {
        let (records, rest) = section.data.as_chunks::<8>();
        if !rest.is_empty() {
            let what = format!("{} bytes, expected records of 8", section.data.len());
            return Err(CubinError::section(section.name, 0, what));
        }
        let mut list = 0;
        for (offset, record) in (0..).step_by(8).zip(records) {
            let [a, b, c, d, e, f, g, h] = *record;
            let (caller, callee) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
            if caller == 0 && callee.cast_signed() < 0 {
                list = callee.cast_signed();
                continue;
            }
            if list == DIRECT || list == INDIRECT {
                let [caller, callee] = [caller, callee].map(|symbol| file.symbol(symbol, section.name, offset));
                calls.push(Call { caller: caller?, callee: callee?, is_indirect: list == INDIRECT });
            }
        }
    }
    Ok(calls)
}
