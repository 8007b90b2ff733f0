//! Measurements of the functional units: latency and throughput.

pub(crate) mod alu_latency;
pub(crate) mod throughput;
