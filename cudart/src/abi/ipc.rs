//! Handles that a process gives to others, which are passed by value.

/// `cudaIpcMemHandle_t` and `CUipcMemHandle`, `cudaIpcEventHandle_t` and `CUipcEventHandle`: 64 bytes, whose meaning the maker decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct IpcHandle(pub [u64; 8]);

// In registers it would be another argument.
const _: () = assert!(size_of::<IpcHandle>() == 64);
