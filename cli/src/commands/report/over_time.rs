//! Numbers over time: read from samples.jsonl, or made of the samples of a run; and how charts divide them.

use crate::series::sample_keeper::Samples;
use balar_actors::engine::{Sample, SampleKind};
use balar_protocol::SimTime;
use balar_protocol::launches::LaunchSink;
use balar_record::metrics::node_facts::NodeFacts;
use balar_record::series::{Table, Tables};
use balar_record::system::failure::Failure;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The file of a run that has its samples.
pub const FILE: &str = "samples.jsonl";

/// By GPU (none of the node itself) and name: times in ps and values. A count is that since the run began; a quotient is that of the time
/// since the value before.
pub type SeriesOverTime = BTreeMap<(String, String), Vec<(u64, f64)>>;

/// Something that grows with time: a count, or a quotient summed up over time.
#[derive(Clone, Debug, Default)]
pub struct Growth(Vec<(u64, f64)>);

impl Growth {
    /// Of a count.
    pub fn of_count(values: impl IntoIterator<Item = (u64, f64)>) -> Growth {
        Growth(std::iter::once((0, 0.0)).chain(values).collect())
    }

    /// Of a quotient: its value times ps. Where it has no value, it does not grow.
    pub fn of_quotient(values: &[(u64, f64)], times: &[u64]) -> Growth {
        let mut grown = vec![(0, 0.0)];
        let (mut sum, mut before, mut next) = (0.0, 0, values.iter().peekable());
        for &time in times {
            while next.peek().is_some_and(|(at, _)| *at < time) {
                next.next();
            }
            if let Some((at, value)) = next.peek()
                && *at == time
            {
                sum += value * (time - before) as f64;
            }
            grown.push((time, sum));
            before = time;
        }
        Growth(grown)
    }

    /// Of a quotient in percent: what it is a part of is a count, and this is that part.
    pub fn of_part(percent: &[(u64, f64)], whole: &[(u64, f64)]) -> Growth {
        let (mut sum, mut before, mut next) = (0.0, 0.0, percent.iter().peekable());
        let parts = whole.iter().map(|&(time, count)| {
            while next.peek().is_some_and(|(at, _)| *at < time) {
                next.next();
            }
            if let Some((_, percent)) = next.peek().filter(|(at, _)| *at == time) {
                sum += percent / 100.0 * (count - before);
            }
            before = count;
            (time, sum)
        });
        Growth::of_count(parts)
    }

    /// How much it is at a time.
    fn at(&self, time: f64) -> f64 {
        let after = self.0.partition_point(|(at, _)| (*at as f64) < time);
        let Some(&(to, high)) = self.0.get(after) else { return self.0.last().map_or(0.0, |(_, value)| *value) };
        let Some(&(from, low)) = after.checked_sub(1).and_then(|before| self.0.get(before)) else { return high };
        low + (high - low) * (time - from as f64) / (to - from) as f64
    }

    /// How much it grows in each of so many equal parts of a time, by ps.
    pub fn rates(&self, (from, until): (u64, u64), parts: usize) -> Vec<f64> {
        let width = (until - from) as f64 / parts as f64;
        let edges = (0..=parts).map(|part| self.at(from as f64 + part as f64 * width)).collect::<Vec<_>>();
        edges.windows(2).map(|pair| ((pair[1] - pair[0]) / width).max(0.0)).collect()
    }
}

/// Makes series of the samples of a run, as samples.jsonl would have them.
pub fn of_samples(samples: &Samples, node: &NodeFacts) -> SeriesOverTime {
    let mut tables = Tables::new(node, &[], &samples.layout);
    let columns = Table::ALL.map(|table| (table, tables.columns(table).to_vec()));
    let changed = vec![true; samples.layout.units.len()];
    let launches = LaunchSink::default();
    let mut series = SeriesOverTime::new();
    for (time, values) in samples.times.iter().zip(&samples.values) {
        let (time, kind) = (SimTime(*time), SampleKind::Due);
        let sample = Sample { time, kind, values, changed: &changed, launches: &launches, waiting: &[] };
        tables.note(&sample);
        tables.rows(&sample, |row| {
            let columns = columns.iter().find(|(table, _)| *table == row.table).map_or(&[][..], |(_, columns)| columns);
            for (column, value) in columns.iter().zip(row.values) {
                if let Some(value) = value {
                    let key = (row.subject.gpu.to_string(), column.name.clone());
                    series.entry(key).or_default().push((row.time.0, value.real()));
                }
            }
        });
    }
    series
}

