//! Counters of whole runs, rolled up by row of units: what changed most.

use super::kernels::{Stalls, ordered, reason};
use super::pair::Pair;
use balar_actors::kinds::UNITS;
use balar_record::metrics::rollup::pattern;
use balar_record::run_folder::document::RunDocument;
use balar_record::run_folder::instructions::STALL;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A counter that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterChange {
    /// The units, with "\[*\]" for each index.
    pub location: String,
    /// The counter.
    pub what: String,
    /// Its unit of measure.
    pub unit: String,
    /// Its values, over all units of the row; `None` where a run has no such counter.
    #[serde(flatten)]
    pub values: Pair<Option<u64>>,
    /// How much the change matters: the change as a share of the greater value, times the square root of that value's share in the greatest
    /// of all counters in the same unit of measure.
    pub significance: f64,
}

/// By row of units and counter: the value over all units, and its unit of measure.
type RollUps<'a> = BTreeMap<(String, &'a str), (u64, &'a str)>;

/// Is a counter the greatest of something, so that several are not added up?
fn is_maximum(what: &str) -> bool {
    UNITS.iter().flat_map(|kind| kind.counters).any(|counter| counter.name == what && counter.maximum)
}

fn roll_up(document: &RunDocument) -> RollUps<'_> {
    let maxima: BTreeSet<&str> = {
        let names: BTreeSet<&str> = document.statistics.iter().map(|row| row.what.as_str()).collect();
        names.into_iter().filter(|name| is_maximum(name)).collect()
    };
    let mut rows: RollUps<'_> = BTreeMap::new();
    for row in &document.statistics {
        let (value, _) = rows.entry((pattern(&row.location), &row.what)).or_insert((0, &row.unit));
        *value = if maxima.contains(&*row.what) { row.value.max(*value) } else { value.saturating_add(row.value) };
    }
    rows
}

/// The counters that differ, the most significant change first.
pub fn changes(documents: &Pair<&RunDocument>) -> Vec<CounterChange> {
    let rolled = documents.map(roll_up);
    let mut greatest: BTreeMap<&str, u64> = BTreeMap::new();
    for (value, unit) in rolled.before.values().chain(rolled.after.values()) {
        let most = greatest.entry(unit).or_insert(0);
        *most = (*most).max(*value);
    }
    let keys: BTreeSet<_> = rolled.before.keys().chain(rolled.after.keys()).collect();
    let mut changes: Vec<CounterChange> = Vec::new();
    for key in keys {
        let (old, new) = (rolled.before.get(key), rolled.after.get(key));
        let values = Pair { before: old.map(|(value, _)| *value), after: new.map(|(value, _)| *value) };
        if values.before == values.after {
            continue;
        }
        let unit = old.or(new).map_or("", |(_, unit)| unit);
        let (before, after) = (values.before.unwrap_or(0), values.after.unwrap_or(0));
        let (most, all) = (before.max(after), greatest.get(unit).copied().unwrap_or(0));
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let significance = share(before.abs_diff(after), most) * share(most, all).sqrt();
        let (location, what) = (key.0.clone(), key.1.to_owned());
        changes.push(CounterChange { location, what, unit: unit.to_owned(), values, significance });
    }
    changes.sort_by(|a, b| b.significance.total_cmp(&a.significance));
    changes
}

/// The changes without those of the parts of units that tell the same as the units themselves.
pub fn without_parts(changes: &[CounterChange]) -> Vec<&CounterChange> {
    let is_told = |change: &CounterChange| {
        changes.iter().any(|whole| {
            let is_part = change.location.strip_prefix(&*whole.location).is_some_and(|rest| rest.starts_with('.'));
            is_part && whole.what == change.what && whole.values == change.values
        })
    };
    changes.iter().filter(|change| !is_told(change)).collect()
}

/// Where all warps spent their cycles, the greatest change first.
pub fn stalls(documents: &Pair<&RunDocument>) -> Stalls {
    let of = |document: &RunDocument| {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for row in document.statistics.iter().filter(|row| row.what.starts_with(STALL)) {
            *sums.entry(row.what.clone()).or_insert(0) += row.value;
        }
        sums
    };
    let sums = documents.map(of);
    let names: BTreeSet<&String> = sums.before.keys().chain(sums.after.keys()).collect();
    let of = |sums: &BTreeMap<String, u64>, name: &String| sums.get(name).copied().unwrap_or(0);
    let stalls = names.into_iter().map(|name| {
        let cycles = Pair { before: of(&sums.before, name), after: of(&sums.after, name) };
        (reason(name), cycles)
    });
    ordered(stalls.collect())
}
