//! Kernels by the named ranges of the program: its steps, modules and operators.

use super::input::RunInput;
use super::kernels::{drop_unknown, launch_columns};
use super::units::quotient;
use balar_record::ranges::{ByRange, RangeRow, RangeSums, by_range, heaviest, innermost, tree};
use balar_record::run_folder::document::Launch;
use balar_report::{Cell, Part, Section, Table};

/// Most rows of each table.
const MOST: usize = 200;

/// The section; `None` where no kernel was launched in a range.
pub fn section(runs: &[RunInput]) -> Option<Section> {
    let known: Vec<Option<ByRange>> = runs.iter().map(of_run).collect();
    if known.iter().all(Option::is_none) {
        return None;
    }
    let ranges: Vec<ByRange> = known.into_iter().map(Option::unwrap_or_default).collect();
    let (by_place, hidden) = heaviest(tree(&ranges), MOST);
    let (by_name, hidden_names) = heaviest(innermost(&ranges), MOST);
    let (nested, by_innermost) = ("Each followed by those in it", "Innermost ranges by name, wherever they stand");
    let parts = vec![
        Part::Heading(nested.to_owned()),
        Part::Table(table(nested, &ranges, &by_place, hidden, false)),
        Part::Heading(by_innermost.to_owned()),
        Part::Table(table(by_innermost, &ranges, &by_name, hidden_names, true)),
    ];
    let lead = "Ranges are what the program names with NVTX, in the thread that launches. The first table has a range with all that is in it, \
                the second one its own launches alone, as of the operators of a framework."
        .to_owned();
    Some(Section { id: "ranges", title: "Named ranges", lead, parts })
}

fn of_run(run: &RunInput) -> Option<ByRange> {
    let sums = |launch: &Launch| {
        let (time, instructions) = (launch.time_ps.filter(|_| launch.is_timed()), launch.counter("inst_executed"));
        RangeSums::of_launch(time, launch.cycles.unwrap_or(0), instructions.unwrap_or(0))
    };
    by_range(run.document().kernels.iter().map(|launch| (launch.range.clone(), sums(launch))))
}

fn table(caption: &str, runs: &[ByRange], ranges: &[RangeRow], hidden: usize, is_sortable: bool) -> Table {
    let totals: Vec<f64> =
        runs.iter().map(|run| run.values().map(|sums| sums.picoseconds).sum::<u64>() as f64).collect();
    let cell = |row: &RangeRow, of: &dyn Fn(&RangeSums) -> Option<f64>| {
        Cell::Numbers(row.sums.iter().map(|sums| of(sums).filter(|_| sums.launches > 0)).collect())
    };
    let timed = |sums: &RangeSums, value: u64| (sums.timed > 0).then_some(value as f64);
    let row = |row: &RangeRow| {
        let shares = row.sums.iter().zip(&totals).map(|(sums, total)| {
            let own = timed(sums, sums.picoseconds)?;
            quotient(100.0 * own, *total)
        });
        vec![
            Cell::Nested(row.depth, row.name.clone()),
            cell(row, &|sums| Some(sums.launches as f64)),
            cell(row, &|sums| Some(timed(sums, sums.picoseconds)? / 1e6)),
            Cell::Numbers(shares.collect()),
            cell(row, &|sums| timed(sums, sums.cycles)),
            cell(row, &|sums| Some(sums.instructions as f64)),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = ranges.iter().map(row).collect();
    let mut columns = launch_columns("range");
    drop_unknown(&mut columns, &mut rows);
    Table {
        caption: caption.to_owned(),
        columns,
        rows,
        is_sortable,
        rest: (hidden > 0).then(|| format!("{hidden} more, of which none takes longer")),
    }
}
