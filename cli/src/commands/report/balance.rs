//! How work is spread over units of a kind: SMs, L2 slices, channels of device memory. Over time where the run was sampled.

use super::input::{RunInput, UnitCounts};
use super::over_time::Growth;
use super::units::{quotient, titled};
use balar_charts::{Cells, HeatMap, cells, heat_map, heat_map_columns};
use balar_record::metrics::{Place, placed_units};
use balar_report::{Cell, Chart, Column, Format, Part, Section, Table};

/// Cells of all heat maps of a run, at most: the file stays small.
const CELLS: usize = 24_000;

/// What is looked at of units of a kind.
struct Wanted {
    title: &'static str,
    place: Place,
    /// Counters that are added up, and what their sum is multiplied by.
    counters: &'static [&'static str],
    factor: f64,
    unit: &'static str,
    /// What this is by time, and what one in a picosecond is of it.
    rate: (&'static str, f64),
}

const MAPS: [Wanted; 3] = [
    Wanted {
        title: "SMs: warp instructions",
        place: Place::Sm,
        counters: &["inst_executed"],
        factor: 1.0,
        unit: "instructions",
        rate: ("instructions in 1 us", 1e6),
    },
    Wanted {
        title: "L2 slices: data",
        place: Place::L2,
        counters: &["bytes"],
        factor: 1e-3,
        unit: "kB",
        rate: ("GB/s", 1e6),
    },
    Wanted {
        title: "Channels of device memory: data",
        place: Place::Dram,
        counters: &["sectors_read", "sectors_written"],
        factor: 0.032,
        unit: "kB",
        rate: ("GB/s", 1e6),
    },
];

impl Wanted {
    fn of(&self, unit: &UnitCounts) -> f64 {
        self.counters.iter().map(|counter| unit.get(counter)).sum::<u64>() as f64 * self.factor
    }
}

/// The section; `None` where nothing was done.
pub fn section(runs: &[RunInput]) -> Option<Section> {
    let mut parts = Vec::new();
    for wanted in &MAPS {
        let mut charts = Vec::new();
        for run in runs {
            charts.extend((0..run.gpus.len()).filter_map(|gpu| chart(run, gpu, wanted)));
        }
        if charts.len() > 1 { parts.push(Part::Beside(charts)) } else { parts.append(&mut charts) }
    }
    if parts.is_empty() {
        return None;
    }
    let mut lead =
        "What each unit did: a line over time, or a cell. Even colours mean that work is spread evenly.".to_owned();
    if runs.iter().any(|run| run.samples.is_none()) {
        lead.push_str(" Over time, it is on the page that a run itself writes with --report.");
    }
    Some(Section { id: "balance", title: "Balance", lead, parts })
}

fn chart(run: &RunInput, gpu: usize, wanted: &Wanted) -> Option<Part> {
    let units: Vec<&UnitCounts> = run.of_place(wanted.place).filter(|unit| unit.gpu == Some(gpu)).collect();
    let totals: Vec<f64> = units.iter().map(|unit| wanted.of(unit)).collect();
    let (sum, most) = (totals.iter().sum::<f64>(), totals.iter().copied().fold(0.0, f64::max));
    if sum <= 0.0 {
        return None;
    }
    let names: Vec<String> = units.iter().map(|unit| short_name(&unit.location, &run.gpus[gpu])).collect();
    let title = titled(wanted.title, run, Some(gpu));
    let idle = totals.iter().filter(|total| **total == 0.0).count();
    let mean = sum / totals.len() as f64;
    let busiest = totals.iter().position(|total| *total == most).map_or("", |at| &names[at]);
    let idle = if idle > 0 { format!("; {idle} of {} did nothing", totals.len()) } else { String::new() };
    let balance = format!("{busiest} did the most, {:.2} times the mean{idle}", most / mean);
    let svg = match over_time(run, gpu, wanted, &names) {
        Some(map) => map,
        None => cells(&Cells { value: &format!("{} in the run", wanted.unit), groups: groups(&names, &totals) }),
    };
    let rows = names.iter().zip(&totals).map(|(name, total)| {
        vec![
            Cell::Text(name.clone()),
            Cell::number(*total),
            Cell::Numbers(vec![quotient(100.0 * total, sum)]),
            Cell::Numbers(vec![quotient(*total, mean)]),
        ]
    });
    let columns = vec![
        Column::text("unit"),
        Column::number("in the run", wanted.unit, Format::Short),
        Column::number("share", "%", Format::Fixed(2)),
        Column::number("of the mean", "", Format::Fixed(2)),
    ];
    let (caption, rows) = (title.clone(), rows.collect());
    let table = Table { caption, columns, rows, is_sortable: true, rest: None };
    let label = format!("{title}: {balance}");
    Some(Part::Chart(Chart { title: format!("{title} \u{2013} {balance}"), label, svg, table }))
}

