//! The common part of the studies of unified memory.

use super::Figures;
pub(super) use crate::validation::report::Compared;
use crate::validation::report::Report;
use crate::validation::runs::{Point, Runs};
use crate::validation::{PartDescription, Selection};

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

/// A part of the study.
pub(super) struct Part {
    /// Its name, and its comparisons.
    pub description: PartDescription,
    /// The runs that it needs.
    pub points: fn(&Selection) -> Vec<Point>,
    /// Adds its tables and charts to the report.
    pub report: fn(&Selection, &Runs<Figures>, &mut Report),
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
    application("srad", "1024 127 .5 4", "srad", &[("size", "1024"), ("steps", "4"), ("sample", "128")]),
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
