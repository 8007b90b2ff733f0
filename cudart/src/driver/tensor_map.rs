//! Tensor maps: the descriptions of tensors, for copies of Hopper, that programs pass to their kernels.

use crate::abi::arguments::{In, Out};
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::arrays::texture;
use balar_host::CudaError;
use balar_host::tensor_map::{Convolution, ElementType, MOST_DIMENSIONS, TENSOR_MAP_BYTES, TensorMap};
use std::ffi::c_int;

/// A map as programs keep it (`CUtensorMap`).
type Map = [u8; TENSOR_MAP_BYTES];

/// What both kinds of maps have.
struct Tensor {
    element: c_int,
    dimensions: u32,
    address: u64,
    sizes: In<u64>,
    strides: In<u64>,
    element_strides: In<u32>,
    interleave: c_int,
    swizzle: c_int,
    promotion: c_int,
    fill: c_int,
}

/// The numbers of an array, one for each dimension; what the program leaves out is 1.
fn numbers<T: Copy>(array: In<T>, count: usize, rest: T) -> Result<[T; MOST_DIMENSIONS], CudaError> {
    let mut numbers = [rest; MOST_DIMENSIONS];
    numbers.get_mut(..count).ok_or(CudaError::InvalidValue)?.copy_from_slice(&array.array(count)?);
    Ok(numbers)
}

impl Tensor {
    /// The map, with the sizes of its boxes.
    fn map(&self, box_sizes: [u32; MOST_DIMENSIONS], convolution: Option<Convolution>) -> Result<TensorMap, CudaError> {
        let count = self.dimensions as usize;
        if !(1..=MOST_DIMENSIONS).contains(&count) {
            return Err(CudaError::InvalidValue);
        }
        let strides = numbers(self.strides, count - 1, 0)?;
        let element_strides = numbers(self.element_strides, count, 1)?.map(u8::try_from);
        let number = |value: c_int, most: u8| {
            u8::try_from(value).ok().filter(|value| *value <= most).ok_or(CudaError::InvalidValue)
        };
        let mut traversal = [1; MOST_DIMENSIONS];
        for (to, from) in traversal.iter_mut().zip(element_strides) {
            *to = from.map_err(|_| CudaError::InvalidValue)?;
        }
        let element = usize::try_from(self.element).ok().and_then(|place| ElementType::OF_DRIVER.get(place).copied());
        let map = TensorMap {
            address: texture::memory(self.address)?,
            element: element.ok_or(CudaError::InvalidValue)?,
            dimensions: count as u8,
            sizes: numbers(self.sizes, count, 1)?,
            strides: [0, 1, 2, 3].map(|dimension| strides[dimension]),
            box_sizes,
            element_strides: traversal,
            interleave: number(self.interleave, 2)?,
            swizzle: number(self.swizzle, 3)?,
            fills_with_nan: number(self.fill, 1)? == 1,
            promotion: number(self.promotion, 3)?,
            convolution,
        };
        if map.is_valid() { Ok(map) } else { Err(CudaError::InvalidValue) }
    }
}

fn corner(array: In<c_int>, spatial: usize) -> Result<[i16; 3], CudaError> {
    let mut corner = [0; 3];
    for (to, from) in corner.iter_mut().zip(array.array(spatial)?) {
        *to = i16::try_from(from).map_err(|_| CudaError::InvalidValue)?;
    }
    Ok(corner)
}

fn replace_address(place: Out<Map>, map: In<Map>, address: u64) -> Outcome {
    let map = map.get()?.first_chunk().and_then(TensorMap::decode).ok_or(CudaError::InvalidValue)?;
    let map = TensorMap { address: texture::memory(address)?, ..map };
    if !map.is_valid() {
        return Err(CudaError::InvalidValue);
    }
    place.set(map.encode())
}

driver_api! {
    fn cuTensorMapEncodeTiled(
        place: Out<Map>, element: c_int, dimensions: u32, address: u64, sizes: In<u64>, strides: In<u64>,
        box_sizes: In<u32>, element_strides: In<u32>, interleave: c_int, swizzle: c_int, promotion: c_int, fill: c_int,
    ) {
        place.check()?;
        let tensor = Tensor {
            element, dimensions, address, sizes, strides, element_strides, interleave, swizzle, promotion, fill,
        };
        place.set(tensor.map(numbers(box_sizes, dimensions as usize, 1)?, None)?.encode())
    }

    fn cuTensorMapEncodeIm2col(
        place: Out<Map>, element: c_int, dimensions: u32, address: u64, sizes: In<u64>, strides: In<u64>,
        lower_corner: In<c_int>, upper_corner: In<c_int>, channels: u32, pixels: u32, element_strides: In<u32>,
        interleave: c_int, swizzle: c_int, promotion: c_int, fill: c_int,
    ) {
        place.check()?;
        if !(3..=MOST_DIMENSIONS as u32).contains(&dimensions) || channels > 256 || pixels > 1024 {
            return Err(CudaError::InvalidValue);
        }
        let spatial = dimensions as usize - 2;
        let convolution = Convolution {
            lower_corner: corner(lower_corner, spatial)?,
            upper_corner: corner(upper_corner, spatial)?,
            channels: channels as u16,
            pixels: pixels as u16,
        };
        let tensor = Tensor {
            element, dimensions, address, sizes, strides, element_strides, interleave, swizzle, promotion, fill,
        };
        place.set(tensor.map([1; MOST_DIMENSIONS], Some(convolution))?.encode())
    }

    fn cuTensorMapReplaceAddress(map: Out<Map>, address: u64) {
        map.check()?;
        // SAFETY: the program passes a map that it has, which is read and written.
        let old = unsafe { In::new(map.pointer().cast_const()) };
        replace_address(map, old, address)
    }
}
