//! Pictures of a topology: rows of units are one box, the wires between two rows one line.

use crate::rollup::pattern;
use balar_actors::topology::Topology;
use balar_protocol::SimTime;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One box.
struct Node {
    /// Path with "\[*\]" for indices.
    path: String,
    kind: &'static str,
    units: usize,
}

/// The lines between two boxes.
struct Edge {
    from: usize,
    to: usize,
    wires: usize,
    least: SimTime,
    most: SimTime,
}

/// A topology with its rows folded.
pub struct Graph {
    name: String,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

impl Graph {
    /// Folds the rows of a topology.
    pub fn of(topology: &Topology) -> Graph {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut nodes: Vec<Node> = Vec::new();
        let mut box_of = Vec::with_capacity(topology.units.len());
        for unit in &topology.units {
            let path = pattern(&unit.path);
            let index = *known.entry(path.clone()).or_insert(nodes.len());
            if index == nodes.len() {
                nodes.push(Node { path, kind: unit.kind.name, units: 0 });
            }
            nodes[index].units += 1;
            box_of.push(index);
        }
        let mut edges: BTreeMap<(usize, usize), Edge> = BTreeMap::new();
        for wire in &topology.wires {
            let (from, to) = (box_of[wire.a.unit.0 as usize], box_of[wire.b.unit.0 as usize]);
            let latency = wire.latency;
            let edge = edges.entry((from, to)).or_insert(Edge { from, to, wires: 0, least: latency, most: latency });
            edge.wires += 1;
            edge.least = edge.least.min(latency);
            edge.most = edge.most.max(latency);
        }
        Graph { name: topology.name.clone(), nodes, edges: edges.into_values().collect() }
    }

    /// The picture in Graphviz's language. Parts are clusters.
    pub fn dot(&self) -> String {
        let mut text = format!("graph {} {{\n    node [shape=box, fontname=\"sans-serif\"];\n", quote(&self.name));
        let mut parts: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        for node in &self.nodes {
            parts.entry(node.path.rsplit_once('.').map_or("", |(part, _)| part)).or_default().push(node);
        }
        for (part, nodes) in parts {
            if !part.is_empty() {
                push(&mut text, format_args!("    subgraph {} {{\n", quote(&format!("cluster_{part}"))));
                push(&mut text, format_args!("        label={};\n", quote(part)));
            }
            for node in nodes {
                let label = node.lines().join("\n");
                let indent = if part.is_empty() { "    " } else { "        " };
                push(&mut text, format_args!("{indent}{} [label={}];\n", quote(&node.path), quote(&label)));
            }
            if !part.is_empty() {
                text.push_str("    }\n");
            }
        }
        for edge in &self.edges {
            let (from, to) = (quote(&self.nodes[edge.from].path), quote(&self.nodes[edge.to].path));
            push(&mut text, format_args!("    {from} -- {to} [label={}];\n", quote(&edge.label())));
        }
        text.push_str("}\n");
        text
    }

    /// The picture for browsers: boxes in layers by their distance from the first unit.
    pub fn svg(&self) -> String {
        /// Pixels: size of a box, and from box to box.
        const BOX_WIDTH: usize = 200;
        const BOX_HEIGHT: usize = 56;
        const COLUMN: usize = 300;
        const ROW: usize = 96;
        let layers = self.layers();
        let mut filled: BTreeMap<usize, usize> = BTreeMap::new();
        let places: Vec<(usize, usize)> = layers
            .iter()
            .map(|layer| {
                let row = filled.entry(*layer).or_default();
                *row += 1;
                (40 + layer * COLUMN, 60 + (*row - 1) * ROW)
            })
            .collect();
        let width = 80 + layers.iter().max().unwrap_or(&0) * COLUMN + BOX_WIDTH;
        let height = 60 + filled.values().max().unwrap_or(&0) * ROW;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n  <text x=\"40\" y=\"32\" font-size=\"18\">{}</text>\n",
            escape(&self.name)
        );
        for edge in &self.edges {
            let middle = |(x, y): (usize, usize)| (x + BOX_WIDTH / 2, y + BOX_HEIGHT / 2);
            let ((x1, y1), (x2, y2)) = (middle(places[edge.from]), middle(places[edge.to]));
            push(
                &mut text,
                format_args!(
                    "  <line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"#888\"/>\n  \
                     <text x=\"{}\" y=\"{}\" font-size=\"10\" fill=\"#555\" text-anchor=\"middle\">{}</text>\n",
                    (x1 + x2) / 2,
                    (y1 + y2) / 2 - 4,
                    escape(&edge.label())
                ),
            );
        }
        for (node, (x, y)) in self.nodes.iter().zip(&places) {
            push(
                &mut text,
                format_args!(
                    "  <rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"4\" \
                     fill=\"#eef\" stroke=\"#336\"/>\n"
                ),
            );
            for (line, words) in node.lines().iter().enumerate() {
                let (x, y) = (x + BOX_WIDTH / 2, y + 24 + 18 * line);
                let words = escape(words);
                push(&mut text, format_args!("  <text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{words}</text>\n"));
            }
        }
        text.push_str("</svg>\n");
        text
    }

