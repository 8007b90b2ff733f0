//! Instructions that reach memory: loads, stores, atomics, textures, copies, and instructions that compute their addresses.

pub(crate) mod address;
pub(crate) mod asynchronous;
pub(crate) mod bulk;
pub(crate) mod elements;
pub(crate) mod memory;
pub(crate) mod tensor_maps;
pub(crate) mod texture;
