//! Memory with more than one dimension: textures, and the tensors of bulk copies.

pub mod tensor_map;
pub mod texture;
