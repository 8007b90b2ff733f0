//! Arrays, textures and surfaces, as the CUDA driver keeps them.
//!
//! An array lies in device memory row by row, slice by slice, without gaps. Hardware stores texels in an order of its own, in which
//! neighbours in all directions share lines; what a program computes does not depend on it.

use super::{CudaError, HostCpu};
use crate::engine::Outbox;
use balar_host::{ArrayDescription, CallResult, ChannelFormat, Resource, TextureDescription};
use balar_isa::texture::{AddressMode, ChannelKind, Image, Sampler, TexelFormat};
use balar_protocol::SimTime;
use balar_protocol::copy::{CopyOperation, Rows};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Failure = (CudaError, String);

/// Alignment of a texture's first texel and of the pitch of its rows (`cudaDevAttrTextureAlignment`, 512, and
/// `cudaDevAttrTexturePitchAlignment`, 32, of all GPUs simulated).
const ALIGNMENT: u64 = 512;
const PITCH_ALIGNMENT: u64 = 32;

/// The arrays and objects of a context.
#[derive(Debug)]
pub(super) struct Images {
    /// By number: where each lies, and what it is.
    arrays: BTreeMap<u64, (u64, ArrayDescription)>,
    /// Handles of texture and surface objects.
    objects: BTreeSet<u64>,
    next: u64,
}

impl Default for Images {
    fn default() -> Self {
        Images { arrays: BTreeMap::new(), objects: BTreeSet::new(), next: 1 }
    }
}

impl Images {
    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn array(&self, array: u64) -> Result<(u64, ArrayDescription), Failure> {
        let found = self.arrays.get(&array).copied();
        found.ok_or_else(|| (CudaError::InvalidResourceHandle, format!("there is no array {array}")))
    }
}

fn texel_format(format: ChannelFormat) -> Result<TexelFormat, Failure> {
    let kind = match format.kind {
        balar_host::ChannelKind::Signed => ChannelKind::Signed,
        balar_host::ChannelKind::Unsigned => ChannelKind::Unsigned,
        balar_host::ChannelKind::Float => ChannelKind::Float,
    };
    let float_fits = format.kind != balar_host::ChannelKind::Float || format.bits > 8;
    if !matches!(format.channels, 1 | 2 | 4) || !matches!(format.bits, 8 | 16 | 32) || !float_fits {
        let text = format!("{} channels of {} bits, {:?}", format.channels, format.bits, format.kind);
        return Err((CudaError::InvalidChannelDescriptor, format!("no texture has {text}")));
    }
    Ok(TexelFormat { channels: format.channels, bits: format.bits, kind })
}

/// The image of an array, sampled as textures are that say nothing.
fn image_of(base: u64, description: &ArrayDescription) -> Result<Image, Failure> {
    let format = texel_format(description.format)?;
    let extent = description.extent.map(|extent| extent.max(1));
    let row_pitch = u64::from(extent[0]) * u64::from(format.bytes());
    Ok(Image {
        base,
        extent,
        layers: description.layers.max(1),
        row_pitch,
        slice_pitch: row_pitch * u64::from(extent[1]),
        format,
        is_buffer: false,
        sampler: Sampler::default(),
    })
}

fn sampler(image: &Image, description: &TextureDescription) -> Result<Sampler, Failure> {
    let addressing = description.addressing.map(|mode| match mode {
        balar_host::AddressMode::Wrap => AddressMode::Wrap,
        balar_host::AddressMode::Clamp => AddressMode::Clamp,
        balar_host::AddressMode::Mirror => AddressMode::Mirror,
        balar_host::AddressMode::Border => AddressMode::Border,
    });
    let normalizes = description.reads_normalized_floats && image.format.kind != ChannelKind::Float;
    if normalizes && image.format.bits == 32 {
        let text = "integers of 32 bits are not read as normalised floats".to_owned();
        return Err((CudaError::InvalidChannelDescriptor, text));
    }
    let floating = normalizes || image.format.kind == ChannelKind::Float;
    if description.is_linear && (!floating || image.is_buffer) {
        let text = "texels are blended only in arrays and pitched memory that are read as floats".to_owned();
        return Err((CudaError::InvalidFilterSetting, text));
    }
    // Integers have a border of integers.
    let border = description.border.map(|value| if floating { value.to_bits() } else { value as i32 as u32 });
    Ok(Sampler {
        addressing,
        is_linear: description.is_linear,
        is_normalized: description.is_normalized,
        reads_normalized_floats: normalizes,
        border,
    })
}

impl HostCpu {
    pub(super) fn create_array(
        &mut self,
        now: SimTime,
        description: ArrayDescription,
        out: &mut Outbox,
    ) -> Result<CallResult, Failure> {
        texel_format(description.format)?;
        let bytes = description.bytes();
        if description.extent[0] == 0 {
            return Err((CudaError::InvalidValue, "an array without texels".to_owned()));
        }
        let base = self.allocator.allocate(bytes).map_err(|error| (CudaError::MemoryAllocation, error.to_string()))?;
        out.log.map(now, base, bytes);
        let number = self.images.number();
        self.images.arrays.insert(number, (base, description));
        self.counters.device_memory_maximum = self.counters.device_memory_maximum.max(self.allocator.reserved());
        Ok(CallResult::Object(number))
    }

