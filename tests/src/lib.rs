//! Tests across crates: whole simulations, by the library and by the command line. This library holds the helpers that they share.

pub mod page_transfers;
pub mod steps;

use balar_actors::engine::RunOptions;
use balar_actors::kinds::UNITS;
use balar_actors::simulation::{IsaChoice, RunResult};
use balar_actors::topology::{self, LoadOptions, Override, PartLibrary, Topology, TopologyErrors, TopologySource};
use balar_experiments::{BuiltInWorkloads, SimulationRequest, simulate};
use balar_workloads::Descriptor;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// The built-in topologies.
pub const TOPOLOGIES: [&str; 4] = ["v100_node", "p100_node", "v100_sxm2_node", "t4_node"];

/// Small parameters of a workload.
///
/// # Panics
///
/// Where there is no such workload.
pub fn small(workload: &str) -> Vec<(String, String)> {
    parameters(balar_workloads::find(workload).unwrap_or_else(|error| panic!("{error}")).small)
}

/// `key=value` pairs from text such as "size=64,iterations=2".
pub fn parameters(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').expect("key=value")).map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

/// A built-in topology.
///
/// # Panics
///
/// Where it does not load.
pub fn built_in(name: &str) -> Topology {
    built_in_with(name, &[])
}

/// A built-in topology with other values of parameters: `cpu.bounds=Allocations`.
///
/// # Panics
///
/// Where it does not load.
pub fn built_in_with(name: &str, overrides: &[&str]) -> Topology {
    try_built_in_with(name, overrides).unwrap_or_else(|errors| panic!("{name}: {errors}"))
}

/// As [`built_in_with`].
///
/// # Errors
///
/// Where it does not load.
pub fn try_built_in_with(name: &str, overrides: &[&str]) -> Result<Topology, TopologyErrors> {
    let library = PartLibrary::built_in();
    let overrides: Vec<Override> = overrides.iter().map(|text| Override((*text).to_owned())).collect();
    let options =
        LoadOptions { kinds: UNITS, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
    topology::load(&TopologySource::from(name), &options)
}

/// The workloads that the GPU of a built-in topology can run.
pub fn workloads_on(topology: &str) -> impl Iterator<Item = &'static Descriptor> {
    let capability = built_in(topology).gpus().first().map_or((0, 0), |gpu| gpu.compute_capability);
    let capability = capability.0 * 10 + capability.1;
    balar_workloads::workloads().iter().filter(move |workload| workload.ptx_for(capability).is_some())
}

/// Runs a workload on a built-in topology.
///
/// # Panics
///
/// Where nothing can be simulated.
pub fn run(topology: &str, workload: &str, parameters: Vec<(String, String)>, options: RunOptions) -> RunResult {
    run_as(topology, workload, parameters, IsaChoice::default(), options)
}

/// Runs a workload on a built-in topology as PTX or machine code.
///
/// # Panics
///
/// Where nothing can be simulated.
pub fn run_as(
    topology: &str,
    workload: &str,
    parameters: Vec<(String, String)>,
    isa: IsaChoice,
    options: RunOptions,
) -> RunResult {
    let workload = Some((workload.to_owned(), parameters));
    let request =
        SimulationRequest { topology: built_in(topology), workload, ptx: Vec::new(), code: isa.into(), options };
    simulate(request).unwrap_or_else(|error| panic!("{topology}: {error}"))
}

/// Runs a workload on one thread and asserts that it ends with a right result, where it has a check.
///
/// # Panics
///
/// Where it does not.
pub fn verified(topology: &str, workload: &str, parameters: Vec<(String, String)>) -> RunResult {
    verified_as(topology, workload, parameters, IsaChoice::default())
}

/// As [`verified`], as PTX or machine code.
///
/// # Panics
///
/// Where the run does not end, or not with a right result.
pub fn verified_as(topology: &str, workload: &str, parameters: Vec<(String, String)>, isa: IsaChoice) -> RunResult {
    let result = run_as(topology, workload, parameters, isa, RunOptions::default());
    assert!(result.completed(), "{workload} on {topology}: {:?} {:?}", result.outcome, result.program);
    assert_ne!(result.verified(), Some(false), "{workload} on {topology}: {:?}", result.program);
    result
}

/// The run of a workload with its small parameters on one thread, which ended with a right result where it has a check. Whoever
/// asks for it first in a process simulates it; the others look at the same run.
///
/// # Panics
///
/// Where the run is not as it should be.
pub fn small_run(topology: &str, workload: &str) -> Arc<RunResult> {
    type Runs = BTreeMap<(String, String), Arc<OnceLock<Arc<RunResult>>>>;
    static RUNS: Mutex<Runs> = Mutex::new(BTreeMap::new());
    let key = (topology.to_owned(), workload.to_owned());
    // The lock is held for the look-up alone, so that two tests can simulate two workloads at once.
    let run = Arc::clone(RUNS.lock().expect("a look-up does not panic").entry(key).or_default());
    Arc::clone(run.get_or_init(|| Arc::new(verified(topology, workload, small(workload)))))
}

/// The sum of a counter over the units whose path, without indices, is `location`: "gpu.sm".
///
/// # Panics
///
/// Where no unit has the counter: a misspelt name must not pass as zero.
pub fn sum(result: &RunResult, location: &str, what: &str) -> u64 {
    let without_indices = |path: &str| -> String {
        path.split('[').map(|piece| piece.split_once(']').map_or(piece, |(_, rest)| rest)).collect()
    };
    let rows = &result.statistics.rows;
    let values: Vec<u64> = rows
        .iter()
        .filter(|row| row.what == what && without_indices(&row.location) == location)
        .map(|row| row.value)
        .collect();
    assert!(!values.is_empty(), "no unit {location} counts {what}");
    values.iter().sum()
}

/// Everything that a run says, but for the wall clock and the threads, a line for each thing.
///
/// # Panics
///
/// Never: a `String` takes every byte.
pub fn described(result: &RunResult) -> String {
    let mut text =
        format!("{:?} {:?}\n{:?} {:?}\n", result.outcome, result.sim_time, result.program, result.parameters);
    for kernel in result.statistics.kernels.iter() {
        writeln!(text, "{kernel:?}").expect("a String takes every byte");
    }
    for row in &result.statistics.rows {
        writeln!(text, "{} {} = {} {}", row.location, row.what, row.value, row.unit)
            .expect("a String takes every byte");
    }
    text
}

/// Compares `text` with the snapshot `snapshots/FOLDER/NAME.snap`. `INSTA_UPDATE=always` writes it.
pub fn assert_snapshot(folder: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../snapshots").join(folder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
