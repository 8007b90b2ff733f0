//! Built-in CUDA workloads: our own CUDA sources, the PTX built from them (`tools/build-workloads`), and the host
//! programs that launch and check them.
//!
//! A host program is the sequence of CUDA calls that a host CPU makes ([`HostProgram`](balar_host::HostProgram)); the simulated host CPU executes
//! it and models what each call costs. Inputs are drawn from seeded generators; results are compared bit by bit with a
//! host computation, unless the order of operations is not determined.

mod comparison;
mod managed;
mod numeric;
mod parameters;
mod registry;
mod script;

mod alu_latency;
mod atax;
mod backprop;
mod bandwidth;
mod bfs;
mod bitonic;
mod btree;
mod clustering;
mod concurrent;
mod convolution;
mod device_heap;
mod device_print;
mod fdtd;
mod fft;
mod gaussian;
mod gemm;
mod grid_sync;
mod histogram;
mod hotspot;
mod kmeans;
mod lud;
mod montecarlo;
mod nbody;
mod nn;
mod nw;
mod page_touch;
mod pathfinder;
mod pointer_chase;
mod random_access;
mod reduction;
mod reuse;
mod row_walk;
mod scan;
mod shared_chase;
mod shock;
mod spmv;
mod srad;
mod sssp;
mod stencil3d;
mod stream;
mod tensor_gemm;
mod throughput;
mod tracking;
mod transpose;
mod vectoradd;
mod virtual_dispatch;

pub use parameters::{Domain, MEMORY, Parameter, Parameters, Suggestion, Value, WorkloadError};
pub use registry::{Code, Compiler, Cubin, Descriptor, find, workloads};
