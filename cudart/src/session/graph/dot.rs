//! Graphs as text for Graphviz.

use crate::session::graph::node::Work;
use crate::session::graph::store::{self, Graph};
use balar_host::CudaError;
use std::fmt::Write;

/// `cudaGraphDebugDotFlagsVerbose`: everything there is to say of nodes.
const VERBOSE: u32 = 1;

/// The graph's nodes and edges in the language of Graphviz.
pub fn text(graph: u64, flags: u32) -> Result<String, CudaError> {
    let mut text = String::from("digraph dot {\n");
    write_graph(graph, flags & VERBOSE != 0, &mut text)?;
    text.push_str("}\n");
    Ok(text)
}

fn write_graph(handle: u64, is_verbose: bool, text: &mut String) -> Result<(), CudaError> {
    let (lines, children) = store::with(handle, |graph| Ok(describe(graph, is_verbose)))?;
    text.push_str(&lines);
    for child in children {
        write_graph(child, is_verbose, text)?;
    }
    Ok(())
}

/// The lines of a graph itself, and its child graphs.
fn describe(graph: &Graph, is_verbose: bool) -> (String, Vec<u64>) {
    let number = graph.number;
    let mut lines = format!("subgraph cluster_{number} {{\nlabel=\"graph_{number}\" graph[style=\"dashed\"];\n");
    let mut children = Vec::new();
    let name =
        |node: u64| graph.nodes.get(&node).map_or(String::new(), |it| format!("graph_{number}_node_{}", it.local_id));
    for (handle, node) in &graph.nodes {
        let (shape, what) = match &node.work {
            Work::Kernel(kernel) => ("octagon", kernel.launch.function.name.to_string()),
            Work::Copy(_) => ("invtrapezium", "MEMCPY".to_owned()),
            Work::Memset(_) => ("invtrapezium", "MEMSET".to_owned()),
            Work::Host(_) => ("rectangle", "HOST".to_owned()),
            Work::Graph(child) => {
                children.push(*child);
                let child = store::with(*child, |child| Ok(child.number)).unwrap_or(0);
                ("component", format!("graph_{child}"))
            }
            Work::Conditional(node) => {
                children.extend_from_slice(&node.graphs);
                ("rectangle", "CONDITIONAL".to_owned())
            }
            Work::Empty => ("ellipse", "EMPTY".to_owned()),
            Work::EventRecord(_) => ("rectangle", "EVENT_RECORD".to_owned()),
            Work::EventWait(_) => ("rectangle", "EVENT_WAIT".to_owned()),
            Work::Allocate(_) => ("rectangle", "MEM_ALLOC".to_owned()),
            Work::Free(_) => ("rectangle", "MEM_FREE".to_owned()),
        };
        let details = if is_verbose { details(*handle, &node.work) } else { String::new() };
        let id = node.local_id;
        // Writing to a string does not fail.
        let _ = writeln!(
            lines,
            "\"{}\"[style=\"bold\" shape=\"{shape}\" label=\"{id}\\n{what}{details}\"];",
            name(*handle)
        );
    }
    for edge in graph.edges() {
        let _ = writeln!(lines, "\"{}\" -> \"{}\";", name(edge.from), name(edge.to));
    }
    lines.push_str("}\n");
    (lines, children)
}

fn details(handle: u64, work: &Work) -> String {
    match work {
        Work::Kernel(kernel) => {
            let ([x, y, z], [a, b, c]) = (kernel.launch.grid, kernel.launch.block);
            format!("\\nnode {handle:#x}\\n<<<{x},{y},{z} {a},{b},{c} {}>>>", kernel.launch.shared_memory_bytes)
        }
        Work::Copy(copy) => {
            let shape = copy.copy.shape;
            format!("\\nnode {handle:#x}\\n{} x {} x {} bytes", shape.width, shape.height, shape.depth)
        }
        Work::Memset(_) => work.memset_parameters().map_or(String::new(), |fill| {
            format!(
                "\\nnode {handle:#x}\\n{:#x}: {} x {} of {} bytes",
                fill.destination, fill.width, fill.height, fill.element_bytes
            )
        }),
        _ => format!("\\nnode {handle:#x}"),
    }
}

/// Writes a graph into a file for Graphviz.
pub fn print(graph: u64, path: &str, flags: u32) -> Result<(), CudaError> {
    std::fs::write(path, text(graph, flags)?).map_err(|_| CudaError::OperatingSystem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::graph::store::{add, create};
    use crate::session::state::dependency::Dependency;

    #[test]
    fn nodes_edges_and_child_graphs_are_written() {
        let child = create();
        add(child, &[], Work::Empty).expect("a new node");
        let graph = create();
        let first = add(graph, &[], Work::Empty).expect("a new node");
        add(graph, &[Dependency::on(first)], Work::Graph(child)).expect("a new node");
        let text = text(graph, 0).expect("it is there");
        assert_eq!(text.matches("->").count(), 1);
        assert_eq!(text.matches("EMPTY").count(), 2);
        assert_eq!(text.matches("subgraph").count(), 2);
    }
}
