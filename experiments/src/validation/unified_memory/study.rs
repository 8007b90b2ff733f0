//! The study of unified memory: its parts, and how they are run.

use super::common::{APPLICATIONS, Part, STUDY_NODE};
use super::{Figures, PROGRAMS, evictions, hardware, prefetchers, shootdowns};
use crate::validation::report::Report;
use crate::validation::runs::{self, Point, RunError, Running};
use crate::validation::{Selection, Study};

/// Unified memory beside hardware, and beside UVMSmart.
pub const STUDY: Study = Study {
    name: "uvm",
    summary: "unified memory beside a GTX 1080 Ti, and beside UVMSmart",
    duration: "about ten minutes on two CPUs",
    parts: &[
        hardware::PART.description,
        prefetchers::PART.description,
        shootdowns::PART.description,
        evictions::PART.description,
    ],
    programs,
    user_programs: &[],
    takes_folder: false,
    run,
};

const PARTS: [&Part; 4] = [&hardware::PART, &prefetchers::PART, &shootdowns::PART, &evictions::PART];

fn programs() -> Vec<&'static str> {
    let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
    names.extend(APPLICATIONS.iter().map(|application| application.name));
    names.sort_unstable();
    names.dedup();
    names
}

fn run(selection: &Selection, running: &Running<'_>) -> Result<Report, RunError> {
    let parts: Vec<_> = PARTS.into_iter().filter(|part| selection.has_part(part.description.name)).collect();
    let points = parts.iter().flat_map(|part| (part.points)(selection)).collect();
    let runs = runs::make(running, points, cost, Figures::of)?;
    let mut report = runs.report(STUDY.name, Point::command);
    for part in parts {
        (part.report)(selection, &runs, &mut report);
    }
    Ok(report)
}

/// How long a run takes, roughly, in seconds.
fn cost(point: &Point) -> u32 {
    let page_by_page = point.overrides.iter().any(|(_, value)| value.contains("None") || value.contains("Random"));
    match point.workload {
        "sssp" => 100,
        "fdtd" | "hotspot" | "srad" if page_by_page => 40,
        "bfs" if page_by_page => 20,
        "nw" if point.topology == STUDY_NODE => 30,
        "fdtd" | "hotspot" | "srad" => 15,
        _ => 2,
    }
}
