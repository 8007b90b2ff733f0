//! `units` and `workloads`: catalogues made from the definitions in the code.

use crate::options::format::CatalogueFormat;
use crate::output::table::{add, lines, table};
use balar_actors::catalogue::{Role, UnitDefinition};
use balar_actors::topology::{PartLibrary, nearest};
use balar_record::json::to_text;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use balar_workloads::{Compiler, Descriptor, Domain, MEMORY};
use serde::Serialize;
use std::fmt::Write;

/// A kind of unit, as JSON has it.
#[derive(Serialize)]
struct UnitEntry {
    name: &'static str,
    summary: &'static str,
    parameters: Vec<ParameterEntry>,
    ports: Vec<PortEntry>,
    counters: Vec<CounterEntry>,
}

#[derive(Serialize)]
struct ParameterEntry {
    name: &'static str,
    kind: String,
    default: Option<String>,
    meaning: &'static str,
}

#[derive(Serialize)]
struct PortEntry {
    name: String,
    protocol: String,
    role: &'static str,
    required: bool,
    meaning: &'static str,
}

#[derive(Serialize)]
struct CounterEntry {
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
}

/// A workload, as JSON has it.
#[derive(Serialize)]
struct WorkloadEntry {
    name: &'static str,
    summary: &'static str,
    parameters: Vec<ParameterEntry>,
    compute_capabilities: Vec<u32>,
    code: Vec<CodeEntry>,
}

/// A workload's PTX as one compiler gave it.
#[derive(Serialize)]
struct CodeEntry {
    compiler: &'static str,
    compute_capability: u32,
}

/// All kinds of units in a table, or the one of a name in full.
///
/// # Errors
///
/// A name that no unit has, with the nearest one.
pub fn named_units(
    kinds: &[&UnitDefinition],
    name: Option<&str>,
    format: CatalogueFormat,
    width: Option<u16>,
) -> Result<String, Failure> {
    let chosen: Vec<&UnitDefinition> =
        kinds.iter().copied().filter(|kind| name.is_none_or(|n| n == kind.name)).collect();
    match name {
        Some(name) if chosen.is_empty() => {
            let help = nearest(name, kinds.iter().map(|kind| kind.name)).map(|near| format!("did you mean `{near}`?"));
            let help = help.unwrap_or_else(|| "`balar-actors units` lists them".to_owned());
            Err(Failure::sentence(ExitStatus::BadInput, format_args!("there is no unit `{name}`"), Some(help)))
        }
        _ => Ok(units(&chosen, name.is_some(), format, width)),
    }
}

/// All workloads in a table, or the one of a name in full.
///
/// # Errors
///
/// A name that no workload has.
pub fn named_workloads(name: Option<&str>, format: CatalogueFormat, width: Option<u16>) -> Result<String, Failure> {
    let chosen: Vec<&Descriptor> = match name {
        Some(name) => vec![balar_workloads::find(name).map_err(Failure::input)?],
        None => balar_workloads::workloads().iter().collect(),
    };
    Ok(workloads(&chosen, name.is_some(), format, width))
}

/// All kinds of units in a table, or each in full.
pub fn units(kinds: &[&UnitDefinition], in_full: bool, format: CatalogueFormat, width: Option<u16>) -> String {
    let entries: Vec<UnitEntry> = kinds.iter().map(|kind| unit_entry(kind)).collect();
    match (format, in_full) {
        (CatalogueFormat::Json, _) => to_text(&entries),
        (CatalogueFormat::Table, true) => {
            entries.iter().map(|entry| unit_in_full(entry, width)).collect::<Vec<_>>().join("\n")
        }
        (CatalogueFormat::Table, false) => {
            let mut overview = table(&["unit", "parameters", "ports", "counters", "models"], width);
            for entry in &entries {
                let ports = entry.ports.iter().map(|port| port.name.clone()).collect::<Vec<_>>().join(" ");
                let (parameters, counters) = (entry.parameters.len().to_string(), entry.counters.len().to_string());
                let cells = [entry.name.to_owned(), parameters, ports, counters, entry.summary.to_owned()];
                add(&mut overview, cells, &[0, 2, 4]);
            }
            lines(overview) + "\n`balar-actors units NAME` shows one with its parameters, ports and counters.\n"
        }
    }
}

