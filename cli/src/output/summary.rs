//! The summary that a person reads: the run, its kernels, and what each kind of unit did.

use crate::result::{Ending, RunRecord, ratio};
use crate::rollup::roll_up;
use balar_protocol::statistics::{KernelCounters, Verification};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::fmt::Write;

/// The summary. `width` is the terminal's, where there is one: tables fold at it. Without one the text depends on the
/// run alone. Wall-clock values stand on the line "real time".
pub fn text(record: &RunRecord, width: Option<u16>) -> String {
    let mut text = head(record);
    if let Some(table) = kernels(record, width) {
        text.push_str("\nKernels\n");
        text.push_str(&lines(&table));
    }
    if let Some(table) = results(record, width) {
        text.push_str("\nReported by the program\n");
        text.push_str(&lines(&table));
    }
    if let Some(table) = units(record, width) {
        text.push_str("\nUnits\n");
        text.push_str(&lines(&table));
    }
    text
}

fn head(record: &RunRecord) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<11}{value}").expect("a String takes every byte");
    };
    line("topology", record.topology.clone());
    if !record.workload.is_empty() {
        // Those of a program are its arguments by number.
        let parameters = record.parameters.iter().map(|(key, value)| match key.parse::<u32>() {
            Ok(_) => format!(" {value}"),
            Err(_) => format!(" {key}={value}"),
        });
        line("workload", format!("{}{} ({})", record.workload, parameters.collect::<String>(), record.isa));
    }
    line("ended", ended(record));
    let picoseconds = record.sim_time.picoseconds();
    line("simulated", format!("{picoseconds} ps ({})", readable_time(picoseconds)));
    let threads = if record.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", record.threads) };
    let rate = record.warp_instructions_per_second();
    line("real time", format!("{:.3} s on {threads}, {rate:.0} warp instructions/s", record.wall.as_secs_f64()));
    text
}

fn ended(record: &RunRecord) -> String {
    let verification = match record.statistics.outcome.as_ref().map(|program| &program.verification) {
        Some(Verification::Passed) => ", result verified",
        Some(Verification::Failed(_)) => ", RESULT WRONG",
        Some(Verification::NotChecked) | None => ", result not checked",
    };
    let how = match &record.ending {
        Ending::Completed if record.completed() => "completed",
        Ending::Completed => "the program failed",
        Ending::StopTime => "partial: --stop-at",
        Ending::Interrupted => "partial: interrupted",
        Ending::WallLimit => "partial: --max-wall",
        Ending::Deadlock(_) => "partial: deadlock",
        Ending::ProgramKilled(_) => "partial: the program was killed",
        Ending::UnitBroken(_) => "partial: a unit broke a rule",
        Ending::UnitPanic(_) => "partial: a bug of balar-actors",
    };
    let problem = record.problem().map(|problem| format!("\n{:<11}{problem}", "problem")).unwrap_or_default();
    format!("{how}{verification}{problem}")
}

/// A span of simulated time with the unit that fits it.
fn readable_time(picoseconds: u64) -> String {
    let (unit, divisor) = match picoseconds {
        0..1_000_000 => ("ns", 1e3),
        1_000_000..1_000_000_000 => ("us", 1e6),
        1_000_000_000..1_000_000_000_000 => ("ms", 1e9),
        _ => ("s", 1e12),
    };
    format!("{:.3} {unit}", picoseconds as f64 / divisor)
}

/// All launches of one kernel.
struct KernelRow<'a> {
    name: &'a str,
    calls: u64,
    picoseconds: u64,
    cycles: u64,
    min: u64,
    max: u64,
    counters: KernelCounters,
}

