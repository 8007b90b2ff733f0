//! Kernels and their launches: the loaded code, the checks of a launch, the contents of a launch, and the meaning of its fault.

pub(crate) mod clusters;
mod device_kernels;
pub(crate) mod faults;
mod launches;
mod loaded_code;
pub(crate) mod residency;
mod stacks;
pub(crate) mod validation;

pub(crate) use launches::{AskedLaunch, LaunchNeeds, Launches};
pub(crate) use loaded_code::LoadedCode;
pub use loaded_code::OtherNode;
