//! What host programs ask of CUDA: calls and their results, errors, the memory map of a node, and the two kinds of host programs,
//! those that are built in and real ones, which reach the simulator through a tunnel.

mod bytes;
pub mod call;
mod description;
mod driver_version;
mod error;
pub mod huge_pages;
mod image;
pub mod memory;
mod program;
pub mod trace;
pub mod tunnel;

pub use balar_protocol::statistics::Verification;
pub use balar_protocol::texture::{AddressMode, ChannelKind};
pub use bytes::{Bytes, zeroed};
pub use call::{Call, CallFailure, CallResult};
pub use description::{DeviceDescription, NodeDescription};
pub use driver_version::{DriverVersion, NoDriverVersion};
pub use error::CudaError;
pub use image::{ArrayDescription, ChannelFormat, Resource, TextureDescription};
pub use program::{Host, HostProgram, Measurement, Next, Request, SingleThread, ThreadId};
