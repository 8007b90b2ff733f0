//! The full table: every kernel, and what each row of units counted; or the rows asked for.

use super::table::Lines;
use super::{kernel_table, launch_values, range_table, summary};
use crate::options::selection::Selection;
use balar_protocol::statistics::StatisticRow;
use balar_record::metrics::rollup::{RollUp, roll_up_as};
use balar_record::metrics::{Choice, Formula, RollUpKind};
use balar_record::result::RunRecord;

/// The head, and what the selection asks for. `width` is the terminal's, where there is one. Without one the text depends on
/// the run alone. Wall-clock values stand on the line "real time".
pub fn text(record: &RunRecord, selection: &Selection, width: Option<u16>) -> String {
    summary::head(record) + &body(record, selection, width)
}

/// What the selection asks for, without the head.
pub fn body(record: &RunRecord, selection: &Selection, width: Option<u16>) -> String {
    let mut text = String::new();
    if !selection.is_partial() {
        text.push_str(&summary::section("Kernels", &kernel_table::text(record, usize::MAX, true, width)));
        text.push_str(&summary::section("Named ranges", &range_table::text(record, usize::MAX, width)));
        text.push_str(&summary::section("Reported by the program", &summary::results(record, usize::MAX, width)));
    }
    text.push_str(&summary::section("Chosen launches", &launch_values::text(record, selection, width)));
    let title = if launch_values::are_asked_for(record, selection) { "Units, of all launches" } else { "Units" };
    text.push_str(&summary::section(title, &units(record, selection, width)));
    for path in
        selection.show.iter().filter(|path| !record.statistics.rows.iter().any(|row| path.covers(&row.location)))
    {
        text.push_str(&format!("\n--show {path}: nothing there has counters\n"));
    }
    text
}

fn units(record: &RunRecord, selection: &Selection, width: Option<u16>) -> String {
    let measured = record.measurement();
    // What launches have is told of those that are chosen.
    let of_launches = launch_values::are_asked_for(record, selection);
    let is_told = |row: &StatisticRow| of_launches && launch_values::is_known(&measured, &row.location, row.what);
    let covers = |row: &StatisticRow| selection.covers(row) && !is_told(row);
    let rolled = roll_up_as(&record.statistics.rows, covers, |location| selection.label(location));
    let metrics = metrics(record, selection);
    if rolled.is_empty() && metrics.is_empty() {
        return String::new();
    }
    let mut previous = "";
    let mut rows = Vec::with_capacity(rolled.len() + metrics.len());
    for row in &rolled {
        let location = if row.location == previous { String::new() } else { row.location.clone() };
        previous = &row.location;
        let spread = |value: String| if row.instances == 1 { String::new() } else { value };
        rows.push(vec![
            location,
            row.what.to_owned(),
            row.instances.to_string(),
            row.sum.to_string(),
            spread(row.min.to_string()),
            spread(format!("{:.1}", row.avg)),
            spread(row.max.to_string()),
            unit(record, row),
        ]);
    }
    rows.extend(metrics);
    let header = vec!["location", "what", "units", "sum", "min", "avg", "max", "unit"];
    Lines { header, left: vec![0, 1, 7], droppable: vec![2, 5, 4, 6, 7], elastic: Some(0), rows }.text(width)
}

/// Rows of the metrics that are asked for by names that are no counters. A name that says how units are rolled up has that value alone.
fn metrics(record: &RunRecord, selection: &Selection) -> Vec<Vec<String>> {
    let measured = record.measurement();
    let rows = |Choice { metric, name, roll_up, .. }: Choice| {
        let covers = |location: &str| selection.covers_location(location);
        let readings = measured.readings(metric, covers, |location| selection.label(location)).into_iter();
        readings.map(move |reading| {
            let cell = |kind: RollUpKind| {
                let is_shown =
                    roll_up.map_or(reading.instances > 1 || kind == metric.usual_roll_up(), |only| only == kind);
                let digits =
                    if kind == RollUpKind::Avg && !matches!(metric.formula, Formula::Ratio { .. }) { 1 } else { 3 };
                let value = reading.rolled_up(kind).filter(|_| is_shown);
                value.map_or(String::new(), |value| format!("{value:.digits$}"))
            };
            let [sum, avg, min, max] = RollUpKind::ALL.map(cell);
            let (instances, unit) = (reading.instances.to_string(), metric.unit().to_owned());
            vec![reading.location.clone(), name.clone(), instances, sum, min, avg, max, unit]
        })
    };
    let of_launches = launch_values::are_asked_for(record, selection);
    let choices = selection.metrics_beside(&record.statistics.rows).into_iter();
    choices.filter(|choice| !(of_launches && choice.metric.is_of_launches())).flat_map(rows).collect()
}

/// The unit of measure; of cycles, whose clock they are counted by.
fn unit(record: &RunRecord, row: &RollUp) -> String {
    match record.node.clock(&row.location) {
        Some(clock) if row.unit == "cycle" => format!("cycle at {clock}"),
        _ => row.unit.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_record::sample::record;

    fn all(record: &RunRecord, width: Option<u16>) -> String {
        text(record, &Selection::all(), width)
    }

    #[test]
    fn the_full_table_as_it_is_printed() {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../snapshots/cli"));
        settings.set_prepend_module_to_snapshot(false);
        let mut record = record();
        record.statistics.rows.retain(|row| row.what.starts_with("inst_") || row.what == "read_hits");
        settings.bind(|| insta::assert_snapshot!("details", all(&record, None)));
    }

    #[test]
    fn units_are_rolled_up() {
        let text = all(&record(), None);
        let line = text.lines().find(|line| line.contains("gpu.sm[*]")).expect("a line for the SMs");
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["gpu.sm[*]", "warps_launched", "2", "13", "5", "6.5", "8", "warp"]);
        assert_eq!(text.matches("gpu.sm[*]").count(), 1, "the location is named once");
    }

    #[test]
    fn a_selection_prints_its_rows_alone() {
        let selection = Selection {
            show: vec!["gpu.sm[1]".parse().expect("a path")],
            metrics: crate::options::selection::tests::metrics("warps_*"),
            ..Selection::default()
        };
        let text = text(&record(), &selection, None);
        let line = text.lines().find(|line| line.contains("gpu.sm[1]")).expect("a line for the SM");
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["gpu.sm[1]", "warps_launched", "1", "5", "warp"]);
        assert!(!text.contains("lud_") && !text.contains("inst_") && !text.contains("gpu.l2"), "{text}");
    }

    #[test]
    fn a_narrow_terminal_breaks_no_name() {
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert!(widest(&all(&record(), None)) > Some(80));
        for width in [80, 120] {
            let text = all(&record(), Some(width));
            assert!(widest(&text) <= Some(usize::from(width)), "{text}");
            for row in &record().statistics.rows {
                assert!(text.split_whitespace().any(|word| word == row.what), "{}: {text}", row.what);
            }
        }
    }
}
