//! Kernels and their launches: the code that is loaded, what is checked, what a launch carries with it, and what its fault is.

mod device_kernels;
pub(crate) mod faults;
mod launches;
mod loaded_code;
mod stacks;
pub(crate) mod validation;

pub(crate) use launches::{AskedLaunch, LaunchNeeds, Launches};
pub(crate) use loaded_code::LoadedCode;
pub use loaded_code::OtherNode;
