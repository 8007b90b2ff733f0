//! The summary that a person reads, one screen: the run, its kernels, the named ranges that they are of, what memory moved, what warps waited for.

use super::table::{Lines, add, lines, table};
use super::{kernel_table, memory_levels, range_table};
use balar_actors::kinds::UNITS;
use balar_actors::unified_memory::PAGE_BYTES;
use balar_protocol::statistics::Verification;
use balar_record::ending::Ending;
use balar_record::metrics::covered;
use balar_record::metrics::rollup::roll_up;
use balar_record::result::RunRecord;
use balar_record::timing::Timing;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Most kernels, ranges, results and stalls that a summary shows.
const MOST_KERNELS: usize = 8;
const MOST_RANGES: usize = 12;
const MOST_RESULTS: usize = 8;
const MOST_STALLS: usize = 4;

/// The summary. `width` is the terminal's, where there is one: tables fit it. Without one the text depends on the run alone.
/// Wall-clock values stand on the line "real time".
pub fn text(record: &RunRecord, width: Option<u16>) -> String {
    shown(record, width) + "\n--details prints every counter, --show 'gpu.l2[*]' or --metrics 'stall_*' some\n"
}

/// The summary, without what it says of other forms.
pub fn shown(record: &RunRecord, width: Option<u16>) -> String {
    let mut text = head(record);
    for table in [
        kernel_table::text(record, MOST_KERNELS, false, width),
        range_table::text(record, MOST_RANGES, width),
        memory_levels::text(record, width),
        stalls(record, width),
        results(record, MOST_RESULTS, width),
    ] {
        if !table.is_empty() {
            write!(text, "\n{table}").expect("a String takes every byte");
        }
    }
    text
}

/// `table` under its title; nothing where it is empty.
pub fn section(title: &str, table: &str) -> String {
    if table.is_empty() { String::new() } else { format!("\n{title}\n{table}") }
}

/// What ran, how it ended, how long it took.
pub fn head(record: &RunRecord) -> String {
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
    if let Some(code) = code(record) {
        line("code", code.to_owned());
    }
    line("ended", ended(record));
    if let Some(failed) = failed(record) {
        line("failed", failed);
    }
    if record.ending == Ending::StopTime
        && let Some(running) = record.running_kernels()
    {
        line("running", running);
    }
    if let Some(detail) = detail(record) {
        line("detail", detail);
    }
    if let Some(time) = record.timed_span() {
        let picoseconds = time.picoseconds();
        line("simulated", format!("{picoseconds} ps ({})", readable_time(picoseconds)));
    }
    if let Some(kernels) = kernels(record) {
        line("kernels", kernels);
    }
    if let Some(migrated) = migrated(record) {
        line("migrated", migrated);
    }
    if let Some(peers) = peers(record) {
        line("peers", peers);
    }
    let threads = if record.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", record.threads) };
    let rate = record.warp_instructions_per_second();
    line("real time", format!("{:.3} s on {threads}, {rate:.0} warp instructions/s", record.wall.as_secs_f64()));
    text
}

/// That PTX ran in place of machine code, on a GPU whose machine code the simulator runs.
fn code(record: &RunRecord) -> Option<&'static str> {
    let mut capabilities = record.node.gpus().iter().map(|gpu| gpu.compute_capability);
    let has_run = !record.statistics.kernels.is_empty();
    let is_stand_in =
        has_run && matches!(&*record.isa, "ptx" | "mixed") && capabilities.any(|capability| capability >= (7, 0));
    is_stand_in
        .then_some("PTX ran in place of machine code: its times are rougher; --ptxas PATH makes machine code of it")
}

