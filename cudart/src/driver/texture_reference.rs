//! Texture and surface references of modules, as CUDA before 12 has them.

use super::array::{format as format_of_runtime, format_of as format_of_driver};
use crate::abi::arguments::{In, Out, Text};
use crate::abi::driver::ArrayDescriptor;
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::arrays::array;
use crate::session::arrays::texture::{self, address_mode};
use crate::session::code::reference_table::Source;
use crate::session::code::texture_reference::{self, ALIGNMENT, change, get};
use balar_host::CudaError;
use std::ffi::c_int;

fn set_rows(handle: u64, descriptor: In<ArrayDescriptor>, address: u64, pitch: usize) -> Outcome {
    let ArrayDescriptor { width, height, format, channels } = descriptor.get()?;
    let address = texture::memory(address)?;
    let extent = |extent: usize| u32::try_from(extent).ok().filter(|extent| *extent > 0).ok_or(CudaError::InvalidValue);
    let source = Source::Rows { address, width: extent(width)?, height: extent(height)?, pitch: pitch as u64 };
    if !address.is_multiple_of(ALIGNMENT) {
        return Err(CudaError::InvalidValue);
    }
    let format = format_of_runtime(format, channels)?;
    change(handle, |reference| {
        (reference.source, reference.format) = (source, format);
        Ok(())
    })
}

/// A mode is that of a point or a linear one.
fn filter_mode(mode: u32) -> Outcome {
    if mode > 1 { Err(CudaError::InvalidValue) } else { Ok(()) }
}

/// Sets what only mipmapped textures use, which no reference is bound to: the reference must be one, and nothing is kept. The static runtime
/// of CUDA 9.1 sets all of it for every reference.
fn of_mipmaps(texture: u64) -> Outcome {
    get(texture).map(|_| ())
}

driver_api! {
    context fn cuModuleGetTexRef(place: Out<u64>, module: u64, name: Text) {
        place.check()?;
        place.set(texture_reference::of_module(module, &name.get()?)?)
    }

    context fn cuModuleGetSurfRef(place: Out<u64>, module: u64, name: Text) {
        place.check()?;
        place.set(texture_reference::surface_of_module(module, &name.get()?)?)
    }

    context fn cuTexRefSetArray(texture: u64, array: u64, _flags: u32) {
        let format = array::get(array)?.format;
        change(texture, |reference| {
            (reference.source, reference.format) = (Source::Array(array), format);
            Ok(())
        })
    }

    context fn cuTexRefSetAddress_v2(offset: Out<usize>, texture: u64, address: u64, bytes: usize) {
        let address = texture::memory(address)?;
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
        let format = format_of_runtime(format, channels)?;
        change(texture, |reference| {
            reference.format = format;
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
        filter_mode(mode)?;
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
        of_mipmaps(texture)
    }

    context fn cuTexRefSetMipmapFilterMode(texture: u64, mode: u32) {
        filter_mode(mode)?;
        of_mipmaps(texture)
    }

    context fn cuTexRefSetMipmapLevelBias(texture: u64, _bias: f32) {
        of_mipmaps(texture)
    }

    context fn cuTexRefSetMipmapLevelClamp(texture: u64, _minimum: f32, _maximum: f32) {
        of_mipmaps(texture)
    }

    context fn cuTexRefGetAddress_v2(place: Out<u64>, texture: u64) {
        match get(texture)?.source {
            Source::Linear { address, .. } | Source::Rows { address, .. } => place.set(address),
            Source::Nothing | Source::Array(_) => Err(CudaError::InvalidValue),
        }
    }

    context fn cuTexRefGetArray(place: Out<u64>, texture: u64) {
        match get(texture)?.source {
            Source::Array(array) => place.set(array),
            _ => Err(CudaError::InvalidValue),
        }
    }

    context fn cuTexRefGetAddressMode(place: Out<u32>, texture: u64, dimension: c_int) {
        let modes = get(texture)?.address_modes;
        let mode = usize::try_from(dimension).ok().and_then(|index| modes.get(index).copied());
        place.set(mode.ok_or(CudaError::InvalidValue)?)
    }

    context fn cuTexRefGetFilterMode(place: Out<u32>, texture: u64) {
        place.set(get(texture)?.filter)
    }

    context fn cuTexRefGetFlags(place: Out<u32>, texture: u64) {
        place.set(get(texture)?.flags)
    }

    context fn cuTexRefGetBorderColor(place: Out<[f32; 4]>, texture: u64) {
        place.set(get(texture)?.border)
    }

    context fn cuTexRefGetFormat(format: Out<u32>, channels: Out<c_int>, texture: u64) {
        let (found, count) = format_of_driver(&get(texture)?.format);
        format.set_if_wanted(found);
        channels.set_if_wanted(count as c_int);
        Ok(())
    }

    context fn cuSurfRefSetArray(surface: u64, array: u64, _flags: u32) {
        texture_reference::set_surface(surface, array)
    }

    context fn cuSurfRefGetArray(place: Out<u64>, surface: u64) {
        place.set(texture_reference::surface_array(surface)?)
    }
}
