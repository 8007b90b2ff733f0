//! Arrays and how their elements are stored.

use crate::abi::array::{ArrayMemoryRequirements, ChannelFormatDesc, array_flags, channel_kind};
use crate::abi::copy::{Extent, Position};
use crate::session::connection::{self, description};
use crate::session::state::handles::{Handles, Kind};
use crate::session::state::{captures, thread};
use balar_host::{ArrayDescription, Call, CallResult, ChannelFormat, ChannelKind, CudaError};
use std::ffi::c_int;

/// Largest extents for GPUs from compute capability 6.0 on: of arrays of one, two and three dimensions, and of layers.
const LARGEST_1D: u64 = 131_072;
const LARGEST_2D: [u64; 2] = [131_072, 65_536];
const LARGEST_3D: u64 = 16_384;
const MOST_LAYERS: u64 = 2048;
/// Most texels of linear memory that a texture has (GPUs from compute capability 7.0 on).
pub const LARGEST_LINEAR: u64 = 1 << 28;

/// Mipmapped arrays. They have one level alone, which is an array by its handle.
static MIPMAPPED: Handles<u64> = Handles::new(Kind::MipmappedArray);

/// An array that the program made.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    /// The simulator's number.
    pub number: u64,
    /// The device that has it.
    pub device: u32,
    /// Its contents.
    pub description: ArrayDescription,
    /// Its elements, as the program described them.
    pub format: ChannelFormatDesc,
    /// Its size, as the program described it.
    pub extent: Extent,
    /// The flags of its creation.
    pub flags: u32,
}

/// The arrays that the program has made.
pub static ARRAYS: Handles<Array> = Handles::new(Kind::Array);

/// The array with this handle.
pub fn get(handle: u64) -> Result<Array, CudaError> {
    ARRAYS.get(handle)
}

/// The handle of the array with the simulator's number.
pub fn handle_of(number: u64) -> Option<u64> {
    ARRAYS.find(|array| array.number == number)
}

impl Array {
    /// Bytes of an element.
    pub fn element_bytes(&self) -> u64 {
        self.description.format.bytes()
    }

    /// Columns, rows and slices or layers.
    pub fn shape(&self) -> [u64; 3] {
        let [x, y, z] = self.description.extent.map(|extent| u64::from(extent.max(1)));
        [x, y, z * u64::from(self.description.layers.max(1))]
    }

    /// Refuses a part of the array, in elements, that it does not have.
    pub fn check_part(&self, position: Position, extent: Extent) -> Result<(), CudaError> {
        let [x, y, z] = self.shape();
        let fits = |first: u64, count: u64, size: u64| first.checked_add(count).is_some_and(|end| end <= size);
        let all = fits(position.x, extent.width, x)
            && fits(position.y, extent.height, y)
            && fits(position.z, extent.depth, z);
        if all { Ok(()) } else { Err(CudaError::InvalidValue) }
    }
}

/// How texels are stored, and whether integers are read as normalised floats whatever a texture says.
pub fn format_of(description: ChannelFormatDesc) -> Result<(ChannelFormat, bool), CudaError> {
    let [x, y, z, w] = description.bits;
    let channels = match (x, y, z, w) {
        (_, 0, 0, 0) => 1,
        (_, _, 0, 0) if x == y => 2,
        (..) if x == y && y == z && z == w => 4,
        _ => return Err(CudaError::InvalidChannelDescriptor),
    };
    let (kind, is_normalized) = match description.kind {
        channel_kind::SIGNED => (ChannelKind::Signed, false),
        channel_kind::UNSIGNED => (ChannelKind::Unsigned, false),
        channel_kind::FLOAT => (ChannelKind::Float, false),
        kind @ channel_kind::UNSIGNED_NORMALIZED_8X1..=channel_kind::SIGNED_NORMALIZED_16X4 => {
            let is_signed = kind >= channel_kind::UNSIGNED_NORMALIZED_8X1 + 6;
            (if is_signed { ChannelKind::Signed } else { ChannelKind::Unsigned }, true)
        }
        _ => return Err(CudaError::InvalidChannelDescriptor),
    };
    let fits = match kind {
        ChannelKind::Float => matches!(x, 16 | 32),
        _ => matches!(x, 8 | 16 | 32),
    };
    if !fits {
        return Err(CudaError::InvalidChannelDescriptor);
    }
    Ok((ChannelFormat { channels, bits: x as u8, kind }, is_normalized))
}

