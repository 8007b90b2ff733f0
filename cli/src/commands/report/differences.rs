//! What differs between two runs: what went in, and the counters that changed most.

use super::input::RunInput;
use crate::commands::compare::pair::Pair;
use crate::commands::compare::{counters, inputs};
use balar_actors::catalogue::UnitDefinition;
use balar_report::{Cell, Column, Format, Part, Section, Table};

/// Counters that are shown.
const MOST: usize = 25;

/// The section; `None` of a single run.
pub fn section(runs: &[RunInput], kinds: &[&'static UnitDefinition]) -> Option<Section> {
    let [before, after] = runs else { return None };
    let mut notes = Vec::new();
    let inputs = inputs::differences(&Pair { before: &before.folder, after: &after.folder }, kinds, &mut notes);
    let changes = counters::changes(&Pair { before: before.document(), after: after.document() });
    let changes = counters::without_parts(&changes);
    let mut parts = vec![Part::Heading("What went in".to_owned())];
    if inputs.is_empty() {
        parts.push(Part::Note("Topology, workload, code and version are the same.".to_owned()));
    } else {
        let rows = inputs.into_iter().map(|input| {
            let place =
                if input.what.is_empty() { input.location } else { format!("{} {}", input.location, input.what) };
            let units = if input.units > 1 { format!(" ({} units)", input.units) } else { String::new() };
            let text = |value: Option<String>| Cell::Text(value.unwrap_or_else(|| "\u{2013}".to_owned()));
            vec![Cell::Text(format!("{place}{units}")), text(input.before), text(input.after)]
        });
        let columns = ["what", "A", "B"].map(Column::text).into();
        let caption = "What went into the runs that differs".to_owned();
        parts.push(Part::Table(Table { caption, columns, rows: rows.collect(), is_sortable: false, rest: None }));
    }
    parts.extend(notes.into_iter().map(Part::Note));
    parts.push(Part::Heading("Counters".to_owned()));
    if changes.is_empty() {
        parts.push(Part::Note("Every counter has the same value in both runs.".to_owned()));
    } else {
        let rest = changes.len().saturating_sub(MOST);
        let rows = changes.into_iter().take(MOST).map(|change| {
            let value = |count: Option<u64>| count.map(|count| count as f64);
            vec![
                Cell::Text(change.location.clone()),
                Cell::Text(change.what.clone()),
                Cell::Numbers(vec![value(change.values.before), value(change.values.after)]),
                Cell::Text(change.unit.clone()),
            ]
        });
        let table = Table {
            caption: "Counters that differ, the most significant first".to_owned(),
            columns: vec![
                Column::text("units"),
                Column::text("counter"),
                Column::number("", "", Format::Count),
                Column::text("unit of measure"),
            ],
            rows: rows.collect(),
            is_sortable: true,
            rest: (rest > 0).then(|| format!("{rest} more differ: `balar-actors compare --details` prints them")),
        };
        parts.push(Part::Table(table.spread(["A", "B"])));
    }
    let lead = "The counters whose change matters most come first, as `balar-actors compare` ranks them.".to_owned();
    Some(Section { id: "differences", title: "Differences", lead, parts })
}
