//! Texture and surface objects.

use crate::abi::array::{ChannelFormatDesc, array_flags};
use crate::abi::texture::{ResourceDesc, ResourceViewDesc, TextureDesc, TextureDescV2, resource_type};
use crate::session::addresses::ranges::{self, Residence};
use crate::session::arrays::array::{self, LARGEST_LINEAR, format_of, level};
use crate::session::connection;
use crate::session::state::thread;
use balar_host::{AddressMode, Call, CallResult, CudaError, Resource, TextureDescription};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An object as the program described it.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// The memory that it reads.
    pub resource: ResourceDesc,
    /// How it reads.
    pub texture: TextureDescV2,
    /// The view of the memory that it shows.
    pub view: Option<ResourceViewDesc>,
    is_surface: bool,
    device: u32,
}

/// Objects, by the handle that kernels take.
static OBJECTS: Mutex<BTreeMap<u64, Object>> = Mutex::new(BTreeMap::new());

fn objects() -> MutexGuard<'static, BTreeMap<u64, Object>> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The texture object with this handle.
pub fn texture(handle: u64) -> Result<Object, CudaError> {
    object(handle, false)
}

/// The surface object with this handle.
pub fn surface(handle: u64) -> Result<Object, CudaError> {
    object(handle, true)
}

fn object(handle: u64, is_surface: bool) -> Result<Object, CudaError> {
    objects().get(&handle).copied().filter(|object| object.is_surface == is_surface).ok_or(CudaError::InvalidValue)
}

/// The devices' address of memory that a texture reads.
pub fn memory(address: u64) -> Result<u64, CudaError> {
    match ranges::residence(address, 1) {
        Residence::Device(_) => Ok(address),
        Residence::Pinned(address) | Residence::Managed(address) => Ok(address),
        Residence::Pageable => Err(CudaError::InvalidValue),
    }
}

/// The memory that a texture reads, as calls describe it, and whether integers are always read as normalised floats.
fn resource_of(resource: &ResourceDesc) -> Result<(Resource, ChannelFormatDesc, bool), CudaError> {
    match resource.kind {
        resource_type::ARRAY | resource_type::MIPMAPPED_ARRAY => {
            let is_mipmapped = resource.kind == resource_type::MIPMAPPED_ARRAY;
            let handle = if is_mipmapped { level(resource.object)? } else { resource.object };
            let array = array::get(handle).map_err(|_| CudaError::InvalidValue)?;
            let (_, is_normalized) = format_of(array.format)?;
            Ok((Resource::Array(array.number), array.format, is_normalized))
        }
        resource_type::LINEAR => {
            let (format, is_normalized) = format_of(resource.format)?;
            let bytes = resource.size_or_width;
            if bytes == 0 || bytes / format.bytes() > LARGEST_LINEAR {
                return Err(CudaError::InvalidValue);
            }
            let pointer = memory(resource.object)?;
            Ok((Resource::Linear { pointer, bytes, format }, resource.format, is_normalized))
        }
        resource_type::PITCH_2D => {
            let (format, is_normalized) = format_of(resource.format)?;
            let extent = |extent: u64| u32::try_from(extent).ok().filter(|extent| *extent > 0);
            let (Some(width), Some(height)) = (extent(resource.size_or_width), extent(resource.height)) else {
                return Err(CudaError::InvalidValue);
            };
            let pointer = memory(resource.object)?;
            let pitch = resource.pitch;
            Ok((Resource::Pitch2D { pointer, width, height, pitch, format }, resource.format, is_normalized))
        }
        _ => Err(CudaError::InvalidValue),
    }
}

/// An address mode with C's number.
pub fn address_mode(code: u32) -> Result<AddressMode, CudaError> {
    match code {
        0 => Ok(AddressMode::Wrap),
        1 => Ok(AddressMode::Clamp),
        2 => Ok(AddressMode::Mirror),
        3 => Ok(AddressMode::Border),
        _ => Err(CudaError::InvalidValue),
    }
}

/// How a texture is read, as calls describe it.
fn description_of(
    texture: &TextureDesc,
    format: ChannelFormatDesc,
    is_normalized_format: bool,
) -> Result<TextureDescription, CudaError> {
    // The simulator's textures have no sRGB conversion, anisotropic filtering or mipmap levels.
    if texture.srgb != 0 || texture.filter_mode > 1 || texture.read_mode > 1 {
        return Err(if texture.srgb != 0 { CudaError::NotSupported } else { CudaError::InvalidValue });
    }
    let addressing = texture.address_mode.map(address_mode);
    let description = TextureDescription {
        addressing: [addressing[0]?, addressing[1]?, addressing[2]?],
        is_linear: texture.filter_mode == 1,
        is_normalized: texture.normalized_coordinates != 0,
        reads_normalized_floats: texture.read_mode == 1 || is_normalized_format,
        border: texture.border_color,
    };
    check(format, &description)?;
    Ok(description)
}

/// Refuses ways of reading that texels of this format do not support.
pub fn check(format: ChannelFormatDesc, description: &TextureDescription) -> Result<(), CudaError> {
    let (format, _) = format_of(format)?;
    let is_float = format.kind == balar_host::ChannelKind::Float;
    let is_normalized = description.reads_normalized_floats && !is_float;
    if is_normalized && format.bits == 32 {
        return Err(CudaError::InvalidNormSetting);
    }
    if description.is_linear && !is_float && !is_normalized {
        return Err(CudaError::InvalidFilterSetting);
    }
    Ok(())
}

