//! Results as tables.

use super::figures::{KernelFigures, PointResult, Reading, WantedColumn};
use crate::SweepError;
use crate::files;
use crate::folder::SweepFolder;
use crate::quantity::Quantity;
use balar_protocol::statistics::KernelCounters;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// A value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing is known.
    Empty,
    /// A text.
    Text(String),
    /// A count.
    Count(u64),
    /// A number with a fraction.
    Real(f64),
}

impl Cell {
    /// The value as files have it: the shortest text that reads as the same number.
    pub fn text(&self) -> String {
        match self {
            Cell::Empty => String::new(),
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Real(real) => format!("{real}"),
        }
    }

    /// The value as a number; a text is read as one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Empty => None,
            Cell::Text(text) => Quantity::of(text).map(|quantity| quantity.number),
            Cell::Count(count) => Some(*count as f64),
            Cell::Real(real) => Some(*real),
        }
    }
}

impl From<Option<u64>> for Cell {
    fn from(count: Option<u64>) -> Cell {
        count.map_or(Cell::Empty, Cell::Count)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

/// Rows under names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub header: Vec<String>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }

    /// The table as comma-separated values.
    ///
    /// # Errors
    ///
    /// If `writer` fails.
    pub fn csv(&self, writer: impl io::Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(writer);
        writer.write_record(&self.header)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(Cell::text))?;
        }
        writer.flush()
    }

    pub(super) fn write_csv(&self, path: &Path) -> Result<(), SweepError> {
        files::write(path, |file| self.csv(file))
    }
}

/// Columns of results.csv before and after the settings.
const FIRST: [&str; 1] = ["point"];
const LAST: [&str; 9] = [
    "status",
    "exit_code",
    "isa",
    "sim_time_ps",
    "kernel_time_ps",
    "kernel_cycles",
    "kernels",
    "launches",
    "warp_instructions",
];

/// A row of results.csv.
pub(super) struct PointRow {
    cells: Vec<Cell>,
    /// For each column that is asked for: its value by location.
    readings: Vec<Vec<(String, f64)>>,
}

impl PointRow {
    pub(super) fn of(folder: &SweepFolder, index: usize, result: &PointResult, wanted: &[WantedColumn]) -> PointRow {
        let PointResult { summary, figures } = result;
        let mut cells = vec![Cell::Count(index as u64)];
        cells.extend(
            folder.definition.points[index].iter().map(|value| value.as_deref().map_or(Cell::Empty, Cell::from)),
        );
        cells.push(summary.as_ref().map_or("not_run", |summary| summary.status.name()).into());
        let exit_code = summary.as_ref().and_then(|summary| summary.exit_code);
        cells.push(exit_code.and_then(|code| u64::try_from(code).ok()).into());
        let readings = match figures {
            None => {
                cells.extend(LAST[2..].iter().map(|_| Cell::Empty));
                vec![Vec::new(); wanted.len()]
            }
            Some(figures) => {
                let kernels = &figures.kernels;
                let all = |of: &dyn Fn(&KernelFigures) -> Option<u64>| -> Cell {
                    kernels.iter().try_fold(0u64, |sum, kernel| Some(sum.saturating_add(of(kernel)?))).into()
                };
                cells.extend([
                    figures.isa.as_str().into(),
                    figures.sim_time_ps.into(),
                    all(&|kernel| kernel.time_ps),
                    all(&|kernel| kernel.cycles),
                    Cell::Count(kernels.len() as u64),
                    all(&|kernel| Some(kernel.calls)),
                    all(&|kernel| kernel.counter("inst_executed")),
                ]);
                let of = |column: &WantedColumn| {
                    let all = if column.is_metric { &figures.metrics } else { &figures.statistics };
                    let own = all.iter().filter(|reading| reading.name == column.name);
                    let value = |reading: &Reading| Some((reading.location.clone(), reading.value(column.roll_up)?));
                    own.filter_map(value).collect()
                };
                wanted.iter().map(of).collect()
            }
        };
        PointRow { cells, readings }
    }
}

