//! Hot spots as tables to read.

use super::launches::Launches;
use super::rows::{HotRow, KernelHotspots, file_name, function_name};
use crate::options::hotspots::{By, HotspotOptions};
use crate::output::table::Lines;
use balar_record::kernel_name::short_name;
use std::fmt::Write as _;

/// Rows of a kernel that are shown unless the options say how many.
const ROWS: usize = 10;
/// Reasons of stalls that are shown of a row.
const STALLS: usize = 2;

/// A table for each kernel.
pub fn text(
    kernels: &[KernelHotspots<'_>],
    options: &HotspotOptions,
    launches: &Launches,
    width: Option<u16>,
) -> String {
    let mut text = String::new();
    for kernel in kernels {
        if !text.is_empty() {
            text.push('\n');
        }
        let total = &kernel.total;
        let gpus = if kernel.gpus > 1 { format!(", {} GPUs", kernel.gpus) } else { String::new() };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{} ({}): {} warp instructions, {} warp cycles{}{gpus}",
            short_name(&kernel.name),
            kernel.isa,
            total.executed(),
            total.cycles(),
            launches.words(&kernel.name)
        );
        text.push_str(&table(kernel, options, width));
    }
    text
}

fn table(kernel: &KernelHotspots<'_>, options: &HotspotOptions, width: Option<u16>) -> String {
    let ran: Vec<&HotRow<'_>> = kernel.rows.iter().filter(|row| row.counts.all().any(|(_, count)| count > 0)).collect();
    let (shown, hidden) = ran.split_at(ran.len().min(options.limit.unwrap_or(ROWS)));
    let rows = shown.iter().map(|row| cells(kernel, row, options.by)).collect();
    let mut header =
        vec!["cycles %", "executed", "lanes", "main stalls (% of the row's cycles)", "sectors", "conflicts"];
    let mut left = vec![3];
    let mut droppable = vec![5, 4, 2, 1];
    match options.by {
        By::Instruction => {
            header.extend(["where", "instruction"]);
            left.extend([6, 7]);
        }
        By::Line => {
            header.extend(["line", "function", "instructions"]);
            left.extend([6, 7]);
            droppable.insert(0, 8);
        }
        By::Function => {
            header.extend(["function", "instructions"]);
            left.push(6);
            droppable.insert(0, 7);
        }
        By::Opcode => {
            header.extend(["opcode", "instructions"]);
            left.push(6);
            droppable.insert(0, 7);
        }
    }
    let elastic = Some(if matches!(options.by, By::Function | By::Opcode) { 6 } else { 7 });
    let mut text = Lines { header, left, droppable, elastic, rows }.text(width);
    if !hidden.is_empty() {
        let share: f64 = hidden.iter().map(|row| kernel.share(row)).sum();
        let rows = if hidden.len() == 1 { "1 more row has" } else { &format!("{} more rows have", hidden.len()) };
        let _ = writeln!(text, " {rows} {:.1} % of the cycles", 100.0 * share);
    }
    text
}

fn cells(kernel: &KernelHotspots<'_>, row: &HotRow<'_>, by: By) -> Vec<String> {
    let counts = &row.counts;
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let mut cells = vec![
        format!("{:.1}", 100.0 * kernel.share(row)),
        counts.executed().to_string(),
        or_dash(counts.lanes().map(|lanes| format!("{lanes:.1}"))),
        stalls(row),
        or_dash(counts.sectors()),
        or_dash(counts.bank_conflicts().map(|conflicts| conflicts.to_string())),
    ];
    let line = row.line.as_ref().map(|line| format!("{}:{}", file_name(&line.file), line.line));
    match by {
        By::Instruction => cells.extend([place(kernel, row, line), shown(&row.text)]),
        By::Line => {
            let function = function_name(&row.function);
            // Of code without any line, where lines would come from.
            let none = if kernel.has_source { "(no line)" } else { "(no line: compiled without -lineinfo)" };
            cells.extend([line.unwrap_or_else(|| none.to_owned()), function, row.instructions.to_string()]);
        }
        By::Function => cells.extend([function_name(&row.function), row.instructions.to_string()]),
        By::Opcode => cells.extend([row.text.clone(), row.instructions.to_string()]),
    }
    cells
}

/// Where an instruction is: its line, and of machine code its address.
fn place(kernel: &KernelHotspots<'_>, row: &HotRow<'_>, line: Option<String>) -> String {
    let address = row.address.filter(|_| kernel.isa == "sass").map(|address| {
        let function = if row.function == kernel.name { String::new() } else { function_name(&row.function) };
        format!("{function}+{address:#x}")
    });
    [line, address].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The text of an instruction on one line.
pub fn shown(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `long_scoreboard 71.2, wait 8.1`.
pub fn stalls(row: &HotRow<'_>) -> String {
    let cycles = row.counts.cycles();
    let stalls = row
        .counts
        .stalls()
        .into_iter()
        .take(STALLS)
        .map(|(reason, count)| format!("{reason} {:.1}", 100.0 * count as f64 / cycles as f64));
    let text = stalls.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "-".to_owned() } else { text }
}
