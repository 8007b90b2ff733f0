//! Arrays, textures and surfaces, as a host program describes them to the CUDA runtime.

use balar_protocol::texture::{AddressMode, ChannelKind};
use serde::{Deserialize, Serialize};

/// How a texel is stored (`cudaChannelFormatDesc` with channels of one width).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelFormat {
    /// Channels: 1, 2 or 4.
    pub channels: u8,
    /// Bits of each: 8, 16 or 32.
    pub bits: u8,
    /// Their type.
    pub kind: ChannelKind,
}

impl ChannelFormat {
    /// Bytes of a texel.
    pub fn bytes(self) -> u64 {
        u64::from(self.channels) * u64::from(self.bits / 8)
    }
}

/// A CUDA array (`cudaMalloc3DArray`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrayDescription {
    /// How a texel is stored.
    pub format: ChannelFormat,
    /// Texels in x, y, z; 0 where the array has no such dimension, as the CUDA runtime has it.
    pub extent: [u32; 3],
    /// Layers; 0 of an array without layers, 6 for each cube of a cubemap.
    pub layers: u32,
}

impl ArrayDescription {
    /// Bytes of all texels.
    pub fn bytes(&self) -> u64 {
        let [x, y, z] = self.extent.map(|extent| u64::from(extent.max(1)));
        let texels = [x, y, z, u64::from(self.layers.max(1)), self.format.bytes()];
        texels.into_iter().try_fold(1u64, u64::checked_mul).unwrap_or(u64::MAX)
    }
}

/// The memory that a texture reads (`cudaResourceDesc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resource {
    /// An array, by the number that its creation gave.
    Array(u64),
    /// Linear memory, for whole coordinates in one dimension.
    Linear {
        /// Device address of the first texel.
        pointer: u64,
        /// Bytes of all texels.
        bytes: u64,
        /// How a texel is stored.
        format: ChannelFormat,
    },
    /// Rows of linear memory.
    Pitch2D {
        /// Device address of the first texel.
        pointer: u64,
        /// Texels of a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Bytes from a row to the next.
        pitch: u64,
        /// How a texel is stored.
        format: ChannelFormat,
    },
}

/// How a texture is read (`cudaTextureDesc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextureDescription {
    /// In x, y, z.
    pub addressing: [AddressMode; 3],
    /// Whether texels are interpolated (`cudaFilterModeLinear`); only for textures that are read as floats.
    pub is_linear: bool,
    /// Whether coordinates go from 0 to 1 over the texture.
    pub is_normalized: bool,
    /// Whether integers of 8 and 16 bits are read as floats (`cudaReadModeNormalizedFloat`).
    pub reads_normalized_floats: bool,
    /// The value outside of the texture in mode `Border`.
    pub border: [f32; 4],
}
