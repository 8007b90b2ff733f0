//! Pictures of a topology, rows collapsed: DOT text, and an SVG of its own layout.

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
    label: String,
    kind: &'static str,
    level: usize,
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
            let name = without_indices(unit.local_name());
            let label = unit.row.map_or(name.clone(), |length| format!("{name}[0..{length}]"));
            let (path, part) = (with_any_index(&unit.path), with_any_index(&unit.part));
            Node { path, units: 0, part, label, kind: unit.kind.name, level: 0 }
        });
        node.units += 1;
    }
    let mut nodes: Vec<Node> = nodes.into_values().collect();
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
    // A server stands right of its clients; in a ring, as far as one pass a node takes it.
    for _ in 0..nodes.len() {
        for edge in &edges {
            let level = nodes[edge.client].level + 1;
            if edge.client != edge.server && nodes[edge.server].level < level && level < nodes.len() {
                nodes[edge.server].level = level;
            }
        }
    }
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

const BOX_WIDTH: usize = 170;
const BOX_HEIGHT: usize = 46;
const COLUMN: usize = BOX_WIDTH + 110;
const ROW: usize = BOX_HEIGHT + 44;
const MARGIN: usize = 40;
const BAND_GAP: usize = 56;

/// The topology as an SVG picture: clients left of their servers, a frame around each part.
pub fn svg(topology: &Topology) -> String {
    let picture = picture(topology);
    let mut places = vec![(0, 0); picture.nodes.len()];
    let mut frames = Vec::new();
    let mut top = MARGIN + 40;
    for part in parts(&picture) {
        let mut filled: IndexMap<usize, usize> = IndexMap::new();
        let mut bottom = top;
        let (mut left, mut right) = (usize::MAX, 0);
        for (id, node) in picture.nodes.iter().enumerate().filter(|(_, node)| node.part == part) {
            let row = filled.entry(node.level).or_default();
            let (x, y) = (MARGIN + node.level * COLUMN, top + *row * ROW);
            *row += 1;
            places[id] = (x, y);
            bottom = bottom.max(y + BOX_HEIGHT);
            left = left.min(x);
            right = right.max(x + BOX_WIDTH);
        }
        if right > 0 {
            if !part.is_empty() {
                frames.push((part, left - 20, top - 34, right - left + 40, bottom - top + 54));
            }
            top = bottom + BAND_GAP + 20;
        }
    }
    let width = places.iter().map(|(x, _)| x + BOX_WIDTH).max().unwrap_or(0) + MARGIN + 20;
    let height = top;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let title = escape(&topology.name);
    let _ = writeln!(text, "<text x=\"{MARGIN}\" y=\"{MARGIN}\" font-size=\"18\" font-weight=\"bold\">{title}</text>");
    for (part, x, y, width, height) in &frames {
        let part = escape(part);
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#f4f7fb\" stroke=\"#9db2cc\"/>\n\
             <text x=\"{}\" y=\"{}\" font-size=\"13\" fill=\"#55708f\">{part}</text>",
            x + 10,
            y + 18
        );
    }
    let mut labels = String::new();
    for edge in &picture.edges {
        draw_edge(edge, places[edge.client], places[edge.server], &mut text, &mut labels);
    }
    for (node, (x, y)) in picture.nodes.iter().zip(&places) {
        let (middle, first, second) = (x + BOX_WIDTH / 2, y + 20, y + 37);
        let stacked = node.label.contains('[');
        if stacked {
            let _ = writeln!(text, "{}", rectangle(x + 5, y + 5, "#e6edf6"));
        }
        let _ = writeln!(
            text,
            "{}\n<text x=\"{middle}\" y=\"{first}\" font-size=\"14\" text-anchor=\"middle\">{}</text>\n\
             <text x=\"{middle}\" y=\"{second}\" font-size=\"11\" fill=\"#666\" text-anchor=\"middle\">{}</text>",
            rectangle(*x, *y, "#ffffff"),
            escape(&node.label),
            escape(node.kind)
        );
    }
    text.push_str(&labels);
    text.push_str("</svg>\n");
    text
}

fn rectangle(x: usize, y: usize, fill: &str) -> String {
    format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"5\" fill=\"{fill}\" stroke=\"#33507a\"/>"
    )
}

fn draw_edge(edge: &Edge, client: (usize, usize), server: (usize, usize), text: &mut String, labels: &mut String) {
    let (x1, y1) = (client.0 + BOX_WIDTH, client.1 + BOX_HEIGHT / 2);
    let (x2, y2) = (server.0, server.1 + BOX_HEIGHT / 2);
    let bend = 55;
    let (c1, c2) = (x1 + bend, x2.saturating_sub(bend));
    let _ = writeln!(
        text,
        "<path d=\"M {x1} {y1} C {c1} {y1}, {c2} {y2}, {x2} {y2}\" fill=\"none\" stroke=\"#5b7ba6\" stroke-width=\"1.5\">\
         <title>{}</title></path>",
        escape(&edge.ports)
    );
    // A label at the server's end keeps clear of those of the client's other lines.
    let (x, y) = (x2.saturating_sub(52), (y1 + 3 * y2) / 4 - 6);
    let _ = writeln!(
        labels,
        "<text x=\"{x}\" y=\"{y}\" font-size=\"11\" text-anchor=\"middle\" fill=\"#33507a\" stroke=\"white\" \
         stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
        escape(&edge.label())
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
