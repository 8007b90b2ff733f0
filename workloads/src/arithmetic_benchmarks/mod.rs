//! What the functional units give: latency and throughput.

pub(crate) mod alu_latency;
pub(crate) mod throughput;
