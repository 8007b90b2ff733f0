//! Which kernels a kernel can launch: those whose address its code takes, or that lies in data which its code names.

use super::reach::reached_functions;
use crate::cubin::{Cubin, Function, SymbolKind};
use crate::execution::SystemCall;
use std::collections::BTreeSet;
use std::ops::Range;

/// The kernels that the kernel of this name can launch, as numbers among the kernels of the file, ascending. None where it launches
/// nothing, or cannot run.
pub(super) fn launched_by(cubin: &Cubin<'_>, kernel: &str) -> Vec<usize> {
    let Some(entry) = cubin.kernels().find(|function| function.name == kernel) else { return Vec::new() };
    let Ok(reached) = reached_functions(cubin, entry) else { return Vec::new() };
    let functions = || reached.iter().copied().chain([entry]);
    if !functions().any(|function| launches(cubin, function)) {
        return Vec::new();
    }
    // Any code may read the bank in which the addresses of variables are.
    let banks = cubin.constant_banks.iter().map(|bank| bank.section);
    let sections = functions().map(|function| function.section).chain(banks);
    let mut open: Vec<(usize, Range<u64>)> = sections.map(|section| (section, 0..u64::MAX)).collect();
    let mut seen = BTreeSet::new();
    let mut launched = BTreeSet::new();
    while let Some((section, range)) = open.pop() {
        if !seen.insert((section, range.start)) {
            continue;
        }
        let own = cubin.relocations.iter().filter(|it| it.section == section && range.contains(&it.offset));
        for symbol in own.filter_map(|relocation| cubin.symbols.get(relocation.symbol)) {
            let Some(target) = symbol.section else { continue };
            launched.extend(cubin.kernels().position(|kernel| kernel.section == target));
            if cubin.global_sections.iter().any(|global| global.section == target) {
                let whole = symbol.kind == SymbolKind::Section;
                let of_symbol = symbol.value..symbol.value.saturating_add(symbol.bytes.max(1));
                open.push((target, if whole { 0..u64::MAX } else { of_symbol }));
            }
        }
    }
    launched.into_iter().collect()
}

/// Whether a function calls one of the device runtime that launches kernels.
fn launches(cubin: &Cubin<'_>, function: &Function<'_>) -> bool {
    let externs = function.externs.iter().filter_map(|symbol| cubin.symbols.get(*symbol));
    let undefined = externs.filter(|symbol| symbol.is_undefined());
    undefined.filter_map(|symbol| SystemCall::named(symbol.name)).any(SystemCall::launches)
}
