//! What the parts of the study are made of.

use crate::validation::programs::{Job, ProgramFigures};
use crate::validation::report::Report;
use crate::validation::runs::Runs;
use crate::validation::{PartDescription, Selection};

/// Where the figures of the study are from.
pub(super) const SOURCE_APPLICATIONS: &str = "SAND2019-10389, table 3-5: V100 under nvprof, kernels only";
pub(super) const SOURCE_MIX: &str = "SAND2019-10389, table 3-6: V100 under nvprof";
pub(super) const SOURCE_CLOCKS: &str = "SAND2019-10389, table 3-2: sweep of clocks";

/// What the parts are made of.
pub(super) struct Part {
    pub(super) description: PartDescription,
    /// The runs that it needs.
    pub(super) jobs: fn(&Selection) -> Vec<Job>,
    /// What they show.
    pub(super) report: fn(&Selection, &Runs<ProgramFigures, Job>, &mut Report),
}
