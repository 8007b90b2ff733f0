//! `topology`: topologies checked, printed with everything written out, drawn.

use crate::commands::printing::{print, print_bytes};
use crate::options::topology::{GraphFormat, TopologyCommand, TopologyOptions};
use crate::simulation::node::load;
use balar_actors::catalogue::UnitDefinition;
use balar_actors::simulation::check_units;
use balar_actors::topology;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use balar_record::system::files;
use std::io::Write;
use std::path::Path;

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
            let format = format.or_else(|| GraphFormat::of(output.as_deref())).ok_or_else(|| {
                let path = output.as_deref().unwrap_or(Path::new("")).display();
                let help = "FILE.svg and FILE.png are pictures, FILE.dot is a graph for Graphviz; --format names one whatever the file is called";
                Failure::mistake(format_args!("--output {path}: no picture has this ending"), help)
            })?;
            let graph = graph(topology, kinds, format)?;
            match (output, graph) {
                (Some(path), Graph::Text(text)) => files::write(path, &text).map_err(Failure::input)?,
                (Some(path), Graph::Pixels(bytes)) => {
                    files::write_with(path, |file| file.write_all(&bytes)).map_err(Failure::input)?;
                }
                (None, Graph::Text(text)) => return print(&text),
                (None, Graph::Pixels(bytes)) => return print_bytes(&bytes),
            }
            Ok(ExitStatus::Done)
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

/// A picture of a topology.
enum Graph {
    Text(String),
    Pixels(Vec<u8>),
}

/// `topology graph`: a picture.
///
/// # Errors
///
/// Every mistake in the topology; a picture in pixels on a system without fonts.
fn graph(options: &TopologyOptions, kinds: &[&'static UnitDefinition], format: GraphFormat) -> Result<Graph, Failure> {
    let topology = load(&options.topology, &options.set, kinds)?;
    match format {
        GraphFormat::Dot => Ok(Graph::Text(topology::dot(&topology))),
        GraphFormat::Svg => Ok(Graph::Text(topology::svg(&topology))),
        GraphFormat::Png => balar_charts::png(&topology::svg(&topology)).map(Graph::Pixels).map_err(|error| {
            Failure::mistake(format_args!("there is no PNG: {error}"), "--format svg draws the same without fonts")
        }),
    }
}
