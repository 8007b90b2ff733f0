//! Where warps spent their cycles: of the whole run, and of the kernels that take longest.

use super::attribution::KernelShare;
use super::input::RunInput;
use super::kernels::names_by_time;
use super::units::kernel_name;
use crate::commands::compare::kernels::reason;
use balar_actors::kinds::UNITS;
use balar_charts::{Stacked, StackedRow, stacked};
use balar_record::metrics::Place;
use balar_record::run_folder::instructions::STALL;
use balar_report::{Cell, Chart, Column, Format, Part, Section, Table};
use std::collections::BTreeMap;

/// Kernels that have a bar.
const KERNELS: usize = 12;
/// Reasons that have a colour; the rest is "other".
const REASONS: usize = 7;

/// A bar: whose, of which run, and its cycles by counter.
struct Bar {
    name: String,
    label: &'static str,
    is_first: bool,
    cycles: BTreeMap<String, u64>,
}

impl Bar {
    fn share(&self, counter: &str) -> f64 {
        let all: u64 = self.cycles.values().sum();
        let own = self.cycles.get(counter).copied().unwrap_or(0);
        if all == 0 { 0.0 } else { 100.0 * own as f64 / all as f64 }
    }

    fn title(&self) -> String {
        if self.label.is_empty() { self.name.clone() } else { format!("{} \u{b7} {}", self.name, self.label) }
    }
}

fn of_run(run: &RunInput) -> BTreeMap<String, u64> {
    let mut cycles = BTreeMap::new();
    for (name, count) in run.of_place(Place::Sm).flat_map(|unit| &unit.counts) {
        if name.starts_with(STALL) && *count > 0 {
            *cycles.entry(name.clone()).or_default() += count;
        }
    }
    cycles
}

/// What a counter counts, as SMs declare it.
fn meaning(counter: &str) -> &'static str {
    let mut all = UNITS.iter().flat_map(|kind| kind.counters);
    let meaning = all.find(|definition| definition.name == counter).map_or("", |definition| definition.meaning);
    meaning.strip_prefix("warp-cycles ").unwrap_or(meaning)
}

/// The section; `None` where no warp ran.
pub fn section(runs: &[RunInput], kernels: &[BTreeMap<String, KernelShare>]) -> Option<Section> {
    let totals: Vec<BTreeMap<String, u64>> = runs.iter().map(of_run).collect();
    if totals.iter().all(BTreeMap::is_empty) {
        return None;
    }
    let mut bars: Vec<Bar> = Vec::new();
    for (index, (run, cycles)) in runs.iter().zip(&totals).enumerate() {
        let name = "whole run".to_owned();
        bars.push(Bar { name, label: run.label, is_first: index == 0, cycles: cycles.clone() });
    }
    let known = |name: &String| kernels.iter().any(|of| of.get(name).is_some_and(|share| !share.stalls.is_empty()));
    let names: Vec<String> = names_by_time(runs).into_iter().filter(known).take(KERNELS).collect();
    for name in &names {
        let mut is_first = true;
        for (run, of) in runs.iter().zip(kernels) {
            if let Some(share) = of.get(name).filter(|share| !share.stalls.is_empty()) {
                let cycles = share.stalls.clone();
                bars.push(Bar { name: kernel_name(name), label: run.label, is_first, cycles });
                is_first = false;
            }
        }
    }
    let counters = by_most(&bars);
    let mut parts = vec![chart(&bars, &counters)];
    if names.is_empty() && runs.iter().any(|run| run.document().kernels.iter().any(|launch| launch.is_timed())) {
        parts
            .push(Part::Note("Stalls by kernel are not in what this version of the simulator has written.".to_owned()));
    }
    parts.push(Part::Table(table(runs, &totals, &counters).spread(["A", "B"])));
    let lead = "Where warps spent their cycles: in each, a warp that is on an SM issues an instruction or waits for something.".to_owned();
    Some(Section { id: "stalls", title: "Stalls", lead, parts })
}

