//! Comma-separated values: statistics, and kernels.

use crate::options::selection::Selection;
use balar_protocol::statistics::{DataTable, KernelCounters};
use balar_record::metrics::Choice;
use balar_record::result::{KernelEntry, RunRecord};
use std::io::{self, Write};

/// Writes the statistics that are asked for as location,what,value,unit, with a header.
///
/// # Errors
///
/// If `writer` fails.
pub fn statistics(record: &RunRecord, selection: &Selection, writer: &mut dyn Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(writer);
    table.write_record(["location", "what", "value", "unit"])?;
    for row in record.statistics.rows.iter().filter(|row| selection.covers(row)) {
        table.write_record([&row.location, row.what, &row.value.to_string(), row.unit])?;
    }
    let measured = record.measurement();
    for Choice { metric, name, roll_up, .. } in selection.metrics_beside(&record.statistics.rows) {
        // A name that says how units are rolled up has one value, another one has a value for each unit.
        let label = |location: &str| if roll_up.is_some() { selection.label(location) } else { location.to_owned() };
        for reading in measured.readings(metric, |location| selection.covers_location(location), label) {
            let value = reading.rolled_up(roll_up.unwrap_or_else(|| metric.usual_roll_up()));
            let value = value.map_or(String::new(), |value| value.to_string());
            table.write_record([reading.location.as_str(), &name, &value, metric.unit()])?;
        }
    }
    table.flush()
}

/// Writes a table that a unit has recorded, with a header.
///
/// # Errors
///
/// If `writer` fails.
pub fn table(recorded: &DataTable, writer: &mut dyn Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(writer);
    table.write_record(recorded.columns)?;
    for line in &recorded.lines {
        table.write_record(line.iter().map(ToString::to_string))?;
    }
    table.flush()
}

/// Writes one line for each launch, with every counter. Grid and block are written "640x1x1". Where kernels have launched kernels, a
/// column behind these has the launches that they are of; where kernels are of named ranges, a last one has these.
///
/// # Errors
///
/// If `writer` fails.
pub fn kernels(record: &RunRecord, writer: &mut dyn Write) -> io::Result<()> {
    let derived = record.launches().first().map(|kernel| KernelEntry(&kernel).derived());
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
        "detail",
        "start_ps",
        "end_ps",
        "cycles",
    ];
    let counters = KernelCounters::DEFINITIONS.iter().map(|definition| definition.name);
    let derived_names = derived.iter().flatten().map(|(name, _)| *name);
    let has_parents = record.launches().iter().any(|kernel| kernel.parent.is_some());
    let parent_name = has_parents.then_some("parent");
    let has_ranges = record.launches().has_ranges();
    let range_name = has_ranges.then_some("range");
    let mut table = csv::Writer::from_writer(writer);
    table.write_record(fixed.into_iter().chain(counters).chain(derived_names).chain(parent_name).chain(range_name))?;
    for kernel in record.launches().iter() {
        let size = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        let known = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        let is_timed = kernel.detail.is_timed();
        let fixed = [
            kernel.launch.0.to_string(),
            kernel.name.to_string(),
            kernel.stream.to_string(),
            kernel.gpu.to_string(),
            size(kernel.grid),
            size(kernel.block),
            kernel.registers_per_thread.to_string(),
            kernel.shared_bytes.to_string(),
            kernel.completed.to_string(),
            kernel.detail.name().to_owned(),
            known(is_timed.then_some(kernel.start_ps)),
            known(is_timed.then_some(kernel.end_ps)),
            known(kernel.timed_cycles()),
        ];
        let counters = kernel.known_counters().map(known);
        let derived = KernelEntry(&kernel).derived().map(|(_, value)| value.map_or(String::new(), |v| v.to_string()));
        let parent = has_parents.then(|| known(kernel.parent.map(|parent| parent.0.into())));
        let range = has_ranges.then(|| kernel.range.as_ref().map_or(String::new(), ToString::to_string));
        table.write_record(fixed.into_iter().chain(counters).chain(derived).chain(parent).chain(range))?;
    }
    table.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_record::sample::record;

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("memory takes every byte");
        String::from_utf8(bytes).expect("fields are UTF-8")
    }

    #[test]
    fn every_statistic_is_a_line() {
        let mut record = record();
        record.statistics.rows[0].location = "gpu,\"odd\"".to_owned();
        let text = text(|writer| statistics(&record, &Selection::all(), writer));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("location,what,value,unit"));
        assert_eq!(lines.next(), Some("\"gpu,\"\"odd\"\"\",warps_launched,8,warp"));
        assert_eq!(lines.count(), record.statistics.rows.len() - 1);
    }

    #[test]
    fn every_launch_is_a_line() {
        let text = text(|writer| kernels(&record(), writer));
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