/// results.csv. A metric that several rows of units have is a column for each of them.
pub(super) fn results(folder: &SweepFolder, rows: &[PointRow], wanted: &[WantedColumn]) -> Table {
    let mut header: Vec<String> = FIRST.iter().map(|name| (*name).to_owned()).collect();
    header.extend(folder.definition.keys.iter().cloned());
    header.extend(LAST.iter().map(|name| (*name).to_owned()));
    let mut table = Table { header, rows: rows.iter().map(|row| row.cells.clone()).collect() };
    for (at, column) in wanted.iter().enumerate() {
        let locations: BTreeSet<&str> =
            rows.iter().flat_map(|row| &row.readings[at]).map(|(location, _)| location.as_str()).collect();
        let several = locations.len() > 1;
        let locations: Vec<&str> = if locations.is_empty() { vec![""] } else { locations.into_iter().collect() };
        for location in locations {
            table.header.push(if several { format!("{} {location}", column.column) } else { column.column.clone() });
            for (cells, row) in table.rows.iter_mut().zip(rows) {
                let value = row.readings[at].iter().find(|(own, _)| own == location);
                cells.push(value.map_or(Cell::Empty, |(_, value)| number(*value)));
            }
        }
    }
    table
}

/// Counts are written as counts.
fn number(value: f64) -> Cell {
    if value >= 0.0 && value.fract() == 0.0 && value < 9e15 { Cell::Count(value as u64) } else { Cell::Real(value) }
}

/// kernels.csv without rows.
pub(super) fn kernels() -> Table {
    let own = ["point", "kernel", "calls", "time_ps", "cycles"];
    let counters = KernelCounters::DEFINITIONS.iter().map(|definition| definition.name);
    Table { header: own.into_iter().chain(counters).map(str::to_owned).collect(), rows: Vec::new() }
}

/// Adds the kernels of a point.
pub(super) fn add_kernels(table: &mut Table, index: usize, result: &PointResult) {
    for kernel in result.figures.iter().flat_map(|figures| &figures.kernels) {
        let mut row = vec![
            Cell::Count(index as u64),
            kernel.name.as_str().into(),
            Cell::Count(kernel.calls),
            kernel.time_ps.into(),
            kernel.cycles.into(),
        ];
        row.extend(KernelCounters::DEFINITIONS.iter().map(|definition| Cell::from(kernel.counter(definition.name))));
        table.rows.push(row);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{collected, reading};
    use super::*;
    use crate::collect::RollUp;

    fn wanted(name: &str, roll_up: RollUp) -> WantedColumn {
        WantedColumn { column: name.to_owned(), name: name.to_owned(), is_metric: true, roll_up }
    }

    #[test]
    fn a_point_is_a_row() {
        let columns = [wanted("ipc", RollUp::Usual), wanted("bytes", RollUp::Sum), wanted("absent", RollUp::Max)];
        let (folder, table) = collected(&["500 MHz", "a,b", "3"], &columns);
        let text = std::fs::read_to_string(folder.path().join("results.csv")).expect("written");
        assert_eq!(
            text,
            "point,a,status,exit_code,isa,sim_time_ps,kernel_time_ps,kernel_cycles,kernels,launches,warp_instructions,ipc,bytes gpu.hbm[*],bytes gpu.l2[*],absent\n\
             0,500 MHz,done,0,ptx,1000,600,70,2,3,42,0.25,32,64,\n\
             1,\"a,b\",not_run,,,,,,,,,,,,\n\
             2,3,done,0,ptx,1000,600,70,2,3,42,0.25,32,64,\n"
        );
        assert_eq!(table.rows.len(), 3);
        let kernels = std::fs::read_to_string(folder.path().join("kernels.csv")).expect("written");
        let lines: Vec<&str> = kernels.lines().collect();
        assert!(lines[0].starts_with("point,kernel,calls,time_ps,cycles,"), "{kernels}");
        assert!(lines[1].starts_with("0,one,2,400,50,") && lines[4].starts_with("2,two,1,200,20,"), "{kernels}");
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for (value, text) in [(0.1, "0.1"), (3.0, "3"), (-2.5, "-2.5"), (1e300, &format!("{}", 1e300))] {
            assert_eq!(number(value).text(), text);
        }
        assert_eq!(reading("ipc", "gpu", Some(3.0)).value(RollUp::Usual), Some(3.0));
    }
}
