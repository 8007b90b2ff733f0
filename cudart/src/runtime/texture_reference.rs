//! Texture and surface references of CUDA 11: variables of modules that the program gives meanings to.

use crate::abi::arguments::{In, Out};
use crate::abi::array::ChannelFormatDesc;
use crate::abi::texture::TextureReference;
use crate::runtime_api;
use crate::session::arrays::array::{self, LARGEST_LINEAR, format_of};
use crate::session::arrays::texture::{address_mode, check, memory};
use crate::session::code::registry::{self, HostVariable, Variable};
use crate::session::code::texture_reference::ALIGNMENT;
use crate::session::connection;
use crate::session::state::thread;
use balar_host::{Call, CallResult, CudaError, Resource, TextureDescription};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The offset in bytes from the start of the bound texture to the address that the program bound, by device and address of the reference.
static BOUND: Mutex<BTreeMap<(u32, usize), u64>> = Mutex::new(BTreeMap::new());

/// A texture reference of the program, as it was registered.
fn texture_variable(reference: usize) -> Result<(Variable, bool), CudaError> {
    let variable = registry::variable(reference).map_err(|_| CudaError::InvalidTexture)?;
    match variable.kind {
        HostVariable::Texture { is_normalized, .. } => Ok((variable, is_normalized)),
        _ => Err(CudaError::InvalidTexture),
    }
}

/// How a reference is read, as it says now.
fn description_of(
    reference: usize,
    format: ChannelFormatDesc,
    reads_normalized: bool,
) -> Result<TextureDescription, CudaError> {
    // SAFETY: the address is that of a texture reference that the program registered.
    let said = unsafe { (reference as *const TextureReference).read_unaligned() };
    let addressing = said.address_mode.map(address_mode);
    let (_, is_normalized_format) = format_of(format)?;
    let description = TextureDescription {
        addressing: [addressing[0]?, addressing[1]?, addressing[2]?],
        is_linear: said.filter_mode == 1,
        is_normalized: said.normalized != 0,
        reads_normalized_floats: reads_normalized || is_normalized_format,
        border: [0.0; 4],
    };
    check(format, &description)?;
    Ok(description)
}

/// Gives a reference a meaning.
fn bind(reference: usize, format: ChannelFormatDesc, resource: Resource, offset: u64) -> Result<(), CudaError> {
    let (variable, reads_normalized) = texture_variable(reference)?;
    let description = description_of(reference, format, reads_normalized)?;
    let module = variable.module()?;
    connection::done(&Call::TextureBind { module, name: variable.name, resource, description })?;
    BOUND.lock().unwrap_or_else(PoisonError::into_inner).insert((thread::device(), reference), offset);
    Ok(())
}

/// Where a texture of memory begins, how far into it the address is, and how much of the allocation is left from there.
fn aligned(address: u64, offset: Out<usize>) -> Result<(u64, u64, u64), CudaError> {
    let address = memory(address)?;
    let CallResult::PointerInfo(Some(allocation)) = connection::call(&Call::PointerInfo { pointer: address })? else {
        return Err(CudaError::InvalidValue);
    };
    let misaligned = address % ALIGNMENT;
    if misaligned != 0 && offset.is_null() {
        return Err(CudaError::InvalidValue);
    }
    offset.set_if_wanted(misaligned as usize);
    let begin = address - misaligned;
    Ok((begin, misaligned, allocation.base + allocation.bytes - begin))
}

fn bind_linear(
    offset: Out<usize>,
    reference: usize,
    address: u64,
    format: ChannelFormatDesc,
    bytes: u64,
) -> Result<(), CudaError> {
    let (texel, _) = format_of(format)?;
    let (pointer, misaligned, left) = aligned(address, offset)?;
    // Programs may say that there is no end.
    let most = LARGEST_LINEAR * texel.bytes();
    let bytes = bytes.saturating_add(misaligned).min(left).min(most);
    bind(reference, format, Resource::Linear { pointer, bytes, format: texel }, misaligned)
}