/// A unit's path within its GPU: "sm\[3\]".
fn short_name(location: &str, gpu: &str) -> String {
    location.strip_prefix(gpu).and_then(|rest| rest.strip_prefix('.')).unwrap_or(location).to_owned()
}

/// Channels by stack; other units in one group.
fn groups(names: &[String], totals: &[f64]) -> Vec<(String, Vec<(String, f64)>)> {
    let mut groups: Vec<(String, Vec<(String, f64)>)> = Vec::new();
    for (name, total) in names.iter().zip(totals) {
        let group = name
            .split_once('.')
            .map_or_else(|| balar_record::metrics::rollup::pattern(name), |(stack, _)| stack.to_owned());
        let cell = (name.clone(), *total);
        match groups.last_mut().filter(|(last, _)| *last == group) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((group, vec![cell])),
        }
    }
    groups
}

/// The heat map; `None` where there are no samples by unit.
fn over_time(run: &RunInput, gpu: usize, wanted: &Wanted, names: &[String]) -> Option<String> {
    let samples = run.samples.as_ref().filter(|samples| !samples.times.is_empty() && run.time() > 0)?;
    let rows = &samples.layout.rows;
    let units = placed_units(rows, &run.node);
    let own: Vec<_> = units.iter().filter(|unit| unit.place == Some(wanted.place) && unit.gpu == Some(gpu)).collect();
    if own.len() != names.len() {
        return None;
    }
    let all: usize = MAPS.iter().map(|map| run.of_place(map.place).count()).sum();
    let columns = heat_map_columns((CELLS / all.max(1)).min(150));
    let cells = own.iter().map(|unit| {
        let counted: Vec<usize> = unit.rows.clone().filter(|&row| wanted.counters.contains(&rows[row].what)).collect();
        let sums =
            samples.times.iter().zip(&samples.values).map(|(time, values)| {
                (*time, counted.iter().map(|&row| values[row]).sum::<u64>() as f64 * wanted.factor)
            });
        Growth::of_count(sums).rates(run.shown(), columns).into_iter().map(|rate| rate * wanted.rate.1).collect()
    });
    let (from, until) = run.shown();
    let every = names.len().div_ceil(12).next_multiple_of(if names.len() > 24 { 4 } else { 1 });
    let named =
        names.iter().enumerate().map(|(index, name)| if index % every == 0 { name.clone() } else { String::new() });
    Some(heat_map(&HeatMap {
        x: ("simulated time, us", (from as f64 / 1e6, until as f64 / 1e6)),
        value: wanted.rate.0,
        names: named.map(|name| name.replace(".channel", "")).collect(),
        cells: cells.collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_grouped_by_their_stack() {
        let names = ["hbm[0].channel[0]", "hbm[0].channel[1]", "hbm[1].channel[0]"].map(str::to_owned);
        let groups = groups(&names, &[1.0, 2.0, 3.0]);
        let shown: Vec<(&str, usize)> = groups.iter().map(|(name, cells)| (name.as_str(), cells.len())).collect();
        assert_eq!(shown, [("hbm[0]", 2), ("hbm[1]", 1)]);
        assert_eq!(short_name("gpu[1].sm[3]", "gpu[1]"), "sm[3]");
    }
}
