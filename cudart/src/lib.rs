//! The CUDA libraries that unmodified programs load in place of NVIDIA's: the runtime (`cuda*`), the driver (`cu*`), the management
//! library (`nvml*`) and two functions of NVRTC.
//!
//! | module | what it holds |
//! |---|---|
//! | [`abi`] | the binary interface: structures and numbers of NVIDIA's headers, how C passes arguments, the names that the libraries export |
//! | [`session`] | the functions that both APIs share: the connection to the simulator, threads, contexts, devices, memory, streams, events, capture, graphs, registered and loaded code |
//! | [`runtime`], [`driver`] | the exported functions: each reads its arguments, calls the session, and converts the error to a code of its API |
//! | [`cupti`] | the profiling library: a program's work, with its times |
//! | [`device_files`] | the sign that there is a GPU, for programs that look for its files |
//! | [`nvml`] | the management library: questions of tools about the node |
//! | [`nvrtc`] | NVRTC's answer to programs that ask it for machine code |
//! | [`nvtx`] | the ranges that programs name |
//! | [`mod@unimplemented`] | the function behind all other names |
//! | [`stub_library`] | the small libraries that lead from NVIDIA's names to these functions; the simulator writes them before a run |
//!
//! Imports point one way: `abi` <- `session` <- `runtime`, `driver`, `nvml`, `cupti`, `nvrtc` and `nvtx` <- `unimplemented`; `stub_library` knows `abi` alone,
//! and `device_files` nothing.
//! The runtime and the driver do not name each other (`tests/layers.rs` checks all this).

pub mod abi;
pub mod cupti;
pub mod device_files;
pub mod driver;
pub mod nvml;
pub mod nvrtc;
pub mod nvtx;
pub mod runtime;
pub mod session;
pub mod stub_library;
pub mod unimplemented;
