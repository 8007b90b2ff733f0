//! The host's side of CUDA: calls and their results, errors, the memory map of a node, and the two kinds of host programs. Built-in
//! programs are parts of the simulator; real ones reach it through a tunnel.
//!
//! `call` has the vocabulary of calls and their results. `call/facts.rs` is the one table of facts about each call: its name, its cost
//! class, its stream, its bulk data. `error` has CUDA's errors, `program` the traits of host programs, `memory` the address space of a
//! node, and `tunnel` the protocol between programs and the simulator. `trace` has recorded runs: `Recorder` stands between a program and
//! the simulated host CPU, and `Replay` stands in for the program.

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

pub use balar_protocol::cluster::{MAXIMUM_CLUSTER, PORTABLE_CLUSTER};
pub use balar_protocol::limits::{most_access_policy_window, most_persisting_l2};
pub use balar_protocol::residency::{AccessPolicyWindow, AccessProperty};
pub use balar_protocol::statistics::Verification;
pub use balar_protocol::tensor_map;
pub use balar_protocol::texture::{AddressMode, ChannelKind};
pub use balar_protocol::{CtaNeeds, SmResources};
pub use bytes::{Bytes, zeroed};
pub use call::{Call, CallFailure, CallResult};
pub use description::{DeviceDescription, NodeDescription};
pub use driver_version::{DriverVersion, NoDriverVersion};
pub use error::CudaError;
pub use image::{ArrayDescription, ChannelFormat, Resource, TextureDescription};
pub use program::{Host, HostProgram, Measurement, Next, Request, SingleThread, ThreadId};