    /// Each box's distance from the first box of its island.
    fn layers(&self) -> Vec<usize> {
        let mut layers: Vec<Option<usize>> = vec![None; self.nodes.len()];
        for first in 0..self.nodes.len() {
            let mut frontier = vec![first];
            let mut distance = 0;
            while layers[first].is_none() || !frontier.is_empty() {
                frontier.retain(|node| layers[*node].is_none());
                frontier.iter().for_each(|node| layers[*node] = Some(distance));
                let beside = |node: usize| {
                    let other = move |edge: &Edge| match (edge.from == node, edge.to == node) {
                        (true, _) => Some(edge.to),
                        (_, true) => Some(edge.from),
                        _ => None,
                    };
                    self.edges.iter().filter_map(other)
                };
                let mut next: Vec<usize> = frontier.iter().flat_map(|node| beside(*node)).collect();
                next.sort_unstable();
                next.dedup();
                frontier = next;
                distance += 1;
            }
        }
        layers.into_iter().map(Option::unwrap_or_default).collect()
    }
}

impl Node {
    fn lines(&self) -> [String; 2] {
        let units = if self.units == 1 { String::new() } else { format!("{} x ", self.units) };
        [self.path.clone(), format!("{units}{}", self.kind)]
    }
}

impl Edge {
    fn label(&self) -> String {
        let wires = if self.wires == 1 { String::new() } else { format!("{} x ", self.wires) };
        if self.least == self.most {
            format!("{wires}{}", self.least)
        } else {
            format!("{wires}{} to {}", self.least, self.most)
        }
    }
}

/// A string of Graphviz's language.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Text of XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn push(text: &mut String, arguments: std::fmt::Arguments) {
    text.write_fmt(arguments).expect("a String takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph() -> Graph {
        let node = |path: &str, kind, units| Node { path: path.to_owned(), kind, units };
        let edge = |from, to, wires, least, most| Edge { from, to, wires, least: SimTime(least), most: SimTime(most) };
        Graph {
            name: "a \"small\" <node>".to_owned(),
            nodes: vec![
                node("cpu", "HostCpu", 1),
                node("gpu.sm[*]", "StreamingMultiprocessor", 84),
                node("gpu.crossbar", "Crossbar", 1),
                node("lone", "Gmmu", 1),
            ],
            edges: vec![edge(0, 1, 1, 5, 5), edge(1, 2, 84, 15, 20)],
        }
    }

    #[test]
    fn dot_names_every_row_once() {
        let text = graph().dot();
        assert!(text.starts_with("graph \"a \\\"small\\\" <node>\" {\n"), "{text}");
        assert!(text.contains("\"gpu.sm[*]\" [label=\"gpu.sm[*]\\n84 x StreamingMultiprocessor\"];"), "{text}");
        assert!(text.contains("\"gpu.sm[*]\" -- \"gpu.crossbar\" [label=\"84 x 15 ps to 20 ps\"];"), "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn layers_are_distances() {
        assert_eq!(graph().layers(), [0, 1, 2, 0]);
    }

    #[test]
    fn svg_escapes_and_draws_every_box() {
        let text = graph().svg();
        assert_eq!(text.matches("<rect").count(), 4);
        assert_eq!(text.matches("<line").count(), 2);
        assert!(text.contains("a \"small\" &lt;node&gt;"), "{text}");
    }
}
