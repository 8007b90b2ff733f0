//! Programs of their own processes on a simulated node: the tunnel to them, `balar-actors run`, and real CUDA programs.

mod cuda_programs;
mod cuda_toolchain;
mod driver_api;
mod driver_version;
mod hardware;
mod library_programs;
mod library_search;
mod line_information;
mod managed_memory;
mod management_library;
mod mpi_programs;
mod nvtx_ranges;
mod profiling_library;
mod python_programs;
mod run_command;
mod tunnel;
mod tunnel_kill;
