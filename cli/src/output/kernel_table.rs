//! Kernels in a table: all launches of one kernel together, the longest first, as profilers list them.

use super::table::Lines;
use balar_protocol::Detail;
use balar_protocol::cuda::LaunchId;
use balar_protocol::kernel_records::KernelRecords;
use balar_protocol::statistics::CtaCounters;
use balar_record::kernel_name::{readable_name, short_names};
use balar_record::result::{RunRecord, ratio};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All launches of one kernel that were timed, or all that were not.
struct KernelRow {
    name: Arc<str>,
    /// The kernel that has launched it, where no host has.
    parent: Option<Arc<str>>,
    detail: Detail,
    calls: u64,
    /// Calls that did not complete.
    broken_off: u64,
    picoseconds: u64,
    cycles: u64,
    min: u64,
    max: u64,
    counters: CtaCounters,
}

/// The kernels, `most` of them, and how many there are more; empty where there is none.
pub fn text(record: &RunRecord, most: usize, in_full: bool, width: Option<u16>) -> String {
    let rows = rows(record.launches());
    let chosen = record.chosen_launches.as_ref().map_or(String::new(), |chosen| {
        format!(" {} of {} launches are chosen\n", chosen.len(), record.statistics.kernels.len())
    });
    if rows.is_empty() {
        return chosen;
    }
    let total: u64 = rows.iter().map(|row| row.picoseconds).sum();
    let (shown, hidden) = rows.split_at(rows.len().min(most));
    let names = shown.iter().flat_map(|row| [Some(&row.name), row.parent.as_ref()]).flatten().map(|name| &**name);
    let names: BTreeMap<&str, String> =
        if in_full { names.map(|name| (name, readable_name(name))).collect() } else { short_names(names) };
    let shown: Vec<Vec<String>> = shown.iter().map(|row| cells(row, total, &names, in_full)).collect();
    let mut text = if in_full { full(shown) } else { short(shown) }.text(width);
    if !hidden.is_empty() {
        let time: u64 = hidden.iter().map(|row| row.picoseconds).sum();
        let (kernels, have) = if hidden.len() == 1 {
            ("1 more kernel".to_owned(), "has")
        } else {
            (format!("{} more kernels", hidden.len()), "have")
        };
        // Of kernels that were not timed there is nothing to say but their number.
        let share = if total == 0 {
            String::new()
        } else {
            format!(" {have} {} % of the time", quotient(time, total, 100.0, 1))
        };
        text.push_str(&format!(" {kernels}{share}\n"));
    }
    text.push_str(&chosen);
    text
}

fn short(rows: Vec<Vec<String>>) -> Lines {
    let header = vec!["time %", "time us", "calls", "SM cycles", "inst/cycle", "kernel"];
    Lines { header, left: vec![5], droppable: vec![4], elastic: Some(5), rows }
}

fn full(rows: Vec<Vec<String>>) -> Lines {
    let header = vec![
        "time %",
        "time us",
        "calls",
        "SM cycles",
        "avg",
        "min",
        "max",
        "warps",
        "warp inst",
        "inst/cycle",
        "lanes/inst",
        "L1 hit %",
        "kernel",
    ];
    Lines { header, left: vec![12], droppable: vec![7, 8, 5, 6, 4, 10, 11, 9], elastic: Some(12), rows }
}

fn rows(kernels: &KernelRecords) -> Vec<KernelRow> {
    let mut rows: Vec<KernelRow> = Vec::new();
    let names = names_of_parents(kernels);
    for kernel in kernels.iter() {
        let parent = kernel.parent.and_then(|parent| names.get(&parent)).cloned();
        let is_it = |row: &KernelRow| row.name == kernel.name && row.detail == kernel.detail && row.parent == parent;
        let index = rows.iter().position(is_it).unwrap_or_else(|| {
            let (counters, min) = (CtaCounters::default(), u64::MAX);
            rows.push(KernelRow {
                name: Arc::clone(&kernel.name),
                parent: parent.clone(),
                detail: kernel.detail,
                calls: 0,
                broken_off: 0,
                picoseconds: 0,
                cycles: 0,
                min,
                max: 0,
                counters,
            });
            rows.len() - 1
        });
        let row = &mut rows[index];
        row.calls += 1;
        row.broken_off += u64::from(!kernel.completed);
        row.picoseconds += kernel.duration_ps().unwrap_or(0);
        row.cycles += kernel.cycles;
        row.min = row.min.min(kernel.cycles);
        row.max = row.max.max(kernel.cycles);
        row.counters.add(&kernel.counters.ctas);
    }
    // The sort keeps the order of launches among equals.
    rows.sort_by_key(|row| std::cmp::Reverse(row.picoseconds));
    rows
}

