//! Code of the program: images, modules and libraries, kernels, texture references, and how functions of CUDA itself are found.

pub mod archive;
pub mod function;
pub mod image;
pub mod launch_parameters;
pub mod loaded;
pub mod module;
pub mod occupancy;
pub mod procedure;
mod readable;
pub mod reference_table;
pub mod registry;
pub mod texture_reference;

pub use loaded::{Code, Image, Kernel, LoadedKernel, Module, forget_device, kernel_of_function, managed_variable};
