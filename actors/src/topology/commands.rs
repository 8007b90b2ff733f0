//! What `topology check` and `units` print.

use super::Topology;
use super::nearest::suggestion;
use crate::catalogue::{Role, UnitDefinition};
use balar_protocol::Bytes;
use indexmap::IndexMap;
use std::fmt::Write;

/// What a topology that holds amounts to: units by kind, wires, the GPUs.
pub fn check(topology: &Topology) -> String {
    let mut kinds: IndexMap<&str, u32> = IndexMap::new();
    for unit in &topology.units {
        *kinds.entry(unit.kind.name).or_default() += 1;
    }
    let kinds = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ");
    let mut text =
        format!("{}: {} units ({kinds}), {} wires", topology.name, topology.units.len(), topology.wires.len());
    if let Some(latency) = topology.minimum_latency() {
        let _ = write!(text, ", the shortest {latency}");
    }
    text.push('\n');
    for gpu in topology.gpus() {
        let (major, minor) = gpu.compute_capability;
        let memory = Bytes(gpu.memory_bytes);
        let _ = writeln!(
            text,
            "{}: compute capability {major}.{minor}, {} SMs, {memory} of memory",
            gpu.part, gpu.sm_count
        );
    }
    if let Some(workload) = &topology.workload {
        let parameters = workload.parameters.iter().map(|(key, value)| format!("{key}={value}"));
        let _ = writeln!(text, "workload {} {}", workload.name, parameters.collect::<Vec<_>>().join(" "));
    }
    text
}

/// The catalogue of units: all of them, a line each, or one in full.
///
/// # Errors
///
/// A name that no unit has; the text names the nearest.
pub fn units_catalogue(kinds: &[&UnitDefinition], name: Option<&str>) -> Result<String, String> {
    let Some(name) = name else {
        let width = kinds.iter().map(|kind| kind.name.len()).max().unwrap_or(0);
        let lines = kinds.iter().map(|kind| format!("{:width$}  {}\n", kind.name, kind.summary));
        return Ok(lines.collect());
    };
    match kinds.iter().find(|kind| kind.name.eq_ignore_ascii_case(name)) {
        Some(kind) => Ok(describe(kind)),
        None => {
            let near = suggestion(name, kinds.iter().map(|kind| kind.name));
            Err(format!("there is no kind of unit `{name}`; {near}"))
        }
    }
}

fn describe(kind: &UnitDefinition) -> String {
    let mut text = format!("{}: {}\n\nparameters\n", kind.name, kind.summary);
    let parameters = kind.parameters.iter().map(|parameter| {
        let default = parameter.default.map_or("required".to_owned(), |default| format!("default {default}"));
        [parameter.name.to_owned(), parameter.kind.to_owned(), default, parameter.meaning.to_owned()]
    });
    columns(parameters.collect(), &mut text);
    text.push_str("\nports\n");
    let ports = kind.ports.iter().map(|port| {
        let name = if port.indexed { format!("{}[i]", port.name) } else { port.name.to_owned() };
        let role = match port.role {
            Role::Client => "client",
            Role::Server => "server",
        };
        let required = if port.required { "required" } else { "optional" };
        [name, format!("{} {role}", port.protocol), required.to_owned(), port.meaning.to_owned()]
    });
    columns(ports.collect(), &mut text);
    text.push_str("\ncounters\n");
    let counters = kind
        .counters
        .iter()
        .map(|counter| [counter.name.to_owned(), counter.unit.to_owned(), String::new(), counter.meaning.to_owned()]);
    columns(counters.collect(), &mut text);
    text
}

/// Rows with their columns aligned.
fn columns(rows: Vec<[String; 4]>, text: &mut String) {
    if rows.is_empty() {
        text.push_str("  none\n");
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for row in &rows {
        let mut line = String::from(" ");
        for (cell, width) in row.iter().zip(widths).filter(|(_, width)| *width > 0) {
            let _ = write!(line, " {cell:width$} ");
        }
        let _ = writeln!(text, "{line} {}", row[3]);
    }
}
