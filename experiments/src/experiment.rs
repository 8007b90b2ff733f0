//! One call from a topology, a workload and units of one's own to figures.

use crate::{BuiltInWorkloads, RequestError, SimulationRequest, simulate};
use balar_actors::catalogue::UnitDefinition;
use balar_actors::engine::{Outcome, RunOptions};
use balar_actors::kinds::{self, KindError};
use balar_actors::simulation::{CodeChoice, RunResult};
use balar_actors::topology::{LoadOptions, Override, PartLibrary, TopologyErrors, TopologySource, load};
use balar_protocol::statistics::Verification;

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A unit of one's own that cannot be registered.
    #[error(transparent)]
    Unit(#[from] KindError),
    /// The topology.
    #[error(transparent)]
    Topology(#[from] Box<TopologyErrors>),
    /// Nothing was simulated.
    #[error(transparent)]
    Simulation(#[from] RequestError),
    /// The program did not come to its end.
    #[error("{workload} did not come to its end: {why}")]
    NotCompleted {
        /// The workload.
        workload: String,
        /// The event, in words.
        why: String,
    },
    /// The program's result is wrong.
    #[error("the result of {workload} is wrong: {why}")]
    WrongResult {
        /// The workload.
        workload: String,
        /// Where.
        why: String,
    },
}

/// Runs `workload` with `parameters` on `topology` (a path, or a built-in name such as "v100_node"), which may name `units` beside the
/// built-in kinds; on one thread.
///
/// ```no_run
/// use balar_experiments::run;
/// let result = run("v100_node", "vectoradd", &[("elements", "4096")], &[]).expect("it runs");
/// println!("{:?} cycles", result.kernel_cycles("vectoradd"));
/// println!("{:?} of {:?} requests", result.maximum("gpu.sm", "l1_requests_load"), result.sum("gpu.sm", "l1_requests_load"));
/// ```
///
/// # Errors
///
/// Where nothing could be simulated, and where the program did not come to its end with a right result: the text says why.
pub fn run(
    topology: &str,
    workload: &str,
    parameters: &[(&str, &str)],
    units: &[&'static UnitDefinition],
) -> Result<RunResult, ExperimentError> {
    run_with(RunOptions::default(), topology, workload, parameters, units)
}

/// As [`run`], with options of the engine, such as the number of threads.
///
/// # Errors
///
/// As [`run`].
pub fn run_with(
    options: RunOptions,
    topology: &str,
    workload: &str,
    parameters: &[(&str, &str)],
    units: &[&'static UnitDefinition],
) -> Result<RunResult, ExperimentError> {
    run_overridden(options, topology, workload, parameters, &[], units)
}

/// As [`run_with`], with other values of the topology's parameters: ("unified_memory.prefetcher", "Tree"), as `--set` takes them.
///
/// # Errors
///
/// As [`run`].
pub fn run_overridden(
    options: RunOptions,
    topology: &str,
    workload: &str,
    parameters: &[(&str, &str)],
    overrides: &[(&str, &str)],
    units: &[&'static UnitDefinition],
) -> Result<RunResult, ExperimentError> {
    let overrides: Vec<_> = overrides.iter().map(|(path, value)| Override(format!("{path}={value}"))).collect();
    let kinds = kinds::with(units)?;
    let library = PartLibrary::built_in();
    let load_options =
        LoadOptions { kinds: &kinds, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
    let topology = load(&TopologySource::from(topology), &load_options).map_err(Box::new)?;
    let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let named = workload.to_owned();
    let workload = Some((named.clone(), parameters));
    let result =
        simulate(SimulationRequest { topology, workload, ptx: Vec::new(), code: CodeChoice::default(), options })?;
    match result.program.as_ref().map(|program| &program.verification) {
        Some(Verification::Failed(why)) => Err(ExperimentError::WrongResult { workload: named, why: why.clone() }),
        _ if !result.completed() => Err(ExperimentError::NotCompleted { workload: named, why: why(&result) }),
        _ => Ok(result),
    }
}

/// Why a run did not come to its end.
fn why(result: &RunResult) -> String {
    if let Some(error) = result.program.as_ref().and_then(|program| program.error.as_ref()) {
        return error.clone();
    }
    match &result.outcome {
        Outcome::Deadlock(report) => report.to_string(),
        Outcome::UnitPanic { path, time, message } => format!("{path} failed in the window from {time}: {message}"),
        Outcome::UnitBroken { path, time, message } => format!("{path} broke a rule at {time}: {message}"),
        Outcome::WallLimit => "the limit of real time is over".to_owned(),
        Outcome::Interrupted => "it was interrupted".to_owned(),
        Outcome::StoppedAt => "it was to stop before".to_owned(),
        Outcome::Finished => "nothing is left to happen".to_owned(),
    }
}
