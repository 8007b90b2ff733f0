//! The program of the study that a user may bring, LULESH, and the built-in workload that stands in for it.

use crate::validation::Selection;
use crate::validation::programs::{Job, ProgramRun};
use crate::validation::runs::Point;

/// The node of the study.
pub(super) const NODE: &str = "v100_node";
/// Name of the program that the user may bring.
pub(super) const LULESH: &str = "LULESH";
/// Name of the workload that stands in for it.
pub(super) const SHOCK: &str = "shock";
/// Launches of LULESH in the study: 28 in each of 50 iterations.
pub(super) const LULESH_LAUNCHES: usize = 1400;

/// The program that runs where the study ran LULESH.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// LULESH, by the words of its command.
    Lulesh(Vec<String>),
    /// `shock`.
    StandIn,
}

impl Subject {
    /// LULESH where the user has it; `None` where the program was not asked for.
    pub fn of(selection: &Selection) -> Option<Subject> {
        let command = selection.commands.get(LULESH);
        let subject = command.map_or(Subject::StandIn, |command| Subject::Lulesh(command.clone()));
        selection.has_program(subject.name()).then_some(subject)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Subject::Lulesh(_) => LULESH,
            Subject::StandIn => SHOCK,
        }
    }

    /// Whether it is the program of the study.
    pub fn is_lulesh(&self) -> bool {
        matches!(self, Subject::Lulesh(_))
    }

    /// A run of it on the node with other values of its parameters.
    pub fn job(&self, overrides: Vec<(&'static str, String)>, by_instruction: bool) -> Job {
        match self {
            Subject::Lulesh(command) => {
                let command = command.clone();
                Job::Program(ProgramRun { command, directory: None, topology: NODE, overrides, by_instruction })
            }
            Subject::StandIn => {
                let parameters = vec![("edge", "22"), ("iterations", "2")];
                let point = Point { topology: NODE, workload: SHOCK, parameters, overrides };
                Job::BuiltIn { point, by_instruction }
            }
        }
    }

    /// The note about it below tables.
    pub fn note(&self) -> Option<String> {
        let text = "shock stands in for LULESH: hydrodynamics on as many elements (edge 22), 2 time steps, kernels of \
                    our own. Its figures are not LULESH's and are not compared; --lulesh COMMAND runs LULESH.";
        (!self.is_lulesh()).then(|| text.to_owned())
    }
}
