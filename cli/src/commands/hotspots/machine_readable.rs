//! Hot spots as CSV and JSON.

use super::rows::{HotRow, KernelHotspots};
use crate::options::hotspots::HotspotOptions;
use balar_record::json::to_text;
use serde::Serialize;
use std::collections::BTreeMap;

/// The columns before the counters.
const COLUMNS: [&str; 14] = [
    "kernel",
    "isa",
    "function",
    "file",
    "line",
    "address",
    "text",
    "instructions",
    "share",
    "warp_cycles",
    "lanes",
    "sectors_per_access",
    "sectors_per_load",
    "sectors_per_store",
];

/// A kernel, as JSON has it.
#[derive(Serialize)]
struct KernelEntry<'a> {
    kernel: &'a str,
    isa: &'a str,
    gpus: usize,
    inst_executed: u64,
    warp_cycles: u64,
    /// Rows of which `rows` has the first.
    row_count: usize,
    rows: Vec<RowEntry<'a>>,
}

/// A row, as JSON has it.
#[derive(Serialize)]
struct RowEntry<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    address: Option<u64>,
    text: Option<&'a str>,
    instructions: usize,
    share: f64,
    warp_cycles: u64,
    lanes: Option<f64>,
    sectors_per_access: Option<f64>,
    sectors_per_load: Option<f64>,
    sectors_per_store: Option<f64>,
    stalls: Vec<StallEntry<'a>>,
    counters: BTreeMap<&'a str, u64>,
}

/// Why warps waited, as JSON has it.
#[derive(Serialize)]
struct StallEntry<'a> {
    reason: &'a str,
    warp_cycles: u64,
}

fn shown<'k, 'a>(kernel: &'k KernelHotspots<'a>, options: &HotspotOptions) -> &'k [HotRow<'a>] {
    &kernel.rows[..kernel.rows.len().min(options.limit.unwrap_or(usize::MAX))]
}

/// All kernels in a list.
pub fn json(kernels: &[KernelHotspots<'_>], options: &HotspotOptions) -> String {
    let entries = kernels.iter().map(|kernel| KernelEntry {
        kernel: &kernel.name,
        isa: &kernel.isa,
        gpus: kernel.gpus,
        inst_executed: kernel.total.executed(),
        warp_cycles: kernel.total.cycles(),
        row_count: kernel.rows.len(),
        rows: shown(kernel, options).iter().map(|row| entry(kernel, row)).collect(),
    });
    to_text(&entries.collect::<Vec<_>>())
}

fn entry<'a>(kernel: &KernelHotspots<'_>, row: &'a HotRow<'_>) -> RowEntry<'a> {
    RowEntry {
        function: &row.function,
        file: row.line.as_ref().map(|line| line.file.as_str()),
        line: row.line.as_ref().map(|line| line.line),
        address: row.address,
        text: Some(row.text.as_str()).filter(|text| !text.is_empty()),
        instructions: row.instructions,
        share: kernel.share(row),
        warp_cycles: row.counts.cycles(),
        lanes: row.counts.lanes(),
        sectors_per_access: row.counts.sectors_per_access(),
        sectors_per_load: row.counts.sectors_per_load(),
        sectors_per_store: row.counts.sectors_per_store(),
        stalls: row
            .counts
            .stalls()
            .into_iter()
            .map(|(reason, warp_cycles)| StallEntry { reason, warp_cycles })
            .collect(),
        counters: row.counts.all().collect(),
    }
}

/// A line for each row, with every counter.
pub fn csv(kernels: &[KernelHotspots<'_>], options: &HotspotOptions) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    let counters: Vec<&str> =
        kernels.first().map_or_else(Vec::new, |it| it.total.all().map(|(name, _)| name).collect());
    // Writing to memory does not fail.
    let _ = table.write_record(COLUMNS.iter().copied().chain(counters));
    for kernel in kernels {
        for row in shown(kernel, options) {
            let entry = entry(kernel, row);
            let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let place = [
                kernel.name.clone(),
                kernel.isa.clone(),
                entry.function.to_owned(),
                entry.file.unwrap_or_default().to_owned(),
                entry.line.map_or(String::new(), |line| line.to_string()),
                entry.address.map_or(String::new(), |address| address.to_string()),
                row.text.clone(),
                entry.instructions.to_string(),
                entry.share.to_string(),
                entry.warp_cycles.to_string(),
                number(entry.lanes),
                number(entry.sectors_per_access),
                number(entry.sectors_per_load),
                number(entry.sectors_per_store),
            ];
            let _ = table.write_record(place.into_iter().chain(row.counts.all().map(|(_, count)| count.to_string())));
        }
    }
    String::from_utf8(table.into_inner().unwrap_or_default()).unwrap_or_default()
}
