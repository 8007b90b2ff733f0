//! Built-in CUDA workloads: our own CUDA sources, the PTX built from them (`tools/build-workloads`), and the host
//! programs that launch and check them.
//!
//! A host program is the sequence of CUDA calls that a host CPU makes ([`HostProgram`](balar_host::HostProgram)); the simulated host CPU
//! executes it and models the cost of each call. Inputs are drawn from seeded generators; results are compared bit by bit with a host
//! computation, unless the order of operations is not determined.
//!
//! | room | workloads |
//! |---|---|
//! | `linear_algebra` | matrices and vectors: sums, products, decompositions, systems of equations |
//! | `simulations` | fields, bodies and chances: computed step by step over time, or drawn at random |
//! | `images` | images: filtered, cleared of noise, followed from frame to frame |
//! | `searches` | searches in graphs, trees, grids and sequences |
//! | `learning` | clusters of points, and a neural network |
//! | `primitives` | building blocks of other programs: sums, counts, sorting, transforms |
//! | `memory_benchmarks` | measurements of the levels of memory: latency, bandwidth, pages that move |
//! | `arithmetic_benchmarks` | measurements of the functional units: latency and throughput |
//! | `cuda_features` | features of CUDA beyond kernels on arrays: streams, cooperative launches, a heap, output and calls on the device |

mod comparison;
mod descriptor;
mod managed;
mod numeric;
mod parameters;
mod registry;
mod script;

mod arithmetic_benchmarks;
mod cuda_features;
mod images;
mod learning;
mod linear_algebra;
mod memory_benchmarks;
mod primitives;
mod searches;
mod simulations;

pub use descriptor::{Code, Compiler, Cubin, Descriptor};
pub use parameters::{Domain, MEMORY, Parameter, Parameters, Suggestion, Value, WorkloadError};
pub use registry::{find, workloads};
