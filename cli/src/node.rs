//! Topologies on the command line: read, checked, printed with everything written out, drawn.

use crate::arguments::{GraphFormat, Override, TopologyOptions};
use crate::failure::Failure;
use balar_actors::simulation::BuiltInWorkloads;
use balar_actors::topology::{self, ExpandedUnit, LINK, LoadOptions, PartLibrary, Topology, TopologySource};
use balar_actors::units::UNITS;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Reads a topology by path or by name, with overrides applied.
///
/// # Errors
///
/// Every mistake in it, with its place.
pub fn load(name: &str, overrides: &[Override]) -> Result<Topology, Failure> {
    let overrides: Vec<topology::Override> =
        overrides.iter().map(|Override { path, value }| topology::Override(format!("{path}={value}"))).collect();
    let library = PartLibrary::built_in();
    let options =
        LoadOptions { kinds: UNITS, library: &library, workloads: Some(&BuiltInWorkloads), overrides: &overrides };
    topology::load(&TopologySource::from(name), &options).map_err(Failure::diagnosed)
}

/// `topology check`: what the topology holds.
///
/// # Errors
///
/// Every mistake in it.
pub fn check(options: &TopologyOptions) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set)?;
    let window = topology.minimum_latency().map_or_else(|| "no wires".to_owned(), |least| format!("{least}"));
    let (units, wires) = (topology.units.len(), topology.wires.len());
    Ok(format!("{}: {units} units, {wires} wires, shortest wire {window}\n", topology.name))
}

/// `topology show`: the topology with parts, ranges and defaults written out, as a file that loads by itself.
///
/// # Errors
///
/// Every mistake in it.
pub fn show(options: &TopologyOptions) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set)?;
    let workload = topology.workload.as_ref().map(|workload| (workload.name.as_str(), &workload.parameters[..]));
    Ok(expanded(&topology, workload))
}

/// A topology with parts, ranges and defaults written out, and the workload (name, parameters) that it runs. Members of
/// a row that are alike share an entry.
pub fn expanded(topology: &Topology, workload: Option<(&str, &[(String, String)])>) -> String {
    let mut text = format!("Topology(\n    name: {:?},\n", topology.name);
    if let Some((name, parameters)) = workload {
        let parameters = parameters.iter().map(|(key, value)| match value.parse::<u64>() {
            Ok(number) => format!("{key}: {number}"),
            Err(_) => format!("{key}: {value:?}"),
        });
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        push(&mut text, format_args!("    workload: {name}({parameters}),\n"));
    }
    text.push_str("    units: {\n");
    units_of(topology, "", 2, &mut text);
    text.push_str("    },\n    links: [\n");
    for wire in &topology.wires {
        let (a, b) = (topology.end_name(wire.a), topology.end_name(wire.b));
        let link = [wire.a, wire.b].iter().any(|end| topology.units[end.unit.0 as usize].kind.name == LINK);
        // The latency of a wire at a Link is that of the Link.
        let latency = if link { String::new() } else { format!(", latency: \"{}\"", wire.latency) };
        push(&mut text, format_args!("        ({a:?}, {b:?}{latency}),\n"));
    }
    text.push_str("    ],\n)\n");
    text
}

/// Writes the units of `part` and, in place, the parts within it.
fn units_of(topology: &Topology, part: &str, depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth);
    let own: Vec<&ExpandedUnit> = topology.units.iter().filter(|unit| unit.part == part).collect();
    let alike = |a: &ExpandedUnit, b: &ExpandedUnit| {
        a.row.is_some() && stem(a) == stem(b) && b.index > a.index && a.kind.name == b.kind.name && a.ron() == b.ron()
    };
    for group in own.chunk_by(|a, b| alike(a, b)) {
        let (first, last) = (group[0], group[group.len() - 1]);
        let name = match first.row {
            Some(_) if last.index > first.index => format!("{}[{}..{}]", stem(first), first.index, last.index + 1),
            _ => first.local_name().to_owned(),
        };
        push(text, format_args!("{indent}{name:?}: {}(\n", first.kind.name));
        for parameter in first.parameters.iter() {
            push(text, format_args!("{indent}    {}: {},\n", parameter.definition.name, parameter.text));
        }
        push(text, format_args!("{indent}),\n"));
    }
    let prefix = if part.is_empty() { String::new() } else { format!("{part}.") };
    let mut seen = BTreeSet::new();
    for unit in &topology.units {
        let Some(rest) = unit.part.strip_prefix(&prefix).filter(|rest| !rest.is_empty()) else { continue };
        let name = rest.split('.').next().unwrap_or(rest);
        if seen.insert(name) {
            push(text, format_args!("{indent}{name:?}: Part(units: {{\n"));
            units_of(topology, &format!("{prefix}{name}"), depth + 1, text);
            push(text, format_args!("{indent}}}),\n"));
        }
    }
}

/// A unit's name without its index.
fn stem(unit: &ExpandedUnit) -> &str {
    let name = unit.local_name();
    name.split('[').next().unwrap_or(name)
}

fn push(text: &mut String, arguments: std::fmt::Arguments) {
    text.write_fmt(arguments).expect("a String takes every byte");
}

/// `topology graph`: a picture.
///
/// # Errors
///
/// Every mistake in the topology.
pub fn graph(options: &TopologyOptions, format: GraphFormat) -> Result<String, Failure> {
    let topology = load(&options.topology, &options.set)?;
    let picture = crate::graph::Graph::of(&topology);
    Ok(match format {
        GraphFormat::Dot => picture.dot(),
        GraphFormat::Svg => picture.svg(),
    })
}
