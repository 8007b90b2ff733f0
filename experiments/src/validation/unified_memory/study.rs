//! The study of unified memory: its parts, and what they have in common.

use super::{Figures, PROGRAMS, evictions, hardware, prefetchers, shootdowns};
use crate::validation::report::{Comparison, Report};
use crate::validation::runs::{self, Point, RunError, Running, Runs};
use crate::validation::{PartDescription, Selection, Study};

/// The node with the rules and costs of the card on which unified memory was measured.
pub(super) const HARDWARE_NODE: &str = "gtx1080ti_node";
/// The node of the UVMSmart study.
pub(super) const STUDY_NODE: &str = "uvmsmart_v100_node";

/// Where the figures of the hardware are from.
pub(super) const OF_HARDWARE: &str = "GTX 1080 Ti under nvprof, history of the UVMSmart repository";
/// Where UVMSmart's figures are from.
pub(super) const OF_UVMSMART: &str = "UVMSmart bafab5d, the authors' logs and spreadsheets";
/// Where figures are from that the report of the study gives.
pub(super) const OF_REPORT: &str = "report of the UVMSmart study";

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
    run,
};

const PARTS: [&Part; 4] = [&hardware::PART, &prefetchers::PART, &shootdowns::PART, &evictions::PART];

/// A part of the study.
pub(super) struct Part {
    /// Its name, and what it compares.
    pub description: PartDescription,
    /// The runs that it needs.
    pub points: fn(&Selection) -> Vec<Point>,
    /// What they show.
    pub report: fn(&Selection, &Runs<Figures>, &mut Report),
}

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
    let mut report = Report {
        study: STUDY.name,
        completed: runs.completed() == runs.planned,
        runs: runs.completed(),
        planned: runs.planned,
        failures: runs.failures.iter().map(|(point, error)| format!("{}: {error}", point.command())).collect(),
        ..Report::default()
    };
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

/// An application of the study's figures 4 to 6.
#[derive(Clone, Copy, Debug)]
pub(super) struct Application {
    /// Its name in the study.
    pub name: &'static str,
    /// Its arguments in the study.
    pub arguments: &'static str,
    workload: &'static str,
    parameters: &'static [(&'static str, &'static str)],
}

/// The applications that the study lists (it speaks of six).
pub(super) const APPLICATIONS: &[Application] = &[
    application("bfs", "4096", "bfs", &[("nodes", "4096")]),
    application("hotspot", "30 6 40", "hotspot", &[("size", "30"), ("iterations", "40"), ("steps", "6")]),
    application("pathfinder", "1000 20 5", "pathfinder", &[("columns", "1000"), ("rows", "20"), ("steps", "5")]),
    application("backprop", "65536", "backprop", &[("inputs", "65536")]),
    application("srad", "1024 127 .5 4", "srad", &[("size", "1024"), ("steps", "4")]),
];

const fn application(
    name: &'static str,
    arguments: &'static str,
    workload: &'static str,
    parameters: &'static [(&'static str, &'static str)],
) -> Application {
    Application { name, arguments, workload, parameters }
}

impl Application {
    /// The application with its data in `memory`, on the study's node.
    pub fn point(&self, memory: &'static str, overrides: &[(&'static str, &str)]) -> Point {
        Point {
            topology: STUDY_NODE,
            workload: self.workload,
            parameters: self.parameters.iter().copied().chain([("memory", memory)]).collect(),
            overrides: owned(overrides),
        }
    }
}

/// Overrides as runs keep them.
pub(super) fn owned(overrides: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    overrides.iter().map(|(path, value)| (*path, (*value).to_owned())).collect()
}

/// What comparisons of a program in a setting have in common.
pub(super) struct Compared<'a> {
    pub study: &'static str,
    pub program: &'a str,
    pub setting: String,
    pub source: &'static str,
}

impl Compared<'_> {
    /// A figure beside another one.
    pub fn with(
        &self,
        quantity: &'static str,
        unit: &'static str,
        simulated: Option<f64>,
        reference: Option<f64>,
    ) -> Comparison {
        let Compared { study, program, setting, source } = self;
        let source = if reference.is_some() { source } else { "" };
        let (program, setting) = ((*program).to_owned(), setting.clone());
        Comparison { study, program, setting, quantity, simulated, reference, unit, source }
    }
}
