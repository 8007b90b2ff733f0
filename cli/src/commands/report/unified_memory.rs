//! Unified memory, where a run used it: faults, migrations, evictions, and what of that each allocation had.

use super::input::RunInput;
use super::units::numbers;
use balar_record::metrics::Place;
use balar_report::{Cell, Column, Format, Part, Section, Table};
use std::collections::{BTreeMap, BTreeSet};

/// The table of pages that the driver of unified memory records.
const PAGES: &str = "unified_memory_pages";

/// Known only where GMMUs report uses (`follow_use`): without reports it is all prefetched pages that left again, used or not.
const UNUSED: &str = "pages_prefetched_unused";

/// What is told of the driver: its counter, and what it is called.
const COUNTERS: &[(&str, &str)] = &[
    ("far_faults", "faults of GPUs that the driver served"),
    ("host_faults", "faults of the host"),
    ("batches", "batches of faults"),
    ("pages_to_device", "pages moved to GPUs"),
    ("pages_prefetched", "of these, chosen by the prefetcher"),
    (UNUSED, "of these, gone again without a report of their use"),
    ("pages_to_host", "pages moved to the host"),
    ("pages_user_prefetched", "pages brought because the program asked for it, moved or made"),
    ("pages_populated", "pages made where they were first touched or prefetched, which moves nothing"),
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

/// What is known of an allocation.
#[derive(Clone, Debug, Default, PartialEq)]
struct Allocation {
    /// Its counters by name: its size in bytes, faults, pages that moved.
    counts: BTreeMap<String, u64>,
    /// Of its pages, where the driver has recorded them: those that something happened to, and those that are on a GPU at the end.
    pages: Option<[u64; 2]>,
}

/// Counters of an allocation, and how the report calls them: name and unit.
const ALLOCATION: [(&str, &str, &str); 6] = [
    ("far_faults", "faults", "of GPUs"),
    ("host_faults", "faults", "of the host"),
    ("pages_to_device", "pages moved", "to GPUs"),
    ("pages_prefetched", "by prefetcher", "of these"),
    ("pages_to_host", "pages moved", "to the host"),
    ("pages_evicted", "pages", "evicted"),
];

/// The section; `None` where no run moved, faulted on, or mapped a page.
pub fn section(runs: &[RunInput]) -> Option<Section> {
    let is_used = |run: &RunInput| {
        COUNTERS.iter().any(|(name, _)| run.sum(Place::UnifiedMemory, name).is_some_and(|count| count > 0.0))
    };
    if !runs.iter().any(is_used) {
        return None;
    }
    let known = |(name, meaning): &(&str, &str), factor: f64| {
        let is_known =
            |run: &RunInput| *name != UNUSED || run.sum(Place::Gmmu, "used_reports").is_some_and(|sum| sum > 0.0);
        let of_run = |run: &RunInput| run.sum(Place::UnifiedMemory, name).filter(|_| is_known(run));
        let cell = numbers(runs, |run| of_run(run).map(|count| count * factor));
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
    let allocations: Vec<BTreeMap<u64, Allocation>> = runs.iter().map(allocations_of).collect();
    if allocations.iter().any(|of| !of.is_empty()) {
        parts.push(Part::Heading("By allocation".to_owned()));
        parts.push(Part::Table(by_allocation(&allocations)));
    }
    let lead = "Managed memory, whose pages move between the host and the GPUs.".to_owned();
    Some(Section { id: "unified-memory", title: "Unified memory", lead, parts })
}

/// The allocations of a run by number, in the order in which the program made them.
fn allocations_of(run: &RunInput) -> BTreeMap<u64, Allocation> {
    let counted = run.units.iter().map(|unit| (unit.location.as_str(), &unit.counts));
    let rows = run.tables.get(PAGES).map_or(&[][..], |rows| &rows[..]);
    allocations(counted, rows)
}

/// Allocations from what their driver has counted by location, and from its table of pages, whose header says what stands where.
fn allocations<'a>(
    counted: impl Iterator<Item = (&'a str, &'a BTreeMap<String, u64>)>,
    rows: &[Vec<String>],
) -> BTreeMap<u64, Allocation> {
    let mut allocations: BTreeMap<u64, Allocation> = BTreeMap::new();
    for (location, counts) in counted {
        let number = location.rsplit_once(".allocation[").and_then(|(_, rest)| rest.strip_suffix(']')?.parse().ok());
        if let Some(number) = number {
            allocations.insert(number, Allocation { counts: counts.clone(), pages: None });
        }
    }
    let Some((header, rows)) = rows.split_first() else { return allocations };
    let place = |name: &str| header.iter().position(|column| column == name);
    let (Some(own), Some(end)) = (place("allocation"), place("at_the_end")) else { return allocations };
    for row in rows {
        let Some(number) = row.get(own).and_then(|text| text.parse().ok()) else { continue };
        let [pages, on_gpus] = allocations.entry(number).or_default().pages.get_or_insert_default();
        *pages += 1;
        *on_gpus += u64::from(row.get(end).is_some_and(|place| place.starts_with("gpu")));
    }
    allocations
}

fn by_allocation(runs: &[BTreeMap<u64, Allocation>]) -> Table {
    let numbers: BTreeSet<u64> = runs.iter().flat_map(BTreeMap::keys).copied().collect();
    let rows = numbers.iter().map(|number| {
        let cell = |of: &dyn Fn(&Allocation) -> Option<f64>| {
            Cell::Numbers(runs.iter().map(|run| run.get(number).and_then(of)).collect())
        };
        let counter = |own: &Allocation, name: &str| own.counts.get(name).map(|count| *count as f64);
        let mut row = vec![Cell::count(*number), cell(&|own| Some(counter(own, "bytes")? / 1024.0))];
        row.push(cell(&|own| own.pages.map(|[used, _]| used as f64)));
        row.extend(ALLOCATION.iter().map(|(name, ..)| cell(&|own| counter(own, name))));
        row.push(cell(&|own| own.pages.map(|[_, on_gpus]| on_gpus as f64)));
        row
    });
    let count = |name: &str, unit: &str| Column::number(name, unit, Format::Count);
    let mut columns = vec![
        count("allocation", "number").meaning("in the order in which the program allocated them, from 0"),
        Column::number("size", "KiB", Format::Short),
        count("pages", "used"),
    ];
    columns.extend(ALLOCATION.iter().map(|(_, name, unit)| count(name, unit)));
    columns.push(count("on GPUs", "at the end"));
    Table {
        caption: "Managed allocations, in the order in which the program made them".to_owned(),
        columns,
        rows: rows.collect(),
        is_sortable: true,
        rest: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_have_their_counters_and_their_pages() {
        let text = "allocation,page,address,faults,host_faults,to_device,to_host,uses,at_the_end\n\
                    0,0,0x7,1,0,1,0,0,gpu[0]\n0,1,0x8,2,1,1,1,0,host\n3,0,0x9,0,0,0,0,0,host\n";
        let rows: Vec<Vec<String>> = text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
        let counts = BTreeMap::from([("bytes".to_owned(), 8192), ("pages_to_device".to_owned(), 2)]);
        let other = BTreeMap::from([("batches".to_owned(), 1)]);
        let counted = [("unified_memory.allocation[0]", &counts), ("unified_memory", &other)];
        let all = allocations(counted.into_iter(), &rows);
        assert_eq!(all[&0], Allocation { counts, pages: Some([2, 1]) });
        assert_eq!(all[&3], Allocation { counts: BTreeMap::new(), pages: Some([1, 0]) });
        assert_eq!(all.len(), 2);
        assert_eq!(allocations(std::iter::empty(), &[vec!["page".to_owned()]]), BTreeMap::new());
    }

    #[test]
    fn allocations_have_their_size_in_the_table() {
        let counts = BTreeMap::from([("bytes".to_owned(), 8192), ("far_faults".to_owned(), 3)]);
        let table = by_allocation(&[BTreeMap::from([(2, Allocation { counts, pages: None })])]);
        assert_eq!(table.columns.len(), table.rows[0].len());
        // Number 2, 8 KiB, pages are not known, three faults.
        assert_eq!(
            table.rows[0][1..4],
            [Cell::Numbers(vec![Some(8.0)]), Cell::Numbers(vec![None]), Cell::Numbers(vec![Some(3.0)]),]
        );
    }
}
