//! What textures hold and how they are addressed: for host programs and for instructions.

use serde::{Deserialize, Serialize};

/// What a channel of a texel holds (`cudaChannelFormatKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChannelKind {
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Floats.
    Float,
}

/// What a coordinate outside the texture names (`cudaTextureAddressMode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AddressMode {
    /// The texture repeats. This needs normalised coordinates; others are addressed as by `Clamp`.
    Wrap,
    /// The texel at the edge.
    #[default]
    Clamp,
    /// The texture repeats, mirrored every second time. This needs normalised coordinates; others are addressed as by `Clamp`.
    Mirror,
    /// The border value.
    Border,
}
