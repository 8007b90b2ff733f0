//! Textures and surfaces.

use super::array::ChannelFormatDesc;
use bytemuck::{Pod, Zeroable};

/// `cudaResourceDesc` as CUDA 11 and 12 have it; that of CUDA 13 begins with it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ResourceDesc {
    /// `cudaResourceType`: see [`resource_type`].
    pub kind: u32,
    /// Zero.
    pub padding: u32,
    /// Handle of an array or a mipmapped array, or the address of linear or pitched memory.
    pub object: u64,
    /// The texels of linear and pitched memory.
    pub format: ChannelFormatDesc,
    /// Zero.
    pub padding_after_format: u32,
    /// Bytes of linear memory, texels of a row of pitched memory.
    pub size_or_width: u64,
    /// Rows of pitched memory.
    pub height: u64,
    /// Bytes from a row to the next.
    pub pitch: u64,
}

/// Bytes of `cudaResourceDesc` in CUDA 13, where flags and reserved words follow.
pub const RESOURCE_DESC_BYTES_13: usize = 144;

/// Values of [`ResourceDesc::kind`].
pub mod resource_type {
    /// `cudaResourceTypeArray`.
    pub const ARRAY: u32 = 0;
    /// `cudaResourceTypeMipmappedArray`.
    pub const MIPMAPPED_ARRAY: u32 = 1;
    /// `cudaResourceTypeLinear`.
    pub const LINEAR: u32 = 2;
    /// `cudaResourceTypePitch2D`.
    pub const PITCH_2D: u32 = 3;
}

/// `cudaTextureDesc` as CUDA 11 has it; that of CUDA 12 and 13 (`cudaTextureDesc_v2` in 11.8) begins with it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct TextureDesc {
    /// `cudaTextureAddressMode` in x, y, z.
    pub address_mode: [u32; 3],
    /// `cudaTextureFilterMode`.
    pub filter_mode: u32,
    /// `cudaTextureReadMode`.
    pub read_mode: u32,
    /// Whether texels are converted from sRGB.
    pub srgb: i32,
    /// The value outside of the texture in mode `cudaAddressModeBorder`.
    pub border_color: [f32; 4],
    /// Whether coordinates are normalised.
    pub normalized_coordinates: i32,
    /// The limit of anisotropic filtering.
    pub maximum_anisotropy: u32,
    /// Between the levels of a mipmapped array.
    pub mipmap_filter_mode: u32,
    /// Offset to the level.
    pub mipmap_level_bias: f32,
    /// Lowest level.
    pub minimum_mipmap_level: f32,
    /// Highest level.
    pub maximum_mipmap_level: f32,
    /// Whether the hardware may not take shortcuts between levels.
    pub disable_trilinear_optimization: i32,
}

/// `cudaTextureDesc` of CUDA 12 and 13, `cudaTextureDesc_v2` of CUDA 11.8.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct TextureDescV2 {
    /// The fields of the earlier version.
    pub base: TextureDesc,
    /// Whether cubemaps are filtered across the edges of faces.
    pub seamless_cubemap: i32,
}

/// `cudaResourceViewDesc` as CUDA 11 and 12 have it; 16 reserved words follow in CUDA 13.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct ResourceViewDesc {
    /// `cudaResourceViewFormat`: 0 as the resource says itself.
    pub format: u32,
    /// Zero.
    pub padding: u32,
    /// Texels of a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Slices.
    pub depth: u64,
    /// First level of a mipmapped array.
    pub first_mipmap_level: u32,
    /// Last level.
    pub last_mipmap_level: u32,
    /// First layer of a layered array.
    pub first_layer: u32,
    /// Last layer.
    pub last_layer: u32,
}

/// Bytes of `cudaResourceViewDesc` in CUDA 13.
pub const RESOURCE_VIEW_DESC_BYTES_13: usize = 112;

/// `textureReference` of CUDA 11: the host's side of a program's texture variable.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct TextureReference {
    /// Whether coordinates are normalised.
    pub normalized: i32,
    /// `cudaTextureFilterMode`.
    pub filter_mode: u32,
    /// `cudaTextureAddressMode` in x, y, z.
    pub address_mode: [u32; 3],
    /// How texels are stored.
    pub format: ChannelFormatDesc,
    /// Whether texels are converted from sRGB.
    pub srgb: i32,
    /// The limit of anisotropic filtering.
    pub maximum_anisotropy: u32,
    /// Between the levels of a mipmapped array.
    pub mipmap_filter_mode: u32,
    /// Offset to the level.
    pub mipmap_level_bias: f32,
    /// Lowest level.
    pub minimum_mipmap_level: f32,
    /// Highest level.
    pub maximum_mipmap_level: f32,
    /// Whether the hardware may not take shortcuts between levels.
    pub disable_trilinear_optimization: i32,
    /// Reserved for the runtime.
    pub reserved: [i32; 14],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<ResourceDesc>(64, 8);
        assert_eq!(offset_of!(ResourceDesc, object), 8);
        assert_eq!(offset_of!(ResourceDesc, format), 16);
        assert_eq!(offset_of!(ResourceDesc, size_or_width), 40);
        assert_eq!(offset_of!(ResourceDesc, pitch), 56);
        check::<TextureDesc>(68, 4);
        assert_eq!(offset_of!(TextureDesc, border_color), 24);
        assert_eq!(offset_of!(TextureDesc, normalized_coordinates), 40);
        assert_eq!(offset_of!(TextureDesc, disable_trilinear_optimization), 64);
        check::<TextureDescV2>(72, 4);
        check::<ResourceViewDesc>(48, 8);
        assert_eq!(offset_of!(ResourceViewDesc, width), 8);
        assert_eq!(offset_of!(ResourceViewDesc, last_layer), 44);
        check::<TextureReference>(124, 4);
        assert_eq!(offset_of!(TextureReference, format), 20);
        assert_eq!(offset_of!(TextureReference, srgb), 40);
        assert_eq!(offset_of!(TextureReference, maximum_mipmap_level), 60);
    }
}
