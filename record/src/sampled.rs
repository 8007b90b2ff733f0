//! Counters that were sampled while a run went on.

use balar_protocol::SimTime;

/// Values over time that were sampled: a counter track of a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledCounter {
    /// The number and the path of the GPU.
    pub gpu: (usize, String),
    /// Name of the track.
    pub name: String,
    /// Unit of measure of the values.
    pub unit: String,
    /// Times and values, in order of time: each value holds from its time on.
    pub values: Vec<(SimTime, f64)>,
}