fn ended(record: &RunRecord) -> String {
    let verification = match record.statistics.outcome.as_ref().map(|program| &program.verification) {
        Some(Verification::Passed) => ", result verified",
        Some(Verification::Failed(_)) => ", RESULT WRONG",
        Some(Verification::NotChecked) | None => ", result not checked",
    };
    let of_launches;
    let how = match &record.ending {
        Ending::Completed if record.completed() => "completed",
        Ending::Completed => "the program failed",
        Ending::StopTime => "partial: --stop-at",
        Ending::Launches(launches) => {
            of_launches = format!("partial: --launches {launches}");
            of_launches.as_str()
        }
        Ending::Interrupted => "partial: interrupted",
        Ending::Terminated => "partial: SIGTERM",
        Ending::WallLimit => "partial: --max-wall",
        Ending::Deadlock(_) => "partial: deadlock",
        Ending::ProgramKilled(_) => "partial: the program was killed",
        Ending::UnitBroken(_) => "partial: a unit broke a rule",
        Ending::UnitPanic(_) => "partial: a bug in balar-actors",
    };
    let problem = record.problem().map(|problem| format!("\n{:<11}{problem}", "problem")).unwrap_or_default();
    format!("{how}{verification}{problem}")
}

/// How long kernels ran, and which part of the run that is: what changes an SM moves this, and the whole run only where kernels bound it.
fn kernels(record: &RunRecord) -> Option<String> {
    let all = record.timed_span()?.picoseconds();
    let timed = record.statistics.kernels.iter().filter(|kernel| kernel.detail.is_timed());
    let time = covered(timed.map(|kernel| (kernel.start_ps, kernel.end_ps)).collect());
    (time > 0).then(|| format!("{}, {} % of that", readable_time(time), kernel_table::quotient(time, all, 100.0, 1)))
}

/// What unified memory moved, and the faults that it had; `None` where there is nothing of either.
fn migrated(record: &RunRecord) -> Option<String> {
    let rows = &record.statistics.rows;
    // Allocations and GMMUs have some of the counters of the driver, but no batches.
    let drivers: BTreeSet<&str> =
        rows.iter().filter(|row| row.what == "batches").map(|row| row.location.as_str()).collect();
    let sum = |what: &str| -> u64 {
        let own = rows.iter().filter(|row| row.what == what && drivers.contains(row.location.as_str()));
        own.map(|row| row.value).sum()
    };
    let [to_gpus, to_host, faults, host_faults] =
        ["pages_to_device", "pages_to_host", "far_faults", "host_faults"].map(sum);
    let pages = |count: u64| {
        let megabytes = (count * PAGE_BYTES) as f64 / 1e6;
        format!("{count} page{} ({megabytes:.3} MB)", if count == 1 { "" } else { "s" })
    };
    (to_gpus + to_host + faults + host_faults > 0).then(|| {
        let (to_gpus, to_host) = (pages(to_gpus), pages(to_host));
        format!("{to_gpus} to GPUs, {to_host} to the host; {faults} faults of GPUs, {host_faults} of the host")
    })
}

