//! Which functions of the device runtime a file of machine code has.

use crate::cubin::{Cubin, SymbolKind};
use crate::execution::SystemCall;
use std::collections::BTreeSet;

/// The functions of the device runtime that any program with a stack has; others are in those that name them.
pub(super) const SYSTEM_CALLS: [SystemCall; 4] =
    [SystemCall::Print, SystemCall::Allocate, SystemCall::Free, SystemCall::Assert];

/// The functions of the device runtime that a file names.
pub(super) fn system_calls(cubin: &Cubin<'_>) -> impl Iterator<Item = SystemCall> {
    let functions = cubin.undefined_symbols().filter(|symbol| symbol.kind == SymbolKind::Function);
    functions.filter_map(|symbol| SystemCall::named(symbol.name))
}

/// The system calls that are not in every program, ascending.
pub(super) fn further_system_calls(cubin: &Cubin<'_>) -> Vec<SystemCall> {
    let further = system_calls(cubin).filter(|call| !SYSTEM_CALLS.contains(call));
    further.collect::<BTreeSet<_>>().into_iter().collect()
}
