//! Texture and surface references of modules, as CUDA before 12 has them: each has a state that functions change one by one.

use super::array::{format, format_of};
use super::module;
use crate::abi::arguments::{In, Out, Text};
use crate::abi::array::{ChannelFormatDesc, channel_kind};
use crate::abi::driver::ArrayDescriptor;
use crate::driver_api;
use crate::runtime::array::format_of as texel_of;
use crate::runtime::texture::{address_mode, check};
use crate::session::api::Outcome;
use crate::session::handles::{Handles, Kind};
use crate::session::ranges::{self, Place};
use crate::session::{array, connection};
use balar_host::call::VariableKind;
use balar_host::{Call, CudaError, Resource, TextureDescription};
use std::ffi::c_int;
use std::sync::Arc;

/// Textures begin at multiples of this: so do allocations, whose offset is 0.
const ALIGNMENT: u64 = 256;
/// `CU_TRSF_READ_AS_INTEGER`.
const READ_AS_INTEGER: u32 = 1;
/// `CU_TRSF_NORMALIZED_COORDINATES`.
const NORMALIZED_COORDINATES: u32 = 2;
/// `CU_TR_ADDRESS_MODE_CLAMP`, which a reference has at first.
const CLAMP: u32 = 1;

/// What a texture reference reads.
#[derive(Clone, Copy, Debug)]
enum Source {
    Nothing,
    /// The handle.
    Array(u64),
    Linear {
        address: u64,
        bytes: u64,
    },
    Rows {
        address: u64,
        width: u32,
        height: u32,
        pitch: u64,
    },
}

/// A texture reference of a module.
#[derive(Clone, Debug)]
struct Reference {
    module: u32,
    device: u32,
    name: Arc<str>,
    source: Source,
    format: (u32, u32),
    address_modes: [u32; 3],
    filter: u32,
    flags: u32,
    border: [f32; 4],
}

/// A surface reference of a module.
#[derive(Clone, Debug)]
struct Surface {
    module: u32,
    device: u32,
    name: Arc<str>,
    array: u64,
}

static TEXTURES: Handles<Reference> = Handles::new(Kind::TextureReference);
static SURFACES: Handles<Surface> = Handles::new(Kind::SurfaceReference);

impl Reference {
    fn elements(&self) -> Result<ChannelFormatDesc, CudaError> {
        match self.source {
            Source::Array(handle) => Ok(array::get(handle)?.format),
            _ => format(self.format.0, self.format.1),
        }
    }

    /// Tells the device what the reference means now; nothing before it reads anything.
    fn bind(&self) -> Outcome {
        if matches!(self.source, Source::Nothing) {
            return Ok(());
        }
        let elements = self.elements()?;
        let (texel, is_normalized_format) = texel_of(elements)?;
        let can_be_normalized =
            matches!(elements.kind, channel_kind::SIGNED | channel_kind::UNSIGNED) && texel.bits < 32;
        let resource = match self.source {
            Source::Nothing => return Ok(()),
            Source::Array(handle) => Resource::Array(array::get(handle)?.number),
            Source::Linear { address: pointer, bytes } => Resource::Linear { pointer, bytes, format: texel },
            Source::Rows { address: pointer, width, height, pitch } => {
                Resource::Pitch2D { pointer, width, height, pitch, format: texel }
            }
        };
        let [x, y, z] = self.address_modes.map(address_mode);
        let description = TextureDescription {
            addressing: [x?, y?, z?],
            is_linear: self.filter == 1,
            is_normalized: self.flags & NORMALIZED_COORDINATES != 0,
            reads_normalized_floats: is_normalized_format || (can_be_normalized && self.flags & READ_AS_INTEGER == 0),
            border: self.border,
        };
        check(elements, &description)?;
        let call = Call::TextureBind { module: self.module, name: self.name.clone(), resource, description };
        connection::call_on(self.device, &call).map(|_| ())
    }
}

