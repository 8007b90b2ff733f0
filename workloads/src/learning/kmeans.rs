//! `kmeans`: clusters of points.

use crate::comparison::Comparisons;
use crate::descriptor::{Descriptor, SEED, code, cubins, integer};
use crate::numeric::{uniform_floats, with_fused_multiply_add};
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Queue, Script, ScriptedProgram, Shape};

const BLOCK: u32 = 256;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "kmeans",
    summary: "k-means clustering: the device finds each point's nearest centre, the host moves the centres",
    parameters: &[
        integer("points", 8192, 1, 1 << 22, "points"),
        integer("features", 16, 1, 256, "coordinates of a point"),
        integer("clusters", 5, 1, 256, "clusters, at most as many as points"),
        integer("iterations", 2, 1, 1000, "times that points are assigned and centres moved"),
        SEED,
    ],
    code: code!("kmeans"),
    cubins: cubins!("kmeans"),
    small: "points=700,features=6,clusters=4",
    build,
};

with_fused_multiply_add! {
    /// The nearest centre of each point, with the kernel's order of operations.
    fn assign(points: &[f32], centres: &[f32], features: usize) -> Vec<i32> {
        let nearest = points.chunks_exact(features).map(|point| {
            let (mut best, mut least) = (0, f32::MAX);
            for (cluster, centre) in centres.chunks_exact(features).enumerate() {
                let mut distance = 0.0f32;
                for (coordinate, centre) in point.iter().zip(centre) {
                    let difference = coordinate - centre;
                    distance = difference.mul_add(difference, distance);
                }
                if distance < least {
                    (best, least) = (cluster as i32, distance);
                }
            }
            best
        });
        nearest.collect()
    }
}

/// The means of the clusters; a centre without points stays.
fn moved(points: &[f32], nearest: &[i32], centres: &[f32], features: usize) -> Vec<f32> {
    let mut sums = vec![0.0f32; centres.len()];
    let mut counts = vec![0u32; centres.len() / features];
    for (point, cluster) in points.chunks_exact(features).zip(nearest) {
        counts[*cluster as usize] += 1;
        for (sum, coordinate) in sums[*cluster as usize * features..].iter_mut().zip(point) {
            *sum += coordinate;
        }
    }
    for (index, sum) in sums.iter_mut().enumerate() {
        let count = counts[index / features];
        *sum = if count == 0 { centres[index] } else { *sum / count as f32 };
    }
    sums
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let [count, features, clusters] = ["points", "features", "clusters"].map(|name| parameters.small(name));
    if clusters > count {
        return Err(WorkloadError::Inconsistent {
            workload: DESCRIPTOR.name,
            message: format!("clusters = {clusters} exceeds points = {count}"),
        });
    }
    let width = features as usize;
    let points = uniform_floats(parameters.integer("seed"), 0, count as usize * width);
    // The first points are the first centres.
    let mut centres = points[..clusters as usize * width].to_vec();

    let mut script = Script::default();
    let device_points = script.allocate_with(&points);
    let by_feature = script.allocate(points.len() as u64 * 4);
    let device_centres = script.allocate(centres.len() as u64 * 4);
    let device_nearest = script.allocate(u64::from(count) * 4);
    let shape = Shape::linear(count.div_ceil(BLOCK), BLOCK);
    let [points_in, transposed, centres_in, nearest_out] =
        [device_points, by_feature, device_centres, device_nearest].map(Argument::Buffer);
    let (count_in, features_in, clusters_in) = (Argument::U32(count), Argument::U32(features), Argument::U32(clusters));
    script.launch("kmeans_transpose", shape, &[points_in, transposed, count_in, features_in]);
    let mut comparisons = Comparisons::default();
    for iteration in 0..parameters.small("iterations") {
        script.upload(device_centres, bytemuck::cast_slice(&centres).into(), Queue::Default);
        let arguments = [transposed, centres_in, nearest_out, count_in, features_in, clusters_in];
        script.launch("kmeans_assign", shape, &arguments);
        let transfer = script.download(device_nearest, u64::from(count) * 4, Queue::Default);
        let nearest = assign(&points, &centres, width);
        centres = moved(&points, &nearest, &centres, width);
        comparisons.add(transfer, &format!("iteration {iteration}: the cluster of point"), nearest);
    }
    for buffer in [device_points, by_feature, device_centres, device_nearest] {
        script.release(buffer);
    }
    script.finish(comparisons)
}
