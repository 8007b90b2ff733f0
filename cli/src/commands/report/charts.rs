//! Charts over time: occupancy, instructions, device memory, and what kernel ran when.

use super::input::RunInput;
use super::kernels::names_by_time;
use super::over_time::{Growth, SeriesOverTime};
use super::units::{kernel_name, quotient, titled};
use balar_charts::{OverTime, Spans, Steps, over_time};
use balar_report::{Cell, Chart, Column, Format, Part, Section, Table, number};
use std::collections::BTreeMap;

/// Parts that the time of a run is divided into.
const PARTS: usize = 240;
/// Rows of the tables beneath charts: several parts each.
const ROWS: usize = 40;
/// Kernels that have a colour in the strip beneath a chart.
const KERNELS: usize = 6;
/// Spans beneath a chart at most: those that follow each other closely are one.
const SPANS: usize = 1500;

/// What a chart shows of a GPU.
struct Wanted {
    title: &'static str,
    axis: &'static str,
    most: Option<f64>,
    /// Name of the line where there is one GPU, name of the column of samples, and what its values per ps are multiplied by.
    lines: &'static [(&'static str, &'static str, f64)],
    kind: Kind,
}

/// What the values of a chart are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Counts by time.
    Rate,
    /// Means over time; nothing counts as zero.
    Mean,
    /// Percentages of counts in these columns, a column for each line: where nothing is counted, there is no value.
    Part(&'static [&'static str]),
}

/// Bytes in a picosecond as GB/s.
const GIGABYTES: f64 = 1000.0;

const CHARTS: [Wanted; 3] = [
    Wanted {
        title: "Occupancy",
        axis: "active SMs, % of warp slots",
        most: Some(100.0),
        lines: &[("occupancy", "sm_occupancy", 1.0)],
        kind: Kind::Mean,
    },
    Wanted {
        title: "Device memory",
        axis: "GB/s",
        most: None,
        lines: &[("read", "dram_bytes_rd", GIGABYTES), ("written", "dram_bytes_wr", GIGABYTES)],
        kind: Kind::Rate,
    },
    Wanted {
        title: "Hit rates of caches",
        axis: "sectors of reads that hit, %",
        most: Some(100.0),
        lines: &[("L1", "l1_hit_rate", 1.0), ("L2", "l2_hit_rate_rd", 1.0)],
        kind: Kind::Part(&["l1_sectors_ld", "l2_sectors_rd"]),
    },
];

/// The section; `None` where no time passed.
pub fn section(runs: &[RunInput]) -> Option<Section> {
    if runs.iter().all(|run| run.time() == 0) {
        return None;
    }
    let (id, title) = ("over-time", "Over time");
    let mut parts = Vec::new();
    for run in runs.iter().filter(|run| run.series.is_none()) {
        let text = "no samples: a run with --sample-interval TIME and --output writes samples.jsonl, and with --report it samples by itself";
        parts.push(Part::Note(titled(text, run, None)));
    }
    for wanted in &CHARTS {
        let most = if wanted.most.is_some() { wanted.most } else { greatest(runs, wanted) };
        let charts: Vec<Part> = runs.iter().filter_map(|run| chart(run, wanted, most)).collect();
        if charts.len() > 1 { parts.push(Part::Beside(charts)) } else { parts.extend(charts) }
    }
    for run in runs.iter().filter(|run| run.series.is_some()) {
        let lacks = |wanted: &&Wanted| chart(run, wanted, None).is_none();
        let names: Vec<&str> = CHARTS.iter().filter(lacks).flat_map(|wanted| wanted.lines).map(|line| line.1).collect();
        if !names.is_empty() && run.samples.is_none() {
            let text = format!("samples.jsonl lacks {}: --metrics chose others", names.join(", "));
            parts.push(Part::Note(titled(&text, run, None)));
        }
    }
    let mut lead = "The strip beneath a chart shows which kernels ran when.".to_owned();
    if runs.iter().any(|run| run.shown() != (0, run.time())) {
        lead.push_str(
            " Where kernels ran in less than half of the run, it is the time from the first to the last that is shown.",
        );
    }
    Some(Section { id, title, lead, parts })
}

/// What a line is called, and its value in each part of the time.
type Line = (String, Vec<Option<f64>>);

fn lines(run: &RunInput, wanted: &Wanted) -> Vec<Line> {
    let Some(series) = &run.series else { return Vec::new() };
    let times = times(series);
    let values = |gpu: &str, at: usize, column: &str, factor: f64| -> Option<Vec<Option<f64>>> {
        let find = |column: &str| series.get(&(gpu.to_owned(), column.to_owned()));
        let own = find(column);
        let growth = match wanted.kind {
            Kind::Rate => Growth::of_count(own?.iter().copied()),
            Kind::Mean => Growth::of_quotient(own?, &times),
            Kind::Part(wholes) => {
                let whole = find(wholes[at])?;
                let parts = Growth::of_part(own.map_or(&[], Vec::as_slice), whole).rates(run.shown(), PARTS);
                let wholes = Growth::of_count(whole.iter().copied()).rates(run.shown(), PARTS);
                return Some(parts.iter().zip(&wholes).map(|(part, whole)| quotient(100.0 * part, *whole)).collect());
            }
        };
        Some(growth.rates(run.shown(), PARTS).into_iter().map(|rate| Some(rate * factor)).collect())
    };
    let mut lines = Vec::new();
    for gpu in &run.gpus {
        for (at, (name, column, factor)) in wanted.lines.iter().enumerate() {
            let Some(values) = values(gpu, at, column, *factor) else { continue };
            let name = match (run.gpus.len(), wanted.lines.len()) {
                (1, _) => (*name).to_owned(),
                (_, 1) => gpu.clone(),
                _ => format!("{gpu} {name}"),
            };
            lines.push((name, values));
        }
    }
    lines
}

