//! The table of kernels: all launches of a name together.

use super::attribution::KernelShare;
use super::head::SECTOR;
use super::input::RunInput;
use super::units::{kernel_name, quotient};
use crate::commands::compare::kernels::LaunchSums;
use balar_record::kernel_name::short_names;
use balar_record::run_folder::document::Launch;
use balar_report::{Cell, Column, Format, Part, Section, Table};
use std::collections::{BTreeMap, BTreeSet};

/// Rows that are shown; programs have fewer kernels.
const MOST: usize = 400;

/// A kernel in each run; `None` where that has not launched it.
struct Kernel<'a> {
    name: &'a str,
    sums: Vec<Option<LaunchSums>>,
    shares: Vec<Option<&'a KernelShare>>,
    warps_per_sm: Vec<Option<f64>>,
}

impl Kernel<'_> {
    fn cell(&self, of: impl Fn(&LaunchSums) -> Option<f64>) -> Cell {
        Cell::Numbers(self.sums.iter().map(|sums| sums.as_ref().and_then(&of)).collect())
    }

    /// Achieved occupancy.
    fn occupancy(&self) -> Cell {
        let of = |(share, slots): (&Option<&KernelShare>, &Option<f64>)| {
            let share = (*share)?;
            quotient(100.0 * share.warp_cycles as f64, share.sm_cycles as f64 * (*slots)?)
        };
        Cell::Numbers(self.shares.iter().zip(&self.warps_per_sm).map(of).collect())
    }

    /// The time of the run in which it takes longest.
    fn time(&self) -> u64 {
        self.sums.iter().flatten().filter_map(|sums| sums.time).max().unwrap_or(0)
    }
}

/// The names of kernels, those first that take longest in any of the runs.
pub fn names_by_time(runs: &[RunInput]) -> Vec<String> {
    let mut time: BTreeMap<&str, u64> = BTreeMap::new();
    for run in runs {
        let mut own: BTreeMap<&str, u64> = BTreeMap::new();
        for launch in &run.document().kernels {
            *own.entry(&launch.name).or_default() += launch.time_ps.filter(|_| launch.is_timed()).unwrap_or(0);
        }
        own.into_iter().for_each(|(name, own)| {
            let known = time.entry(name).or_default();
            *known = own.max(*known);
        });
    }
    let mut names: Vec<(&str, u64)> = time.into_iter().collect();
    names.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    names.into_iter().map(|(name, _)| name.to_owned()).collect()
}

fn of_name<'a>(runs: &[RunInput], name: &'a str, shares: &'a [BTreeMap<String, KernelShare>]) -> Kernel<'a> {
    let sums = runs.iter().map(|run| {
        let launches: Vec<&Launch> = run.document().kernels.iter().filter(|launch| launch.name == name).collect();
        (!launches.is_empty()).then(|| LaunchSums::of(&launches))
    });
    let warps = |run: &RunInput| Some(f64::from(run.node.gpus().first()?.smallest_sm()?.resources.warps));
    Kernel {
        name,
        sums: sums.collect(),
        shares: shares.iter().map(|shares| shares.get(name)).collect(),
        warps_per_sm: runs.iter().map(warps).collect(),
    }
}

/// The section; `None` where no kernel was launched.
pub fn section(runs: &[RunInput], shares: &[BTreeMap<String, KernelShare>]) -> Option<Section> {
    let names = names_by_time(runs);
    if names.is_empty() {
        return None;
    }
    let mut kernels: Vec<Kernel<'_>> = names.iter().take(MOST).map(|name| of_name(runs, name, shares)).collect();
    kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.time()));
    let totals: Vec<f64> = runs.iter().map(total_time).collect();
    let share_of_time = |kernel: &Kernel<'_>| {
        let own = kernel.sums.iter().map(|sums| Some(sums.as_ref()?.time? as f64));
        Cell::Numbers(own.zip(&totals).map(|(own, total)| quotient(100.0 * own?, *total)).collect())
    };
    let percent = |value: Option<f64>| value.map(|value| 100.0 * value);
    let short = short_names(kernels.iter().map(|kernel| kernel.name));
    let rows = kernels.iter().map(|kernel| {
        vec![
            Cell::Text(short.get(kernel.name).cloned().unwrap_or_default()),
            kernel.cell(|sums| Some(sums.calls as f64)),
            kernel.cell(|sums| Some(sums.time? as f64 / 1e6)),
            share_of_time(kernel),
            kernel.cell(|sums| sums.cycles.map(|cycles| cycles as f64)),
            kernel.cell(|sums| sums.counter("inst_executed")),
            kernel.cell(|sums| quotient(sums.counter("inst_executed")?, sums.cycles? as f64)),
            kernel.cell(|sums| sums.quotient("thread_inst_executed", "inst_executed")),
            kernel.occupancy(),
            kernel.cell(|sums| percent(sums.quotient("l1_sector_hits_load", "l1_sectors_load"))),
            kernel.cell(|sums| percent(sums.quotient("l2_sector_hits_load", "l2_sectors_load"))),
            // Sectors of 32 bytes in picoseconds.
            kernel.cell(|sums| {
                let moved = sums.counter("dram_sectors_read")? + sums.counter("dram_sectors_written")?;
                quotient(SECTOR * 1000.0 * moved, sums.time? as f64)
            }),
        ]
    });
    let mut rows: Vec<Vec<Cell>> = rows.collect();
    let mut columns = columns();
    drop_unknown(&mut columns, &mut rows);
    let rest = names.len().saturating_sub(MOST);
    let table = Table {
        caption: "Kernels, all launches of a name together".to_owned(),
        columns,
        rows,
        is_sortable: true,
        rest: (rest > 0).then(|| format!("{rest} more kernels, of which none takes longer")),
    };
    let mut parts = vec![Part::Table(table)];
    parts.extend(only_in_one(runs).map(Part::Note));
    Some(Section { id: "kernels", title: "Kernels", lead: lead(runs), parts })
}

