//! The binary interface of NVIDIA's libraries: the structures and numbers of their headers, how C passes arguments, and the names
//! that the libraries export. Nothing here has a state or calls anything.

pub mod arguments;
pub mod array;
pub mod capture;
pub mod copy;
pub mod cupti;
pub mod device_attribute;
pub mod device_properties;
pub mod driver;
pub mod exports;
pub mod function;
pub mod graph;
pub mod ipc;
pub mod jit;
pub mod launch;
#[cfg(test)]
pub(crate) mod layout;
pub mod lists;
pub mod nvml;
pub mod nvtx;
pub mod pointer;
pub mod pool;
pub mod stream;
pub mod texture;