/// The times of all samples.
fn times(series: &SeriesOverTime) -> Vec<u64> {
    let mut times: Vec<u64> = series.values().flatten().map(|(time, _)| *time).collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// The greatest value of all runs, so that their charts have one scale.
fn greatest(runs: &[RunInput], wanted: &Wanted) -> Option<f64> {
    if runs.len() < 2 {
        return None;
    }
    let all = runs.iter().flat_map(|run| lines(run, wanted)).flat_map(|(_, values)| values);
    all.flatten().reduce(f64::max).filter(|most| *most > 0.0).map(|most| most * 1.05)
}

fn chart(run: &RunInput, wanted: &Wanted, most: Option<f64>) -> Option<Part> {
    let lines = lines(run, wanted);
    if lines.is_empty() || run.time() == 0 {
        return None;
    }
    let (from, until) = run.shown();
    let (from, until) = (from as f64 / 1e6, until as f64 / 1e6);
    let at = |part: usize| from + (part + 1) as f64 * (until - from) / PARTS as f64;
    let steps = lines.iter().map(|(name, values)| Steps {
        name,
        values: values.iter().enumerate().map(|(part, value)| (at(part), *value)).collect(),
    });
    let names: Vec<String> = names_by_time(std::slice::from_ref(run));
    let shown: Vec<String> = names.iter().take(KERNELS).map(|name| kernel_name(name)).collect();
    let mut legend: Vec<&str> = shown.iter().map(String::as_str).collect();
    if names.len() > KERNELS {
        legend.push("other");
    }
    let svg = over_time(&OverTime {
        x: ("simulated time, us", (from, until)),
        y: wanted.axis,
        most,
        steps: steps.collect(),
        spans: Spans { names: legend, spans: spans(run, &names) },
    });
    let title = titled(wanted.title, run, None);
    let peaks = lines.iter().map(|(name, values)| {
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        format!("{name} at most {}", number(Some(most), Format::Short))
    });
    let label = format!("{title} over time, {}: {}", wanted.axis, peaks.collect::<Vec<_>>().join(", "));
    Some(Part::Chart(Chart { title, label, svg, table: table(wanted, &lines, (from, until)) }))
}

fn table(wanted: &Wanted, lines: &[Line], (from, end): (f64, f64)) -> Table {
    let mut columns = vec![Column::number("until", "us", Format::Fixed(2))];
    columns.extend(lines.iter().map(|(name, _)| Column::number(name, wanted.axis, Format::Short)));
    let of_row = PARTS / ROWS;
    let rows = (0..ROWS).map(|row| {
        let until = from + (row + 1) as f64 * (end - from) / ROWS as f64;
        let means = lines.iter().map(|(_, values)| {
            let values: Vec<f64> = values[row * of_row..(row + 1) * of_row].iter().flatten().copied().collect();
            Cell::Numbers(vec![quotient(values.iter().sum::<f64>(), values.len() as f64)])
        });
        std::iter::once(Cell::number(until)).chain(means).collect()
    });
    let caption = format!("{} over time", wanted.title);
    Table { caption, columns, rows: rows.collect(), is_sortable: false, rest: None }
}

/// Which kernel ran when, in us: those of one name that follow each other closely are one.
fn spans(run: &RunInput, names: &[String]) -> Vec<(usize, f64, f64)> {
    let places: BTreeMap<&str, usize> =
        names.iter().enumerate().map(|(place, name)| (name.as_str(), place.min(KERNELS))).collect();
    let mut all: Vec<(u64, u64, usize)> = run
        .document()
        .kernels
        .iter()
        .filter(|launch| launch.is_timed())
        .filter_map(|launch| {
            let (from, until) = launch.span_ps?;
            Some((from, until, *places.get(launch.name.as_str())?))
        })
        .collect();
    all.sort_unstable();
    let (from, until) = run.shown();
    let closely = (until - from) / SPANS as u64;
    let mut spans: Vec<(u64, u64, usize)> = Vec::new();
    for (from, until, place) in all {
        match spans.last_mut() {
            Some(last) if last.2 == place && from <= last.1 + closely => last.1 = last.1.max(until),
            // What is too short to be seen beside others is theirs.
            Some(last) if until <= last.1 + closely / 2 => last.1 = last.1.max(until),
            _ => spans.push((from, until, place)),
        }
    }
    spans.into_iter().map(|(from, until, place)| (place, from as f64 / 1e6, until as f64 / 1e6)).collect()
}
