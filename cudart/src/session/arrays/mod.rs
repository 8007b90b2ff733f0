//! Arrays, copies of arrays, and textures and surfaces that read them.

pub mod array;
pub mod copy_parameters;
pub mod texture;