fn kernels(record: &RunRecord, width: Option<u16>) -> Option<Table> {
    let mut rows: Vec<KernelRow> = Vec::new();
    for kernel in &record.statistics.kernels {
        let index = rows.iter().position(|row| row.name == kernel.name).unwrap_or_else(|| {
            let (counters, min) = (KernelCounters::default(), u64::MAX);
            rows.push(KernelRow { name: &kernel.name, calls: 0, picoseconds: 0, cycles: 0, min, max: 0, counters });
            rows.len() - 1
        });
        let row = &mut rows[index];
        row.calls += 1;
        row.picoseconds += kernel.end_ps.saturating_sub(kernel.start_ps);
        row.cycles += kernel.cycles;
        row.min = row.min.min(kernel.cycles);
        row.max = row.max.max(kernel.cycles);
        row.counters.add(&kernel.counters);
    }
    // Longest first, as profilers list them; the sort keeps the order of launches among equals.
    rows.sort_by_key(|row| std::cmp::Reverse(row.picoseconds));
    let total: u64 = rows.iter().map(|row| row.picoseconds).sum();
    let header = [
        "time %",
        "time us",
        "calls",
        "cycles",
        "avg",
        "min",
        "max",
        "warps",
        "warp inst",
        "inst/cycle",
        "lanes/inst",
        "L1 hit %",
        "name",
    ];
    let mut table = table(&header, width);
    for row in &rows {
        let counters = &row.counters;
        let part = |part: u64, whole: u64, scale: f64, digits: usize| {
            let value = ratio(part as f64 * scale, whole as f64);
            value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        add(
            &mut table,
            [
                part(row.picoseconds, total, 100.0, 1),
                format!("{:.3}", row.picoseconds as f64 / 1e6),
                row.calls.to_string(),
                row.cycles.to_string(),
                part(row.cycles, row.calls, 1.0, 1),
                row.min.to_string(),
                row.max.to_string(),
                counters.warps_launched.to_string(),
                counters.inst_executed.to_string(),
                part(counters.inst_executed, row.cycles, 1.0, 2),
                part(counters.thread_inst_executed, counters.inst_executed, 1.0, 2),
                part(counters.l1_sector_hits_load, counters.l1_sectors_load, 100.0, 1),
                row.name.to_owned(),
            ],
            &[12],
        );
    }
    (!rows.is_empty()).then_some(table)
}

fn results(record: &RunRecord, width: Option<u16>) -> Option<Table> {
    let results = record.statistics.outcome.as_ref().map(|program| &program.results)?;
    let mut table = table(&["what", "value", "unit"], width);
    for (name, value, unit) in results {
        add(&mut table, [name.clone(), value.to_string(), unit.clone()], &[0, 2]);
    }
    (!results.is_empty()).then_some(table)
}

fn units(record: &RunRecord, width: Option<u16>) -> Option<Table> {
    let rows = roll_up(&record.statistics.rows);
    let mut table = table(&["location", "what", "units", "sum", "min", "avg", "max", "unit"], width);
    let mut previous = "";
    for row in &rows {
        let location = if row.location == previous { String::new() } else { row.location.clone() };
        previous = &row.location;
        let spread = |value: String| if row.instances == 1 { String::new() } else { value };
        add(
            &mut table,
            [
                location,
                row.what.to_owned(),
                row.instances.to_string(),
                row.sum.to_string(),
                spread(row.min.to_string()),
                spread(format!("{:.1}", row.avg)),
                spread(row.max.to_string()),
                row.unit.to_owned(),
            ],
            &[0, 1, 7],
        );
    }
    (!rows.is_empty()).then_some(table)
}

/// An empty table; folded at `width` where that is known.
pub fn table(header: &[&str], width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('-')));
    match width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header(header);
    table
}

/// Adds a row; cells are flush right except those of the `left` columns.
pub fn add<const N: usize>(table: &mut Table, cells: [String; N], left: &[usize]) {
    let aligned = cells.into_iter().enumerate().map(|(column, text)| {
        let side = if left.contains(&column) { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(text).set_alignment(side)
    });
    table.add_row(aligned);
}

/// The lines of a table, without spaces at their ends.
pub fn lines(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::record;

    #[test]
    fn kernels_are_aggregated_by_name_and_longest_comes_first() {
        let text = text(&record(), None);
        let rows: Vec<Vec<&str>> =
            text.lines().filter(|line| line.contains("lud_")).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert_eq!(rows[0][2..7], ["1", "400", "400.0", "400", "400"], "{text}");
        assert_eq!(rows[1][2..7], ["2", "240", "120.0", "100", "140"], "{text}");
        assert_eq!(rows[1].last(), Some(&"lud_diagonal"));
    }

    #[test]
    fn the_summary_as_it_is_printed() {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../snapshots/cli"));
        settings.set_prepend_module_to_snapshot(false);
        let mut record = record();
        record.statistics.rows.retain(|row| row.what.starts_with("inst_") || row.what == "read_hits");
        settings.bind(|| insta::assert_snapshot!("summary", text(&record, None)));
    }

    #[test]
    fn units_are_rolled_up() {
        let text = text(&record(), None);
        let line = text.lines().find(|line| line.contains("gpu.sm[*]")).expect("a line for the SMs");
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["gpu.sm[*]", "warps_launched", "2", "13", "5", "6.5", "8", "warp"]);
        assert_eq!(text.matches("gpu.sm[*]").count(), 1, "the location is named once");
    }

    #[test]
    fn wall_clock_values_stand_on_one_line() {
        let without = |record: &RunRecord| -> Vec<String> {
            text(record, None).lines().filter(|line| !line.starts_with("real time")).map(str::to_owned).collect()
        };
        let mut other = record();
        other.wall = std::time::Duration::from_secs(77);
        other.threads = 2;
        assert_eq!(without(&record()), without(&other));
    }

    #[test]
    fn a_terminal_folds_tables() {
        let widest = |width| text(&record(), width).lines().map(|line| line.chars().count()).max();
        assert!(widest(None) > Some(100));
        assert!(widest(Some(80)) <= Some(80));
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(readable_time(999_999), "999.999 ns");
        assert_eq!(readable_time(3_000_000), "3.000 us");
        assert_eq!(readable_time(2_500_000_000_000), "2.500 s");
    }
}
