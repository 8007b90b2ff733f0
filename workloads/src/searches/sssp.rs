//! `sssp`: shortest paths from one vertex, by rounds from the vertices whose ways have become shorter.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::integers;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

/// Distance of a vertex to which no way is known.
const UNREACHED: u32 = u32::MAX;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "sssp",
    summary: "shortest paths over a random graph with weights: rounds from a frontier, at which the host looks now and then",
    parameters: &[
        integer("vertices", 1 << 20, 1, 1 << 24, "vertices of the graph"),
        integer("degree", 2, 1, 64, "edges that leave each vertex"),
        integer("heaviest", 4, 1, 1000, "greatest weight of an edge; the least is 1"),
        integer("rounds", 15, 1, 100_000, "rounds at most; without a limit, they end when the frontier is empty"),
        integer("between", 5, 1, 100_000, "rounds after which the host looks whether the frontier is empty"),
        integer("block", 256, 1, 1024, "threads of a block"),
        SEED,
    ],
    code: code!("sssp"),
    cubins: cubins!("sssp"),
    small: "vertices=500,degree=3,rounds=60,block=64",
    build,
};

/// A directed graph: the edges that leave vertex v are those from `v * degree` to `(v + 1) * degree`.
struct Graph {
    targets: Vec<u32>,
    weights: Vec<u32>,
    degree: usize,
}

impl Graph {
    /// Edges to anywhere.
    fn random(vertices: u32, degree: u32, heaviest: u32, seed: u64) -> Self {
        let scale = |bits: u32, limit: u32| ((u64::from(bits) * u64::from(limit)) >> 32) as u32;
        let edges = vertices as usize * degree as usize;
        Graph {
            targets: integers(seed, 0, edges).into_iter().map(|bits| scale(bits, vertices)).collect(),
            weights: integers(seed, 1, edges).into_iter().map(|bits| 1 + scale(bits, heaviest)).collect(),
            degree: degree as usize,
        }
    }

    /// The edges that leave a vertex: where they lead, and their weights.
    fn edges(&self, vertex: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let edges = vertex * self.degree..(vertex + 1) * self.degree;
        edges.map(|edge| (self.targets[edge] as usize, self.weights[edge]))
    }
}

/// A search from vertex 0.
struct Search {
    distances: Vec<u32>,
    /// Vertices whose ways have become shorter in the last round.
    frontier: Vec<usize>,
}

impl Search {
    fn new(vertices: usize) -> Self {
        let mut distances = vec![UNREACHED; vertices];
        distances[0] = 0;
        Search { distances, frontier: vec![0] }
    }

    fn round(&mut self, graph: &Graph) {
        let offers = self
            .frontier
            .iter()
            .flat_map(|vertex| graph.edges(*vertex).map(|(target, weight)| (target, self.distances[*vertex] + weight)));
        let offers: Vec<_> = offers.collect();
        self.frontier.clear();
        for (target, distance) in offers {
            if distance < self.distances[target] {
                self.distances[target] = distance;
                self.frontier.push(target);
            }
        }
        self.frontier.sort_unstable();
        self.frontier.dedup();
    }

    /// The frontier as the kernels know it: a byte for each vertex.
    fn flags(&self) -> Vec<u8> {
        let mut flags = vec![0; self.distances.len()];
        for vertex in &self.frontier {
            flags[*vertex] = 1;
        }
        flags
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [vertices, degree, heaviest, rounds, between, block] =
        ["vertices", "degree", "heaviest", "rounds", "between", "block"].map(|name| parameters.small(name));
    let graph = Graph::random(vertices, degree, heaviest, parameters.integer("seed"));
    let first: Vec<u32> = (0..vertices).map(|vertex| vertex * degree).collect();

    let mut script = Script::default();
    let [first_edges, targets, weights] =
        [&first, &graph.targets, &graph.weights].map(|values| script.allocate_with(values));
    let bytes = u64::from(vertices) * 4;
    let (distances, offers) = (script.allocate(bytes), script.allocate(bytes));
    let frontier = script.allocate_on_device(u64::from(vertices));
    let shape = Shape::linear(vertices.div_ceil(block), block);
    let (count, edges) = (Argument::U32(vertices), Argument::U32(vertices * degree));
    let [first_in, targets_in, weights_in, frontier_in, distances_in, offers_in] =
        [first_edges, targets, weights, frontier, distances, offers].map(Argument::Buffer);
    let mut comparisons = Comparisons::default();
    let mut search = Search::new(vertices as usize);
    script.launch("sssp_initialise", shape, &[frontier_in, distances_in, offers_in, count]);
    for round in 0..rounds {
        if round % between == 0 {
            let flags = script.download(frontier, u64::from(vertices), Queue::Default);
            comparisons.add(flags, &format!("round {round}: whether the frontier has vertex"), search.flags());
            if search.frontier.is_empty() {
                break;
            }
        }
        let offer = [first_in, targets_in, weights_in, frontier_in, distances_in, offers_in, count, edges];
        script.launch("sssp_offer", shape, &offer);
        script.launch("sssp_settle", shape, &[frontier_in, distances_in, offers_in, count]);
        search.round(&graph);
    }
    let result = script.download(distances, bytes, Queue::Default);
    comparisons.add(result, "the distance of vertex", search.distances);
    for buffer in [first_edges, targets, weights, distances, offers, frontier] {
        script.release(buffer);
    }
    script.finish(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances satisfy their definition: no edge makes a way shorter, and to each vertex but the first that is reached an edge leads that
    /// makes it as short as it is.
    #[test]
    fn distances_are_shortest() {
        let graph = Graph::random(500, 3, 20, 5);
        let mut search = Search::new(500);
        let mut rounds = 0;
        while !search.frontier.is_empty() {
            search.round(&graph);
            rounds += 1;
        }
        let mut shortest = vec![UNREACHED; 500];
        shortest[0] = 0;
        for vertex in 0..500 {
            if search.distances[vertex] == UNREACHED {
                continue;
            }
            for (target, weight) in graph.edges(vertex) {
                shortest[target] = shortest[target].min(search.distances[vertex] + weight);
            }
        }
        assert_eq!(search.distances, shortest);
        let reached = shortest.iter().filter(|distance| **distance != UNREACHED).count();
        assert!(rounds > 5 && reached > 400, "{rounds} rounds, {reached} vertices");
    }
}
