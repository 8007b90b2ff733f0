//! Arrays as programs name them.

use super::handles::{Handles, Kind};
use crate::abi::array::ChannelFormatDesc;
use crate::abi::copy::{Extent, Position};
use balar_host::{ArrayDescription, CudaError};

/// An array that the program made.
#[derive(Clone, Copy, Debug)]
pub struct Array {
    /// The simulator's number.
    pub number: u64,
    /// The device that has it.
    pub device: u32,
    /// What it holds.
    pub description: ArrayDescription,
    /// What it holds, as the program said it.
    pub format: ChannelFormatDesc,
    /// Its size, as the program said it.
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
