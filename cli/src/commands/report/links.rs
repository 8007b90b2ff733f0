//! The links of the node: what crossed them, how busy they were, and when.

use super::input::{RunInput, UnitCounts};
use super::over_time::Growth;
use super::units::{numbers, quotient, titled};
use balar_charts::{OverTime, Spans, Steps, over_time};
use balar_report::{Cell, Chart, Column, Format, Part, Section, Table};
use std::collections::BTreeSet;

/// Parts that the time of a run is divided into.
const PARTS: usize = 240;
/// Lines in a chart: those that carried the most.
const LINES: usize = 4;

/// Is it a direction of a link? Links for commands and data count messages, links for pages transfers.
fn is_link(unit: &UnitCounts) -> bool {
    let has = |names: &[&str]| names.iter().all(|name| unit.counts.contains_key(*name));
    has(&["bytes", "busy_time", "queue_time"]) && (has(&["messages"]) || has(&["transfers"]))
}

/// The section; `None` where nothing crossed a link.
pub fn section(runs: &[RunInput]) -> Option<Section> {
    let used = |unit: &&UnitCounts| is_link(unit) && unit.get("bytes") > 0;
    let names: BTreeSet<&str> =
        runs.iter().flat_map(|run| &run.units).filter(used).map(|unit| unit.location.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let find = |run: &RunInput, name: &str, what: &str| -> Option<f64> {
        let unit = run.units.iter().find(|unit| unit.location == *name)?;
        unit.counts.get(what).map(|count| *count as f64)
    };
    let rows = names.iter().map(|name| {
        let transfers = |run: &RunInput| find(run, name, "messages").or_else(|| find(run, name, "transfers"));
        vec![
            Cell::Text((*name).to_owned()),
            numbers(runs, |run| find(run, name, "bytes").map(|bytes| bytes / 1e6)),
            numbers(runs, transfers),
            numbers(runs, |run| quotient(find(run, name, "bytes")?, transfers(run)?)),
            numbers(runs, |run| quotient(100.0 * find(run, name, "busy_time")?, run.time() as f64)),
            // Bytes in picoseconds.
            numbers(runs, |run| quotient(1000.0 * find(run, name, "bytes")?, find(run, name, "busy_time")?)),
            numbers(runs, |run| quotient(find(run, name, "queue_time")? / 1e3, transfers(run)?)),
        ]
    });
    let table = Table {
        caption: "What crossed the links".to_owned(),
        columns: vec![
            Column::text("link"),
            Column::number("data", "MB", Format::Fixed(3)),
            Column::number("messages", "", Format::Count).meaning("messages, or transfers of pages"),
            Column::number("each", "bytes", Format::Short),
            Column::number("busy", "% of the run", Format::Percent),
            Column::number("rate while busy", "GB/s", Format::Fixed(2)),
            Column::number("queued", "ns each", Format::Short)
                .meaning("time that a message waited for the link, on average"),
        ],
        rows: rows.collect(),
        is_sortable: true,
        rest: None,
    };
    let mut parts: Vec<Part> = runs.iter().filter_map(chart).collect();
    if parts.len() > 1 {
        parts = vec![Part::Beside(parts)];
    }
    parts.push(Part::Table(table));
    Some(Section { id: "links", title: "Links", lead: String::new(), parts })
}

/// What crossed links over time; `None` where there are no samples by unit.
fn chart(run: &RunInput) -> Option<Part> {
    let samples = run.samples.as_ref().filter(|samples| !samples.times.is_empty() && run.time() > 0)?;
    let mut links: Vec<&UnitCounts> = run.units.iter().filter(|unit| is_link(unit) && unit.get("bytes") > 0).collect();
    links.sort_by_key(|link| std::cmp::Reverse(link.get("bytes")));
    // A link that carries commands alone says nothing beside one that carries data.
    let most = links.first()?.get("bytes");
    links.retain(|link| link.get("bytes") >= most / 100);
    links.truncate(LINES);
    let values: Vec<Vec<f64>> = links
        .iter()
        .filter_map(|link| {
            let row =
                samples.layout.rows.iter().position(|row| row.location == link.location && row.what == "bytes")?;
            let counts = samples.times.iter().zip(&samples.values).map(|(time, values)| (*time, values[row] as f64));
            let rates = Growth::of_count(counts).rates((0, run.time()), PARTS).into_iter().map(|rate| rate * 1000.0);
            // A link counts a transfer as it begins: what is more than the link carries crosses it thereafter.
            let most = quotient(1000.0 * link.get("bytes") as f64, link.get("busy_time") as f64)?;
            let crossed = rates.scan(0.0, |waiting: &mut f64, rate| {
                let all = *waiting + rate;
                *waiting = (all - most).max(0.0);
                Some(all - *waiting)
            });
            Some(crossed.collect())
        })
        .collect();
    let end = run.time() as f64 / 1e6;
    let steps = links.iter().zip(&values).map(|(link, values)| Steps {
        name: &link.location,
        values: values
            .iter()
            .enumerate()
            .map(|(part, value)| ((part + 1) as f64 * end / PARTS as f64, Some(*value)))
            .collect(),
    });
    let svg = over_time(&OverTime {
        x: ("simulated time, us", (0.0, end)),
        y: "GB/s",
        most: None,
        steps: steps.collect(),
        spans: Spans::default(),
    });
    let title = titled("Data over time", run, None);
    let label = format!("Data over time of {} links", values.len());
    let mut columns = vec![Column::number("until", "us", Format::Fixed(2))];
    columns.extend(links.iter().map(|link| Column::number(&link.location, "GB/s", Format::Short)));
    const STEP: usize = 6;
    let rows = (0..PARTS / STEP).map(|row| {
        let until = Cell::number((row + 1) as f64 * end * STEP as f64 / PARTS as f64);
        let means = values
            .iter()
            .map(|values| Cell::number(values[row * STEP..(row + 1) * STEP].iter().sum::<f64>() / STEP as f64));
        std::iter::once(until).chain(means).collect()
    });
    let table = Table { caption: title.clone(), columns, rows: rows.collect(), is_sortable: false, rest: None };
    Some(Part::Chart(Chart { title, label, svg, table }))
}
