//! Texture and surface references of modules, as CUDA before 12 has them: each has a state that functions change one by one.

use crate::abi::array::{ChannelFormatDesc, channel_kind};
use crate::session::arrays::array::{self, format_of};
use crate::session::arrays::texture::{address_mode, check};
use crate::session::code::module;
use crate::session::code::reference_table::{CLAMP, Reference, SURFACES, Source, Surface, TEXTURES};
use crate::session::connection;
use balar_host::call::VariableKind;
use balar_host::{Call, CudaError, Resource, TextureDescription};

/// Textures begin at multiples of this: so do allocations, whose offset is 0.
pub const ALIGNMENT: u64 = 256;

impl Reference {
    /// Tells the device the current meaning of the reference, unless it reads nothing yet.
    fn bind(&self) -> Result<(), CudaError> {
        /// `CU_TRSF_READ_AS_INTEGER`.
        const READ_AS_INTEGER: u32 = 1;
        /// `CU_TRSF_NORMALIZED_COORDINATES`.
        const NORMALIZED_COORDINATES: u32 = 2;
        let elements = match self.source {
            Source::Nothing => return Ok(()),
            Source::Array(handle) => array::get(handle)?.format,
            Source::Linear { .. } | Source::Rows { .. } => self.format,
        };
        let (texel, is_normalized_format) = format_of(elements)?;
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

/// The texture reference of this name in a module.
pub fn of_module(module: u64, name: &str) -> Result<u64, CudaError> {
    let (module, device, name) = module::reference(module, name, VariableKind::Texture)?;
    let known = TEXTURES.find(|known| known.module == module && known.device == device && known.name == name);
    Ok(known.unwrap_or_else(|| {
        TEXTURES.insert(Reference {
            module,
            device,
            name: name.clone(),
            source: Source::Nothing,
            format: ChannelFormatDesc { bits: [32, 0, 0, 0], kind: channel_kind::FLOAT },
            address_modes: [CLAMP; 3],
            filter: 0,
            flags: 0,
            border: [0.0; 4],
        })
    }))
}

/// The texture reference with this handle.
pub fn get(handle: u64) -> Result<Reference, CudaError> {
    TEXTURES.get(handle)
}

/// Changes a texture reference and tells the device.
pub fn change(handle: u64, change: impl FnOnce(&mut Reference) -> Result<(), CudaError>) -> Result<(), CudaError> {
    let mut reference = TEXTURES.get(handle)?;
    change(&mut reference)?;
    reference.bind()?;
    TEXTURES.with(handle, |known| *known = reference)
}

/// The surface reference of this name in a module.
pub fn surface_of_module(module: u64, name: &str) -> Result<u64, CudaError> {
    let (module, device, name) = module::reference(module, name, VariableKind::Surface)?;
    let known = SURFACES.find(|known| known.module == module && known.device == device && known.name == name);
    Ok(known.unwrap_or_else(|| SURFACES.insert(Surface { module, device, name: name.clone(), array: 0 })))
}

/// Binds a surface reference to an array.
pub fn set_surface(surface: u64, array: u64) -> Result<(), CudaError> {
    let Surface { module, device, name, .. } = SURFACES.get(surface)?;
    let number = array::get(array)?.number;
    connection::call_on(device, &Call::SurfaceBind { module, name, array: number })?;
    SURFACES.with(surface, |surface| surface.array = array)
}

/// The array that a surface reference means.
pub fn surface_array(surface: u64) -> Result<u64, CudaError> {
    match SURFACES.get(surface)?.array {
        0 => Err(CudaError::InvalidValue),
        array => Ok(array),
    }
}
