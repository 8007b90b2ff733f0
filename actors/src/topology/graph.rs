//! The graph of a topology, rows collapsed, as DOT text.

use super::{Topology, WireEnd};
use balar_protocol::SimTime;
use indexmap::IndexMap;
use std::fmt::Write;

/// One box: a unit, or a whole row.
struct Node {
    /// Its path with `[*]` for indices.
    path: String,
    units: usize,
    part: String,
    kind: &'static str,
}

/// One line: all wires between two ports' rows.
struct Edge {
    client: usize,
    server: usize,
    ports: String,
    wires: usize,
    least: SimTime,
    most: SimTime,
}

impl Edge {
    fn label(&self) -> String {
        let count = if self.wires == 1 { String::new() } else { format!("{} x ", self.wires) };
        let range = if self.least == self.most {
            nanoseconds(self.least)
        } else {
            format!("{} to {}", nanoseconds(self.least), nanoseconds(self.most))
        };
        format!("{count}{range}")
    }
}

fn nanoseconds(time: SimTime) -> String {
    let text = format!("{}.{:03}", time.0 / 1000, time.0 % 1000);
    format!("{} ns", text.trim_end_matches('0').trim_end_matches('.'))
}

struct Picture {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// A path without its indices: "gpu.sm" of "gpu[1].sm[3]".
fn without_indices(path: &str) -> String {
    let mut plain = String::new();
    let mut inside = false;
    for c in path.chars() {
        inside |= c == '[';
        if !inside {
            plain.push(c);
        }
        inside &= c != ']';
    }
    plain
}

/// A path with `[*]` for its indices: "gpu[*].sm[*]" of "gpu[1].sm[3]".
fn with_any_index(path: &str) -> String {
    let steps = path.split('.').map(|step| match step.split_once('[') {
        Some((name, _)) => format!("{name}[*]"),
        None => step.to_owned(),
    });
    steps.collect::<Vec<_>>().join(".")
}

fn picture(topology: &Topology) -> Picture {
    let mut nodes: IndexMap<String, Node> = IndexMap::new();
    let mut node_of = Vec::new();
    for unit in &topology.units {
        let entry = nodes.entry(without_indices(&unit.path));
        node_of.push(entry.index());
        let node = entry.or_insert_with(|| {
            let (path, part) = (with_any_index(&unit.path), with_any_index(&unit.part));
            Node { path, units: 0, part, kind: unit.kind.name }
        });
        node.units += 1;
    }
    let nodes: Vec<Node> = nodes.into_values().collect();
    let is_client = |end: WireEnd| {
        let ports = topology.units[end.unit.0 as usize].kind.ports;
        ports.iter().any(|port| port.name == end.port && port.role == crate::catalogue::Role::Client)
    };
    let mut edges: IndexMap<(usize, usize, String), Edge> = IndexMap::new();
    for wire in &topology.wires {
        let (client, server) = if is_client(wire.a) { (wire.a, wire.b) } else { (wire.b, wire.a) };
        let ports = format!("{} to {}", client.port, server.port);
        let (client, server) = (node_of[client.unit.0 as usize], node_of[server.unit.0 as usize]);
        let edge = edges.entry((client, server, ports.clone())).or_insert(Edge {
            client,
            server,
            ports,
            wires: 0,
            least: wire.latency,
            most: wire.latency,
        });
        edge.wires += 1;
        edge.least = edge.least.min(wire.latency);
        edge.most = edge.most.max(wire.latency);
    }
    let edges: Vec<Edge> = edges.into_values().collect();
    Picture { nodes, edges }
}

/// The topology as a DOT graph: a cluster a part, an edge a row of wires.
pub fn dot(topology: &Topology) -> String {
    let picture = picture(topology);
    let mut text = format!("digraph {:?} {{\n    rankdir=LR;\n    node [shape=box];\n", topology.name);
    for (index, part) in parts(&picture).iter().enumerate() {
        let indent = if part.is_empty() { "    " } else { "        " };
        if !part.is_empty() {
            let _ = writeln!(text, "    subgraph cluster_{index} {{\n        label={part:?};");
        }
        for node in picture.nodes.iter().filter(|node| node.part == *part) {
            let units = if node.units == 1 { String::new() } else { format!("{} x ", node.units) };
            let path = &node.path;
            let _ = writeln!(text, "{indent}\"{path}\" [label=\"{path}\\n{units}{}\"];", node.kind);
        }
        if !part.is_empty() {
            text.push_str("    }\n");
        }
    }
    for edge in &picture.edges {
        let (client, server) = (&picture.nodes[edge.client].path, &picture.nodes[edge.server].path);
        let (label, ports) = (edge.label(), &edge.ports);
        let _ = writeln!(text, "    \"{client}\" -> \"{server}\" [label=\"{label}\", tooltip=\"{ports}\"];");
    }
    text.push_str("}\n");
    text
}

/// The parts in the order of the topology, the whole node first.
fn parts(picture: &Picture) -> Vec<String> {
    let mut parts = vec![String::new()];
    for node in &picture.nodes {
        if !parts.contains(&node.part) {
            parts.push(node.part.clone());
        }
    }
    parts
}