/// Refuses a view that reinterprets its resource.
fn check_view(resource: &ResourceDesc, view: &ResourceViewDesc) -> Result<(), CudaError> {
    if !matches!(resource.kind, resource_type::ARRAY | resource_type::MIPMAPPED_ARRAY) {
        return Err(CudaError::InvalidValue);
    }
    let handle =
        if resource.kind == resource_type::MIPMAPPED_ARRAY { level(resource.object)? } else { resource.object };
    let array = array::get(handle).map_err(|_| CudaError::InvalidValue)?;
    let is_same =
        (view.width, view.height, view.depth) == (array.extent.width, array.extent.height, array.extent.depth);
    let layers = array.description.layers.saturating_sub(1);
    let is_all = view.first_mipmap_level == 0
        && view.last_mipmap_level == 0
        && view.first_layer == 0
        && (view.last_layer == layers || view.last_layer == 0 && layers == 0);
    let is_format = view.format == 0 || view.format == view_format(array.format)?;
    if is_same && is_all && is_format { Ok(()) } else { Err(CudaError::NotSupported) }
}

/// `cudaResourceViewFormat` that shows texels as they are: 1 to 18 are the formats in the order of bits, signs and channels.
fn view_format(format: ChannelFormatDesc) -> Result<u32, CudaError> {
    let (format, _) = format_of(format)?;
    let channels = match format.channels {
        1 => 0,
        2 => 1,
        _ => 2,
    };
    let group = match (format.kind, format.bits) {
        (balar_host::ChannelKind::Unsigned, 8) => 0,
        (balar_host::ChannelKind::Signed, 8) => 1,
        (balar_host::ChannelKind::Unsigned, 16) => 2,
        (balar_host::ChannelKind::Signed, 16) => 3,
        (balar_host::ChannelKind::Unsigned, _) => 4,
        (balar_host::ChannelKind::Signed, _) => 5,
        (balar_host::ChannelKind::Float, 16) => 6,
        (balar_host::ChannelKind::Float, _) => 7,
    };
    Ok(1 + 3 * group + channels)
}

/// Makes a texture object on the current device.
pub fn create_texture(
    resource: ResourceDesc,
    texture: TextureDescV2,
    view: Option<ResourceViewDesc>,
) -> Result<u64, CudaError> {
    let (call_resource, format, is_normalized) = resource_of(&resource)?;
    if let Some(view) = &view {
        check_view(&resource, view)?;
    }
    let description = description_of(&texture.base, format, is_normalized)?;
    create(&Call::TextureCreate { resource: call_resource, description }, resource, texture, view, false)
}

fn create(
    call: &Call,
    resource: ResourceDesc,
    texture: TextureDescV2,
    view: Option<ResourceViewDesc>,
    is_surface: bool,
) -> Result<u64, CudaError> {
    let device = thread::device();
    let CallResult::Object(handle) = connection::call_on(device, call)? else { return Err(CudaError::Unknown) };
    objects().insert(handle, Object { resource, texture, view, is_surface, device });
    Ok(handle)
}

/// Makes a surface object on the current device.
pub fn create_surface(resource: ResourceDesc) -> Result<u64, CudaError> {
    if resource.kind != resource_type::ARRAY {
        return Err(CudaError::InvalidValue);
    }
    let array = array::get(resource.object).map_err(|_| CudaError::InvalidValue)?;
    if array.flags & array_flags::SURFACE_LOAD_STORE == 0 {
        return Err(CudaError::InvalidValue);
    }
    create(&Call::SurfaceCreate { array: array.number }, resource, TextureDescV2::default(), None, true)
}

/// Ends a texture object.
pub fn destroy_texture(handle: u64) -> Result<(), CudaError> {
    destroy(handle, false)
}

/// Ends a surface object.
pub fn destroy_surface(handle: u64) -> Result<(), CudaError> {
    destroy(handle, true)
}

fn destroy(handle: u64, is_surface: bool) -> Result<(), CudaError> {
    if handle == 0 {
        return Ok(());
    }
    let object = object(handle, is_surface)?;
    objects().remove(&handle);
    connection::call_on(object.device, &Call::ImageDestroy { object: handle }).map(|_| ())
}

/// Forgets the objects of a device that has been reset.
pub fn forget_device(device: u32) {
    objects().retain(|_, object| object.device != device);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_are_blended_as_floats_alone() {
        let bytes = ChannelFormatDesc { bits: [8, 0, 0, 0], kind: 1 };
        let words = ChannelFormatDesc { bits: [32, 0, 0, 0], kind: 1 };
        let texture = TextureDesc { filter_mode: 1, ..TextureDesc::default() };
        assert_eq!(description_of(&texture, bytes, false), Err(CudaError::InvalidFilterSetting));
        let normalized = TextureDesc { read_mode: 1, ..texture };
        assert!(description_of(&normalized, bytes, false).is_ok());
        assert!(description_of(&texture, bytes, true).is_ok());
        assert_eq!(description_of(&normalized, words, false), Err(CudaError::InvalidNormSetting));
        let wrong = TextureDesc { address_mode: [4, 0, 0], ..TextureDesc::default() };
        assert_eq!(description_of(&wrong, bytes, false), Err(CudaError::InvalidValue));
    }

    #[test]
    fn view_formats_follow_the_headers() {
        // cudaResViewFormatUnsignedChar1 = 1, SignedShort4 = 12, Half2 = 20, Float4 = 24.
        let format = |bits: [i32; 4], kind| view_format(ChannelFormatDesc { bits, kind });
        assert_eq!(format([8, 0, 0, 0], 1), Ok(1));
        assert_eq!(format([16; 4], 0), Ok(12));
        assert_eq!(format([16, 16, 0, 0], 2), Ok(20));
        assert_eq!(format([32; 4], 2), Ok(24));
    }
}
