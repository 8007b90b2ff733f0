//! Microbenchmarks and programs that were measured on Volta cards.
//!
//! Some rows of `validation/microbenchmarks.csv` are built-in workloads: these run again. The others are kernels that have to be assembled,
//! and programs that are not ours: their figures of the date stand beside the hardware's.

mod live;
mod part;
mod tables;

use super::report::Report;
use super::runs::{self, Point, RunError, Running};
use super::{Selection, Study, recorded};
use part::{Figures, Part};

/// The study of Volta.
pub const STUDY: Study = Study {
    name: "volta",
    summary: "microbenchmarks beside V100 and TITAN V, and the recorded figures of public programs",
    duration: "about a minute on two CPUs; the recorded parts a second",
    parts: &[
        live::LATENCY.description,
        live::INSTRUCTIONS.description,
        live::BANDWIDTH.description,
        tables::MICROBENCHMARKS.description,
        tables::PROGRAMS.description,
        tables::PUBLIC_MICROBENCHMARKS.description,
        tables::COUNTERS.description,
    ],
    programs,
    user_programs: &[],
    takes_folder: false,
    run,
};

const LIVE: [&Part; 3] = [&live::LATENCY, &live::INSTRUCTIONS, &live::BANDWIDTH];
const RECORDED: [&tables::Recorded; 4] =
    [&tables::MICROBENCHMARKS, &tables::PROGRAMS, &tables::PUBLIC_MICROBENCHMARKS, &tables::COUNTERS];

fn programs() -> Vec<&'static str> {
    let tables =
        [&recorded::MICROBENCHMARKS, &recorded::PROGRAMS, &recorded::PUBLIC_MICROBENCHMARKS, &recorded::COUNTERS];
    tables.into_iter().flat_map(|rows| rows.iter().map(|row| &*row.name)).collect()
}

fn run(selection: &Selection, running: &Running<'_>) -> Result<Report, RunError> {
    let parts: Vec<_> = LIVE.into_iter().filter(|part| selection.has_part(part.description.name)).collect();
    let points = parts.iter().flat_map(|part| (part.points)(selection)).collect();
    let runs = runs::make(running, points, cost, Figures::of)?;
    let mut report = runs.report(STUDY.name, Point::command);
    for part in parts {
        (part.report)(selection, &runs, &mut report);
    }
    for table in RECORDED.into_iter().filter(|table| selection.has_part(table.description.name)) {
        table.report(selection, &mut report);
    }
    Ok(report)
}

/// How long a run takes, roughly: by the bytes that it touches.
fn cost(point: &Point) -> u32 {
    let number = |name| {
        let found = point.parameters.iter().find(|(key, _)| *key == name);
        found.and_then(|(_, value)| value.parse::<u64>().ok()).unwrap_or(0)
    };
    (number("working_set") / number("stride").max(1) / 1000 + number("elements") / 10_000) as u32
}
