//! The facts that programs are told about addresses.

use std::ffi::c_int;

/// `cudaPointerAttributes`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointerAttributes {
    /// `cudaMemoryType`.
    pub kind: c_int,
    /// The device that was current when it was allocated.
    pub device: c_int,
    /// The address for devices, or 0.
    pub device_pointer: u64,
    /// The address for the host, or 0.
    pub host_pointer: u64,
}

/// `cudaPointerAttributes` of CUDA 13.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointerAttributes13 {
    /// The fields of the earlier versions.
    pub base: PointerAttributes,
    /// Zero.
    pub reserved: [i64; 8],
}

/// Values of [`PointerAttributes::kind`].
pub mod memory_type {
    use std::ffi::c_int;

    /// `cudaMemoryTypeUnregistered`.
    pub const UNREGISTERED: c_int = 0;
    /// `cudaMemoryTypeHost`.
    pub const HOST: c_int = 1;
    /// `cudaMemoryTypeDevice`.
    pub const DEVICE: c_int = 2;
    /// `cudaMemoryTypeManaged`.
    pub const MANAGED: c_int = 3;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;

    /// Sizes by a C compiler, with the headers of CUDA 11.8, 12.6 and 13.5.
    #[test]
    fn layouts_are_those_of_the_headers() {
        check::<PointerAttributes>(24, 8);
        check::<PointerAttributes13>(88, 8);
        assert_eq!(std::mem::offset_of!(PointerAttributes, host_pointer), 16);
    }
}
