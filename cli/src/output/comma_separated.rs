//! Comma-separated values: statistics, and kernels.

use crate::output::selection::Selection;
use crate::result::{KernelEntry, RunRecord};
use balar_protocol::statistics::KernelCounters;

/// The statistics that are asked for as location,what,value,unit, with a header.
pub fn statistics(record: &RunRecord, selection: &Selection) -> String {
    let mut table = Table::new(&["location", "what", "value", "unit"]);
    for row in record.statistics.rows.iter().filter(|row| selection.covers(row)) {
        table.row([row.location.clone(), row.what.to_owned(), row.value.to_string(), row.unit.to_owned()]);
    }
    table.text()
}

/// One line for each launch, with every counter. Grid and block are written "640x1x1".
pub fn kernels(record: &RunRecord) -> String {
    let derived = record.statistics.kernels.first().map(|kernel| KernelEntry(kernel).derived());
    let fixed = [
        "launch",
        "name",
        "stream",
        "gpu",
        "grid",
        "block",
        "registers_per_thread",
        "shared_bytes",
        "completed",
        "start_ps",
        "end_ps",
        "cycles",
    ];
    let counters = KernelCounters::DEFINITIONS.iter().map(|definition| definition.name);
    let derived_names = derived.iter().flatten().map(|(name, _)| *name);
    let mut table = Table::new(&fixed.into_iter().chain(counters).chain(derived_names).collect::<Vec<_>>());
    for kernel in &record.statistics.kernels {
        let size = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        let fixed = [
            kernel.launch.0.to_string(),
            kernel.name.clone(),
            kernel.stream.to_string(),
            kernel.gpu.clone(),
            size(kernel.grid),
            size(kernel.block),
            kernel.registers_per_thread.to_string(),
            kernel.shared_bytes.to_string(),
            kernel.completed.to_string(),
            kernel.start_ps.to_string(),
            kernel.end_ps.to_string(),
            kernel.cycles.to_string(),
        ];
        let counters = kernel.counters.values().map(|value| value.to_string());
        let derived = KernelEntry(kernel).derived().map(|(_, value)| value.map_or(String::new(), |v| v.to_string()));
        table.row(fixed.into_iter().chain(counters).chain(derived));
    }
    table.text()
}

/// A table under construction; writing into memory does not fail.
struct Table(csv::Writer<Vec<u8>>);

impl Table {
    fn new(header: &[&str]) -> Table {
        let mut table = Table(csv::Writer::from_writer(Vec::new()));
        table.row(header.iter().map(|name| (*name).to_owned()));
        table
    }

    fn row(&mut self, fields: impl IntoIterator<Item = String>) {
        self.0.write_record(fields.into_iter().collect::<Vec<_>>()).expect("rows of one table have as many fields");
    }

    fn text(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes every byte");
        String::from_utf8(bytes).expect("fields are UTF-8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::record;

    #[test]
    fn every_statistic_is_a_line() {
        let mut record = record();
        record.statistics.rows[0].location = "gpu,\"odd\"".to_owned();
        let text = statistics(&record, &Selection::all());
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("location,what,value,unit"));
        assert_eq!(lines.next(), Some("\"gpu,\"\"odd\"\"\",warps_launched,8,warp"));
        assert_eq!(lines.count(), record.statistics.rows.len() - 1);
    }

    #[test]
    fn every_launch_is_a_line() {
        let text = kernels(&record());
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().expect("header").clone();
        let rows: Vec<_> = reader.records().map(|row| row.expect("row")).collect();
        let column = |name: &str| header.iter().position(|column| column == name).expect("column");
        assert_eq!(rows.len(), 3);
        assert_eq!(&rows[1][column("name")], "lud_internal");
        assert_eq!(&rows[1][column("grid")], "4x2x1");
        assert_eq!(&rows[2][column("inst_executed")], "280");
        assert_eq!(&rows[2][column("inst_executed_per_cycle")], "2");
    }
}