/// The reasons, that which has the greatest share of any bar first: what a kernel waits for has a colour, however short the kernel is.
fn by_most(bars: &[Bar]) -> Vec<&str> {
    let mut most: BTreeMap<&str, f64> = BTreeMap::new();
    for bar in bars {
        for name in bar.cycles.keys() {
            let known = most.entry(name).or_default();
            *known = known.max(bar.share(name));
        }
    }
    let mut counters: Vec<(&str, f64)> = most.into_iter().collect();
    counters.sort_by(|a, b| b.1.total_cmp(&a.1));
    counters.into_iter().map(|(name, _)| name).collect()
}

fn chart(bars: &[Bar], counters: &[&str]) -> Part {
    let (shown, others) = counters.split_at(counters.len().min(REASONS));
    let mut names: Vec<String> = shown.iter().map(|name| reason(name).replace('_', " ")).collect();
    if !others.is_empty() {
        names.push("other".to_owned());
    }
    let shares = |bar: &Bar| {
        let mut shares: Vec<f64> = shown.iter().map(|name| bar.share(name)).collect();
        if !others.is_empty() {
            shares.push(others.iter().map(|name| bar.share(name)).sum());
        }
        shares
    };
    let titles: Vec<String> = bars.iter().map(Bar::title).collect();
    let rows =
        bars.iter().zip(&titles).map(|(bar, name)| StackedRow { name, shares: shares(bar), joins: !bar.is_first });
    let svg = stacked(&Stacked {
        x: "share of warp cycles, %",
        parts: names.iter().map(String::as_str).collect(),
        rows: rows.collect(),
    });
    let mut columns = vec![Column::text("of")];
    let column =
        |name: &&str| Column::number(&reason(name).replace('_', " "), "%", Format::Percent).meaning(meaning(name));
    columns.extend(counters.iter().map(column));
    let row = |bar: &Bar| {
        let shares = counters.iter().map(|name| Cell::number(bar.share(name)));
        std::iter::once(Cell::Text(bar.title())).chain(shares).collect()
    };
    let rows = bars.iter().map(row).collect();
    let caption = "Shares of warp cycles by reason".to_owned();
    let first = bars.first().zip(counters.first());
    let label = first.map_or(String::new(), |(bar, most)| {
        let name = reason(most).replace('_', " ");
        format!("Shares of warp cycles by reason; of the whole run, {name} has {:.0} percent", bar.share(most))
    });
    let table = Table { caption, columns, rows, is_sortable: true, rest: None };
    Part::Chart(Chart { title: "Shares by reason".to_owned(), label, svg, table })
}

/// The reasons of the whole run, with what they mean.
fn table(runs: &[RunInput], totals: &[BTreeMap<String, u64>], counters: &[&str]) -> Table {
    let sums: Vec<u64> = totals.iter().map(|total| total.values().sum()).collect();
    let rows = counters.iter().map(|counter| {
        let own = |total: &BTreeMap<String, u64>| total.get(*counter).copied().unwrap_or(0);
        let shares =
            totals.iter().zip(&sums).map(|(total, sum)| super::units::quotient(100.0 * own(total) as f64, *sum as f64));
        vec![
            Cell::Text(reason(counter).replace('_', " ")),
            Cell::Numbers(shares.collect()),
            Cell::Numbers(totals.iter().map(|total| Some(own(total) as f64)).collect()),
            Cell::Text(meaning(counter).to_owned()),
        ]
    });
    let columns = vec![
        Column::text("reason"),
        Column::number("share", "% of warp cycles", Format::Percent),
        Column::number("cycles", "of warps", Format::Count),
        Column::text("meaning"),
    ];
    let of = if runs.len() > 1 { "runs" } else { "run" };
    let caption = format!("Reasons of the whole {of}");
    Table { caption, columns, rows: rows.collect(), is_sortable: true, rest: None }
}