    /// The array is known no more; gives the address of its memory, which ends when the device is idle.
    pub(super) fn destroy_array(&mut self, array: u64) -> Result<u64, Failure> {
        let (base, _) = self.images.array(array)?;
        self.images.arrays.remove(&array);
        Ok(base)
    }

    pub(super) fn write_array(&self, array: u64, data: Arc<[u8]>) -> Result<CopyOperation, Failure> {
        let (destination, description) = self.images.array(array)?;
        if data.len() as u64 != description.bytes() {
            let text = format!("{} bytes for an array of {}", data.len(), description.bytes());
            return Err((CudaError::InvalidValue, text));
        }
        Ok(CopyOperation::HostToDevice { destination: Rows::linear(destination, data.len() as u64), data })
    }

    pub(super) fn read_array(&self, array: u64) -> Result<CopyOperation, Failure> {
        let (source, description) = self.images.array(array)?;
        Ok(CopyOperation::DeviceToHost { source: Rows::linear(source, description.bytes()) })
    }

    fn texture(&self, resource: Resource, description: &TextureDescription) -> Result<Image, Failure> {
        let linear = |pointer: u64, bytes: u64| {
            if self.allocator.contains(pointer, bytes) && pointer.is_multiple_of(ALIGNMENT) {
                return Ok(());
            }
            let text =
                format!("{bytes} bytes at {pointer:#x} are not inside one allocation, at a multiple of {ALIGNMENT}");
            Err((CudaError::InvalidValue, text))
        };
        let mut image = match resource {
            Resource::Array(array) => {
                let (base, description) = self.images.array(array)?;
                image_of(base, &description)?
            }
            Resource::Linear { pointer, bytes, format } => {
                linear(pointer, bytes)?;
                let texels = bytes / format.bytes().max(1);
                let width = u32::try_from(texels)
                    .map_err(|_| (CudaError::InvalidValue, format!("a texture of {texels} texels")))?;
                let description = ArrayDescription { format, extent: [width, 0, 0], layers: 0 };
                Image { is_buffer: true, ..image_of(pointer, &description)? }
            }
            Resource::Pitch2D { pointer, width, height, pitch, format } => {
                let row = u64::from(width) * format.bytes();
                if height == 0 || pitch < row || !pitch.is_multiple_of(PITCH_ALIGNMENT) {
                    let text = format!(
                        "{height} rows of {row} bytes with a pitch of {pitch}, expected a multiple of {PITCH_ALIGNMENT}"
                    );
                    return Err((CudaError::InvalidValue, text));
                }
                linear(pointer, pitch.saturating_mul(u64::from(height) - 1).saturating_add(row))?;
                let description = ArrayDescription { format, extent: [width, height, 0], layers: 0 };
                Image { row_pitch: pitch, ..image_of(pointer, &description)? }
            }
        };
        image.sampler = sampler(&image, description)?;
        Ok(image)
    }

    pub(super) fn create_texture(
        &mut self,
        now: SimTime,
        resource: Resource,
        description: &TextureDescription,
        out: &mut Outbox,
    ) -> Result<CallResult, Failure> {
        let image = self.texture(resource, description)?;
        Ok(self.create_object(now, image, out))
    }

    pub(super) fn create_surface(&mut self, now: SimTime, array: u64, out: &mut Outbox) -> Result<CallResult, Failure> {
        let (base, description) = self.images.array(array)?;
        let image = image_of(base, &description)?;
        Ok(self.create_object(now, image, out))
    }

    fn create_object(&mut self, now: SimTime, image: Image, out: &mut Outbox) -> CallResult {
        let handle = self.images.number();
        self.images.objects.insert(handle);
        out.log.set_image(now, handle, Some(image));
        CallResult::Object(handle)
    }

    pub(super) fn destroy_object(
        &mut self,
        now: SimTime,
        handle: u64,
        out: &mut Outbox,
    ) -> Result<CallResult, Failure> {
        if !self.images.objects.remove(&handle) {
            let text = format!("there is no texture or surface object {handle}");
            return Err((CudaError::InvalidValue, text));
        }
        out.log.set_image(now, handle, None);
        Ok(CallResult::None)
    }

    /// A reference of the module is its own handle: its address.
    fn reference(&self, name: &str) -> Result<u64, Failure> {
        let symbol = self.symbols.find(0, balar_host::call::BUILT_IN_MODULE, name);
        symbol
            .map(|symbol| symbol.address)
            .ok_or_else(|| (CudaError::InvalidSymbol, format!("the module has no variable {name}")))
    }

    pub(super) fn bind_texture(
        &mut self,
        now: SimTime,
        name: &str,
        resource: Resource,
        description: &TextureDescription,
        out: &mut Outbox,
    ) -> Result<CallResult, Failure> {
        let (handle, image) = (self.reference(name)?, self.texture(resource, description)?);
        out.log.set_image(now, handle, Some(image));
        Ok(CallResult::None)
    }

    pub(super) fn bind_surface(
        &mut self,
        now: SimTime,
        name: &str,
        array: u64,
        out: &mut Outbox,
    ) -> Result<CallResult, Failure> {
        let (base, description) = self.images.array(array)?;
        let (handle, image) = (self.reference(name)?, image_of(base, &description)?);
        out.log.set_image(now, handle, Some(image));
        Ok(CallResult::None)
    }
}
