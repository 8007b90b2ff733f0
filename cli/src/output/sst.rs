//! Statistics as SST's StatisticOutputCSV writes them.

use crate::options::selection::Selection;
use balar_record::metrics::{Dialect, RollUpKind};
use balar_record::result::RunRecord;
use std::io::{self, Write};

/// The columns, which SST sets apart by ", ".
const COLUMNS: [&str; 11] = [
    "ComponentName",
    "StatisticName",
    "StatisticSubId",
    "StatisticType",
    "SimTime",
    "Rank",
    "Sum.u64",
    "SumSQ.u64",
    "Count.u64",
    "Min.u64",
    "Max.u64",
];

/// Writes a line for each counter of each unit: an accumulator to which its value was added once, at the end. A metric that is asked for
/// by its name in SST stands under that name, with the number of its unit.
///
/// # Errors
///
/// If `writer` fails.
pub fn write(record: &RunRecord, selection: &Selection, writer: &mut dyn Write) -> io::Result<()> {
    writeln!(writer, "{}", COLUMNS.join(", "))?;
    let time = record.timed_span().map_or(String::new(), |time| time.picoseconds().to_string());
    let mut line = |component: &str, statistic: &str, value: u64| {
        // SST's sums of squares are 64 bits wide, too.
        let square = value.wrapping_mul(value);
        writeln!(writer, "{component}, {statistic}, , Accumulator, {time}, 0, {value}, {square}, 1, {value}, {value}")
    };
    for row in record.statistics.rows.iter().filter(|row| selection.covers(row)) {
        line(&row.location, row.what, row.value)?;
    }
    let measured = record.measurement();
    for choice in selection.metrics_beside(&record.statistics.rows) {
        let readings = measured.readings(choice.metric, |location| selection.covers_location(location), str::to_owned);
        for (number, reading) in readings.iter().enumerate() {
            let (component, statistic) = match choice.name.rsplit_once('.') {
                Some((component, statistic)) if choice.dialect == Dialect::Sst => {
                    (component.replace("_N", &format!("_{number}")), statistic)
                }
                _ => (reading.location.clone(), choice.name.as_str()),
            };
            // Accumulators hold whole numbers; a quotient is none.
            if let Some(balar_record::metrics::Value::Count(value)) = reading.rolled_up(RollUpKind::Sum) {
                line(&component, statistic, value)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::selection::tests::metrics;
    use balar_protocol::statistics::StatisticRow;
    use balar_record::sample::record;

    #[test]
    fn counters_are_accumulators() {
        let mut record = record();
        for sm in [1, 0] {
            let at = record.statistics.rows.iter().position(|row| row.location == format!("gpu.sm[{sm}]"));
            let at = at.expect("it counts");
            let row = StatisticRow { what: "warp_cycles_active", value: 0, ..record.statistics.rows[at].clone() };
            record.statistics.rows.insert(at, row);
            let hits =
                |row: &&mut StatisticRow| row.location == format!("gpu.sm[{sm}]") && row.what == "l1_sector_hits_load";
            record.statistics.rows.iter_mut().find(hits).expect("it counts").value = 40 + sm;
        }
        let selection = Selection { metrics: metrics("warps_launched,l1gcache_N.CacheHits"), ..Selection::default() };
        let mut bytes = Vec::new();
        write(&record, &selection, &mut bytes).expect("memory takes every byte");
        let expected = "\
ComponentName, StatisticName, StatisticSubId, StatisticType, SimTime, Rank, Sum.u64, SumSQ.u64, Count.u64, Min.u64, Max.u64
gpu.sm[0], warps_launched, , Accumulator, 3000000, 0, 8, 64, 1, 8, 8
gpu.sm[1], warps_launched, , Accumulator, 3000000, 0, 5, 25, 1, 5, 5
l1gcache_0, CacheHits, , Accumulator, 3000000, 0, 40, 1600, 1, 40, 40
l1gcache_1, CacheHits, , Accumulator, 3000000, 0, 41, 1681, 1, 41, 41
";
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
    }
}
