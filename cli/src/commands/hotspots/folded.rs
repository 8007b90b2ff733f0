//! Folded stacks, as inferno, flamegraph.pl and speedscope read them: `kernel;file:line;instruction cycles`.

use super::rows::{file_name, function_name};
use super::table::shown;
use balar_record::kernel_name::readable_name;
use balar_record::run_folder::instructions::{InstructionProfile, ProfileRow, STALL, SourceLine};
use balar_record::system::printable::printable_name;
use std::collections::BTreeMap;

/// A line for each instruction of the kernels that are chosen, its warp cycles behind it. Functions that were inlined have a frame of
/// their own, below the line that called them.
pub fn text(profile: &InstructionProfile, chosen: impl Fn(&str) -> bool) -> String {
    let stalls: Vec<usize> = (0..profile.columns.len()).filter(|&at| profile.columns[at].starts_with(STALL)).collect();
    let mut order: Vec<String> = Vec::new();
    let mut cycles: BTreeMap<String, u64> = BTreeMap::new();
    for row in profile.rows.iter().filter(|row| chosen(&row.kernel)) {
        let own: u64 = stalls.iter().map(|&at| row.counts[at]).sum();
        if own == 0 {
            continue;
        }
        let stack = stack(row);
        if !cycles.contains_key(&stack) {
            order.push(stack.clone());
        }
        *cycles.entry(stack).or_insert(0) += own;
    }
    order.iter().map(|stack| format!("{stack} {}\n", cycles[stack])).collect()
}

/// The frames of an instruction, the kernel first.
fn stack(row: &ProfileRow) -> String {
    let mut frames = vec![readable_name(&row.kernel)];
    let mut function = row.kernel.as_str();
    let line = |line: &SourceLine| format!("{}:{}", file_name(&line.file), line.line);
    let callers = row.inlined_at.iter().rev().map(|call| (call.function.as_str(), Some(&call.line)));
    let own = (row.source_function.as_str(), row.source.as_ref().or(row.ptx.as_ref()));
    for (name, place) in callers.chain([own]) {
        if name != function {
            frames.push(function_name(name));
            function = name;
        }
        frames.extend(place.map(line));
    }
    frames.push(match row.isa.as_str() {
        "sass" => format!("{:#06x} {}", row.address, shown(&row.text)),
        _ => shown(row.text.trim_end_matches(';')),
    });
    // What separates frames is no part of any.
    frames.iter().map(|frame| printable_name(&frame.replace(';', ",")).into_owned()).collect::<Vec<_>>().join(";")
}
