//! The structures and numbers of `nvml.h` (CUDA 13.5).

use bytemuck::{Pod, Zeroable};

/// A failure, as `nvmlReturn_t` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum NvmlError {
    /// `nvmlInit` was not called.
    Uninitialized = 1,
    /// An argument is invalid.
    InvalidArgument = 2,
    /// The device has no such thing.
    NotSupported = 3,
    /// No device is so.
    NotFound = 6,
    /// There is not enough room for the answer.
    InsufficientSize = 7,
    /// There is no simulator.
    DriverNotLoaded = 9,
    /// The simulator is gone.
    GpuIsLost = 15,
    /// The structure is of another version.
    ArgumentVersionMismatch = 25,
    /// Anything else.
    Unknown = 999,
}

/// The texts of `nvmlErrorString`, by code, each with a zero byte at its end.
pub const ERROR_TEXTS: [&std::ffi::CStr; 31] = [
    c"Success",
    c"Uninitialized",
    c"Invalid Argument",
    c"Not Supported",
    c"Insufficient Permissions",
    c"Already Initialized",
    c"Not Found",
    c"Insufficient Size",
    c"Insufficient External Power",
    c"Driver Not Loaded",
    c"Timeout",
    c"Interrupt Request Issue",
    c"NVML Shared Library Not Found",
    c"Function Not Found",
    c"Corrupted infoROM",
    c"GPU is lost",
    c"GPU requires reset",
    c"GPU access blocked by the operating system",
    c"Driver/library version mismatch",
    c"In use by another client",
    c"Insufficient Memory",
    c"No data",
    c"ECC is not supported on vGPU",
    c"Insufficient Resources",
    c"Frequency Not Supported",
    c"Argument Version Mismatch",
    c"Deprecated",
    c"Not Ready",
    c"GPU not found",
    c"Invalid State",
    c"Reset Type Not Supported",
];

/// `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct PciInfo {
    /// "0000:01:00.0".
    pub bus_id_legacy: [u8; 16],
    /// The domain.
    pub domain: u32,
    /// The bus.
    pub bus: u32,
    /// The device on the bus.
    pub device: u32,
    /// Its device and vendor.
    pub device_id: u32,
    /// The same of the board.
    pub subsystem_id: u32,
    /// "00000000:01:00.0".
    pub bus_id: [u8; 32],
}

/// The bytes of [`PciInfo`] that the first two versions of `nvmlDeviceGetPciInfo` write: the fields that the structure had then.
pub const PCI_INFO_BYTES: [usize; 2] = [32, 36];

/// `nvmlMemory_t`, bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Memory {
    /// All.
    pub total: u64,
    /// Not allocated.
    pub free: u64,
    /// Allocated.
    pub used: u64,
}

/// `nvmlMemory_v2_t`, bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryV2 {
    /// [`version_of`] the structure.
    pub version: u32,
    /// All.
    pub total: u64,
    /// The driver's own.
    pub reserved: u64,
    /// Not allocated.
    pub free: u64,
    /// Allocated.
    pub used: u64,
}

/// `nvmlUtilization_t`, percent of time.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Utilization {
    /// Kernels ran.
    pub gpu: u32,
    /// Device memory was read or written.
    pub memory: u32,
}

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessInfoV1 {
    /// The process.
    pub process: u32,
    /// Bytes of its device memory.
    pub used: u64,
}

/// `nvmlProcessInfo_v2_t`, that of the third version of the functions, too.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The process.
    pub process: u32,
    /// Bytes of its device memory.
    pub used: u64,
    /// The part of a divided GPU; all ones where it is not divided.
    pub gpu_instance: u32,
    /// The same.
    pub compute_instance: u32,
}

/// `NVML_VALUE_NOT_AVAILABLE`.
pub const NOT_AVAILABLE: u64 = u64::MAX;

/// `nvmlDeviceAttributes_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// SMs.
    pub multiprocessors: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// Decoders, encoders, JPEG engines, optical flow accelerators.
    pub media_engines: [u32; 4],
    /// Slices of the GPU, and of its computing part.
    pub slices: [u32; 2],
    /// Device memory, MiB.
    pub memory_mib: u64,
}

/// `nvmlFieldValue_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue {
    /// Which field.
    pub field: u32,
    /// The part of the device.
    pub scope: u32,
    /// When it was read.
    pub timestamp: i64,
    /// How long that took.
    pub latency: i64,
    /// The type of `value`.
    pub value_type: u32,
    /// Whether there is one: 0, or [`NvmlError`].
    pub result: i32,
    /// The value.
    pub value: u64,
}

/// `nvmlUUID_v1_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uuid {
    /// [`version_of`] the structure.
    pub version: u32,
    /// 1 for a text, 2 for 16 bytes.
    pub kind: u32,
    /// The text or the bytes.
    pub value: [u8; 41],
}

/// `NVML_STRUCT_VERSION`: the value of a structure's field `version`.
pub const fn version_of<T>(version: u32) -> u32 {
    size_of::<T>() as u32 | version << 24
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::layout::check;
    use std::mem::offset_of;

    /// By a C compiler, with the header of CUDA 13.5.
    #[test]
    fn layouts_are_those_of_the_header() {
        check::<PciInfo>(68, 4);
        check::<Memory>(24, 8);
        check::<MemoryV2>(40, 8);
        check::<Utilization>(8, 4);
        check::<ProcessInfoV1>(16, 8);
        check::<ProcessInfo>(24, 8);
        check::<Attributes>(40, 8);
        check::<FieldValue>(40, 8);
        check::<Uuid>(52, 4);
        assert_eq!(offset_of!(FieldValue, result), 28);
        assert_eq!(offset_of!(PciInfo, bus_id), 36);
        assert_eq!(version_of::<MemoryV2>(2), 0x0200_0028);
    }
}
