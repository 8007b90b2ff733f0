//! What the parts of the study that run are made of.

use crate::validation::report::Report;
use crate::validation::runs::{Point, Runs};
use crate::validation::{PartDescription, Selection};
use balar_actors::simulation::RunResult;

/// The card as sold.
pub(super) const NODE: &str = "v100_sxm2_node";

/// What a run shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// Cycles of an access or an instruction, as the workload measures them.
    pub(super) cycles_of_one: Option<f64>,
    /// Cycles of the last launch.
    pub(super) cycles: u64,
}

impl Figures {
    pub(super) fn of(result: &RunResult) -> Figures {
        let reported = |name| result.reported(name);
        Figures {
            cycles_of_one: reported("cycles_per_access").or_else(|| reported("cycles_per_instruction")),
            cycles: result.statistics.kernels.iter().last().map_or(0, |launch| launch.cycles),
        }
    }
}

/// A part that runs.
pub(super) struct Part {
    pub(super) description: PartDescription,
    pub(super) points: fn(&Selection) -> Vec<Point>,
    pub(super) report: fn(&Selection, &Runs<Figures>, &mut Report),
}
