//! Topologies on the command line: read, checked, printed with everything written out, drawn.

use crate::arguments::{GraphFormat, Override, SimulationOptions, TopologyOptions};
use crate::failure::Failure;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::simulation::check_units;
use balar_actors::topology::{self, LoadOptions, PartLibrary, Topology, TopologySource};
use balar_experiments::BuiltInWorkloads;

/// Reads a topology of units of `kinds` by path or by name, with overrides applied.
///
/// # Errors
///
/// Every mistake in it, with its place.
pub fn load(name: &str, overrides: &[Override], kinds: &[&'static UnitDefinition]) -> Result<Topology, Failure> {
    let overrides: Vec<topology::Override> =
        overrides.iter().map(|Override { path, value }| topology::Override(format!("{path}={value}"))).collect();
    let library = PartLibrary::built_in();
    let options = LoadOptions { kinds, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
    topology::load(&TopologySource::from(name), &options).map_err(Failure::diagnosed)
}

/// Reads the topology of a simulation, with what its options say of all units.
///
/// # Errors
///
/// Every mistake in it, with its place.
pub fn of_simulation(options: &SimulationOptions, kinds: &[&'static UnitDefinition]) -> Result<Topology, Failure> {
    let mut topology = load(options.topology.as_deref().unwrap_or_default(), &options.set, kinds)?;
    if options.check_hazards {
        topology.set_everywhere("check_hazards", "true");
    }
    Ok(topology)
}

/// `topology check`: what the topology holds.
///
/// # Errors
///
/// Every mistake in it.
pub fn check(options: &TopologyOptions, kinds: &[&'static UnitDefinition]) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set, kinds)?;
    check_units(&topology)?;
    let window = topology.minimum_latency().map_or_else(|| "no wires".to_owned(), |least| format!("{least}"));
    let (units, wires) = (topology.units.len(), topology.wires.len());
    Ok(format!("{}: {units} units, {wires} wires, shortest wire {window}\n", topology.name))
}

/// `topology show`: the topology with parts, ranges and defaults written out, as a file that loads by itself.
///
/// # Errors
///
/// Every mistake in it.
pub fn show(options: &TopologyOptions, kinds: &[&'static UnitDefinition]) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set, kinds)?;
    let workload = topology.workload.as_ref().map(|workload| (workload.name.as_str(), &workload.parameters[..]));
    Ok(topology::show(&topology, workload))
}

/// `topology graph`: a picture.
///
/// # Errors
///
/// Every mistake in the topology.
pub fn graph(
    options: &TopologyOptions,
    kinds: &[&'static UnitDefinition],
    format: GraphFormat,
) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set, kinds)?;
    Ok(match format {
        GraphFormat::Dot => topology::dot(&topology),
        GraphFormat::Svg => topology::svg(&topology),
    })
}
