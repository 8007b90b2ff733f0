//! Kernels by the named ranges of the program, in a table: each range is followed by those in it.

use super::kernel_table::quotient;
use super::table::Lines;
use balar_record::ranges::{ByRange, RangeRow, RangeSums, by_range, heaviest, tree};
use balar_record::result::RunRecord;

/// The heaviest ranges, `most` of them, and how many there are more; empty where no kernel was launched in one.
pub fn text(record: &RunRecord, most: usize, width: Option<u16>) -> String {
    let Some(ranges) = ranges(record) else { return String::new() };
    let total = ranges.values().map(|sums| sums.picoseconds).sum();
    let (rows, hidden) = heaviest(tree(&[ranges]), most);
    let header = vec!["time %", "time us", "kernels", "warp inst", "range"];
    let rows = rows.iter().map(|row| cells(row, total)).collect();
    let mut text = Lines { header, left: vec![4], droppable: vec![3], elastic: Some(4), rows }.text(width);
    match hidden {
        0 => {}
        1 => text.push_str(" 1 more range\n"),
        _ => text.push_str(&format!(" {hidden} more ranges\n")),
    }
    text
}

/// The launches of a run by their ranges.
fn ranges(record: &RunRecord) -> Option<ByRange> {
    // There may be millions of launches.
    if !record.launches().has_ranges() {
        return None;
    }
    by_range(record.launches().iter().map(|kernel| {
        let sums = RangeSums::of_launch(kernel.duration_ps(), kernel.cycles, kernel.counters.ctas.inst_executed);
        (kernel.range, sums)
    }))
}

fn cells(row: &RangeRow, total: u64) -> Vec<String> {
    let sums = row.sums.first().copied().unwrap_or_default();
    let timed = |value: String| if sums.timed > 0 { value } else { "-".to_owned() };
    vec![
        timed(quotient(sums.picoseconds, total, 100.0, 1)),
        timed(format!("{:.3}", sums.picoseconds as f64 / 1e6)),
        sums.launches.to_string(),
        sums.instructions.to_string(),
        format!("{:indent$}{}", "", row.name, indent = 2 * row.depth),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::ranges::RangePath;
    use balar_protocol::statistics::KernelRecord;
    use balar_record::sample::record;

    #[test]
    fn ranges_are_rows_of_a_tree() {
        let mut record = record();
        assert_eq!(text(&record, 8, None), "", "no kernel is of a range");
        let named = |kernel: KernelRecord| {
            let inner = if kernel.name.contains("internal") { "step > update" } else { "step > pivot" };
            KernelRecord { range: Some(RangePath::read(inner)), ..kernel }
        };
        record.statistics.kernels = record.statistics.kernels.iter().map(named).collect();
        let text = text(&record, 2, None);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert!(rows[0].starts_with("  100.0") && rows[0].ends_with("  step"), "{text}");
        assert!(rows[1].ends_with("    update") && rows[2] == " 1 more range", "{text}");
    }
}
