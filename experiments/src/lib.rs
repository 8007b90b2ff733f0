//! Built-in workloads on simulated nodes, which the command line, tests and studies begin with.
//!
//! [`simulate`] runs a [`SimulationRequest`]: a topology and a workload; [`run`] goes from their names to figures in one call. Nodes with
//! programs of one's own are `balar_actors::simulation`'s.
//!
//! `request.rs` has what is asked for, `simulate.rs` the run, `workloads.rs` which workload and its code, `experiment.rs` one call from names
//! to figures, `pool.rs` many runs at a time; `validation` has the studies and `roofline` what a node can do at most.

mod experiment;
mod pool;
mod request;
pub mod roofline;
mod simulate;
pub mod validation;
mod workloads;

pub use experiment::{ExperimentError, run, run_overridden, run_with};
pub use request::{RequestError, SimulationRequest};
pub use simulate::{PLANNED_CTAS, simulate, simulate_wrapped};
pub use workloads::{BuiltInProgram, BuiltInWorkloads};
