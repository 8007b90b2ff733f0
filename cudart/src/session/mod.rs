//! What all functions of the runtime and the driver share: the process, its threads, the tunnel to the simulator, handles, code,
//! memory that host and devices share, and how operations get into streams.

pub mod api;
pub mod array;
pub mod callbacks;
pub mod capture;
pub mod code;
pub mod connection;
pub mod context;
pub mod copy_parameters;
pub mod device;
pub mod devices;
pub mod event;
pub mod graph;
pub mod handles;
pub mod host_memory;
pub mod image;
pub mod managed;
pub mod memory;
pub mod module;
pub mod operation;
pub mod pages;
pub mod pointer;
pub mod pool;
pub mod printed;
pub mod procedure;
pub mod process;
pub mod ranges;
pub mod registry;
pub mod staging;
pub mod standstill;
pub mod stream;
pub mod texture;
pub mod texture_reference;
pub mod thread;
pub mod transfers;
