//! Copies in three dimensions.

use bytemuck::{Pod, Zeroable};

/// `cudaExtent`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Extent {
    /// Elements of an array's row, bytes of other memory's.
    pub width: u64,
    /// Rows.
    pub height: u64,
    /// Slices.
    pub depth: u64,
}

/// `cudaPos`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Position {
    /// Elements of an array's row, bytes of other memory's.
    pub x: u64,
    /// Row.
    pub y: u64,
    /// Slice.
    pub z: u64,
}

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct PitchedPointer {
    /// The address.
    pub pointer: u64,
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// Bytes of a row that are used.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Memcpy3DParameters {
    /// Handle of the array to read, or 0.
    pub source_array: u64,
    /// Where in it, or in the memory.
    pub source_position: Position,
    /// The memory to read.
    pub source: PitchedPointer,
    /// Handle of the array to write, or 0.
    pub destination_array: u64,
    /// Where in it, or in the memory.
    pub destination_position: Position,
    /// The memory to write.
    pub destination: PitchedPointer,
    /// How much: its width in elements where an array takes part, else in bytes.
    pub extent: Extent,
    /// `cudaMemcpyKind`.
    pub kind: u32,
    /// Zero.
    pub padding: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<Extent>(24, 8);
        check::<Position>(24, 8);
        check::<PitchedPointer>(32, 8);
        check::<Memcpy3DParameters>(160, 8);
        assert_eq!(offset_of!(Memcpy3DParameters, source), 32);
        assert_eq!(offset_of!(Memcpy3DParameters, destination_array), 64);
        assert_eq!(offset_of!(Memcpy3DParameters, extent), 128);
        assert_eq!(offset_of!(Memcpy3DParameters, kind), 152);
    }
}
