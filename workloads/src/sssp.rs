//! `sssp`: shortest paths from one vertex, by rounds over all edges.

use crate::comparison::Comparisons;
use crate::numeric::integers;
use crate::parameters::{Parameters, WorkloadError};
use crate::registry::{Descriptor, SEED, code, cubins, integer};
use crate::script::{Argument, Queue, Script, Shape};
use balar_host::HostProgram;

/// Distance of a vertex to which no way is known.
const UNREACHED: u32 = u32::MAX;
/// Vertices to which ways lead for certain. With so many, the default graph takes 30 rounds, as that of the studies does.
const ROOTED: u32 = 41;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "sssp",
    summary: "shortest paths over a random graph with weights: rounds over all edges until nothing changes",
    parameters: &[
        integer("vertices", 1 << 20, 1, 1 << 24, "vertices of the graph"),
        integer("degree", 2, 1, 64, "edges that end at each vertex"),
        integer("heaviest", 4, 1, 1000, "greatest weight of an edge; the least is 1"),
        integer("block", 256, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("sssp"),
    cubins: cubins!("sssp"),
    small: "vertices=500,degree=3,block=64",
    build,
};

/// A directed graph: the edges that end at vertex v are those from `v * degree` to `(v + 1) * degree`.
struct Graph {
    sources: Vec<u32>,
    weights: Vec<u32>,
    degree: usize,
}

impl Graph {
    /// Edges from anywhere. Only the first one to each of the first vertices comes from a vertex before it, so that the search
    /// does not end where it begins; from these few vertices, ways lead to nearly all.
    fn random(vertices: u32, degree: u32, heaviest: u32, seed: u64) -> Self {
        let scale = |bits: u32, limit: u32| ((u64::from(bits) * u64::from(limit)) >> 32) as u32;
        let edges = vertices as usize * degree as usize;
        let source = |(edge, bits): (usize, u32)| {
            let (vertex, number) = (edge as u32 / degree, edge as u32 % degree);
            scale(bits, if number == 0 && (1..ROOTED).contains(&vertex) { vertex } else { vertices })
        };
        Graph {
            sources: integers(seed, 0, edges).into_iter().enumerate().map(source).collect(),
            weights: integers(seed, 1, edges).into_iter().map(|bits| 1 + scale(bits, heaviest)).collect(),
            degree: degree as usize,
        }
    }

    /// The distances after one more round.
    fn relaxed(&self, distances: &[u32]) -> Vec<u32> {
        let edges = self.sources.chunks_exact(self.degree).zip(self.weights.chunks_exact(self.degree));
        let vertices = distances.iter().zip(edges);
        let shortest = vertices.map(|(distance, (sources, weights))| {
            let ways = sources.iter().zip(weights).filter_map(|(source, weight)| {
                let distance = distances[*source as usize];
                (distance != UNREACHED).then(|| distance + weight)
            });
            ways.fold(*distance, u32::min)
        });
        shortest.collect()
    }

    /// Each vertex's distance from vertex 0, and the rounds up to the first that changes nothing.
    fn distances(&self) -> (Vec<u32>, u32) {
        let mut distances = vec![UNREACHED; self.sources.len() / self.degree];
        distances[0] = 0;
        let mut rounds = 0;
        loop {
            rounds += 1;
            let next = self.relaxed(&distances);
            if next == distances {
                return (distances, rounds);
            }
            distances = next;
        }
    }
}

fn build(parameters: &Parameters) -> Result<Box<dyn HostProgram>, WorkloadError> {
    let [vertices, degree, heaviest, block] =
        ["vertices", "degree", "heaviest", "block"].map(|name| parameters.small(name));
    let graph = Graph::random(vertices, degree, heaviest, parameters.integer("seed"));
    let (expected, rounds) = graph.distances();
    let first: Vec<u32> = (0..vertices).map(|vertex| vertex * degree).collect();

    let mut script = Script::default();
    let [first_edges, sources, weights] =
        [&first, &graph.sources, &graph.weights].map(|values| script.allocate_with(values));
    let bytes = u64::from(vertices) * 4;
    let (mut now, mut next) = (script.allocate(bytes), script.allocate(bytes));
    let changed = script.allocate(4);
    let shape = Shape::linear(vertices.div_ceil(block), block);
    let (count, edges) = (Argument::U32(vertices), Argument::U32(vertices * degree));
    let mut comparisons = Comparisons::default();
    script.launch("sssp_initialise", shape, &[Argument::Buffer(now), count]);
    for round in 1..=rounds {
        script.fill(changed, 0, 4, Queue::Default);
        let [first_edges, sources, weights, from, to, flag] =
            [first_edges, sources, weights, now, next, changed].map(Argument::Buffer);
        script.launch("sssp_relax", shape, &[first_edges, sources, weights, from, to, flag, count, edges]);
        let flag = script.download(changed, 4, Queue::Default);
        comparisons.add(flag, &format!("whether round {round} changes a distance"), vec![u32::from(round < rounds)]);
        std::mem::swap(&mut now, &mut next);
    }
    let result = script.download(now, bytes, Queue::Default);
    comparisons.add(result, "the distance of vertex", expected);
    for buffer in [first_edges, sources, weights, now, next, changed] {
        script.release(buffer);
    }
    script.finish(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances satisfy their definition: no edge makes a way shorter, and to each vertex but the first an edge leads that
    /// makes it as short as it is.
    #[test]
    fn distances_are_shortest() {
        let graph = Graph::random(500, 3, 20, 5);
        let (distances, rounds) = graph.distances();
        assert_eq!(distances[0], 0);
        for (vertex, distance) in distances.iter().enumerate().skip(1) {
            let edges = 3 * vertex..3 * vertex + 3;
            let shortest = edges.map(|edge| distances[graph.sources[edge] as usize] + graph.weights[edge]).min();
            assert_eq!(shortest, Some(*distance), "vertex {vertex}");
        }
        assert!(rounds > 5, "{rounds}");
    }
}