/// An array as calls describe it.
fn description_of(format: ChannelFormatDesc, extent: Extent, flags: u32) -> Result<ArrayDescription, CudaError> {
    const KNOWN: u32 = array_flags::LAYERED
        | array_flags::SURFACE_LOAD_STORE
        | array_flags::CUBEMAP
        | array_flags::TEXTURE_GATHER
        | array_flags::COLOR_ATTACHMENT;
    if flags & (array_flags::SPARSE | array_flags::DEFERRED_MAPPING) != 0 {
        return Err(CudaError::NotSupported);
    }
    let (format, _) = format_of(format)?;
    let Extent { width, height, depth } = extent;
    let is_layered = flags & array_flags::LAYERED != 0;
    let is_cubemap = flags & array_flags::CUBEMAP != 0;
    let largest = match (height, if is_layered || is_cubemap { 0 } else { depth }) {
        (0, 0) => [LARGEST_1D, 0, 0],
        (_, 0) => [LARGEST_2D[0], LARGEST_2D[1], 0],
        _ => [LARGEST_3D; 3],
    };
    let fits = width <= largest[0] && height <= largest[1] && (is_layered || is_cubemap || depth <= largest[2]);
    // An array with slices has rows, unless the slices are layers.
    let is_shape = width > 0 && (is_layered || height > 0 || depth == 0);
    let are_layers = !is_layered || (1..=MOST_LAYERS).contains(&depth);
    let are_faces = !is_cubemap || width == height && if is_layered { depth.is_multiple_of(6) } else { depth == 6 };
    let gathers = flags & array_flags::TEXTURE_GATHER == 0 || height > 0 && (depth == 0 || is_layered);
    if flags & !KNOWN != 0 || !fits || !is_shape || !are_layers || !are_faces || !gathers {
        return Err(CudaError::InvalidValue);
    }
    let (slices, layers) = if is_layered || is_cubemap { (0, depth) } else { (depth, 0) };
    Ok(ArrayDescription { format, extent: [width as u32, height as u32, slices as u32], layers: layers as u32 })
}

/// Makes an array on the current device.
pub fn create(format: ChannelFormatDesc, extent: Extent, flags: u32) -> Result<u64, CudaError> {
    let description = description_of(format, extent, flags)?;
    captures::require_safe()?;
    let device = thread::device();
    let CallResult::Object(number) = connection::call_on(device, &Call::ArrayCreate { description })? else {
        return Err(CudaError::Unknown);
    };
    Ok(ARRAYS.insert(Array { number, device, description, format, extent, flags }))
}

/// Ends an array.
pub fn destroy(handle: u64) -> Result<(), CudaError> {
    if handle == 0 {
        return Ok(());
    }
    captures::require_safe()?;
    let array = ARRAYS.remove(handle).map_err(|_| CudaError::InvalidValue)?;
    connection::call_on(array.device, &Call::ArrayDestroy { array: array.number }).map(|_| ())
}

/// The array that is the only level of a mipmapped one.
pub fn level(mipmapped: u64) -> Result<u64, CudaError> {
    MIPMAPPED.get(mipmapped).map_err(|_| CudaError::InvalidValue)
}

/// Forgets the arrays of a device that has been reset.
pub fn forget_device(device: u32) {
    let ended = ARRAYS.retain(|_, array| array.device != device);
    drop(ended);
    let ended = MIPMAPPED.retain(|_, level| get(*level).is_ok());
    drop(ended);
}

/// The memory of a device that an array needs.
pub fn memory_requirements(handle: u64, device: c_int) -> Result<ArrayMemoryRequirements, CudaError> {
    description::device_of(device)?;
    let array = get(handle).map_err(|_| CudaError::InvalidValue)?;
    Ok(ArrayMemoryRequirements { size: array.description.bytes(), alignment: 512, ..Default::default() })
}