/// Reads those of a folder; `None` where it has none.
///
/// # Errors
///
/// The file is there and is not as it should be.
pub fn read(folder: &Path) -> Result<Option<SeriesOverTime>, Failure> {
    let path = folder.join(FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let unreadable =
        |cause: &dyn std::fmt::Display| Failure::input(format_args!("cannot read {}: {cause}", path.display()));
    let file = File::open(&path).map_err(|cause| unreadable(&cause))?;
    let mut series = SeriesOverTime::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|cause| unreadable(&cause))?;
        let row: serde_json::Map<String, Value> = serde_json::from_str(&line).map_err(|cause| {
            let place = format_args!("{}, line {}: it is no sample: {cause}", path.display(), number + 1);
            Failure::mistake(place, "a run with --sample-interval and --output writes it: run again")
        })?;
        if row.get("schema").and_then(Value::as_str) == Some("balar_launch") {
            continue;
        }
        let gpu = row.get("gpu").and_then(Value::as_str).unwrap_or_default();
        let Some(time) = row.get("sim_ps").and_then(Value::as_u64) else { continue };
        for (name, value) in &row {
            if let Some(value) = value.as_f64().filter(|_| name != "sim_ps") {
                series.entry((gpu.to_owned(), name.clone())).or_default().push((time, value));
            }
        }
    }
    Ok(Some(series).filter(|series| !series.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_divided_evenly_between_samples() {
        let growth = Growth::of_count([(10, 100.0), (30, 100.0), (40, 200.0)]);
        assert_eq!(growth.rates((0, 40), 4), [10.0, 0.0, 0.0, 10.0]);
        assert_eq!(growth.rates((0, 40), 2), [5.0, 5.0]);
        // Nothing is known of what comes after the last one.
        assert_eq!(growth.rates((0, 80), 2), [5.0, 0.0]);
    }

    #[test]
    fn quotients_are_averaged_over_time() {
        let growth = Growth::of_quotient(&[(10, 50.0), (40, 100.0)], &[10, 20, 40]);
        assert_eq!(growth.rates((0, 40), 4), [50.0, 0.0, 100.0, 100.0]);
        assert_eq!(growth.rates((0, 40), 1), [62.5]);
        assert_eq!(Growth::default().rates((0, 40), 2), [0.0, 0.0]);
    }

    #[test]
    fn parts_are_those_of_their_wholes() {
        let growth = Growth::of_part(&[(10, 50.0), (40, 100.0)], &[(10, 8.0), (20, 8.0), (40, 48.0)]);
        assert_eq!(growth.rates((0, 40), 2), [4.0 / 20.0, 2.0]);
    }

    #[test]
    fn a_file_that_is_none_is_named_with_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(read(folder.path()).expect("none").is_none());
        let text = "{\"schema\":\"balar_gpu\",\"gpu\":\"g\",\"sim_ps\":5,\"dram_util\":1.5}\n{\"schema\"";
        std::fs::write(folder.path().join(FILE), text).expect("written");
        let error = read(folder.path()).expect_err("it is cut off");
        assert!(format!("{error:?}").contains("samples.jsonl, line 2: it is no sample"), "{error:?}");
        std::fs::write(folder.path().join(FILE), text.lines().next().expect("a line")).expect("written");
        let series = read(folder.path()).expect("read").expect("some");
        assert_eq!(series[&("g".to_owned(), "dram_util".to_owned())], [(5, 1.5)]);
    }
}
