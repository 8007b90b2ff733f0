//! Arrays, mipmapped arrays, textures and surfaces. The session has them as the runtime describes them; the driver describes them
//! otherwise.

use crate::abi::arguments::{In, Out};
use crate::abi::array::{ArrayMemoryRequirements, ChannelFormatDesc, channel_kind};
use crate::abi::copy::Extent;
use crate::abi::driver::{ArrayDescriptor, ArrayDescriptor3D, ResourceDescriptor, ResourceUnion, TextureDescriptor};
use crate::abi::texture::{ResourceDesc, ResourceViewDesc, TextureDesc, TextureDescV2};
use crate::session::api::Outcome;
use crate::session::arrays::{array, texture};
use crate::{driver_api, forwards};
use balar_host::CudaError;
use bytemuck::Zeroable;
use std::ffi::c_int;

/// Formats of one value (`CUarray_format`): the number, the bits, and the runtime's kind.
const FORMATS: [(u32, i32, i32); 8] = [
    (0x01, 8, channel_kind::UNSIGNED),
    (0x02, 16, channel_kind::UNSIGNED),
    (0x03, 32, channel_kind::UNSIGNED),
    (0x08, 8, channel_kind::SIGNED),
    (0x09, 16, channel_kind::SIGNED),
    (0x0a, 32, channel_kind::SIGNED),
    (0x10, 16, channel_kind::FLOAT),
    (0x20, 32, channel_kind::FLOAT),
];
/// `CU_AD_FORMAT_UNORM_INT8X1`, the first of twelve that say their number of values themselves, in the order of the runtime's kinds.
const FIRST_NORMALIZED: u32 = 0xc0;

/// Flags of a texture (`CU_TRSF_*`).
const READ_AS_INTEGER: u32 = 0x01;
const NORMALIZED_COORDINATES: u32 = 0x02;
const SRGB: u32 = 0x10;
const DISABLE_TRILINEAR_OPTIMIZATION: u32 = 0x20;
const SEAMLESS_CUBEMAP: u32 = 0x40;

/// The runtime's description of elements.
pub(super) fn format(format: u32, channels: u32) -> Result<ChannelFormatDesc, CudaError> {
    let bits = |bits: i32, count: u32| {
        let mut all = [0; 4];
        all[..count as usize].fill(bits);
        all
    };
    if let Some(&(_, each, kind)) = FORMATS.iter().find(|(number, ..)| *number == format) {
        if !matches!(channels, 1 | 2 | 4) {
            return Err(CudaError::InvalidValue);
        }
        return Ok(ChannelFormatDesc { bits: bits(each, channels), kind });
    }
    let normalized = format.checked_sub(FIRST_NORMALIZED).filter(|index| *index < 12).ok_or(CudaError::InvalidValue)?;
    let each = if normalized / 3 % 2 == 0 { 8 } else { 16 };
    let count = [1, 2, 4][normalized as usize % 3];
    Ok(ChannelFormatDesc { bits: bits(each, count), kind: channel_kind::UNSIGNED_NORMALIZED_8X1 + normalized as i32 })
}

/// The driver's description of elements: the format, and how many values.
pub(super) fn format_of(description: &ChannelFormatDesc) -> (u32, u32) {
    let channels = description.bits.iter().filter(|bits| **bits > 0).count() as u32;
    let normalized = description.kind - channel_kind::UNSIGNED_NORMALIZED_8X1;
    if (0..12).contains(&normalized) {
        return (FIRST_NORMALIZED + normalized as u32, channels);
    }
    let same = |(_, bits, kind): &&(u32, i32, i32)| *bits == description.bits[0] && *kind == description.kind;
    (FORMATS.iter().find(same).map_or(0, |(number, ..)| *number), channels)
}

fn create(place: Out<u64>, descriptor: &ArrayDescriptor3D) -> Outcome {
    place.check()?;
    if descriptor.width == 0 {
        return Err(CudaError::InvalidValue);
    }
    let format = format(descriptor.format, descriptor.channels)?;
    place.set(array::create(format, extent(descriptor), descriptor.flags)?)
}

fn extent(descriptor: &ArrayDescriptor3D) -> Extent {
    Extent { width: descriptor.width as u64, height: descriptor.height as u64, depth: descriptor.depth as u64 }
}

