//! Arrays and how their elements are stored.

use crate::abi::arguments::{In, Out};
use crate::abi::array::{ArrayMemoryRequirements, ChannelFormatDesc, array_flags, channel_kind};
use crate::abi::copy::Extent;
use crate::runtime_api;
use crate::session::api::Fallback;
use crate::session::arrays::array;
use balar_host::CudaError;
use std::ffi::c_int;

impl Fallback for ChannelFormatDesc {
    const FALLBACK: Self = ChannelFormatDesc { bits: [0; 4], kind: channel_kind::NONE };
}

runtime_api! {
    raw fn cudaCreateChannelDesc(x: c_int, y: c_int, z: c_int, w: c_int, kind: c_int) -> ChannelFormatDesc {
        ChannelFormatDesc { bits: [x, y, z, w], kind }
    }

    fn cudaGetChannelDesc(description: Out<ChannelFormatDesc>, array: u64) {
        description.check()?;
        description.set(array::get(array).map_err(|_| CudaError::InvalidValue)?.format)
    }

    fn cudaMallocArray(array: Out<u64>, format: In<ChannelFormatDesc>, width: usize, height: usize, flags: u32) {
        array.check()?;
        if flags & (array_flags::LAYERED | array_flags::CUBEMAP) != 0 {
            return Err(CudaError::InvalidValue);
        }
        array.set(array::create(format.get()?, Extent { width: width as u64, height: height as u64, depth: 0 }, flags)?)
    }

    fn cudaMalloc3DArray(array: Out<u64>, format: In<ChannelFormatDesc>, extent: Extent, flags: u32) {
        array.check()?;
        array.set(array::create(format.get()?, extent, flags)?)
    }

    fn cudaFreeArray(array: u64) {
        array::destroy(array)
    }

    fn cudaArrayGetInfo(format: Out<ChannelFormatDesc>, extent: Out<Extent>, flags: Out<u32>, array: u64) {
        let array = array::get(array)?;
        format.set_if_wanted(array.format);
        extent.set_if_wanted(array.extent);
        flags.set_if_wanted(array.flags);
        Ok(())
    }

    fn cudaArrayGetMemoryRequirements(requirements: Out<ArrayMemoryRequirements>, array: u64, device: c_int) {
        requirements.set(array::memory_requirements(array, device)?)
    }

    fn cudaArrayGetSparseProperties(_properties: u64, array: u64) {
        // No array is sparse.
        array::get(array).and(Err(CudaError::InvalidValue))
    }

    fn cudaArrayGetPlane(_plane: Out<u64>, array: u64, _index: u32) {
        // No array has planes.
        array::get(array).and(Err(CudaError::InvalidValue))
    }

    fn cudaMallocMipmappedArray(
        mipmapped: Out<u64>,
        format: In<ChannelFormatDesc>,
        extent: Extent,
        levels: u32,
        flags: u32,
    ) {
        mipmapped.check()?;
        mipmapped.set(array::create_mipmapped(format.get()?, extent, levels, flags)?)
    }

    fn cudaGetMipmappedArrayLevel(array: Out<u64>, mipmapped: u64, level: u32) {
        array.check()?;
        array.set(array::level_at(mipmapped, level)?)
    }

    fn cudaFreeMipmappedArray(mipmapped: u64) {
        array::destroy_mipmapped(mipmapped)
    }

    fn cudaMipmappedArrayGetMemoryRequirements(
        requirements: Out<ArrayMemoryRequirements>,
        mipmapped: u64,
        device: c_int,
    ) {
        requirements.set(array::memory_requirements(array::level(mipmapped)?, device)?)
    }

    fn cudaMipmappedArrayGetSparseProperties(_properties: u64, mipmapped: u64) {
        array::level(mipmapped).and(Err(CudaError::InvalidValue))
    }

    fn cudaDeviceGetTexture1DLinearMaxWidth(elements: Out<usize>, format: In<ChannelFormatDesc>, device: c_int) {
        elements.set(array::largest_linear_texture(format.get()?, device)? as usize)
    }
}
