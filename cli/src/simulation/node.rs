//! Topologies of the command line, by file or by name.

use crate::options::simulation::SimulationOptions;
use crate::options::topology::{DEFAULT_TOPOLOGY, Override, TOPOLOGY_VARIABLE};
use crate::simulation::misspelt_keys::point_at_key;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::topology::{
    self, ErrorKind, LoadOptions, PartLibrary, Topology, TopologySource, nearest, suggestion,
};
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
    topology::load(&TopologySource::from(name), &options).map_err(|mut errors| {
        for error in &mut errors.errors {
            match error.kind {
                ErrorKind::TopologyNotFound => error.help = Some(known_topologies(name, &library)),
                _ => point_at_key(error),
            }
        }
        Failure::diagnosed(errors)
    })
}

/// What to write in place of a name that no topology has: `V100` means `v100_node`.
fn known_topologies(name: &str, library: &PartLibrary) -> String {
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".ron").to_lowercase();
    let begins = |topology: &&str| topology.starts_with(&stem) || stem.starts_with(topology);
    let near = nearest(&stem, library.topologies()).or_else(|| library.topologies().find(begins));
    near.map_or_else(|| suggestion(&stem, library.topologies()), |near| format!("the nearest name is `{near}`"))
}

/// Reads the topology of a simulation, with what its options say of all units. Where none is named, the default one is, and told. What a user
/// is to know of it is told on stderr.
///
/// # Errors
///
/// Every mistake in it, with its place.
pub fn of_simulation(options: &SimulationOptions, kinds: &[&'static UnitDefinition]) -> Result<Topology, Failure> {
    let named = options.topology.as_deref().filter(|name| !name.is_empty());
    if named.is_none() && !options.quiet {
        say(format_args!(
            "balar-actors: no topology is named, so the node is {DEFAULT_TOPOLOGY}; --topology or {TOPOLOGY_VARIABLE} names another"
        ));
    }
    let mut topology = load(named.unwrap_or(DEFAULT_TOPOLOGY), &options.set, kinds)?;
    tell(&topology.notes);
    if options.code.check_hazards {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topology_is_known_by_the_name_of_its_gpu() {
        let library = PartLibrary::built_in();
        for (name, near) in [
            ("V100", "`v100_node`"),
            ("t4", "`t4_node`"),
            ("v100_nod", "`v100_node`"),
            ("V100_NODE.ron", "`v100_node`"),
        ] {
            let help = known_topologies(name, &library);
            assert_eq!(help, format!("the nearest name is {near}"), "{name}");
        }
        let others = known_topologies("zzzzzzzzzzzz", &library);
        assert!(others.starts_with("there are: ") && others.contains("v100_node"), "{others}");
    }
}
