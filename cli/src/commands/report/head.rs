//! The head of the page: what ran, how it ended, and the most important figures.

use super::input::RunInput;
use super::units::{bytes, count, percent, quotient, time};
use balar_record::metrics::Place;
use balar_report::{Format, RunHead, Status, Tile, change};

/// Bytes of a sector.
pub const SECTOR: f64 = 32.0;

/// What the page is about.
pub fn title(runs: &[RunInput]) -> String {
    match runs {
        [one] => one.name(),
        [a, b] if a.name() == b.name() => format!("{}: two runs", a.name()),
        runs => runs.iter().map(RunInput::name).collect::<Vec<_>>().join(" beside "),
    }
}

/// Who wrote the page, of what.
pub fn footer(runs: &[RunInput]) -> String {
    let paths = runs.iter().map(|run| run.folder.path.display().to_string()).filter(|path| !path.is_empty());
    let paths: Vec<String> = paths.collect();
    let of = if paths.is_empty() { String::new() } else { format!(" of {}", paths.join(" and ")) };
    format!("Written by balar-actors {}{of}. All times are simulated.", env!("CARGO_PKG_VERSION"))
}

/// A run.
pub fn run(run: &RunInput) -> RunHead {
    let document = run.document();
    let workload = &document.workload;
    let parameters = workload.parameters.iter().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{name}={value}")
    });
    let mut facts = vec![("topology".to_owned(), document.topology.clone())];
    if !workload.name.is_empty() {
        facts.push(("workload".to_owned(), workload.name.clone()));
    }
    let parameters = parameters.collect::<Vec<_>>().join(" ");
    if !parameters.is_empty() {
        facts.push(("parameters".to_owned(), parameters));
    }
    facts.push(("code".to_owned(), document.isa.clone()));
    facts.push(("balar-actors".to_owned(), document.version.clone()));
    for result in &document.results {
        if let Some(value) = result.value {
            let value = balar_report::number(Some(value), Format::Short);
            facts.push((result.name.replace('_', " "), format!("{value} {}", result.unit)));
        }
    }
    let status = match (document.verified, document.completed) {
        (Some(false), _) => Status::Bad("the result is wrong".to_owned()),
        (Some(true), true) => Status::Good("completed, result verified".to_owned()),
        (_, true) => Status::Plain("completed".to_owned()),
        (_, false) if document.problem.is_none() => {
            Status::Plain(format!("ended early: {}", document.ended_by.replace('_', " ")))
        }
        (_, false) => Status::Bad(format!("not completed: {}", document.ended_by.replace('_', " "))),
    };
    let problem = document.problem.clone();
    RunHead { label: run.label.to_owned(), name: run.name(), status, facts, problem }
}

/// A figure of a run: its name, its value, and how it is written.
type Figure = (&'static str, fn(&RunInput) -> Option<f64>, fn(f64) -> String, Format);

const FIGURES: &[Figure] = &[
    ("simulated time", |run| Some(run.time() as f64), |value| time(value as u64), Format::Count),
    (
        "time in kernels",
        |run| quotient(100.0 * run.kernel_time(None) as f64, run.time() as f64),
        percent,
        Format::Percent,
    ),
    ("kernel launches", |run| Some(run.document().kernels.len() as f64), count, Format::Count),
    ("warp instructions", |run| run.sum(Place::Sm, "inst_executed"), count, Format::Count),
    (
        "instructions per SM cycle",
        |run| run.quotient(Place::Sm, "inst_executed", "cycles_active"),
        |value| format!("{value:.2}"),
        Format::Fixed(2),
    ),
    ("occupancy", occupancy, percent, Format::Percent),
    (
        "L1 hits",
        |run| run.quotient(Place::Sm, "l1_sector_hits_load", "l1_sectors_load").map(|share| 100.0 * share),
        percent,
        Format::Percent,
    ),
    (
        "L2 hits",
        |run| run.quotient(Place::L2, "sector_hits_read", "sectors_read").map(|share| 100.0 * share),
        percent,
        Format::Percent,
    ),
    ("device memory", |run| device_traffic(run), bytes, Format::Count),
];

fn device_traffic(run: &RunInput) -> Option<f64> {
    Some(SECTOR * (run.sum(Place::Dram, "sectors_read")? + run.sum(Place::Dram, "sectors_written")?))
}

/// Warps that were there in active cycles, of the warp slots, percent: of all GPUs together.
fn occupancy(run: &RunInput) -> Option<f64> {
    let (mut warps, mut slots) = (0.0, 0.0);
    for unit in run.of_place(Place::Sm) {
        let gpu = run.node.gpus().get(unit.gpu?)?;
        warps += unit.get("warp_cycles_active") as f64;
        slots += unit.get("cycles_active") as f64 * f64::from(gpu.smallest_sm()?.resources.warps);
    }
    quotient(100.0 * warps, slots)
}

/// The figures that any run knows.
pub fn tiles(runs: &[RunInput]) -> Vec<Tile> {
    let tile = |(name, of, text, format): &Figure| {
        let values: Vec<Option<f64>> = runs.iter().map(of).collect();
        if values.iter().all(Option::is_none) {
            return None;
        }
        let change = (runs.len() > 1).then(|| change(&values, *format)).filter(|change| !change.is_empty());
        let values = values.into_iter().map(|value| value.map_or("\u{2013}".to_owned(), text));
        Some(Tile { name: (*name).to_owned(), values: values.collect(), change })
    };
    FIGURES.iter().filter_map(tile).collect()
}
