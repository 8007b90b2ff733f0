//! Roll-ups: one counter over all units of a row.

use balar_protocol::statistics::StatisticRow;
use serde::Serialize;
use std::collections::BTreeMap;

/// One counter over all units whose paths differ by their indices alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RollUp {
    /// Their path, with "\[*\]" for each index.
    pub location: String,
    /// Name of the counter.
    pub what: &'static str,
    /// Units.
    pub instances: u64,
    /// Sum over them, which saturates; for a counter that is a maximum, the greatest.
    pub sum: u64,
    /// The least.
    pub min: u64,
    /// The mean.
    pub avg: f64,
    /// The greatest.
    pub max: u64,
    /// Unit of measure.
    pub unit: &'static str,
}

/// `location` with "\[*\]" for each index: "gpu.sm\[3\]" becomes "gpu.sm\[*\]".
pub fn pattern(location: &str) -> String {
    let mut text = String::with_capacity(location.len());
    let mut inside = false;
    for character in location.chars() {
        match character {
            '[' => {
                inside = true;
                text.push_str("[*]");
            }
            ']' => inside = false,
            _ if inside => {}
            _ => text.push(character),
        }
    }
    text
}

/// Rolls rows up, in the order in which they first appear; units without an index too.
pub fn roll_up(rows: &[StatisticRow]) -> Vec<RollUp> {
    roll_up_as(rows, |_| true, pattern)
}

/// Rolls those rows up that are `chosen`; locations with the same `label` share a row of the result.
pub fn roll_up_as(
    rows: &[StatisticRow],
    chosen: impl Fn(&StatisticRow) -> bool,
    label: impl Fn(&str) -> String,
) -> Vec<RollUp> {
    let mut roll_ups: Vec<RollUp> = Vec::new();
    // By pattern of locations: the place of each counter. The rows of a unit follow each other.
    let mut known: BTreeMap<String, BTreeMap<&'static str, usize>> = BTreeMap::new();
    let mut totals: Vec<u64> = Vec::new();
    for unit in rows.chunk_by(|row, next| row.location == next.location) {
        let location = label(&unit[0].location);
        let places = known.entry(location.clone()).or_default();
        for &StatisticRow { what, unit, value, maximum, .. } in unit.iter().filter(|row| chosen(row)) {
            let next = roll_ups.len();
            let index = *places.entry(what).or_insert(next);
            if index == next {
                let location = location.clone();
                roll_ups.push(RollUp { location, what, instances: 0, sum: 0, min: value, avg: 0.0, max: value, unit });
                totals.push(0);
            }
            let roll_up = &mut roll_ups[index];
            roll_up.instances += 1;
            totals[index] = totals[index].saturating_add(value);
            roll_up.min = roll_up.min.min(value);
            roll_up.max = roll_up.max.max(value);
            roll_up.sum = if maximum { roll_up.max } else { totals[index] };
        }
    }
    for (roll_up, total) in roll_ups.iter_mut().zip(totals) {
        roll_up.avg = total as f64 / roll_up.instances as f64;
    }
    roll_ups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of three channels of two stacks.
    fn rows(maximum: bool) -> Vec<StatisticRow> {
        [("gpu.hbm[0].channel[0]", 4), ("gpu.hbm[0].channel[1]", 1), ("gpu.hbm[1].channel[0]", 4)]
            .into_iter()
            .map(|(location, value)| StatisticRow {
                location: location.to_owned(),
                what: "reads",
                value,
                unit: "sector",
                maximum,
            })
            .collect()
    }

    #[test]
    fn of_maxima_the_greatest_is_taken() {
        let rolled = roll_up(&rows(true));
        assert_eq!((rolled[0].sum, rolled[0].min, rolled[0].max, rolled[0].avg), (4, 1, 4, 3.0));
    }

    #[test]
    fn rows_that_differ_by_index_roll_up() {
        let rolled = roll_up(&rows(false));
        assert_eq!(rolled.len(), 1);
        assert_eq!(rolled[0].location, "gpu.hbm[*].channel[*]");
        assert_eq!((rolled[0].instances, rolled[0].sum, rolled[0].min, rolled[0].max), (3, 9, 1, 4));
        assert_eq!(rolled[0].avg, 3.0);
    }

    #[test]
    fn the_order_is_that_of_the_rows() {
        let record = crate::sample::record();
        let rolled = roll_up(&record.statistics.rows);
        assert_eq!((rolled[0].location.as_str(), rolled[0].what, rolled[0].sum), ("gpu.sm[*]", "warps_launched", 13));
        let last = rolled.last().expect("rows");
        assert_eq!((last.location.as_str(), last.instances), ("gpu.l2[*].bank[*]", 2));
    }
}
