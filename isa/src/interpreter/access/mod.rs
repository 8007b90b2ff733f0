//! What reaches memory: loads, stores, atomics, textures, copies, and what computes addresses for them.

pub(crate) mod address;
pub(crate) mod asynchronous;
pub(crate) mod elements;
pub(crate) mod memory;
pub(crate) mod texture;
