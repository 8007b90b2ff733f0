//! What hardware units say to each other, and the vocabulary they share.
//!
//! Simulated time and clocks ([`time`], [`clock`]), sizes and rates with their strict parsers ([`quantity`]), the messages of each
//! protocol ([`cuda`], [`cta`], [`cluster`], [`memory`], [`translation`], [`copy`], [`managed`], [`migration`]), what a launch is ([`launch`]) and
//! why it fails ([`fault`]), the statistics and the launches of a run ([`statistics`]), which of them are timed ([`detail`]) and what
//! becomes of them while they run ([`launches`]).
//!
//! **Invariant:** nothing here knows a unit, a program or the engine; no message carries an address of the host process.

// The macro `counters!` names this crate, in this crate too.
extern crate self as balar_protocol;

pub mod clock;
pub mod cluster;
pub mod context;
pub mod copy;
pub mod cta;
pub mod cuda;
pub mod detail;
pub mod device_launch;
pub mod fault;
pub mod gpu;
pub mod images;
pub mod launch;
pub mod launches;
pub mod limits;
pub mod managed;
pub mod memory;
pub mod message;
pub mod migration;
pub mod ports;
pub mod prefetch;
pub mod quantity;
pub mod ranges;
pub mod sm;
pub mod statistics;
pub mod time;
pub mod translation;

#[doc(hidden)]
pub use serde;

pub use clock::Clock;
pub use context::{ContextId, ProcessId};
pub use detail::{Detail, DetailChoice};
pub use gpu::GpuDescription;
pub use images::{tensor_map, texture};
pub use memory::residency;
pub use message::{Message, Payload, Protocol};
pub use ports::{PortId, Side, UnitId};
pub use quantity::{Bandwidth, Bytes, Frequency, QuantityError};
pub use sm::{
    CarveOutPreference, CarveOuts, CtaNeeds, MAXIMUM_CARVE_OUTS, MAXIMUM_REGISTER_FILES, MAXIMUM_SUB_CORES,
    SmCapability, SmResources,
};
pub use statistics::{by_launch, kernel_records};
pub use time::SimTime;
