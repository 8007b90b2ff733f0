//! Topologies of the command line, by file or by name.

use crate::options::simulation::SimulationOptions;
use crate::options::topology::Override;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::topology::{self, LoadOptions, PartLibrary, Topology, TopologySource};
use balar_experiments::BuiltInWorkloads;
use balar_record::system::failure::{Failure, say};

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

/// Reads the topology of a simulation, with what its options say of all units. What a user is to know of it is told on stderr.
///
/// # Errors
///
/// Every mistake in it, with its place.
pub fn of_simulation(options: &SimulationOptions, kinds: &[&'static UnitDefinition]) -> Result<Topology, Failure> {
    let mut topology = load(options.topology.as_deref().unwrap_or_default(), &options.set, kinds)?;
    tell(&topology.notes);
    if options.check_hazards {
        topology.set_everywhere("check_hazards", "true");
    }
    Ok(topology)
}

/// Tells what a user is to know of a topology.
pub fn tell(notes: &[String]) {
    for note in notes {
        say(format_args!("note: {note}"));
    }
}
