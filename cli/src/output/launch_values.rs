//! The counters and metrics that are asked for of chosen launches: over these alone, however many others ran.

use super::table::Lines;
use crate::options::selection::Selection;
use balar_record::metrics::{Choice, Formula, Measurement, Place, Reading, RollUpKind, place_of_counter};
use balar_record::result::RunRecord;

/// Whether what is asked for is told of launches: some of them are chosen, and counters or metrics, but no units.
pub fn are_asked_for(record: &RunRecord, selection: &Selection) -> bool {
    record.chosen_launches.is_some() && selection.show.is_empty() && !selection.metrics.is_empty()
}

/// Is this counter of a unit known of each launch?
pub fn is_known(measured: &Measurement, location: &str, what: &str) -> bool {
    measured.place_of(location).is_some_and(|place| place_of_counter(place, what).is_some())
}

/// A row for each counter and metric and each GPU: over its chosen launches, with the least and the most of any of them. Empty where nothing
/// is asked for of launches. `width` is the terminal's, where there is one.
pub fn text(record: &RunRecord, selection: &Selection, width: Option<u16>) -> String {
    if !are_asked_for(record, selection) {
        return String::new();
    }
    let measured = record.measurement();
    let mut counters: Vec<(Place, &str, &str)> = Vec::new();
    for row in record.statistics.rows.iter().filter(|row| selection.covers(row)) {
        let place = measured.place_of(&row.location).filter(|place| place_of_counter(*place, row.what).is_some());
        if let Some(place) = place
            && !counters.contains(&(place, row.what, row.unit))
        {
            counters.push((place, row.what, row.unit));
        }
    }
    let mut rows = Vec::new();
    for (place, what, unit) in counters {
        for reading in measured.counter_of_launches(place, what, record.launches().iter()) {
            rows.push(row(&reading, what, unit, None, 1));
        }
    }
    for Choice { metric, name, roll_up, .. } in selection.metrics_beside(&record.statistics.rows) {
        let digits = if matches!(metric.formula, Formula::Ratio { .. }) { 3 } else { 1 };
        for reading in measured.readings_of_launches(metric, record.launches().iter()) {
            let wanted = roll_up.or((reading.instances == 1).then(|| metric.usual_roll_up()));
            rows.push(row(&reading, &name, metric.unit(), wanted, digits));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let header = vec!["GPU", "what", "launches", "sum", "min", "avg", "max", "unit"];
    Lines { header, left: vec![0, 1, 7], droppable: vec![0, 5, 4, 6, 7], elastic: Some(1), rows }.text(width)
}

/// A reading in cells; of one roll-up alone where one is wanted. A mean has so many digits.
fn row(reading: &Reading, name: &str, unit: &str, wanted: Option<RollUpKind>, digits: usize) -> Vec<String> {
    let cell = |kind: RollUpKind| {
        let value = reading.rolled_up(kind).filter(|_| wanted.is_none_or(|wanted| wanted == kind));
        let digits = if kind == RollUpKind::Avg { digits } else { 3 };
        value.map_or(String::new(), |value| format!("{value:.digits$}"))
    };
    let [sum, avg, least, most] = RollUpKind::ALL.map(cell);
    let (gpu, launches) = (reading.location.clone(), reading.instances.to_string());
    vec![gpu, name.to_owned(), launches, sum, least, avg, most, unit.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::selection::tests::metrics;
    use balar_protocol::kernel_records::KernelRecords;
    use balar_record::metrics::node_facts::NodeFacts;
    use balar_record::sample;

    fn of(record: &RunRecord, names: &str) -> Vec<Vec<String>> {
        let selection = Selection { metrics: metrics(names), ..Selection::default() };
        let lines = text(record, &selection, None);
        lines.lines().skip(2).map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    }

    /// Launches of 200, 800 and 280 warp instructions: the first and the last are of lud_diagonal.
    fn with_chosen() -> RunRecord {
        let mut record = sample::record();
        record.node = NodeFacts::of(&sample::node("v100_node"));
        // An SM is one by what it counts.
        for index in [0, 1] {
            let location = format!("gpu.sm[{index}]");
            let at = record.statistics.rows.iter().rposition(|row| row.location == location).map_or(0, |at| at + 1);
            let template = record.statistics.rows[at - 1].clone();
            let row = balar_protocol::statistics::StatisticRow { what: "warp_cycles_active", value: 0, ..template };
            record.statistics.rows.insert(at, row);
        }
        let diagonal = record.statistics.kernels.iter().filter(|launch| &*launch.name == "lud_diagonal");
        record.chosen_launches = Some(diagonal.collect::<KernelRecords>());
        record
    }

    #[test]
    fn a_chosen_kernel_has_its_own_values_alone() {
        let record = with_chosen();
        // 200 + 280 of the 1280 that all launches have.
        let cells = ["gpu", "inst_executed", "2", "480", "200", "240.0", "280", "instruction"];
        assert_eq!(of(&record, "inst_executed"), [cells]);
        // 480 instructions of 2 * 64 warps; each launch has 64.
        let cells = ["gpu", "inst_per_warp", "2", "3.125", "3.750", "4.375", "instruction"];
        assert_eq!(of(&record, "inst_per_warp"), [cells]);
        let names = "warps_launched";
        let all = RunRecord { chosen_launches: None, ..with_chosen() };
        assert!(of(&all, names).is_empty() && !of(&record, names).is_empty(), "only chosen launches are told apart");
    }

    /// What launches of all kernels have is together what the run has.
    #[test]
    fn the_sums_of_kernels_are_those_of_all_launches() {
        let mut record = with_chosen();
        let all: Vec<_> = record.statistics.kernels.iter().collect();
        let mut sum_of = |name: Option<&str>| -> u64 {
            let chosen = all.iter().filter(|launch| name.is_none_or(|name| &*launch.name == name)).cloned();
            record.chosen_launches = Some(chosen.collect());
            of(&record, "inst_executed")[0][3].parse().expect("a number")
        };
        assert_eq!(sum_of(Some("lud_diagonal")) + sum_of(Some("lud_internal")), sum_of(None));
        assert_eq!(sum_of(None), 1280);
    }
}