fn describe(handle: u64) -> Result<ArrayDescriptor3D, CudaError> {
    let array = array::get(handle)?;
    let (format, channels) = format_of(&array.format);
    Ok(ArrayDescriptor3D {
        width: array.extent.width as usize,
        height: array.extent.height as usize,
        depth: array.extent.depth as usize,
        format,
        channels,
        flags: array.flags,
    })
}

/// The runtime's description of the resource of a texture or surface.
fn resource(descriptor: &ResourceDescriptor) -> Result<ResourceDesc, CudaError> {
    const LINEAR: u32 = 2;
    const PITCH_2D: u32 = 3;
    let ResourceDescriptor { kind, resource, .. } = *descriptor;
    let mut result = ResourceDesc { kind, object: resource.first, ..ResourceDesc::zeroed() };
    if kind == LINEAR || kind == PITCH_2D {
        result.format = format(resource.format, resource.channels)?;
        result.size_or_width = resource.width as u64;
        if kind == PITCH_2D {
            (result.height, result.pitch) = (resource.height as u64, resource.pitch as u64);
        }
    }
    Ok(result)
}

/// The runtime's description of how a texture reads.
fn texture_of(descriptor: &TextureDescriptor) -> TextureDescV2 {
    let has = |flag: u32| i32::from(descriptor.flags & flag != 0);
    TextureDescV2 {
        base: TextureDesc {
            address_mode: descriptor.address_modes,
            filter_mode: descriptor.filter,
            // cudaReadModeElementType, or cudaReadModeNormalizedFloat.
            read_mode: u32::from(descriptor.flags & READ_AS_INTEGER == 0),
            srgb: has(SRGB),
            border_color: descriptor.border,
            normalized_coordinates: has(NORMALIZED_COORDINATES),
            maximum_anisotropy: descriptor.anisotropy,
            mipmap_filter_mode: descriptor.mipmap_filter,
            mipmap_level_bias: descriptor.mipmap_bias,
            minimum_mipmap_level: descriptor.mipmap_minimum,
            maximum_mipmap_level: descriptor.mipmap_maximum,
            disable_trilinear_optimization: has(DISABLE_TRILINEAR_OPTIMIZATION),
        },
        seamless_cubemap: has(SEAMLESS_CUBEMAP),
    }
}

/// Whether values of the resource are integers that a texture can give as fractions of 1.
fn can_be_normalized(resource: &ResourceDesc) -> Result<bool, CudaError> {
    const ARRAY: u32 = 0;
    let format = match resource.kind {
        ARRAY => array::get(resource.object)?.format,
        _ => resource.format,
    };
    Ok(matches!(format.kind, channel_kind::SIGNED | channel_kind::UNSIGNED) && matches!(format.bits[0], 8 | 16))
}

fn create_texture(
    object: Out<u64>,
    descriptor: &ResourceDescriptor,
    how: &TextureDescriptor,
    view: In<ResourceViewDesc>,
) -> Outcome {
    let resource = resource(descriptor)?;
    let mut texture = texture_of(how);
    if resource.kind == 1 || !can_be_normalized(&resource)? {
        // Floats are read as they are.
        texture.base.read_mode = 0;
    }
    object.set(texture::create_texture(resource, texture, view.get_if_given())?)
}

/// The driver's description of a resource that the runtime describes.
fn resource_of(described: &ResourceDesc) -> ResourceDescriptor {
    let (format, channels) = format_of(&described.format);
    let mut resource = ResourceUnion::zeroed();
    resource.first = described.object;
    if described.kind >= 2 {
        (resource.format, resource.channels) = (format, channels);
        (resource.width, resource.height) = (described.size_or_width as usize, described.height as usize);
        resource.pitch = described.pitch as usize;
    }
    ResourceDescriptor { kind: described.kind, resource, ..ResourceDescriptor::zeroed() }
}

forwards! {
    context fn cuArrayDestroy(array: u64) => arrays::array::destroy;
    context fn cuMipmappedArrayDestroy(mipmapped: u64) => arrays::array::destroy_mipmapped;
    context fn cuTexObjectDestroy(object: u64) => arrays::texture::destroy_texture;
    context fn cuSurfObjectDestroy(object: u64) => arrays::texture::destroy_surface;
}

