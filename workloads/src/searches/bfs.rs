//! `bfs`: breadth-first search over a random graph, a level a pair of launches.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

/// Distance of a node that the search does not reach.
const UNREACHED: i32 = -1;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "bfs",
    summary: "breadth-first search over a random directed graph, level by level; irregular loads, divergent loops",
    parameters: &[
        integer("nodes", 8192, 1, 1 << 24, "nodes of the graph"),
        integer("degree", 6, 1, 64, "mean number of edges that leave a node; each has from 1 to 2 * degree - 1"),
        integer("block", 256, 32, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("bfs"),
    cubins: cubins!("bfs"),
    small: "nodes=700,degree=3,block=128",
    build,
};

/// A directed graph: the edges of node n are `targets[first_edges[n]..first_edges[n + 1]]`.
struct Graph {
    first_edges: Vec<i32>,
    targets: Vec<i32>,
}

impl Graph {
    fn random(nodes: usize, degree: u32, seed: u64) -> Self {
        let scale = |bits: u32, limit: u32| ((u64::from(bits) * u64::from(limit)) >> 32) as u32;
        let counts = integers(seed, 0, nodes);
        let mut first_edges = vec![0];
        let mut total = 0;
        for bits in counts {
            total += 1 + scale(bits, 2 * degree - 1) as i32;
            first_edges.push(total);
        }
        let targets = integers(seed, 1, total as usize);
        Graph { first_edges, targets: targets.into_iter().map(|bits| scale(bits, nodes as u32) as i32).collect() }
    }

    /// The nodes as the kernels know them: the first edge of each, and how many leave it.
    fn nodes(&self) -> Vec<[i32; 2]> {
        self.first_edges.windows(2).map(|edges| [edges[0], edges[1] - edges[0]]).collect()
    }

    /// Each node's distance from node 0, and the greatest.
    fn distances(&self) -> (Vec<i32>, usize) {
        let mut distances = vec![UNREACHED; self.first_edges.len() - 1];
        distances[0] = 0;
        let mut level = vec![0];
        let mut depth = 0;
        loop {
            let mut next = Vec::new();
            for node in level {
                let edges = self.first_edges[node] as usize..self.first_edges[node + 1] as usize;
                for target in &self.targets[edges] {
                    let distance = &mut distances[*target as usize];
                    if *distance == UNREACHED {
                        *distance = depth as i32 + 1;
                        next.push(*target as usize);
                    }
                }
            }
            if next.is_empty() {
                return (distances, depth);
            }
            level = next;
            depth += 1;
        }
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let nodes = parameters.small("nodes");
    let graph = Graph::random(nodes as usize, parameters.small("degree"), parameters.integer("seed"));
    let (distances, depth) = graph.distances();

    let mut script = Script::default();
    let device_nodes = script.allocate_with(&graph.nodes());
    let targets = script.allocate_with(&graph.targets);
    let mut flags = vec![0u8; nodes as usize];
    let marked = script.allocate_with(&flags);
    flags[0] = 1;
    let frontier = script.allocate_with(&flags);
    let visited = script.allocate_with(&flags);
    let mut initial = vec![UNREACHED; nodes as usize];
    initial[0] = 0;
    let device_distances = script.allocate_with(&initial);
    let any = script.allocate_on_device(4);

    let shape = Shape::linear(nodes.div_ceil(parameters.small("block")), parameters.small("block"));
    let mut comparisons = Comparisons::default();
    // The host stops after the first level that finds no node: one more than the graph is deep.
    for level in 0..=depth {
        script.fill(any, 0, 4, Queue::Default);
        let [node_list, targets, frontier, marked, visited, distances, any_found] =
            [device_nodes, targets, frontier, marked, visited, device_distances, any].map(Argument::Buffer);
        let count = Argument::U32(nodes);
        let expand = [node_list, targets, frontier, marked, visited, distances, count];
        script.launch("bfs_expand", shape, &expand);
        script.launch("bfs_advance", shape, &[frontier, marked, visited, any_found, count]);
        let found = script.download(any, 4, Queue::Default);
        comparisons.add(found, &format!("whether level {level} finds nodes"), vec![u32::from(level < depth)]);
    }
    let result = script.download(device_distances, u64::from(nodes) * 4, Queue::Default);
    comparisons.add(result, "the distance of node", distances);
    for buffer in [device_nodes, targets, marked, frontier, visited, device_distances, any] {
        script.release(buffer);
    }
    script.finish(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances satisfy their definition: neighbours differ by at most one level, and all but the start have a
    /// predecessor one level up.
    #[test]
    fn distances_are_shortest() {
        let graph = Graph::random(500, 2, 3);
        let (distances, depth) = graph.distances();
        let mut has_predecessor = vec![false; 500];
        for node in 0..500 {
            for edge in graph.first_edges[node]..graph.first_edges[node + 1] {
                let target = graph.targets[edge as usize] as usize;
                if distances[node] == UNREACHED {
                    continue;
                }
                assert!(distances[target] != UNREACHED && distances[target] <= distances[node] + 1);
                has_predecessor[target] |= distances[target] == distances[node] + 1;
            }
        }
        for node in 1..500 {
            assert_eq!(distances[node] != UNREACHED, has_predecessor[node], "node {node}");
        }
        assert_eq!(distances.iter().max(), Some(&(depth as i32)));
    }
}
