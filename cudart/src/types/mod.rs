//! The structures of NVIDIA's headers.

pub mod array;
pub mod copy;
pub mod driver;
pub mod graph;
#[cfg(test)]
mod layout;
pub mod pool;
pub mod texture;