/// Changes a texture reference and tells the device.
fn change(handle: u64, change: impl FnOnce(&mut Reference) -> Outcome) -> Outcome {
    let mut reference = TEXTURES.get(handle)?;
    change(&mut reference)?;
    reference.bind()?;
    TEXTURES.with(handle, |known| *known = reference)
}

/// A module has been unloaded: its references are no longer there.
pub(super) fn forget(module: u32) {
    TEXTURES.retain(|_, reference| reference.module != module);
    SURFACES.retain(|_, surface| surface.module != module);
}

/// The device address of memory that a texture reads.
fn memory(address: u64) -> Result<u64, CudaError> {
    match ranges::place(address, 1) {
        Place::Device(_) => Ok(address),
        Place::Pinned(address) | Place::Managed(address) => Ok(address),
        Place::Pageable => Err(CudaError::InvalidValue),
    }
}

fn set_rows(handle: u64, descriptor: In<ArrayDescriptor>, address: u64, pitch: usize) -> Outcome {
    let ArrayDescriptor { width, height, format, channels } = descriptor.get()?;
    let address = memory(address)?;
    let extent = |extent: usize| u32::try_from(extent).ok().filter(|extent| *extent > 0).ok_or(CudaError::InvalidValue);
    let source = Source::Rows { address, width: extent(width)?, height: extent(height)?, pitch: pitch as u64 };
    if !address.is_multiple_of(ALIGNMENT) {
        return Err(CudaError::InvalidValue);
    }
    change(handle, |reference| {
        (reference.source, reference.format) = (source, (format, channels));
        Ok(())
    })
}

