//! Unified memory, where a run used it: faults, migrations, evictions, and pages by allocation.

use super::input::RunInput;
use super::units::numbers;
use balar_record::metrics::Place;
use balar_report::{Cell, Column, Format, Part, Section, Table};
use std::collections::{BTreeMap, BTreeSet};

/// The table of pages that the driver of unified memory records.
const PAGES: &str = "unified_memory_pages";

/// What is told of the driver: its counter, and what it is called.
const COUNTERS: &[(&str, &str)] = &[
    ("far_faults", "faults of GPUs that the driver served"),
    ("host_faults", "faults of the host"),
    ("batches", "batches of faults"),
    ("pages_to_device", "pages moved to GPUs"),
    ("pages_prefetched", "of these, prefetched"),
    ("pages_prefetched_unused", "prefetched and never used"),
    ("pages_to_host", "pages moved to the host"),
    ("pages_user_prefetched", "moved because the program asked for it"),
    ("pages_populated", "pages that came to be, without data"),
    ("evictions", "evictions"),
    ("pages_evicted", "pages evicted"),
    ("pages_thrashed", "pages that came back after an eviction"),
    ("pages_mapped_remotely", "pages mapped where they were"),
    ("pages_duplicated", "pages duplicated for reading"),
];

/// Times of the driver.
const TIMES: &[(&str, &str)] = &[
    ("batch_time", "batches, from their first fault to the replay"),
    ("fetch_time", "fetching faults"),
    ("transfer_time", "waiting for transfers"),
    ("evict_time", "evictions"),
    ("map_time", "mapping pages"),
    ("host_fault_time", "faults of the host"),
];

/// What is known of the pages of an allocation.
#[derive(Clone, Debug, Default, PartialEq)]
struct Allocation {
    pages: u64,
    /// Faults, faults of the host, moves to devices and to the host.
    sums: [u64; 4],
    /// Pages that are on a GPU at the end.
    on_gpus: u64,
}

const SUMS: [&str; 4] = ["faults", "host_faults", "to_device", "to_host"];

/// The section; `None` where no run moved, faulted on, or mapped a page.
pub fn section(runs: &[RunInput]) -> Option<Section> {
    let is_used = |run: &RunInput| {
        COUNTERS.iter().any(|(name, _)| run.sum(Place::UnifiedMemory, name).is_some_and(|count| count > 0.0))
    };
    if !runs.iter().any(is_used) {
        return None;
    }
    let known = |(name, meaning): &(&str, &str), factor: f64| {
        let cell = numbers(runs, |run| run.sum(Place::UnifiedMemory, name).map(|count| count * factor));
        let is_zero = matches!(&cell, Cell::Numbers(values) if values.iter().flatten().all(|value| *value == 0.0));
        (!is_zero).then(|| vec![Cell::Text((*meaning).to_owned()), cell])
    };
    let counts = Table {
        caption: "What the driver of unified memory did".to_owned(),
        columns: vec![Column::text("what"), Column::number("number", "", Format::Count)],
        rows: COUNTERS.iter().filter_map(|counter| known(counter, 1.0)).collect(),
        is_sortable: true,
        rest: None,
    };
    let times = Table {
        caption: "Where the driver's time went".to_owned(),
        columns: vec![Column::text("time in"), Column::number("time", "us", Format::Fixed(1))],
        rows: TIMES.iter().filter_map(|time| known(time, 1e-6)).collect(),
        is_sortable: true,
        rest: None,
    };
    let mut tables = vec![Part::Table(counts.spread(["A", "B"]))];
    if !times.rows.is_empty() {
        tables.push(Part::Table(times.spread(["A", "B"])));
    }
    let mut parts = vec![Part::Beside(tables)];
    let allocations: Vec<BTreeMap<u64, Allocation>> =
        runs.iter().map(|run| run.tables.get(PAGES).map(|rows| allocations(rows)).unwrap_or_default()).collect();
    if allocations.iter().any(|of| !of.is_empty()) {
        parts.push(Part::Heading("By allocation".to_owned()));
        parts.push(Part::Table(by_allocation(&allocations)));
    } else {
        let text = format!("Pages by allocation are in {PAGES}.csv, which the folder of --output has.");
        parts.push(Part::Note(text));
    }
    let lead = "Managed memory, whose pages move between the host and the GPUs.".to_owned();
    Some(Section { id: "unified-memory", title: "Unified memory", lead, parts })
}

/// Reads the table of pages, whose header says what stands where.
fn allocations(rows: &[Vec<String>]) -> BTreeMap<u64, Allocation> {
    let mut allocations: BTreeMap<u64, Allocation> = BTreeMap::new();
    let Some((header, rows)) = rows.split_first() else { return allocations };
    let place = |name: &str| header.iter().position(|column| column == name);
    let (Some(own), Some(end)) = (place("allocation"), place("at_the_end")) else { return allocations };
    let sums = SUMS.map(place);
    for row in rows {
        let number = |at: usize| row.get(at).and_then(|text| text.parse::<u64>().ok());
        let Some(allocation) = number(own).map(|number| allocations.entry(number).or_default()) else { continue };
        allocation.pages += 1;
        for (sum, at) in allocation.sums.iter_mut().zip(sums) {
            *sum += at.and_then(number).unwrap_or(0);
        }
        allocation.on_gpus += u64::from(row.get(end).is_some_and(|place| place.starts_with("gpu")));
    }
    allocations
}

fn by_allocation(runs: &[BTreeMap<u64, Allocation>]) -> Table {
    let numbers: BTreeSet<u64> = runs.iter().flat_map(BTreeMap::keys).copied().collect();
    let rows = numbers.iter().map(|number| {
        let cell = |of: &dyn Fn(&Allocation) -> u64| {
            Cell::Numbers(runs.iter().map(|run| run.get(number).map(|own| of(own) as f64)).collect())
        };
        let mut row = vec![Cell::count(*number), cell(&|own| own.pages)];
        row.extend((0..SUMS.len()).map(|at| cell(&|own| own.sums[at])));
        row.push(cell(&|own| own.on_gpus));
        row
    });
    let count = |name: &str, unit: &str| Column::number(name, unit, Format::Count);
    Table {
        caption: "Pages of managed memory by allocation".to_owned(),
        columns: vec![
            count("allocation", "number"),
            count("pages", "used"),
            count("faults", "of GPUs"),
            count("faults", "of the host"),
            count("moves", "to GPUs"),
            count("moves", "to the host"),
            count("on GPUs", "at the end"),
        ],
        rows: rows.collect(),
        is_sortable: true,
        rest: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_added_up_by_allocation() {
        let text = "allocation,page,address,faults,host_faults,to_device,to_host,uses,at_the_end\n\
                    0,0,0x7,1,0,1,0,0,gpu[0]\n0,1,0x8,2,1,1,1,0,host\n3,0,0x9,0,0,0,0,0,host\n";
        let rows: Vec<Vec<String>> = text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
        let all = allocations(&rows);
        assert_eq!(all[&0], Allocation { pages: 2, sums: [3, 1, 2, 1], on_gpus: 1 });
        assert_eq!(all[&3], Allocation { pages: 1, ..Allocation::default() });
        assert_eq!(allocations(&[vec!["page".to_owned()]]), BTreeMap::new());
    }
}
