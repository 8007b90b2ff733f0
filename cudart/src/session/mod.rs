//! What both APIs are made of, as functions that return `Result<_, CudaError>`: the process and its threads, the connection to the
//! simulator, handles, contexts and devices, memory, streams and what they do, capture, graphs, registered and loaded code.
//!
//! It knows neither the runtime nor the driver, and no error code but [`CudaError`](balar_host::CudaError).

pub mod accesses;
pub mod activity;
pub mod api;
pub mod archive;
pub mod array;
pub mod batch;
pub mod callbacks;
pub mod capture;
pub mod code;
pub mod connection;
pub mod context;
pub mod context_storage;
pub mod copy_parameters;
pub mod device;
pub mod devices;
pub mod event;
pub mod fill;
pub mod function;
pub mod graph;
pub mod handles;
pub mod host_memory;
pub mod image;
pub mod ipc;
pub mod launch;
pub mod managed;
pub mod management;
pub mod memory;
pub mod module;
pub mod named_ranges;
pub mod occupancy;
pub mod operation;
pub mod pages;
pub mod pointer;
pub mod pool;
mod posting;
pub mod printed;
pub mod procedure;
pub mod process;
pub mod profiler;
pub mod ranges;
pub mod registry;
pub mod staging;
pub mod standstill;
pub mod stream;
pub mod texture;
pub mod texture_reference;
pub mod thread;
pub mod transfers;
