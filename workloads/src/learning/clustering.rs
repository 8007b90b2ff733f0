//! `clustering`: which points to make centres of clusters, as a stream of points asks it.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{integers, uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const BLOCK: u32 = 256;
/// The cost of opening a centre.
const OPENING: f64 = 20.0;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "clustering",
    summary: "clustering of a stream of points: what each of several candidates would gain as a further centre",
    parameters: &[
        integer("points", 4096, 1, 1 << 20, "points"),
        integer("dimensions", 32, 1, 256, "coordinates of a point"),
        integer("candidates", 4, 1, 1000, "candidates tried one after the other"),
        SEED,
    ],
    code: code!("clustering"),
    cubins: cubins!("clustering"),
    small: "points=500,dimensions=10,candidates=3",
    build,
};

/// The clustering so far, as the host keeps it.
struct Clustering {
    /// Coordinate d of point p at `d * points + p`.
    coordinates: Vec<f32>,
    weights: Vec<f32>,
    /// Each point's cost: its weighted squared distance from its centre.
    costs: Vec<f32>,
    /// Each point's centre, as an index into the list of centres.
    columns: Vec<i32>,
    centres: Vec<u32>,
}

with_fused_multiply_add! {
    /// The cost for each point to belong to `candidate`, with the kernel's order of operations.
    fn costs_to(clustering: &Clustering, candidate: usize) -> Vec<f32> {
        let points = clustering.weights.len();
        let mut distances = vec![0.0f32; points];
        for coordinates in clustering.coordinates.chunks_exact(points) {
            for (distance, coordinate) in distances.iter_mut().zip(coordinates) {
                let difference = coordinate - coordinates[candidate];
                *distance = difference.mul_add(difference, *distance);
            }
        }
        for (distance, weight) in distances.iter_mut().zip(&clustering.weights) {
            *distance *= weight;
        }
        distances
    }
}

impl Clustering {
    fn new(points: usize, dimensions: usize, seed: u64) -> Self {
        let coordinates = uniform_floats(seed, 0, points * dimensions);
        let weights = integers(seed, 1, points).into_iter().map(|bits| (1 + bits % 4) as f32).collect();
        let mut clustering =
            Clustering { coordinates, weights, costs: Vec::new(), columns: vec![0; points], centres: vec![0] };
        clustering.costs = costs_to(&clustering, 0);
        clustering
    }

    /// The kernel's result for a candidate that costs `costs`: the points that move, and the matrix of savings.
    fn gain(&self, costs: &[f32]) -> (Vec<u8>, Vec<f32>) {
        let width = self.centres.len() + 1;
        let mut moves = vec![0u8; costs.len()];
        let mut savings = vec![0.0f32; costs.len() * width];
        for (point, (cost, present)) in costs.iter().zip(&self.costs).enumerate() {
            let change = cost - present;
            let column = if change < 0.0 { width - 1 } else { self.columns[point] as usize };
            moves[point] = u8::from(change < 0.0);
            savings[point * width + column] = change;
        }
        (moves, savings)
    }

    /// Opens the candidate as a centre, where the savings of the points are worth it. The host closes none.
    fn decide(&mut self, candidate: u32, costs: &[f32], moves: &[u8]) {
        let moving = || moves.iter().enumerate().filter(|(_, moves)| **moves != 0).map(|(point, _)| point);
        let saving: f64 = moving().map(|point| f64::from(self.costs[point]) - f64::from(costs[point])).sum();
        if saving > OPENING {
            for point in moving() {
                self.costs[point] = costs[point];
                self.columns[point] = self.centres.len() as i32;
            }
            self.centres.push(candidate);
        }
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [points, dimensions, candidates] = ["points", "dimensions", "candidates"].map(|name| parameters.small(name));
    let seed = parameters.integer("seed");
    let mut clustering = Clustering::new(points as usize, dimensions as usize, seed);

    let mut script = Script::default();
    let coordinates = script.allocate_with(&clustering.coordinates);
    let weights = script.allocate_with(&clustering.weights);
    let costs = script.allocate(u64::from(points) * 4);
    let columns = script.allocate(u64::from(points) * 4);
    let moves = script.allocate(u64::from(points));
    let mut comparisons = Comparisons::default();
    for (trial, bits) in integers(seed, 2, candidates as usize).into_iter().enumerate() {
        let candidate = bits % points;
        let candidate_costs = costs_to(&clustering, candidate as usize);
        let (expected_moves, expected_savings) = clustering.gain(&candidate_costs);
        let saving_bytes = expected_savings.len() as u64 * 4;

        let savings = script.allocate(saving_bytes);
        script.upload(costs, bytemuck::cast_slice(&clustering.costs).into(), Queue::Default);
        script.upload(columns, bytemuck::cast_slice(&clustering.columns).into(), Queue::Default);
        script.fill(moves, 0, u64::from(points), Queue::Default);
        script.fill(savings, 0, saving_bytes, Queue::Default);
        let arguments = [
            Argument::Buffer(coordinates),
            Argument::Buffer(weights),
            Argument::Buffer(costs),
            Argument::Buffer(columns),
            Argument::Buffer(savings),
            Argument::Buffer(moves),
            Argument::U32(points),
            Argument::U32(dimensions),
            Argument::U32(clustering.centres.len() as u32),
            Argument::U32(candidate),
        ];
        let shape = Shape { shared_memory_bytes: dimensions * 4, ..Shape::linear(points.div_ceil(BLOCK), BLOCK) };
        script.launch("clustering_gain", shape, &arguments);
        let moved = script.download(moves, u64::from(points), Queue::Default);
        let saved = script.download(savings, saving_bytes, Queue::Default);
        script.release(savings);
        clustering.decide(candidate, &candidate_costs, &expected_moves);
        comparisons.add(moved, &format!("candidate {trial}: whether to move point"), expected_moves);
        comparisons.add(saved, &format!("candidate {trial}: the saving"), expected_savings);
    }
    for buffer in [coordinates, weights, costs, columns, moves] {
        script.release(buffer);
    }
    script.finish(comparisons)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new centre takes the points that are nearer to it, and the total cost falls by more than the opening costs.
    #[test]
    fn centres_are_opened_where_they_save() {
        let mut clustering = Clustering::new(300, 4, 5);
        let before: f64 = clustering.costs.iter().map(|cost| f64::from(*cost)).sum();
        let costs = costs_to(&clustering, 17);
        let (moves, _) = clustering.gain(&costs);
        assert_eq!(moves[17], 1);
        clustering.decide(17, &costs, &moves);
        assert_eq!(clustering.centres, [0, 17]);
        assert_eq!((clustering.costs[17], clustering.columns[17]), (0.0, 1));
        let after: f64 = clustering.costs.iter().map(|cost| f64::from(*cost)).sum();
        assert!(before - after > OPENING, "{before} to {after}");
    }
}
