//! The workloads by name.

use crate::descriptor::Descriptor;
use crate::parameters::{Suggestion, WorkloadError};

static WORKLOADS: &[Descriptor] = &[
    crate::linear_algebra::vectoradd::DESCRIPTOR,
    crate::linear_algebra::lud::DESCRIPTOR,
    crate::primitives::reduction::DESCRIPTOR,
    crate::linear_algebra::gemm::DESCRIPTOR,
    crate::simulations::hotspot::DESCRIPTOR,
    crate::cuda_features::concurrent::DESCRIPTOR,
    crate::memory_benchmarks::pointer_chase::DESCRIPTOR,
    crate::memory_benchmarks::stream::DESCRIPTOR,
    crate::memory_benchmarks::shared_chase::DESCRIPTOR,
    crate::arithmetic_benchmarks::alu_latency::DESCRIPTOR,
    crate::primitives::bitonic::DESCRIPTOR,
    crate::simulations::nbody::DESCRIPTOR,
    crate::simulations::stencil3d::DESCRIPTOR,
    crate::simulations::montecarlo::DESCRIPTOR,
    crate::primitives::fft::DESCRIPTOR,
    crate::linear_algebra::tensor_gemm::DESCRIPTOR,
    crate::cuda_features::grid_sync::DESCRIPTOR,
    crate::cuda_features::virtual_dispatch::DESCRIPTOR,
    crate::cuda_features::device_heap::DESCRIPTOR,
    crate::cuda_features::device_print::DESCRIPTOR,
    crate::simulations::shock::DESCRIPTOR,
    crate::searches::bfs::DESCRIPTOR,
    crate::learning::backprop::DESCRIPTOR,
    crate::searches::nw::DESCRIPTOR,
    crate::searches::pathfinder::DESCRIPTOR,
    crate::images::srad::DESCRIPTOR,
    crate::learning::kmeans::DESCRIPTOR,
    crate::searches::nn::DESCRIPTOR,
    crate::learning::clustering::DESCRIPTOR,
    crate::linear_algebra::gaussian::DESCRIPTOR,
    crate::searches::btree::DESCRIPTOR,
    crate::images::tracking::DESCRIPTOR,
    crate::linear_algebra::spmv::DESCRIPTOR,
    crate::linear_algebra::row_walk::DESCRIPTOR,
    crate::primitives::scan::DESCRIPTOR,
    crate::linear_algebra::transpose::DESCRIPTOR,
    crate::primitives::histogram::DESCRIPTOR,
    crate::images::convolution::DESCRIPTOR,
    crate::linear_algebra::atax::DESCRIPTOR,
    crate::simulations::fdtd::DESCRIPTOR,
    crate::memory_benchmarks::random_access::DESCRIPTOR,
    crate::searches::sssp::DESCRIPTOR,
    crate::memory_benchmarks::page_touch::DESCRIPTOR,
    crate::memory_benchmarks::bandwidth::DESCRIPTOR,
    crate::arithmetic_benchmarks::throughput::DESCRIPTOR,
    crate::memory_benchmarks::reuse::DESCRIPTOR,
];

/// All workloads.
pub fn workloads() -> &'static [Descriptor] {
    WORKLOADS
}

/// Lower case, without underscores: `PointerChase` and `pointer_chase` are the same name.
fn normalised(name: &str) -> String {
    name.chars().filter(|character| *character != '_').flat_map(char::to_lowercase).collect()
}

/// The workload of a name. Case and underscores do not matter, so that a topology can write `VectorAdd`.
pub fn find(name: &str) -> Result<&'static Descriptor, WorkloadError> {
    let wanted = normalised(name);
    WORKLOADS.iter().find(|workload| normalised(workload.name) == wanted).ok_or_else(|| {
        WorkloadError::UnknownWorkload {
            name: name.to_owned(),
            suggestion: Suggestion::new(name, WORKLOADS.iter().map(|workload| workload.name)),
        }
    })
}