fn unit_entry(kind: &UnitDefinition) -> UnitEntry {
    let parameters = kind.parameters.iter().map(|parameter| ParameterEntry {
        name: parameter.name,
        kind: parameter.kind.to_owned(),
        default: parameter.default.map(str::to_owned),
        meaning: parameter.meaning,
    });
    let ports = kind.ports.iter().map(|port| PortEntry {
        name: if port.indexed { format!("{}[*]", port.name) } else { port.name.to_owned() },
        protocol: format!("{:?}", port.protocol),
        role: match port.role {
            Role::Client => "client",
            Role::Server => "server",
        },
        required: port.required,
        meaning: port.meaning,
    });
    let counters = kind.counters.iter().map(|counter| CounterEntry {
        name: counter.name,
        unit: counter.unit,
        meaning: counter.meaning,
    });
    UnitEntry {
        name: kind.name,
        summary: kind.summary,
        parameters: parameters.collect(),
        ports: ports.collect(),
        counters: counters.collect(),
    }
}

fn unit_in_full(entry: &UnitEntry, width: Option<u16>) -> String {
    let mut text = format!("{}: {}\n", entry.name, entry.summary);
    text.push_str(&parameter_table(&entry.parameters, width));
    let mut ports = table(&["port", "protocol", "role", "required", "meaning"], width);
    for port in &entry.ports {
        let required = if port.required { "yes" } else { "no" };
        let cells = [port.name.clone(), port.protocol.clone(), port.role.into(), required.into(), port.meaning.into()];
        add(&mut ports, cells, &[0, 1, 2, 3, 4]);
    }
    let mut counters = table(&["counter", "unit", "meaning"], width);
    for counter in &entry.counters {
        add(&mut counters, [counter.name.into(), counter.unit.into(), counter.meaning.into()], &[0, 1, 2]);
    }
    for (given, table) in [(entry.ports.is_empty(), ports), (entry.counters.is_empty(), counters)] {
        if !given {
            write!(text, "\n{}", lines(table)).expect("a String takes every byte");
        }
    }
    text
}

fn parameter_table(parameters: &[ParameterEntry], width: Option<u16>) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let mut rows = table(&["parameter", "type", "default", "meaning"], width);
    for parameter in parameters {
        let default = parameter.default.clone().unwrap_or_else(|| "(required)".to_owned());
        let cells = [parameter.name.to_owned(), parameter.kind.clone(), default, parameter.meaning.to_owned()];
        add(&mut rows, cells, &[0, 1, 2, 3]);
    }
    format!("\n{}", lines(rows))
}

/// A built-in topology, as JSON has it.
#[derive(Serialize)]
struct TopologyEntry {
    name: &'static str,
    summary: String,
}

/// The built-in topologies: names, and the first sentence of each file.
pub fn topologies(library: &PartLibrary, format: CatalogueFormat, width: Option<u16>) -> String {
    let entries = library.topologies().map(|name| TopologyEntry { name, summary: summary(library, name) });
    let entries: Vec<TopologyEntry> = entries.collect();
    if format == CatalogueFormat::Json {
        return to_text(&entries);
    }
    let mut overview = table(&["topology", "models"], width);
    for entry in entries {
        add(&mut overview, [entry.name.to_owned(), entry.summary], &[0, 1]);
    }
    lines(overview) + "\n`balar-actors topology show NAME` prints one in full.\n"
}

/// The comment that a topology begins with, up to the end of its first sentence.
fn summary(library: &PartLibrary, topology: &str) -> String {
    let file = library.files.iter().find(|(name, _)| name.strip_suffix(".ron") == Some(topology));
    let text = file.map_or("", |(_, text)| text);
    let comment: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//")).map(str::trim).collect();
    let comment = comment.join(" ");
    let end = comment.find(". ").unwrap_or(comment.len());
    comment[..end].trim_end_matches('.').to_owned()
}