/// The names of the kernels that have launched kernels.
fn names_of_parents(kernels: &KernelRecords) -> BTreeMap<LaunchId, Arc<str>> {
    let parents: BTreeSet<LaunchId> = kernels.iter().filter_map(|kernel| kernel.parent).collect();
    if parents.is_empty() {
        return BTreeMap::new();
    }
    let named = kernels.iter().filter(|kernel| parents.contains(&kernel.launch));
    named.map(|kernel| (kernel.launch, kernel.name)).collect()
}

fn cells(row: &KernelRow, total: u64, names: &BTreeMap<&str, String>, in_full: bool) -> Vec<String> {
    let counters = &row.counters;
    let timed = |value: String| if row.detail.is_timed() { value } else { "-".to_owned() };
    let mut cells = vec![
        timed(quotient(row.picoseconds, total, 100.0, 1)),
        timed(format!("{:.3}", row.picoseconds as f64 / 1e6)),
        row.calls.to_string(),
        timed(row.cycles.to_string()),
    ];
    if in_full {
        cells.extend([
            timed(quotient(row.cycles, row.calls, 1.0, 1)),
            timed(row.min.to_string()),
            timed(row.max.to_string()),
            counters.warps_launched.to_string(),
            counters.inst_executed.to_string(),
        ]);
    }
    // Of a launch that did not complete, instructions of CTAs that have ended alone are known.
    let cycles = if row.broken_off == 0 { row.cycles } else { 0 };
    cells.push(quotient(counters.inst_executed, cycles, 1.0, 2));
    if in_full {
        cells.extend([
            quotient(counters.thread_inst_executed, counters.inst_executed, 1.0, 2),
            quotient(counters.l1_sector_hits_load, counters.l1_sectors_load, 100.0, 1),
        ]);
    }
    let readable = |name: &Arc<str>| names.get(&**name).cloned().unwrap_or_else(|| name.to_string());
    let mut name = readable(&row.name);
    if let Some(parent) = &row.parent {
        name.push_str(&format!(", launched by {}", readable(parent)));
    }
    if !row.detail.is_timed() {
        name.push_str(" (functional)");
    }
    cells.push(match row.broken_off {
        0 => name,
        all if all == row.calls => format!("{name} (not completed)"),
        some => format!("{name} ({some} not completed)"),
    });
    cells
}

/// `part / whole * scale`; "-" where that means nothing.
pub fn quotient(part: u64, whole: u64, scale: f64, digits: usize) -> String {
    let value = ratio(part as f64 * scale, whole as f64);
    value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_record::sample::record;

    #[test]
    fn kernels_are_aggregated_by_name_and_longest_comes_first() {
        let text = text(&record(), 10, true, None);
        let rows: Vec<Vec<&str>> =
            text.lines().filter(|line| line.contains("lud_")).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert_eq!(rows[0][2..7], ["1", "400", "400.0", "400", "400"], "{text}");
        assert_eq!(rows[1][2..7], ["2", "240", "120.0", "100", "140"], "{text}");
        assert_eq!(rows[1].last(), Some(&"lud_diagonal"));
    }

    #[test]
    fn those_that_are_not_shown_are_counted() {
        // lud_diagonal has 240 of 640 cycles of one clock.
        let text = text(&record(), 1, false, None);
        assert!(!text.contains("lud_diagonal") && text.ends_with(" 1 more kernel has 37.5 % of the time\n"), "{text}");
    }
}