driver_api! {
    context fn cuModuleGetTexRef(place: Out<u64>, module: u64, name: Text) {
        place.check()?;
        let (module, device, name) = module::reference(module, &name.get()?, VariableKind::Texture)?;
        let known = TEXTURES.find(|known| known.module == module && known.device == device && known.name == name);
        let new = || Reference {
            module,
            device,
            name: name.clone(),
            source: Source::Nothing,
            // CU_AD_FORMAT_FLOAT, one value.
            format: (0x20, 1),
            address_modes: [CLAMP; 3],
            filter: 0,
            flags: 0,
            border: [0.0; 4],
        };
        place.set(known.unwrap_or_else(|| TEXTURES.insert(new())))
    }

    context fn cuModuleGetSurfRef(place: Out<u64>, module: u64, name: Text) {
        place.check()?;
        let (module, device, name) = module::reference(module, &name.get()?, VariableKind::Surface)?;
        let known = SURFACES.find(|known| known.module == module && known.device == device && known.name == name);
        place.set(known.unwrap_or_else(|| SURFACES.insert(Surface { module, device, name: name.clone(), array: 0 })))
    }

    context fn cuTexRefSetArray(texture: u64, array: u64, _flags: u32) {
        let format = format_of(&array::get(array)?.format);
        change(texture, |reference| {
            (reference.source, reference.format) = (Source::Array(array), format);
            Ok(())
        })
    }

    context fn cuTexRefSetAddress_v2(offset: Out<usize>, texture: u64, address: u64, bytes: usize) {
        let address = memory(address)?;
        let misaligned = address % ALIGNMENT;
        if misaligned != 0 && offset.is_null() {
            return Err(CudaError::InvalidValue);
        }
        let source = Source::Linear { address: address - misaligned, bytes: bytes as u64 + misaligned };
        change(texture, |reference| {
            reference.source = source;
            Ok(())
        })?;
        offset.set_if_wanted(misaligned as usize);
        Ok(())
    }

    context fn cuTexRefSetAddress2D_v2(texture: u64, descriptor: In<ArrayDescriptor>, address: u64, pitch: usize) {
        set_rows(texture, descriptor, address, pitch)
    }

    context fn cuTexRefSetAddress2D_v3(texture: u64, descriptor: In<ArrayDescriptor>, address: u64, pitch: usize) {
        set_rows(texture, descriptor, address, pitch)
    }

    context fn cuTexRefSetFormat(texture: u64, format: u32, channels: c_int) {
        let channels = u32::try_from(channels).map_err(|_| CudaError::InvalidValue)?;
        self::format(format, channels)?;
        change(texture, |reference| {
            reference.format = (format, channels);
            Ok(())
        })
    }

    context fn cuTexRefSetAddressMode(texture: u64, dimension: c_int, mode: u32) {
        address_mode(mode)?;
        change(texture, |reference| {
            let place = usize::try_from(dimension).ok().and_then(|index| reference.address_modes.get_mut(index));
            *place.ok_or(CudaError::InvalidValue)? = mode;
            Ok(())
        })
    }

    context fn cuTexRefSetFilterMode(texture: u64, mode: u32) {
        if mode > 1 {
            return Err(CudaError::InvalidValue);
        }
        change(texture, |reference| {
            reference.filter = mode;
            Ok(())
        })
    }

    context fn cuTexRefSetFlags(texture: u64, flags: u32) {
        change(texture, |reference| {
            reference.flags = flags;
            Ok(())
        })
    }

    context fn cuTexRefSetBorderColor(texture: u64, color: In<[f32; 4]>) {
        let color = color.get()?;
        change(texture, |reference| {
            reference.border = color;
            Ok(())
        })
    }

    context fn cuTexRefSetMaxAnisotropy(texture: u64, _most: u32) {
        // Of mipmapped textures alone.
        TEXTURES.get(texture).map(|_| ())
    }

    context fn cuTexRefGetAddress_v2(place: Out<u64>, texture: u64) {
        match TEXTURES.get(texture)?.source {
            Source::Linear { address, .. } | Source::Rows { address, .. } => place.set(address),
            Source::Nothing | Source::Array(_) => Err(CudaError::InvalidValue),
        }
    }

    context fn cuTexRefGetArray(place: Out<u64>, texture: u64) {
        match TEXTURES.get(texture)?.source {
            Source::Array(array) => place.set(array),
            _ => Err(CudaError::InvalidValue),
        }
    }

    context fn cuTexRefGetAddressMode(place: Out<u32>, texture: u64, dimension: c_int) {
        let modes = TEXTURES.get(texture)?.address_modes;
        let mode = usize::try_from(dimension).ok().and_then(|index| modes.get(index).copied());
        place.set(mode.ok_or(CudaError::InvalidValue)?)
    }

    context fn cuTexRefGetFilterMode(place: Out<u32>, texture: u64) {
        place.set(TEXTURES.get(texture)?.filter)
    }

    context fn cuTexRefGetFlags(place: Out<u32>, texture: u64) {
        place.set(TEXTURES.get(texture)?.flags)
    }

    context fn cuTexRefGetBorderColor(place: Out<[f32; 4]>, texture: u64) {
        place.set(TEXTURES.get(texture)?.border)
    }

    context fn cuTexRefGetFormat(format: Out<u32>, channels: Out<c_int>, texture: u64) {
        let (found, count) = TEXTURES.get(texture)?.format;
        format.set_if_wanted(found);
        channels.set_if_wanted(count as c_int);
        Ok(())
    }

    context fn cuSurfRefSetArray(surface: u64, array: u64, _flags: u32) {
        let Surface { module, device, name, .. } = SURFACES.get(surface)?;
        let number = array::get(array)?.number;
        connection::call_on(device, &Call::SurfaceBind { module, name, array: number })?;
        SURFACES.with(surface, |surface| surface.array = array)
    }

    context fn cuSurfRefGetArray(place: Out<u64>, surface: u64) {
        match SURFACES.get(surface)?.array {
            0 => Err(CudaError::InvalidValue),
            array => place.set(array),
        }
    }
}
