//! Where units write their statistics to.

use super::{CounterSink, KernelRecords, LaunchTotals, ProgramOutcome, StatisticDefinition};
use crate::time::SimTime;
use std::fmt;

/// One row of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatisticRow {
    /// Path of the unit, or of a part of it: "gpu.sm\[3\]".
    pub location: String,
    /// Name of the counter.
    pub what: &'static str,
    /// Its value.
    pub value: u64,
    /// Its unit of measure.
    pub unit: &'static str,
    /// As [`StatisticDefinition::maximum`].
    pub maximum: bool,
}

/// A field of a [`DataTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// A number.
    Number(u64),
    /// A word.
    Word(&'static str),
    /// One of a row: "gpu\[1\]".
    Member(&'static str, u32),
    /// An address, written in hexadecimal.
    Address(u64),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Number(number) => number.fmt(f),
            Field::Word(word) => word.fmt(f),
            Field::Member(row, index) => write!(f, "{row}[{index}]"),
            Field::Address(address) => write!(f, "{address:#x}"),
        }
    }
}

/// What a unit has recorded beside its counters, line by line: with `--output`, a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataTable {
    /// The unit and what it is a table of, as the file is called: "unified_memory_transfers".
    pub name: String,
    /// What stands in each line.
    pub columns: &'static [&'static str],
    /// The lines.
    pub lines: Vec<Vec<Field>>,
}

/// Where units write their statistics to. Zeros are written too.
///
/// In the middle of a run it takes [`numbers`](Self::of_numbers) alone: what would be rows are values in the same order, and no name is
/// built for any of them.
#[derive(Debug, Default)]
pub struct StatisticSink {
    location: String,
    /// Rows in the order of writing.
    pub rows: Vec<StatisticRow>,
    /// The values of rows, where names are not wanted.
    numbers: Option<Vec<u64>>,
    /// Kernel launches, of every GPU.
    pub kernels: KernelRecords,
    /// What units count of launches.
    pub shares: LaunchTotals,
    /// What CTAs did of which the CTA schedulers have not heard.
    pub unreported: Vec<Unreported>,
    /// How the simulated program ended.
    pub outcome: Option<ProgramOutcome>,
    /// What units have recorded line by line.
    pub tables: Vec<DataTable>,
    /// Simulated time at which it is asked: everything before it has happened, and nothing after it. What has not ended by itself counts
    /// up to then.
    pub now: SimTime,
}

impl StatisticSink {
    /// One that takes the values of rows at a time, without their names, into a buffer that is reused.
    pub fn of_numbers(now: SimTime, mut buffer: Vec<u64>) -> StatisticSink {
        buffer.clear();
        StatisticSink { now, numbers: Some(buffer), ..StatisticSink::default() }
    }

    /// The values that have been written, of a sink that takes numbers alone.
    pub fn into_numbers(self) -> Vec<u64> {
        self.numbers.unwrap_or_default()
    }

    /// How many values have been written, to a sink that takes numbers alone.
    pub fn numbers_written(&self) -> usize {
        self.numbers.as_ref().map_or(0, Vec::len)
    }

    /// Rows that follow belong to `location`. The engine calls it with each unit's path.
    pub fn set_location(&mut self, location: &str) {
        self.location.clear();
        self.location.push_str(location);
    }

    /// The location rows are written for.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Adds a row for the unit itself.
    pub fn row(&mut self, definition: &StatisticDefinition, value: u64) {
        if let Some(numbers) = &mut self.numbers {
            return numbers.push(value);
        }
        let location = self.location.clone();
        let StatisticDefinition { name: what, unit, maximum, .. } = *definition;
        self.rows.push(StatisticRow { location, what, value, unit, maximum });
    }

    /// Adds a table of the unit; its name begins with the unit's.
    pub fn table(&mut self, name: &str, columns: &'static [&'static str], lines: Vec<Vec<Field>>) {
        let name = format!("{}_{name}", self.location.replace(['.', '['], "_").replace(']', ""));
        self.tables.push(DataTable { name, columns, lines });
    }

    /// Adds a row for a part of the unit: "channel\[2\]".
    pub fn row_of(&mut self, part: impl fmt::Display, definition: &StatisticDefinition, value: u64) {
        if let Some(numbers) = &mut self.numbers {
            return numbers.push(value);
        }
        let location = format!("{}.{part}", self.location);
        let StatisticDefinition { name: what, unit, maximum, .. } = *definition;
        self.rows.push(StatisticRow { location, what, value, unit, maximum });
    }

    /// Takes the values of a set of counters where names are not wanted. False where they are.
    #[inline]
    fn takes_numbers(&mut self, values: &[u64]) -> bool {
        let Some(numbers) = &mut self.numbers else { return false };
        numbers.extend_from_slice(values);
        true
    }
}

impl CounterSink for StatisticSink {
    fn take_counters(&mut self, definitions: &'static [StatisticDefinition], values: &[u64]) {
        if self.takes_numbers(values) {
            return;
        }
        for (definition, value) in definitions.iter().zip(values) {
            self.row(definition, *value);
        }
    }

    fn take_counters_of(
        &mut self,
        part: impl fmt::Display,
        definitions: &'static [StatisticDefinition],
        values: &[u64],
    ) {
        if self.takes_numbers(values) {
            return;
        }
        for (definition, value) in definitions.iter().zip(values) {
            self.row_of(&part, definition, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CtaCounters;
    use super::*;

    #[test]
    fn zeros_are_written() {
        let mut sink = StatisticSink::default();
        sink.set_location("gpu.sm[0]");
        CtaCounters::default().write(&mut sink);
        assert_eq!(sink.rows.len(), CtaCounters::DEFINITIONS.len());
        assert_eq!(sink.rows[2].what, "inst_executed");
        assert_eq!(sink.rows[2].location, "gpu.sm[0]");
        assert_eq!(sink.rows[2].value, 0);
    }

    #[test]
    fn numbers_are_the_values_of_the_rows() {
        let counters = CtaCounters { warps_launched: 3, ..Default::default() };
        let write = |sink: &mut StatisticSink| {
            counters.write(sink);
            counters.write_of(format_args!("channel[{}]", 2), sink);
            sink.row(&CtaCounters::DEFINITIONS[0], 7);
            sink.row_of("bank", &CtaCounters::DEFINITIONS[0], 8);
        };
        let mut rows = StatisticSink::default();
        write(&mut rows);
        let mut numbers = StatisticSink::of_numbers(SimTime(5), vec![9; 3]);
        write(&mut numbers);
        assert!(numbers.rows.is_empty());
        assert_eq!(numbers.numbers_written(), rows.rows.len());
        assert_eq!(numbers.into_numbers(), rows.rows.iter().map(|row| row.value).collect::<Vec<_>>());
    }

    #[test]
    fn parts_have_their_own_location() {
        let mut sink = StatisticSink::default();
        sink.set_location("gpu.hbm[1]");
        let counters = CtaCounters { warps_launched: 3, ..Default::default() };
        counters.write_of("channel[2]", &mut sink);
        assert_eq!((sink.rows[0].location.as_str(), sink.rows[0].value), ("gpu.hbm[1].channel[2]", 3));
    }
}