/// All workloads in a table, or each in full.
pub fn workloads(workloads: &[&Descriptor], in_full: bool, format: CatalogueFormat, width: Option<u16>) -> String {
    let entries: Vec<WorkloadEntry> = workloads.iter().map(|workload| workload_entry(workload)).collect();
    match (format, in_full) {
        (CatalogueFormat::Json, _) => to_text(&entries),
        (CatalogueFormat::Table, true) => {
            let texts = entries.iter().map(|entry| {
                let code = entry.code.iter().map(|code| format!("{} sm_{}", code.compiler, code.compute_capability));
                let code = code.collect::<Vec<_>>().join(", ");
                let parameters = parameter_table(&entry.parameters, width);
                format!("{}: {}\n{parameters}\nPTX (--compiler): {code}\n", entry.name, entry.summary)
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        (CatalogueFormat::Table, false) => {
            let mut overview = table(&["workload", "parameters", "computes"], width);
            for entry in &entries {
                let own = entry.parameters.iter().filter(|parameter| parameter.name != MEMORY.name);
                let parameters = own.map(|parameter| {
                    format!("{}={}", parameter.name, parameter.default.as_deref().unwrap_or_default())
                });
                let parameters = parameters.collect::<Vec<_>>().join(",");
                add(&mut overview, [entry.name.to_owned(), parameters, entry.summary.to_owned()], &[0, 1, 2]);
            }
            lines(overview)
                + "\n`balar-actors workloads NAME` shows one with its parameters, and `memory`, which all of them have.\n"
        }
    }
}

fn workload_entry(workload: &Descriptor) -> WorkloadEntry {
    let parameters = workload.parameters.iter().chain([&MEMORY]).map(|parameter| ParameterEntry {
        name: parameter.name,
        kind: match parameter.domain {
            Domain::Integer { minimum, maximum: u64::MAX, .. } => format!("whole number from {minimum}"),
            domain => domain.expected(),
        },
        default: Some(parameter.domain.to_string()),
        meaning: parameter.meaning,
    });
    let own = workload.code.iter().filter(|code| code.compiler == Compiler::Nvrtc);
    let code = workload
        .code
        .iter()
        .map(|code| CodeEntry { compiler: code.compiler.name(), compute_capability: code.capability });
    WorkloadEntry {
        name: workload.name,
        summary: workload.summary,
        parameters: parameters.collect(),
        compute_capabilities: own.map(|code| code.capability).collect(),
        code: code.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use balar_actors::catalogue::{BuildError, ParameterDefinition, PortDefinition};
    use balar_protocol::Protocol;
    use balar_protocol::statistics::StatisticDefinition;

    const CACHE: UnitDefinition = UnitDefinition {
        name: "L2Slice",
        summary: "a slice of the L2",
        parameters: &[
            ParameterDefinition {
                name: "clock",
                kind: "Frequency",
                default: None,
                meaning: "its clock",
                range_problem: ParameterDefinition::any_value,
            },
            ParameterDefinition {
                name: "ways",
                kind: "u32",
                default: Some("24"),
                meaning: "lines of a set",
                range_problem: ParameterDefinition::any_value,
            },
        ],
        check: |_, _| Ok(()),
        ports: &[PortDefinition {
            name: "crossbar",
            protocol: Protocol::Memory,
            role: Role::Server,
            indexed: true,
            required: true,
            meaning: "requests of the SMs",
        }],
        counters: &[StatisticDefinition {
            name: "read_hits",
            unit: "sector",
            meaning: "sectors read that hit",
            maximum: false,
        }],
        provides: balar_actors::catalogue::nothing,
        weight: 2,
        build: |_, _| Err(BuildError::Parameters(Vec::new())),
    };

    #[test]
    fn a_unit_is_shown_with_all_that_it_declares() {
        let text = units(&[&CACHE], true, CatalogueFormat::Table, None);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(words.contains(&vec!["clock", "Frequency", "(required)", "its", "clock"]), "{text}");
        assert!(words.contains(&vec!["ways", "u32", "24", "lines", "of", "a", "set"]), "{text}");
        assert!(text.contains("crossbar[*]") && text.contains("server"), "{text}");
        assert!(text.contains("read_hits") && text.contains("sectors read that hit"), "{text}");
    }

    #[test]
    fn catalogues_are_json_too() {
        let json: serde_json::Value =
            serde_json::from_str(&units(&[&CACHE], false, CatalogueFormat::Json, None)).expect("JSON");
        assert_eq!(json[0]["parameters"][1]["default"], "24");
        let all: Vec<&Descriptor> = balar_workloads::workloads().iter().collect();
        let json: serde_json::Value =
            serde_json::from_str(&workloads(&all, false, CatalogueFormat::Json, None)).expect("JSON");
        assert_eq!(json[0]["name"], "vectoradd");
        assert_eq!(json[0]["parameters"][0]["name"], "elements");
    }

    #[test]
    fn every_workload_is_listed_with_its_defaults() {
        let all: Vec<&Descriptor> = balar_workloads::workloads().iter().collect();
        let text = workloads(&all, false, CatalogueFormat::Table, None);
        for workload in all {
            assert!(text.contains(workload.name) && text.contains(workload.summary), "{}: {text}", workload.name);
        }
        assert!(text.contains("elements=163840"), "{text}");
    }
}