driver_api! {
    context fn cuArrayCreate_v2(array: Out<u64>, descriptor: In<ArrayDescriptor>) {
        let ArrayDescriptor { width, height, format, channels } = descriptor.get()?;
        create(array, &ArrayDescriptor3D { width, height, depth: 0, format, channels, flags: 0 })
    }

    context fn cuArray3DCreate_v2(array: Out<u64>, descriptor: In<ArrayDescriptor3D>) {
        create(array, &descriptor.get()?)
    }

    context fn cuArrayGetDescriptor_v2(place: Out<ArrayDescriptor>, array: u64) {
        let ArrayDescriptor3D { width, height, format, channels, .. } = describe(array)?;
        place.set(ArrayDescriptor { width, height, format, channels })
    }

    context fn cuArray3DGetDescriptor_v2(place: Out<ArrayDescriptor3D>, array: u64) {
        place.set(describe(array)?)
    }

    context fn cuMipmappedArrayCreate(mipmapped: Out<u64>, descriptor: In<ArrayDescriptor3D>, levels: u32) {
        let descriptor = descriptor.get()?;
        let format = format(descriptor.format, descriptor.channels)?;
        mipmapped.check()?;
        mipmapped.set(array::create_mipmapped(format, extent(&descriptor), levels, descriptor.flags)?)
    }

    context fn cuMipmappedArrayGetLevel(array: Out<u64>, mipmapped: u64, level: u32) {
        array.check()?;
        array.set(array::level_at(mipmapped, level)?)
    }

    context fn cuArrayGetMemoryRequirements(place: Out<ArrayMemoryRequirements>, array: u64, device: c_int) {
        place.set(array::memory_requirements(array, device)?)
    }

    context fn cuMipmappedArrayGetMemoryRequirements(
        place: Out<ArrayMemoryRequirements>, mipmapped: u64, device: c_int,
    ) {
        place.set(array::memory_requirements(array::level(mipmapped)?, device)?)
    }

    context fn cuTexObjectCreate(
        object: Out<u64>, resource: In<ResourceDescriptor>, texture: In<TextureDescriptor>, view: In<ResourceViewDesc>,
    ) {
        object.check()?;
        create_texture(object, &resource.get()?, &texture.get()?, view)
    }

    context fn cuTexObjectGetResourceDesc(place: Out<ResourceDescriptor>, object: u64) {
        place.set(resource_of(&texture::texture(object)?.resource))
    }

    context fn cuTexObjectGetResourceViewDesc(place: Out<ResourceViewDesc>, object: u64) {
        place.set(texture::texture(object)?.view.ok_or(CudaError::InvalidValue)?)
    }

    context fn cuSurfObjectCreate(object: Out<u64>, resource: In<ResourceDescriptor>) {
        let resource = self::resource(&resource.get()?)?;
        object.check()?;
        object.set(texture::create_surface(resource)?)
    }

    context fn cuSurfObjectGetResourceDesc(place: Out<ResourceDescriptor>, object: u64) {
        place.set(resource_of(&texture::surface(object)?.resource))
    }

    context fn cuDeviceGetTexture1DLinearMaxWidth(elements: Out<usize>, format: u32, channels: u32, device: c_int) {
        let format = self::format(format, channels)?;
        elements.set(array::largest_linear_texture(format, device)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of `CUarray_format` in `cuda.h`, and the `cudaChannelFormatDesc` of the same elements.
    #[test]
    fn formats_are_those_of_the_runtime() {
        let float4 = format(0x20, 4).unwrap();
        assert_eq!((float4.bits, float4.kind), ([32; 4], channel_kind::FLOAT));
        let short2 = format(0x09, 2).unwrap();
        assert_eq!((short2.bits, short2.kind), ([16, 16, 0, 0], channel_kind::SIGNED));
        // CU_AD_FORMAT_SNORM_INT16X4.
        let normalized = format(0xcb, 4).unwrap();
        assert_eq!((normalized.bits, normalized.kind), ([16; 4], channel_kind::SIGNED_NORMALIZED_16X4));
        assert_eq!(format(0x20, 3), Err(CudaError::InvalidValue));
        assert_eq!(format(0x55, 1), Err(CudaError::InvalidValue));
        for (number, ..) in FORMATS {
            assert_eq!(format_of(&format(number, 2).unwrap()), (number, 2));
        }
    }
}
