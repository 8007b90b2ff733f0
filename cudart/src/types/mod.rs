//! The structures of NVIDIA's headers.

pub mod array;
pub mod copy;
pub mod device_attribute;
pub mod device_properties;
pub mod driver;
pub mod graph;
pub mod launch;
#[cfg(test)]
pub(crate) mod layout;
pub mod pool;
pub mod texture;