fn bind_rows(
    offset: Out<usize>,
    reference: usize,
    address: u64,
    format: ChannelFormatDesc,
    [width, height, pitch]: [usize; 3],
) -> Result<(), CudaError> {
    let (texel, _) = format_of(format)?;
    let (pointer, misaligned, _) = aligned(address, offset)?;
    // Coordinates count from where the texture begins.
    let width = width as u64 + misaligned / texel.bytes();
    let extent = |extent: u64| u32::try_from(extent).ok().filter(|extent| *extent > 0);
    let (Some(width), Some(height)) = (extent(width), extent(height as u64)) else {
        return Err(CudaError::InvalidValue);
    };
    let resource = Resource::Pitch2D { pointer, width, height, pitch: pitch as u64, format: texel };
    bind(reference, format, resource, misaligned)
}

runtime_api! {
    fn cudaBindTexture(
        offset: Out<usize>,
        reference: usize,
        address: u64,
        format: In<ChannelFormatDesc>,
        bytes: usize,
    ) {
        bind_linear(offset, reference, address, format.get()?, bytes as u64)
    }

    fn cudaBindTexture2D(
        offset: Out<usize>,
        reference: usize,
        address: u64,
        format: In<ChannelFormatDesc>,
        width: usize,
        height: usize,
        pitch: usize,
    ) {
        bind_rows(offset, reference, address, format.get()?, [width, height, pitch])
    }

    fn cudaBindTextureToArray(reference: usize, array: u64, format: In<ChannelFormatDesc>) {
        let array = array::get(array).map_err(|_| CudaError::InvalidValue)?;
        let format = format.get()?;
        if format != array.format {
            return Err(CudaError::InvalidChannelDescriptor);
        }
        bind(reference, format, Resource::Array(array.number), 0)
    }

    fn cudaBindTextureToMipmappedArray(reference: usize, mipmapped: u64, format: In<ChannelFormatDesc>) {
        let array = array::get(array::level(mipmapped)?).map_err(|_| CudaError::InvalidValue)?;
        bind(reference, format.get()?, Resource::Array(array.number), 0)
    }

    fn cudaUnbindTexture(reference: usize) {
        texture_variable(reference)?;
        // The texture stays bound on the device: a program that has unbound it does not read it.
        BOUND.lock().unwrap_or_else(PoisonError::into_inner).remove(&(thread::device(), reference));
        Ok(())
    }

    fn cudaGetTextureAlignmentOffset(offset: Out<usize>, reference: usize) {
        offset.check()?;
        texture_variable(reference)?;
        let bound = BOUND.lock().unwrap_or_else(PoisonError::into_inner).get(&(thread::device(), reference)).copied();
        offset.set(bound.ok_or(CudaError::InvalidTextureBinding)? as usize)
    }

    fn cudaGetTextureReference(reference: Out<usize>, symbol: usize) {
        reference.check()?;
        texture_variable(symbol)?;
        reference.set(symbol)
    }

    fn cudaBindSurfaceToArray(reference: usize, array: u64, _format: In<ChannelFormatDesc>) {
        let variable = registry::variable(reference).map_err(|_| CudaError::InvalidSurface)?;
        if variable.kind != HostVariable::Surface {
            return Err(CudaError::InvalidSurface);
        }
        let array = array::get(array).map_err(|_| CudaError::InvalidValue)?;
        let module = variable.module()?;
        connection::done(&Call::SurfaceBind { module, name: variable.name, array: array.number })
    }

    fn cudaGetSurfaceReference(reference: Out<usize>, symbol: usize) {
        reference.check()?;
        match registry::variable(symbol).map(|variable| variable.kind) {
            Ok(HostVariable::Surface) => reference.set(symbol),
            _ => Err(CudaError::InvalidSurface),
        }
    }
}