/// Makes a mipmapped array on the current device.
pub fn create_mipmapped(format: ChannelFormatDesc, extent: Extent, levels: u32, flags: u32) -> Result<u64, CudaError> {
    match levels {
        0 => Err(CudaError::InvalidValue),
        1 => Ok(MIPMAPPED.insert(create(format, extent, flags)?)),
        // Textures of the simulator have one level.
        _ => Err(CudaError::NotSupported),
    }
}

/// Ends a mipmapped array.
pub fn destroy_mipmapped(mipmapped: u64) -> Result<(), CudaError> {
    if mipmapped == 0 {
        return Ok(());
    }
    destroy(MIPMAPPED.remove(mipmapped).map_err(|_| CudaError::InvalidValue)?)
}

/// The array of a level of a mipmapped one.
pub fn level_at(mipmapped: u64, index: u32) -> Result<u64, CudaError> {
    let only = level(mipmapped)?;
    if index == 0 { Ok(only) } else { Err(CudaError::InvalidValue) }
}

/// Most elements of this format that a texture of linear memory has.
pub fn largest_linear_texture(format: ChannelFormatDesc, device: c_int) -> Result<u64, CudaError> {
    description::device_of(device)?;
    format_of(format)?;
    Ok(LARGEST_LINEAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(bits: [i32; 4], kind: i32) -> ChannelFormatDesc {
        ChannelFormatDesc { bits, kind }
    }

    #[test]
    fn formats_have_one_two_or_four_equal_channels() {
        let (format, normalized) = format_of(bits([16, 16, 0, 0], channel_kind::FLOAT)).expect("two halves");
        assert_eq!((format.channels, format.bits, format.bytes(), normalized), (2, 16, 4, false));
        let (format, normalized) = format_of(bits([8; 4], 13)).expect("four signed normalised bytes");
        assert_eq!((format.kind, normalized), (ChannelKind::Signed, true));
        for wrong in [[32, 32, 32, 0], [8, 16, 0, 0], [0, 0, 0, 0], [64, 0, 0, 0]] {
            assert_eq!(format_of(bits(wrong, channel_kind::SIGNED)), Err(CudaError::InvalidChannelDescriptor));
        }
        assert_eq!(format_of(bits([8, 0, 0, 0], channel_kind::FLOAT)), Err(CudaError::InvalidChannelDescriptor));
    }

    #[test]
    fn shapes_are_those_that_cuda_has() {
        let texel = bits([32, 0, 0, 0], channel_kind::FLOAT);
        let shape = |width, height, depth, flags| description_of(texel, Extent { width, height, depth }, flags);
        assert_eq!(shape(8, 0, 0, 0).map(|it| (it.extent, it.layers)), Ok(([8, 0, 0], 0)));
        assert_eq!(shape(8, 4, 2, 0).map(|it| (it.extent, it.layers)), Ok(([8, 4, 2], 0)));
        assert_eq!(shape(8, 0, 3, array_flags::LAYERED).map(|it| (it.extent, it.layers)), Ok(([8, 0, 0], 3)));
        assert_eq!(shape(8, 8, 6, array_flags::CUBEMAP).map(|it| (it.extent, it.layers)), Ok(([8, 8, 0], 6)));
        let wrong = [
            shape(0, 4, 0, 0),
            shape(8, 0, 2, 0),
            shape(8, 4, 6, array_flags::CUBEMAP),
            shape(8, 8, 7, array_flags::CUBEMAP | array_flags::LAYERED),
            shape(8, 8, 0, array_flags::LAYERED),
            shape(8, 8, 8, array_flags::TEXTURE_GATHER),
            shape(LARGEST_1D + 1, 0, 0, 0),
        ];
        for (index, wrong) in wrong.into_iter().enumerate() {
            assert_eq!(wrong, Err(CudaError::InvalidValue), "{index}");
        }
    }
}
