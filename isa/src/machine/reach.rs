//! The functions that a kernel reaches, and undefined symbols among them.

use super::MachineError;
use super::memory::is_dynamic;
use crate::cubin::{Binding, Cubin, Function, RelocationKind, Symbol, SymbolKind};
use crate::execution::SystemCall;
use std::collections::{BTreeMap, BTreeSet};

/// Whether a program that refers to a symbol cannot run: nobody defines it.
pub(super) fn is_missing(symbol: &Symbol<'_>) -> bool {
    let is_reference = matches!(symbol.kind, SymbolKind::Texture | SymbolKind::Sampler | SymbolKind::Surface);
    symbol.is_undefined()
        && !is_reference
        && !is_dynamic(symbol)
        && symbol.binding != Binding::Weak
        && SystemCall::named(symbol.name).is_none()
}

/// The functions beside a kernel that its program must have, in the order of their sections: those that it calls by name, directly or
/// not, and those whose address is taken somewhere.
///
/// # Errors
///
/// One of them, or the kernel, refers to an undefined symbol.
pub(super) fn reached_functions<'a>(
    cubin: &'a Cubin<'a>,
    entry: &'a Function<'a>,
) -> Result<Vec<&'a Function<'a>>, MachineError> {
    let others = || cubin.functions.iter().filter(|function| !function.is_entry);
    let by_section: BTreeMap<usize, &Function<'_>> = others().map(|function| (function.section, function)).collect();
    let section_of = |symbol: usize| cubin.symbols.get(symbol).and_then(|symbol| symbol.section);
    let mut calls: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut to_visit = vec![entry.section];
    for relocation in &cubin.relocations {
        let Some(target) = section_of(relocation.symbol).filter(|target| by_section.contains_key(target)) else {
            continue;
        };
        match relocation.kind {
            RelocationKind::UnusedClear32 | RelocationKind::UnusedClear64 => {}
            RelocationKind::Instruction47 | RelocationKind::InstructionSplit55 => {
                calls.insert((relocation.section, target));
            }
            // Return addresses are taken of the code that they are in.
            _ if relocation.section == target => {}
            _ => to_visit.push(target),
        }
    }
    for call in &cubin.calls {
        if let (Some(caller), Some(callee)) = (section_of(call.caller), section_of(call.callee)) {
            calls.insert((caller, callee));
        }
    }
    let mut reached: BTreeMap<usize, &Function<'_>> = BTreeMap::new();
    let mut visited = BTreeSet::new();
    while let Some(section) = to_visit.pop() {
        if !visited.insert(section) {
            continue;
        }
        reached.extend(by_section.get(&section).map(|function| (section, *function)));
        to_visit.extend(calls.range((section, 0)..=(section, usize::MAX)).map(|(_, callee)| *callee));
    }
    let reached: Vec<&Function<'_>> = reached.into_values().collect();
    for function in reached.iter().copied().chain([entry]) {
        let externs = function.externs.iter().filter_map(|symbol| cubin.symbols.get(*symbol));
        if let Some(symbol) = externs.into_iter().find(|symbol| is_missing(symbol)) {
            let (function, symbol) = (function.name.to_owned(), symbol.name.to_owned());
            return Err(MachineError::Undefined { function, symbol });
        }
    }
    Ok(reached)
}