/// How what GPUs did with each other's memory was timed; `None` where they did nothing with it, or nothing was timed.
fn peers(record: &RunRecord) -> Option<String> {
    if record.timing == Timing::Nothing {
        return None;
    }
    let rows = &record.statistics.rows;
    let copied = rows.iter().any(|row| row.what == "bytes_peer" && row.value > 0);
    let accessed = record.statistics.outcome.as_ref().is_some_and(|program| program.peer_accessed);
    let copies = copied.then_some("copies between GPUs took time on one of the two alone");
    let accesses = accessed.then_some("accesses to another GPU's memory were timed as accesses to the own one");
    let parts: Vec<&str> = [copies, accesses].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What was timed, where that is not everything.
fn detail(record: &RunRecord) -> Option<String> {
    let launches = &record.statistics.kernels;
    let timed = match record.timing {
        Timing::Everything => return None,
        Timing::Nothing => 0,
        Timing::Part => launches.iter().filter(|launch| launch.detail.is_timed()).count(),
    };
    Some(match (timed, launches.len()) {
        (0, _) => "nothing was timed: values alone".to_owned(),
        (timed, all) => format!("{timed} of {all} launches timed, the others for their values alone"),
    })
}

/// Launches that were refused or broken off, and calls that gave the program an error; `None` where there is none.
fn failed(record: &RunRecord) -> Option<String> {
    let sum =
        |what: &str| -> u64 { record.statistics.rows.iter().filter(|row| row.what == what).map(|row| row.value).sum() };
    let (kernels, calls) = (sum("kernels_failed"), sum("calls_failed"));
    let counted = |count: u64, one: &str, several: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {several}")),
    };
    let kernels = counted(kernels, "kernel launch", "kernel launches");
    let parts: Vec<String> = [kernels, counted(calls, "CUDA call", "CUDA calls")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
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

/// What the program says of itself, `most` values of it; empty where it says nothing.
pub fn results(record: &RunRecord, most: usize, width: Option<u16>) -> String {
    let results = record.statistics.outcome.as_ref().map(|program| &program.results[..]).unwrap_or_default();
    if results.is_empty() {
        return String::new();
    }
    let rows = results.iter().take(most).map(|(name, value, unit)| vec![name.clone(), value.to_string(), unit.clone()]);
    let header = vec!["reported", "value", "unit"];
    let table = Lines { header, left: vec![0, 2], elastic: Some(0), rows: rows.collect(), ..Lines::default() };
    let mut text = table.text(width);
    if results.len() > most {
        text.push_str(&format!(" {} more\n", results.len() - most));
    }
    text
}

/// What warps waited for most, in percent of the warp-cycles; empty where nothing was counted.
fn stalls(record: &RunRecord, width: Option<u16>) -> String {
    let rolled = roll_up(&record.statistics.rows);
    let mut stalls: Vec<(&str, u64)> = Vec::new();
    for row in rolled.iter().filter(|row| row.what.starts_with("stall_") && row.unit == "warp-cycle") {
        match stalls.iter_mut().find(|(what, _)| *what == row.what) {
            Some((_, sum)) => *sum = sum.saturating_add(row.sum),
            None => stalls.push((row.what, row.sum)),
        }
    }
    let total: u64 = stalls.iter().map(|(_, sum)| *sum).fold(0, u64::saturating_add);
    // A warp that issues waits for nothing.
    stalls.retain(|(what, sum)| *what != "stall_none_selected" && *sum > 0);
    stalls.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    if stalls.is_empty() {
        return String::new();
    }
    let mut folded = table(&["stalls", "warp cycles %", "warps waited for"], width);
    for (what, sum) in stalls.iter().take(MOST_STALLS) {
        let part = kernel_table::quotient(*sum, total, 100.0, 1);
        add(&mut folded, [(*what).to_owned(), part, meaning(what).to_owned()], &[0, 2]);
    }
    if let Some(others) = stalls.get(MOST_STALLS..).filter(|others| !others.is_empty()) {
        let sum = others.iter().map(|(_, sum)| *sum).fold(0, u64::saturating_add);
        let reasons = if others.len() == 1 { "reason" } else { "reasons" };
        let part = kernel_table::quotient(sum, total, 100.0, 1);
        add(&mut folded, ["others".to_owned(), part, format!("{} more {reasons}", others.len())], &[0, 2]);
    }
    lines(folded)
}

/// What a stall means, without its unit of measure.
fn meaning(what: &str) -> &'static str {
    let counter = UNITS.iter().flat_map(|kind| kind.counters).find(|counter| counter.name == what);
    let meaning = counter.map_or("", |counter| counter.meaning);
    let rest = meaning.strip_prefix("warp-cycles ").unwrap_or(meaning);
    rest.strip_prefix("waiting for ").unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_protocol::statistics::StatisticRow;
    use balar_record::sample::record;

    /// The record with a counter of two SMs more.
    fn with(what: &'static str, unit: &'static str, values: [u64; 2]) -> RunRecord {
        let mut record = record();
        for (index, value) in values.into_iter().enumerate() {
            let location = format!("gpu.sm[{index}]");
            record.statistics.rows.push(StatisticRow { location, what, value, unit, maximum: false });
        }
        record
    }

    #[test]
    fn stalls_are_parts_of_all_warp_cycles() {
        let mut record = with("stall_wait", "warp-cycle", [30, 30]);
        record.statistics.rows.extend(with("stall_none_selected", "warp-cycle", [15, 25]).statistics.rows);
        let text = stalls(&record, None);
        // 60 of 100 warp-cycles; the other 40 issued.
        assert!(text.contains(" stall_wait           60.0  a fixed-latency result"), "{text}");
        assert!(!text.contains("none_selected"), "{text}");
    }

    #[test]
    fn launches_that_were_refused_are_named() {
        assert_eq!(failed(&record()), None);
        let mut record = with("kernels_failed", "kernel", [1, 1]);
        assert_eq!(failed(&record).as_deref(), Some("2 kernel launches"));
        record.statistics.rows.extend(with("calls_failed", "call", [0, 1]).statistics.rows);
        assert!(head(&record).contains("\nfailed     2 kernel launches, 1 CUDA call\n"), "{}", head(&record));
    }

    #[test]
    fn the_time_of_kernels_is_a_part_of_the_run() {
        // Launches of 100, 400 and 140 cycles of 762 ps, apart from each other, in a run of 3 us.
        assert!(head(&record()).contains("\nkernels    487.680 ns, 16.3 % of that\n"), "{}", head(&record()));
        let untimed = RunRecord { timing: Timing::Nothing, ..record() };
        assert_eq!(kernels(&untimed), None);
    }

    #[test]
    fn what_unified_memory_moved_is_said_where_it_moved_anything() {
        let row = |location: &str, what: &'static str, value: u64| StatisticRow {
            location: location.to_owned(),
            what,
            value,
            unit: "page",
            maximum: false,
        };
        let mut record = record();
        record.statistics.rows.push(row("unified_memory", "batches", 0));
        record.statistics.rows.push(row("unified_memory", "pages_to_device", 0));
        assert_eq!(migrated(&record), None);
        for (location, what, value) in [
            ("unified_memory", "pages_to_device", 516),
            ("unified_memory", "pages_to_host", 1),
            ("unified_memory", "far_faults", 14),
            // The same again by allocation and by the GMMU.
            ("unified_memory.allocation[0]", "pages_to_device", 516),
            ("gpu.gmmu", "far_faults", 14),
        ] {
            record.statistics.rows.push(row(location, what, value));
        }
        // Pages of 4096 bytes.
        let expected = "516 pages (2.114 MB) to GPUs, 1 page (0.004 MB) to the host; 14 faults of GPUs, 0 of the host";
        assert_eq!(migrated(&record).as_deref(), Some(expected));
    }

    #[test]
    fn how_peers_were_timed_is_said_where_a_run_touched_one() {
        assert_eq!(peers(&record()), None);
        // The counter of a node on which nothing was copied.
        assert_eq!(peers(&with("bytes_peer", "byte", [0, 0])), None);
        let mut record = with("bytes_peer", "byte", [0, 4096]);
        let copies = "copies between GPUs took time on one of the two alone";
        assert_eq!(peers(&record).as_deref(), Some(copies));
        record.statistics.outcome.as_mut().expect("the record has a program").peer_accessed = true;
        let accesses = "accesses to another GPU's memory were timed as accesses to the own one";
        assert!(head(&record).contains(&format!("\npeers      {copies}; {accesses}\n")), "{}", head(&record));
        let untimed = RunRecord { timing: Timing::Nothing, ..record };
        assert_eq!(peers(&untimed), None);
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
    fn times_have_the_unit_that_fits() {
        assert_eq!(readable_time(999_999), "999.999 ns");
        assert_eq!(readable_time(3_000_000), "3.000 us");
        assert_eq!(readable_time(2_500_000_000_000), "2.500 s");
    }
}
