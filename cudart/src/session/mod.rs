//! The functions that both APIs share, which return `Result<_, CudaError>`.
//!
//! | room | holds |
//! |---|---|
//! | [`state`] | the state of the process and its threads, without the functions that use it |
//! | [`connection`] | the tunnels to the simulator, and calls |
//! | [`pages`] | pages of a program that become pages of the host window |
//! | [`accesses`] | the program's own accesses of managed memory, where a node moves its pages |
//! | [`addresses`], [`arrays`] | the owners of addresses, copies; arrays, textures and surfaces |
//! | [`contexts`], [`code`] | contexts; images, modules, kernels |
//! | [`graph`] | graphs |
//! | [`order`] | streams and events, the work that is put into them, capture |
//! | [`memory`], [`devices`] | memory that programs allocate; devices in use |
//! | [`tools`], [`api`] | programs' messages to profilers; how functions of CUDA become exported C functions |
//!
//! It knows neither the runtime nor the driver, and no error code but [`CudaError`](balar_host::CudaError). A file imports files of its own
//! room and of rooms above it in this table; and no two files import each other. The connection tells the accesses of calls by a hook.

pub mod accesses;
pub mod addresses;
pub mod api;
pub mod arrays;
pub mod code;
pub mod connection;
pub mod contexts;
pub mod devices;
pub mod graph;
pub mod memory;
pub mod order;
pub mod pages;
pub mod state;
pub mod tools;
