//! `topology`: topologies checked, printed with everything written out, drawn.

use crate::commands::printing::print;
use crate::options::topology::{GraphFormat, TopologyCommand, TopologyOptions};
use crate::simulation::node::load;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::simulation::check_units;
use balar_actors::topology;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use balar_record::system::files;

/// Checks, prints or draws a topology.
///
/// # Errors
///
/// Every mistake in it, or a picture that cannot be written.
pub fn run(command: &TopologyCommand, kinds: &[&'static UnitDefinition]) -> Result<ExitStatus, Failure> {
    match command {
        TopologyCommand::Check(options) => print(&check(options, kinds)?),
        TopologyCommand::Show(options) => print(&show(options, kinds)?),
        TopologyCommand::Graph { topology, output, format } => {
            let format = format.unwrap_or_else(|| GraphFormat::of(output.as_deref()));
            let graph = graph(topology, kinds, format)?;
            match output {
                Some(path) => {
                    files::write(path, &graph).map_err(Failure::input)?;
                    Ok(ExitStatus::Done)
                }
                None => print(&graph),
            }
        }
    }
}

/// `topology check`: what the topology holds.
///
/// # Errors
///
/// Every mistake in it.
fn check(options: &TopologyOptions, kinds: &[&'static UnitDefinition]) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set, kinds)?;
    check_units(&topology)?;
    let window = topology.minimum_latency().map_or_else(|| "no wires".to_owned(), |least| format!("{least}"));
    let (units, wires) = (topology.units.len(), topology.wires.len());
    let notes: String = topology.notes.iter().map(|note| format!("note: {note}\n")).collect();
    Ok(format!("{}: {units} units, {wires} wires, shortest wire {window}\n{notes}", topology.name))
}

/// `topology show`: the topology with parts, ranges and defaults written out, as a file that loads by itself.
///
/// # Errors
///
/// Every mistake in it.
fn show(options: &TopologyOptions, kinds: &[&'static UnitDefinition]) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set, kinds)?;
    let workload = topology.workload.as_ref().map(|workload| (workload.name.as_str(), &workload.parameters[..]));
    Ok(topology::show(&topology, workload))
}

/// `topology graph`: a picture.
///
/// # Errors
///
/// Every mistake in the topology.
fn graph(options: &TopologyOptions, kinds: &[&'static UnitDefinition], format: GraphFormat) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set, kinds)?;
    Ok(match format {
        GraphFormat::Dot => topology::dot(&topology),
        GraphFormat::Svg => topology::svg(&topology),
    })
}
