//! What host programs ask of CUDA: calls and their results, errors, the memory map of a node, and the two kinds of host programs,
//! those that are built in and real ones, which reach the simulator through a tunnel.
//!
//! `call` has the vocabulary of calls and their results; `call/facts.rs` is the one table of what is true of each call: its name, what it is charged for, its
//! stream, its bulk data. `error` has CUDA's errors, `program` the traits of what makes the calls, `memory` the address space of a node, `tunnel` what programs and the
//! simulator say to each other, `trace` recorded runs: `Recorder` stands between a program and the simulated host CPU, and `Replay` stands in for the program.

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