fn total_time(run: &RunInput) -> f64 {
    run.document().kernels.iter().filter(|launch| launch.is_timed()).filter_map(|launch| launch.time_ps).sum::<u64>()
        as f64
}

fn lead(runs: &[RunInput]) -> String {
    let mut lead = "Warp instructions per cycle are those of all SMs together. ".to_owned();
    if runs.len() > 1 {
        lead.push_str("In each cell: the first run, the second, and how it differs (pp: percentage points). ");
    }
    lead.push_str("Occupancy is that of the SMs on which a kernel ran.");
    lead
}

/// The columns of a table that adds up launches by `what`.
pub fn launch_columns(what: &str) -> Vec<Column> {
    vec![
        Column::text(what),
        Column::number("launches", "", Format::Count),
        Column::number("time", "us", Format::Fixed(2))
            .meaning("simulated time from the start of each launch to its end, added up"),
        Column::number("share", "% of kernels", Format::Percent).meaning("of the time of all launches"),
        Column::number("SM cycles", "", Format::Count),
        Column::number("instructions", "of warps", Format::Count),
    ]
}

fn columns() -> Vec<Column> {
    let mut columns = launch_columns("kernel");
    columns.extend([
        Column::number("IPC", "inst/cycle", Format::Fixed(2)).meaning("warp instructions per cycle, all SMs together"),
        Column::number("lanes", "of 32", Format::Fixed(1)).meaning("threads that executed a warp instruction"),
        Column::number("occupancy", "%", Format::Percent).meaning("warps of active SMs, of the warp slots"),
        Column::number("L1 hits", "%", Format::Percent).meaning("sectors of loads that hit in the L1"),
        Column::number("L2 hits", "%", Format::Percent).meaning("sectors of loads that hit in the L2"),
        Column::number("DRAM", "GB/s", Format::Fixed(1))
            .meaning("bytes read from device memory and written to it, by the time of the launches"),
    ]);
    columns
}

/// Columns of which nothing is known go.
pub fn drop_unknown(columns: &mut Vec<Column>, rows: &mut [Vec<Cell>]) {
    let is_known = |cell: &Cell| !matches!(cell, Cell::Numbers(values) if values.iter().all(Option::is_none));
    let stays: Vec<bool> = (0..columns.len()).map(|at| rows.iter().any(|row| is_known(&row[at]))).collect();
    let mut each = stays.iter();
    columns.retain(|_| each.next() == Some(&true));
    for row in rows {
        let mut each = stays.iter();
        row.retain(|_| each.next() == Some(&true));
    }
}

/// Says which kernels only one of two runs has launched.
fn only_in_one(runs: &[RunInput]) -> Option<String> {
    let [a, b] = runs else { return None };
    let names = |run: &RunInput| -> BTreeSet<String> {
        run.document().kernels.iter().map(|launch| kernel_name(&launch.name)).collect()
    };
    let (of_a, of_b) = (names(a), names(b));
    let only = |these: &BTreeSet<String>, those: &BTreeSet<String>, label: &str| {
        let names: Vec<&str> = these.difference(those).map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("only in {label}: {}", names.join(", ")))
    };
    let both: Vec<String> = only(&of_a, &of_b, "A").into_iter().chain(only(&of_b, &of_a, "B")).collect();
    (!both.is_empty()).then(|| format!("Launched {}.", both.join("; ")))
}
